//! What tells one service from another, as far as the way of a request is concerned.

use azure_core::http::Request;

use super::credential::SharedKeyCredential;
use super::result::Result;

/// The parameters of a service. Each service's folder has one constant of this type.
#[derive(Debug)]
pub(crate) struct ServiceSpec {
    /// The word in host names: `account.<name>.core.windows.net`.
    pub name: &'static str,
    /// The setting of connection strings that names the endpoint.
    pub endpoint_setting: &'static str,
    /// The setting of connection strings that names the readable copy.
    pub secondary_setting: &'static str,
    /// Where storage emulators listen.
    pub development_port: u16,
    /// The value of `x-ms-version`.
    pub api_version: &'static str,
    /// The value of `Authorization` for a request of this date.
    pub sign: fn(&Request, &str, &SharedKeyCredential) -> Result<String>,
    /// Code and message of an error's body; `None` for a body that is no error of this service.
    pub read_error: fn(&[u8]) -> Option<(String, String)>,
}
