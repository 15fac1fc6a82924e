//! Connection strings, in every form that portals, tools and emulators hand out.
//!
//! | Form | Endpoint | Credential |
//! |---|---|---|
//! | `UseDevelopmentStorage=true` | `http://127.0.0.1:<port>/devstoreaccount1` | the emulator's key |
//! | `...;DevelopmentStorageProxyUri=http://host` | `http://host:<port>/devstoreaccount1` | the emulator's key |
//! | `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k;EndpointSuffix=s` | `https://a.<service>.s` | the key |
//! | `AccountName=a;AccountKey=k;<Service>Endpoint=u` | `u` | the key |
//! | `<Service>Endpoint=u;SharedAccessSignature=t` | `u` | the signature |
//! | `AccountName=a;SharedAccessSignature=t` | `https://a.<service>.core.windows.net` | the signature |

use azure_core::http::Url;

use super::credential::{Credential, DEVELOPMENT_ACCOUNT, SasCredential, SharedKeyCredential};
use super::error::{Result, conversion};
use super::service::ServiceSpec;

/// Where the public cloud has its accounts.
const DEFAULT_SUFFIX: &str = "core.windows.net";
const DEVELOPMENT_ENDPOINT: &str = "http://127.0.0.1";

/// A connection string, taken apart.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::ConnectionString;
///
/// let parsed = ConnectionString::for_tables("UseDevelopmentStorage=true")?;
/// assert_eq!(parsed.endpoint.as_str(), "http://127.0.0.1:10002/devstoreaccount1");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionString {
    /// The service's address.
    pub endpoint: Url,
    /// The address of the readable copy, if one is named.
    pub secondary_endpoint: Option<Url>,
    /// Who asks.
    pub credential: Credential,
}

impl ConnectionString {
    /// Reads a connection string for a service. Names are compared without case, and settings of other services are
    /// skipped.
    ///
    /// # Errors
    /// A part without `=`, a name given twice, and settings that do not add up to an endpoint and a credential.
    pub(crate) fn parse(service: &ServiceSpec, text: &str) -> Result<Self> {
        let settings = Settings::parse(text)?;
        if settings
            .value("UseDevelopmentStorage")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Self::development(service, settings.value("DevelopmentStorageProxyUri"));
        }
        let account = settings.value("AccountName");
        let credential = credential(&settings, account)?;
        let endpoint = match settings.value(service.endpoint_setting) {
            Some(endpoint) => parse_url(endpoint)?,
            None => default_endpoint(service, &settings, account)?,
        };
        let secondary_endpoint = match settings.value(service.secondary_setting) {
            Some(endpoint) => Some(parse_url(endpoint)?),
            None => None,
        };
        Ok(Self { endpoint, secondary_endpoint, credential })
    }

    fn development(service: &ServiceSpec, proxy: Option<&str>) -> Result<Self> {
        let host = proxy.unwrap_or(DEVELOPMENT_ENDPOINT).trim_end_matches('/');
        let port = service.development_port;
        let endpoint = parse_url(&format!("{host}:{port}/{DEVELOPMENT_ACCOUNT}"))?;
        let secondary = parse_url(&format!("{endpoint}-secondary"))?;
        Ok(Self {
            endpoint,
            secondary_endpoint: Some(secondary),
            credential: SharedKeyCredential::development().into(),
        })
    }
}

fn credential(settings: &Settings<'_>, account: Option<&str>) -> Result<Credential> {
    match (account, settings.value("AccountKey"), settings.value("SharedAccessSignature")) {
        (Some(account), Some(key), _) => Ok(SharedKeyCredential::new(account, key)?.into()),
        (_, None, Some(token)) => Ok(SasCredential::new(token).into()),
        (None, Some(_), _) => {
            Err(conversion("the connection string has an AccountKey and no AccountName"))
        }
        (_, None, None) => Err(conversion(
            "the connection string has neither AccountKey nor SharedAccessSignature",
        )),
    }
}

fn default_endpoint(
    service: &ServiceSpec,
    settings: &Settings<'_>,
    account: Option<&str>,
) -> Result<Url> {
    let account = account.ok_or_else(|| {
        let setting = service.endpoint_setting;
        conversion(format!("the connection string has neither {setting} nor AccountName"))
    })?;
    let protocol = settings.value("DefaultEndpointsProtocol").unwrap_or("https");
    let suffix = settings.value("EndpointSuffix").unwrap_or(DEFAULT_SUFFIX);
    parse_url(&format!("{protocol}://{account}.{}.{suffix}", service.name))
}

/// Reads an endpoint: an absolute `http` or `https` URL, without the slash at its end.
pub(crate) fn parse_url(text: &str) -> Result<Url> {
    let mut url = Url::parse(text.trim())
        .map_err(|error| conversion(format!("the endpoint is no URL: {error} endpoint={text}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(conversion(format!("the endpoint is neither http nor https: endpoint={text}")));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

struct Settings<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Settings<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let mut settings = Self(Vec::new());
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            // The part itself is not printed: it may be a key without its name.
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| conversion("the connection string has a part without '='"))?;
            let (name, value) = (name.trim(), value.trim());
            if settings.value(name).is_some() {
                return Err(conversion(format!("the connection string has {name} twice")));
            }
            settings.0.push((name, value));
        }
        Ok(settings)
    }

    /// The value, with empty taken as absent.
    fn value(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }
}
