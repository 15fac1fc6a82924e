//! Connection strings, in every form that portals, tools and emulators hand out.
//!
//! | Form | Endpoint | Credential |
//! |---|---|---|
//! | `UseDevelopmentStorage=true` | `http://127.0.0.1:10002/devstoreaccount1` | the emulator's key |
//! | `...;DevelopmentStorageProxyUri=http://host` | `http://host:10002/devstoreaccount1` | the emulator's key |
//! | `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k;EndpointSuffix=s` | `https://a.table.s` | the key |
//! | `AccountName=a;AccountKey=k;TableEndpoint=u` | `u` | the key |
//! | `TableEndpoint=u;SharedAccessSignature=t` | `u` | the signature |
//! | `AccountName=a;SharedAccessSignature=t` | `https://a.table.core.windows.net` | the signature |

use azure_core::http::Url;
use tavola_wire::Service;

use crate::credential::{Credential, DEVELOPMENT_ACCOUNT, SasCredential, SharedKeyCredential};
use crate::error::{Result, conversion};

/// Where the public cloud has its accounts.
const DEFAULT_SUFFIX: &str = "core.windows.net";
const DEVELOPMENT_ENDPOINT: &str = "http://127.0.0.1";
const DEVELOPMENT_PORT: u16 = Service::Table.default_port();

/// A connection string, taken apart.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::ConnectionString;
///
/// let parsed = ConnectionString::parse("UseDevelopmentStorage=true")?;
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
    /// Reads a connection string. Names are compared without case, and settings of other services are skipped.
    ///
    /// ```
    /// use tavola_client::ConnectionString;
    ///
    /// let text = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=a2V5;\
    ///             EndpointSuffix=core.windows.net";
    /// let parsed = ConnectionString::parse(text).unwrap();
    /// assert_eq!(parsed.endpoint.as_str(), "https://contoso.table.core.windows.net/");
    /// assert!(ConnectionString::parse("AccountName=contoso").is_err(), "no credential");
    /// ```
    ///
    /// # Errors
    /// A part without `=`, a name given twice, and settings that do not add up to an endpoint and a credential.
    pub fn parse(text: &str) -> Result<Self> {
        let settings = Settings::parse(text)?;
        if settings
            .value("UseDevelopmentStorage")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Self::development(settings.value("DevelopmentStorageProxyUri"));
        }
        let account = settings.value("AccountName");
        let credential = credential(&settings, account)?;
        let endpoint = match settings.value("TableEndpoint") {
            Some(endpoint) => parse_url(endpoint)?,
            None => default_endpoint(&settings, account, "")?,
        };
        let secondary_endpoint = match settings.value("TableSecondaryEndpoint") {
            Some(endpoint) => Some(parse_url(endpoint)?),
            None => None,
        };
        Ok(Self { endpoint, secondary_endpoint, credential })
    }

    fn development(proxy: Option<&str>) -> Result<Self> {
        let host = proxy.unwrap_or(DEVELOPMENT_ENDPOINT).trim_end_matches('/');
        let endpoint = parse_url(&format!("{host}:{DEVELOPMENT_PORT}/{DEVELOPMENT_ACCOUNT}"))?;
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

fn default_endpoint(settings: &Settings<'_>, account: Option<&str>, tail: &str) -> Result<Url> {
    let account = account.ok_or_else(|| {
        conversion("the connection string has neither TableEndpoint nor AccountName")
    })?;
    let protocol = settings.value("DefaultEndpointsProtocol").unwrap_or("https");
    let suffix = settings.value("EndpointSuffix").unwrap_or(DEFAULT_SUFFIX);
    let host = Service::Table.host(&format!("{account}{tail}"), suffix);
    parse_url(&format!("{protocol}://{host}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::DEVELOPMENT_KEY;

    fn shape(text: &str) -> (String, &'static str) {
        let parsed = ConnectionString::parse(text).unwrap();
        let credential = match parsed.credential {
            Credential::SharedKey(_) => "key",
            Credential::Sas(_) => "sas",
            Credential::Token(_) => "token",
        };
        (parsed.endpoint.to_string(), credential)
    }

    #[test]
    fn every_form_is_read() {
        let key = DEVELOPMENT_KEY;
        for (text, endpoint, credential) in [
            ("UseDevelopmentStorage=true".into(), "http://127.0.0.1:10002/devstoreaccount1", "key"),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://tavola/".into(),
                "http://tavola:10002/devstoreaccount1",
                "key",
            ),
            (
                format!("DefaultEndpointsProtocol=https;AccountName=acct;AccountKey={key};EndpointSuffix=core.windows.net"),
                "https://acct.table.core.windows.net/",
                "key",
            ),
            (format!("AccountName=acct;AccountKey={key}"), "https://acct.table.core.windows.net/", "key"),
            (
                format!("accountname=acct; accountkey={key} ;TABLEENDPOINT=http://h:1/acct/;BlobEndpoint=http://h:2/acct;"),
                "http://h:1/acct",
                "key",
            ),
            (
                "TableEndpoint=https://acct.table.core.chinacloudapi.cn/;SharedAccessSignature=sv=2019-02-02&sig=a%3D".into(),
                "https://acct.table.core.chinacloudapi.cn/",
                "sas",
            ),
            ("AccountName=acct;SharedAccessSignature=?sv=1&sig=a".into(), "https://acct.table.core.windows.net/", "sas"),
        ] {
            assert_eq!(shape(&text), (endpoint.to_owned(), credential), "{text}");
        }
    }

    #[test]
    fn a_secondary_is_kept() {
        let parsed = ConnectionString::parse("UseDevelopmentStorage=true").unwrap();
        let secondary = parsed.secondary_endpoint.unwrap();
        assert_eq!(secondary.as_str(), "http://127.0.0.1:10002/devstoreaccount1-secondary");
    }

    #[test]
    fn what_does_not_add_up_is_refused_without_its_secrets() {
        for text in [
            "",
            "AccountName=acct",
            "AccountKey=c2VjcmV0",
            "AccountName=acct;AccountKey=*secret*",
            "TableEndpoint=http://h/acct",
            "SharedAccessSignature=sig=secret",
            "AccountName=a;accountname=b;AccountKey=c2VjcmV0",
            "TableEndpoint=acct/secret;SharedAccessSignature=sig=a",
            "TableEndpoint=ftp://h/acct;SharedAccessSignature=sig=secret",
            "nonsense-secret",
        ] {
            let error = ConnectionString::parse(text).unwrap_err().to_string();
            assert!(!error.contains("c2VjcmV0") && !error.contains("*secret*"), "{error}");
            assert!(!error.contains("nonsense-secret"), "{error}");
        }
    }
}
