//! How many transactions are under way: fewer when the service is too busy, more again when it is not.
//!
//! The rule is TCP's: half as many after a sign of overload, one more after as many successes as there are places. The
//! signs of transactions that began before the last cut are its echo and cut no further.

/// The number of places for transactions.
#[derive(Debug)]
pub(super) struct Rate {
    places: usize,
    places_max: usize,
    successes: usize,
    cuts: u64,
}

impl Rate {
    pub(super) fn new(places_max: usize) -> Self {
        let places_max = places_max.max(1);
        Self { places: places_max, places_max, successes: 0, cuts: 0 }
    }

    pub(super) fn places(&self) -> usize {
        self.places
    }

    /// What a transaction remembers of the moment when it began.
    pub(super) fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Notes the end of a transaction that began after this many cuts.
    pub(super) fn note(&mut self, cuts: u64, was_throttled: bool) {
        match was_throttled {
            true if cuts == self.cuts => {
                self.places = (self.places / 2).max(1);
                self.successes = 0;
                self.cuts += 1;
            }
            true => {}
            false => {
                self.successes += 1;
                if self.successes >= self.places {
                    self.places = (self.places + 1).min(self.places_max);
                    self.successes = 0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_halves_once_and_success_restores() {
        let mut rate = Rate::new(8);
        let before = rate.cuts();
        for _ in 0..5 {
            rate.note(before, true);
        }
        assert_eq!(rate.places(), 4);
        for expected in [2, 1, 1] {
            rate.note(rate.cuts(), true);
            assert_eq!(rate.places(), expected);
        }
        for _ in 0..(1 + 2 + 3) {
            rate.note(rate.cuts(), false);
        }
        assert_eq!(rate.places(), 4);
        for _ in 0..100 {
            rate.note(rate.cuts(), false);
        }
        assert_eq!(rate.places(), 8, "and no more than that");
    }
}
