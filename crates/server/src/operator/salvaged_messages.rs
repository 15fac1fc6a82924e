//! The messages of a folder that is salvaged: a header goes with its text, or not at all.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use tavola_wire::queue::MessageId;

use crate::storage::layout::message::{Header, HeaderText, Moment, Place, decode_text};
use crate::storage::layout::{Family, Key, StoreId};

pub(super) const MESSAGE_FAMILIES: [u8; 2] = [Family::Message as u8, Family::MessageText as u8];

/// The messages of all queues: a header goes with its text, or not at all.
#[derive(Default)]
pub(super) struct Messages {
    /// Headers by the id that they are under.
    pub(super) counts: BTreeMap<u64, u64>,
    /// Texts in rows of their own that headers speak of, and those that were seen and can be read.
    wanted: HashSet<Text>,
    texts: HashSet<Text>,
    /// Ids that stand for a queue, or for one that was dropped.
    pub(super) owners: BTreeSet<u64>,
}

/// A text by what its header says of it: where it is, and how long.
type Text = (StoreId, Moment, MessageId, usize);

impl Messages {
    pub(super) fn see_header(
        &mut self,
        store: StoreId,
        place: Place,
        value: &[u8],
    ) -> Result<(), &'static str> {
        let header = Header::decode(value).ok_or("the header of a message is damaged")?;
        *self.counts.entry(store.0).or_default() += 1;
        if matches!(header.text, HeaderText::Row(_)) {
            self.wanted.insert((store, header.expires, place.id, header.text_bytes()));
        }
        Ok(())
    }

    pub(super) fn see_text(
        &mut self,
        store: StoreId,
        expires: Moment,
        id: MessageId,
        value: &Bytes,
    ) {
        // What cannot be read is told with the second reading.
        if let Some(text) = readable(value) {
            self.texts.insert((store, expires, id, text.len()));
        }
    }

    /// Whether a row of a message is copied; with the second reading.
    pub(super) fn check(&self, key: &[u8], value: &Bytes) -> Result<(), &'static str> {
        let store = match Key::decode(key) {
            Ok(Key::Message { store, place }) => {
                // Told with the first reading.
                let Some(header) = Header::decode(value) else { return Err("it is damaged") };
                let text = (store, header.expires, place.id, header.text_bytes());
                if matches!(header.text, HeaderText::Row(_)) && !self.texts.contains(&text) {
                    return Err("the text of the message is lost");
                }
                store
            }
            Ok(Key::MessageText { store, expires, id }) => {
                let text = readable(value).ok_or("the text of a message is damaged")?;
                if !self.wanted.contains(&(store, expires, id, text.len())) {
                    return Err("the message of this text is lost");
                }
                store
            }
            _ => return Err("its key cannot be read"),
        };
        if self.owners.contains(&store.0) { Ok(()) } else { Err("it belongs to no queue") }
    }
}

fn readable(stored: &Bytes) -> Option<Bytes> {
    decode_text(stored).filter(|text| std::str::from_utf8(text).is_ok())
}
