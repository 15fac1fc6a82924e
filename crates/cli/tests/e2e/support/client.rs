//! A client that signs, and otherwise does what it is told.

use std::cell::RefCell;
use std::io::{BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::{Scheme, SignedRequest};

use super::http::{self, Response};
use super::server::Server;
use super::stream::{Route, Stream};
use super::{ACCOUNT, KEY, now};

pub(crate) const MINIMAL: &str = "application/json;odata=minimalmetadata";
pub(crate) const FULL: &str = "application/json;odata=fullmetadata";
pub(crate) const NONE: &str = "application/json;odata=nometadata";

pub(crate) const NEXT_PARTITION_KEY: &str = "x-ms-continuation-NextPartitionKey";
pub(crate) const NEXT_ROW_KEY: &str = "x-ms-continuation-NextRowKey";

/// How requests prove who sends them.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    Key(Scheme, AccountKey),
    /// A query string, added to every URL.
    Sas(String),
    Bearer(String),
    Nobody,
}

/// A client of one account, with one connection.
pub(crate) struct Client {
    server: Arc<Server>,
    pub account: String,
    /// The first path segment; differs from the account for the secondary.
    pub root: String,
    pub credentials: Credentials,
    pub route: Route,
    /// Whether a request is sent again when a kept connection turns out to be closed.
    resends: bool,
    connection: RefCell<Option<BufReader<Stream>>>,
}

impl Client {
    /// The owner of the development account.
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        let key = AccountKey::from_base64(KEY).expect("a key");
        Self::with(server, Credentials::Key(Scheme::SharedKey, key))
    }

    pub(crate) fn with(server: &Arc<Server>, credentials: Credentials) -> Self {
        Self {
            server: server.clone(),
            account: ACCOUNT.to_owned(),
            root: ACCOUNT.to_owned(),
            credentials,
            route: Route::default(),
            resends: true,
            connection: RefCell::new(None),
        }
    }

    /// A client that sends each request once: a lost connection is an error, since what was sent may have been done.
    pub(crate) fn without_resending(self) -> Self {
        Self { resends: false, ..self }
    }

    /// Another client of the same account.
    pub(crate) fn as_other(&self, credentials: Credentials) -> Self {
        let other = Self::with(&self.server, credentials);
        let (account, root) = (self.account.clone(), self.root.clone());
        Self { account, root, route: self.route.clone(), ..other }
    }

    pub(crate) fn with_sas(&self, token: impl Into<String>) -> Self {
        self.as_other(Credentials::Sas(token.into()))
    }

    pub(crate) fn anonymous(&self) -> Self {
        self.as_other(Credentials::Nobody)
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The service root as this client addresses it.
    pub(crate) fn base(&self) -> String {
        format!("http://{}/{}", self.server.address(), self.root)
    }

    /// A request of a path below the service root.
    pub(crate) fn request(&self, method: &str, path: impl AsRef<str>) -> Request<'_> {
        Request {
            client: self,
            method: method.to_owned(),
            target: format!("/{}{}", self.root, path.as_ref()),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn get(&self, path: impl AsRef<str>) -> Request<'_> {
        self.request("GET", path)
    }

    pub(crate) fn delete(&self, path: impl AsRef<str>) -> Request<'_> {
        self.request("DELETE", path)
    }

    pub(crate) fn post(&self, path: impl AsRef<str>, json: &Value) -> Request<'_> {
        self.request("POST", path).json(json)
    }

    /// Makes a table that no other test has.
    pub(crate) fn new_table(&self) -> String {
        let name = unused_name();
        self.create_table(&name).expect(204);
        name
    }

    pub(crate) fn create_table(&self, name: &str) -> Response {
        let body = serde_json::json!({ "TableName": name });
        self.post("/Tables", &body).header("Prefer", "return-no-content").send()
    }

    pub(crate) fn drop_table(&self, name: &str) -> Response {
        self.delete(format!("/Tables('{name}')")).send()
    }

    /// Inserts without an echo.
    pub(crate) fn insert(&self, table: &str, entity: &Value) -> Response {
        self.post(format!("/{table}"), entity).header("Prefer", "return-no-content").send()
    }

    pub(crate) fn put(&self, table: &str, keys: (&str, &str), entity: &Value) -> Request<'_> {
        self.request("PUT", entity_path(table, keys.0, keys.1)).json(entity)
    }

    pub(crate) fn merge(&self, table: &str, keys: (&str, &str), entity: &Value) -> Request<'_> {
        self.request("PATCH", entity_path(table, keys.0, keys.1)).json(entity)
    }

    pub(crate) fn remove(&self, table: &str, keys: (&str, &str), if_match: &str) -> Response {
        self.delete(entity_path(table, keys.0, keys.1)).header("If-Match", if_match).send()
    }

    pub(crate) fn entity(&self, table: &str, keys: (&str, &str)) -> Response {
        self.get(entity_path(table, keys.0, keys.1)).send()
    }

    /// One page.
    pub(crate) fn query(&self, table: &str, options: &[(&str, &str)]) -> Request<'_> {
        self.get(format!("/{table}(){}", query_string(options)))
    }

    /// All pages of a query, from token to token; `ask` sends the request for each.
    #[track_caller]
    pub(crate) fn pages<'c>(
        &'c self,
        table: &str,
        options: &[(&str, &str)],
        mut ask: impl FnMut(Request<'c>) -> Response,
    ) -> Vec<Response> {
        let mut pages = Vec::new();
        let mut next: Option<(String, String)> = None;
        loop {
            let mut options = options.to_vec();
            if let Some((partition_key, row_key)) = &next {
                options.push(("NextPartitionKey", partition_key));
                options.push(("NextRowKey", row_key));
            }
            let page = ask(self.query(table, &options)).expect(200);
            next = next_tokens(&page);
            pages.push(page);
            if next.is_none() {
                return pages;
            }
        }
    }

    /// The matches of a filter, which must fit on one page.
    #[track_caller]
    pub(crate) fn matches(&self, table: &str, filter: &str) -> Vec<Value> {
        let page = self.query(table, &[("$filter", filter)]).send().expect(200);
        assert_eq!(page.header("x-ms-continuation-NextPartitionKey"), None);
        values(&page)
    }

    /// The row keys of the matches of a filter.
    #[track_caller]
    pub(crate) fn rows(&self, table: &str, filter: &str) -> Vec<String> {
        row_keys(&self.matches(table, filter))
    }

    fn exchange(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> std::io::Result<Response> {
        let mut slot = self.connection.borrow_mut();
        if let Some(connection) = slot.as_mut() {
            match converse(connection, method, target, headers, body) {
                Ok(response) => return Ok(kept(&mut slot, response)),
                // The server may have closed an idle connection, or have been started again.
                Err(_) if self.resends => {}
                Err(error) => {
                    *slot = None;
                    return Err(error);
                }
            }
        }
        *slot = None;
        let stream = self.route.connect(self.server.address())?;
        let connection = slot.insert(BufReader::new(stream));
        let response = converse(connection, method, target, headers, body)?;
        Ok(kept(&mut slot, response))
    }
}

/// Sends and reads. A server may answer before it has taken the whole body, and take no more of it.
fn converse(
    connection: &mut BufReader<Stream>,
    method: &str,
    target: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> std::io::Result<Response> {
    let sent = http::write(connection.get_mut(), method, target, headers, body);
    match (sent, http::read(connection)) {
        (_, Ok(response)) => Ok(response),
        (Err(error), _) | (Ok(()), Err(error)) => Err(error),
    }
}

/// Forgets the connection when the server closes it.
fn kept(slot: &mut Option<BufReader<Stream>>, response: Response) -> Response {
    if response.header("connection") == Some("close") {
        *slot = None;
    }
    response
}

/// A request in the making.
pub(crate) struct Request<'a> {
    client: &'a Client,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request<'_> {
    /// Sets a header, in place of the one that would be sent otherwise.
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn accept(self, value: &str) -> Self {
        self.header("Accept", value)
    }

    pub(crate) fn if_match(self, value: &str) -> Self {
        self.header("If-Match", value)
    }

    pub(crate) fn json(self, value: &Value) -> Self {
        self.body("application/json", value.to_string())
    }

    pub(crate) fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        if self.find("Content-Type").is_none() {
            self = self.header("Content-Type", content_type);
        }
        self
    }

    #[track_caller]
    pub(crate) fn send(self) -> Response {
        let what = format!("{} {}", self.method, self.target);
        self.try_send().unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    pub(crate) fn try_send(mut self) -> std::io::Result<Response> {
        self.sign();
        let body = self.body.take().unwrap_or_default();
        self.client.exchange(&self.method, &self.target, &self.headers, &body)
    }

    /// Sends on a connection of its own and goes away without waiting for the answer.
    pub(crate) fn send_and_leave(mut self) {
        self.sign();
        let body = self.body.take().unwrap_or_default();
        let mut stream = TcpStream::connect(self.client.server.address()).unwrap();
        http::write(&mut stream, &self.method, &self.target, &self.headers, &body).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Whatever comes, an answer or the end, the server is done with the connection then.
        let _ = stream.read_to_end(&mut Vec::new());
    }

    fn find(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    fn default(&mut self, name: &str, value: impl Into<String>) {
        if self.find(name).is_none() {
            self.headers.push((name.to_owned(), value.into()));
        }
    }

    fn sign(&mut self) {
        self.default("Host", self.client.server.address().to_string());
        self.default("x-ms-version", "2019-02-02");
        self.default("Accept", MINIMAL);
        let length = self.body.as_ref().map(Vec::len);
        let wants_length = length.is_some() || matches!(self.method.as_str(), "POST" | "PUT");
        if wants_length && self.find("Transfer-Encoding").is_none() {
            self.default("Content-Length", length.unwrap_or(0).to_string());
        }
        if self.find("Authorization").is_some() {
            return;
        }
        match &self.client.credentials {
            Credentials::Nobody => {}
            Credentials::Sas(token) => {
                let separator = if self.target.contains('?') { '&' } else { '?' };
                self.target = format!("{}{separator}{token}", self.target);
            }
            Credentials::Bearer(token) => {
                let header = format!("Bearer {token}");
                self.headers.push(("Authorization".to_owned(), header));
            }
            Credentials::Key(scheme, key) => {
                if self.find("Date").is_none() {
                    self.default("x-ms-date", httpdate::fmt_http_date(now()));
                }
                let header = self.signature(*scheme, key);
                self.headers.push(("Authorization".to_owned(), header));
            }
        }
    }

    fn signature(&self, scheme: Scheme, key: &AccountKey) -> String {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let comp = query.split('&').find_map(|pair| pair.strip_prefix("comp="));
        let date = self.find("x-ms-date").or_else(|| self.find("Date"));
        SignedRequest {
            verb: &self.method,
            content_md5: self.find("Content-MD5").unwrap_or_default(),
            content_type: self.find("Content-Type").unwrap_or_default(),
            date: date.unwrap_or_default(),
            account: &self.client.account,
            raw_path: path,
            comp,
        }
        .sign(scheme, key)
    }
}

/// A table name that no other test has.
pub(crate) fn unused_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("Table{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// `/table(PartitionKey='p',RowKey='r')`, encoded.
pub(crate) fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    let key = |text: &str| encode(&text.replace('\'', "''"));
    format!("/{table}(PartitionKey='{}',RowKey='{}')", key(partition_key), key(row_key))
}

/// `?a=b&c=d`, encoded.
pub(crate) fn query_string(options: &[(&str, &str)]) -> String {
    let pairs: Vec<_> =
        options.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Percent-encodes everything that is not unreserved.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The entities of a page.
#[track_caller]
pub(crate) fn values(page: &Response) -> Vec<Value> {
    page.json()["value"].as_array().expect("a page has a list").clone()
}

/// The tokens of a page, checked for their form.
#[track_caller]
pub(crate) fn next_tokens(page: &Response) -> Option<(String, String)> {
    let partition_key = page.header(NEXT_PARTITION_KEY)?;
    let row_key = page.header(NEXT_ROW_KEY).expect("both or none");
    for token in [partition_key, row_key] {
        let mut fields = token.splitn(3, '!');
        assert_eq!(fields.next(), Some("1"), "{token}");
        let length: usize = fields.next().and_then(|text| text.parse().ok()).expect("a length");
        assert_eq!(fields.next().map(str::len), Some(length), "{token}");
        assert!(!token.contains([' ', ';', '=']), "{token}");
    }
    Some((partition_key.to_owned(), row_key.to_owned()))
}

pub(crate) fn row_keys(entities: &[Value]) -> Vec<String> {
    let row_key = |entity: &Value| entity["RowKey"].as_str().expect("a row key").to_owned();
    entities.iter().map(row_key).collect()
}
