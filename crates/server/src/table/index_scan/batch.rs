//! Some rows of an index at a time.

use std::ops::ControlFlow;

use tavola_engine::{KeyRange, Reader, Visitor, successor};

use crate::error::{Result, engine_error};
use crate::storage::layout::parts_and_suffix_of;

/// Rows that are read at a time: few enough that a scan begins on its caller's thread.
pub(crate) const BATCH_ROWS: usize = 64;
/// Rows that are read first where a scan may soon take over.
pub(super) const FIRST_ROWS: usize = 16;
/// Bytes of values after which a batch ends.
const BATCH_BYTES: usize = 256 * 1024;

/// Rows of a range, copied: what stands behind the number of the index, and the value.
#[derive(Default)]
pub(crate) struct Batch {
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
    needs_values: bool,
    rows_max: usize,
    bytes: usize,
    is_full: bool,
}

impl Batch {
    /// Reads the first rows of a range; of their values only the first byte, unless they are needed.
    pub(crate) async fn read(
        reader: &impl Reader,
        range: KeyRange,
        needs_values: bool,
        rows_max: usize,
    ) -> Result<Self> {
        let empty = Self { needs_values, rows_max, ..Self::default() };
        reader.scan(range, empty).await.map_err(engine_error)
    }

    /// Where the next batch begins; `None` if there are no more rows.
    pub(crate) fn next_position(&self) -> Option<Vec<u8>> {
        let (last, _) = self.rows.last().filter(|_| self.is_full)?;
        Some(successor(last))
    }
}

impl Visitor for Batch {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let value = if self.needs_values { value } else { &value[..value.len().min(1)] };
        self.bytes += value.len();
        self.rows.push((parts_and_suffix_of(key).to_vec(), value.to_vec()));
        self.is_full = self.rows.len() == self.rows_max || self.bytes >= BATCH_BYTES;
        if self.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
