//! The binary under test as a process: started on a free port, stopped in every way there is.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tempfile::TempDir;

use super::http;

/// The variable that names another binary to test than the one just built.
const BINARY: &str = "TAVOLA_BIN";

/// The variable that has a server run every change more than once. A test run that has it set passes it on.
pub(crate) const RERUN: &str = "TAVOLA_TEST_RERUN";

/// The phrase that test tools wait for.
pub(crate) const LISTENING: &str = "Table service is successfully listening at ";

/// How to start a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launch {
    /// A command that gets the binary and its arguments as its last arguments.
    wrapper: Vec<String>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Launch {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// Starts it through another command.
    pub(crate) fn wrap<'a>(mut self, wrapper: impl IntoIterator<Item = &'a str>) -> Self {
        self.wrapper = wrapper.into_iter().map(str::to_owned).collect();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Leaves it so many file descriptors.
    pub(crate) fn open_files_max(self, count: u32) -> Self {
        self.wrap(["sh", "-c", &format!("ulimit -n {count} && exec \"$@\""), "sh"])
    }

    /// Starts a server with a folder of its own.
    pub(crate) fn start(self) -> Server {
        Server::start(self)
    }

    /// The command, run in `folder`, with nothing of this process's own settings.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let binary = std::env::var_os(BINARY).unwrap_or(env!("CARGO_BIN_EXE_tavola").into());
        let mut words = self.wrapper.iter().map(OsString::from).chain([binary]);
        let mut command = Command::new(words.next().expect("the binary"));
        command.args(words);
        for (name, _) in std::env::vars() {
            let is_setting = name.starts_with("TAVOLA_") || name.starts_with("AZURITE_");
            if is_setting && name != RERUN {
                command.env_remove(name);
            }
        }
        command.current_dir(folder).args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A running server. Dropping it kills it.
pub(crate) struct Server {
    launch: Launch,
    folder: TempDir,
    process: Mutex<Process>,
}

struct Process {
    child: Child,
    address: SocketAddr,
    lines: Vec<String>,
    /// Kept open, so that the server can always write to it.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(launch: Launch) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::start_in(launch, folder)
    }

    pub(crate) fn start_in(launch: Launch, folder: TempDir) -> Self {
        let process = Mutex::new(Process::start(&launch, folder.path()));
        Self { launch, folder, process }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process().address
    }

    /// Where its queue service is.
    pub(crate) fn queue_address(&self) -> SocketAddr {
        let lines = self.lines();
        let line = lines.iter().find_map(|line| line.split_once("Queue service is successfully"));
        let (_, url) = line.and_then(|(_, rest)| rest.split_once("://")).expect("a line of queues");
        url.parse().expect("an address")
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process().child.id()
    }

    /// What it printed until it was listening.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.process().lines.clone()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process().child.id()
    }

    /// Where its admin port is, if it has one.
    pub(crate) fn admin_address(&self) -> Option<SocketAddr> {
        let lines = self.lines();
        let line = lines.iter().find(|line| line.contains("/metrics"))?;
        http::between(line, "http://", "/").expect("an address").parse().ok()
    }

    /// Its working folder, which the data folder is in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data_folder(&self) -> PathBuf {
        self.folder.path().join("tavola-data")
    }

    /// Everything it has logged to standard error.
    pub(crate) fn log(&self) -> String {
        read_log(self.folder.path())
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&self) {
        let mut process = self.process();
        process.child.kill().expect("the server can be killed");
        process.child.wait().expect("the server has ended");
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn ask_to_stop(&self) {
        signal("-TERM", self.process().child.id());
    }

    /// What Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        signal("-INT", self.process().child.id());
    }

    pub(crate) fn wait(&self) -> ExitStatus {
        self.process().child.wait().expect("the server has ended")
    }

    /// Starts it on what it left behind and kills it after a while, whether it listens by then or not.
    pub(crate) fn start_and_kill_after(&self, while_starting: Duration) {
        let mut process = self.process();
        assert!(process.child.try_wait().expect("a process").is_some(), "it is still running");
        let mut child = Process::spawn(&self.launch, self.folder.path());
        std::thread::sleep(while_starting);
        child.kill().expect("the server can be killed");
        let ended = child.wait().expect("the server has ended");
        assert_eq!(ended.code(), None, "it ended by itself\n{}", read_log(self.folder.path()));
        process.child = child;
    }

    /// Starts it again on what it left behind, on another port.
    pub(crate) fn start_again(&self) {
        let mut process = self.process();
        assert!(process.child.try_wait().expect("a process").is_some(), "it is still running");
        *process = Process::start(&self.launch, self.folder.path());
    }

    pub(crate) fn restart_cleanly(&self) {
        self.ask_to_stop();
        assert!(self.wait().success(), "{}", self.log());
        self.start_again();
    }

    pub(crate) fn crash_and_restart(&self) {
        self.kill();
        self.start_again();
    }

    fn process(&self) -> std::sync::MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut process = self.process();
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}

impl Process {
    fn spawn(launch: &Launch, folder: &Path) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(log_path(folder));
        launch
            .command(folder)
            .args(["--port", "0", "--queuePort", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.expect("a log file"))
            .spawn()
            .expect("the server starts")
    }

    fn start(launch: &Launch, folder: &Path) -> Self {
        let mut child = Self::spawn(launch, folder);
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = Vec::new();
        let address = loop {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).expect("the output can be read");
            if read == 0 {
                panic!("the server ended before it listened: {lines:?}\n{}", read_log(folder));
            }
            lines.push(line.trim_end().to_owned());
            if let Some((_, url)) = line.trim_end().split_once(LISTENING) {
                let (_, address) = url.split_once("://").expect("a URL");
                break address.parse().expect("an address");
            }
        };
        Self { child, address, lines, _stdout: stdout }
    }
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("stderr.log")
}

fn read_log(folder: &Path) -> String {
    std::fs::read_to_string(log_path(folder)).expect("the log can be read")
}

/// The standard library knows one signal only.
fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// The server of all tests that need no other. It ends with the last of them.
pub(crate) fn shared() -> Arc<Server> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Launch::new().start());
    *shared = Arc::downgrade(&server);
    server
}
