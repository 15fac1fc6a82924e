//! Records what clients sent and heard, and reads it as a history: ETags become the writes that made them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::linearizable::Operation;
use super::rows::{Call, Change, Condition, Kind, Outcome, Refusal, Row};

/// What If-Match says.
#[derive(Clone, Debug)]
pub(super) enum IfMatch {
    None,
    Any,
    Etag(String),
}

#[derive(Clone, Debug)]
pub(super) enum SentKind {
    Insert,
    Replace(IfMatch),
    Merge(IfMatch),
    Delete(IfMatch),
}

/// A change as it is sent.
#[derive(Clone, Debug)]
pub(super) struct SentChange {
    pub row: usize,
    pub kind: SentKind,
    pub amount: i64,
}

#[derive(Clone, Debug)]
pub(super) enum Sent {
    Read(Vec<usize>),
    Write(u64, Vec<SentChange>),
}

/// A row as it came back.
#[derive(Clone, Debug)]
pub(super) struct SeenRow {
    pub row: Row,
    pub etag: String,
}

#[derive(Clone, Debug)]
pub(super) enum Heard {
    Found(Vec<Option<SeenRow>>),
    /// The new ETags; a delete has none.
    Done(Vec<Option<String>>),
    Refused(usize, Refusal),
    Nothing,
}

struct Entry {
    client: usize,
    invoked: u64,
    returned: u64,
    sent: Sent,
    heard: Heard,
}

/// The one clock and the one list of all clients.
pub(super) struct Recorder {
    start: Instant,
    numbers: AtomicU64,
    entries: Mutex<Vec<Entry>>,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), numbers: AtomicU64::new(1), entries: Mutex::default() }
    }

    /// A number that no other write has.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).expect("a run of less than centuries")
    }

    /// Notes a request that has just come to its end.
    pub(super) fn record(&self, client: usize, invoked: u64, sent: Sent, heard: Heard) {
        let entry = Entry { client, invoked, returned: self.now(), sent, heard };
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Everything recorded, as a history.
    pub(super) fn history(&self) -> Vec<Operation> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let etags = Etags::of(&entries);
        entries
            .iter()
            .map(|entry| Operation {
                client: entry.client,
                invoked: entry.invoked,
                returned: Some(entry.returned),
                call: etags.call(&entry.sent),
                outcome: outcome(&entry.heard),
            })
            .collect()
    }
}

fn outcome(heard: &Heard) -> Outcome {
    match heard {
        Heard::Found(rows) => {
            Outcome::Found(rows.iter().map(|seen| seen.as_ref().map(|seen| seen.row)).collect())
        }
        Heard::Done(_) => Outcome::Done,
        Heard::Refused(index, refusal) => Outcome::Refused(*index, *refusal),
        Heard::Nothing => Outcome::Unknown,
    }
}

/// Which write made which ETag. Each has one of a row, and no two have the same.
#[derive(Default)]
struct Etags<'a> {
    writes: HashMap<(usize, &'a str), u64>,
    etags: HashMap<(usize, u64), &'a str>,
}

impl<'a> Etags<'a> {
    fn of(entries: &'a [Entry]) -> Self {
        let mut etags = Self::default();
        for entry in entries {
            match (&entry.sent, &entry.heard) {
                (Sent::Write(number, changes), Heard::Done(made)) => {
                    for (change, etag) in changes.iter().zip(made) {
                        etag.iter().for_each(|etag| etags.learn(change.row, *number, etag));
                    }
                }
                (Sent::Read(rows), Heard::Found(found)) => {
                    for (row, seen) in rows.iter().zip(found) {
                        seen.iter().for_each(|seen| etags.learn(*row, seen.row.number, &seen.etag));
                    }
                }
                _ => {}
            }
        }
        etags
    }

    fn learn(&mut self, row: usize, number: u64, etag: &'a str) {
        let write = *self.writes.entry((row, etag)).or_insert(number);
        assert_eq!(write, number, "two writes of row {row} have the ETag {etag}");
        let known = *self.etags.entry((row, number)).or_insert(etag);
        assert_eq!(known, etag, "write {number} of row {row} has two ETags");
    }

    fn call(&self, sent: &Sent) -> Call {
        match sent {
            Sent::Read(rows) => Call::Read(rows.clone()),
            Sent::Write(number, changes) => {
                Call::Write(*number, changes.iter().map(|change| self.change(change)).collect())
            }
        }
    }

    fn change(&self, sent: &SentChange) -> Change {
        let condition = |if_match: &IfMatch| match if_match {
            IfMatch::None => Condition::None,
            IfMatch::Any => Condition::Exists,
            // Clients know ETags from answers, and all answers are recorded.
            IfMatch::Etag(etag) => Condition::Version(self.writes[&(sent.row, etag.as_str())]),
        };
        let kind = match &sent.kind {
            SentKind::Insert => Kind::Insert,
            SentKind::Replace(if_match) => Kind::Replace(condition(if_match)),
            SentKind::Merge(if_match) => Kind::Merge(condition(if_match)),
            SentKind::Delete(if_match) => Kind::Delete(condition(if_match)),
        };
        Change { row: sent.row, kind, amount: sent.amount }
    }
}
