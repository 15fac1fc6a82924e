//! Who asks: an account's key, a shared access signature, or a token of Microsoft Entra.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::{Secret, TokenCredential};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};
use tavola_wire::auth::{self, AccountKey};

use super::result::{Result, conversion};

/// The account of the storage emulator, which Tavola and Azurite have too.
pub const DEVELOPMENT_ACCOUNT: &str = auth::DEVELOPMENT_ACCOUNT;
/// The public key of the storage emulator's account.
pub const DEVELOPMENT_KEY: &str = auth::DEVELOPMENT_KEY;

/// Any of the ways to prove who asks.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{Credential, SasCredential, TableClient};
///
/// // Each kind of credential becomes this one by itself, so that a function can take any.
/// fn people(credential: impl Into<Credential>) -> azure_core::Result<TableClient> {
///     TableClient::new("https://contoso.table.core.windows.net", "people", credential, None)
/// }
///
/// let people = people(SasCredential::new("sv=2019-02-02&tn=people&sp=r&se=2030-01-01&sig=AAAA"))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Credential {
    /// The account's key: may do everything, and can make signatures for others.
    SharedKey(SharedKeyCredential),
    /// A signature that somebody with the key made.
    Sas(SasCredential),
    /// A token of Microsoft Entra, from any credential of `azure_identity`. Needs an HTTPS endpoint.
    Token(Arc<dyn TokenCredential>),
}

impl From<SharedKeyCredential> for Credential {
    fn from(credential: SharedKeyCredential) -> Self {
        Self::SharedKey(credential)
    }
}

impl From<SasCredential> for Credential {
    fn from(credential: SasCredential) -> Self {
        Self::Sas(credential)
    }
}

impl From<Arc<dyn TokenCredential>> for Credential {
    fn from(credential: Arc<dyn TokenCredential>) -> Self {
        Self::Token(credential)
    }
}

impl<T: TokenCredential + 'static> From<Arc<T>> for Credential {
    fn from(credential: Arc<T>) -> Self {
        Self::Token(credential)
    }
}

/// The name and a key of an account.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{SharedKeyCredential, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
///
/// let credential = SharedKeyCredential::new(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)?;
/// assert_eq!(credential.account(), "devstoreaccount1");
/// // The same, shorter.
/// assert_eq!(SharedKeyCredential::development().account(), DEVELOPMENT_ACCOUNT);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SharedKeyCredential {
    account: Arc<str>,
    key: AccountKey,
}

impl SharedKeyCredential {
    /// Takes the key as connection strings carry it, in base64.
    ///
    /// # Errors
    /// A key that is no base64.
    pub fn new(account: impl AsRef<str>, key: &str) -> Result<Self> {
        let key = AccountKey::from_base64(key).map_err(|error| conversion(error.to_string()))?;
        Ok(Self { account: account.as_ref().into(), key })
    }

    /// The credential that every storage emulator and every new Tavola takes.
    pub fn development() -> Self {
        Self::new(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY).expect("the public key is base64")
    }

    /// The account's name.
    pub fn account(&self) -> &str {
        &self.account
    }

    pub(crate) fn key(&self) -> &AccountKey {
        &self.key
    }
}

impl fmt::Debug for SharedKeyCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKeyCredential")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

/// A shared access signature: the query string that somebody with the account's key made.
///
/// ```
/// use tavola_client::SasCredential;
///
/// // A question mark in front is tolerated, because portals copy it along.
/// let credential = SasCredential::new("?sv=2019-02-02&tn=people&sp=r&se=2030-01-01&sig=AAAA");
/// assert_eq!(format!("{credential:?}"), "SasCredential(Secret)");
/// ```
#[derive(Clone, Debug)]
pub struct SasCredential(Secret);

impl SasCredential {
    /// Takes the token as it was handed over, percent-encoded.
    pub fn new(token: impl AsRef<str>) -> Self {
        let token = token.as_ref().trim();
        Self(Secret::new(token.strip_prefix('?').unwrap_or(token).to_owned()))
    }

    pub(crate) fn query(&self) -> &str {
        self.0.secret()
    }
}

/// Appends the signature to the URL, once for all attempts.
#[derive(Debug)]
pub(crate) struct SasPolicy(pub SasCredential);

#[async_trait]
impl Policy for SasPolicy {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let query = match request.url().query() {
            Some(query) if !query.is_empty() => format!("{query}&{}", self.0.query()),
            _ => self.0.query().to_owned(),
        };
        request.url_mut().set_query(Some(&query));
        next[0].send(context, request, &next[1..]).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use azure_core::credentials::{AccessToken, TokenRequestOptions};
    use azure_core::http::headers::{AUTHORIZATION, Headers};
    use azure_core::http::{AsyncRawResponse, ClientOptions, HttpClient, StatusCode, Transport};
    use azure_core::time::{Duration, OffsetDateTime};

    use super::*;
    use crate::{TableClient, TableClientOptions};

    /// Keeps what was sent, and answers that there is such a table.
    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<(String, Option<String>)>>);

    #[async_trait]
    impl HttpClient for Recorder {
        async fn execute_request(&self, request: &Request) -> Result<AsyncRawResponse> {
            let authorization = request.headers().get_optional_str(&AUTHORIZATION);
            let sent = (request.url().to_string(), authorization.map(str::to_owned));
            self.0.lock().unwrap().push(sent);
            Ok(AsyncRawResponse::from_bytes(StatusCode::Ok, Headers::new(), "{}"))
        }
    }

    /// A credential of Entra that tells which scope it was asked for.
    #[derive(Debug)]
    struct Entra;

    #[async_trait]
    impl TokenCredential for Entra {
        async fn get_token(
            &self,
            scopes: &[&str],
            _: Option<TokenRequestOptions<'_>>,
        ) -> Result<AccessToken> {
            let expiry = OffsetDateTime::now_utc() + Duration::hours(1);
            Ok(AccessToken::new(scopes.join("+"), expiry))
        }
    }

    async fn sent(
        endpoint: &str,
        credential: impl Into<Credential>,
    ) -> Result<(String, Option<String>)> {
        let recorder = Arc::new(Recorder::default());
        let options = TableClientOptions {
            client_options: ClientOptions {
                transport: Some(Transport::new(recorder.clone())),
                ..Default::default()
            },
            ..Default::default()
        };
        TableClient::new(endpoint, "people", credential, Some(options))?.exists(None).await?;
        let sent = recorder.0.lock().unwrap().pop();
        Ok(sent.expect("a request"))
    }

    #[tokio::test]
    async fn every_credential_shows_itself_in_its_way() {
        let endpoint = "https://acct.table.core.windows.net";
        let path = format!("{endpoint}/Tables('people')");
        let (url, authorization) =
            sent(endpoint, SharedKeyCredential::development()).await.unwrap();
        assert_eq!(url, path);
        assert!(authorization.unwrap().starts_with("SharedKey devstoreaccount1:"));

        let sas = SasCredential::new("?sv=2019-02-02&sig=a%2Fb%3D");
        let (url, authorization) = sent(endpoint, sas).await.unwrap();
        assert_eq!(url, format!("{path}?sv=2019-02-02&sig=a%2Fb%3D"));
        assert_eq!(authorization, None);

        let (url, authorization) = sent(endpoint, Arc::new(Entra)).await.unwrap();
        assert_eq!(url, path);
        assert_eq!(authorization.as_deref(), Some("Bearer https://storage.azure.com/.default"));
    }

    #[tokio::test]
    async fn a_token_is_not_sent_in_the_clear() {
        assert!(sent("http://127.0.0.1:10002/acct", Arc::new(Entra)).await.is_err());
    }
}
