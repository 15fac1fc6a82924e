//! Who asks, and what they may do.

pub(crate) mod accounts;
pub(crate) mod bearer;
pub(crate) mod cors;
pub(crate) mod jwks;
pub(crate) mod sas_cache;
mod service_settings;
pub(crate) mod signed_query;
mod token_signature;

use std::sync::Arc;

use http::HeaderName;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use tavola_wire::ErrorCode;
use tavola_wire::auth::Signature;
use tavola_wire::auth::sas::{
    Access, EntityOperation, Grant, KeyRangeLimit, RequestOrigin, VerifiedSas,
};
use tavola_wire::auth::shared_key::{
    Authorization, Scheme, SignedRequest, check_date, signed_date,
};
use tavola_wire::table::names::TableName;

use crate::auth::signed_query::LastSignedQuery;
use crate::error::{Result, storage_failure};
use crate::request::head::RequestHead;
use crate::state::ServerState;
use crate::storage;
use accounts::Account;

const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// Who asks.
#[derive(Debug)]
pub(crate) enum Identity {
    /// The holder of an account key may do everything.
    Owner,
    /// The holder of a shared access signature may do what it grants.
    Sas(Grant),
    /// The holder of a bearer token may do what its roles grant.
    Bearer(Grant),
}

impl Identity {
    /// Whether the operation is allowed, as far as it does not depend on keys.
    pub(crate) fn allows(&self, access: Access<'_>) -> Result<()> {
        match self {
            Self::Owner => Ok(()),
            // The live service does not know access policies to bearers of tokens.
            Self::Bearer(_) if access == Access::TableAcl => {
                Err(ErrorCode::ResourceNotFound.into())
            }
            Self::Sas(grant) | Self::Bearer(grant) => grant.allows(access),
        }
    }

    /// Whether the operation is allowed on this entity.
    pub(crate) fn allows_key(
        &self,
        operation: EntityOperation,
        partition_key: &str,
        row_key: &str,
    ) -> Result<()> {
        match self {
            Self::Owner | Self::Bearer(_) => Ok(()),
            Self::Sas(grant) => grant.allows_key(operation, partition_key, row_key),
        }
    }

    /// What queries are narrowed to.
    pub(crate) fn key_range(&self) -> Option<&KeyRangeLimit> {
        match self {
            Self::Owner | Self::Bearer(_) => None,
            Self::Sas(grant) => grant.key_range(),
        }
    }
}

/// Finds out who asks. A header wins over a signature in the URL.
///
/// # Errors
/// 400 for what cannot be read, 401 for no credentials or a bad token, 403 for wrong ones.
pub(crate) async fn authenticate(
    state: &ServerState,
    last: &LastSignedQuery,
    account: &Account,
    head: &RequestHead<'_>,
) -> Result<Identity> {
    let Some(header) = head.header(&AUTHORIZATION) else {
        let token = sas_token(last, account, head)?;
        return sas(state, account, head, &token).await;
    };
    match Authorization::parse(header)? {
        Authorization::SharedKey { scheme, account: named, signature } => {
            if named != account.name {
                return Err(ErrorCode::AuthenticationFailed.into());
            }
            shared_key(state, account, head, scheme, &signature)
        }
        Authorization::Bearer(token) => bearer::authenticate(state, head, token).await,
    }
}

fn shared_key(
    state: &ServerState,
    account: &Account,
    head: &RequestHead<'_>,
    scheme: Scheme,
    signature: &Signature,
) -> Result<Identity> {
    let date = signed_date(head.header(&X_MS_DATE), head.header(&DATE))?;
    check_date(date, state.clock.now())?;
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

async fn sas(
    state: &ServerState,
    account: &Account,
    head: &RequestHead<'_>,
    token: &VerifiedSas<'static>,
) -> Result<Identity> {
    let origin = RequestOrigin {
        now: state.clock.now(),
        client: head.peer.address.ip(),
        https: head.peer.tls,
    };
    let Some(table) = token.policy_table() else {
        return Ok(Identity::Sas(token.grant(&origin, &[])?));
    };
    // A table that does not exist has no policies, and the token is refused for it.
    let table = match TableName::parse(table) {
        Ok(name) => match state.catalogue.find(account.id, &name).await {
            Ok(table) => Some(table),
            Err(storage::Error::NotFound) => None,
            Err(error) => return Err(storage_failure(error)),
        },
        Err(_) => None,
    };
    let policies = table.as_ref().map_or(&[][..], |table| &table.policies);
    Ok(Identity::Sas(token.grant(&origin, policies)?))
}
