//! What an operator looks at: metrics, logs, files that the server writes.

use std::fmt::Debug;
use std::io::BufReader;
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::support::{Response, Server, http};

/// Nothing is asserted about time: this is when a test gives up.
const GIVE_UP: Duration = Duration::from_secs(60);

pub(crate) fn plain_get(address: SocketAddr, path: &str) -> Response {
    let mut stream = BufReader::new(TcpStream::connect(address).expect("a connection"));
    let headers = [("Host".to_owned(), address.to_string())];
    http::write(stream.get_mut(), "GET", path, &headers, b"").expect("a request");
    http::read(&mut stream).expect("an answer")
}

/// The figures of a server with an admin port.
pub(crate) fn metrics(server: &Server) -> String {
    let admin = server.admin_address().expect("an admin port");
    plain_get(admin, "/metrics").expect(200).text().to_owned()
}

/// One of those figures.
#[track_caller]
pub(crate) fn figure<T: FromStr<Err: Debug>>(metrics: &str, name: &str) -> T {
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} in\n{metrics}")).parse().expect("a number")
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(start.elapsed() < GIVE_UP, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The log, as soon as it says this.
#[track_caller]
pub(crate) fn wait_for_log(server: &Server, text: &str) -> String {
    wait_until(&format!("{text} in the log"), || {
        Some(server.log()).filter(|log| log.contains(text))
    })
}

/// A file of the server's folder, as soon as it says this.
#[track_caller]
pub(crate) fn wait_for_file(server: &Server, name: &str, text: &str) -> String {
    let read = || std::fs::read_to_string(server.folder().join(name)).ok();
    wait_until(&format!("{text} in {name}"), || read().filter(|read| read.contains(text)))
}
