//! Requests that got no answer: where they went, and why not.
//!
//! hyper says "client error (Connect)" and leaves address and reason to the chain of causes. People read the first line.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use azure_core::error::ErrorKind;
use azure_core::http::Url;
use rustls::CertificateError;

/// A request that got no answer.
#[derive(Debug)]
pub(crate) struct TransportError {
    failure: Failure,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no connection, and there may be one in a moment: the service starts, a name is about to be known.
    NoConnection,
    /// There is no connection, and waiting helps nobody: the peer is not who it should be, or does not answer at all.
    NoTrust,
    /// The connection took longer than it may.
    ConnectTimeout,
    /// The connection broke, or the answer took longer than it may. The service may have seen the request.
    NoAnswer,
}

impl TransportError {
    /// A connection that was not made.
    pub(crate) fn connect(url: &Url, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let error = error.into();
        let (failure, message) = explain(url, &*error);
        Self { failure, message, source: Some(error) }
    }

    /// A connection that broke.
    pub(crate) fn broken(url: &Url, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let error = error.into();
        let message = format!("the connection to {} broke: {}", address(url), reason(&*error));
        Self { failure: Failure::NoAnswer, message, source: Some(error) }
    }

    /// An answer that did not come in time.
    pub(crate) fn timeout(url: &Url, limit: Duration) -> Self {
        let message = format!("no answer from {} within {limit:?}", address(url));
        Self { failure: Failure::NoAnswer, message, source: None }
    }

    pub(crate) fn failure(&self) -> Failure {
        self.failure
    }

    /// True for a failure after which nothing can have reached the service.
    pub(crate) fn is_connect(&self) -> bool {
        self.failure != Failure::NoAnswer
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|error| error as _)
    }
}

impl From<TransportError> for azure_core::Error {
    fn from(error: TransportError) -> Self {
        let kind = if error.is_connect() { ErrorKind::Connection } else { ErrorKind::Io };
        Self::new(kind, error)
    }
}

fn explain(url: &Url, error: &(dyn StdError + 'static)) -> (Failure, String) {
    let (address, host) = (address(url), url.host_str().unwrap_or_default());
    for cause in Causes(Some(error)) {
        if let Some(rustls::Error::InvalidCertificate(problem)) = cause.downcast_ref() {
            let problem = certificate_problem(problem);
            let text = format!("the certificate of host {host} is not trusted: {problem}");
            return (Failure::NoTrust, text);
        }
        if let Some(problem) = cause.downcast_ref::<rustls::Error>() {
            return (Failure::NoTrust, format!("cannot speak TLS with {address}: {problem}"));
        }
        // The type is hyper-util's own; a test watches the words.
        if cause.to_string() == "dns error" {
            let text = format!("cannot find the address of host {host}: {}", reason(cause));
            return (Failure::NoConnection, text);
        }
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => {
                let reason = reason(cause).to_lowercase();
                let text =
                    format!("cannot connect to {address}: {reason}; is the service running?");
                return (Failure::NoConnection, text);
            }
            Some(io::ErrorKind::TimedOut) => {
                let text = format!("cannot connect to {address}: it took too long");
                return (Failure::ConnectTimeout, text);
            }
            _ => {}
        }
    }
    (Failure::NoConnection, format!("cannot connect to {address}: {}", reason(error)))
}

fn certificate_problem(problem: &CertificateError) -> String {
    match problem {
        CertificateError::UnknownIssuer => "unknown issuer".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        CertificateError::Revoked => "it was revoked".to_owned(),
        other => other.to_string(),
    }
}

/// The deepest cause, which says what happened; those above it say where it was noticed.
fn reason(error: &(dyn StdError + 'static)) -> String {
    Causes(Some(error)).last().map(ToString::to_string).unwrap_or_default()
}

fn address(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The chain of causes. An `io::Error` leaves out the error that it holds, which is the one that tells.
struct Causes<'e>(Option<&'e (dyn StdError + 'static)>);

impl<'e> Iterator for Causes<'e> {
    type Item = &'e (dyn StdError + 'static);

    fn next(&mut self) -> Option<Self::Item> {
        let error = self.0?;
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        self.0 = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(error: impl Into<Box<dyn StdError + Send + Sync>>) -> (Failure, String) {
        let url = Url::parse("https://contoso.example/people").unwrap();
        let error = TransportError::connect(&url, error);
        (error.failure(), error.to_string())
    }

    #[test]
    fn the_message_names_address_and_cause() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(
            explained(io::Error::other(refused)),
            (
                Failure::NoConnection,
                "cannot connect to contoso.example:443: connection refused (os error 111); is the service running?"
                    .to_owned()
            )
        );
        let certificate = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let inner = io::Error::new(io::ErrorKind::InvalidData, certificate);
        assert_eq!(
            explained(io::Error::other(inner)),
            (
                Failure::NoTrust,
                "the certificate of host contoso.example is not trusted: unknown issuer".to_owned()
            )
        );
    }
}
