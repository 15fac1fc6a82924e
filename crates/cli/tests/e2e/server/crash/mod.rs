//! Durability: what was acknowledged is there after `kill -9`, what was refused is not, what was dropped stays dropped.
//!
//! Many connections write while the server is killed, again and again, on one data folder that keeps growing. Each
//! writer owns its rows and knows what they must hold; the one request it had under way when the server died may have
//! been done or not, but nothing in between. `docs/reliability.md` tells the promises and the figures of long runs.

mod campaign;
mod churn;
mod drops;
mod exchange;
mod ledger;
mod pager;
mod round;
mod writer;

use self::campaign::Campaign;
use crate::support::Random;

/// The variable that sets how often the server is killed.
const ROUNDS: &str = "TAVOLA_CRASH_ROUNDS";
/// Enough for kills amid writes, amid sweeping, and amid recovery.
const ROUNDS_IN_SHORT: usize = 5;

#[test]
fn acknowledged_writes_survive_kill() {
    let rounds = std::env::var(ROUNDS).map(|text| text.parse().expect("a number of rounds"));
    Campaign::new(Random::seed_or(5)).run(rounds.unwrap_or(ROUNDS_IN_SHORT));
}
