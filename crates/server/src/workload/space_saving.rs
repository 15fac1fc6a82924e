//! The most frequent of many things, in memory of a fixed size (Space-Saving: Metwally, Agrawal, El Abbadi, 2005).
//!
//! There are `capacity` counters. A thing without one takes that of the least frequent, together with its count, which
//! becomes the newcomer's possible error. So, of everything that was noted:
//! - `estimate - error <= truth <= estimate` for everything that has a counter;
//! - whatever has no counter was noted no more than [`SpaceSaving::unseen_max`];
//! - with `total` the sum of all, nothing is overestimated by more than `total / capacity`, and everything above that has a counter.
//!
//! The same holds after [merging](SpaceSaving::merge) (Cafaro, Pulimeno, Tempesta, 2016). A thing is known by a hash of
//! 64 bits; its owner chooses a hash that strangers cannot predict.

use std::collections::HashMap;

#[derive(Clone, Debug)]
pub(crate) struct SpaceSaving<T> {
    capacity: usize,
    counters: Vec<Counter<T>>,
    /// Where each thing is counted: places in `counters`.
    by_key: HashMap<u64, usize>,
    /// Places in `counters`, the smallest estimate first: a binary heap that every counter knows its position in.
    heap: Vec<usize>,
}

/// What is known of one thing.
#[derive(Clone, Debug)]
pub(crate) struct Counter<T> {
    key: u64,
    /// No less than the truth.
    pub estimate: u64,
    /// By how much the estimate may be too high.
    pub error: u64,
    /// What else is kept of the thing, since it has this counter.
    pub value: T,
    position: usize,
}

impl<T> SpaceSaving<T> {
    /// # Panics
    ///
    /// If there are no counters.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a sketch needs counters");
        Self { capacity, counters: Vec::new(), by_key: HashMap::new(), heap: Vec::new() }
    }

    pub(crate) fn counters(&self) -> impl Iterator<Item = &Counter<T>> {
        self.counters.iter()
    }

    pub(crate) fn get(&self, key: u64) -> Option<&Counter<T>> {
        self.by_key.get(&key).map(|place| &self.counters[*place])
    }

    /// The most that something without a counter can have been noted.
    pub(crate) fn unseen_max(&self) -> u64 {
        match self.heap.first() {
            Some(least) if self.counters.len() == self.capacity => self.counters[*least].estimate,
            _ => 0,
        }
    }

    /// Counts a thing, and answers what is kept of it: `new` if it had no counter.
    pub(crate) fn note(&mut self, key: u64, weight: u64, new: impl FnOnce() -> T) -> &mut T {
        let place = match self.by_key.get(&key) {
            Some(place) => *place,
            None if self.counters.len() < self.capacity => self.add(key, new()),
            None => self.replace_least(key, new()),
        };
        let counter = &mut self.counters[place];
        counter.estimate = counter.estimate.saturating_add(weight);
        let position = counter.position;
        self.sink(position);
        &mut self.counters[place].value
    }

    /// Adds what another sketch has counted; `join` adds what it has kept of something that both have.
    pub(crate) fn merge(&mut self, other: Self, mut join: impl FnMut(&mut T, T)) {
        let (unseen_here, unseen_there) = (self.unseen_max(), other.unseen_max());
        for counter in &mut self.counters {
            if !other.by_key.contains_key(&counter.key) {
                counter.estimate = counter.estimate.saturating_add(unseen_there);
                counter.error = counter.error.saturating_add(unseen_there);
            }
        }
        for mut theirs in other.counters {
            match self.by_key.get(&theirs.key) {
                Some(place) => {
                    let ours = &mut self.counters[*place];
                    ours.estimate = ours.estimate.saturating_add(theirs.estimate);
                    ours.error = ours.error.saturating_add(theirs.error);
                    join(&mut ours.value, theirs.value);
                }
                None => {
                    theirs.estimate = theirs.estimate.saturating_add(unseen_here);
                    theirs.error = theirs.error.saturating_add(unseen_here);
                    self.counters.push(theirs);
                }
            }
        }
        self.counters.sort_by_key(|counter| std::cmp::Reverse(counter.estimate));
        self.counters.truncate(self.capacity);
        self.arrange();
    }

    /// Halves everything, so that what is long past counts for less and less; `halve` does so with what is kept. What
    /// comes to one is forgotten, which is the only way in which an estimate may be too low: by one.
    pub(crate) fn halve(&mut self, mut halve: impl FnMut(&mut T)) {
        for counter in &mut self.counters {
            let certain = counter.estimate - counter.error;
            counter.estimate = counter.estimate.div_ceil(2);
            counter.error = counter.estimate - certain / 2;
            halve(&mut counter.value);
        }
        self.counters.retain(|counter| counter.estimate > 1);
        self.arrange();
    }

    fn add(&mut self, key: u64, value: T) -> usize {
        let (place, position) = (self.counters.len(), self.heap.len());
        self.counters.push(Counter { key, estimate: 0, error: 0, value, position });
        self.heap.push(place);
        self.by_key.insert(key, place);
        self.rise(position);
        place
    }

    fn replace_least(&mut self, key: u64, value: T) -> usize {
        let place = self.heap[0];
        let least = &mut self.counters[place];
        self.by_key.remove(&least.key);
        least.key = key;
        least.error = least.estimate;
        least.value = value;
        self.by_key.insert(key, place);
        place
    }

    /// Makes the map and the heap anew, from the counters.
    fn arrange(&mut self) {
        self.by_key = self.counters.iter().enumerate().map(|(at, it)| (it.key, at)).collect();
        self.heap = (0..self.counters.len()).collect();
        self.heap.sort_by_key(|place| self.counters[*place].estimate);
        for (position, place) in self.heap.iter().enumerate() {
            self.counters[*place].position = position;
        }
    }

    /// Moves a counter that has grown away from the top of the heap.
    fn sink(&mut self, mut position: usize) {
        loop {
            let (left, right) = (2 * position + 1, 2 * position + 2);
            let mut least = position;
            for child in [left, right] {
                if child < self.heap.len() && self.at(child) < self.at(least) {
                    least = child;
                }
            }
            if least == position {
                return;
            }
            self.swap(position, least);
            position = least;
        }
    }

    fn rise(&mut self, mut position: usize) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.at(parent) <= self.at(position) {
                return;
            }
            self.swap(position, parent);
            position = parent;
        }
    }

    fn at(&self, position: usize) -> u64 {
        self.counters[self.heap[position]].estimate
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for position in [a, b] {
            self.counters[self.heap[position]].position = position;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Truth = BTreeMap<u64, u64>;

    /// Few keys are frequent and many are not.
    fn stream() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let key = prop_oneof![4 => 0..4_u64, 2 => 4..16_u64, 1 => 16..200_u64];
        prop::collection::vec((key, prop_oneof![3 => Just(1_u64), 1 => 0..1000_u64]), 0..400)
    }

    /// The value that is kept is the weight since the thing has its counter.
    fn sketch(capacity: usize, stream: &[(u64, u64)]) -> SpaceSaving<u64> {
        let mut sketch = SpaceSaving::new(capacity);
        for (key, weight) in stream {
            *sketch.note(*key, *weight, || 0) += weight;
        }
        sketch
    }

    fn truth(stream: &[(u64, u64)]) -> Truth {
        let mut truth = Truth::new();
        for (key, weight) in stream {
            *truth.entry(*key).or_default() += weight;
        }
        truth
    }

    /// What the head of this file promises.
    fn check(sketch: &SpaceSaving<u64>, truth: &Truth) {
        let total = truth.values().sum::<u64>();
        assert!(sketch.counters.len() <= sketch.capacity);
        let most_error = total / sketch.capacity as u64;
        for counter in sketch.counters() {
            let truth = truth[&counter.key];
            assert!(counter.estimate - counter.error <= truth && truth <= counter.estimate);
            assert!(counter.error <= most_error);
            assert!(counter.value <= truth, "what is kept was noted");
        }
        for (key, truth) in truth {
            if sketch.get(*key).is_none() {
                assert!(*truth <= sketch.unseen_max() && *truth <= most_error);
            }
        }
        check_structure(sketch);
    }

    fn check_structure<T>(sketch: &SpaceSaving<T>) {
        assert_eq!(sketch.by_key.len(), sketch.counters.len());
        assert_eq!(sketch.heap.len(), sketch.counters.len());
        for (place, counter) in sketch.counters.iter().enumerate() {
            assert_eq!(sketch.by_key[&counter.key], place);
            assert_eq!(sketch.heap[counter.position], place);
        }
        for position in 1..sketch.heap.len() {
            assert!(sketch.at((position - 1) / 2) <= sketch.at(position));
        }
    }

    proptest! {
        #[test]
        fn estimates_keep_their_bounds(capacity in 1..40_usize, stream in stream()) {
            check(&sketch(capacity, &stream), &truth(&stream));
        }

        #[test]
        fn merged_sketches_keep_them_too(
            capacity in 1..40_usize,
            streams in prop::collection::vec(stream(), 1..6),
        ) {
            let mut merged = SpaceSaving::new(capacity);
            for stream in &streams {
                merged.merge(sketch(capacity, stream), |ours, theirs| *ours += theirs);
                check_structure(&merged);
            }
            check(&merged, &truth(&streams.concat()));
        }

        #[test]
        fn a_sketch_with_room_for_all_is_exact(stream in stream()) {
            let (sketch, truth) = (sketch(200, &stream), truth(&stream));
            prop_assert_eq!(sketch.counters.len(), truth.len());
            for counter in sketch.counters() {
                prop_assert_eq!((counter.estimate, counter.error), (truth[&counter.key], 0));
                prop_assert_eq!(counter.value, counter.estimate);
            }
        }

        #[test]
        fn halves_keep_the_bounds_of_halves(
            capacity in 1..40_usize,
            stream in stream(),
            later in stream(),
        ) {
            let mut sketch = sketch(capacity, &stream);
            sketch.halve(|value| *value /= 2);
            check_structure(&sketch);
            let mut doubled = truth(&stream);
            for (key, weight) in &later {
                sketch.note(*key, *weight, || 0);
                *doubled.entry(*key).or_default() += 2 * weight;
            }
            for counter in sketch.counters() {
                let doubled = doubled[&counter.key];
                prop_assert!(2 * (counter.estimate - counter.error) <= doubled);
                prop_assert!(doubled <= 2 * (counter.estimate + 1));
            }
        }
    }

    #[test]
    fn what_is_not_seen_again_is_forgotten() {
        let mut sketch = sketch(4, &[(1, 1000), (2, 3)]);
        for _ in 0..2 {
            sketch.halve(|value| *value /= 2);
        }
        assert_eq!(
            sketch.counters().map(|it| (it.key, it.estimate)).collect::<Vec<_>>(),
            [(1, 250)]
        );
        for _ in 0..10 {
            sketch.halve(|value| *value /= 2);
        }
        assert_eq!((sketch.counters().count(), sketch.unseen_max()), (0, 0));
    }
}
