//! What a token grants, rule by rule. Every reason to refuse is looked for; what has none is allowed. The service may
//! name any one of the reasons, for the reference does not say in which order they are checked.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use tavola_wire::auth::AccountKey;

use super::time;

/// A request, as far as permission goes.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    /// Query Tables, and Get Table.
    ListTables,
    CreateTable,
    DeleteTable,
    GetAcl,
    SetAcl,
    /// Query Entities: which rows it shows is asked of [`shows`].
    Query {
        table: String,
    },
    Entity {
        table: String,
        action: Action,
        key: Key,
    },
}

pub(crate) type Key = (String, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Insert,
    /// Replace or merge what must exist.
    Update,
    /// Replace or merge what need not exist.
    Upsert,
    Delete,
}

/// A stored access policy. Times are seconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub id: String,
    pub start: Option<i64>,
    pub expiry: Option<i64>,
    pub permission: Option<String>,
}

/// What decides beside the token.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    pub account: String,
    pub keys: Vec<AccountKey>,
    pub now: i64,
    pub client: Ipv4Addr,
    pub https: bool,
    /// The policies of each table, by its name in lower case.
    pub policies: Vec<(String, Vec<Policy>)>,
}

/// Status and code.
pub(crate) type Refusal = (u16, &'static str);

const NOT_AUTHENTIC: Refusal = (403, "AuthenticationFailed");
const FORBIDDEN: Refusal = (403, "AuthorizationFailure");
const PERMISSION: Refusal = (403, "AuthorizationPermissionMismatch");
const RESOURCE_TYPE: Refusal = (403, "AuthorizationResourceTypeMismatch");
const SERVICE: Refusal = (403, "AuthorizationServiceMismatch");
const ADDRESS: Refusal = (403, "AuthorizationSourceIPMismatch");
const PROTOCOL: Refusal = (403, "AuthorizationProtocolMismatch");
const NOT_FOUND: Refusal = (404, "ResourceNotFound");

/// The service lets a token begin a little early, for clocks differ.
const START_GRACE_SECONDS: i64 = 60;

/// The decoded query string of a request.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub pairs: Vec<(String, String)>,
}

impl Token {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The value, with empty counted as absent.
    fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    fn is_for_account(&self) -> bool {
        self.has("ss") || self.has("srt")
    }

    /// What a signer signs.
    pub(crate) fn string_to_sign(&self, account: &str) -> String {
        let version = self.text("sv");
        let mut lines = String::new();
        if self.is_for_account() {
            lines.push_str(account);
            lines.push('\n');
            for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
                lines.push_str(self.text(name));
                lines.push('\n');
            }
            if version >= "2020-12-06" {
                lines.push_str(self.text("ses"));
                lines.push('\n');
            }
            return lines;
        }
        let service = if version >= "2015-02-21" { "/table" } else { "" };
        let resource = format!("{service}/{account}/{}", self.text("tn").to_lowercase());
        for name in ["sp", "st", "se"] {
            lines.push_str(self.text(name));
            lines.push('\n');
        }
        lines.push_str(&resource);
        lines.push('\n');
        let with_origin = ["si", "sip", "spr", "sv", "spk", "srk", "epk", "erk"];
        let without_origin = ["si", "sv", "spk", "srk", "epk", "erk"];
        let rest = if version >= "2015-04-05" { &with_origin[..] } else { &without_origin[..] };
        let rest: Vec<_> = rest.iter().map(|name| self.text(name)).collect();
        lines.push_str(&rest.join("\n"));
        lines
    }
}

/// Every reason to refuse the operation; none if it is allowed.
pub(crate) fn refusals(
    token: &Token,
    at: &Circumstances,
    operation: &Operation,
) -> BTreeSet<Refusal> {
    if !token.has("sig") {
        return BTreeSet::from([(401, "NoAuthenticationInformation")]);
    }
    let mut reasons = BTreeSet::new();
    if !is_well_formed(token) || !is_signed(token, at) {
        reasons.insert(NOT_AUTHENTIC);
    }
    let Some(terms) = terms(token, at) else {
        // Without terms there is nothing to look at further.
        reasons.insert(NOT_AUTHENTIC);
        return reasons;
    };
    let begun = terms.start.is_none_or(|start| at.now >= start - START_GRACE_SECONDS);
    if !begun || at.now >= terms.expiry {
        reasons.insert(NOT_AUTHENTIC);
    }
    if token.given("sip").is_some_and(|range| !is_in_range(at.client, range)) {
        reasons.insert(ADDRESS);
    }
    if token.given("spr") == Some("https") && !at.https {
        reasons.insert(PROTOCOL);
    }
    if token.is_for_account() {
        reasons.extend(refusals_of_account(token, &terms.permission, operation));
    } else {
        reasons.extend(refusals_of_table(token, &terms.permission, operation));
    }
    reasons
}

/// Whether a query that is allowed shows this row.
pub(crate) fn shows(token: &Token, key: &Key) -> bool {
    token.is_for_account() || is_in_key_range(token, key)
}

/// Whether each field is of its form, and all of them together are one kind of token.
fn is_well_formed(token: &Token) -> bool {
    const FIELDS: [&str; 16] = [
        "sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "ses", "si", "tn", "spk", "srk", "epk",
        "erk", "sig",
    ];
    const USER_DELEGATION: [&str; 6] = ["skoid", "sktid", "skt", "ske", "sks", "skv"];
    let is_of = |text: &str, letters: &str| text.chars().all(|letter| letters.contains(letter));
    let is_lower = |text: &str| text.chars().all(|letter| letter.is_ascii_lowercase());
    let version = token.text("sv");
    let is_time = |name| token.given(name).is_none_or(|text| time::parse(text).is_some());
    let is_common = time::parse(version).is_some()
        && version.len() == "2019-02-02".len()
        && is_time("st")
        && is_time("se")
        && token.given("sip").is_none_or(|range| ends_of_range(range).is_some())
        && token.given("spr").is_none_or(|text| text == "https" || text == "https,http")
        && FIELDS.iter().all(|name| !token.text(name).contains('\n'))
        && FIELDS
            .iter()
            .all(|name| token.pairs.iter().filter(|(other, _)| other == name).count() < 2)
        && !USER_DELEGATION.iter().any(|name| token.has(name));
    if token.is_for_account() {
        is_common
            && version >= "2015-04-05"
            && token.given("tn").is_none()
            && token.given("ss").is_some_and(is_lower)
            && token.given("srt").is_some_and(|text| is_of(text, "sco"))
            && is_lower(token.text("sp"))
    } else {
        is_common
            && version >= "2012-02-12"
            && token.given("tn").is_some()
            && is_of(token.text("sp"), "raud")
            // Older versions do not sign these, so that anyone could have added them.
            && (version >= "2015-04-05" || !(token.has("sip") || token.has("spr")))
            && (token.has("spk") || !token.has("srk"))
            && (token.has("epk") || !token.has("erk"))
    }
}

fn is_signed(token: &Token, at: &Circumstances) -> bool {
    let text = token.string_to_sign(&at.account);
    at.keys.iter().any(|key| key.sign(&text).to_base64() == token.text("sig"))
}

/// What token and stored policy say together.
struct Terms {
    start: Option<i64>,
    expiry: i64,
    permission: String,
}

/// Each field stands in the token or in the policy, not in both; expiry and permission in one of them.
fn terms(token: &Token, at: &Circumstances) -> Option<Terms> {
    let none = Policy { id: String::new(), start: None, expiry: None, permission: None };
    let policy = match token.given("si") {
        // An account token does not sign `si`.
        Some(id) if !token.is_for_account() => {
            let table = token.text("tn").to_lowercase();
            let (_, policies) = at.policies.iter().find(|(name, _)| *name == table)?;
            policies.iter().find(|policy| policy.id == id)?.clone()
        }
        _ => none,
    };
    let time = |name| token.given(name).map(|text| time::parse(text).unwrap_or(0));
    Some(Terms {
        start: one_of(time("st"), policy.start)?,
        expiry: one_of(time("se"), policy.expiry)??,
        permission: one_of(token.given("sp").map(str::to_owned), policy.permission)??,
    })
}

/// Nothing when both are there.
fn one_of<T>(token: Option<T>, policy: Option<T>) -> Option<Option<T>> {
    match (token, policy) {
        (Some(_), Some(_)) => None,
        (token, policy) => Some(token.or(policy)),
    }
}

/// The first table of section 10.5.
fn refusals_of_account(token: &Token, permission: &str, operation: &Operation) -> Vec<Refusal> {
    let mut reasons = Vec::new();
    if !token.text("ss").contains('t') {
        reasons.push(SERVICE);
    }
    // Resource type, and the permissions: all letters of one of the texts.
    let (resource_type, needed): (char, &[&str]) = match operation {
        Operation::GetServiceProperties | Operation::GetServiceStats => ('s', &["r"]),
        Operation::SetServiceProperties => ('s', &["w"]),
        Operation::ListTables => ('c', &["l"]),
        Operation::CreateTable => ('c', &["c", "w"]),
        Operation::DeleteTable => ('c', &["d"]),
        Operation::GetAcl | Operation::SetAcl => {
            reasons.push(FORBIDDEN);
            return reasons;
        }
        Operation::Query { .. } => ('o', &["r"]),
        Operation::Entity { action, .. } => ('o', entity_permissions(*action)),
    };
    if !token.text("srt").contains(resource_type) {
        reasons.push(RESOURCE_TYPE);
    }
    if !has_one_of(permission, needed) {
        reasons.push(PERMISSION);
    }
    reasons
}

/// The second table of section 10.5, and the key ranges.
fn refusals_of_table(token: &Token, permission: &str, operation: &Operation) -> Vec<Refusal> {
    let (table, needed, key) = match operation {
        Operation::Query { table } => (table, &["r"][..], None),
        Operation::Entity { table, action, key } => {
            (table, entity_permissions(*action), Some((*action, key)))
        }
        _ => return vec![FORBIDDEN],
    };
    let mut reasons = Vec::new();
    if token.text("tn").to_lowercase() != table.to_lowercase() {
        reasons.push(NOT_AUTHENTIC);
    }
    if !has_one_of(permission, needed) {
        reasons.push(PERMISSION);
    }
    match key {
        Some((action, key)) if !is_in_key_range(token, key) => {
            reasons.push(if action == Action::Get { NOT_FOUND } else { FORBIDDEN });
        }
        _ => {}
    }
    reasons
}

fn entity_permissions(action: Action) -> &'static [&'static str] {
    match action {
        Action::Get => &["r"],
        Action::Insert => &["a"],
        Action::Update => &["u"],
        Action::Upsert => &["au"],
        Action::Delete => &["d"],
    }
}

fn has_one_of(permission: &str, needed: &[&str]) -> bool {
    needed.iter().any(|letters| letters.chars().all(|letter| permission.contains(letter)))
}

/// The table of key ranges in section 10.5, line by line.
fn is_in_key_range(token: &Token, (partition, row): &Key) -> bool {
    let after_start = match (token.get("spk"), token.get("srk")) {
        (None, _) => true,
        (Some(start), None) => compare(partition, start).is_ge(),
        (Some(start), Some(start_row)) => match compare(partition, start) {
            Ordering::Less => false,
            Ordering::Equal => compare(row, start_row).is_ge(),
            Ordering::Greater => true,
        },
    };
    let before_end = match (token.get("epk"), token.get("erk")) {
        (None, _) => true,
        (Some(end), None) => compare(partition, end).is_le(),
        (Some(end), Some(end_row)) => match compare(partition, end) {
            Ordering::Less => true,
            Ordering::Equal => compare(row, end_row).is_le(),
            Ordering::Greater => false,
        },
    };
    after_start && before_end
}

/// Keys sort by UTF-16 code unit (section 3.9).
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    one.encode_utf16().cmp(other.encode_utf16())
}

fn is_in_range(client: Ipv4Addr, range: &str) -> bool {
    ends_of_range(range).is_some_and(|(first, last)| first <= client && client <= last)
}

fn ends_of_range(range: &str) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}
