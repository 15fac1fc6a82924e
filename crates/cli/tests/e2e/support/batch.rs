//! Entity group transactions as clients write them, and their answers taken apart.

use serde_json::Value;

use super::client::{Client, MINIMAL, entity_path};
use super::http::Response;

const NO_CONTENT: &str = "Prefer: return-no-content\r\n";

/// A changeset in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    operations: Vec<String>,
}

/// The answer to a batch.
#[derive(Debug)]
pub(crate) struct BatchReply {
    pub response: Response,
    pub parts: Vec<Response>,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    pub(crate) fn insert(self, client: &Client, table: &str, entity: &Value) -> Self {
        self.operation(client, "POST", &format!("/{table}"), NO_CONTENT, Some(entity))
    }

    pub(crate) fn put(
        self,
        client: &Client,
        table: &str,
        keys: (&str, &str),
        if_match: Option<&str>,
        entity: &Value,
    ) -> Self {
        let path = entity_path(table, keys.0, keys.1);
        self.operation(client, "PUT", &path, &condition(if_match), Some(entity))
    }

    pub(crate) fn merge(
        self,
        client: &Client,
        table: &str,
        keys: (&str, &str),
        if_match: Option<&str>,
        entity: &Value,
    ) -> Self {
        let path = entity_path(table, keys.0, keys.1);
        self.operation(client, "PATCH", &path, &condition(if_match), Some(entity))
    }

    pub(crate) fn delete(
        self,
        client: &Client,
        table: &str,
        keys: (&str, &str),
        if_match: &str,
    ) -> Self {
        let path = entity_path(table, keys.0, keys.1);
        self.operation(client, "DELETE", &path, &condition(Some(if_match)), None)
    }

    /// An insert of an entity that is JSON already, for large loads.
    pub(crate) fn insert_text(self, client: &Client, table: &str, entity: &str) -> Self {
        self.text_operation(client, "POST", &format!("/{table}"), NO_CONTENT, entity)
    }

    /// Any operation; `headers` are lines with their ends.
    pub(crate) fn operation(
        self,
        client: &Client,
        method: &str,
        path: &str,
        headers: &str,
        entity: Option<&Value>,
    ) -> Self {
        let body = entity.map(Value::to_string).unwrap_or_default();
        self.text_operation(client, method, path, headers, &body)
    }

    /// The same with a body as it stands.
    pub(crate) fn text_operation(
        mut self,
        client: &Client,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Self {
        let content = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        self.operations.push(format!(
            "{method} {}{path} HTTP/1.1\r\nAccept: {MINIMAL}\r\n{content}{headers}\r\n{body}\r\n",
            client.base()
        ));
        self
    }

    pub(crate) fn body(&self) -> String {
        let mut body =
            "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n".to_owned();
        for operation in &self.operations {
            body.push_str("--changeset_c\r\nContent-Type: application/http\r\n");
            body.push_str("Content-Transfer-Encoding: binary\r\n\r\n");
            body.push_str(operation);
        }
        body.push_str("--changeset_c--\r\n\r\n--batch_b--\r\n");
        body
    }

    #[track_caller]
    pub(crate) fn send(&self, client: &Client) -> BatchReply {
        self.try_send(client).expect("an answer")
    }

    pub(crate) fn try_send(&self, client: &Client) -> std::io::Result<BatchReply> {
        let request = client.request("POST", "/$batch");
        let response = request.body("multipart/mixed; boundary=batch_b", self.body()).try_send()?;
        Ok(BatchReply::read(response))
    }
}

fn condition(if_match: Option<&str>) -> String {
    if_match.map(|etag| format!("If-Match: {etag}\r\n")).unwrap_or_default()
}

impl BatchReply {
    pub(crate) fn read(response: Response) -> Self {
        let parts = if response.status == 202 { parts(response.text()) } else { Vec::new() };
        Self { response, parts }
    }

    /// The parts, if all were done.
    #[track_caller]
    pub(crate) fn expect_done(&self, count: usize) -> &[Response] {
        assert_eq!(self.response.status, 202, "{:?}", self.response);
        assert_eq!(self.parts.len(), count, "{}", self.response.text());
        for part in &self.parts {
            assert!(part.status < 300, "{}", self.response.text());
        }
        &self.parts
    }

    /// The one part that a failed changeset is answered with.
    #[track_caller]
    pub(crate) fn expect_failure(&self, status: u16, code: &str, index: usize) -> &Response {
        assert_eq!(self.response.status, 202, "{:?}", self.response);
        let [part] = &self.parts[..] else { panic!("{}", self.response.text()) };
        assert_eq!((part.status, part.code().as_deref()), (status, Some(code)), "{part:?}");
        let message = part.message();
        assert!(message.starts_with(&format!("{index}:")), "{message}");
        part
    }
}

/// The responses inside a batch response.
fn parts(text: &str) -> Vec<Response> {
    let responses = text.split("HTTP/1.1 ").skip(1);
    responses
        .map(|part| {
            let part = part.split("\r\n--").next().unwrap_or_default();
            let (head, body) = part.split_once("\r\n\r\n").expect("a blank line");
            let mut lines = head.split("\r\n");
            let (status, reason) = lines.next().unwrap().split_once(' ').expect("a status");
            let headers = lines.map(|line| line.split_once(": ").expect("a header"));
            Response {
                status: status.parse().expect("a status"),
                reason: reason.to_owned(),
                headers: headers.map(|(name, value)| (name.into(), value.into())).collect(),
                body: body.trim_end_matches("\r\n").as_bytes().to_vec(),
            }
        })
        .collect()
}
