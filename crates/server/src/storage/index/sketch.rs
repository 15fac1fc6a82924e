//! How many different values there are, and how many have the most frequent one, from one pass and little memory.
//!
//! Different values are counted as HyperLogLog does: of each hash, the longest run of zero bits in its group. The most
//! frequent value is found as Space-Saving does: a new value takes the place of the one that was seen least, and its count
//! with it, so that a value that has more than a share of all is certainly there.

use bytes::{BufMut, Bytes, BytesMut};

/// Groups of hashes, one byte each: the estimate is off by two or three hundredths.
const GROUPS: usize = 2048;
const GROUP_BITS: u32 = GROUPS.ilog2();
/// Values that are counted: whatever is more frequent than a sixty-fourth is among them.
const COUNTERS: usize = 64;

const VERSION: u8 = 1;

/// What was seen so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sketch {
    runs: Box<[u8; GROUPS]>,
    counters: Vec<Counter>,
}

/// A value that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counter {
    hash: u64,
    /// How often it was seen, at most.
    count: u64,
    /// How many of these may have been other values, whose place it took.
    error: u64,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { runs: Box::new([0; GROUPS]), counters: Vec::new() }
    }
}

impl Sketch {
    /// Adds a value by its [`hash`].
    pub(crate) fn add_hash(&mut self, hash: u64) {
        let group = (hash >> (64 - GROUP_BITS)) as usize;
        let rest = hash << GROUP_BITS | 1 << (GROUP_BITS - 1);
        let run = rest.leading_zeros() as u8 + 1;
        self.runs[group] = self.runs[group].max(run);
        if let Some(counter) = self.counters.iter_mut().find(|counter| counter.hash == hash) {
            counter.count += 1;
        } else if self.counters.len() < COUNTERS {
            self.counters.push(Counter { hash, count: 1, error: 0 });
        } else if let Some(least) = self.counters.iter_mut().min_by_key(|counter| counter.count) {
            *least = Counter { hash, count: least.count + 1, error: least.count };
        }
    }

    /// Different values: exact as long as each of them has a counter, then an estimate.
    pub(crate) fn distinct(&self) -> u64 {
        if self.counters.len() < COUNTERS {
            return self.counters.len() as u64;
        }
        let groups = GROUPS as f64;
        let sum: f64 = self.runs.iter().map(|run| 2f64.powi(-i32::from(*run))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / groups) * groups * groups / sum;
        let empty = self.runs.iter().filter(|run| **run == 0).count() as f64;
        // Few values leave groups empty, whose number says more than the others.
        let few = if empty > 0.0 { groups * (groups / empty).ln() } else { f64::MAX };
        let estimate = if estimate <= 2.5 * groups { few.min(estimate * 2.0) } else { estimate };
        estimate.round() as u64
    }

    /// How often the most frequent value was seen, at least: where all are different, what is counted is mostly the error.
    pub(crate) fn largest(&self) -> u64 {
        self.counters.iter().map(|counter| counter.count - counter.error).max().unwrap_or(0)
    }

    /// `version u8 . groups . (hash u64 . count u64)...`, little-endian.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(1 + GROUPS + 16 * self.counters.len());
        out.put_u8(VERSION);
        out.put_slice(&self.runs[..]);
        for Counter { hash, count, .. } in &self.counters {
            out.put_u64_le(*hash);
            out.put_u64_le(*count);
        }
        out.freeze()
    }

    pub(crate) fn decode(stored: &[u8]) -> Option<Self> {
        let (&VERSION, rest) = stored.split_first()? else { return None };
        let (runs, rest) = rest.split_first_chunk::<GROUPS>()?;
        let (counters, []) = rest.as_chunks::<16>() else { return None };
        if counters.len() > COUNTERS {
            return None;
        }
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let pairs = counters.iter().map(|pair| (number(&pair[..8]), number(&pair[8..])));
        // Errors are not stored; none is larger than the least count, and without a replacement there is none.
        let is_full = counters.len() == COUNTERS;
        let error = pairs.clone().map(|pair| pair.1).min().filter(|_| is_full).unwrap_or(0);
        let counters = pairs.map(|(hash, count)| Counter { hash, count, error }).collect();
        Some(Self { runs: Box::new(*runs), counters })
    }
}

/// The same for the same bytes in every version: it is stored. FNV-1a, and a finish that spreads the low bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (fnv ^ fnv >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Iterator<Item = u64>) -> Sketch {
        let mut sketch = Sketch::default();
        values.for_each(|value| sketch.add_hash(hash(&value.to_be_bytes())));
        sketch
    }

    #[test]
    fn estimates_are_near_the_truth() {
        for truth in [0u64, 1, 10, 1000, 5000, 20_000, 200_000] {
            let found = of((0..2 * truth).map(|value| value % truth.max(1))).distinct();
            let off = found.abs_diff(truth) as f64 / truth.max(1) as f64;
            assert!(off < 0.1, "{truth}: {found}");
        }
    }

    /// Two values of one group count as two.
    #[test]
    fn few_values_are_counted() {
        let towns = ["Redmond", "Seattle", "Portland", "Chicago", "Boston", "Zürich"];
        let mut sketch = Sketch::default();
        for _ in 0..3 {
            towns.iter().for_each(|town| sketch.add_hash(hash(town.as_bytes())));
        }
        assert_eq!(sketch.distinct(), 6);
        for truth in 0..COUNTERS as u64 {
            assert_eq!(of((0..3 * truth).map(|value| value % truth)).distinct(), truth);
        }
    }

    #[test]
    fn a_frequent_value_is_found() {
        let sketch = of((0..10_000).map(|value| if value % 10 == 0 { value } else { 7 }));
        assert!((8_900..=9_000).contains(&sketch.largest()), "{}", sketch.largest());
        assert_eq!(of(0..0).largest(), 0);
    }

    #[test]
    fn where_all_are_different_none_is_frequent() {
        let sketch = of(0..50_000);
        assert_eq!(sketch.largest(), 1);
        assert!(Sketch::decode(&sketch.encode()).unwrap().largest() <= 1);
    }

    #[test]
    fn it_is_read_back() {
        let few = of(0..10);
        assert_eq!(Sketch::decode(&few.encode()), Some(few));
        let sketch = of(0..1000);
        let read = Sketch::decode(&sketch.encode()).unwrap();
        assert_eq!(read.encode(), sketch.encode());
        assert!(read.largest() <= sketch.largest());
        assert_eq!(Sketch::decode(&Sketch::default().encode()[1..]), None);
    }
}
