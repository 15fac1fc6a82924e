//! Filling a page with the help of indexes.
//!
//! An index only proposes entity keys. Every way of reading proposes them in the order of entity keys and from the same
//! position on, so that a page may begin with one, go on with another, and hand over to a next page that uses a third: the
//! position is an entity key, as it is in a continuation token. The page itself asks the filter about each entity, so that no mistake
//! here can show an entity that does not match.

mod base;
mod batch;
mod candidate;
mod choice;
mod cost;
mod entry;
mod explain;
mod ordered;
mod orphan;
mod room;
mod smallest;
mod sorted;
mod spans;
#[cfg(test)]
mod tests_support;
mod unordered;

use std::borrow::Cow;
use std::time::Instant;

use tavola_engine::{Engine, Reader, Visitor, successor};
use tavola_wire::explain::How;
use tavola_wire::table::filter::{QueryKind, Span};

use self::base::{scan_rest, scan_rows};
use self::batch::FIRST_ROWS;
use self::candidate::Candidate;
use self::choice::Way;
use self::cost::{
    Comparisons, PASSED_PER_LOOK_UP, ScanSteps, Stretch, Work, rows_passed_meanwhile,
    rows_per_entry,
};
use self::entry::Entry;
use self::ordered::{Merged, Next, Ordered, ReadAhead};
use self::unordered::Ahead;
use super::entity_page::Page;
use crate::context::RequestContext;
use crate::error::{Result, engine_error};
use crate::storage::catalogue::Table;
use crate::storage::layout::{EntityKeys, IndexKeys};

pub(crate) use self::batch::{BATCH_ROWS, Batch};
pub(crate) use self::candidate::Hint;
pub(crate) use self::choice::{Choice, IndexQuery, choose};
pub(crate) use self::explain::IndexUse;
pub(crate) use self::orphan::report_orphan;

/// Rows of a bounded range in one partition that are read before an index is thought of.
const RANGE_ROWS: u64 = 1000;
/// Ranges that are read without comparing them with a scan first.
const RANGES_UNCOMPARED: usize = 16;
/// Look-ups between two moments at which other requests of the thread get their turn.
const LOOK_UPS_PER_YIELD: u64 = 32;

/// Fills the page. Index rows and entities are read from one state.
pub(crate) async fn fill(
    context: &RequestContext<'_>,
    table: &Table,
    query: &IndexQuery<'_>,
    choice: Choice,
    page: Box<Page>,
) -> Result<(Box<Page>, IndexUse)> {
    let Choice { way, used } = choice;
    let snapshot = context.state.engine.snapshot().await.map_err(engine_error)?;
    let mut run = Run {
        context,
        reader: &snapshot,
        table,
        query,
        entity_keys: table.keys(),
        from: query.spans.first().map_or_else(Vec::new, |span| span.start.clone()),
        spans: Cow::Borrowed(query.spans),
        is_at_end: query.spans.is_empty(),
        page: Some(page),
        used,
        work: Work::default(),
    };
    if query.kind == QueryKind::Range && !query.hint.is_forced() {
        run.scan(RANGE_ROWS).await?;
    }
    match way {
        // It was short.
        _ if run.is_done() => {}
        Way::Ordered(candidates, second) => run.ordered(&candidates, second.as_ref()).await?,
        Way::Sorted(candidates, branches) => {
            if !run.first_sorted(&candidates).await? && !branches.is_empty() {
                run.ordered(&branches, None).await?;
            }
        }
    }
    if !run.is_done() {
        run.scan_rest().await?;
    }
    run.used.is_given_up = run.work.is_scan_most(run.used.entries);
    run.note_uses();
    Ok((run.page.expect("it is only lent"), run.used))
}

/// A page that is being filled.
struct Run<'r, R> {
    context: &'r RequestContext<'r>,
    reader: &'r R,
    table: &'r Table,
    query: &'r IndexQuery<'r>,
    entity_keys: EntityKeys,
    /// All entities before this one have been looked at.
    from: Vec<u8>,
    /// Those of the query, as far as any entity may match.
    spans: Cow<'r, [Span]>,
    /// Whether there are no more.
    is_at_end: bool,
    /// Lent to scans.
    page: Option<Box<Page>>,
    used: IndexUse,
    work: Work,
}

impl<R: Reader> Run<'_, R> {
    fn is_done(&self) -> bool {
        self.is_at_end || self.page.as_ref().is_none_or(|page| page.is_done())
    }

    fn deadline(&self) -> Instant {
        self.page.as_ref().expect("it is here between scans").deadline()
    }

    /// There is no time for more.
    fn end_before(&mut self, next: Vec<u8>) {
        self.page.as_mut().expect("it is here between scans").end_before(next);
    }

    fn index_keys(&self, number: u16) -> IndexKeys {
        IndexKeys::of(self.table.id, number)
    }

    fn note(&mut self, how: How, candidates: &[Candidate]) {
        self.used.how = Some(how);
        self.used.is_covering = candidates.iter().all(Candidate::is_covering);
        self.used.is_partial = candidates.iter().any(Candidate::is_partial);
        for candidate in candidates {
            if !self.used.names.contains(&candidate.index().name) {
                self.used.names.push(candidate.index().name.clone());
            }
        }
    }

    /// Counts the page for the indexes that found it.
    fn note_uses(&self) {
        if !self.used.is_useful() {
            return;
        }
        let context = self.context;
        let is_first = context.head.query.next_partition_key().is_none();
        let used = self.table.schema.indexes().iter();
        for index in used.filter(|it| it.state.is_read() && self.used.names.contains(&it.name)) {
            index.statistics.note_page(is_first, context.state.clock.now());
        }
    }

    /// Counts rows that were scanned after an index was begun; those before are read whatever comes of them.
    fn note_scanned(&mut self, rows: u64) {
        if self.used.is_used() {
            self.work.rows_scanned += rows;
        }
    }

    /// Reads entities in order until the page is done.
    async fn scan_rest(&mut self) -> Result<()> {
        let page = self.page.take().expect("it is here between scans");
        let before = page.examined();
        let (reader, spans) = (self.reader, &self.spans);
        let page = scan_rest(reader, self.entity_keys, spans, &self.from, page).await?;
        self.note_scanned(page.examined() - before);
        self.page = Some(page);
        self.is_at_end = true;
        Ok(())
    }

    /// Reads entities in order: how many of them were shown and how many matched.
    async fn scan(&mut self, rows_max: u64) -> Result<(u64, u64)> {
        let page = self.page.take().expect("it is here between scans");
        let before = (page.examined(), page.returned());
        let (reader, spans) = (self.reader, &self.spans);
        let (page, next) =
            scan_rows(reader, self.entity_keys, spans, &self.from, rows_max, page).await?;
        let (rows, matches) = (page.examined() - before.0, page.returned() - before.1);
        self.note_scanned(rows);
        self.page = Some(page);
        match next {
            Some(next) => self.from = next,
            None => self.is_at_end = true,
        }
        Ok((rows, matches as u64))
    }

    async fn ordered(
        &mut self,
        candidates: &[Candidate],
        second: Option<&Candidate>,
    ) -> Result<()> {
        let is_covering = candidates.iter().all(Candidate::is_covering);
        let is_common = second.is_none() && self.has_common_value(candidates, is_covering);
        let first_rows = if is_common { FIRST_ROWS } else { BATCH_ROWS };
        let ahead = ReadAhead { top: self.query.top, first_rows };
        let merged = |candidates: &[Candidate]| {
            let memory = self.context.state.memory_budget.reservation();
            let spans = self.query.spans;
            Merged::new(candidates, spans, ahead, memory, |number| self.index_keys(number))
        };
        let second_side = second.map(|second| merged(std::slice::from_ref(second)));
        let spans = self.query.spans;
        let mut entries = Ordered::new(spans, merged(candidates), second_side, self.deadline());
        if is_covering {
            entries = entries.only_if_second_is_short();
        }
        let ranges: usize = candidates.iter().map(|it| it.access.ranges.len()).sum();
        self.note(if ranges > 1 { How::Merged } else { How::Ordered }, candidates);
        let is_compared = !self.query.hint.is_forced();
        if ranges > RANGES_UNCOMPARED && is_compared {
            // They cost as many look-ups before the first entity is found: where there are matches enough, a page is sooner full.
            self.scan_while_full(ScanSteps::before(ranges), rows_per_entry(is_covering)).await?;
        }
        let mut comparisons = Comparisons::new(is_covering, is_common);
        // What two sides have in common may be far between.
        let mut comparisons_of_passed = Comparisons::new(false, false);
        let mut look_ups = 0;
        while !self.is_done() {
            let passed_max = match is_compared {
                true => PASSED_PER_LOOK_UP * comparisons_of_passed.next(),
                false => u64::MAX,
            };
            match entries.next(self.reader, &self.from, passed_max).await? {
                Next::Entry(entry) => {
                    self.show(entry).await?;
                    look_ups += 1;
                    if look_ups % LOOK_UPS_PER_YIELD == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Next::NoneBefore(next) if entries.is_late => self.end_before(next),
                Next::NoneBefore(next) => self.from = next,
                Next::End => self.is_at_end = true,
            }
            let passed = entries.passed / PASSED_PER_LOOK_UP;
            let due = [(&mut comparisons, look_ups), (&mut comparisons_of_passed, passed)];
            let due = due.into_iter().find(|(comparisons, so_far)| comparisons.is_due(*so_far));
            let Some((comparisons, so_far)) = due else { continue };
            // The rest of a short list is looked up sooner than anything is compared.
            if is_compared && !entries.is_read() {
                let is_covering = match second.filter(|_| entries.is_second_alone) {
                    Some(second) => second.is_covering(),
                    None => is_covering,
                };
                let steps = ScanSteps::first(comparisons.rows(), is_common);
                let ahead = Ahead::Ordered(&mut entries);
                let rows_per_entry = rows_per_entry(is_covering);
                let rows = self.scan_while_cheaper(ahead, steps, rows_per_entry).await?;
                comparisons.done(so_far, rows);
            }
        }
        self.note_second(&entries, second);
        self.used.entries += entries.entries();
        Ok(())
    }

    /// Whether the build has found a value that so many entities have that a scan may be better, or all of a list of values. Of
    /// two sides, the one that ends within a batch is used alone.
    fn has_common_value(&self, candidates: &[Candidate], is_covering: bool) -> bool {
        if self.query.is_restricted {
            return false;
        }
        let one_in = cost::common_one_in(is_covering);
        // The build counts values of the first part.
        let single = candidates.iter().filter(|it| it.index().definition.keys.len() == 1);
        let (mut values, mut entries) = (0, 0);
        for it in single {
            let statistics = &it.index().statistics;
            values += it.access.intervals as u64;
            entries += it.access.intervals as u64 * statistics.entries_of_a_value().unwrap_or(0);
            let is_common_list = values > 1 && entries * one_in > statistics.rows();
            if statistics.has_common_value(one_in) || is_common_list {
                return true;
            }
        }
        false
    }

    /// What the second side was good for.
    fn note_second(&mut self, entries: &Ordered<'_>, second: Option<&Candidate>) {
        let second = second.map_or(&[][..], std::slice::from_ref);
        if entries.is_second_alone {
            self.used.names.clear();
            self.note(How::Ordered, second);
        }
        if entries.is_intersected {
            // The rows that are shown are of the first.
            let is_covering = self.used.is_covering;
            self.note(How::Intersected, second);
            self.used.is_covering = is_covering;
        }
    }

    /// Reads in order for as long as there are so many matches that an index would not find them sooner.
    async fn scan_while_full(&mut self, mut steps: ScanSteps, rows_per_match: u64) -> Result<()> {
        while !self.is_done() {
            let scanned_before = self.work.rows_scanned;
            let (rows, matches) = self.scan(steps.rows()).await?;
            if matches * rows_per_match < rows {
                // The index goes on: it was not given up, but compared.
                self.work.rows_scanned = scanned_before;
                break;
            }
            steps.grow();
        }
        Ok(())
    }

    /// Reads in order for as long as that gets on sooner than look-ups do: as long as there are more entries among the rows
    /// than could be looked up in that time, be they matches or not. Answers how many rows were read.
    async fn scan_while_cheaper(
        &mut self,
        mut ahead: Ahead<'_, '_>,
        mut steps: ScanSteps,
        rows_per_entry: u64,
    ) -> Result<u64> {
        let scanned_before = self.work.rows_scanned;
        while !self.is_done() {
            let begin = self.from.clone();
            let (rows, matches) = self.scan(steps.rows()).await?;
            if self.is_done() {
                break;
            }
            let enough = rows.div_ceil(rows_per_entry);
            // Each match has an entry, which need not be read.
            if matches >= enough {
                steps.told_by_matches(rows, matches);
                continue;
            }
            let passed_max = rows_passed_meanwhile(rows);
            if !ahead.has(enough, passed_max, self.reader, &begin, &self.from).await? {
                break;
            }
            match steps.told_by_entries(rows, matches) {
                Stretch::Nothing => {}
                Stretch::Rows(rows) => drop(self.scan(rows).await?),
                Stretch::Rest => self.scan_rest().await?,
            }
        }
        Ok(self.work.rows_scanned - scanned_before)
    }

    /// Shows one entity to the page.
    async fn show(&mut self, entry: Entry) -> Result<()> {
        self.work.look_ups += 1;
        let key = self.entity_keys.raw(&entry.entity_key);
        let page = self.page.as_mut().expect("it is here between scans");
        match entry.entity {
            Some(entity) => drop(page.visit(&key, &entity)),
            None => match self.reader.get(&key).await.map_err(engine_error)? {
                Some(entity) => drop(page.visit(&key, &entity)),
                None => report_orphan(self.context, self.table, entry.index, &entry.entity_key),
            },
        }
        self.from = successor(&entry.entity_key);
        Ok(())
    }
}
