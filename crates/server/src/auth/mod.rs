//! Who asks, and what they may do.

pub(crate) mod accounts;
mod audience;
pub(crate) mod bearer;
pub(crate) mod cors;
pub(crate) mod jwks;
pub(crate) mod permit;
pub(crate) mod sas_cache;
mod service_settings;
mod token_signature;

use std::sync::Arc;

use http::HeaderName;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use tavola_wire::auth::sas::{Addressed, RequestOrigin, VerifiedSas};
use tavola_wire::auth::shared_key::{
    Authorization, LongSignedRequest, Scheme, SignedRequest, check_date, signed_date,
};
use tavola_wire::auth::{Signature, SignedIdentifier};
use tavola_wire::{ErrorCode, RefusalReason, Service, StorageError, Ticks};

use crate::clock::Clock;
use crate::error::Result;
use crate::request::head::RequestHead;
use crate::request::signed_query::LastSignedQuery;
use accounts::{Account, Accounts};
use bearer::BearerVerifier;
use permit::Identity;

const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// Finds out who asks.
#[derive(Debug)]
pub(crate) struct Authenticator {
    pub(crate) accounts: Accounts,
    /// None if bearer tokens are not configured.
    pub(crate) bearer: Option<BearerVerifier>,
    pub(crate) clock: Arc<Clock>,
}

/// What a request has shown.
pub(crate) enum Credentials {
    Known(Identity),
    /// A signature that is the account's. What it allows may depend on a stored policy: see [`Authenticator::grant`].
    Signature(Arc<VerifiedSas<'static>>),
}

impl Authenticator {
    /// Finds out who asks for what is addressed. A header wins over a signature in the URL.
    ///
    /// # Errors
    /// 400 for what cannot be read, 401 for no credentials or a bad token, 403 for wrong ones.
    pub(crate) async fn authenticate(
        &self,
        last: &LastSignedQuery,
        account: &Account,
        head: &RequestHead<'_>,
        addressed: Addressed<'_>,
    ) -> Result<Credentials> {
        let Some(header) = head.header(&AUTHORIZATION) else {
            return sas_token(last, account, head, addressed).map(Credentials::Signature);
        };
        let identity = match Authorization::parse(header)? {
            Authorization::SharedKey { scheme, account: named, signature } => {
                if named != account.name {
                    return Err(StorageError::new(ErrorCode::AuthenticationFailed)
                        .caused_by(format!("the Authorization header names the account {named:?}"))
                        .authentication_detail("The Authorization header names another account.")
                        .refused_for(RefusalReason::AccountMismatch));
                }
                shared_key(account, head, scheme, &signature, self.clock.now())?;
                Identity::Owner
            }
            Authorization::Bearer(token) => {
                bearer::authenticate(self.bearer.as_ref(), head, token).await?
            }
        };
        Ok(Credentials::Known(identity))
    }

    /// What the holder of a signature may do: now, from there, and under the policy that it refers to. `policies`: those
    /// of what it is for.
    ///
    /// # Errors
    /// 403 for a signature that is not valid now, from there, or under this policy.
    pub(crate) fn grant(
        &self,
        head: &RequestHead<'_>,
        token: &VerifiedSas<'static>,
        policies: &[SignedIdentifier],
    ) -> Result<Identity> {
        let origin = RequestOrigin {
            now: self.clock.now(),
            client: head.peer.address.ip(),
            https: head.peer.tls,
        };
        token.grant(&origin, policies).map(Identity::Sas)
    }
}

/// Checks the signature of a request with one of the account's keys, over the string that its service signs.
fn shared_key(
    account: &Account,
    head: &RequestHead<'_>,
    scheme: Scheme,
    signature: &Signature,
    now: Ticks,
) -> Result<()> {
    let (x_ms_date, date) = (head.text(&X_MS_DATE), head.text(&DATE));
    let date = signed_date(x_ms_date.as_deref(), date.as_deref())?;
    check_date(date, now)?;
    match head.service {
        Service::Table => {
            let (content_md5, content_type) = (head.text(&CONTENT_MD5), head.text(&CONTENT_TYPE));
            let request = SignedRequest {
                verb: head.method,
                content_md5: content_md5.as_deref().unwrap_or_default(),
                content_type: content_type.as_deref().unwrap_or_default(),
                date,
                account: &account.name,
                raw_path: head.raw_path,
                comp: head.query.comp(),
            };
            request.verify(scheme, signature, &account.keys)
        }
        Service::Blob | Service::Queue => {
            let (path, query) = (head.raw_path, head.raw_query());
            LongSignedRequest::new(head.method, &account.name, path, query, head.headers())?.verify(
                scheme,
                signature,
                &account.keys,
            )
        }
    }
}

/// The token in the query: that of the request before, one that was verified before, or verified now.
fn sas_token(
    last: &LastSignedQuery,
    account: &Account,
    head: &RequestHead<'_>,
    addressed: Addressed<'_>,
) -> Result<Arc<VerifiedSas<'static>>> {
    let recalled = head.recalled.and_then(|query| query.token_for(account.keys_id));
    if let Some(token) = recalled.filter(|token| token.is_for(&addressed)) {
        return Ok(token.clone());
    }
    let token = account.tokens.verified(addressed, &head.query, &account.name, &account.keys)?;
    let Some(token) = token else {
        return Err(ErrorCode::NoAuthenticationInformation.into());
    };
    last.remember(head.raw_query(), account.keys_id, &token);
    Ok(token)
}
