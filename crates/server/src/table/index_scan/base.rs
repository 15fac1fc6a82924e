//! Reading entities in the order of their keys, without an index: a number of rows at a time.
//!
//! Indexes are compared with this, and it goes on where they are given up.

use std::ops::ControlFlow;

use tavola_engine::{Reader, Visitor};
use tavola_wire::table::filter::Span;
use tavola_wire::table::stored::key::SEPARATOR;

use crate::error::{Result, engine_error};
use crate::storage::layout::{EntityKeys, entity_key_of};
use crate::table::entity_page::Page;

/// Shows so many rows of the spans from `from` on to the page, or some more where several threads read them: it, and where to
/// go on if there is more.
pub(super) async fn scan_rows(
    reader: &impl Reader,
    keys: EntityKeys,
    spans: &[Span],
    from: &[u8],
    rows: u64,
    mut page: Box<Page>,
) -> Result<(Box<Page>, Option<Vec<u8>>)> {
    let mut rows_left = rows;
    for span in spans_from(spans, from) {
        let range = keys.range(from.max(&span.start), span.end.as_deref());
        let counted = Counted::new(page, rows_left);
        let counted = reader.scan(range, counted).await.map_err(engine_error)?;
        page = counted.page;
        rows_left = counted.rows_left;
        if let Some(last) = counted.last {
            return Ok((page, Some(after(&last))));
        }
        if page.is_done() {
            break;
        }
        tokio::task::yield_now().await;
    }
    Ok((page, None))
}

/// Shows the rows of the spans from `from` on to the page until it is done.
pub(super) async fn scan_rest(
    reader: &impl Reader,
    keys: EntityKeys,
    spans: &[Span],
    from: &[u8],
    mut page: Box<Page>,
) -> Result<Box<Page>> {
    for span in spans_from(spans, from) {
        let range = keys.range(from.max(&span.start), span.end.as_deref());
        page = reader.scan(range, page).await.map_err(engine_error)?;
        if page.is_done() {
            break;
        }
        tokio::task::yield_now().await;
    }
    Ok(page)
}

/// Spans that do not end before a key.
fn spans_from<'s>(spans: &'s [Span], from: &'s [u8]) -> impl Iterator<Item = &'s Span> {
    spans.iter().filter(move |span| span.end.as_deref().is_none_or(|end| end > from))
}

/// The least key behind this one.
pub(super) fn after(entity_key: &[u8]) -> Vec<u8> {
    [entity_key, &[SEPARATOR]].concat()
}

/// A page that is shown a number of rows, or some more where several threads read them.
struct Counted {
    page: Box<Page>,
    rows_left: u64,
    /// The last of them; of a fork, the last that it was shown so far.
    last: Option<Vec<u8>>,
    is_fork: bool,
}

impl Counted {
    fn new(page: Box<Page>, rows_left: u64) -> Self {
        Self { page, rows_left, last: None, is_fork: false }
    }

    fn note_last(&mut self, key: &[u8]) {
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(entity_key_of(key));
    }
}

impl Visitor for Counted {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.page.visit(key, value)?;
        self.rows_left = self.rows_left.saturating_sub(1);
        if self.rows_left > 0 {
            if self.is_fork {
                self.note_last(key);
            }
            return ControlFlow::Continue(());
        }
        self.note_last(key);
        ControlFlow::Break(())
    }

    fn fork(&self) -> Option<Self> {
        let page = self.page.fork()?;
        // What it reads lies side by side with the rows before it, so that all of it counts.
        Some(Self { is_fork: true, ..Self::new(page, u64::MAX) })
    }

    fn join(&mut self, fork: Self) -> ControlFlow<()> {
        let rows = u64::MAX - fork.rows_left;
        self.page.join(fork.page)?;
        self.rows_left = self.rows_left.saturating_sub(rows);
        if self.rows_left > 0 {
            return ControlFlow::Continue(());
        }
        self.last = fork.last;
        ControlFlow::Break(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use tavola_engine::conformance::commit;
    use tavola_engine::{EmbeddedEngine, EmbeddedOptions, Write};
    use tavola_wire::table::filter::Plan;
    use tavola_wire::table::json::EntityFormat;
    use tavola_wire::table::negotiate::MetadataLevel;
    use tavola_wire::table::stored::{EntityWriter, Value};

    use super::super::tests_support::TABLE;
    use super::*;
    use crate::net::memory_budget::MemoryBudget;

    /// More than a thread reads alone, several times.
    const ROWS: i32 = 40_000;
    const AT_A_TIME: u64 = 9000;

    fn page(filter: &str) -> Box<Page> {
        let format = EntityFormat::new(MetadataLevel::None, "", "", "t", None).unwrap();
        let residual = Plan::read(filter).unwrap().residual;
        let memory = Arc::new(MemoryBudget::new(64 << 20)).reservation();
        Page::new(format, residual, 1000, Instant::now() + Duration::from_secs(600), memory)
    }

    #[tokio::test]
    async fn rows_that_several_threads_read_are_shown_once_each() {
        let keys = EntityKeys::of(TABLE);
        let folder = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions { scan_helpers_max: 3, ..EmbeddedOptions::default() };
        let engine = EmbeddedEngine::open(folder.path(), options).unwrap();
        let row = |number| {
            let mut entity = EntityWriter::new();
            entity.push("Number", Value::Int32(number));
            Write::Put(keys.key("p", &format!("{number:06}")), entity.finish().into())
        };
        commit(&engine, (0..ROWS).map(row).collect()).await;
        let spans = [Span { start: Vec::new(), end: None }];
        // Few matches in many places: a row that is left out, or is shown twice, is missed.
        let few =
            (0..40).map(|n| format!("Number eq {}", n * 997)).collect::<Vec<_>>().join(" or ");
        for filter in [&few[..], "Number lt 0"] {
            let whole = scan_rest(&engine, keys, &spans, &[], page(filter)).await.unwrap();
            let (mut parts, mut from) = (page(filter), Vec::new());
            loop {
                let before = parts.examined();
                let next;
                (parts, next) =
                    scan_rows(&engine, keys, &spans, &from, AT_A_TIME, parts).await.unwrap();
                let Some(next) = next else { break };
                assert!(parts.examined() >= before + AT_A_TIME);
                from = next;
            }
            assert_eq!(parts.examined(), u64::from(ROWS.unsigned_abs()));
            assert_eq!(parts.finish().unwrap().body, whole.finish().unwrap().body);
        }
    }
}
