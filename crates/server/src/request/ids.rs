//! Request ids and boundaries: unique, not secret.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use tavola_wire::table::stored::guid_text;

/// Makes ids in the form of a GUID: half from a counter, half from a seed of the process.
#[derive(Debug)]
pub(crate) struct IdSource {
    seed: u64,
    counter: AtomicU64,
}

impl IdSource {
    pub(crate) fn new() -> Self {
        // The standard library's hash seed is the operating system's randomness.
        let random = || RandomState::new().build_hasher().finish();
        Self { seed: random(), counter: AtomicU64::new(random() >> 16) }
    }

    pub(crate) fn next(&self) -> Id {
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&mix(self.seed ^ count).to_be_bytes());
        guid[8..].copy_from_slice(&count.to_be_bytes());
        Id(guid)
    }
}

impl Default for IdSource {
    fn default() -> Self {
        Self::new()
    }
}

/// The finalizer of SplitMix64: neighbouring numbers become unlike ones.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// An id in the form of a GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id([u8; 16]);

impl Id {
    /// Each reply has one: made without allocating.
    pub(crate) fn text(&self) -> [u8; 36] {
        guid_text(&self.0)
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).expect("a GUID is ASCII"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_look_like_guids_and_differ() {
        let ids = IdSource::new();
        let (first, second) = (ids.next().to_string(), ids.next().to_string());
        assert_ne!(first, second);
        assert_eq!(first.len(), 36);
    }
}
