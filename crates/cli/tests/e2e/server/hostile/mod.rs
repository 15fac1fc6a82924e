//! Peers that mean harm, or are broken: the server answers or closes, its memory stays bounded, and others keep
//! their service meanwhile.
//!
//! Limits are set low, so that they are met quickly; nothing is asserted about how long anything takes.

#![expect(clippy::print_stdout, reason = "seeds and what was measured are told")]

mod bystander;
mod floods;
mod frames;
mod http1;
mod http2;
mod malformed;
mod memory;
mod mutations;
mod panics;
mod slow;

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes};

use super::admin::{figure, plain_get};
use crate::support::{ACCOUNT, Client, KEY, Launch, Response, Server, http, minutes_from_now};
use bystander::Bystander;
use memory::Memory;

/// Longer than any limit of these tests; a test that waits so long has failed.
const GIVE_UP: Duration = Duration::from_secs(30);
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// A server under attack, with a client that has a table there.
struct Target {
    server: Arc<Server>,
    client: Client,
    table: String,
    /// For clients that cannot sign.
    token: String,
}

impl Target {
    fn start(arguments: &[&str]) -> Self {
        Self::launch(Launch::new().args(arguments.iter().copied()))
    }

    fn launch(launch: Launch) -> Self {
        let server = Arc::new(launch.arg("--admin-port").arg("0").start());
        let client = Client::new(&server);
        let table = client.new_table();
        let key = AccountKey::from_base64(KEY).unwrap();
        let (all, types) = (Permissions::ACCOUNT_ALL, ResourceTypes::ALL);
        let token = AccountSasSpec::new(all, types, minutes_from_now(60)).sign(ACCOUNT, &key);
        Self { server, client, table, token }
    }

    /// Fills the table so that a page of it has 4 MiB.
    fn with_a_large_page(self) -> Self {
        let text = "a".repeat(32 * KIB);
        for row in 0..9 {
            let mut entity: Map<String, Value> =
                (0..15).map(|n| (format!("P{n}"), json!(text))).collect();
            entity.insert("PartitionKey".to_owned(), json!("p"));
            entity.insert("RowKey".to_owned(), json!(row.to_string()));
            self.client.insert(&self.table, &Value::Object(entity)).expect(204);
        }
        self
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).expect("a connection");
        stream.set_read_timeout(Some(GIVE_UP)).unwrap();
        stream.set_write_timeout(Some(GIVE_UP)).unwrap();
        stream
    }

    /// A connection whose kernel takes little before this side reads.
    fn connect_narrowly(&self) -> TcpStream {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let connected = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(4 * 1024)?;
            socket.connect(self.server.address()).await?.into_std()
        });
        let stream = connected.expect("a connection");
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(GIVE_UP)).unwrap();
        stream.set_write_timeout(Some(GIVE_UP)).unwrap();
        stream
    }

    /// A path below the account's root with a token that allows everything.
    fn path(&self, path: &str) -> String {
        let separator = if path.contains('?') { '&' } else { '?' };
        format!("/{ACCOUNT}/{path}{separator}{}", self.token)
    }

    /// Request line and headers, without the empty line.
    fn head(&self, method: &str, path: &str) -> String {
        let accept = "Accept: application/json;odata=nometadata";
        let host = self.server.address();
        format!("{method} {} HTTP/1.1\r\nHost: {host}\r\n{accept}\r\n", self.path(path))
    }

    fn get_page(&self) -> String {
        format!("{}\r\n", self.head("GET", &format!("{}()", self.table)))
    }

    /// The head of an insert whose body has this framing.
    fn insert_head(&self, framing: &str) -> String {
        let head = self.head("POST", &self.table);
        format!("{head}Content-Type: application/json\r\n{framing}\r\n\r\n")
    }

    fn bystander(&self) -> Bystander {
        Bystander::start(&self.server)
    }

    fn memory(&self) -> Memory {
        Memory::of(&self.server)
    }

    fn admin_address(&self) -> SocketAddr {
        let lines = self.server.lines();
        let line = lines.iter().find(|line| line.contains("/metrics")).expect("a line");
        http::between(line, "http://", "/").expect("an address").parse().expect("an address")
    }

    /// A figure of the admin port.
    fn metric(&self, name: &str) -> u64 {
        figure(plain_get(self.admin_address(), "/metrics").expect(200).text(), name)
    }

    /// Waits until a figure has come to lie within these.
    fn wait_until(&self, name: &str, wanted: impl RangeBounds<u64>) {
        let mut waited = Duration::ZERO;
        while !wanted.contains(&self.metric(name)) {
            assert!(waited < GIVE_UP, "{name} stays at {}", self.metric(name));
            std::thread::sleep(Duration::from_millis(20));
            waited += Duration::from_millis(20);
        }
    }

    /// Nothing is held any more, and the log knows of no mistake of ours.
    fn assert_unharmed(&self) {
        self.wait_until("tavola_message_memory_bytes", ..=0);
        assert_eq!(self.metric("tavola_panics_total"), 0);
        self.client.get("/Tables").send().expect(200);
        let log = self.server.log();
        assert!(!log.contains("panic") && !log.contains("ERROR"), "{log}");
    }
}

/// Sends this on a connection of its own and reads one answer.
fn answer_to(target: &Target, request: impl AsRef<[u8]>) -> Response {
    let mut stream = BufReader::new(target.connect());
    // A server that refuses early may close before it has taken everything.
    let _ = stream.get_mut().write_all(request.as_ref());
    http::read(&mut stream).expect("an answer")
}

/// Reads until the server closes; what it sent before, however it closed.
#[track_caller]
fn read_until_closed(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    if let Err(error) = stream.read_to_end(&mut all) {
        assert!(!is_timeout(&error), "the connection stays open after {} bytes", all.len());
    }
    all
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// Writes the pieces until the server closes; how many bytes went.
#[track_caller]
fn write_until_closed<'a>(
    stream: &mut impl Write,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> usize {
    let mut sent = 0;
    for piece in pieces {
        match stream.write_all(piece) {
            Ok(()) => sent += piece.len(),
            Err(error) => {
                assert!(!is_timeout(&error), "the connection stays open after {sent} bytes");
                break;
            }
        }
    }
    sent
}
