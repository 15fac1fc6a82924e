//! A client of the queue service that signs, and otherwise does what it is told.

use std::cell::RefCell;
use std::io::BufReader;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::{LongSignedRequest, Scheme};

use crate::support::http::{self, Response, between};
use crate::support::{ACCOUNT, Credentials, KEY, Server, encode, now, shared};

pub(super) const VERSION: &str = "2025-01-05";

/// A client of the development account, with one connection.
pub(super) struct QueueClient {
    server: Arc<Server>,
    /// The first path segment; differs from the account for the secondary.
    pub(super) root: String,
    pub(super) credentials: Credentials,
    connection: RefCell<Option<BufReader<TcpStream>>>,
}

pub(super) fn key() -> AccountKey {
    AccountKey::from_base64(KEY).expect("a key")
}

/// A client of the server that tests share.
pub(super) fn shared_client() -> QueueClient {
    QueueClient::new(&shared())
}

impl QueueClient {
    pub(super) fn new(server: &Arc<Server>) -> Self {
        let credentials = Credentials::Key(Scheme::SharedKey, key());
        let (server, root) = (server.clone(), ACCOUNT.to_owned());
        Self { server, root, credentials, connection: RefCell::default() }
    }

    pub(super) fn with(&self, credentials: Credentials) -> Self {
        Self { credentials, root: self.root.clone(), ..Self::new(&self.server) }
    }

    pub(super) fn secondary(&self) -> Self {
        Self { root: format!("{ACCOUNT}-secondary"), ..Self::new(&self.server) }
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub(super) fn request(&self, method: &str, path: impl AsRef<str>) -> Request<'_> {
        Request {
            client: self,
            method: method.to_owned(),
            target: format!("/{}{}", self.root, path.as_ref()),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(super) fn get(&self, path: impl AsRef<str>) -> Response {
        self.request("GET", path).send()
    }

    pub(super) fn delete(&self, path: impl AsRef<str>) -> Response {
        self.request("DELETE", path).send()
    }

    /// Makes a queue that no other test has.
    pub(super) fn new_queue(&self) -> String {
        let name = unused_name();
        self.request("PUT", format!("/{name}")).send().expect(201);
        name
    }

    pub(super) fn put(&self, queue: &str, text: &str, parameters: &str) -> Response {
        self.request("POST", format!("/{queue}/messages{parameters}")).body(document(text)).send()
    }

    #[track_caller]
    pub(super) fn put_message(&self, queue: &str, text: &str, parameters: &str) -> Message {
        messages(&self.put(queue, text, parameters).expect(201)).remove(0)
    }

    #[track_caller]
    pub(super) fn get_messages(&self, queue: &str, parameters: &str) -> Vec<Message> {
        messages(&self.get(format!("/{queue}/messages{parameters}")).expect(200))
    }

    #[track_caller]
    pub(super) fn peek(&self, queue: &str, count: usize) -> Vec<Message> {
        self.get_messages(queue, &format!("?peekonly=true&numofmessages={count}"))
    }

    pub(super) fn remove(&self, queue: &str, id: &str, receipt: &str) -> Response {
        let receipt = encode(receipt);
        self.delete(format!("/{queue}/messages/{id}?popreceipt={receipt}"))
    }

    pub(super) fn update(
        &self,
        queue: &str,
        id: &str,
        receipt: &str,
        visibility: u32,
        text: Option<&str>,
    ) -> Response {
        let receipt = encode(receipt);
        let path =
            format!("/{queue}/messages/{id}?popreceipt={receipt}&visibilitytimeout={visibility}");
        let request = self.request("PUT", path);
        match text {
            Some(text) => request.body(document(text)).send(),
            None => request.send(),
        }
    }

    #[track_caller]
    pub(super) fn count(&self, queue: &str) -> u64 {
        let metadata = self.get(format!("/{queue}?comp=metadata")).expect(200);
        let count = metadata.header("x-ms-approximate-messages-count").expect("a count");
        count.parse().expect("a number")
    }
}

/// A request in the making.
pub(super) struct Request<'a> {
    client: &'a QueueClient,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request<'_> {
    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("Content-Type", "application/xml")
    }

    #[track_caller]
    pub(super) fn send(self) -> Response {
        let what = format!("{} {}", self.method, self.target);
        self.try_send().unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    pub(super) fn try_send(mut self) -> std::io::Result<Response> {
        self.sign();
        let mut slot = self.client.connection.borrow_mut();
        if slot.is_none() {
            let stream = TcpStream::connect(self.client.server.queue_address())?;
            stream.set_nodelay(true)?;
            *slot = Some(BufReader::new(stream));
        }
        let connection = slot.as_mut().expect("a connection");
        let sent = http::write(
            connection.get_mut(),
            &self.method,
            &self.target,
            &self.headers,
            &self.body,
        );
        let is_head = self.method == "HEAD";
        let read = if is_head { http::read_head(connection) } else { http::read(connection) };
        match (sent, read) {
            (_, Ok(response)) => {
                if response.header("connection") == Some("close") {
                    *slot = None;
                }
                Ok(response)
            }
            (Err(error), _) | (Ok(()), Err(error)) => {
                *slot = None;
                Err(error)
            }
        }
    }

    /// What [`Request::send`] would send.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.sign();
        let mut bytes = Vec::new();
        let written =
            http::write(&mut bytes, &self.method, &self.target, &self.headers, &self.body);
        written.expect("memory takes all");
        bytes
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    fn default(&mut self, name: &str, value: impl Into<String>) {
        if !self.has(name) {
            self.headers.push((name.to_owned(), value.into()));
        }
    }

    fn sign(&mut self) {
        self.default("Host", self.client.server.queue_address().to_string());
        self.default("x-ms-version", VERSION);
        let has_length = !self.body.is_empty() || matches!(self.method.as_str(), "PUT" | "POST");
        if has_length && !self.has("Transfer-Encoding") {
            self.default("Content-Length", self.body.len().to_string());
        }
        match &self.client.credentials {
            Credentials::Nobody => {}
            Credentials::Sas(token) => {
                let separator = if self.target.contains('?') { '&' } else { '?' };
                self.target = format!("{}{separator}{token}", self.target);
            }
            Credentials::Bearer(token) => {
                self.headers.push(("Authorization".into(), format!("Bearer {token}")));
            }
            Credentials::Key(scheme, key) => {
                self.default("x-ms-date", httpdate::fmt_http_date(now()));
                let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
                let headers = self.headers.iter().map(|(name, value)| (&**name, &**value));
                let request =
                    LongSignedRequest::new(&self.method, ACCOUNT, path, query, headers).unwrap();
                let signature = request.sign(*scheme, key);
                self.headers.push(("Authorization".into(), signature));
            }
        }
    }
}

/// The body of Put and Update.
pub(super) fn document(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = text.replace('\r', "&#13;");
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

/// A queue name that no other test has.
pub(super) fn unused_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("queue-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A message of an answer, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) inserted: String,
    pub(super) expires: String,
    pub(super) receipt: String,
    pub(super) next_visible: String,
    pub(super) dequeue_count: Option<u32>,
    pub(super) text: Option<String>,
}

/// The messages of an answer.
#[track_caller]
pub(super) fn messages(response: &Response) -> Vec<Message> {
    let text = response.text();
    let list = text.strip_prefix("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>");
    let list = list.unwrap_or_else(|| panic!("no list of messages: {text}"));
    if list == "<QueueMessagesList />" {
        return Vec::new();
    }
    let list = list.strip_prefix("<QueueMessagesList>").expect("a list");
    let mut list = list.strip_suffix("</QueueMessagesList>").expect("a whole list");
    let mut found = Vec::new();
    while let Some(message) = between(list, "<QueueMessage>", "</QueueMessage>") {
        let value = |name: &str| {
            between(message, &format!("<{name}>"), &format!("</{name}>")).unwrap_or_default()
        };
        let text = match message.contains("<MessageText />") {
            true => Some(String::new()),
            false => between(message, "<MessageText>", "</MessageText>").map(unescape),
        };
        found.push(Message {
            id: value("MessageId").to_owned(),
            inserted: value("InsertionTime").to_owned(),
            expires: value("ExpirationTime").to_owned(),
            receipt: value("PopReceipt").to_owned(),
            next_visible: value("TimeNextVisible").to_owned(),
            dequeue_count: value("DequeueCount").parse().ok(),
            text,
        });
        list = list.split_once("</QueueMessage>").expect("an end").1;
    }
    assert_eq!(list, "");
    found
}

fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&#xD;", "\r");
    text.replace("&amp;", "&")
}
