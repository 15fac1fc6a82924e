//! Who asks, and what they may do.

pub(crate) mod accounts;
pub(crate) mod bearer;
pub(crate) mod cors;
pub(crate) mod jwks;
pub(crate) mod permit;
pub(crate) mod sas_cache;
mod service_settings;
pub(crate) mod signed_query;
mod token_signature;

use std::sync::Arc;

use http::HeaderName;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use tavola_wire::auth::Signature;
use tavola_wire::auth::sas::{RequestOrigin, VerifiedSas};
use tavola_wire::auth::shared_key::{
    Authorization, Scheme, SignedRequest, check_date, signed_date,
};
use tavola_wire::table::names::TableName;
use tavola_wire::{ErrorCode, Ticks};

use crate::auth::signed_query::LastSignedQuery;
use crate::clock::Clock;
use crate::error::{Result, storage_failure};
use crate::request::head::RequestHead;
use crate::storage;
use crate::storage::catalogue::{Catalogue, Table};
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
    /// For the stored policies that signatures refer to.
    pub(crate) catalogue: Arc<Catalogue<Table>>,
    pub(crate) clock: Arc<Clock>,
}

impl Authenticator {
    /// Finds out who asks. A header wins over a signature in the URL.
    ///
    /// # Errors
    /// 400 for what cannot be read, 401 for no credentials or a bad token, 403 for wrong ones.
    pub(crate) async fn authenticate(
        &self,
        last: &LastSignedQuery,
        account: &Account,
        head: &RequestHead<'_>,
    ) -> Result<Identity> {
        let Some(header) = head.header(&AUTHORIZATION) else {
            let token = sas_token(last, account, head)?;
            return self.sas(account, head, &token).await;
        };
        match Authorization::parse(header)? {
            Authorization::SharedKey { scheme, account: named, signature } => {
                if named != account.name {
                    return Err(ErrorCode::AuthenticationFailed.into());
                }
                shared_key(account, head, scheme, &signature, self.clock.now())
            }
            Authorization::Bearer(token) => {
                bearer::authenticate(self.bearer.as_ref(), head, token).await
            }
        }
    }

    /// Whether the holder of a signature may use it now, from there, under the policy that it refers to.
    async fn sas(
        &self,
        account: &Account,
        head: &RequestHead<'_>,
        token: &VerifiedSas<'static>,
    ) -> Result<Identity> {
        let origin = RequestOrigin {
            now: self.clock.now(),
            client: head.peer.address.ip(),
            https: head.peer.tls,
        };
        let Some(table) = token.policy_table() else {
            return Ok(Identity::Sas(token.grant(&origin, &[])?));
        };
        // A table that does not exist has no policies, and the token is refused for it.
        let table = match TableName::parse(table) {
            Ok(name) => match self.catalogue.find(account.id, &name).await {
                Ok(table) => Some(table),
                Err(storage::Error::NotFound) => None,
                Err(error) => return Err(storage_failure(error)),
            },
            Err(_) => None,
        };
        let policies = table.as_ref().map_or(&[][..], |table| &table.policies);
        Ok(Identity::Sas(token.grant(&origin, policies)?))
    }
}

fn shared_key(
    account: &Account,
    head: &RequestHead<'_>,
    scheme: Scheme,
    signature: &Signature,
    now: Ticks,
) -> Result<Identity> {
    let date = signed_date(head.header(&X_MS_DATE), head.header(&DATE))?;
    check_date(date, now)?;
    let request = SignedRequest {
        verb: head.method,
        content_md5: head.header(&CONTENT_MD5).unwrap_or_default(),
        content_type: head.header(&CONTENT_TYPE).unwrap_or_default(),
        date,
        account: &account.name,
        raw_path: head.raw_path,
        comp: head.query.comp(),
    };
    request.verify(scheme, signature, &account.keys)?;
    Ok(Identity::Owner)
}

/// The token in the query: that of the request before, one that was verified before, or verified now.
fn sas_token(
    last: &LastSignedQuery,
    account: &Account,
    head: &RequestHead<'_>,
) -> Result<Arc<VerifiedSas<'static>>> {
    if let Some(token) = head.recalled.and_then(|query| query.token_for(account.id)) {
        return Ok(token.clone());
    }
    let Some(token) = account.tokens.verified(&head.query, &account.name, &account.keys)? else {
        return Err(ErrorCode::NoAuthenticationInformation.into());
    };
    last.remember(head.raw_query(), account.id, &token);
    Ok(token)
}
