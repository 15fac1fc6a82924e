//! The answer of Get and Peek: a list of messages, in one piece if it is short. A long one is made while it is sent, because
//! 32 messages of 64 KiB are several megabytes, and many may be asked for at a time.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use tavola_wire::queue::message::{ListWriter, Message, empty_list};

use super::replies;
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::net::stream_window::{PIECE_BYTES_MAX, StreamWindow};
use crate::request::reply::{Reply, ReplyBody};
use crate::storage;
use crate::storage::queues::{Found, Queues};

/// Texts that are answered in one piece.
const WHOLE_BYTES_MAX: usize = 64 * 1024;

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
        _ => StreamWindow::reserve(&context.state.memory_budget, None).map(Some),
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
    let mut list = MessageList::new(queues, found, with_receipts);
    if let Some(window) = window.filter(|_| text_bytes > WHOLE_BYTES_MAX) {
        return Ok(replies::document(ReplyBody::stream_in(window, None, list.into_pieces())));
    }
    list.push_all().await.map_err(storage_failure)?;
    Ok(replies::document(list.document.freeze()))
}

/// A list in the making.
struct MessageList {
    queues: Arc<Queues>,
    left: std::vec::IntoIter<Found>,
    with_receipts: bool,
    /// `None` when the document is at its end.
    writer: Option<ListWriter>,
    /// What was written and not yet sent.
    document: BytesMut,
}

impl MessageList {
    fn new(queues: Arc<Queues>, found: Vec<Found>, with_receipts: bool) -> Self {
        let writer = Some(ListWriter::default());
        let left = found.into_iter();
        Self { queues, left, with_receipts, writer, document: BytesMut::new() }
    }

    /// Writes the next message, or the end. False if there is nothing more to write.
    async fn push_next(&mut self) -> storage::Result<bool> {
        let Some(mut writer) = self.writer.take() else { return Ok(false) };
        let mut out = Vec::from(std::mem::take(&mut self.document));
        match self.left.next() {
            Some(found) => {
                // A text that is gone meanwhile went with its message.
                if let Some(text) = self.queues.text(&found).await? {
                    writer.push(&mut out, &self.message(&found, &text)?);
                }
                self.writer = Some(writer);
            }
            None => writer.finish(&mut out),
        }
        self.document = Bytes::from(out).into();
        Ok(true)
    }

    /// Writes all that is left. The texts of few messages, or short ones, are read together.
    async fn push_all(&mut self) -> storage::Result<()> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        let mut out = Vec::from(std::mem::take(&mut self.document));
        let found: Vec<_> = self.left.by_ref().collect();
        for (found, text) in found.iter().zip(self.queues.texts(&found).await?) {
            // A text that is gone meanwhile went with its message.
            if let Some(text) = text {
                writer.push(&mut out, &self.message(found, &text)?);
            }
        }
        writer.finish(&mut out);
        self.document = Bytes::from(out).into();
        Ok(())
    }

    fn message<'a>(&self, found: &Found, text: &'a Bytes) -> storage::Result<Message<'a>> {
        let text = std::str::from_utf8(text)
            .map_err(|_| storage::Error::Corrupt("the text of a message".into()))?;
        Ok(Message {
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
            while list.document.is_empty() {
                match list.push_next().await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some((Err(io::Error::other(error)), list)),
                }
            }
            let length = list.document.len().min(PIECE_BYTES_MAX);
            Some((Ok(list.document.split_to(length).freeze()), list))
        })
    }
}
