//! The last query of a connection that a shared access signature was verified in.
//!
//! Clients with such a signature send the same query with nearly every request. One that equals the last is not decoded
//! again, and its token not looked for; time, address, protocol and stored policy are asked anew each time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tavola_wire::auth::is_same_secret;
use tavola_wire::auth::sas::VerifiedSas;
use tavola_wire::uri::QueryString;

use super::sas_cache::is_token_field;
use crate::layout::AccountId;

/// Longer queries are not kept: there may be thousands of connections.
const QUERY_BYTES_MAX: usize = 1024;

/// A query that holds a signature and nothing that changes from request to request.
pub struct SignedQuery {
    raw: String,
    pub query: QueryString<'static>,
    account: AccountId,
    token: Arc<VerifiedSas<'static>>,
}

impl SignedQuery {
    /// The token, which was verified with the keys of this account alone.
    pub fn token_for(&self, account: AccountId) -> Option<&Arc<VerifiedSas<'static>>> {
        (self.account == account).then_some(&self.token)
    }
}

/// A signature opens doors, so it is not printed.
impl fmt::Debug for SignedQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedQuery(..)")
    }
}

#[derive(Debug, Default)]
pub struct LastSignedQuery(Mutex<Option<Arc<SignedQuery>>>);

impl LastSignedQuery {
    /// What is known of this query, if it is the last one.
    pub fn recall(&self, raw: &str) -> Option<Arc<SignedQuery>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A proxy may send the requests of many through one connection.
        last.as_ref().filter(|last| is_same_secret(last.raw.as_bytes(), raw.as_bytes())).cloned()
    }

    /// Keeps a query whose token has been verified, if it may well come again.
    pub fn remember(
        &self,
        raw: &str,
        query: &QueryString<'_>,
        account: AccountId,
        token: &Arc<VerifiedSas<'static>>,
    ) {
        if raw.len() > QUERY_BYTES_MAX || !query.iter().all(|(name, _)| is_token_field(name)) {
            return;
        }
        let query = query.clone().into_owned();
        let known = SignedQuery { raw: raw.to_owned(), query, account, token: token.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(known));
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::Ticks;
    use tavola_wire::auth::AccountKey;
    use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes};

    use super::super::sas_cache::SasCache;
    use super::*;

    fn remember(last: &LastSignedQuery, raw: &str, account: AccountId) {
        let keys = [AccountKey::from_bytes(b"secret")];
        let query = QueryString::parse(raw).unwrap();
        let token = SasCache::default().verified(&query, "acct", &keys).unwrap().unwrap();
        last.remember(raw, &query, account, &token);
    }

    fn sas() -> String {
        let key = AccountKey::from_bytes(b"secret");
        AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, Ticks::MAX).sign("acct", &key)
    }

    #[test]
    fn the_same_query_is_known_for_its_account_and_no_other_is() {
        let (last, sas) = (LastSignedQuery::default(), sas());
        assert!(last.recall(&sas).is_none());
        remember(&last, &sas, AccountId(7));
        let known = last.recall(&sas).unwrap();
        assert!(known.token_for(AccountId(7)).is_some());
        assert!(known.token_for(AccountId(8)).is_none());
        assert!(known.query.iter().eq(QueryString::parse(&sas).unwrap().iter()));
        for place in 0..sas.len() {
            let mut changed = sas.clone().into_bytes();
            changed[place] ^= 1;
            assert!(last.recall(str::from_utf8(&changed).unwrap()).is_none(), "byte {place}");
        }
        assert!(last.recall(&sas[..sas.len() - 1]).is_none());
        assert!(last.recall(&format!("{sas}&a=b")).is_none());
        assert!(last.recall("").is_none());
    }

    #[test]
    fn what_changes_from_request_to_request_is_not_kept() {
        let (last, sas) = (LastSignedQuery::default(), sas());
        remember(&last, &sas, AccountId(7));
        let options = ["$filter=a", "%24top=1", "NextPartitionKey=a"];
        for more in options.map(str::to_owned).into_iter().chain([format!("a={:2000}", "")]) {
            let raw = format!("{sas}&{}", more.replace(' ', "x"));
            remember(&last, &raw, AccountId(7));
            assert!(last.recall(&raw).is_none(), "{more}");
            assert!(last.recall(&sas).is_some(), "{more}");
        }
    }

    #[test]
    fn a_signature_is_not_printed() {
        let last = LastSignedQuery::default();
        remember(&last, &sas(), AccountId(7));
        let shown = format!("{last:?}");
        assert!(shown.contains("SignedQuery(..)") && !shown.contains("sig"), "{shown}");
    }
}
