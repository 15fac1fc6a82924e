//! A scan under way: it can be stopped after some rows, gone on with on another thread, and divided.

use std::ops::ControlFlow;
use std::time::Instant;

use bytes::Bytes;

use crate::embedded::scan::inline_scan::{STEP_BYTES, STEP_ROWS, STEPS, STEPS_TIME};
use crate::embedded::scan::middle::middle;
use crate::embedded::store::StoreSnapshot;
use crate::embedded::store::rows::Rows;
use crate::scan_pool::{CANCEL_CHECK_ROWS, Cancelled};
use crate::{KeyRange, Result, Visitor, successor};

pub(crate) struct RowScan<V> {
    /// Opened when the first is asked for: a scan that waits in line holds nothing.
    rows: Option<Box<Rows>>,
    pub(crate) visitor: V,
    range: KeyRange,
    /// The last row that was shown before the scan was stopped.
    shown: Option<Bytes>,
    snapshot: StoreSnapshot,
}

/// How far a scan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There may be more rows to show.
    More,
    /// There are none.
    AtEnd,
    /// The visitor wants no more.
    Broken,
}

impl<V: Visitor> RowScan<V> {
    pub(crate) fn new(snapshot: StoreSnapshot, range: KeyRange, visitor: V) -> Self {
        Self { rows: None, visitor, range, shown: None, snapshot }
    }

    /// Shows the visitor the first rows. Breaks if there are no more to show.
    pub(crate) fn begin(&mut self) -> Result<ControlFlow<()>> {
        let start = Instant::now();
        for _ in 0..STEPS {
            if self.go_on(STEP_ROWS, STEP_BYTES)? != Progress::More {
                return Ok(ControlFlow::Break(()));
            }
            if start.elapsed() >= STEPS_TIME {
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Shows the visitor up to that many rows, or as many as have that many bytes.
    fn go_on(&mut self, rows_max: usize, bytes_max: usize) -> Result<Progress> {
        if self.range.is_empty() {
            return Ok(Progress::AtEnd);
        }
        let rows = match &mut self.rows {
            Some(rows) => rows,
            closed => closed.insert(Box::new(Rows::open(&self.snapshot, &self.range)?)),
        };
        let mut bytes = 0;
        for number in 1..=rows_max {
            let Some((key, value)) = rows.next()? else { return Ok(Progress::AtEnd) };
            if self.visitor.visit(key, value).is_break() {
                return Ok(Progress::Broken);
            }
            bytes += key.len() + value.len();
            if bytes >= bytes_max || number == rows_max {
                self.shown = Some(Bytes::copy_from_slice(key));
                break;
            }
        }
        Ok(Progress::More)
    }

    /// Shows the visitor up to that many rows, unless nobody waits for it any more.
    pub(crate) fn read(&mut self, rows_max: usize, cancelled: &Cancelled) -> Result<Progress> {
        let mut rows_left = rows_max;
        while rows_left > 0 && !cancelled.is_set() {
            let rows = rows_left.min(CANCEL_CHECK_ROWS);
            match self.go_on(rows, usize::MAX)? {
                Progress::More => rows_left -= rows,
                end => return Ok(end),
            }
        }
        Ok(Progress::More)
    }

    /// Shows the visitor the rest, unless nobody waits for it any more.
    pub(crate) fn finish(mut self, cancelled: &Cancelled) -> Result<V> {
        self.read(usize::MAX, cancelled)?;
        Ok(self.visitor)
    }

    /// Leaves the later part of what has not been shown to another visitor, if there is anything to divide.
    pub(crate) fn split(&mut self, visitor: V) -> Result<Option<Self>> {
        let Some(shown) = &self.shown else { return Ok(None) };
        let rest = KeyRange { start: successor(shown).into(), end: self.range.end.clone() };
        let last = if rest.is_empty() { None } else { self.snapshot.last_key(&rest)? };
        let Some(middle) = last.and_then(|last| middle(shown, &last)) else { return Ok(None) };
        let later = KeyRange { start: middle.clone(), end: rest.end };
        self.range = KeyRange { start: rest.start, end: middle };
        self.rows = None;
        Ok(Some(Self::new(self.snapshot.clone(), later, visitor)))
    }

    /// The same rows for another visitor, and the one that they were for.
    pub(crate) fn exchange_visitor(mut self, visitor: V) -> (Self, V) {
        let before = std::mem::replace(&mut self.visitor, visitor);
        (self, before)
    }

    pub(crate) fn into_visitor(self) -> V {
        self.visitor
    }
}
