//! The head of a request: what is known before its body is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;

use http::header::HOST;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use tavola_wire::table::if_match::malformed;
use tavola_wire::uri::{Address, AddressRules, QueryString};
use tavola_wire::verb::Verb;
use tavola_wire::{Service, ServiceVersion, header_text as text_of};

use super::{header_case, respond};
use crate::error::Result;
use crate::request::signed_query::{HeadQuery, RecalledQuery};

const METHOD: HeaderName = HeaderName::from_static("x-http-method");

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// A request without its body: addressed, decoded, not yet trusted.
pub(crate) struct RequestHead<'a> {
    pub service: Service,
    pub peer: Peer,
    /// As it stands on the request line, which is what signatures cover.
    pub method: &'a str,
    /// As it stands on the request line, which is what signatures cover.
    pub raw_path: &'a str,
    pub address: Address<'a>,
    pub query: HeadQuery<'a>,
    /// What is known of the query, if it is signed like one before it.
    pub recalled: Option<&'a RecalledQuery<'a>>,
    pub version: Option<ServiceVersion>,
    parts: &'a Parts,
}

impl<'a> RequestHead<'a> {
    /// `recalled`: what is known of the query.
    pub(crate) fn parse(
        service: Service,
        parts: &'a Parts,
        peer: Peer,
        rules: AddressRules,
        recalled: Option<&'a RecalledQuery<'a>>,
    ) -> Result<Self> {
        let raw_path = parts.uri.path();
        let address = Address::parse(host(parts), raw_path, rules)?;
        let query = match recalled {
            Some(recalled) => recalled.query()?,
            None => HeadQuery::Parsed(QueryString::parse(raw_query(parts))?),
        };
        let method = parts.method.as_str();
        let version = None;
        let mut head =
            Self { service, peer, method, raw_path, address, query, recalled, version, parts };
        head.version = head.parse_version()?;
        Ok(head)
    }

    /// `x-ms-version`, else what the URL says. Any well-formed version is served.
    fn parse_version(&self) -> Result<Option<ServiceVersion>> {
        if let Some(header) = self.text(&respond::VERSION) {
            return ServiceVersion::parse(&header).map(Some);
        }
        let in_url = self.query.api_version().or_else(|| self.query.parameter("sv"));
        Ok(in_url.and_then(|version| ServiceVersion::parse(version).ok()))
    }

    /// The query as it stands on the request line.
    pub(crate) fn raw_query(&self) -> &'a str {
        raw_query(self.parts)
    }

    /// The value of a header; what is not text counts as absent.
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&'a str> {
        header_text(self.parts, name)
    }

    /// The value of a header, whatever its bytes are: what is signed must not count as absent.
    pub(crate) fn text(&self, name: &HeaderName) -> Option<Cow<'a, str>> {
        self.parts.headers.get(name).map(|value| text_of(value.as_bytes()))
    }

    /// All headers as texts, in the order they came.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let headers = self.parts.headers.iter();
        headers.map(|(name, value)| (name.as_str(), text_of(value.as_bytes())))
    }

    /// The headers whose names begin like this (in lower case), with their names as they were written.
    pub(crate) fn headers_as_written(&self, prefix: &str) -> Vec<(String, &'a HeaderValue)> {
        let written = header_case::names_as_written(self.parts, prefix);
        let written: HashMap<_, _> =
            written.into_iter().map(|name| (name.to_ascii_lowercase(), name)).collect();
        let as_written = |name: &str| written.get(name).map_or(name, String::as_str).to_owned();
        let headers = self.parts.headers.iter();
        let headers = headers.filter(|(name, _)| name.as_str().starts_with(prefix));
        headers.map(|(name, value)| (as_written(name.as_str()), value)).collect()
    }

    pub(crate) fn has_header(&self, name: &HeaderName) -> bool {
        self.parts.headers.contains_key(name)
    }

    /// The value of a header that may come once; `None` if it is absent.
    ///
    /// # Errors
    /// 400 `InvalidInput` when it comes twice or is not text: a condition that cannot be read is no permission
    /// to write without one.
    pub(crate) fn condition(&self, name: &HeaderName) -> Result<Option<&'a str>> {
        let mut values = self.parts.headers.get_all(name).iter();
        let Some(first) = values.next() else { return Ok(None) };
        match (first.to_str(), values.next()) {
            (Ok(text), None) => Ok(Some(text)),
            _ => Err(malformed(&String::from_utf8_lossy(first.as_bytes()))),
        }
    }

    /// The verb, which `X-HTTP-Method` may name.
    pub(crate) fn tunnelled_verb(&self) -> Result<Verb> {
        let tunnelled = self.parts.headers.get_all(METHOD);
        Verb::resolve(self.method, tunnelled.iter().map(|value| value.to_str().unwrap_or_default()))
    }

    /// The service root as the client addressed it.
    pub(crate) fn base(&self) -> String {
        self.address.base(self.scheme())
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.peer.tls { "https" } else { "http" }
    }
}

/// The host that a request names; empty if it names none.
pub(crate) fn host(parts: &Parts) -> &str {
    match parts.uri.authority() {
        Some(authority) => authority.as_str(),
        None => header_text(parts, &HOST).unwrap_or_default(),
    }
}

/// What follows the `?`.
pub(crate) fn raw_query(parts: &Parts) -> &str {
    parts.uri.query().unwrap_or_default()
}

/// The value of a header; what is not text counts as absent.
pub(crate) fn header_text<'a>(parts: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}

/// The version in the head of a request of which the rest perhaps cannot be read.
pub(crate) fn named_version(parts: &Parts) -> Option<ServiceVersion> {
    ServiceVersion::parse(header_text(parts, &respond::VERSION)?).ok()
}
