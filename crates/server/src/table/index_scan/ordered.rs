//! Index rows in the order of entity keys: ranges whose rows all have the same parts, merged, and two such intersected.
//!
//! Each range is read some rows at a time, from the key that is asked for. To ask for a later key is to seek.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use tavola_engine::{Reader, successor};
use tavola_wire::table::filter::Span;
use tavola_wire::table::index::{AccessRange, RowRef};

use super::batch::{BATCH_ROWS, Batch};
use super::candidate::{Candidate, Coverage};
use super::entry::Entry;
use super::room::Room;
use super::spans::{first_from, is_in};
use crate::error::{Result, corrupt};
use crate::net::memory_budget::Reservation;
use crate::storage::layout::IndexKeys;

/// Rows that all ranges together read first at least: as much as a few ranges always may.
const ROWS_AHEAD_MIN: usize = 4 * BATCH_ROWS;
/// A range that has come to the end of a batch reads so many times as much.
const BATCH_GROWTH: usize = 4;
/// Ranges whose first rows are read between two moments at which other requests of the thread get their turn.
const STREAMS_PER_YIELD: usize = 16;

/// Ranges of one or several indexes, merged. A key that several have comes once.
pub(super) struct Merged {
    streams: Vec<Stream>,
    /// The first key of each stream that has one.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    has_begun: bool,
    /// What the buffers of all of them may hold.
    room: Room,
    /// Rows read so far.
    pub entries: u64,
}

/// How much is read ahead.
#[derive(Clone, Copy)]
pub(super) struct ReadAhead {
    /// Entities that the page may hold.
    pub top: usize,
    /// Rows of the first batch of a range at most.
    pub first_rows: usize,
}

impl ReadAhead {
    /// Rows of the first batch of each of so many ranges: together somewhat more than the page needs.
    fn rows_of_each(self, ranges: usize) -> usize {
        let rows = (2 * self.top).max(ROWS_AHEAD_MIN) / ranges.max(1);
        rows.clamp(1, self.first_rows)
    }
}

/// One range.
struct Stream {
    candidate: Candidate,
    keys: IndexKeys,
    range: AccessRange,
    buffer: VecDeque<Entry>,
    /// Where the next batch begins; `None` if there is no more.
    position: Option<Vec<u8>>,
    /// Rows of the next batch.
    batch_rows: usize,
}

impl Merged {
    pub(super) fn new(
        candidates: &[Candidate],
        spans: &[Span],
        ahead: ReadAhead,
        memory: Reservation,
        keys: impl Fn(u16) -> IndexKeys,
    ) -> Self {
        let ranges = candidates.iter().map(|it| it.access.ranges.len()).sum();
        let batch_rows = ahead.rows_of_each(ranges);
        let streams = candidates.iter().flat_map(|candidate| {
            let keys = keys(candidate.index().number);
            candidate.access.ranges.iter().map(move |range| Stream {
                candidate: candidate.clone(),
                keys,
                position: Some(range.start.clone()),
                range: up_to_last(spans, range, candidate.index().definition.unique),
                buffer: VecDeque::new(),
                batch_rows,
            })
        });
        Self {
            streams: streams.collect(),
            heads: BinaryHeap::new(),
            has_begun: false,
            room: Room::new(memory),
            entries: 0,
        }
    }

    /// The stream with the first entry from `from` on. It comes again unless a later one is asked for.
    async fn seek(&mut self, reader: &impl Reader, from: &[u8]) -> Result<Option<usize>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            for number in 0..self.streams.len() {
                self.advance(reader, number, from).await?;
                if (number + 1).is_multiple_of(STREAMS_PER_YIELD) {
                    tokio::task::yield_now().await;
                }
            }
        }
        while let Some(Reverse((key, number))) = self.heads.peek() {
            let number = *number;
            if **key >= *from {
                return Ok(Some(number));
            }
            self.heads.pop();
            self.advance(reader, number, from).await?;
        }
        Ok(None)
    }

    fn head(&self, number: usize) -> Option<&[u8]> {
        self.streams[number].buffer.front().map(|entry| &entry.entity_key[..])
    }

    /// Takes the first entry of a stream. Its key stays among the heads until a later one is asked for.
    fn take(&mut self, number: usize) -> Option<Entry> {
        self.streams[number].take(&mut self.room)
    }

    /// Whether everything there is has been read already.
    fn is_read(&self) -> bool {
        self.has_begun && self.streams.iter().all(|stream| stream.position.is_none())
    }

    async fn advance(&mut self, reader: &impl Reader, number: usize, from: &[u8]) -> Result<()> {
        let stream = &mut self.streams[number];
        self.entries += stream.seek(reader, from, &mut self.room).await?;
        if let Some(entry) = stream.buffer.front() {
            self.heads.push(Reverse((entry.entity_key.clone(), number)));
        }
        Ok(())
    }
}

/// A range without the rows behind the last span. They are not read, and so nothing can depend on whether there are any.
fn up_to_last(spans: &[Span], range: &AccessRange, is_unique: bool) -> AccessRange {
    let mut range = range.clone();
    let end = spans.last().and_then(|span| span.end.as_deref());
    if let (Some(beginning), Some(end), false) = (&range.ordered, end, is_unique) {
        match end.strip_prefix(&beginning[..]) {
            Some(suffix) => range.end = range.end.min([&range.start[..], suffix].concat()),
            None if *end < **beginning => range.end = range.start.clone(),
            None => {}
        }
    }
    range
}

impl Stream {
    /// Makes an entry from `from` on the first of the buffer, if there is one: the rows read for it.
    async fn seek(&mut self, reader: &impl Reader, from: &[u8], room: &mut Room) -> Result<u64> {
        let mut rows = 0;
        loop {
            while self.buffer.front().is_some_and(|entry| *entry.entity_key < *from) {
                self.take(room);
            }
            if !self.buffer.is_empty() {
                return Ok(rows);
            }
            let Some(position) = self.position.take().and_then(|it| self.skip(it, from)) else {
                return Ok(rows);
            };
            rows += self.load(reader, &position, room).await?;
        }
    }

    fn take(&mut self, room: &mut Room) -> Option<Entry> {
        let entry = self.buffer.pop_front()?;
        room.give_back(entry.bytes());
        Some(entry)
    }

    /// Where to read on for entities from `from` on; `None` if the range has none.
    fn skip(&self, position: Vec<u8>, from: &[u8]) -> Option<Vec<u8>> {
        let beginning = self.range.ordered.as_deref().unwrap_or_default();
        if self.candidate.index().definition.unique || *from <= *beginning {
            return Some(position);
        }
        let suffix = from.strip_prefix(beginning)?;
        let position = position.max([&self.range.start[..], suffix].concat());
        (position < self.range.end).then_some(position)
    }

    async fn load(
        &mut self,
        reader: &impl Reader,
        position: &[u8],
        room: &mut Room,
    ) -> Result<u64> {
        let has_copies = self.candidate.coverage == Coverage::Copy && !room.is_full;
        let needs_values = self.candidate.index().definition.unique || has_copies;
        let range = self.keys.range(position, Some(&self.range.end));
        let batch = Batch::read(reader, range, needs_values, self.batch_rows).await?;
        self.batch_rows = (BATCH_GROWTH * self.batch_rows).min(BATCH_ROWS);
        self.position = batch.next_position();
        for (number, (key, value)) in (1..).zip(&batch.rows) {
            let row = RowRef::read(&self.candidate.index().definition, key, value)
                .ok_or_else(|| corrupt("a row of an index"))?;
            let mut entry = Entry::of(&self.candidate, row);
            if !has_copies && self.candidate.coverage == Coverage::Copy {
                entry.entity = None;
            }
            let has_room = room.take_for(&mut entry);
            self.buffer.push_back(entry);
            // The others are read again when their turn comes.
            if !has_room && number < batch.rows.len() {
                (self.position, self.batch_rows) = (Some(successor(key)), number);
                return Ok(number as u64);
            }
        }
        Ok(batch.rows.len() as u64)
    }
}

/// Steps after which an intersection settles for one of its sides at the latest.
const INTERSECTION_STEPS: u32 = 4096;

/// Steps between two looks at the clock, at which other requests of the thread get their turn, too.
const STEPS_PER_TIME_CHECK: u32 = 64;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Entry(Entry),
    /// None before this key, which may be one: the time was up, or so many rows passed as were to be passed, before it was
    /// known whether both sides have it.
    NoneBefore(Vec<u8>),
    End,
}

/// Entries of one index in the spans, or those that two have in common.
pub(super) struct Ordered<'s> {
    spans: &'s [Span],
    first: Merged,
    second: Option<Merged>,
    steps: u32,
    /// After that many it settles for one of its sides.
    steps_max: u32,
    /// Rows of both sides that were read while they were intersected.
    pub passed: u64,
    deadline: Instant,
    /// Whether the time was up.
    pub is_late: bool,
    /// An entry that was taken before its turn.
    next: Option<Entry>,
    /// Rows read of a side that was given up.
    given_up: u64,
    pub is_intersected: bool,
    /// Whether the second side was short, and found everything alone.
    pub is_second_alone: bool,
}

impl<'s> Ordered<'s> {
    pub(super) fn new(
        spans: &'s [Span],
        first: Merged,
        second: Option<Merged>,
        deadline: Instant,
    ) -> Self {
        Self {
            spans,
            first,
            second,
            steps: 0,
            steps_max: INTERSECTION_STEPS,
            passed: 0,
            deadline,
            is_late: false,
            next: None,
            given_up: 0,
            is_intersected: false,
            is_second_alone: false,
        }
    }

    /// Looks at the second side only whether it is short: rows that have all that is asked are not worth more.
    pub(super) fn only_if_second_is_short(mut self) -> Self {
        self.steps_max = 1;
        self
    }

    pub(super) fn entries(&self) -> u64 {
        let second = self.second.as_ref().map_or(0, |second| second.entries);
        self.first.entries + second + self.given_up
    }

    /// Whether everything there is has been read already.
    pub(super) fn is_read(&self) -> bool {
        self.first.is_read()
    }

    /// Takes the first entry from `from` on, or passes so many rows of both sides in all. What is asked for next must be later.
    pub(super) async fn next(
        &mut self,
        reader: &impl Reader,
        from: &[u8],
        passed_max: u64,
    ) -> Result<Next> {
        if let Some(next) = self.next.take()
            && *next.entity_key >= *from
        {
            return Ok(Next::Entry(next));
        }
        let mut from = Cow::Borrowed(from);
        loop {
            let Some(start) = first_from(self.spans, &from) else { return Ok(Next::End) };
            let Some(stream) = self.first.seek(reader, start).await? else { return Ok(Next::End) };
            if self.settles() {
                continue;
            }
            let Some(key) = self.first.head(stream) else { return Ok(Next::End) };
            if !is_in(self.spans, key) {
                from = Cow::Owned(key.to_vec());
                continue;
            }
            let Some(second) = &mut self.second else { return Ok(self.take(stream)) };
            let Some(other) = second.seek(reader, key).await? else { return Ok(Next::End) };
            self.steps += 1;
            self.passed = self.first.entries + second.entries;
            // After one step alone nothing has been decided by it.
            self.is_intersected = self.steps_max > 1;
            let other_key = second.head(other).unwrap_or_default();
            if other_key == key {
                return Ok(self.take(stream));
            }
            from = Cow::Owned(other_key.to_vec());
            if self.steps.is_multiple_of(STEPS_PER_TIME_CHECK) {
                tokio::task::yield_now().await;
                self.is_late = Instant::now() >= self.deadline;
            }
            // A key outside the spans is no place to end at: a token with it would tell that there is such an entity.
            if (self.is_late || self.passed >= passed_max) && is_in(self.spans, &from) {
                return Ok(Next::NoneBefore(from.into_owned()));
            }
        }
    }

    fn take(&mut self, stream: usize) -> Next {
        self.first.take(stream).map_or(Next::End, Next::Entry)
    }

    /// Whether there are that many entries from one key on and before another, or so many rows have to be passed to find them.
    /// They do not come again.
    pub(super) async fn has(
        &mut self,
        enough: u64,
        rows_max: u64,
        reader: &impl Reader,
        from: &[u8],
        until: &[u8],
    ) -> Result<bool> {
        let passed_max = self.passed + rows_max;
        let mut from = from.to_vec();
        for _ in 0..enough {
            match self.next(reader, &from, passed_max).await? {
                Next::Entry(entry) if *entry.entity_key < *until => {
                    from = successor(&entry.entity_key);
                }
                Next::Entry(entry) => {
                    self.next = Some(entry);
                    return Ok(false);
                }
                Next::NoneBefore(key) => return Ok(*key < *until && !self.is_late),
                Next::End => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Goes on with one side alone if the first rows read of it are all there are, or if both are long: to look up a few is
    /// cheaper than to read the other side.
    fn settles(&mut self) -> bool {
        let Some(second) = &self.second else { return false };
        let is_second_short = self.steps == 1 && second.is_read();
        if is_second_short {
            let second = self.second.take().expect("there is one");
            self.given_up += std::mem::replace(&mut self.first, second).entries;
            (self.is_intersected, self.is_second_alone) = (false, true);
        } else if (self.steps == 0 && self.first.is_read()) || self.steps >= self.steps_max {
            self.given_up += second.entries;
            self.second = None;
        }
        self.second.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tavola_wire::table::stored::{EntityWriter, Value};

    use super::super::tests_support::{TABLE, candidates, engine_with_rows, schema};
    use super::*;
    use crate::net::memory_budget::MemoryBudget;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn many_ranges_read_little_each() {
        let rows = |top, first_rows, ranges| ReadAhead { top, first_rows }.rows_of_each(ranges);
        assert_eq!([1, 3, 256].map(|ranges| rows(1000, BATCH_ROWS, ranges)), [64, 64, 7]);
        assert_eq!([1, 3, 256].map(|ranges| rows(1, BATCH_ROWS, ranges)), [64, 64, 1]);
        assert_eq!(rows(1000, 16, 3), 16);
        assert_eq!(rows(1000, 16, 0), 16);
    }

    fn named(name: &str, bytes: usize) -> Vec<u8> {
        let mut entity = EntityWriter::new();
        entity.push("Name", Value::String(name));
        entity.push("Text", Value::String(&"x".repeat(bytes)));
        entity.finish()
    }

    /// All entries with a copy or without, and the most bytes of copies that were held at a time.
    async fn merged(budget: &Arc<MemoryBudget>) -> (Vec<bool>, usize) {
        let schema = schema(&[("Name", "*")]);
        let entity =
            |number: usize| (format!("{number:03}"), named(&format!("v{}", number % 100), 100_000));
        let engine = engine_with_rows(&schema, (0..200).map(entity)).await;
        let names: Vec<_> = (0..100).map(|number| format!("Name eq 'v{number}'")).collect();
        let candidates = candidates(&schema, &names.join(" or "), None);
        let ahead = ReadAhead { top: 1000, first_rows: BATCH_ROWS };
        let keys = |number| IndexKeys::of(TABLE, number);
        let mut merged = Merged::new(&candidates, &[Span::ALL], ahead, budget.reservation(), keys);
        let (mut from, mut found, mut most) = (Vec::new(), Vec::new(), 0);
        while let Some(stream) = merged.seek(&engine, &from).await.unwrap() {
            let buffers = merged.streams.iter().flat_map(|stream| &stream.buffer);
            most = most.max(buffers.map(Entry::bytes).sum());
            let entry = merged.take(stream).unwrap();
            assert!(from <= entry.entity_key);
            from = successor(&entry.entity_key);
            found.push(entry.entity.is_some());
        }
        (found, most)
    }

    #[tokio::test]
    async fn what_many_ranges_hold_is_bounded_over_all_of_them() {
        let (found, most) = merged(&Arc::new(MemoryBudget::new(64 * MIB))).await;
        assert_eq!(found.len(), 200);
        assert!(most <= 4 * MIB, "{most}");
        assert!(found.contains(&true), "some copies find room");
    }

    #[tokio::test]
    async fn without_memory_entities_are_looked_up() {
        let budget = Arc::new(MemoryBudget::new(8 * MIB));
        let mut others = budget.reservation();
        others.grow_regardless_to(8 * MIB);
        let (found, most) = merged(&budget).await;
        assert_eq!(found, [false; 200]);
        assert!(most <= MIB / 4, "{most}");
    }

    /// Every second entity has the one value, and the others the other: nothing is in common, and no row is looked at. Nor is
    /// it where the spans end, whether or not there is more behind them.
    #[tokio::test]
    async fn an_intersection_ends_when_the_time_is_up_and_where_the_spans_do() {
        let schema = schema(&[("Name", ""), ("Text", "")]);
        let entity = |number: usize| {
            let (name, text) = if number.is_multiple_of(2) { ("a", "b") } else { ("b", "a") };
            let mut entity = EntityWriter::new();
            entity.push("Name", Value::String(name));
            entity.push("Text", Value::String(text));
            (format!("{number:03}"), entity.finish())
        };
        let engine = engine_with_rows(&schema, (0..800).map(entity)).await;
        let sides = candidates(&schema, "Name eq 'a' and Text eq 'a'", None);
        let spans = &[Span::ALL];
        let budget = Arc::new(MemoryBudget::new(64 * MIB));
        let ahead = ReadAhead { top: 1000, first_rows: BATCH_ROWS };
        let merged = |side: &Candidate, spans| {
            let keys = |number| IndexKeys::of(TABLE, number);
            Merged::new(std::slice::from_ref(side), spans, ahead, budget.reservation(), keys)
        };
        let both = |spans, deadline| {
            let [first, second] = [0, 1].map(|side| merged(&sides[side], spans));
            Ordered::new(spans, first, Some(second), deadline)
        };
        let mut late = both(spans, Instant::now());
        let Next::NoneBefore(at) = late.next(&engine, b"", u64::MAX).await.unwrap() else {
            panic!()
        };
        assert!(at > b"p\0".to_vec() && late.steps == STEPS_PER_TIME_CHECK && late.is_late);
        let in_time = Instant::now() + std::time::Duration::from_secs(600);
        let mut all = both(spans, in_time);
        assert_eq!(all.next(&engine, b"", u64::MAX).await.unwrap(), Next::End);
        let mut some = both(spans, in_time);
        let Next::NoneBefore(_) = some.next(&engine, b"", 300).await.unwrap() else { panic!() };
        assert!((300..600).contains(&some.entries()) && !some.is_late, "{}", some.entries());
        let span = |start: &[u8], end: &[u8]| Span { start: start.into(), end: Some(end.into()) };
        let narrow = [span(b"p\x00100", b"p\x00110"), span(b"p\x00300", b"p\x00310")];
        for deadline in [Instant::now(), in_time] {
            let mut few = both(&narrow, deadline);
            assert_eq!(few.next(&engine, b"", u64::MAX).await.unwrap(), Next::End);
            // Of each side, those between the first span and the end of the last.
            assert!(
                few.steps < STEPS_PER_TIME_CHECK && few.entries() <= 2 * 110,
                "{}",
                few.entries()
            );
        }
    }
}
