//! Keys as real applications ask for them: a few very often, most of them hardly ever.

use crate::random::Random;

/// Ranks from 0 to `count - 1`, where rank `n` comes up in proportion to `1 / (n + 1)^exponent`.
#[derive(Debug)]
pub struct Zipf {
    /// The share of draws that fall on this rank or an earlier one. Eight bytes a rank buy exactness for any exponent.
    cumulative: Vec<f64>,
}

impl Zipf {
    pub fn new(count: usize, exponent: f64) -> Self {
        assert!(count > 0, "there must be something to choose from");
        let mut total = 0.0;
        let mut cumulative: Vec<_> = (1..=count)
            .map(|rank| {
                total += (rank as f64).powf(-exponent);
                total
            })
            .collect();
        for share in &mut cumulative {
            *share /= total;
        }
        Self { cumulative }
    }

    pub fn rank(&self, random: &mut Random) -> usize {
        let drawn = random.fraction();
        self.cumulative.partition_point(|share| *share <= drawn).min(self.cumulative.len() - 1)
    }

    /// Like [`Zipf::rank`], with the frequent ones strewn over the whole range instead of at its start.
    pub fn strewn(&self, random: &mut Random) -> usize {
        strew(self.rank(random), self.cumulative.len())
    }
}

/// Sends each rank below `count` to another place below it.
fn strew(rank: usize, count: usize) -> usize {
    // A prime above any count in use: it shares no factor with the count, so no two ranks meet.
    const STRIDE: usize = 2_147_483_647;
    rank * (STRIDE % count) % count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_up_in_proportion_to_their_inverse() {
        let zipf = Zipf::new(1000, 1.0);
        let mut random = Random::new(3);
        let mut seen = vec![0_u32; 1000];
        for _ in 0..100_000 {
            seen[zipf.rank(&mut random)] += 1;
        }
        let ratio = |rank: usize| f64::from(seen[0]) / f64::from(seen[rank]);
        assert!((1.9..2.1).contains(&ratio(1)), "{}", ratio(1));
        assert!((8.0..12.0).contains(&ratio(9)), "{}", ratio(9));
        assert!(seen[999] < 100);
    }

    #[test]
    fn strewn_ranks_do_not_meet_and_are_not_in_order() {
        for count in [1, 2, 1000, 50_000] {
            let mut seen = vec![false; count];
            for rank in 0..count {
                seen[strew(rank, count)] = true;
            }
            assert!(seen.into_iter().all(|hit| hit), "{count}");
        }
        assert!(strew(1, 50_000) > 1);
    }
}
