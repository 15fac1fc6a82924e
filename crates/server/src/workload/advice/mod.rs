//! Which indexes would have helped the queries that ran, what they would cost, and which indexes help nobody.
//!
//! Pure: the shapes, the declared indexes and the writes come in, advice goes out. The figures are estimates from what
//! this process has seen since its start. Nothing is done by itself: an index is declared by whoever reads this.

mod group;
mod proposal;

use std::collections::{BTreeMap, BTreeSet};

use tavola_wire::Ticks;
use tavola_wire::table::filter::QueryKind;

use self::group::Group;
use self::proposal::Candidate;
use super::ShapeRecord;
use crate::storage::layout::TableId;

/// Rows examined for each one returned, above which an index is proposed: fetching by an index costs some ten rows of
/// a scan, and an index costs every write.
const EXAMINED_PER_RETURNED: u64 = 50;
/// Rows that must have been examined in vain: queries that ran a few times over little are no reason for an index.
const ROWS_SAVED_MIN: u64 = 1_000;
/// What examining a row in a scan takes (`docs/performance.md`).
const EXAMINE_SECONDS: f64 = 0.64e-6;
/// What keeping one index takes of a write.
const WRITE_SECONDS: f64 = 3e-6;
/// Bytes of an index row beside what is included: the key of the index, the values, the key of the entity.
const ROW_BYTES: u64 = 64;
/// Shapes that nobody asked for that long count no more, and an index that nobody used that long is not needed.
const UNUSED_AFTER: Ticks = Ticks(7 * 24 * 60 * Ticks::PER_MINUTE);
/// Why there is no proposal for a filter without a property that every match has a value or a bound of.
const NOTHING_TO_LOOK_FOR: &str =
    "No property in it must have a value or lie between two: an index has nothing to look for.";
const BY_BRANCHES: &str = "No property in it must have a value or lie between two, so that one index has nothing to look \
                           for; one for each branch of its `or` may serve it.";
/// A value that more than this share of the rows have is not worth an index.
const LARGE_SHARE: f64 = 0.1;
/// Parts of an index, at most.
const PARTS_MAX: usize = 4;
/// Included properties, at most.
const INCLUDED_MAX: usize = 20;
/// Bytes of a returned row up to which it is worth keeping twice.
const INCLUDED_BYTES_MAX: u64 = 1024;

/// An index that is declared, as far as advice needs to know it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredIndex {
    pub table: TableId,
    pub table_name: String,
    pub name: String,
    /// The properties of its parts, in order.
    pub keys: Vec<String>,
    /// Queries must compare this many of them: entities without a value there are not in the index.
    pub parts_needed: usize,
    /// Whether every entity that has them is in it, or will be.
    pub is_whole: bool,
    /// Whether it holds a promise or a name, so that it is of use without queries: unique, or browsable.
    pub is_kept: bool,
    /// When it was declared, or used last.
    pub used: Ticks,
    /// Whether queries use it now.
    pub is_readable: bool,
}

/// One piece of advice: a row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Advice {
    pub action: Action,
    pub table_name: String,
    /// Of the index; for queries that no index helps, a number that tells them apart.
    pub name: String,
    /// As the table of indexes takes them.
    pub keys: String,
    pub include: String,
    pub gain_seconds: f64,
    pub price_seconds: f64,
    pub price_bytes: u64,
    pub executions: u64,
    pub examined: u64,
    pub returned: u64,
    pub last_seen: Ticks,
    /// The shapes that it is about, one a line.
    pub shapes: String,
    pub note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Create,
    Drop,
    /// Queries that scan and that no index would help.
    None,
}

impl Action {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Drop => "drop",
            Self::None => "none",
        }
    }
}

impl DeclaredIndex {
    fn serves(&self, candidate: &Candidate<'_>) -> bool {
        self.is_whole
            && candidate.parts.len() >= self.parts_needed
            && candidate.is_served_by(&self.keys)
    }
}

/// Everything there is to say. `writes` tells how many entities of a table were written.
pub(crate) fn advise(
    shapes: &[ShapeRecord],
    declared: &[DeclaredIndex],
    writes: impl Fn(TableId) -> u64,
    now: Ticks,
) -> Vec<Advice> {
    let mut by_table = BTreeMap::<u64, Vec<&ShapeRecord>>::new();
    for shape in shapes.iter().filter(|shape| is_dear(shape) && is_recent(shape.last_seen, now)) {
        by_table.entry(shape.table.0).or_default().push(shape);
    }
    let mut advice = Vec::new();
    for (table, shapes) in by_table {
        let declared: Vec<_> = declared.iter().filter(|index| index.table.0 == table).collect();
        advice.extend(of_table(&shapes, &declared, writes(TableId(table))));
    }
    let unused = declared.iter().filter(|index| is_unused(index, now));
    advice.extend(unused.map(|index| drop_unused(index, writes(index.table))));
    advice
}

/// Whether it looked at enough rows in vain, by a scan.
fn is_dear(shape: &ShapeRecord) -> bool {
    shape.kind >= QueryKind::PartitionScan
        && shape.examined.saturating_sub(shape.returned) >= ROWS_SAVED_MIN
}

fn is_recent(moment: Ticks, now: Ticks) -> bool {
    now.0.saturating_sub(moment.0) < UNUSED_AFTER.0
}

fn is_unused(index: &DeclaredIndex, now: Ticks) -> bool {
    index.is_readable && !index.is_kept && !is_recent(index.used, now)
}

fn of_table(shapes: &[&ShapeRecord], declared: &[&DeclaredIndex], writes: u64) -> Vec<Advice> {
    let mut advice = Vec::new();
    let mut candidates = Vec::new();
    for shape in shapes {
        match why_not(shape) {
            Some(reason) => advice.push(no_index(shape, reason)),
            None => candidates.push(*shape),
        }
    }
    let popularity = proposal::popularity(&candidates);
    let mut groups = Vec::<Group<'_>>::new();
    let mut candidates: Vec<_> =
        candidates.into_iter().map(|shape| Candidate::new(shape, &popularity)).collect();
    // What others are served by comes before them: the longest, and those over all partitions before those within one.
    candidates.sort_by(|a, b| {
        let by_length = || b.parts.len().cmp(&a.parts.len());
        a.is_local().cmp(&b.is_local()).then_with(by_length).then_with(|| a.parts.cmp(&b.parts))
    });
    for candidate in candidates {
        if let Some(index) = declared.iter().find(|index| index.serves(&candidate)) {
            let reason = format!("The index {} serves it.", index.name);
            advice.push(no_index(candidate.shape, reason));
            continue;
        }
        match groups.iter_mut().find(|group| candidate.is_served_by(&group.parts)) {
            Some(group) => group.add(&candidate),
            None => groups.push(Group::new(candidate)),
        }
    }
    let mut names: BTreeSet<_> =
        declared.iter().map(|index| index.name.to_ascii_lowercase()).collect();
    advice.extend(groups.into_iter().map(|group| group.advice(&mut names, declared, writes)));
    advice
}

/// Why no index would help a query that scans.
fn why_not(shape: &ShapeRecord) -> Option<String> {
    if shape.examined <= EXAMINED_PER_RETURNED.saturating_mul(shape.returned) {
        let share = shape.returned as f64 / shape.examined.max(1) as f64;
        return Some(match share > LARGE_SHARE {
            true => format!(
                "It returns {:.0} % of the rows that it examines: its values tell too few rows apart.",
                100.0 * share
            ),
            false => format!(
                "It returns one row of {:.0} that it examines: an index would gain little.",
                1.0 / share
            ),
        });
    }
    let can_be_found = !shape.terms.equals.is_empty()
        || shape.terms.bounds.iter().any(|name| name != "PartitionKey");
    // The text has no literals.
    let has_branches = shape.text.contains(" or ");
    (!can_be_found).then(|| if has_branches { BY_BRANCHES } else { NOTHING_TO_LOOK_FOR }.to_owned())
}

fn no_index(shape: &ShapeRecord, reason: String) -> Advice {
    // Of the text alone, so that the row keeps its key.
    let number = shape.text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Advice {
        action: Action::None,
        table_name: shape.table_name.clone(),
        name: format!("{number:016x}"),
        keys: String::new(),
        include: String::new(),
        gain_seconds: 0.0,
        price_seconds: 0.0,
        price_bytes: 0,
        executions: shape.executions,
        examined: shape.examined,
        returned: shape.returned,
        last_seen: shape.last_seen,
        shapes: shape.text.clone(),
        note: reason,
    }
}

fn drop_unused(index: &DeclaredIndex, writes: u64) -> Advice {
    Advice {
        action: Action::Drop,
        table_name: index.table_name.clone(),
        name: index.name.clone(),
        keys: index.keys.join(","),
        include: String::new(),
        gain_seconds: writes as f64 * WRITE_SECONDS,
        price_seconds: 0.0,
        price_bytes: 0,
        executions: 0,
        examined: 0,
        returned: 0,
        last_seen: index.used,
        shapes: String::new(),
        note: format!(
            "No query has used it for 7 days, and {writes} writes since the start paid for it."
        ),
    }
}

#[cfg(test)]
mod tests;
