//! The changes of messages, each one transition of the engine.
//!
//! Each declares the header that it takes away. The header that it puts is new, and nobody can know of it before: its key
//! holds a stamp that is given out once, and the id. A text is written by nobody who has not declared the header that it
//! belongs to, or puts it.

use bytes::Bytes;
use tavola_engine::{Decision, Transition, WriteSet};
use tavola_wire::queue::receipt::MadeBy;
use tavola_wire::queue::{MessageId, PopReceipt};

use super::head_scan::warn_of;
use super::texts::split_text;
use crate::storage::layout::message::{Header, HeaderText, MessageKeys, Moment, Place};

/// Puts a new message.
pub(super) struct PutMessage {
    key: Bytes,
    header: Bytes,
    text: Option<(Bytes, Bytes)>,
    /// The request may be abandoned while it waits to be committed; it needs memory all the same, and the body carries what
    /// is reserved for it.
    _body: Bytes,
}

impl PutMessage {
    pub(super) fn new(
        key: Bytes,
        header: Bytes,
        text: Option<(Bytes, Bytes)>,
        body: Bytes,
    ) -> Self {
        Self { key, header, text, _body: body }
    }
}

impl Transition for PutMessage {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &[]
    }

    fn apply(&mut self, _: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        writes.put(self.key.clone(), self.header.clone());
        if let Some((key, text)) = &self.text {
            writes.put(key.clone(), text.clone());
        }
        Decision::Commit(())
    }
}

/// Hides messages for whoever gets them.
pub(super) struct Claim {
    /// The headers that are taken away.
    keys: Vec<Bytes>,
    message_keys: MessageKeys,
    places: Vec<Place>,
    now: Moment,
    /// When the messages are visible again.
    visible: Moment,
}

impl Claim {
    pub(super) fn new(keys: MessageKeys, places: Vec<Place>, now: Moment, visible: Moment) -> Self {
        let headers = places.iter().map(|place| keys.header(*place)).collect();
        Self { keys: headers, message_keys: keys, places, now, visible }
    }
}

impl Transition for Claim {
    /// Those that were still there, in order.
    type Verdict = Vec<(MessageId, Header)>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// As many short rows in place of others, without which nobody could delete a message: on a disk that is nearly full it is
    /// the only way to make room.
    fn frees_space(&self) -> bool {
        true
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Self::Verdict> {
        let mut claimed = Vec::with_capacity(self.places.len());
        for (at, place) in self.places.iter().enumerate() {
            let Some(stored) = &values[at] else { continue };
            let Some(mut header) = Header::decode(stored) else {
                warn_of(&self.keys[at]);
                continue;
            };
            if header.expires <= self.now {
                continue;
            }
            header.dequeue_count = header.dequeue_count.saturating_add(1);
            header.is_updated = false;
            writes.delete(self.keys[at].clone());
            let place = Place { visible: self.visible, id: place.id };
            writes.put(self.message_keys.header(place), header.encode());
            claimed.push((place.id, header));
        }
        match claimed.is_empty() {
            true => Decision::Abort(claimed),
            false => Decision::Commit(claimed),
        }
    }
}

/// The header, if it is that of a message which has not expired and has this receipt.
fn find(stored: Option<&Bytes>, receipt: PopReceipt, now: Moment) -> Option<Header> {
    let header = Header::decode(stored?)?;
    let is_of_receipt = match receipt.made_by {
        MadeBy::PutOrGet => !header.is_updated,
        MadeBy::Update { dequeue_count } => {
            header.is_updated && header.dequeue_count == dequeue_count
        }
    };
    (is_of_receipt && header.expires > now).then_some(header)
}

/// Moves a message to another moment, perhaps with another text.
pub(super) struct UpdateMessage {
    /// The header that is taken away.
    keys: [Bytes; 1],
    message_keys: MessageKeys,
    /// Where the message is put.
    to: Place,
    receipt: PopReceipt,
    now: Moment,
    text: Option<Bytes>,
    _body: Bytes,
}

impl UpdateMessage {
    pub(super) fn new(
        keys: MessageKeys,
        from: Place,
        to: Place,
        receipt: PopReceipt,
        now: Moment,
        text: Option<Bytes>,
        body: Bytes,
    ) -> Self {
        Self { keys: [keys.header(from)], message_keys: keys, to, receipt, now, text, _body: body }
    }
}

impl Transition for UpdateMessage {
    /// The new header; `None` if the receipt is not that of a message.
    type Verdict = Option<Header>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// One short row in place of another, if it brings no text: who works on a message for long has to keep it hidden.
    fn frees_space(&self) -> bool {
        self.text.is_none()
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Self::Verdict> {
        let Some(mut header) = find(values[0].as_ref(), self.receipt, self.now) else {
            return Decision::Abort(None);
        };
        header.is_updated = true;
        if let Some(text) = &self.text {
            let (expires, id) = (header.expires, self.to.id);
            let (text, row) = split_text(self.message_keys, expires, id, text.clone());
            match (row, &header.text) {
                (Some((key, text)), _) => writes.put(key, text),
                (None, HeaderText::Row(_)) => writes.delete(self.message_keys.text(expires, id)),
                (None, HeaderText::Inline(_)) => {}
            }
            header.text = text;
        }
        writes.delete(self.keys[0].clone());
        writes.put(self.message_keys.header(self.to), header.encode());
        Decision::Commit(Some(header))
    }
}

/// Removes a message.
pub(super) struct DeleteMessage {
    keys: [Bytes; 1],
    message_keys: MessageKeys,
    id: MessageId,
    receipt: PopReceipt,
    now: Moment,
}

impl DeleteMessage {
    pub(super) fn new(keys: MessageKeys, place: Place, receipt: PopReceipt, now: Moment) -> Self {
        let id = place.id;
        Self { keys: [keys.header(place)], message_keys: keys, id, receipt, now }
    }
}

impl Transition for DeleteMessage {
    /// Whether there was such a message.
    type Verdict = bool;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<bool> {
        let Some(header) = find(values[0].as_ref(), self.receipt, self.now) else {
            return Decision::Abort(false);
        };
        remove(self.message_keys, &self.keys[0], &header, self.id, writes);
        Decision::Commit(true)
    }
}

/// Removes messages that expired before a moment.
pub(super) struct RemoveExpired {
    keys: Vec<Bytes>,
    message_keys: MessageKeys,
    places: Vec<Place>,
    before: Moment,
}

impl RemoveExpired {
    pub(super) fn new(keys: MessageKeys, places: Vec<Place>, before: Moment) -> Self {
        let headers = places.iter().map(|place| keys.header(*place)).collect();
        Self { keys: headers, message_keys: keys, places, before }
    }
}

impl Transition for RemoveExpired {
    /// How many there were.
    type Verdict = i64;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<i64> {
        let mut removed = 0;
        for ((key, place), stored) in self.keys.iter().zip(&self.places).zip(values) {
            let Some(header) = stored.as_ref().and_then(|stored| Header::decode(stored)) else {
                continue;
            };
            if header.expires <= self.before {
                remove(self.message_keys, key, &header, place.id, writes);
                removed += 1;
            }
        }
        if removed == 0 { Decision::Abort(0) } else { Decision::Commit(removed) }
    }
}

fn remove(keys: MessageKeys, key: &Bytes, header: &Header, id: MessageId, writes: &mut WriteSet) {
    writes.delete(key.clone());
    if matches!(header.text, HeaderText::Row(_)) {
        writes.delete(keys.text(header.expires, id));
    }
}

#[cfg(test)]
mod tests {
    use tavola_wire::Ticks;

    use super::*;
    use crate::storage::layout::StoreId;

    /// A queue can be emptied on a disk that is nearly full.
    #[test]
    fn what_a_worker_needs_to_delete_messages_frees_space() {
        let (keys, now) = (MessageKeys(StoreId(1)), Moment(1));
        let receipt = PopReceipt { next_visible: Ticks(1), made_by: MadeBy::PutOrGet };
        let update = |text| {
            UpdateMessage::new(keys, Place::MIN, Place::END, receipt, now, text, Bytes::new())
        };
        assert!(Claim::new(keys, vec![Place::MIN], now, Moment(2)).frees_space());
        assert!(DeleteMessage::new(keys, Place::MIN, receipt, now).frees_space());
        assert!(update(None).frees_space() && !update(Some(Bytes::new())).frees_space());
        assert!(!PutMessage::new(Bytes::new(), Bytes::new(), None, Bytes::new()).frees_space());
    }
}
