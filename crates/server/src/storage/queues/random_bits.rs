//! Bits for the ids of messages: unlike each other, not secret.

use std::sync::atomic::{AtomicU64, Ordering};

/// What makes ids differ that were made in the same moment by servers that do not know of each other.
#[derive(Debug)]
pub(super) struct RandomBits(AtomicU64);

impl RandomBits {
    pub(super) fn new() -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        // The standard library's hash seed is the operating system's randomness.
        Self(AtomicU64::new(RandomState::new().build_hasher().finish()))
    }

    /// SplitMix64.
    pub(super) fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut bits = self.0.fetch_add(STEP, Ordering::Relaxed);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}
