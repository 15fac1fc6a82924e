//! Shared access signatures: a query string, then `https` or not, the client's address, the time and the stored
//! policies as XML, each on its line.
//!
//! Nobody here knows the key, so a token as it comes is a forgery. It is then signed by the rules of the reference,
//! which must open it, and what it opens is compared with what its letters say.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::IpAddr;

use tavola_wire::auth::sas::{
    Access, Addressed, EntityOperation, Grant, KeyRangeLimit, RequestOrigin, START_SKEW_TICKS,
    SasToken,
};
use tavola_wire::auth::{AccountKey, SignedIdentifier};
use tavola_wire::table::names::key_problem;
use tavola_wire::table::stored::key::push_entity_key;
use tavola_wire::uri::QueryString;
use tavola_wire::xml::acl;
use tavola_wire::{ErrorCode, StorageError, Ticks};

use crate::input::lines;
use crate::model::hmac_base64;

const ACCOUNT: &str = "acct";
const SECRET: &[u8] = b"the secret of the account";

const ENTITY_OPERATIONS: [(EntityOperation, &str); 6] = [
    (EntityOperation::Get, "r"),
    (EntityOperation::Query, "r"),
    (EntityOperation::Insert, "a"),
    (EntityOperation::Update, "u"),
    (EntityOperation::Upsert, "au"),
    (EntityOperation::Delete, "d"),
];

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [query, scheme, client, now, policies] = lines(text);
    let Ok(query) = QueryString::parse(query) else { return };
    let pairs: Vec<(&str, &str)> = query.iter().collect();
    let keys = [AccountKey::from_bytes(SECRET)];
    match token(&pairs) {
        Ok(None) => assert!(!pairs.iter().any(|(name, _)| *name == "sig")),
        Ok(Some(token)) => assert_refused(&token.verify(ACCOUNT, &keys).unwrap_err()),
        Err(error) => assert_refused(&error),
    }
    let fields = Fields(&pairs);
    let Some(string) = fields.string_to_sign() else { return };
    let signature = hmac_base64(SECRET, &string);
    let mut signed = vec![("sig", signature.as_str())];
    signed.extend(pairs.iter().filter(|(name, _)| *name != "sig"));
    let token = match token(&signed) {
        Ok(token) => token.expect("there is a signature"),
        Err(error) => return assert_refused(&error),
    };
    let verified = token.verify(ACCOUNT, &keys).expect("a signature by the rules");
    tampered(&signed, &keys);

    let origin = RequestOrigin {
        now: Ticks::parse_iso(now).unwrap_or(Ticks::parse_iso("2025-06-01").unwrap()),
        client: client.parse().unwrap_or(IpAddr::from([168, 1, 5, 65])),
        https: scheme == "https",
    };
    let policies = acl::parse(policies.as_bytes()).unwrap_or_default();
    match verified.grant(&origin, &policies) {
        Ok(grant) => granted(&Fields(&signed), &grant, &origin, &policies),
        Err(error) => assert_eq!(error.status(), 403),
    }
}

fn token<'a>(pairs: &[(&'a str, &'a str)]) -> Result<Option<SasToken<'a>>, StorageError> {
    let pairs = pairs.iter().map(|(name, value)| (*name, Cow::Borrowed(*value)));
    SasToken::parse(Addressed::Table, pairs)
}

fn assert_refused(error: &StorageError) {
    assert_eq!((error.status(), error.code()), (403, ErrorCode::AuthenticationFailed));
}

/// A token's fields by name; the first of a name counts.
struct Fields<'a>(&'a [(&'a str, &'a str)]);

impl<'a> Fields<'a> {
    fn find(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> &'a str {
        self.find(name).unwrap_or_default()
    }

    fn is_account(&self) -> bool {
        self.find("ss").is_some() || self.find("srt").is_some()
    }

    /// The names of the fields that are signed; `None` for what no version signs.
    fn signed(&self) -> Option<Vec<&'static str>> {
        let version = Some(self.text("sv")).filter(|version| version.len() == 10)?;
        let mut names = match self.is_account() {
            true => vec!["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"],
            false => vec!["sp", "st", "se", "tn", "si"],
        };
        if self.is_account() && version >= "2020-12-06" {
            names.push("ses");
        }
        if !self.is_account() {
            if version >= "2015-04-05" {
                names.extend(["sip", "spr"]);
            }
            names.extend(["sv", "spk", "srk", "epk", "erk"]);
        }
        Some(names)
    }

    /// Wire reference 10.5.
    fn string_to_sign(&self) -> Option<String> {
        let names = self.signed()?;
        let table = self.text("tn").to_ascii_lowercase();
        let service = if self.text("sv") >= "2015-02-21" { "/table" } else { "" };
        let resource = format!("{service}/{ACCOUNT}/{table}");
        let value =
            |name: &&str| if *name == "tn" { resource.clone() } else { self.text(name).to_owned() };
        let mut lines: Vec<_> = names.iter().map(value).collect();
        if self.is_account() {
            lines.insert(0, ACCOUNT.to_owned());
            lines.push(String::new());
        }
        Some(lines.join("\n"))
    }
}

/// No field that is signed can be changed, dropped or set.
fn tampered(signed: &[(&str, &str)], keys: &[AccountKey]) {
    for name in Fields(signed).signed().expect("it was signed") {
        let longer = format!("{}x", Fields(signed).text(name));
        let mut changed = vec![(name, longer.as_str())];
        changed.extend(signed.iter().filter(|(other, _)| *other != name));
        let mut dropped = changed.clone();
        dropped.remove(0);
        let was_empty = Fields(signed).text(name).is_empty();
        for (pairs, is_same) in [(changed, false), (dropped, was_empty)] {
            let verified = token(&pairs).and_then(|token| token.unwrap().verify(ACCOUNT, keys));
            assert!(verified.is_err() || is_same, "{name} of {signed:?}");
        }
    }
}

fn granted(
    fields: &Fields<'_>,
    grant: &Grant,
    origin: &RequestOrigin,
    policies: &[SignedIdentifier],
) {
    let id = Some(fields.text("si")).filter(|id| !id.is_empty() && !fields.is_account());
    let policy = id.map(|id| policies.iter().find(|policy| policy.id == id).expect("it is known"));
    let policy = policy.and_then(|policy| policy.access_policy.clone()).unwrap_or_default();
    let moment = |name| Ticks::parse_iso(fields.text(name));
    let expiry = moment("se").xor(policy.expiry).expect("one expiry");
    assert!(origin.now < expiry);
    if let Some(start) = moment("st").or(policy.start) {
        assert!(origin.now.0 + START_SKEW_TICKS >= start.0);
    }
    assert!(fields.text("spr") != "https" || origin.https);
    let letters = match policy.permission {
        Some(permission) => permission.table_text(),
        None => fields.text("sp").to_owned(),
    };
    assert!(fields.text("sp").is_empty() || policy.permission.is_none());
    address(fields.text("sip"), origin.client);
    match grant {
        Grant::Account { .. } => account(fields, grant, &letters),
        Grant::Table { table, range, .. } => {
            assert_eq!(table, fields.text("tn"));
            self::table(grant, table, &letters);
            self::range(range, grant);
        }
        Grant::Queue { .. } | Grant::Blob { .. } => panic!("a token of another service"),
    }
}

fn address(sip: &str, client: IpAddr) {
    if sip.is_empty() {
        return;
    }
    let (first, last) = sip.split_once('-').unwrap_or((sip, sip));
    let IpAddr::V4(client) = client.to_canonical() else { panic!("{client} is in no range") };
    let (first, last): (std::net::Ipv4Addr, std::net::Ipv4Addr) =
        (first.parse().unwrap(), last.parse().unwrap());
    assert!(first <= client && client <= last);
}

fn account(fields: &Fields<'_>, grant: &Grant, letters: &str) {
    assert!(fields.text("ss").contains('t'));
    let types = fields.text("srt");
    let has = |wanted: &str| wanted.chars().all(|letter| letters.contains(letter));
    let mut rows = vec![
        (Access::GetServiceProperties, types.contains('s') && has("r")),
        (Access::SetServiceProperties, types.contains('s') && has("w")),
        (Access::GetServiceStats, types.contains('s') && has("r")),
        (Access::QueryTables, types.contains('c') && has("l")),
        (Access::CreateTable, types.contains('c') && (has("c") || has("w"))),
        (Access::DeleteTable, types.contains('c') && has("d")),
        (Access::TableAcl, false),
    ];
    rows.extend(ENTITY_OPERATIONS.map(|(operation, wanted)| {
        (Access::Entity { table: "any", operation }, types.contains('o') && has(wanted))
    }));
    for (access, allowed) in rows {
        assert_eq!(grant.allows(access).is_ok(), allowed, "{access:?}");
    }
    assert!(grant.key_range().is_none());
}

fn table(grant: &Grant, table: &str, letters: &str) {
    for (operation, wanted) in ENTITY_OPERATIONS {
        let allowed = wanted.chars().all(|letter| letters.contains(letter));
        assert_eq!(grant.allows(Access::Entity { table, operation }).is_ok(), allowed);
        assert!(
            grant.allows(Access::Entity { table: "another", operation }).is_err()
                || table.eq_ignore_ascii_case("another")
        );
    }
    for access in [
        Access::GetServiceProperties,
        Access::SetServiceProperties,
        Access::GetServiceStats,
        Access::QueryTables,
        Access::CreateTable,
        Access::DeleteTable,
        Access::TableAcl,
    ] {
        assert!(grant.allows(access).is_err());
    }
}

/// A key is within the range, within the scan of the range, or in neither.
fn range(range: &KeyRangeLimit, grant: &Grant) {
    let bounds = [&range.start, &range.end].map(|bound| {
        let row_key = bound.as_ref().and_then(|bound| bound.row_key.clone());
        (
            bound.as_ref().map(|bound| bound.partition_key.clone()).unwrap_or_default(),
            row_key.unwrap_or_default(),
        )
    });
    let near = |key: &str| {
        [key.to_owned(), format!("{key} "), format!("{key}\u{ffff}"), String::new(), "m".to_owned()]
    };
    let (lower, upper) = range.key_span();
    for (partition_bound, row_bound) in bounds {
        for partition_key in near(&partition_bound) {
            for row_key in near(&row_bound) {
                if [&partition_key, &row_key].into_iter().any(|key| key_problem(key).is_some()) {
                    continue;
                }
                let is_inside = is_inside(range, &partition_key, &row_key);
                assert_eq!(range.contains(&partition_key, &row_key), is_inside);
                let allowed = grant.allows_key(EntityOperation::Get, &partition_key, &row_key);
                assert_eq!(allowed.is_ok(), is_inside);
                let mut key = Vec::new();
                push_entity_key(&mut key, &partition_key, &row_key);
                let is_scanned = lower.as_ref().is_none_or(|lower| *lower <= key)
                    && upper.as_ref().is_none_or(|upper| key < *upper);
                assert_eq!(is_scanned, is_inside, "{range:?} {partition_key:?} {row_key:?}");
            }
        }
    }
}

fn is_inside(range: &KeyRangeLimit, partition_key: &str, row_key: &str) -> bool {
    let compare = |a: &str, b: &str| a.encode_utf16().cmp(b.encode_utf16());
    let start = range.start.as_ref().is_none_or(|bound| {
        match (compare(partition_key, &bound.partition_key), &bound.row_key) {
            (Ordering::Equal, Some(row)) => compare(row_key, row).is_ge(),
            (order, _) => order.is_ge(),
        }
    });
    let end = range.end.as_ref().is_none_or(|bound| {
        match (compare(partition_key, &bound.partition_key), &bound.row_key) {
            (Ordering::Equal, Some(row)) => compare(row_key, row).is_le(),
            (order, _) => order.is_le(),
        }
    });
    start && end
}
