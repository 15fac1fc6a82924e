//! A scan under way: it can be stopped after some rows, and gone on with on another thread.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::embedded::scan::inline_scan::{STEP_BYTES, STEP_ROWS, STEPS, STEPS_TIME};
use crate::embedded::store::{StoreSnapshot, guarded};
use crate::scan_pool::{CANCEL_CHECK_ROWS, Cancelled};
use crate::{KeyRange, Result, Visitor};

pub(crate) struct RowScan<V> {
    /// `None` if there are none.
    rows: Option<fjall::Iter>,
    visitor: V,
    /// Of what is being read.
    _snapshot: StoreSnapshot,
}

impl<V: Visitor> RowScan<V> {
    pub(crate) fn new(snapshot: StoreSnapshot, range: &KeyRange, visitor: V) -> Result<Self> {
        let rows = if range.is_empty() { None } else { Some(snapshot.rows(range)?) };
        Ok(Self { rows, visitor, _snapshot: snapshot })
    }

    /// Shows the visitor the first rows. Breaks if there are no more to show.
    pub(crate) fn begin(&mut self) -> Result<ControlFlow<()>> {
        let start = Instant::now();
        for _ in 0..STEPS {
            if self.go_on(STEP_ROWS, STEP_BYTES)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if start.elapsed() >= STEPS_TIME {
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Shows the visitor up to that many rows, or as many as have that many bytes. Breaks if there are no more to show.
    fn go_on(&mut self, rows_max: usize, bytes_max: usize) -> Result<ControlFlow<()>> {
        let Some(rows) = &mut self.rows else { return Ok(ControlFlow::Break(())) };
        let mut next = || guarded(|| rows.next().map(fjall::Guard::into_inner).transpose());
        let mut bytes = 0;
        for _ in 0..rows_max {
            let Some((key, value)) = next()? else { return Ok(ControlFlow::Break(())) };
            if self.visitor.visit(&key, &value).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            bytes += key.len() + value.len();
            if bytes >= bytes_max {
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Shows the visitor the rest, unless nobody waits for it any more.
    pub(crate) fn finish(mut self, cancelled: &Cancelled) -> Result<V> {
        while !cancelled.is_set() && self.go_on(CANCEL_CHECK_ROWS, usize::MAX)?.is_continue() {}
        Ok(self.visitor)
    }

    pub(crate) fn into_visitor(self) -> V {
        self.visitor
    }
}
