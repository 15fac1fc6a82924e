//! A client that signs with the shared key and sends, with buffers that live as long as it does.

use std::fmt;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tavola_wire::auth::AccountKey;

use crate::clock;
use crate::entity::{Keys, Place};
use crate::http::Connection;
use crate::target::Target;

pub const NO_METADATA: &str = "application/json;odata=nometadata";
pub const MINIMAL_METADATA: &str = "application/json;odata=minimalmetadata";
pub const JSON: &str = "application/json";

/// Longer than the slowest answer that still tells something.
const TIMEOUT: Duration = Duration::from_secs(120);

/// One connection to one target, and the request that is being made for it.
pub struct Client {
    pub connection: Connection,
    pub keys: Keys,
    host: String,
    account: String,
    key: AccountKey,
    date: Date,
    /// The path as it stands on the request line, without the query.
    pub path: String,
    /// Encoded, without the question mark.
    pub query: String,
    pub body: Vec<u8>,
    request: Vec<u8>,
    to_sign: String,
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
            key: target.key.clone(),
            date: Date::default(),
            path: String::new(),
            query: String::new(),
            body: Vec::new(),
            request: Vec::new(),
            to_sign: String::new(),
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

    /// Signs and sends what was started; gives the status. `headers` are lines with their ends.
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
        let date = self.date.text();
        self.to_sign.clear();
        let parts = [verb, "\n\n", content_type, "\n", date, "\n/", &self.account, &self.path];
        self.to_sign.extend(parts);
        let signature = self.key.sign(&self.to_sign).to_base64();

        let request = &mut self.request;
        request.clear();
        let mut push = |parts: &[&str]| {
            for part in parts {
                request.extend_from_slice(part.as_bytes());
            }
        };
        push(&[verb, " ", &self.path]);
        if !self.query.is_empty() {
            push(&["?", &self.query]);
        }
        push(&[
            " HTTP/1.1\r\nHost: ",
            &self.host,
            "\r\nx-ms-version: 2019-02-02\r\nx-ms-date: ",
            date,
        ]);
        push(&["\r\nAuthorization: SharedKey ", &self.account, ":", &signature]);
        push(&["\r\nDataServiceVersion: 3.0;NetFx\r\nMaxDataServiceVersion: 3.0;NetFx"]);
        push(&["\r\nUser-Agent: tavola-bench\r\nAccept: ", accept, "\r\n", headers]);
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

/// The date of requests, written anew once a second.
#[derive(Default)]
struct Date {
    second: u64,
    text: String,
}

impl Date {
    fn text(&mut self) -> &str {
        let second = clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if second != self.second {
            let moment: SystemTime = UNIX_EPOCH + Duration::from_secs(second);
            self.second = second;
            self.text.clear();
            write!(self.text, "{}", httpdate::HttpDate::from(moment))
                .expect("a text takes every write");
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::auth::shared_key::{Authorization, Scheme, SignedRequest};

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
        let first = "PUT /acct/t(PartitionKey='p00003',RowKey='r0000000103')?$filter=Bucket%20eq%207 HTTP/1.1\r\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.ends_with("Content-Length: 2\r\n\r\n{}"), "{text}");
        let header = |name: &str| text.split_once(name).unwrap().1.split_once("\r\n").unwrap().0;
        let Authorization::SharedKey { scheme, account, signature } =
            Authorization::parse(header("Authorization: ")).unwrap()
        else {
            panic!("{text}")
        };
        let signed = SignedRequest {
            verb: "PUT",
            content_md5: "",
            content_type: header("Content-Type: "),
            date: header("x-ms-date: "),
            account,
            raw_path: "/acct/t(PartitionKey='p00003',RowKey='r0000000103')",
            comp: None,
        };
        assert_eq!((scheme, account), (Scheme::SharedKey, "acct"));
        signed.verify(scheme, &signature, std::slice::from_ref(&client.key)).unwrap();
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
        assert!(
            text.starts_with("GET /acct/Tables HTTP/1.1\r\n") && text.ends_with("\r\n\r\n"),
            "{text}"
        );
        assert!(!text.contains("Content-Length"), "{text}");
    }

    #[test]
    fn codes_are_found_in_every_form() {
        let json = br#"{"odata.error":{"code":"EntityNotFound","message":{}}}"#;
        assert_eq!(error_code(json), "EntityNotFound");
        assert_eq!(error_code(b"<error><code>ServerBusy</code></error>"), "ServerBusy");
        assert_eq!(error_code(b"gateway"), "");
    }
}
