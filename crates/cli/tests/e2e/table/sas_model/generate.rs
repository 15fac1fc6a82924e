//! Tokens and operations at random: mostly ones that work, with a flaw or two often enough.
//!
//! A token is made of fields, flawed before it is signed, signed, and tampered with after that. What it is worth then
//! is the model's to say, so that nothing here has to know.

use std::net::Ipv4Addr;

use tavola_wire::auth::AccountKey;

use super::grant::{Action, Circumstances, Key, Operation, Policy, Token};
use super::time;
use crate::random::Random;

/// The keys of rows. By UTF-16 the third last of the partitions comes before the last two, by UTF-8 after them.
pub(crate) const PARTITIONS: [&str; 7] =
    ["", "a", "b", "b'c", "\u{1f600}", "\u{fffd}", "\u{ffee}z"];
pub(crate) const ROWS: [&str; 5] = ["", "1", "5", "5 &=", "\u{e9}"];
const POLICY_IDS: [&str; 3] = ["one", "two", "\u{fc}ber & all"];
const VERSIONS: [&str; 7] = [
    "2012-02-12",
    "2013-08-15",
    "2015-02-21",
    "2015-04-05",
    "2019-02-02",
    "2020-12-06",
    "2026-02-06",
];

/// Seconds between now and the ends of tokens that no delay of a test can reach.
#[allow(dead_code, reason = "for the test over HTTP, which has a real clock")]
pub(crate) const FAR: [i64; 3] = [600, 5 * 60 * 60, 40 * 24 * 60 * 60];
/// Seconds around every edge, for tests whose clock stands still.
#[allow(dead_code, reason = "for the test of the decision functions")]
pub(crate) const NEAR: [i64; 10] = [0, 1, 59, 60, 61, 600, 600, 5000, 5000, 40 * 24 * 60 * 60];

/// Makes choices for tables of these names.
pub(crate) struct Generator<'a> {
    pub random: &'a mut Random,
    pub tables: &'a [String],
    pub distances: &'a [i64],
}

impl Generator<'_> {
    pub(crate) fn key(&mut self) -> Key {
        let (partition, row) = (self.random.pick(&PARTITIONS), self.random.pick(&ROWS));
        ((*partition).to_owned(), (*row).to_owned())
    }

    pub(crate) fn table(&mut self) -> String {
        self.random.pick(self.tables).clone()
    }

    pub(crate) fn action(&mut self) -> Action {
        let all = [Action::Get, Action::Insert, Action::Update, Action::Upsert, Action::Delete];
        *self.random.pick(&all)
    }

    /// An operation, as likely as not on the table that the token names.
    pub(crate) fn operation(&mut self, token: &Token) -> Operation {
        let named = token.get("tn").filter(|name| self.tables.iter().any(|table| table == name));
        let table = match named {
            Some(name) if !self.random.one_in(6) => name.to_owned(),
            _ => self.table(),
        };
        // What is not about rows is never allowed to a token for a table.
        let first = if token.get("tn").is_some() && !self.random.one_in(3) { 8 } else { 0 };
        match first + self.random.below(20 - first) {
            0 => Operation::GetServiceProperties,
            1 => Operation::SetServiceProperties,
            2 => Operation::GetServiceStats,
            3 => Operation::ListTables,
            4 => Operation::CreateTable,
            5 => Operation::DeleteTable,
            6 => Operation::GetAcl,
            7 => Operation::SetAcl,
            8..12 => Operation::Query { table },
            _ => Operation::Entity { table, action: self.action(), key: self.key() },
        }
    }

    /// Up to three policies; each fixes some of start, expiry and permission.
    pub(crate) fn policies(&mut self, now: i64) -> Vec<Policy> {
        let count = self.random.below(POLICY_IDS.len() + 1);
        let mut policies = Vec::new();
        for id in &POLICY_IDS[..count] {
            let mut policy =
                Policy { id: (*id).to_owned(), start: None, expiry: None, permission: None };
            if self.random.one_in(3) {
                policy.start = Some(now - self.distance());
            }
            if !self.random.one_in(3) {
                policy.expiry = Some(now + self.distance());
            }
            if self.random.one_in(8) {
                policy.expiry = Some(now - self.distance());
            }
            if !self.random.one_in(3) {
                policy.permission = Some(self.letters("raud"));
            }
            policies.push(policy);
        }
        policies
    }

    pub(crate) fn token(&mut self, at: &Circumstances) -> Token {
        let mut token = Token { pairs: Vec::new() };
        if self.random.one_in(3) {
            self.fill_account(&mut token, at);
        } else {
            self.fill_table(&mut token, at);
        }
        let flaws = *self.random.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2]);
        for _ in 0..flaws {
            self.flaw(&mut token, at);
        }
        self.sign(&mut token, at);
        if self.random.one_in(6) {
            self.tamper(&mut token, at);
        }
        self.shuffle(&mut token);
        token
    }

    fn fill_account(&mut self, token: &mut Token, at: &Circumstances) {
        self.fill_common(token, at, 3);
        set(token, "ss", *self.random.pick(&["t", "t", "t", "bqt", "bfqt", "bfq"]));
        let types = self.letters("sco");
        set(token, "srt", types);
        let permission = self.letters("rwdlacu");
        let of_others = *self.random.pick(&["", "", "px"]);
        set(token, "sp", permission + of_others);
        if self.random.one_in(8) {
            set(token, "ses", "scope");
        }
    }

    fn fill_table(&mut self, token: &mut Token, at: &Circumstances) {
        self.fill_common(token, at, 0);
        let table = self.table();
        set(token, "tn", table.clone());
        let permission = self.letters("raud");
        set(token, "sp", permission);
        let (start, end) = (self.key(), self.key());
        if self.random.one_in(2) {
            set(token, "spk", start.0);
            if self.random.one_in(2) {
                set(token, "srk", start.1);
            }
        }
        if self.random.one_in(2) {
            set(token, "epk", end.0);
            if self.random.one_in(2) {
                set(token, "erk", end.1);
            }
        }
        let policies = at.policies.iter().find(|(name, _)| *name == table.to_lowercase());
        let policies = policies.map_or(&[][..], |(_, policies)| &policies[..]);
        if !policies.is_empty() && self.random.one_in(2) {
            refer_to(token, self.random.pick(policies), self.random.one_in(6));
        }
    }

    fn fill_common(&mut self, token: &mut Token, at: &Circumstances, oldest: usize) {
        let version = VERSIONS[oldest + self.random.below(VERSIONS.len() - oldest)];
        set(token, "sv", version);
        let expiry = at.now + self.distance();
        self.set_time(token, "se", expiry);
        if self.random.one_in(3) {
            let start = at.now - self.distance();
            self.set_time(token, "st", start);
        }
        if version >= "2015-04-05" {
            let client = at.client;
            let [a, b, c, d] = client.octets();
            match self.random.below(6) {
                0 => set(token, "sip", client.to_string()),
                1 => set(token, "sip", format!("{a}.{b}.{c}.0-{a}.{b}.{c}.255")),
                2 => set(token, "sip", format!("{client}-{a}.{b}.{c}.{}", d.saturating_add(1))),
                _ => {}
            }
            match self.random.below(4) {
                0 => set(token, "spr", "https,http"),
                1 if at.https => set(token, "spr", "https"),
                _ => {}
            }
        }
    }

    /// Something that a signer may have got wrong, or wanted so.
    fn flaw(&mut self, token: &mut Token, at: &Circumstances) {
        let distance = self.distance();
        match self.random.below(20) {
            0 => self.set_time(token, "se", at.now - distance),
            1 => self.set_time(token, "st", at.now + distance),
            2 => drop_field(token, "se"),
            3 => drop_field(token, "sp"),
            4 => set(token, "sip", *self.random.pick(&["10.0.0.1", "127.0.0.2-127.0.0.8"])),
            5 => set(token, "spr", "https"),
            6 => set(token, "sv", *self.random.pick(&["2009-09-19", "2011-08-18", "2015-02-21"])),
            7 => {
                let malformed = [
                    ("st", "soon"),
                    ("se", "2031-02-30"),
                    ("se", "never"),
                    ("sp", "R"),
                    ("sip", "localhost"),
                    ("sip", "127.0.0.9-127.0.0.1"),
                    ("spr", "http"),
                    ("sv", "2019"),
                    ("sv", ""),
                ];
                let (name, value) = *self.random.pick(&malformed);
                set(token, name, value);
            }
            8 => set(token, "tn", "another"),
            9 => set(token, "si", *self.random.pick(&["unknown", "One", ""])),
            10 => set(token, "si", *self.random.pick(&POLICY_IDS)),
            11 => set(token, "srk", *self.random.pick(&ROWS)),
            12 => set(token, "erk", *self.random.pick(&ROWS)),
            13 => {
                let name = *self.random.pick(&["spk", "srk", "epk", "erk", "si"]);
                set(token, name, "a\nb");
            }
            14 => {
                let name = *self.random.pick(&["skoid", "sktid", "skt", "ske", "sks"]);
                set(token, name, "x");
            }
            15 => set(token, "ss", *self.random.pick(&["b", "bfq", "bfq", "T", ""])),
            16 => set(token, "srt", *self.random.pick(&["x", "", "s", "c", "o"])),
            17 => {
                let name = *self.random.pick(&["sp", "se", "st", "sip", "spr", "tn"]);
                set(token, name, "");
            }
            18 => {
                let (start, end) = (self.key(), self.key());
                set(token, "spk", start.0);
                set(token, "epk", end.0);
            }
            _ => {
                let letters = self.letters("raud");
                set(token, "sp", letters);
            }
        }
    }

    fn sign(&mut self, token: &mut Token, at: &Circumstances) {
        let foreign = AccountKey::from_bytes(b"a key of nobody here");
        let key = if self.random.one_in(40) { &foreign } else { self.random.pick(&at.keys) };
        let account = if self.random.one_in(30) { "other" } else { &at.account };
        let signature = key.sign(&token.string_to_sign(account)).to_base64();
        set(token, "sig", signature);
    }

    /// What a holder may try with a token that was handed out.
    fn tamper(&mut self, token: &mut Token, at: &Circumstances) {
        let name = self.random.pick(&token.pairs).0.clone();
        let stronger = if token.get("tn").is_some() { "raud" } else { "rwdlacu" };
        match self.random.below(12) {
            0 | 1 => drop_field(token, &name),
            2 => set(token, "sp", stronger),
            3 => self.set_time(token, "se", at.now + 1000),
            4 => token.pairs.push((name, "other".to_owned())),
            5 => token.pairs.push(("sp".to_owned(), stronger.to_owned())),
            6 => token.pairs.insert(0, ("sp".to_owned(), stronger.to_owned())),
            7 => {
                let table = self.table();
                set(token, "tn", table);
            }
            8 => {
                let lower = token.get("tn").unwrap_or("x").to_uppercase();
                set(token, "tn", lower);
            }
            9 => {
                let name = *self.random.pick(&["spk", "srk", "epk", "erk", "st", "si", "sip"]);
                set(token, name, "");
            }
            // The next line of what was signed, moved into this one.
            10 => {
                let joined = format!(
                    "{}\n{}",
                    token.get("spk").unwrap_or(""),
                    token.get("srk").unwrap_or("")
                );
                drop_field(token, "srk");
                set(token, "spk", joined);
            }
            _ => {
                let mut signature = token.get("sig").unwrap_or("").to_owned();
                let at = self.random.below(signature.len().max(1));
                if !signature.is_empty() {
                    let other = if signature.as_bytes()[at] == b'A' { "B" } else { "A" };
                    signature.replace_range(at..=at, other);
                }
                set(token, "sig", signature);
            }
        }
    }

    /// The order of fields means nothing, but for repeated ones.
    fn shuffle(&mut self, token: &mut Token) {
        let names: std::collections::BTreeSet<_> =
            token.pairs.iter().map(|(name, _)| name.clone()).collect();
        if names.len() == token.pairs.len() {
            for index in (1..token.pairs.len()).rev() {
                token.pairs.swap(index, self.random.below(index + 1));
            }
        }
    }

    /// To the second; to the day or to the minute where that does not bring the moment near.
    fn set_time(&mut self, token: &mut Token, name: &str, seconds: i64) {
        let whole = time::write(seconds);
        let form = match self.random.below(6) {
            0 => whole[.."2031-01-01".len()].to_owned(),
            1 => format!("{}Z", &whole[.."2031-01-01T00:00".len()]),
            _ => whole.clone(),
        };
        let cut = seconds - time::parse(&form).expect("a time");
        set(token, name, if cut < 60 { form } else { whole });
    }

    fn distance(&mut self) -> i64 {
        *self.random.pick(self.distances)
    }

    /// All of the letters or some of them, at least one, in any order.
    fn letters(&mut self, letters: &str) -> String {
        if self.random.one_in(2) {
            return letters.to_owned();
        }
        let mut some: Vec<char> = letters.chars().filter(|_| self.random.one_in(2)).collect();
        if some.is_empty() {
            some.extend(letters.chars().nth(self.random.below(letters.len())));
        }
        if self.random.one_in(2) {
            some.reverse();
        }
        some.into_iter().collect()
    }
}

/// Lets the policy say what it says; with `repeated`, the token says it too.
fn refer_to(token: &mut Token, policy: &Policy, repeated: bool) {
    set(token, "si", policy.id.clone());
    if repeated {
        return;
    }
    for (name, is_fixed) in [
        ("st", policy.start.is_some()),
        ("se", policy.expiry.is_some()),
        ("sp", policy.permission.is_some()),
    ] {
        if is_fixed {
            drop_field(token, name);
        }
    }
}

fn set(token: &mut Token, name: &str, value: impl Into<String>) {
    match token.pairs.iter_mut().find(|(other, _)| other == name) {
        Some((_, old)) => *old = value.into(),
        None => token.pairs.push((name.to_owned(), value.into())),
    }
}

fn drop_field(token: &mut Token, name: &str) {
    token.pairs.retain(|(other, _)| other != name);
}

/// An address of a client on this machine.
pub(crate) fn loopback(random: &mut Random) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, *random.pick(&[1, 1, 2, 9]))
}
