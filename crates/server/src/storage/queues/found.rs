//! Messages as operations answer them.

use tavola_wire::Ticks;
use tavola_wire::queue::receipt::MadeBy;
use tavola_wire::queue::{MessageId, PopReceipt};

use crate::storage::layout::StoreId;
use crate::storage::layout::message::{Header, Moment, Place};

/// A message that was put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub id: MessageId,
    pub inserted: Ticks,
    pub expires: Ticks,
    pub receipt: PopReceipt,
}

/// A message that was got or peeked at. Its text is perhaps in a row of its own: see [`Queues::text`](super::Queues::text).
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(super) store: StoreId,
    pub(super) place: Place,
    pub(super) header: Header,
}

impl Found {
    pub(crate) fn id(&self) -> MessageId {
        self.place.id
    }

    pub(crate) fn inserted(&self) -> Ticks {
        self.header.inserted
    }

    pub(crate) fn expires(&self) -> Ticks {
        self.header.expires.ticks()
    }

    pub(crate) fn dequeue_count(&self) -> u32 {
        self.header.dequeue_count
    }

    pub(crate) fn receipt(&self) -> PopReceipt {
        receipt(self.place.visible, &self.header)
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.header.text_bytes()
    }
}

/// The receipt of a message that is visible from then on.
pub(super) fn receipt(visible: Moment, header: &Header) -> PopReceipt {
    let made_by = match header.is_updated {
        true => MadeBy::Update { dequeue_count: header.dequeue_count },
        false => MadeBy::PutOrGet,
    };
    PopReceipt { next_visible: visible.ticks(), made_by }
}
