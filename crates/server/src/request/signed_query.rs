//! The signed part of the last query of a connection, and what a shared access signature in it was found to mean.
//!
//! Clients with such a signature send the same text with every request, alone or with options before or behind it. It is
//! not decoded again, and its token not looked for; time, address, protocol and stored policy are asked anew each time.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use tavola_wire::auth::is_same_secret;
use tavola_wire::auth::sas::VerifiedSas;
use tavola_wire::uri::QueryString;

use crate::error::Result;

/// Longer ones are not kept: there may be thousands of connections.
const SIGNED_BYTES_MAX: usize = 1024;

/// The keys that a token was verified with: those of an account until they are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeysId(pub(crate) u64);

/// What clients say of messages, as all of them spell it.
const MESSAGE_OPTIONS: [&str; 6] =
    ["messagettl", "numofmessages", "peekonly", "popreceipt", "timeout", "visibilitytimeout"];

/// Whether a parameter may be a field of a token. The options of OData, of paging and of messages are not.
pub(crate) fn is_token_field(name: &str) -> bool {
    !name.starts_with('$') && !name.starts_with("Next") && !MESSAGE_OPTIONS.contains(&name)
}

/// The query of a request, decoded for it or for one before it.
pub(crate) enum HeadQuery<'a> {
    Known(&'a QueryString<'static>),
    Parsed(QueryString<'a>),
}

impl<'a> Deref for HeadQuery<'a> {
    type Target = QueryString<'a>;

    fn deref(&self) -> &QueryString<'a> {
        match self {
            Self::Known(query) => query,
            Self::Parsed(query) => query,
        }
    }
}

/// A part of a query that holds a signature, and no options.
struct SignedPart {
    raw: String,
    query: QueryString<'static>,
    keys: KeysId,
    token: Arc<VerifiedSas<'static>>,
}

/// A signature opens doors, so it is not printed.
impl fmt::Debug for SignedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedPart(..)")
    }
}

#[derive(Debug, Default)]
pub(crate) struct LastSignedQuery(Mutex<Option<Arc<SignedPart>>>);

impl LastSignedQuery {
    /// What is known of this query, if it is signed like the last one.
    pub(crate) fn recall<'a>(&self, raw: &'a str) -> Option<RecalledQuery<'a>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let signed = last.filter(|last| last.raw.len() <= raw.len())?;
        let options = signed.options_of(raw)?;
        Some(RecalledQuery { signed, options })
    }

    /// Keeps the signed part of a query whose token has been verified.
    pub(crate) fn remember(&self, raw: &str, keys: KeysId, token: &Arc<VerifiedSas<'static>>) {
        let raw = signed_part(raw);
        if raw.len() > SIGNED_BYTES_MAX {
            return;
        }
        let Ok(query) = QueryString::parse(raw) else { return };
        if !query.iter().all(|(name, _)| is_token_field(name)) {
            return;
        }
        let (raw, query) = (raw.to_owned(), query.into_owned());
        let signed = SignedPart { raw, query, keys, token: token.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(signed));
    }
}

/// The query without the options at its start and at its end.
fn signed_part(raw: &str) -> &str {
    let is_option = |text: &str| parse_options(text).is_some();
    let mut part = raw;
    while let Some((_, rest)) = part.split_once('&').filter(|(first, _)| is_option(first)) {
        part = rest;
    }
    while let Some((rest, _)) = part.rsplit_once('&').filter(|(_, last)| is_option(last)) {
        part = rest;
    }
    part
}

impl SignedPart {
    /// What a query holds beside this part; `None` if it does not hold it, or holds more fields of a signature.
    fn options_of<'a>(&self, raw: &'a str) -> Option<Options<'a>> {
        // A proxy may send the requests of many through one connection.
        let is_signed = |text: &str| is_same_secret(self.raw.as_bytes(), text.as_bytes());
        if self.raw.len() == raw.len() {
            return is_signed(raw).then_some(Options::None);
        }
        let before = raw.split_at_checked(raw.len() - self.raw.len());
        let before = before.and_then(|(rest, end)| Some((rest.strip_suffix('&')?, end)));
        if let Some((rest, _)) = before.filter(|(_, end)| is_signed(end)) {
            return parse_options(rest).map(Options::Before);
        }
        let (start, rest) = raw.split_at_checked(self.raw.len())?;
        let rest = rest.strip_prefix('&').filter(|_| is_signed(start))?;
        parse_options(rest).map(Options::Behind)
    }
}

fn parse_options(raw: &str) -> Option<QueryString<'_>> {
    let options = QueryString::parse(raw).ok()?;
    let are_options = !options.iter().any(|(name, _)| is_token_field(name));
    are_options.then_some(options)
}

/// A query that is signed like one before it.
#[derive(Debug)]
pub(crate) struct RecalledQuery<'a> {
    signed: Arc<SignedPart>,
    options: Options<'a>,
}

#[derive(Debug)]
enum Options<'a> {
    None,
    Before(QueryString<'a>),
    Behind(QueryString<'a>),
}

impl RecalledQuery<'_> {
    /// The whole query, as it would have been read.
    ///
    /// # Errors
    /// 400 `InvalidInput` for too many parameters.
    pub(crate) fn query(&self) -> Result<HeadQuery<'_>> {
        let signed = &self.signed.query;
        Ok(match &self.options {
            Options::None => HeadQuery::Known(signed),
            Options::Before(options) => HeadQuery::Parsed(QueryString::joined(options, signed)?),
            Options::Behind(options) => HeadQuery::Parsed(QueryString::joined(signed, options)?),
        })
    }

    /// The token, which was verified with these keys alone.
    pub(crate) fn token_for(&self, keys: KeysId) -> Option<&Arc<VerifiedSas<'static>>> {
        (self.signed.keys == keys).then_some(&self.signed.token)
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::Ticks;
    use tavola_wire::auth::AccountKey;
    use tavola_wire::auth::sas::{AccountSasSpec, Addressed, Permissions, ResourceTypes};

    use super::*;
    use crate::auth::sas_cache::SasCache;

    fn remember(last: &LastSignedQuery, raw: &str, keys_id: KeysId) {
        let keys = [AccountKey::from_bytes(b"secret")];
        let query = QueryString::parse(raw).unwrap();
        let token =
            SasCache::default().verified(Addressed::Table, &query, "acct", &keys).unwrap().unwrap();
        last.remember(raw, keys_id, &token);
    }

    fn sas() -> String {
        let key = AccountKey::from_bytes(b"secret");
        AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, Ticks::MAX).sign("acct", &key)
    }

    #[track_caller]
    fn assert_read_alike(last: &LastSignedQuery, raw: &str) {
        let recalled = last.recall(raw).expect("known");
        let expected = QueryString::parse(raw).unwrap();
        assert!(recalled.query().unwrap().iter().eq(expected.iter()), "{raw}");
    }

    #[test]
    fn the_same_query_is_known_for_its_account_and_no_other_is() {
        let (last, sas) = (LastSignedQuery::default(), sas());
        assert!(last.recall(&sas).is_none());
        remember(&last, &sas, KeysId(7));
        let known = last.recall(&sas).unwrap();
        assert!(known.token_for(KeysId(7)).is_some());
        assert!(known.token_for(KeysId(8)).is_none());
        assert_read_alike(&last, &sas);
        for place in 0..sas.len() {
            let mut changed = sas.clone().into_bytes();
            changed[place] ^= 1;
            let changed = str::from_utf8(&changed).unwrap();
            for raw in
                [changed.to_owned(), format!("$top=1&{changed}"), format!("{changed}&$top=1")]
            {
                assert!(last.recall(&raw).is_none(), "byte {place}");
            }
        }
        for other in ["", "&", &sas[1..], &sas[..sas.len() - 1], &format!("{sas}{sas}")] {
            assert!(last.recall(other).is_none(), "{other}");
        }
    }

    /// The first query may have options already, and the next one others.
    #[test]
    fn options_may_stand_before_and_behind() {
        let sas = sas();
        let filter = "$filter=a%20eq%20'b%26'&%24top=1";
        let receipt = "popreceipt=AgAAAAMAAAA%3D&timeout=5&visibilitytimeout=30";
        for first in [sas.clone(), format!("{filter}&{sas}"), format!("{sas}&{filter}")] {
            let last = LastSignedQuery::default();
            remember(&last, &first, KeysId(7));
            let paging = "NextPartitionKey=a&NextRowKey=b";
            for options in [filter, receipt, paging, "$select=", "peekonly=true"] {
                assert_read_alike(&last, &format!("{options}&{sas}"));
                assert_read_alike(&last, &format!("{sas}&{options}"));
            }
            assert_read_alike(&last, &sas);
        }
    }

    /// The first of two parameters counts, so that one before the signed part would change it.
    #[test]
    fn what_may_be_a_field_of_a_signature_is_no_option() {
        let (last, sas) = (LastSignedQuery::default(), sas());
        remember(&last, &sas, KeysId(7));
        for more in ["sp=raud", "%73p=raud", "$top=1&tn=x", "sig=x", "comp=acl", "%", "a"] {
            assert!(last.recall(&format!("{more}&{sas}")).is_none(), "{more}");
            assert!(last.recall(&format!("{sas}&{more}")).is_none(), "{more}");
        }
        // Cut elsewhere than between parameters.
        for more in ["$filter=a", "$filter=%26", "$filter"] {
            assert!(last.recall(&format!("{more}{sas}")).is_none(), "{more}");
            assert!(last.recall(&format!("{sas}{more}")).is_none(), "{more}");
        }
        assert!(last.recall(&format!("\u{e9}{sas}")).is_none());
    }

    #[test]
    fn long_ones_and_those_amid_options_are_not_kept() {
        let sas = sas();
        for raw in [format!("{sas}&a={}", "x".repeat(2000)), sas.replace("&sp=", "&$top=1&sp=")] {
            let last = LastSignedQuery::default();
            remember(&last, &raw, KeysId(7));
            assert!(last.recall(&raw).is_none());
        }
    }

    #[test]
    fn too_many_parameters_are_refused_as_ever() {
        let (last, sas) = (LastSignedQuery::default(), sas());
        remember(&last, &sas, KeysId(7));
        let raw = format!("{}&{sas}", ["$a=b"; 60].join("&"));
        assert!(last.recall(&raw).unwrap().query().is_err());
    }

    #[test]
    fn a_signature_is_not_printed() {
        let last = LastSignedQuery::default();
        remember(&last, &sas(), KeysId(7));
        let shown = format!("{last:?} {:?}", last.recall(&sas()));
        assert!(shown.contains("SignedPart(..)") && !shown.contains("sig="), "{shown}");
    }
}
