//! The server under the client: a Tavola of our own, or whatever a connection string in the environment names.
//!
//! The tests of the client live here, beside the binary, because cargo builds a binary for the tests of its own package
//! only: this way they drive the real thing, as a user would, and not a server inside the test. With
//! `TAVOLA_CLIENT_TEST_CONNECTION` set, the same tests run against that account instead; each makes its tables under fresh
//! names and deletes them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use azure_core::Uuid;
use azure_core::http::{ClientOptions, RetryOptions, Transport};
use tavola_client::patterns::queue_worker::WorkerReport;
use tavola_client::queue::{QueueClient, QueueServiceClient};
use tavola_client::{
    TableClient, TableClientOptions, TableServiceClient, TransportOptions, new_transport,
};

/// Names the account that the tests run against, instead of a server of their own.
const CONNECTION: &str = "TAVOLA_CLIENT_TEST_CONNECTION";
const LISTENING: &str = " service is successfully listening at ";

/// What another server is known to do wrong; tests ask before they show it. These are Azurite's, as of 3.37.0: everything
/// else here passes against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// It does not enforce the key range of a signature (Azurite issue 726).
    SasRanges,
    /// It refuses a stored policy without a start, with an empty 400; the service takes it.
    PolicyStart,
    /// It refuses a CORS rule with an empty list of headers, with an empty 400; the service takes it.
    EmptyCorsList,
    /// It answers `AuthorizationFailure` to a signature whose policy is gone; the service `AuthenticationFailed`.
    RevokedPolicyCode,
    /// It gives a double without a fraction back as `Edm.Int32`.
    WholeDoubles,
    /// It finds no infinite double above the largest finite one.
    InfiniteDoubles,
    /// It answers 400 `PopReceiptMismatch` to a receipt that is not the latest; the service 404 `MessageNotFound`.
    StaleReceiptCode,
    /// Its pages of queues skip or repeat those that were not made in the order of their names.
    QueuePages,
    /// It has no statistics of a copy of its queues.
    QueueStats,
}

/// The account under test.
pub(crate) struct Account {
    connection_string: String,
    is_foreign: bool,
    // In this order: the process ends before its folder goes.
    _server: Option<Process>,
    _folder: Option<tempfile::TempDir>,
}

/// A process that ends with its owner.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Options of a client that trusts these certificates and does not try again.
pub(crate) fn options_trusting(root_certificates: Vec<Vec<u8>>) -> TableClientOptions {
    let transport = TransportOptions { root_certificates, ..Default::default() };
    TableClientOptions {
        client_options: ClientOptions {
            transport: Some(Transport::new(new_transport(Some(transport)).unwrap())),
            retry: RetryOptions::none(),
            ..Default::default()
        },
        ..Default::default()
    }
}

/// The account of all tests; its server ends with the last of them.
pub(crate) fn account() -> Arc<Account> {
    static SHARED: Mutex<Weak<Account>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(account) = shared.upgrade() {
        return account;
    }
    let account = Arc::new(Account::start());
    *shared = Arc::downgrade(&account);
    account
}

impl Account {
    fn start() -> Self {
        if let Ok(connection_string) = std::env::var(CONNECTION) {
            return Self { connection_string, is_foreign: true, _server: None, _folder: None };
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments = ["--inMemoryPersistence", "--queuePort", "0"];
        let (process, [tables, queues]) =
            start_services(folder.path(), &arguments, ["Table", "Queue"]);
        let account = tavola_client::DEVELOPMENT_ACCOUNT;
        let key = tavola_client::DEVELOPMENT_KEY;
        Self {
            connection_string: format!(
                "AccountName={account};AccountKey={key};TableEndpoint={tables}/{account};\
                 QueueEndpoint={queues}/{account}"
            ),
            is_foreign: false,
            _server: Some(process),
            _folder: Some(folder),
        }
    }

    pub(crate) fn connection_string(&self) -> &str {
        &self.connection_string
    }

    /// Tells whether the server has this defect, and says so where the test would show it.
    pub(crate) fn has(&self, defect: Defect) -> bool {
        // Tavola has none of them. What runs elsewhere is told by the variable alone, so that nothing is skipped by
        // guess: `TAVOLA_CLIENT_TEST_DEFECTS=SasRanges,PolicyStart`, or `Azurite` for all.
        let listed = std::env::var("TAVOLA_CLIENT_TEST_DEFECTS").unwrap_or_default();
        let name = format!("{defect:?}");
        self.is_foreign && listed.split(',').any(|item| item == name || item == "Azurite")
    }

    /// True for a server that answers `x-tavola-explain`.
    pub(crate) fn is_tavola(&self) -> bool {
        !self.is_foreign
    }

    /// True for a server on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.connection_string.contains("//127.0.0.1")
            || self.connection_string.contains("UseDevelopmentStorage")
    }

    pub(crate) fn service(&self) -> TableServiceClient {
        TableServiceClient::from_connection_string(&self.connection_string, None)
            .expect("a connection string")
    }

    pub(crate) fn queues(&self) -> QueueServiceClient {
        QueueServiceClient::from_connection_string(&self.connection_string, None)
            .expect("a connection string")
    }
}

/// Starts a server in a folder, on a port of its own; gives the address of its tables.
pub(crate) fn start_server(folder: &Path, arguments: &[&str]) -> (Process, String) {
    let (process, [url]) = start_services(folder, arguments, ["Table"]);
    (process, url)
}

/// As [`start_server`], with the addresses of these services.
fn start_services<const N: usize>(
    folder: &Path,
    arguments: &[&str],
    services: [&str; N],
) -> (Process, [String; N]) {
    use std::io::{BufRead, BufReader};
    let mut command = Command::new(env!("CARGO_BIN_EXE_tavola"));
    for (name, _) in std::env::vars() {
        if name.starts_with("TAVOLA_") || name.starts_with("AZURITE_") {
            command.env_remove(name);
        }
    }
    let log = std::fs::File::create(folder.join("stderr.log")).expect("a log file");
    let child = command
        .current_dir(folder)
        .args(["--port", "0"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn();
    let mut process = Process(child.expect("the server starts"));
    let mut stdout = BufReader::new(process.0.stdout.take().expect("a pipe"));
    let (mut line, mut urls) = (String::new(), services.map(|_| None));
    loop {
        line.clear();
        let read = stdout.read_line(&mut line).expect("the output can be read");
        assert!(read > 0, "the server ended before it listened");
        if let Some((service, url)) = line.trim_end().split_once(LISTENING)
            && let Some(at) = services.iter().position(|wanted| service.ends_with(wanted))
        {
            urls[at] = Some(url.to_owned());
        }
        if urls.iter().all(Option::is_some) {
            return (process, urls.map(Option::unwrap_or_default));
        }
    }
}

/// A table of its own for a test, deleted at the end.
pub(crate) struct TestTable {
    pub account: Arc<Account>,
    pub table: TableClient,
}

impl TestTable {
    pub(crate) async fn create() -> Self {
        let account = account();
        let table = account.service().table_client(fresh_name()).expect("a legal name");
        table.create(None).await.expect("the table is made");
        Self { account, table }
    }

    pub(crate) async fn delete(self) {
        self.table.delete(None).await.expect("the table is deleted");
    }
}

impl std::ops::Deref for TestTable {
    type Target = TableClient;

    fn deref(&self) -> &TableClient {
        &self.table
    }
}

/// A queue of its own for a test, deleted at the end.
pub(crate) struct TestQueue {
    pub account: Arc<Account>,
    pub queue: QueueClient,
}

impl TestQueue {
    pub(crate) async fn create() -> Self {
        let account = account();
        let queue = account.queues().queue_client(fresh_name()).expect("a legal name");
        queue.create(None).await.expect("the queue is made");
        Self { account, queue }
    }

    pub(crate) async fn delete(self) {
        self.queue.delete(None).await.expect("the queue is deleted");
    }
}

impl std::ops::Deref for TestQueue {
    type Target = QueueClient;

    fn deref(&self) -> &QueueClient {
        &self.queue
    }
}

/// What a worker did: done, tried again, buried, lost.
pub(crate) type Counts = (usize, usize, usize, usize);

pub(crate) fn counts(report: WorkerReport) -> Counts {
    (report.done, report.retried, report.dead_lettered, report.lost)
}

/// A name that nobody else has, for tables and queues.
pub(crate) fn fresh_name() -> String {
    format!("t{}", Uuid::new_v4().simple())
}
