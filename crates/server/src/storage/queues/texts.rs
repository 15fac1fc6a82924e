//! The texts of messages: where they are stored, and reading several of them.
//!
//! Texts lie by expiry and id, so those of messages that were put one after the other, to live equally long, are neighbours.
//! One scan reads them for a fraction of what it costs to look each of them up.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tavola_engine::{Error as EngineError, KeyRange, Reader, Visitor, successor};
use tavola_wire::Ticks;
use tavola_wire::queue::MessageId;

use super::{Found, Queues};
use crate::storage::Result;
use crate::storage::layout::StoreId;
use crate::storage::layout::message::{
    HeaderText, INLINE_BYTES_MAX, MessageKeys, Moment, decode_text, encode_text,
};

/// Texts from which on they are scanned for. To begin a scan takes as long as to look up a few rows.
const SCANNED_MIN: usize = 4;
/// Messages that were put within this time are neighbours enough: between others there may be very many rows, or deletions.
const PUT_WITHIN: u64 = Ticks::PER_SECOND.unsigned_abs();
/// Rows that a scan looks at for each that it is to find.
const ROWS_PER_TEXT: usize = 2;
/// Messages that are told one by one when their texts cannot be read; `tavola check` tells the others.
const UNREADABLE_MAX: usize = 1000;

/// The text as the header has it, and the row for one that is not short.
pub(super) fn split_text(
    keys: MessageKeys,
    expires: Moment,
    id: MessageId,
    text: Bytes,
) -> (HeaderText, Option<(Bytes, Bytes)>) {
    if text.len() <= INLINE_BYTES_MAX {
        return (HeaderText::Inline(text), None);
    }
    let length = u32::try_from(text.len()).expect("a text has 64 KiB at most");
    let row = (keys.text(expires, id), encode_text(&text));
    (HeaderText::Row(length), Some(row))
}

impl Queues {
    /// The text of a message; `None` if it is gone meanwhile, or cannot be read: one such message must not keep back the
    /// others that it is answered with.
    pub(crate) async fn text(&self, found: &Found) -> Result<Option<Bytes>> {
        let stored = match &found.header.text {
            HeaderText::Inline(text) => return Ok(Some(text.clone())),
            HeaderText::Row(_) => self.engine.get(&text_key(found)).await,
        };
        match stored {
            Ok(Some(stored)) => Ok(self.readable(found, decode_text(&stored))),
            Ok(None) => {
                // They come and go together.
                let header = MessageKeys(found.store).header(found.place);
                if self.engine.get(&header).await?.is_some() {
                    self.leave_out(found, "is missing");
                }
                Ok(None)
            }
            Err(EngineError::Corrupt(damage)) => {
                self.leave_out(found, &damage);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The texts of messages of one queue; `None` for those that [`Queues::text`] has none of.
    pub(crate) async fn texts(&self, found: &[Found]) -> Result<Vec<Option<Bytes>>> {
        let mut known = self.scan_texts(found).await?.into_iter().peekable();
        let mut texts = Vec::with_capacity(found.len());
        for (at, found) in found.iter().enumerate() {
            texts.push(match known.next_if(|(of, _)| *of == at) {
                Some((_, stored)) => self.readable(found, decode_text(&stored)),
                None => self.text(found).await?,
            });
        }
        Ok(texts)
    }

    fn readable(&self, found: &Found, text: Option<Bytes>) -> Option<Bytes> {
        if text.is_none() {
            self.leave_out(found, "is damaged");
        }
        text
    }

    /// Tells that a message is left out, once.
    pub(crate) fn leave_out(&self, found: &Found, why: &str) {
        if self.unreadable.is_new(found.id()) {
            let (StoreId(store), id) = (found.store, found.id());
            tracing::error!(store, %id, why, "the text of a message cannot be read; the message is left out");
        }
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
        let mut texts = match self.engine.scan(scan.range(), scan).await {
            Ok(scan) => scan.texts,
            // Each by itself, then.
            Err(EngineError::Corrupt(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
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

/// Messages that the log has told to be left out. They are met again and again, until they expire.
#[derive(Debug, Default)]
pub(super) struct Unreadable(Mutex<HashSet<MessageId>>);

impl Unreadable {
    /// Whether this one is to be told.
    fn is_new(&self, id: MessageId) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < UNREADABLE_MAX && told.insert(id)
    }
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
        KeyRange { start: first.clone(), end: successor(last).into() }
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
