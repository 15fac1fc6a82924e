//! The messages of every load: 1 KiB of text, as clients that encode in base64 send it.

use std::sync::LazyLock;

use crate::random::Random;

pub const TEXT_BYTES: usize = 1024;

/// What texts are cut out of: large enough that messages which lie together have hardly a piece in common, because a store
/// that compresses would have less to write.
const STOCK_BYTES: usize = 1 << 18;
const SEED: u64 = 0x6d65_7373_6167_6573;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static STOCK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = Random::new(SEED);
    let sextet = |_| ALPHABET[(random.number() >> 58) as usize];
    (0..STOCK_BYTES).map(sextet).collect()
});

/// The text of a new message.
pub fn text(random: &mut Random) -> &'static [u8] {
    let at = random.below((STOCK_BYTES - TEXT_BYTES) as u64) as usize;
    &STOCK[at..at + TEXT_BYTES]
}

/// Appends the document that a message is put with.
pub fn push_document(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(b"<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>");
    out.extend_from_slice(text);
    out.extend_from_slice(b"</MessageText></QueueMessage>");
}

#[cfg(test)]
mod tests {
    use tavola_wire::queue::body;

    use super::*;

    #[test]
    fn a_document_holds_its_text() {
        let mut random = Random::new(1);
        let (one, other) = (text(&mut random), text(&mut random));
        assert_ne!(one, other);
        let mut document = Vec::new();
        push_document(&mut document, one);
        assert_eq!(body::read(&document).unwrap().as_bytes(), one);
    }
}
