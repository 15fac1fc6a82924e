//! The rows that one connection alone writes, and what the service acknowledged about each: what reads must find.

use memchr::memmem;

use crate::entity::{Keys, Place};

/// What a row must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Absent,
    /// Written whole as `base`, merged since to `revision`.
    Present {
        base: u64,
        revision: u64,
    },
    /// A write got no answer: it may be done or not.
    Unsure,
}

/// What a connection knows about its rows.
#[derive(Debug)]
pub(super) struct Ledger {
    keys: Keys,
    partition: u64,
    rows: Vec<Known>,
}

impl Ledger {
    /// The rows of a partition that nobody else writes; none is there yet.
    pub(super) fn new(keys: Keys, partition: u64, rows: usize) -> Self {
        Self { keys, partition, rows: vec![Known::Absent; rows] }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn place(&self, row: usize) -> Place {
        Place { partition: self.partition, row: row as u64 }
    }

    pub(super) fn known(&self, row: usize) -> Known {
        self.rows[row]
    }

    pub(super) fn set(&mut self, row: usize, known: Known) {
        self.rows[row] = known;
    }

    /// Compares what was read, `None` for nothing, with what was acknowledged.
    pub(super) fn check(&self, row: usize, found: Option<&[u8]>) -> Result<(), String> {
        let place = self.place(row);
        match (self.rows[row], found) {
            (Known::Unsure, _) | (Known::Absent, None) => Ok(()),
            (Known::Absent, Some(_)) => Err(format!("{place:?} was deleted and is there")),
            (Known::Present { .. }, None) => {
                Err(format!("{place:?} was acknowledged and is not there"))
            }
            (Known::Present { base, revision }, Some(body)) => {
                let mut written = Vec::new();
                self.keys.push_entity(&mut written, place, base);
                let of_base = ["Remark", "Amount", "Digest"].map(|name| member(&written, name));
                let of_revision = format!("\"Revision\":\"{revision}\"");
                let holds = |text: &[u8]| !text.is_empty() && memmem::find(body, text).is_some();
                match of_base.iter().all(|text| holds(text)) && holds(of_revision.as_bytes()) {
                    true => Ok(()),
                    false => Err(format!(
                        "{place:?} does not hold what was acknowledged (revision {revision})"
                    )),
                }
            }
        }
    }
}

/// A member of text in JSON, as it stands there.
fn member<'a>(json: &'a [u8], name: &str) -> &'a [u8] {
    let start = memmem::find(json, format!("\"{name}\":\"").as_bytes());
    let Some(member) = start.map(|start| &json[start..]) else { return &[] };
    let quotes = memchr::memchr_iter(b'"', member).nth(3);
    quotes.map_or(&[], |end| &member[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_as_it_was_acknowledged_or_it_is_said() {
        let keys = Keys { partitions: 4, prefix: 'w' };
        let mut ledger = Ledger::new(keys, 2, 3);
        let json = |base, revision: u64| {
            let mut json = Vec::new();
            keys.push_entity(&mut json, Place { partition: 2, row: 1 }, base);
            String::from_utf8(json).unwrap().replace(
                &format!("\"Revision\":\"{base}\""),
                &format!("\"Revision\":\"{revision}\""),
            )
        };
        let check = |ledger: &Ledger, found: Option<&str>| {
            ledger.check(1, found.map(str::as_bytes)).is_ok()
        };
        assert!(check(&ledger, None) && !check(&ledger, Some(&json(1, 1))));
        ledger.set(1, Known::Present { base: 7, revision: 9 });
        assert!(check(&ledger, Some(&json(7, 9))));
        assert!(!check(&ledger, None), "a lost row");
        assert!(!check(&ledger, Some(&json(7, 8))), "a lost merge");
        assert!(!check(&ledger, Some(&json(6, 9))), "another base");
        ledger.set(1, Known::Unsure);
        assert!(check(&ledger, None) && check(&ledger, Some("x")));
    }

    #[test]
    fn members_are_cut_out_whole() {
        assert_eq!(member(br#"{"A":"x","B":"yz","C":1}"#, "B"), br#""B":"yz""#);
        assert_eq!(member(b"{}", "B"), b"");
    }
}
