//! Reading the texts of several messages.
//!
//! Texts lie by expiry and id, so those of messages that were put one after the other, to live equally long, are neighbours.
//! One scan reads them for a fraction of what it costs to look each of them up.

use std::ops::ControlFlow;

use bytes::Bytes;
use tavola_engine::{KeyRange, Reader, Visitor};
use tavola_wire::Ticks;

use super::{Found, Queues};
use crate::storage::layout::message::{HeaderText, MessageKeys, decode_text};
use crate::storage::{Error, Result};

/// Texts from which on they are scanned for. To begin a scan takes as long as to look up a few rows.
const SCANNED_MIN: usize = 4;
/// Messages that were put within this time are neighbours enough: between others there may be very many rows, or deletions.
const PUT_WITHIN: u64 = Ticks::PER_SECOND.unsigned_abs();
/// Rows that a scan looks at for each that it is to find.
const ROWS_PER_TEXT: usize = 2;

impl Queues {
    /// The text of a message; `None` if it is gone meanwhile.
    pub(crate) async fn text(&self, found: &Found) -> Result<Option<Bytes>> {
        match &found.header.text {
            HeaderText::Inline(text) => Ok(Some(text.clone())),
            HeaderText::Row(_) => {
                let stored = self.engine.get(&text_key(found)).await?;
                stored.map(|stored| decode(&stored)).transpose()
            }
        }
    }

    /// The texts of messages of one queue; `None` for those that are gone meanwhile.
    pub(crate) async fn texts(&self, found: &[Found]) -> Result<Vec<Option<Bytes>>> {
        let mut known = self.scan_texts(found).await?.into_iter().peekable();
        let mut texts = Vec::with_capacity(found.len());
        for (at, found) in found.iter().enumerate() {
            texts.push(match known.next_if(|(of, _)| *of == at) {
                Some((_, stored)) => Some(decode(&stored)?),
                None => self.text(found).await?,
            });
        }
        Ok(texts)
    }

    /// The stored texts of neighbours, by their place among these messages; those that it did not meet are left out.
    pub(super) async fn scan_texts(&self, found: &[Found]) -> Result<Vec<(usize, Bytes)>> {
        let mut wanted: Vec<_> = found.iter().enumerate().filter(|(_, it)| has_row(it)).collect();
        if wanted.len() < SCANNED_MIN || !are_neighbours(wanted.iter().map(|(_, it)| *it)) {
            return Ok(Vec::new());
        }
        wanted.sort_unstable_by_key(|(_, it)| (it.header.expires, it.id()));
        let scan = TextScan {
            wanted: wanted.into_iter().map(|(at, it)| (text_key(it), at)).collect(),
            next: 0,
            rows: 0,
            texts: Vec::new(),
        };
        let mut texts = self.engine.scan(scan.range(), scan).await?.texts;
        texts.sort_unstable_by_key(|(at, _)| *at);
        Ok(texts)
    }
}

fn has_row(found: &Found) -> bool {
    matches!(found.header.text, HeaderText::Row(_))
}

fn text_key(found: &Found) -> Bytes {
    MessageKeys(found.store).text(found.header.expires, found.id())
}

fn decode(stored: &Bytes) -> Result<Bytes> {
    decode_text(stored).ok_or_else(|| Error::Corrupt("the text of a message".into()))
}

/// Whether messages were put one soon after the other, to live equally long.
fn are_neighbours<'f>(found: impl Iterator<Item = &'f Found> + Clone) -> bool {
    let is_close = |moments: (Option<u64>, Option<u64>)| match moments {
        (Some(first), Some(last)) => last - first <= PUT_WITHIN,
        _ => false,
    };
    let inserted = found.clone().map(|it| it.header.inserted.0.unsigned_abs());
    let expires = found.map(|it| it.header.expires.0);
    is_close((inserted.clone().min(), inserted.max()))
        && is_close((expires.clone().min(), expires.max()))
}

/// Finds some texts among their neighbours.
struct TextScan {
    /// Keys in order, and which message each belongs to.
    wanted: Vec<(Bytes, usize)>,
    next: usize,
    rows: usize,
    texts: Vec<(usize, Bytes)>,
}

impl TextScan {
    fn range(&self) -> KeyRange {
        let (first, last) = (&self.wanted[0].0, &self.wanted[self.wanted.len() - 1].0);
        KeyRange { start: first.clone(), end: [&last[..], &[0]].concat().into() }
    }
}

impl Visitor for TextScan {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.rows += 1;
        // Those before this key are gone.
        while self.wanted.get(self.next).is_some_and(|(wanted, _)| wanted[..] < *key) {
            self.next += 1;
        }
        if let Some((_, at)) = self.wanted.get(self.next).filter(|(wanted, _)| wanted == key) {
            self.texts.push((*at, Bytes::copy_from_slice(value)));
            self.next += 1;
        }
        match self.next == self.wanted.len() || self.rows >= ROWS_PER_TEXT * self.wanted.len() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
