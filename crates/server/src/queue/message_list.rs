//! The answer of Get and Peek: a list of messages, in one piece if it is short. A long one is made while it is sent, because
//! 32 messages of 64 KiB are several megabytes, and many may be asked for at a time.

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::stream::{self, Stream};
use tavola_wire::queue::message::{
    FRAME_BYTES, ListWriter, Message, TEXT_BYTES_MAX, empty_list, end_text, push_part,
};

use super::replies;
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::net::stream_window::{PIECE_BYTES_MAX, StreamWindow};
use crate::request::reply::{Reply, ReplyBody};
use crate::storage;
use crate::storage::queues::{Found, Queues};

/// Texts that are answered in one piece.
const WHOLE_BYTES_MAX: usize = 64 * 1024;

/// Where a piece has room for what frames a text, and for no more of the text itself.
const TEXT_END: usize = PIECE_BYTES_MAX - FRAME_BYTES;

/// Room for an answer that is sent piece by piece; `None` if so few messages are never that long.
///
/// # Errors
/// 503 `ServerBusy`.
pub(super) fn reserve(
    context: &RequestContext<'_>,
    messages_max: usize,
) -> Result<Option<StreamWindow>> {
    match messages_max {
        1 => Ok(None),
        // Beside the pieces there is the text that they are made of.
        _ => StreamWindow::reserve_beside(&context.state.memory_budget, None, TEXT_BYTES_MAX)
            .map(Some),
    }
}

pub(super) async fn reply(
    context: &RequestContext<'_>,
    found: Vec<Found>,
    with_receipts: bool,
    window: Option<StreamWindow>,
) -> Result<Reply> {
    if found.is_empty() {
        return Ok(replies::document(Bytes::from_static(empty_list().as_bytes())));
    }
    let text_bytes: usize = found.iter().map(Found::text_bytes).sum();
    let queues = Arc::clone(&context.state.queues);
    let list = MessageList::new(queues, found, with_receipts);
    if let Some(window) = window.filter(|_| text_bytes > WHOLE_BYTES_MAX) {
        return Ok(replies::document(ReplyBody::stream_in(window, None, list.into_pieces())));
    }
    Ok(replies::document(list.into_document().await.map_err(storage_failure)?))
}

/// A list in the making.
struct MessageList {
    queues: Arc<Queues>,
    left: std::vec::IntoIter<Found>,
    with_receipts: bool,
    /// `None` when the document is at its end.
    writer: Option<ListWriter>,
    /// What is left of a text that is written in parts.
    text: Bytes,
}

impl MessageList {
    fn new(queues: Arc<Queues>, found: Vec<Found>, with_receipts: bool) -> Self {
        let writer = Some(ListWriter::default());
        let left = found.into_iter();
        Self { queues, left, with_receipts, writer, text: Bytes::new() }
    }

    /// Writes the next message, a part of it, or the end. False if there is nothing more to write, or no room for it.
    async fn push_next(&mut self, out: &mut Vec<u8>) -> storage::Result<bool> {
        if out.len() > TEXT_END {
            return Ok(false);
        }
        if !self.text.is_empty() {
            let taken = push_part(out, &self.text, TEXT_END);
            self.text.advance(taken);
            if self.text.is_empty() {
                end_text(out);
            }
            return Ok(taken > 0);
        }
        let Some(mut writer) = self.writer.take() else { return Ok(false) };
        match self.left.next() {
            Some(found) => {
                // A text that is gone meanwhile went with its message.
                if let Some(text) = self.queues.text(&found).await?
                    && let Some(message) = self.message(&found, &text)
                {
                    if text.is_empty() {
                        writer.push(out, &message);
                    } else {
                        writer.start_text(out, &message);
                        self.text = text;
                    }
                }
                self.writer = Some(writer);
            }
            None => writer.finish(out),
        }
        Ok(true)
    }

    /// All of it. The texts of few messages, or short ones, are read together.
    async fn into_document(mut self) -> storage::Result<Vec<u8>> {
        let found: Vec<_> = self.left.by_ref().collect();
        let bytes = found.iter().map(|found| found.text_bytes() + FRAME_BYTES).sum();
        let (mut writer, mut out) = (ListWriter::default(), Vec::with_capacity(bytes));
        for (found, text) in found.iter().zip(self.queues.texts(&found).await?) {
            // A text that is gone meanwhile went with its message.
            if let Some(message) = text.as_ref().and_then(|text| self.message(found, text)) {
                writer.push(&mut out, &message);
            }
        }
        writer.finish(&mut out);
        Ok(out)
    }

    /// `None` if its text is none: it must not keep the others back.
    fn message<'a>(&self, found: &Found, text: &'a Bytes) -> Option<Message<'a>> {
        let Ok(text) = std::str::from_utf8(text) else {
            self.queues.leave_out(found, "is not UTF-8");
            return None;
        };
        Some(Message {
            id: found.id(),
            inserted: found.inserted(),
            expires: found.expires(),
            receipt: self.with_receipts.then(|| found.receipt()),
            dequeue_count: Some(found.dequeue_count()),
            text: Some(text),
        })
    }

    fn into_pieces(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        stream::unfold(self, |mut list| async move {
            let mut piece = Vec::with_capacity(PIECE_BYTES_MAX);
            loop {
                match list.push_next(&mut piece).await {
                    Ok(true) => {}
                    Ok(false) if piece.is_empty() => return None,
                    Ok(false) => return Some((Ok(piece.into()), list)),
                    Err(error) => return Some((Err(io::Error::other(error)), list)),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;
    use crate::storage::queues::tests::World;

    /// Memory is reserved for pieces of this size and no larger ones, however much a text grows when it is escaped.
    #[tokio::test]
    async fn pieces_take_no_more_than_is_reserved() {
        let world = World::new().await;
        let texts = ["\r", "a", "&\u{20ac}"].map(|unit| unit.repeat(TEXT_BYTES_MAX / unit.len()));
        for text in texts.iter().map(String::as_str).chain(["", "short"]) {
            world.put_now(text).await;
        }
        let list = |found| MessageList::new(world.queues.clone(), found, true);
        let found = world.peek(32).await;
        let whole = list(found.clone()).into_document().await.unwrap();
        let mut streamed = Vec::new();
        let mut pieces = std::pin::pin!(list(found).into_pieces());
        while let Some(piece) = pieces.next().await {
            let piece = Vec::from(piece.unwrap());
            assert!(piece.capacity() <= PIECE_BYTES_MAX, "{} bytes", piece.capacity());
            streamed.extend(piece);
        }
        assert!(streamed == whole, "{} and {} bytes", streamed.len(), whole.len());
        assert!(streamed.len() > 8 * TEXT_BYTES_MAX);
    }

    /// Not the whole answer fails, in one piece or many, again and again until the message expires.
    #[tokio::test]
    async fn a_message_without_a_readable_text_is_left_out() {
        let world = World::new().await;
        let long = "long".repeat(100);
        let mut put = Vec::new();
        for _ in 0..5 {
            put.push(world.put_now(&long).await);
        }
        for (at, stored) in [(0, Some(&b"\x01\xFF"[..])), (2, Some(b"\x09")), (4, None)] {
            world.overwrite_text(&put[at], stored).await;
        }
        let list = |found| MessageList::new(world.queues.clone(), found, true);
        let found = world.peek(32).await;
        let whole = list(found.clone()).into_document().await.unwrap();
        let pieces: Vec<_> = list(found).into_pieces().map(Result::unwrap).collect().await;
        assert_eq!(pieces.concat(), whole);
        let text = String::from_utf8(whole).unwrap();
        let is_there = |at: usize| text.contains(&put[at].id.to_string());
        assert_eq!([0, 1, 2, 3, 4].map(is_there), [false, true, false, true, false]);
    }
}
