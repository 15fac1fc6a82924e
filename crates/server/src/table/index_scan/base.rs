//! Reading entities in the order of their keys, without an index: a number of rows at a time.
//!
//! Indexes are compared with this, and it goes on where they are given up.

use std::ops::ControlFlow;

use tavola_engine::{Reader, Visitor, successor};
use tavola_wire::table::filter::Span;

use crate::error::{Result, engine_error};
use crate::storage::layout::{EntityKeys, entity_key_of};
use crate::table::entity_page::Page;

/// Shows at most `rows_max` rows of the spans from `from` on to the page: it, and where to go on if there is more.
pub(super) async fn scan_rows(
    reader: &impl Reader,
    keys: EntityKeys,
    spans: &[Span],
    from: &[u8],
    rows_max: u64,
    mut page: Box<Page>,
) -> Result<(Box<Page>, Option<Vec<u8>>)> {
    let mut rows_left = rows_max;
    for span in spans_from(spans, from) {
        let range = keys.range(from.max(&span.start), span.end.as_deref());
        let counted = Counted { page, rows_left, last: None };
        let counted = reader.scan(range, counted).await.map_err(engine_error)?;
        page = counted.page;
        rows_left = counted.rows_left;
        if let Some(last) = counted.last {
            return Ok((page, Some(successor(&last))));
        }
        if page.is_done() {
            break;
        }
        tokio::task::yield_now().await;
    }
    Ok((page, None))
}

/// Shows the rows of the spans from `from` on to the page until it is done. Unlike a number of rows, all of them may be read
/// by several threads.
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

/// A page that is shown a number of rows.
struct Counted {
    page: Box<Page>,
    rows_left: u64,
    /// The last of them.
    last: Option<Vec<u8>>,
}

impl Visitor for Counted {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.page.visit(key, value)?;
        self.rows_left = self.rows_left.saturating_sub(1);
        if self.rows_left > 0 {
            return ControlFlow::Continue(());
        }
        self.last = Some(entity_key_of(key).to_vec());
        ControlFlow::Break(())
    }
}
