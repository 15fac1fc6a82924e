//! Shared access signatures that have been verified, so that each is verified once.
//!
//! Clients send the same token with every request. What is kept is that a key of the account signed it; time,
//! address, protocol and stored policy are asked anew each time.
//!
//! A token is found by what it signs without the signature, and the signature is then compared in constant time. A map
//! that is searched by signatures would tell strangers, by how long it takes, how much of one they have guessed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tavola_wire::auth::sas::{Addressed, SasToken, VerifiedSas};
use tavola_wire::auth::{AccountKey, Signature};
use tavola_wire::uri::QueryString;

use crate::error::Result;

/// Tokens remembered per account. Only verified ones get in, so strangers cannot fill it.
const TOKENS_MAX: usize = 4096;
/// A longer text is verified each time: tokens have a few hundred bytes.
const TOKEN_BYTES_MAX: usize = 2048;

#[derive(Default)]
pub(crate) struct SasCache {
    by_fields: RwLock<HashMap<String, Known>>,
}

#[derive(Clone)]
struct Known {
    signature: Signature,
    token: Arc<VerifiedSas<'static>>,
}

/// Tokens are secrets: none is shown.
impl std::fmt::Debug for SasCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SasCache(..)")
    }
}

impl SasCache {
    /// The token of a request, verified now or before; `None` when there is none.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed`.
    pub(crate) fn verified(
        &self,
        addressed: Addressed<'_>,
        query: &QueryString<'_>,
        account: &str,
        keys: &[AccountKey],
    ) -> Result<Option<Arc<VerifiedSas<'static>>>> {
        let pairs = query.iter().map(|(name, value)| (name, Cow::Borrowed(value)));
        let Some(token) = SasToken::parse(addressed, pairs)? else { return Ok(None) };
        let (fields, signature) = (token.cache_key(account), *token.signature());
        if let Some(token) = self.find(&fields, &signature) {
            return Ok(Some(token));
        }
        let token = Arc::new(token.into_owned().verify(account, keys)?);
        if fields.len() <= TOKEN_BYTES_MAX {
            let mut by_fields = self.by_fields.write().unwrap_or_else(PoisonError::into_inner);
            if by_fields.len() >= TOKENS_MAX {
                by_fields.clear();
            }
            by_fields.insert(fields, Known { signature, token: token.clone() });
        }
        Ok(Some(token))
    }

    fn find(&self, fields: &str, signature: &Signature) -> Option<Arc<VerifiedSas<'static>>> {
        let by_fields = self.by_fields.read().unwrap_or_else(PoisonError::into_inner);
        let known = by_fields.get(fields)?;
        known.signature.is_same(signature).then(|| known.token.clone())
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::Ticks;
    use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes};

    use super::*;

    #[test]
    fn a_known_token_is_known_and_a_changed_one_is_refused() {
        let keys = [AccountKey::from_bytes(b"secret")];
        let cache = SasCache::default();
        let sas = AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, Ticks::MAX)
            .sign("acct", &keys[0]);
        for _ in 0..2 {
            let query = format!("{sas}&$filter=a");
            let query = QueryString::parse(&query).unwrap();
            assert!(cache.verified(Addressed::Table, &query, "acct", &keys).unwrap().is_some());
        }
        assert_eq!(cache.by_fields.read().unwrap().len(), 1);
        let changed = sas.replace("sp=r", "sp=rw");
        let query = QueryString::parse(&changed).unwrap();
        assert!(cache.verified(Addressed::Table, &query, "acct", &keys).is_err());
        let forged = AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, Ticks::MAX)
            .sign("acct", &AccountKey::from_bytes(b"other"));
        let query = QueryString::parse(&forged).unwrap();
        assert!(
            cache.verified(Addressed::Table, &query, "acct", &keys).is_err(),
            "known fields, another signature"
        );
        let none = QueryString::parse("$top=1").unwrap();
        assert!(cache.verified(Addressed::Table, &none, "acct", &keys).unwrap().is_none());
        assert_eq!(cache.by_fields.read().unwrap().len(), 1);
    }

    /// Or the holder of one token could push those of all others out.
    #[test]
    fn a_token_is_kept_once_whatever_stands_around_it() {
        let keys = [AccountKey::from_bytes(b"secret")];
        let cache = SasCache::default();
        let sas = AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, Ticks::MAX)
            .sign("acct", &keys[0]);
        let mut reversed: Vec<_> = sas.split('&').collect();
        reversed.reverse();
        let around = ["timeout=1", "x=2", "comp=acl", "si=a", "spk=b", "ses="];
        let queries = around.map(|more| format!("{sas}&{more}"));
        for query in queries.into_iter().chain([reversed.join("&")]) {
            let query = QueryString::parse(&query).unwrap();
            assert!(cache.verified(Addressed::Table, &query, "acct", &keys).unwrap().is_some());
        }
        assert_eq!(cache.by_fields.read().unwrap().len(), 1);
    }
}
