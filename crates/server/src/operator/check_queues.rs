//! The part of a check that is about queues: headers and texts of messages go together, and lie where they are looked for.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use tavola_wire::queue::MessageId;
use tavola_wire::queue::message::TEXT_BYTES_MAX;

use super::problems::Problems;
use crate::storage::layout::message::{Header, HeaderText, Moment, Place, decode_text};
use crate::storage::layout::{StoreId, mark};

/// The queues of all accounts, and their messages.
#[derive(Default)]
pub(super) struct QueueCheck {
    /// Keys of the rows of queues.
    queues: HashMap<StoreId, Vec<u8>>,
    /// Where they begin.
    low_marks: HashMap<StoreId, Place>,
    texts: HashMap<StoreId, Texts>,
    pub(super) messages: u64,
    hasher: RandomState,
}

/// Texts in rows of their own: those that headers speak of, less those that there are.
#[derive(Default)]
struct Texts {
    missing: i64,
    /// Of all of them together, so that one that is missing and one that is left over do not make up for each other, and
    /// nothing has to be kept of each. Who damages rows does not know what is hashed with.
    sum: u64,
}

impl QueueCheck {
    pub(super) fn see(&mut self, key: &[u8], store: StoreId) -> Result<(), &'static str> {
        match self.queues.insert(store, key.to_vec()) {
            Some(_) => Err("two queues have the same id"),
            None => Ok(()),
        }
    }

    pub(super) fn has(&self, store: StoreId) -> bool {
        self.queues.contains_key(&store)
    }

    /// Where messages are, with the keys of the rows of queues.
    pub(super) fn stores(&self) -> impl Iterator<Item = (StoreId, &Vec<u8>)> {
        self.queues.iter().map(|(store, key)| (*store, key))
    }

    pub(super) fn check_low_mark(
        &mut self,
        store: StoreId,
        value: &[u8],
    ) -> Result<(), &'static str> {
        let low = mark::decode_low(value).ok_or("it is no mark of a queue")?;
        self.low_marks.insert(store, low);
        Ok(())
    }

    pub(super) fn check_header(
        &mut self,
        store: StoreId,
        place: Place,
        value: &[u8],
    ) -> Result<(), &'static str> {
        let header = Header::decode(value).ok_or("the header of a message is damaged")?;
        if let HeaderText::Row(length) = header.text {
            let hash = self.hasher.hash_one((place.id, header.expires, u64::from(length)));
            let texts = self.texts.entry(store).or_default();
            (texts.missing, texts.sum) = (texts.missing + 1, texts.sum.wrapping_add(hash));
        }
        if !header.inserted.has_text() || header.text_bytes() > TEXT_BYTES_MAX {
            return Err("the header of a message is out of range");
        }
        // Those of a queue that awaits the sweeper are got by nobody.
        let low = self.low_marks.get(&store).filter(|_| self.has(store));
        match low.is_some_and(|low| place < *low) {
            true => Err("it lies before the mark where its queue begins, and is never got"),
            false => Ok(()),
        }
    }

    pub(super) fn check_text(
        &mut self,
        store: StoreId,
        expires: Moment,
        id: MessageId,
        value: &[u8],
    ) -> Result<(), &'static str> {
        let text = decode_text(&Bytes::copy_from_slice(value));
        let length = text.as_ref().map_or(0, |text| text.len() as u64);
        let hash = self.hasher.hash_one((id, expires, length));
        let texts = self.texts.entry(store).or_default();
        (texts.missing, texts.sum) = (texts.missing - 1, texts.sum.wrapping_sub(hash));
        let is_text = text.is_some_and(|text| std::str::from_utf8(&text).is_ok());
        is_text.then_some(()).ok_or("the text of a message is damaged")
    }

    /// Of a queue that exists, each header with a text elsewhere has that text, and no text is left over.
    pub(super) fn compare_texts(&self, problems: &mut Problems) {
        for (store, Texts { missing, sum }) in &self.texts {
            let Some(key) = self.queues.get(store).filter(|_| (*missing, *sum) != (0, 0)) else {
                continue;
            };
            let problem = match *missing {
                0 => "texts of its messages are missing, and as many are left over".into(),
                1.. => format!("{missing} of its messages have no text"),
                _ => format!("{} texts of its messages are left over", -missing),
            };
            problems.add(key, &problem);
        }
    }
}
