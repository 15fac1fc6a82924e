//! The queue service, as the pipeline and connection strings need to know it.

use azure_core::http::Request;
use azure_core::http::request::Body;
use tavola_wire::auth::shared_key::{LongSignedRequest, Scheme};
use tavola_wire::queue::QueueName;
use tavola_wire::xml;

use crate::core::connection_string::ConnectionString;
use crate::core::credential::SharedKeyCredential;
use crate::core::error::{Result, conversion};
use crate::core::service::ServiceSpec;

/// The parameters of the queue service.
pub(crate) static QUEUE_SERVICE: ServiceSpec = ServiceSpec {
    name: "queue",
    endpoint_setting: "QueueEndpoint",
    secondary_setting: "QueueSecondaryEndpoint",
    development_port: 10001,
    // That of the table client: messages that never expire and tokens of Entra are older.
    api_version: "2020-12-06",
    sign,
    read_error: xml::error::parse,
};

impl ConnectionString {
    /// Reads a connection string for the queue service. Names are compared without case, and settings of other services
    /// are skipped.
    ///
    /// ```
    /// use tavola_client::ConnectionString;
    ///
    /// let parsed = ConnectionString::for_queues("UseDevelopmentStorage=true").unwrap();
    /// assert_eq!(parsed.endpoint.as_str(), "http://127.0.0.1:10001/devstoreaccount1");
    /// ```
    ///
    /// # Errors
    /// A part without `=`, a name given twice, and settings that do not add up to an endpoint and a credential.
    pub fn for_queues(text: &str) -> Result<Self> {
        Self::parse(&QUEUE_SERVICE, text)
    }
}

/// Checks a queue's name before it goes into a URL.
pub(super) fn check_queue_name(name: &str) -> Result<()> {
    QueueName::parse(name)
        .map(|_| ())
        .map_err(|error| conversion(format!("{} name={name}", error.message())))
}

/// Queues sign nearly all of the head, with the length that the transport will send.
fn sign(request: &Request, date: &str, credential: &SharedKeyCredential) -> Result<String> {
    let length = match request.body() {
        Body::Bytes(bytes) => bytes.len().to_string(),
        _ => String::new(),
    };
    // An earlier attempt has left its own date, and the length of an empty body.
    let sent = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let is_left = |name: &str| {
        name.eq_ignore_ascii_case("x-ms-date") || name.eq_ignore_ascii_case("content-length")
    };
    let sent = sent.filter(|(name, _)| !is_left(name));
    let headers = sent.chain([("x-ms-date", date), ("content-length", &length)]);
    let url = request.url();
    let (path, query) = (url.path(), url.query().unwrap_or_default());
    let signed = LongSignedRequest::new(
        request.method().as_str(),
        credential.account(),
        path,
        query,
        headers,
    )
    .map_err(|error| conversion(format!("the request cannot be signed: {}", error.message())))?;
    Ok(signed.sign(Scheme::SharedKey, credential.key()))
}

#[cfg(test)]
mod tests {
    use azure_core::http::{Method, Url};

    use super::*;
    use crate::ConnectionString;

    /// The vector V1 of the reference.
    #[test]
    fn the_signature_is_that_of_the_reference() {
        let url = Url::parse("http://127.0.0.1:10001/devstoreaccount1/orders").unwrap();
        let mut request = Request::new(url, Method::Put);
        request.insert_header("x-ms-version", "2025-01-05");
        request.insert_header("x-ms-meta-team", "billing");
        // What an earlier attempt left.
        request.insert_header("x-ms-date", "Mon, 16 Nov 2026 11:00:00 GMT");
        request.insert_header("content-length", "0");
        let date = "Mon, 16 Nov 2026 12:00:00 GMT";
        let signed = sign(&request, date, &SharedKeyCredential::development()).unwrap();
        assert_eq!(
            signed,
            "SharedKey devstoreaccount1:BQQ/vTrmq49Wn6gO7Xgi7Wp4+wBLN/UZb1v9fJfIYHE="
        );
    }

    #[test]
    fn names_are_checked_before_they_are_sent() {
        for name in ["abc", "a-b", "0-0", "orders-2026", &"a".repeat(63)] {
            assert!(check_queue_name(name).is_ok(), "{name}");
        }
        for name in ["", "ab", "Abc", "a_b", "-ab", "ab-", "a--b", "a/b", "äöü", &"a".repeat(64)]
        {
            assert!(check_queue_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_connection_string_names_queues_of_its_own() {
        let text = "AccountName=acct;AccountKey=a2V5;TableEndpoint=http://h:1/acct;QueueEndpoint=http://h:2/acct";
        assert_eq!(
            ConnectionString::for_queues(text).unwrap().endpoint.as_str(),
            "http://h:2/acct"
        );
        let text = "AccountName=acct;AccountKey=a2V5";
        let endpoint = ConnectionString::for_queues(text).unwrap().endpoint;
        assert_eq!(endpoint.as_str(), "https://acct.queue.core.windows.net/");
        let parsed = ConnectionString::for_queues("UseDevelopmentStorage=true").unwrap();
        let secondary = parsed.secondary_endpoint.unwrap();
        assert_eq!(secondary.as_str(), "http://127.0.0.1:10001/devstoreaccount1-secondary");
    }
}
