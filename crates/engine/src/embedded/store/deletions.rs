//! Deletions in tables, by the family of their keys.
//!
//! A scan passes all deletions that lie between the rows of its range and are not merged yet. Where there may be very many,
//! it does not begin on the thread of its caller. What tables tell by themselves is the number in a file, whatever
//! it holds; but a queue that is worked off leaves deletions by the million, and nobody who scans something else meets
//! them. So they are counted by the first byte of their keys, by which the users of the engine keep apart what they
//! store: its family.
//!
//! A file with keys of one family needs no look. Those with several are what is flushed from memory, and one at each end
//! of a family in every level; they are read through, once each, on the compactor's thread, and only if there are enough
//! deletions in all to matter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lsm_tree::{Table, TableId};

use crate::KeyRange;
use crate::embedded::store::guarded;

/// Deletions in a file that is not worth reading: they count for every family that it may hold. There are some dozens of
/// files with several families, so together they do not come near [`Deletions::ENOUGH`].
const FEW: u64 = 500;

/// Families and how many deletions each has, those without any left out.
type ByFamily = Vec<(u8, u64)>;

#[derive(Debug)]
pub(crate) struct Deletions {
    total: AtomicU64,
    /// By the first byte of keys. Up to date if the total is more than [`Deletions::ENOUGH`].
    by_family: [AtomicU64; 256],
    /// What is known of the files that there are.
    known: Mutex<HashMap<TableId, ByFamily>>,
}

impl Deletions {
    /// As many as a scan may pass on the thread of its caller. To pass that many takes some ten milliseconds.
    pub(crate) const ENOUGH: u64 = 100_000;

    pub(crate) fn new() -> Self {
        Self {
            total: AtomicU64::new(0),
            by_family: [const { AtomicU64::new(0) }; 256],
            known: Mutex::default(),
        }
    }

    /// In all tables, as of the last look.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Whether a scan of this range may have to pass more of them than is good for the thread of its caller.
    pub(crate) fn are_many_in(&self, range: &KeyRange) -> bool {
        // Nearly always few in all.
        self.total() > Self::ENOUGH && self.in_families_of(range) > Self::ENOUGH
    }

    fn in_families_of(&self, range: &KeyRange) -> u64 {
        let first = range.start.first().copied().unwrap_or(0);
        let last = match *range.end {
            [] => return 0,
            // The end is no part of the range.
            [end] => end.saturating_sub(1),
            [last, ..] => last,
        };
        let families = self.by_family.get(first.into()..=last.into()).unwrap_or_default();
        families.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Looks how many there are. `tables`: those that have any.
    pub(crate) fn count(&self, tables: &[&Table]) {
        let total = tables.iter().map(|table| table.tombstone_count()).sum();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_family = [0_u64; 256];
        let mut still_known = HashMap::new();
        if total > Self::ENOUGH {
            for table in tables {
                let counts = known.remove(&table.id()).unwrap_or_else(|| of_table(table));
                for (family, count) in &counts {
                    by_family[usize::from(*family)] += count;
                }
                still_known.insert(table.id(), counts);
            }
        }
        *known = still_known;
        for (stored, count) in self.by_family.iter().zip(by_family) {
            stored.store(count, Ordering::Relaxed);
        }
        self.total.store(total, Ordering::Relaxed);
    }
}

/// The deletions of a file.
fn of_table(table: &Table) -> ByFamily {
    let count = table.tombstone_count();
    let keys = &table.metadata.key_range;
    let family = |key: &[u8]| key.first().copied().unwrap_or(0);
    let (first, last) = (family(keys.min()), family(keys.max()));
    let anywhere = || (first..=last).map(|family| (family, count)).collect();
    if first == last || count <= FEW {
        return anywhere();
    }
    // What cannot be read is found elsewhere.
    read(table).unwrap_or_else(|_| anywhere())
}

fn read(table: &Table) -> crate::Result<ByFamily> {
    guarded(|| {
        let mut by_family = ByFamily::new();
        for item in table.scan()? {
            let item = item?;
            if !item.is_tombstone() {
                continue;
            }
            let family = item.key.user_key.first().copied().unwrap_or(0);
            // Keys come in order, and so do families.
            match by_family.last_mut() {
                Some((last, count)) if *last == family => *count += 1,
                _ => by_family.push((family, 1)),
            }
        }
        Ok(by_family)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::range;

    fn counted(families: &[(u8, u64)]) -> Deletions {
        let deletions = Deletions::new();
        for (family, count) in families {
            deletions.by_family[usize::from(*family)].store(*count, Ordering::Relaxed);
        }
        deletions.total.store(families.iter().map(|(_, count)| count).sum(), Ordering::Relaxed);
        deletions
    }

    #[test]
    fn a_range_meets_those_of_its_own_families() {
        let deletions = counted(&[(b'E', 7), (b'M', Deletions::ENOUGH), (b'X', 5)]);
        for (start, end, expected) in [
            ("E1", "E2", 7),
            ("E", "F", 7),
            ("E1", "F", 7),
            ("F", "M", 0),
            ("M1", "M9", Deletions::ENOUGH),
            ("E", "M", 7),
            ("E", "M1", Deletions::ENOUGH + 7),
            ("", "zz", Deletions::ENOUGH + 12),
        ] {
            assert_eq!(deletions.in_families_of(&range(start, end)), expected, "{start} {end}");
        }
        assert_eq!(deletions.in_families_of(&range("M", "E")), 0);
        assert_eq!(deletions.in_families_of(&range("M", "")), 0);
    }

    #[test]
    fn many_are_more_than_enough_in_a_family() {
        let deletions = counted(&[(b'E', Deletions::ENOUGH), (b'M', Deletions::ENOUGH + 1)]);
        assert!(!deletions.are_many_in(&range("E1", "E2")));
        assert!(deletions.are_many_in(&range("M1", "M2")));
        assert!(!deletions.are_many_in(&range("T1", "T2")));
        assert!(deletions.are_many_in(&range("E", "N")));
    }
}
