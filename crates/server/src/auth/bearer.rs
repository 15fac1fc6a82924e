//! Bearer tokens (OpenID Connect): the signature by the issuer's keys, issuer, audience and lifetime, and what
//! the token's roles allow. Off unless configured.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::HeaderValue;
use http::header::WWW_AUTHENTICATE;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use tavola_wire::auth::sas::{Grant, Permissions, ResourceTypes};
use tavola_wire::{ErrorCode, RefusalReason, Service, ServiceVersion, StorageError};

use super::audience::Audiences;
use super::permit::Identity;
use super::token_signature;
use crate::auth::jwks;
use crate::config::{BearerConfig, KeySource, default_roles};
use crate::error::Result;
use crate::request::head::RequestHead;
use crate::request::reply::Reply;

/// Clocks of issuers differ from ours by this much.
const LEEWAY_SECONDS: u64 = 60;
/// The keys are fetched anew for a token with an unknown key, but not more often than this.
const REFRESH_PAUSE: Duration = Duration::from_secs(60);
/// The same for keys from a file.
const REREAD_PAUSE: Duration = Duration::from_secs(1);
/// Algorithms that prove who signed. Never `none`, never a shared secret.
const ALGORITHMS: [Algorithm; 8] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
];

/// Checks bearer tokens.
#[derive(Debug)]
pub(crate) struct BearerVerifier {
    config: BearerConfig,
    audiences: Audiences,
    roles: BTreeMap<String, Permissions>,
    keys: Arc<RwLock<Keys>>,
}

#[derive(Debug)]
struct Keys {
    set: JwkSet,
    /// When they were last fetched anew, for a token with an unknown key.
    refreshed: Option<Instant>,
}

/// Why tokens cannot be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum BearerError {
    #[error("role {role:?} has permissions {letters:?}; expected letters of \"raudlcwp\"")]
    Permissions { role: String, letters: String },
    #[error("cannot load the issuer's keys")]
    Keys(#[from] jwks::JwksError),
}

#[derive(Debug, Deserialize)]
struct Claims {
    #[serde(default)]
    roles: Vec<String>,
}

impl BearerVerifier {
    pub(crate) async fn new(config: BearerConfig) -> Result<Self, BearerError> {
        let mut roles = BTreeMap::new();
        for (role, letters) in &config.roles {
            let permissions = Permissions::parse_account(letters).ok_or_else(|| {
                BearerError::Permissions { role: role.clone(), letters: letters.clone() }
            })?;
            roles.insert(role.clone(), permissions);
        }
        token_signature::install();
        let set = jwks::load(&config.keys).await?;
        let keys = Arc::new(RwLock::new(Keys { set, refreshed: None }));
        let audiences = Audiences::new(&config.audiences);
        Ok(Self { config, audiences, roles, keys })
    }

    /// What the bearer of this token may do.
    async fn grant(&self, head: &RequestHead<'_>, token: &str) -> Result<Grant> {
        let audiences = self.audiences.of(head.service, &head.address.account_name());
        let claims = match self.claims(token, &audiences) {
            Err(Unverified::UnknownKey) if self.refresh().await => self.claims(token, &audiences),
            claims => claims,
        };
        let claims = claims.map_err(|unverified| {
            let refused = refused(unverified.reason(), unverified.to_string());
            refused.authentication_detail(unverified.detail())
        })?;
        let permissions = claims
            .roles
            .iter()
            .filter_map(|role| self.roles.get(role).copied().or_else(|| default_role(head, role)))
            .fold(Permissions::NONE, |all, role| all | role);
        Ok(Grant::Account { resource_types: ResourceTypes::ALL, permissions })
    }

    fn claims(&self, token: &str, audiences: &[String]) -> Result<Claims, Unverified> {
        let header = decode_header(token)?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(Unverified::Algorithm);
        }
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(audiences);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let key = self.key(header.kid.as_deref())?;
        Ok(decode::<Claims>(token, &key, &validation)?.claims)
    }

    fn key(&self, kid: Option<&str>) -> Result<DecodingKey, Unverified> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let jwk = match kid {
            Some(kid) => keys.set.find(kid),
            None if keys.set.keys.len() == 1 => keys.set.keys.first(),
            None => None,
        };
        let jwk = jwk.ok_or(Unverified::UnknownKey)?;
        if matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_)) {
            return Err(Unverified::Algorithm);
        }
        Ok(DecodingKey::from_jwk(jwk)?)
    }

    /// Fetches the keys again, because issuers change them; whether they were fetched.
    async fn refresh(&self) -> bool {
        let pause = match self.config.keys {
            KeySource::File(_) => REREAD_PAUSE,
            KeySource::Url(_) => REFRESH_PAUSE,
        };
        let due = {
            let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
            let due = keys.refreshed.is_none_or(|refreshed| refreshed.elapsed() >= pause);
            if due {
                keys.refreshed = Some(Instant::now());
            }
            due
        };
        due && self.reload().await
    }

    /// In a task of its own: a client that goes away ends its request, and must not end this, or one who comes back each
    /// time it may be done would keep new keys from everybody.
    async fn reload(&self) -> bool {
        let (source, keys) = (self.config.keys.clone(), Arc::clone(&self.keys));
        let reloading = tokio::spawn(async move {
            match jwks::load(&source).await {
                Ok(set) => {
                    keys.write().unwrap_or_else(PoisonError::into_inner).set = set;
                    true
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot fetch the issuer's keys");
                    false
                }
            }
        });
        reloading.await.unwrap_or(false)
    }
}

#[derive(Debug, thiserror::Error)]
enum Unverified {
    #[error("no key of the issuer has the token's key id")]
    UnknownKey,
    #[error("the token's algorithm is not accepted")]
    Algorithm,
    #[error("{0}")]
    Invalid(#[from] jsonwebtoken::errors::Error),
}

impl Unverified {
    fn reason(&self) -> RefusalReason {
        match self {
            Self::UnknownKey => RefusalReason::WrongKey,
            Self::Algorithm => RefusalReason::MalformedCredentials,
            Self::Invalid(error) => match error.kind() {
                ErrorKind::InvalidSignature => RefusalReason::WrongKey,
                ErrorKind::ExpiredSignature => RefusalReason::Expired,
                ErrorKind::ImmatureSignature => RefusalReason::NotYetValid,
                ErrorKind::InvalidIssuer
                | ErrorKind::InvalidAudience
                | ErrorKind::MissingRequiredClaim(_) => RefusalReason::BearerClaims,
                _ => RefusalReason::MalformedCredentials,
            },
        }
    }

    /// In the words of the live service, as far as they are known.
    fn detail(&self) -> &'static str {
        match self {
            Self::UnknownKey | Self::Algorithm => "Signature validation failed.",
            Self::Invalid(error) => match error.kind() {
                ErrorKind::InvalidSignature => "Signature validation failed.",
                ErrorKind::ExpiredSignature => "Lifetime validation failed. The token is expired.",
                ErrorKind::ImmatureSignature => {
                    "Lifetime validation failed. The token is not yet valid."
                }
                ErrorKind::InvalidIssuer => "Issuer validation failed. Issuer did not match.",
                ErrorKind::InvalidAudience => "Audience validation failed. Audience did not match.",
                _ => "The access token was missing or malformed.",
            },
        }
    }
}

/// Checks the token of a request.
///
/// # Errors
/// 401 `InvalidAuthenticationInfo` for a bad one, or for any when tokens are not configured; 403
/// `AuthenticationFailed` in versions that do not know challenges.
pub(crate) async fn authenticate(
    verifier: Option<&BearerVerifier>,
    head: &RequestHead<'_>,
    token: &str,
) -> Result<Identity> {
    let verified = verify(verifier, head, token).await;
    verified
        .map(Identity::Bearer)
        .map_err(|error| if knows_challenges(head) { error } else { without_challenge(&error) })
}

fn knows_challenges(head: &RequestHead<'_>) -> bool {
    match head.version {
        Some(version) => version >= ServiceVersion::FIRST_WITH_CHALLENGE,
        None => head.service.defaults_to_newest_version(),
    }
}

/// What a role of Azure's own allows at the service that is asked.
fn default_role(head: &RequestHead<'_>, role: &str) -> Option<Permissions> {
    // None of the roles for queues is for the service itself.
    if head.service == Service::Queue && head.query.parameter("restype").is_some() {
        return None;
    }
    let roles = default_roles(head.service);
    let (_, letters) = roles.iter().find(|(name, _)| *name == role)?;
    Permissions::parse_account(letters)
}

async fn verify(
    verifier: Option<&BearerVerifier>,
    head: &RequestHead<'_>,
    token: &str,
) -> Result<Grant> {
    let Some(verifier) = verifier else {
        let text = "bearer tokens are not configured";
        return Err(refused(RefusalReason::BearerNotConfigured, text).authentication_detail(text));
    };
    if !head.peer.tls && !verifier.config.allow_http {
        let text = "bearer tokens are taken over TLS alone";
        return Err(refused(RefusalReason::Protocol, text).authentication_detail(text));
    }
    verifier.grant(head, token).await
}

fn refused(reason: RefusalReason, detail: impl Into<String>) -> StorageError {
    let detail: String = detail.into();
    let text = ErrorCode::NoAuthenticationInformation.message();
    StorageError::with_detail(ErrorCode::InvalidAuthenticationInfo, text)
        .status_override(401)
        .caused_by(detail)
        .refused_for(reason)
}

/// The same for a version that does not know challenges. What it is told of the cause is nothing in its message, as
/// recorded of tables.
fn without_challenge(error: &StorageError) -> StorageError {
    let detail = std::error::Error::source(error).map_or(String::new(), ToString::to_string);
    let reason = error.refusal().unwrap_or(RefusalReason::MalformedCredentials);
    StorageError::new(ErrorCode::AuthenticationFailed)
        .caused_by(detail)
        .refused_for(reason)
        .with_elements_of(error)
}

/// Tells a client without valid credentials where to get some.
pub(crate) fn challenge(verifier: Option<&BearerVerifier>, reply: &mut Reply) {
    let challenge = match verifier {
        Some(verifier) => {
            let resource = verifier.config.audiences.first().map_or("", String::as_str);
            let issuer = verifier.config.issuer.trim_end_matches('/');
            format!("Bearer authorization_uri={issuer}/oauth2/authorize resource_id={resource}")
        }
        None => "SharedKey".to_owned(),
    };
    if let Ok(challenge) = HeaderValue::try_from(challenge) {
        reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    const OLD: &str = r#"{"keys":[]}"#;
    const NEW: &str = r#"{"keys":[{"kty":"RSA","kid":"new","n":"AQAB","e":"AQAB"}]}"#;

    /// Whoever asked has gone before the keys were there; the next one finds them.
    #[tokio::test]
    async fn keys_are_fetched_to_the_end_although_nobody_waits() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), OLD).unwrap();
        let config = BearerConfig {
            issuer: "issuer".into(),
            audiences: vec!["audience".into()],
            keys: KeySource::File(file.path().into()),
            roles: BTreeMap::new(),
            allow_http: true,
        };
        let verifier = BearerVerifier::new(config).await.unwrap();
        std::fs::write(file.path(), NEW).unwrap();
        assert!(verifier.refresh().now_or_never().is_none(), "still reading");
        for _ in 0..1000 {
            if verifier.key(Some("new")).is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the new keys were never taken");
    }
}
