//! The head of a request: what is known before its body is read.

use std::net::SocketAddr;

use http::HeaderName;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::request::Parts;
use tavola_wire::ErrorCode;
use tavola_wire::ServiceVersion;
use tavola_wire::explain;
use tavola_wire::table::if_match::malformed;
use tavola_wire::table::negotiate::{MetadataLevel, Preference, is_media_type};
use tavola_wire::uri::{Address, AddressRules, QueryString};
use tavola_wire::verb::Verb;

use crate::auth::signed_query::{HeadQuery, RecalledQuery};
use crate::error::Result;
use crate::request::respond::{self, ErrorFormat};

const METHOD: HeaderName = HeaderName::from_static("x-http-method");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const EXPLAIN: HeaderName = HeaderName::from_static(explain::EXPLAIN);

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// A request without its body: addressed, decoded, not yet trusted.
pub(crate) struct RequestHead<'a> {
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
        parts: &'a Parts,
        peer: Peer,
        rules: AddressRules,
        recalled: Option<&'a RecalledQuery<'a>>,
    ) -> Result<Self> {
        let host = match parts.uri.authority() {
            Some(authority) => authority.as_str(),
            None => text(parts, &HOST).unwrap_or_default(),
        };
        let raw_path = parts.uri.path();
        let address = Address::parse(host, raw_path, rules)?;
        let query = match recalled {
            Some(recalled) => recalled.query()?,
            None => HeadQuery::Parsed(QueryString::parse(raw_query(parts))?),
        };
        let method = parts.method.as_str();
        let version = None;
        let mut head = Self { peer, method, raw_path, address, query, recalled, version, parts };
        head.version = head.parse_version()?;
        Ok(head)
    }

    /// `x-ms-version`, else what the URL says. Any well-formed version is served.
    fn parse_version(&self) -> Result<Option<ServiceVersion>> {
        if let Some(header) = self.header(&respond::VERSION) {
            return ServiceVersion::parse(header).map(Some);
        }
        let in_url = self.query.api_version().or_else(|| self.query.value("sv"));
        Ok(in_url.and_then(|version| ServiceVersion::parse(version).ok()))
    }

    /// The query as it stands on the request line.
    pub(crate) fn raw_query(&self) -> &'a str {
        raw_query(self.parts)
    }

    /// The value of a header; what is not text counts as absent.
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&'a str> {
        text(self.parts, name)
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

    pub(crate) fn verb(&self) -> Result<Verb> {
        let tunnelled = self.parts.headers.get_all(METHOD);
        Verb::resolve(self.method, tunnelled.iter().map(|value| value.to_str().unwrap_or_default()))
    }

    /// The metadata level of the reply's body.
    pub(crate) fn level(&self) -> Result<MetadataLevel> {
        MetadataLevel::negotiate(self.query.format(), self.header(&ACCEPT))
    }

    pub(crate) fn preference(&self) -> Option<Preference> {
        self.header(&PREFER).and_then(Preference::parse)
    }

    /// Refuses a body of another kind than the operation takes.
    ///
    /// # Errors
    /// 415 `MediaTypeNotSupported`.
    pub(crate) fn expect_json(&self) -> Result<()> {
        match self.header(&CONTENT_TYPE) {
            Some(content_type) if is_media_type(content_type, "multipart/mixed") => {
                Err(ErrorCode::MediaTypeNotSupported.into())
            }
            Some(content_type) if is_media_type(content_type, "application/atom+xml") => {
                Err(ErrorCode::AtomFormatNotSupported.into())
            }
            _ => Ok(()),
        }
    }

    /// The service root as the client addressed it.
    pub(crate) fn base(&self) -> String {
        self.address.base(self.scheme())
    }

    /// The same for the metadata of a body, empty where it has none.
    pub(crate) fn metadata_base(&self, level: MetadataLevel) -> String {
        match level {
            MetadataLevel::None => String::new(),
            MetadataLevel::Minimal | MetadataLevel::Full => self.base(),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.peer.tls { "https" } else { "http" }
    }

    /// Whether the client asks what its query cost.
    pub(crate) fn wants_explanation(&self) -> bool {
        self.header(&EXPLAIN).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// How an error of this request is written: XML where the operation is, JSON for everyone who reads it.
    pub(crate) fn error_format(&self) -> ErrorFormat {
        if self.query.comp().is_some() || self.query.restype().is_some() {
            return ErrorFormat::Xml;
        }
        error_format(self.query.format(), self.header(&ACCEPT))
    }
}

/// The format of an error for a client with these wishes.
pub(crate) fn error_format(format: Option<&str>, accept: Option<&str>) -> ErrorFormat {
    let wishes = format.or(accept).unwrap_or_default();
    let reads_json = wishes.is_empty() || wishes.contains("json") || wishes.contains("*/*");
    match reads_json {
        true => ErrorFormat::Json(MetadataLevel::for_errors(format, accept)),
        false if wishes.contains("xml") => ErrorFormat::Xml,
        false => ErrorFormat::Json(MetadataLevel::Minimal),
    }
}

/// What follows the `?`.
pub(crate) fn raw_query(parts: &Parts) -> &str {
    parts.uri.query().unwrap_or_default()
}

fn text<'a>(parts: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}
