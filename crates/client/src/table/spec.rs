//! The table service, as the pipeline and connection strings need to know it.

use azure_core::http::Request;
use azure_core::http::headers::CONTENT_TYPE;
use serde::Deserialize;
use tavola_wire::auth::shared_key::{Scheme, SignedRequest};
use tavola_wire::table::names::TableName;
use tavola_wire::xml;

use crate::core::connection_string::ConnectionString;
use crate::core::credential::SharedKeyCredential;
use crate::core::error::{Result, conversion};
use crate::core::pipeline::Format;
use crate::core::service::ServiceSpec;

/// The parameters of the table service.
pub(crate) static TABLE_SERVICE: ServiceSpec = ServiceSpec {
    name: "table",
    endpoint_setting: "TableEndpoint",
    secondary_setting: "TableSecondaryEndpoint",
    development_port: 10002,
    // The first that takes tokens of Entra.
    api_version: "2020-12-06",
    sign,
    read_error,
};

/// Bodies of entities and tables.
pub(crate) const ODATA: Format = Format {
    accept: "application/json;odata=minimalmetadata",
    content_type: "application/json",
    headers: &[("dataserviceversion", "3.0"), ("maxdataserviceversion", "3.0")],
};

impl ConnectionString {
    /// Reads a connection string for the table service. Names are compared without case, and settings of other services
    /// are skipped.
    ///
    /// ```
    /// use tavola_client::ConnectionString;
    ///
    /// let text = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=a2V5;\
    ///             EndpointSuffix=core.windows.net";
    /// let parsed = ConnectionString::for_tables(text).unwrap();
    /// assert_eq!(parsed.endpoint.as_str(), "https://contoso.table.core.windows.net/");
    /// assert!(ConnectionString::for_tables("AccountName=contoso").is_err(), "no credential");
    /// ```
    ///
    /// # Errors
    /// A part without `=`, a name given twice, and settings that do not add up to an endpoint and a credential.
    pub fn for_tables(text: &str) -> Result<Self> {
        Self::parse(&TABLE_SERVICE, text)
    }
}

/// Checks a table's name before it goes into a URL.
pub(super) fn check_table_name(name: &str) -> Result<()> {
    TableName::parse_addressed(name)
        .map(|_| ())
        .map_err(|error| conversion(format!("{} name={name}", error.message())))
}

/// Tables sign less than their siblings: no headers of the service, and of the query `comp` alone.
fn sign(request: &Request, date: &str, credential: &SharedKeyCredential) -> Result<String> {
    let comp = request.url().query_pairs().find(|(name, _)| name == "comp");
    let signed = SignedRequest {
        verb: request.method().as_str(),
        content_md5: "",
        content_type: request.headers().get_optional_str(&CONTENT_TYPE).unwrap_or(""),
        date,
        account: credential.account(),
        raw_path: request.url().path(),
        comp: comp.as_ref().map(|(_, value)| &**value),
    };
    Ok(signed.sign(Scheme::SharedKey, credential.key()))
}

/// Errors are `odata.error` in JSON, or XML for what is asked in XML.
pub(super) fn read_error(body: &[u8]) -> Option<(String, String)> {
    read_odata_error(body).or_else(|| xml::error::parse(body))
}

fn read_odata_error(body: &[u8]) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(rename = "odata.error")]
        error: Detail,
    }
    #[derive(Deserialize)]
    struct Detail {
        code: String,
        message: Message,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Message {
        Localized { value: String },
        Plain(String),
    }
    let document: Document = serde_json::from_slice(body).ok()?;
    let message = match document.error.message {
        Message::Localized { value } | Message::Plain(value) => value,
    };
    Some((document.error.code, message))
}

#[cfg(test)]
mod tests {
    use crate::core::credential::DEVELOPMENT_KEY;
    use crate::{ConnectionString, Credential};

    fn shape(text: &str) -> (String, &'static str) {
        let parsed = ConnectionString::for_tables(text).unwrap();
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
        let parsed = ConnectionString::for_tables("UseDevelopmentStorage=true").unwrap();
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
            let error = ConnectionString::for_tables(text).unwrap_err().to_string();
            assert!(!error.contains("c2VjcmV0") && !error.contains("*secret*"), "{error}");
            assert!(!error.contains("nonsense-secret"), "{error}");
        }
    }
}
