//! A server for the tests of Rust programs: in the same process, in memory, on free ports, gone with its value.
//!
//! It is the whole service, the same code as the binary runs, without a data folder, TLS or an admin port.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tavola_wire::Service;

use crate::config::{
    AccountConfig, AccountKey, Config, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, KEEP_ALIVE, Limits,
    ServiceConfig, Storage,
};
use crate::services::SERVICES;
use crate::start::{RunningServer, StartError, start};

/// Queries of tests are never slow.
const SLOW_QUERY: Duration = Duration::MAX;

/// A server that lives as long as this value, in the runtime that it was started in.
///
/// Each is empty and knows nothing of others, so that tests need not share one: it starts within milliseconds.
///
/// ```
/// # #[tokio::main]
/// # async fn main() {
/// use tavola_server::TestServer;
///
/// let server = TestServer::start().await;
/// // For the client of your program, in Rust `tavola_client::TableServiceClient::from_connection_string`.
/// let connection_string = server.connection_string();
/// assert!(connection_string.contains("TableEndpoint=http://127.0.0.1:"));
/// # tokio::net::TcpStream::connect(server.address(tavola_server::config::Service::Table)).await.unwrap();
/// server.stop().await;
/// # }
/// ```
///
/// In a test of a program that uses `tavola_client`:
///
/// ```text
/// #[tokio::test]
/// async fn employees_are_found() {
///     let server = TestServer::start().await;
///     let service = TableServiceClient::from_connection_string(&server.connection_string(), None).unwrap();
///     let employees = service.table_client("Employees").unwrap();
///     employees.create(None).await.unwrap();
///     ...
/// }
/// ```
///
/// Programs in other languages start the binary with `--inMemoryPersistence` and port 0 instead.
#[derive(Debug)]
pub struct TestServer {
    server: RunningServer,
}

impl TestServer {
    /// The account that it serves: the one that every client knows for development.
    pub const ACCOUNT: &'static str = DEVELOPMENT_ACCOUNT;
    /// The key of that account, in base64.
    pub const KEY: &'static str = DEVELOPMENT_KEY;

    /// Starts a server on loopback, with every service on a free port.
    ///
    /// # Panics
    /// If loopback has no port left. [`TestServer::try_start`] tells it instead.
    pub async fn start() -> Self {
        Self::try_start().await.expect("loopback has a free port")
    }

    /// Starts a server on loopback, with every service on a free port.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn try_start() -> Result<Self, StartError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let services = SERVICES.map(|service| ServiceConfig {
            service,
            address,
            keep_alive: KEEP_ALIVE,
            is_optional: false,
        });
        let key = AccountKey::from_base64(DEVELOPMENT_KEY).expect("a valid key");
        let config = Config {
            services: services.into(),
            admin: None,
            storage: Storage::Memory,
            accounts: vec![AccountConfig { name: Self::ACCOUNT.to_owned(), keys: vec![key] }],
            tls: None,
            bearer: None,
            loose: false,
            path_style_only: false,
            limits: Limits::default(),
            slow_query: SLOW_QUERY,
            access_log: None,
        };
        Ok(Self { server: start(config).await? })
    }

    /// Where a service listens.
    ///
    /// # Panics
    /// If the server has no such service: it has those of [`SERVICES`](crate::SERVICES).
    pub fn address(&self, service: Service) -> SocketAddr {
        let mut addresses = self.server.service_addresses().iter();
        let found = addresses.find(|(served, _)| *served == service);
        found.unwrap_or_else(|| panic!("there is no {} service", service.name())).1
    }

    /// The address of a service as clients want it: `http://127.0.0.1:port/account`.
    pub fn endpoint(&self, service: Service) -> String {
        format!("http://{}/{}", self.address(service), Self::ACCOUNT)
    }

    /// What the client of any language takes: account, key, and the endpoint of every service.
    pub fn connection_string(&self) -> String {
        let mut text = format!(
            "DefaultEndpointsProtocol=http;AccountName={};AccountKey={};",
            Self::ACCOUNT,
            Self::KEY
        );
        for service in SERVICES {
            text += &format!("{}Endpoint={};", service.title(), self.endpoint(service));
        }
        text
    }

    /// Stops it in order, and waits for the end. Dropping it stops it as well, without waiting.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn status(address: SocketAddr) -> Option<String> {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request =
            "GET /devstoreaccount1/Tables HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer.lines().next()?.to_owned())
    }

    #[tokio::test]
    async fn several_are_served_at_once_and_end_with_their_values() {
        let (one, other) = (TestServer::start().await, TestServer::start().await);
        let (first, second) = (one.address(Service::Table), other.address(Service::Table));
        assert_ne!(first, second);
        for address in [first, second] {
            assert!(status(address).await.is_some_and(|line| line.contains("401")));
        }
        one.stop().await;
        assert_eq!(status(first).await, None);
        drop(other);
        while status(second).await.is_some() {
            tokio::task::yield_now().await;
        }
    }
}
