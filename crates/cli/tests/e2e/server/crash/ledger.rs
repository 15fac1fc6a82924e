//! What one connection knows of its rows: the acknowledged ones exactly, and the change that was under way.
//!
//! Nobody else touches these rows, so what is stored after a crash is what the ledger says, with the pending change as
//! a whole or without it.

use std::collections::BTreeMap;

use serde_json::Value;
use tavola_wire::Ticks;

use crate::table::model::store::{Change, Keys, Rows, key};

/// A change of one row.
pub(super) struct RowChange {
    pub partition: String,
    pub row: String,
    pub change: Change,
}

impl RowChange {
    pub(super) fn keys(&self) -> (&str, &str) {
        (&self.partition, &self.row)
    }

    fn key(&self) -> Keys {
        key(&self.partition, &self.row)
    }
}

/// Why a request is refused: the change that cannot be made, status and code.
pub(super) type Refusal = (usize, u16, &'static str);

#[derive(Default)]
pub(super) struct Ledger {
    rows: Rows,
    /// The latest timestamp that each row has had, also of rows that are deleted.
    stamps: BTreeMap<Keys, Ticks>,
    pending: Vec<RowChange>,
}

/// How a ledger and the server came together after a crash.
#[derive(Default)]
pub(super) struct Settled {
    pub rows: usize,
    pub done_unheard: bool,
    pub undone_unheard: bool,
}

impl Ledger {
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(super) fn etag(&self, partition: &str, row: &str) -> Option<&str> {
        self.rows.get(&key(partition, row)).map(|row| row.etag.as_str())
    }

    /// An ETag that the row does not have: that of a deleted row, or one tick from the right one.
    pub(super) fn wrong_etag(&self, partition: &str, row: &str) -> String {
        let last = self.stamps.get(&key(partition, row)).copied();
        let ticks = match self.etag(partition, row) {
            Some(etag) => ticks_of(etag).0 - 1,
            None => last.unwrap_or(Ticks(700_000_000_000_000_000)).0,
        };
        Ticks(ticks).to_etag()
    }

    /// Notes what is about to be sent; answers why it must be refused, if it must. A refused request changes nothing
    /// whether its answer is heard or not, so then nothing is pending.
    pub(super) fn begin(&mut self, changes: Vec<RowChange>) -> Option<Refusal> {
        assert!(self.pending.is_empty(), "one request at a time");
        let refusal = changes.iter().enumerate().find_map(|(index, change)| {
            let (status, code) = change.change.refusal(self.rows.get(&change.key()))?;
            Some((index, status, code))
        });
        if refusal.is_none() {
            self.pending = changes;
        }
        refusal
    }

    /// The pending changes have been made, with these ETags.
    pub(super) fn acknowledge(&mut self, etags: &[Option<String>]) {
        let changes = std::mem::take(&mut self.pending);
        assert_eq!(changes.len(), etags.len());
        for (change, etag) in changes.iter().zip(etags) {
            self.apply(change, etag.as_deref());
        }
    }

    /// Holds the rows that are stored after a crash against the ledger, from the row `from` on.
    #[track_caller]
    pub(super) fn settle(&mut self, found: &[Value], from: &Keys) -> Settled {
        let mut settled = Settled { rows: found.len(), ..Settled::default() };
        let stored: BTreeMap<Keys, &Value> =
            found.iter().map(|entity| (keys_of(entity), entity)).collect();
        assert_eq!(stored.len(), found.len(), "a row came twice");
        let changes = std::mem::take(&mut self.pending);
        if !changes.is_empty() {
            let etag = |change: &RowChange| stored.get(&change.key()).map(|row| etag_of(row));
            // One changed row is enough to say that it was done; then all of it must be.
            let is_done = changes.iter().any(|change| {
                etag(change) != self.rows.get(&change.key()).map(|row| row.etag.as_str())
            });
            settled.done_unheard = is_done;
            settled.undone_unheard = !is_done;
            for change in changes.iter().filter(|_| is_done) {
                let etag = etag(change);
                assert_eq!(
                    etag.is_none(),
                    matches!(change.change, Change::Delete(_)),
                    "half of a transaction: {:?}",
                    change.keys()
                );
                self.apply(change, etag);
            }
        }
        self.compare(&stored, from);
        settled
    }

    #[track_caller]
    fn compare(&self, stored: &BTreeMap<Keys, &Value>, from: &Keys) {
        let expected: Vec<_> = self.rows.range(from.clone()..).collect();
        let missing = expected.iter().find(|(keys, _)| !stored.contains_key(keys));
        assert!(missing.is_none(), "an acknowledged row is lost: {:?}", missing.map(|row| row.0));
        for (keys, entity) in stored {
            let row = self.rows.get(keys);
            let row = row.unwrap_or_else(|| panic!("a row that nobody wrote: {entity}"));
            assert_eq!(etag_of(entity), row.etag, "{keys:?}");
            row.assert_is((keys.0.as_str(), keys.1.as_str()), entity);
        }
    }

    fn apply(&mut self, change: &RowChange, etag: Option<&str>) {
        change.change.apply(&mut self.rows, &change.partition, &change.row, etag);
        let Some(etag) = etag else { return };
        // Each change of a row begins after the last has ended, so time never stands still, also over a crash; and so
        // no ETag of a row ever comes again.
        let last = self.stamps.insert(change.key(), ticks_of(etag));
        assert!(last < Some(ticks_of(etag)), "{:?}: {etag} after {last:?}", change.keys());
    }
}

fn keys_of(entity: &Value) -> Keys {
    let text = |name: &str| entity[name].as_str().expect("a key");
    key(text("PartitionKey"), text("RowKey"))
}

fn etag_of(entity: &Value) -> &str {
    entity["odata.etag"].as_str().expect("an ETag")
}

fn ticks_of(etag: &str) -> Ticks {
    let time = etag.strip_prefix("W/\"datetime'").and_then(|rest| rest.strip_suffix("'\""));
    let time = time.unwrap_or_else(|| panic!("not an ETag: {etag}")).replace("%3A", ":");
    Ticks::parse_iso(&time).unwrap_or_else(|| panic!("not a time: {etag}"))
}
