//! What the service says beside its answer: the status, and the names of the request for logs and support.

use azure_core::http::headers::ETAG;
use azure_core::http::{Etag, RawResponse, StatusCode};

use super::result::{Result, conversion};

/// The status and the names of a request that succeeded.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use tavola_client::{IfMatch, ResponseInfo};
///
/// let deleted: ResponseInfo = people.delete_entity("Sales", "00010", IfMatch::Any, None).await?;
/// println!(
///     "{}: request {:?} of ours, {:?} of the service's",
///     deleted.status(),
///     deleted.client_request_id(),
///     deleted.request_id()
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseInfo {
    status: StatusCode,
    request_id: Option<String>,
    client_request_id: Option<String>,
}

impl ResponseInfo {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The service's name for the request, for its log and its support.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The client's name for the request: one that the caller put into the context of the call, or else a fresh one.
    pub fn client_request_id(&self) -> Option<&str> {
        self.client_request_id.as_deref()
    }
}

/// A write that succeeded, with the new version of what was written.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use tavola_client::{Entity, UpdateMode, WriteResponse};
///
/// let mut jens = Entity::new("Sales", "00010").with("Age", 34);
/// let written: WriteResponse = people.insert_entity(&jens, None).await?;
/// println!("version {} by request {:?}", written.etag(), written.request_id());
///
/// // It tells the next change which version it is meant for.
/// jens.set("Age", 35);
/// let written = people.update_entity(&jens, UpdateMode::Replace, &written, None).await?;
/// let etag = written.into_etag();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteResponse {
    etag: Etag,
    info: ResponseInfo,
}

impl WriteResponse {
    /// The new version.
    pub fn etag(&self) -> &Etag {
        &self.etag
    }

    /// The new version alone.
    pub fn into_etag(self) -> Etag {
        self.etag
    }
}

impl std::ops::Deref for WriteResponse {
    type Target = ResponseInfo;

    fn deref(&self) -> &ResponseInfo {
        &self.info
    }
}

impl From<WriteResponse> for Etag {
    fn from(response: WriteResponse) -> Self {
        response.etag
    }
}

/// An answer of the service, before its body is read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub raw: RawResponse,
    pub info: ResponseInfo,
    /// Whether an attempt before this one may have been applied.
    pub maybe_applied: bool,
}

impl Answer {
    pub(crate) fn new(
        raw: RawResponse,
        client_request_id: Option<String>,
        maybe_applied: bool,
    ) -> Self {
        let request_id = raw.headers().get_optional_str(&"x-ms-request-id".into());
        let info = ResponseInfo {
            status: raw.status(),
            request_id: request_id.map(str::to_owned),
            client_request_id,
        };
        Self { raw, info, maybe_applied }
    }

    pub(crate) fn body(&self) -> &[u8] {
        self.raw.body()
    }

    /// A header, with empty taken as absent.
    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.raw.headers().get_optional_str(&name.into()).filter(|value| !value.is_empty())
    }

    /// The answer to a write.
    ///
    /// # Errors
    /// An answer without the new version.
    pub(crate) fn into_written(self) -> Result<WriteResponse> {
        let etag = self.raw.headers().get_optional_str(&ETAG).map(Etag::from);
        let etag = etag.ok_or_else(|| conversion("the answer has no ETag"))?;
        Ok(WriteResponse { etag, info: self.info })
    }
}
