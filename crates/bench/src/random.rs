//! Reproducible numbers (SplitMix64): a load that nobody can repeat proves nothing.

/// A stream of numbers that its seed determines.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: scramble(seed) }
    }

    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        finish(self.state)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        // The high half of the product; its bias is far below what a load could notice.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 up to, but not including, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Spreads a number over all 64 bits; near numbers become unrelated ones.
pub fn scramble(number: u64) -> u64 {
    finish(number.wrapping_add(GOLDEN))
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn finish(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_stream() {
        let stream = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(move |_| random.number()).collect::<Vec<_>>()
        };
        assert_eq!(stream(7), stream(7));
        assert_ne!(stream(7), stream(8));
    }

    #[test]
    fn numbers_reach_every_value_below_their_bound_and_none_above() {
        let mut random = Random::new(1);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            seen[usize::try_from(random.below(10)).unwrap()] += 1;
            assert!((0.0..1.0).contains(&random.fraction()));
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
    }
}
