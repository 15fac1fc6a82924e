//! A client that sends signed requests, with buffers that live as long as it does.
//!
//! They carry a shared access signature, made once: signing each with the account's key would cost the driver, which shares
//! the cores, a good part of what a server needs for the answer.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use tavola_wire::Ticks;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes, Services};
use tavola_wire::service::Service;

use crate::clock;
use crate::entity::{Keys, Place};
use crate::http::Connection;
use crate::target::Target;

pub const NO_METADATA: &str = "application/json;odata=nometadata";
pub const MINIMAL_METADATA: &str = "application/json;odata=minimalmetadata";
pub const JSON: &str = "application/json";
pub const XML: &str = "application/xml";

/// Headers of every request, by service.
const TABLE_HEADERS: &str = "x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0;NetFx\r\nMaxDataServiceVersion: 3.0;NetFx\r\n";
const QUEUE_HEADERS: &str = "x-ms-version: 2021-12-02\r\n";

/// Longer than the slowest answer that still tells something.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Longer than any measurement, and any soak.
const SIGNATURE_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// One connection to one target, and the request that is being made for it.
pub struct Client {
    pub connection: Connection,
    pub keys: Keys,
    host: String,
    account: String,
    /// The shared access signature, as it stands in the query.
    signature: String,
    service_headers: &'static str,
    /// The path as it stands on the request line, without the query.
    pub path: String,
    /// Encoded, without the question mark.
    pub query: String,
    pub body: Vec<u8>,
    request: Vec<u8>,
}

/// Why an operation did not do what was expected.
#[derive(Debug)]
pub enum Failure {
    /// No answer: the connection broke, or nothing came in time.
    Lost(String),
    /// Another status than expected, with the service's code.
    Refused { status: u16, code: String },
    /// The expected status, but not what was asked for.
    Wrong(String),
}

impl Client {
    pub fn new(target: &Target, keys: Keys) -> Self {
        Self {
            connection: Connection::new(target.address),
            keys,
            host: target.host.clone(),
            account: target.account.clone(),
            signature: sign(target),
            service_headers: match target.service {
                Service::Queue => QUEUE_HEADERS,
                Service::Table | Service::Blob => TABLE_HEADERS,
            },
            path: String::new(),
            query: String::new(),
            body: Vec::new(),
            request: Vec::new(),
        }
    }

    /// Starts a request of this path below the service root.
    pub fn start(&mut self, resource: &str) {
        self.query.clear();
        self.body.clear();
        self.path.clear();
        self.path.extend(["/", &self.account, "/", resource]);
    }

    /// Starts a request of one entity.
    pub fn start_entity(&mut self, table: &str, place: Place) {
        self.start(table);
        let mut path = std::mem::take(&mut self.path).into_bytes();
        path.extend_from_slice(b"(PartitionKey='");
        self.keys.push_partition_key(&mut path, place);
        path.extend_from_slice(b"',RowKey='");
        self.keys.push_row_key(&mut path, place);
        path.extend_from_slice(b"')");
        self.path = String::from_utf8(path).expect("keys are text");
    }

    /// Adds an option to the query; of the characters that need encoding, only blanks are expected.
    pub fn option(&mut self, name: &str, value: &str) {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.extend([name, "="]);
        for piece in value.split_inclusive(' ') {
            match piece.strip_suffix(' ') {
                Some(word) => self.query.extend([word, "%20"]),
                None => self.query.push_str(piece),
            }
        }
    }

    /// The service root, as a URL inside a batch names it.
    pub fn push_base(&mut self) {
        for part in ["http://", &self.host, "/", &self.account] {
            self.body.extend_from_slice(part.as_bytes());
        }
    }

    /// Sends what was started; gives the status. `headers` are lines with their ends.
    ///
    /// # Errors
    /// [`Failure::Lost`] when there is no answer.
    pub async fn send(
        &mut self,
        verb: &str,
        accept: &str,
        content_type: &str,
        headers: &str,
    ) -> Result<u16, Failure> {
        self.write(verb, accept, content_type, headers);
        match tokio::time::timeout(TIMEOUT, self.connection.exchange(&self.request)).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(error)) => Err(Failure::Lost(error.to_string())),
            Err(_) => Err(Failure::Lost("no answer in time".to_owned())),
        }
    }

    /// Sends, and expects this status.
    pub async fn expect(
        &mut self,
        status: u16,
        verb: &str,
        accept: &str,
        content_type: &str,
        headers: &str,
    ) -> Result<(), Failure> {
        let found = self.send(verb, accept, content_type, headers).await?;
        if found == status { Ok(()) } else { Err(self.refused(found)) }
    }

    /// The failure that the last answer means.
    pub fn refused(&self, status: u16) -> Failure {
        Failure::Refused { status, code: error_code(self.connection.body()).to_owned() }
    }

    fn write(&mut self, verb: &str, accept: &str, content_type: &str, headers: &str) {
        let request = &mut self.request;
        request.clear();
        let mut push = |parts: &[&str]| {
            for part in parts {
                request.extend_from_slice(part.as_bytes());
            }
        };
        push(&[verb, " ", &self.path, "?"]);
        if !self.query.is_empty() {
            push(&[&self.query, "&"]);
        }
        push(&[&self.signature, " HTTP/1.1\r\nHost: ", &self.host, "\r\n", self.service_headers]);
        push(&["User-Agent: tavola-bench\r\nAccept: ", accept, "\r\n", headers]);
        if !content_type.is_empty() {
            let mut length = itoa::Buffer::new();
            push(&[
                "Content-Type: ",
                content_type,
                "\r\nContent-Length: ",
                length.format(self.body.len()),
                "\r\n",
            ]);
        }
        push(&["\r\n"]);
        self.request.extend_from_slice(&self.body);
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(reason) => write!(f, "no answer: {reason}"),
            Self::Refused { status, code } => write!(f, "{status} {code}"),
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Failure {}

/// The service's code in an error document of JSON or XML; empty when there is none.
fn error_code(body: &[u8]) -> &str {
    let text = std::str::from_utf8(body).unwrap_or_default();
    [("\"code\":\"", '"'), ("<code>", '<'), ("<m:code>", '<'), ("<Code>", '<')]
        .into_iter()
        .find_map(|(before, after)| Some(text.split_once(before)?.1.split_once(after)?.0))
        .unwrap_or_default()
}

/// A signature for everything that is measured.
fn sign(target: &Target) -> String {
    let now = clock::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let expiry = i128::try_from((now + SIGNATURE_LIFE).as_nanos()).unwrap_or(i128::MAX);
    let expiry = Ticks::from_unix_nanos(expiry);
    let permissions = match target.service {
        Service::Queue => Permissions::ACCOUNT_ALL | Permissions::PROCESS,
        Service::Table | Service::Blob => Permissions::ACCOUNT_ALL,
    };
    let spec = AccountSasSpec::new(permissions, ResourceTypes::ALL, expiry);
    AccountSasSpec { services: Services::of(target.service), ..spec }
        .sign(&target.account, &target.key)
}

#[cfg(test)]
mod tests {
    use tavola_wire::auth::sas::{Addressed, SasToken};
    use tavola_wire::uri::QueryString;

    use super::*;

    fn client() -> Client {
        Client::new(&"x=http://127.0.0.1:1/acct".parse().unwrap(), Keys::default())
    }

    #[test]
    fn requests_are_signed_as_the_service_checks() {
        let mut client = client();
        client.start_entity("t", Place { partition: 3, row: 2 });
        client.option("$filter", "Bucket eq 7");
        client.body.extend_from_slice(b"{}");
        client.write("PUT", NO_METADATA, JSON, "If-Match: *\r\n");
        let text = String::from_utf8(client.request.clone()).unwrap();
        let first =
            "PUT /acct/t(PartitionKey='p00003',RowKey='r0000000103')?$filter=Bucket%20eq%207&";
        assert!(text.starts_with(first), "{text}");
        assert!(text.ends_with("Content-Length: 2\r\n\r\n{}"), "{text}");
        let query = text.split_once('?').unwrap().1.split_once(" HTTP/1.1\r\n").unwrap().0;
        let query = QueryString::parse(query).unwrap();
        let pairs = query.iter().map(|(name, value)| (name, value.to_owned().into()));
        let token = SasToken::parse(Addressed::Table, pairs).unwrap().unwrap();
        let target: Target = "x=http://127.0.0.1:1/acct".parse().unwrap();
        token.verify("acct", &[target.key]).unwrap();
    }

    #[test]
    fn requests_of_queues_are_signed_for_queues() {
        let target = "x=http://127.0.0.1:1/acct".parse::<Target>().unwrap().for_queues();
        let mut client = Client::new(&target, Keys::default());
        client.start("q/messages");
        client.write("GET", XML, "", "");
        let text = String::from_utf8(client.request.clone()).unwrap();
        assert!(text.contains("x-ms-version: 2021") && !text.contains("DataService"), "{text}");
        let query = text.split_once('?').unwrap().1.split_once(" HTTP/1.1\r\n").unwrap().0;
        let query = QueryString::parse(query).unwrap();
        let pairs = query.iter().map(|(name, value)| (name, value.to_owned().into()));
        let token = SasToken::parse(Addressed::Queue("q".into()), pairs).unwrap().unwrap();
        token.verify("acct", &[target.key]).unwrap();
    }

    #[test]
    fn a_request_leaves_nothing_to_the_next() {
        let mut client = client();
        client.start("t()");
        client.option("$top", "1");
        client.body.push(b'x');
        client.start("Tables");
        client.write("GET", NO_METADATA, "", "");
        let text = String::from_utf8(client.request.clone()).unwrap();
        assert!(text.starts_with("GET /acct/Tables?s") && text.ends_with("\r\n\r\n"), "{text}");
        assert!(!text.contains("Content-Length") && !text.contains("$top"), "{text}");
    }

    #[test]
    fn codes_are_found_in_every_form() {
        let json = br#"{"odata.error":{"code":"EntityNotFound","message":{}}}"#;
        assert_eq!(error_code(json), "EntityNotFound");
        assert_eq!(error_code(b"<error><code>ServerBusy</code></error>"), "ServerBusy");
        assert_eq!(error_code(b"gateway"), "");
    }
}
