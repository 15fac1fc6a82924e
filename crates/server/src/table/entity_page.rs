//! One page of entities in the making.
//!
//! The visitor is the executor: it filters, projects and writes JSON straight from the stored bytes. A page ends at `$top`
//! or 1000 entities, at about 4 MiB, when its server time is used up, or when there is no more memory for messages. The
//! next one begins with the first row that has not been looked at, or that found no room.
//!
//! A page that few rows match can be made by several threads: a fork is a page of its own for rows further on, and joins
//! when all before them were looked at.

use std::ops::ControlFlow;
use std::time::Instant;

use tavola_engine::Visitor;
use tavola_wire::ErrorCode;
use tavola_wire::table::filter::{Program, Scratch, Span};
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::names::key_problem;
use tavola_wire::table::negotiate::MetadataLevel;
use tavola_wire::table::stored::key::read_entity_key;
use tavola_wire::table::stored::{EntityRef, MalformedEntity};

use crate::error::{Result, corrupt};
use crate::net::memory_budget::Reservation;
use crate::storage::layout::entity_key_of;

/// A page that has grown beyond this ends, whatever its count.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Rows that are looked at behind a full page for one that matches: a token is for a page that has something.
const PEEKED_ROWS_MAX: usize = 1000;
/// Rows between two looks at the clock.
const ROWS_PER_TIME_CHECK: u64 = 64;
/// Rows that a page must still need, as far as one can tell, for others to look at rows ahead.
const FORKED_ROWS_MIN: u64 = 32 * 1024;

/// A page in the making. Boxed: it is moved between threads and large.
pub(crate) struct Page {
    format: EntityFormat,
    residual: Option<Program>,
    scratch: Scratch,
    body: Vec<u8>,
    memory: Reservation,
    examined: u64,
    returned: usize,
    returned_max: usize,
    /// Rows that were passed without a look.
    passed: u64,
    /// Rows looked at or passed since the page was full.
    peeked: usize,
    deadline: Instant,
    /// The entity key of the first row of the next page.
    next: Option<Vec<u8>>,
    failure: Option<Failure>,
    /// Of a fork: the entity key of each row on it, and where in the body it ends.
    forked: Option<Vec<(Vec<u8>, usize)>>,
}

/// A page that will not change any more.
pub(crate) struct FinishedPage {
    pub level: MetadataLevel,
    pub body: Vec<u8>,
    /// What its body has reserved of the memory for messages.
    pub memory: Reservation,
    pub examined: u64,
    pub returned: usize,
    /// The entity key of the first row of the next page.
    pub next: Option<Vec<u8>>,
}

impl Page {
    pub(crate) fn new(
        format: EntityFormat,
        residual: Option<Program>,
        returned_max: usize,
        deadline: Instant,
        memory: Reservation,
    ) -> Box<Self> {
        let mut body = Vec::with_capacity(1024);
        format.push_list_start(&mut body);
        Box::new(Self {
            format,
            residual,
            scratch: Scratch::default(),
            body,
            memory,
            examined: 0,
            returned: 0,
            returned_max,
            passed: 0,
            peeked: 0,
            deadline,
            next: None,
            failure: None,
            forked: None,
        })
    }

    /// Rows looked at so far.
    pub(crate) fn examined(&self) -> u64 {
        self.examined
    }

    /// Rows on it so far.
    pub(crate) fn returned(&self) -> usize {
        self.returned
    }

    pub(crate) fn is_done(&self) -> bool {
        self.next.is_some() || self.failure.is_some()
    }

    /// Whether the page must end before the next row. At least one row is examined, so that paging advances.
    fn is_over(&self) -> bool {
        self.body.len() >= PAGE_BYTES_MAX
            || self.peeked >= PEEKED_ROWS_MAX
            || (self.examined > 0
                && self.examined.is_multiple_of(ROWS_PER_TIME_CHECK)
                && Instant::now() >= self.deadline)
    }

    /// Whether nothing is asked for.
    pub(crate) fn has_no_room(&self) -> bool {
        self.returned_max == 0
    }

    /// Passes a row that is not to be looked at; false if the page has to end before it. At least one is passed.
    pub(crate) fn pass(&mut self) -> bool {
        let is_late = self.passed > 0
            && self.passed.is_multiple_of(ROWS_PER_TIME_CHECK)
            && Instant::now() >= self.deadline;
        self.passed += 1;
        self.peeked += usize::from(self.returned == self.returned_max);
        !is_late && self.peeked <= PEEKED_ROWS_MAX
    }

    /// Ends the page before a span when the time is up: what is not found is not counted.
    pub(crate) fn end_in_time(&mut self, next: Option<&Span>) {
        if Instant::now() >= self.deadline {
            self.next = next.and_then(first_key);
        }
    }

    /// Until when it may go on.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Ends the page before an entity.
    pub(crate) fn end_before(&mut self, entity_key: Vec<u8>) {
        self.next = Some(entity_key);
    }

    /// Ends it.
    ///
    /// # Errors
    /// 500 when a row is damaged, 503 `ServerBusy` when there is no memory for the first row.
    pub(crate) fn finish(self: Box<Self>) -> Result<FinishedPage> {
        let Self { format, mut body, mut memory, examined, returned, next, failure, .. } = *self;
        match failure {
            Some(Failure::Malformed(malformed)) => return Err(corrupt(malformed)),
            Some(Failure::NoMemory) => return Err(ErrorCode::ServerBusy.into()),
            None => {}
        }
        format.push_list_end(&mut body);
        memory.shrink_to(body.len());
        Ok(FinishedPage { level: format.level(), body, memory, examined, returned, next })
    }

    /// Takes the row, leaves it out, or finds it to be the first of the next page.
    fn examine(&mut self, entity_key: &[u8], value: &[u8]) -> Result<Found, Failure> {
        let is_full = self.returned == self.returned_max;
        if is_full && self.residual.is_none() {
            return Ok(Found::NextPage);
        }
        self.examined += 1;
        self.peeked += usize::from(is_full);
        let entity = EntityRef::parse(value)?;
        if let Some(residual) = &self.residual
            && !residual.matches(entity_key, entity, &mut self.scratch)?
        {
            return Ok(Found::ThisPage);
        }
        if is_full {
            return Ok(Found::NextPage);
        }
        let (partition_key, row_key) =
            read_entity_key(entity_key).ok_or(MalformedEntity { at: 0 })?;
        // A row of a fork is behind others.
        let first = self.returned == 0 && self.forked.is_none();
        let before = self.body.len();
        self.format.push_item(&mut self.body, first, &partition_key, &row_key, entity)?;
        let with_end = |bytes: usize| bytes + EntityFormat::LIST_END.len();
        if self.memory.grow_ahead_to(with_end(self.body.len())).is_err() {
            self.body.truncate(before);
            // Or the reply would keep the room of a row that there is none for.
            self.body.shrink_to(with_end(before));
            let is_alone = self.examined == 1 && self.forked.is_none();
            return if is_alone { Err(Failure::NoMemory) } else { Ok(Found::NextPage) };
        }
        self.returned += 1;
        if let Some(forked) = &mut self.forked {
            forked.push((entity_key.to_vec(), self.body.len()));
        }
        Ok(Found::ThisPage)
    }

    /// Whether very many rows are needed to fill it.
    fn is_long(&self) -> bool {
        let missing = (self.returned_max - self.returned) as u64;
        let rows_per_match = self.examined / (self.returned as u64).max(1);
        self.residual.is_some() && missing.saturating_mul(rows_per_match) >= FORKED_ROWS_MIN
    }

    /// Takes a row of a fork, or finds it to be the first of the next page.
    fn take(&mut self, entity_key: &[u8], item: &[u8]) -> ControlFlow<()> {
        let item = if self.returned == 0 { &item[1..] } else { item };
        let bytes = self.body.len() + item.len() + EntityFormat::LIST_END.len();
        let has_room = self.returned < self.returned_max
            && self.body.len() < PAGE_BYTES_MAX
            && self.memory.grow_ahead_to(bytes).is_ok();
        if !has_room {
            self.next = Some(entity_key.to_vec());
            return ControlFlow::Break(());
        }
        self.body.extend_from_slice(item);
        self.returned += 1;
        ControlFlow::Continue(())
    }
}

/// The key that a span begins with, if it does: a page cannot end between two keys.
fn first_key(span: &Span) -> Option<Vec<u8>> {
    let (partition_key, row_key) = read_entity_key(&span.start)?;
    let are_keys = key_problem(&partition_key).is_none() && key_problem(&row_key).is_none();
    are_keys.then(|| span.start.clone())
}

/// Why there is no page.
enum Failure {
    Malformed(MalformedEntity),
    /// The first row is too much.
    NoMemory,
}

impl From<MalformedEntity> for Failure {
    fn from(malformed: MalformedEntity) -> Self {
        Self::Malformed(malformed)
    }
}

/// Which page a row belongs to, be it in it or left out of it.
enum Found {
    ThisPage,
    NextPage,
}

impl Visitor for Box<Page> {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let entity_key = entity_key_of(key);
        let found =
            if self.is_over() { Ok(Found::NextPage) } else { self.examine(entity_key, value) };
        match found {
            Ok(Found::ThisPage) => return ControlFlow::Continue(()),
            Ok(Found::NextPage) => self.next = Some(entity_key.to_vec()),
            Err(failure) => self.failure = Some(failure),
        }
        ControlFlow::Break(())
    }

    fn fork(&self) -> Option<Self> {
        if !self.is_long() {
            return None;
        }
        let (format, residual) = (self.format.clone(), self.residual.clone());
        let missing = self.returned_max - self.returned;
        let mut fork = Page::new(format, residual, missing, self.deadline, self.memory.another());
        // It begins no list: its rows stand behind others.
        fork.body.clear();
        fork.forked = Some(Vec::new());
        Some(fork)
    }

    fn join(&mut self, fork: Self) -> ControlFlow<()> {
        self.examined += fork.examined;
        if self.returned == self.returned_max {
            self.peeked += usize::try_from(fork.examined).unwrap_or(usize::MAX);
        }
        let mut start = 0;
        for (entity_key, end) in fork.forked.iter().flatten() {
            self.take(entity_key, &fork.body[start..*end])?;
            start = *end;
        }
        self.next = fork.next;
        self.failure = fork.failure;
        if self.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use serde_json::Value as Json;
    use tavola_wire::table::filter::Plan;
    use tavola_wire::table::stored::{EntityWriter, Value};

    use super::*;
    use crate::net::memory_budget::MemoryBudget;
    use crate::storage::layout::{EntityKeys, TableId};

    const MIB: usize = 1024 * 1024;

    /// A budget of eight MiB, six of them for large messages, and what others have reserved of it.
    fn budget_of_which_others_have(bytes: usize) -> (Arc<MemoryBudget>, Reservation) {
        let budget = Arc::new(MemoryBudget::new(8 * MIB));
        let mut others = budget.reservation();
        others.grow_to(bytes).unwrap();
        (budget, others)
    }

    /// Shows rows to a page, named by their number, with a text of that many bytes each.
    fn show(filter: &str, budget: &Arc<MemoryBudget>, rows: &[usize]) -> Box<Page> {
        let format = EntityFormat::new(MetadataLevel::None, "", "", "t", None).unwrap();
        let residual = Plan::read(filter).unwrap().residual;
        let deadline = Instant::now() + Duration::from_secs(600);
        let mut page = Page::new(format, residual, 1000, deadline, budget.reservation());
        for (number, bytes) in rows.iter().enumerate() {
            let (key, entity) = row(number, *bytes);
            if page.visit(&key, &entity).is_break() {
                break;
            }
        }
        page
    }

    fn row(number: usize, bytes: usize) -> (Bytes, Vec<u8>) {
        let mut entity = EntityWriter::new();
        entity.push("Size", Value::Int32(i32::try_from(bytes).unwrap()));
        entity.push("Text", Value::String(&"x".repeat(bytes)));
        (EntityKeys::of(TableId(1)).key("p", &number.to_string()), entity.finish())
    }

    /// The row keys on a page, and that of the first row of the next one.
    fn row_keys(page: &FinishedPage) -> (Vec<String>, Option<String>) {
        let json: Json = serde_json::from_slice(&page.body).expect("JSON");
        let rows = json["value"].as_array().expect("a list").iter();
        let keys = rows.map(|row| row["RowKey"].as_str().expect("a key").to_owned());
        let next = page.next.as_deref().and_then(read_entity_key);
        (keys.collect(), next.map(|(_, row_key)| row_key.into_owned()))
    }

    /// Shows each third of the rows to a page of its own, and joins them.
    fn show_in_parts(filter: &str, budget: &Arc<MemoryBudget>, rows: &[usize]) -> Box<Page> {
        let format = EntityFormat::new(MetadataLevel::None, "", "", "t", None).unwrap();
        let residual = Plan::read(filter).unwrap().residual;
        let deadline = Instant::now() + Duration::from_secs(600);
        let mut first = Page::new(format, residual, 1000, deadline, budget.reservation());
        first.examined = FORKED_ROWS_MIN;
        let mut parts = vec![first.fork().expect("it is long"), first.fork().expect("it is long")];
        parts.insert(0, first);
        for (number, bytes) in rows.iter().enumerate() {
            let part = &mut parts[3 * number / rows.len()];
            if part.is_done() {
                continue;
            }
            let (key, entity) = row(number, *bytes);
            let _ = part.visit(&key, &entity);
        }
        let mut parts = parts.into_iter();
        let mut first = parts.next().unwrap();
        for part in parts {
            if first.is_done() || first.join(part).is_break() {
                break;
            }
        }
        first
    }

    #[test]
    fn a_page_of_parts_is_the_same_page() {
        let filters = ["Size gt 0", "Size gt 2", "Size gt 5", "Size eq 77"];
        let all: Vec<usize> = (0..3600).map(|number| number * 7 % 6).collect();
        for filter in filters {
            for rows in [&all[..], &all[..30], &all[..1500], &all[..2400]] {
                let (budget, _others) = budget_of_which_others_have(0);
                let whole = show(filter, &budget, rows).finish().unwrap();
                let parts = show_in_parts(filter, &budget, rows).finish().unwrap();
                assert_eq!(row_keys(&parts), row_keys(&whole), "{filter}, {} rows", rows.len());
                assert_eq!(parts.body, whole.body);
            }
        }
    }

    #[test]
    fn a_page_of_parts_ends_where_there_is_no_more_memory() {
        let (budget, others) = budget_of_which_others_have(3 * MIB);
        let page = show_in_parts("Size gt 0", &budget, &[10, MIB, MIB, MIB, 10, 10]);
        let page = page.finish().unwrap();
        let (rows, next) = row_keys(&page);
        assert_eq!(next, Some(rows.len().to_string()), "the next page begins behind the last row");
        assert!(rows.len() < 6);
        drop(page);
        drop(others);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_page_that_is_soon_full_is_not_forked() {
        let (budget, _others) = budget_of_which_others_have(0);
        assert!(show("Size gt 0", &budget, &[1; 500]).fork().is_none());
        assert!(show("Size eq 0 or Size ne 0", &budget, &[1; 10]).fork().is_none());
    }

    #[test]
    fn a_page_ends_where_there_is_no_more_memory() {
        let (budget, others) = budget_of_which_others_have(3 * MIB);
        let used_by_others = budget.used();
        let page = show("Size gt 0", &budget, &[MIB, MIB, MIB, 10]).finish().unwrap();
        assert_eq!(row_keys(&page), (vec!["0".to_owned(), "1".to_owned()], Some("2".to_owned())));
        assert_eq!(budget.used(), used_by_others + page.body.len());
        let spare = page.body.capacity() - page.body.len();
        assert!(spare < 1024, "the row without room still has it: {spare} bytes");
        drop((page, others));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn without_memory_for_the_first_row_there_is_no_page() {
        let (budget, others) = budget_of_which_others_have(6 * MIB);
        let page = show("Size gt 0", &budget, &[MIB, 10]);
        assert_eq!(page.finish().err().map(|error| error.code()), Some(ErrorCode::ServerBusy));
        let small = show("Size gt 0", &budget, &[60 * 1024, MIB]).finish().unwrap();
        assert_eq!(row_keys(&small), (vec!["0".to_owned()], Some("1".to_owned())));
        drop((small, others));
        assert_eq!(budget.used(), 0);
    }

    /// What was left out before it has been looked at, and is not again.
    #[test]
    fn a_page_may_end_before_its_first_match() {
        let (budget, _others) = budget_of_which_others_have(6 * MIB);
        let page = show("Size gt 100", &budget, &[10, 10, MIB]).finish().unwrap();
        assert_eq!(row_keys(&page), (vec![], Some("2".to_owned())));
        assert_eq!((page.examined, page.returned), (3, 0));
    }

    #[test]
    fn a_page_can_end_before_points_and_most_ranges() {
        let cases = [
            ("PartitionKey eq 'a' and RowKey eq '1'", Some(("a", "1"))),
            ("PartitionKey eq 'a' and RowKey ge '1' and RowKey lt '2'", Some(("a", "1"))),
            ("PartitionKey eq 'a'", Some(("a", ""))),
            ("PartitionKey eq 'a' and RowKey gt '1'", None),
            ("A eq 1", None),
        ];
        for (filter, expected) in cases {
            let plan = Plan::read(filter).unwrap();
            let key = first_key(&plan.spans[0]);
            let found = key.as_deref().and_then(read_entity_key);
            let found = found.as_ref().map(|(partition, row)| (&**partition, &**row));
            assert_eq!(found, expected, "{filter}");
        }
    }
}
