//! Histories: what concurrent clients saw, held against what one client at a time could have seen.
//!
//! Clients work on the same few rows and record every request with the moments before and after it. A checker then
//! looks for an order of the requests, each at one moment between its two, in which every answer is right: per entity,
//! and for transactions per partition. Some episodes run through kills; what was under way then may have been done or
//! not. The checker is tested on histories that are known to be good and bad.

mod bank;
mod entities;
mod kills;
mod known;
mod linearizable;
mod recorder;
mod rows;
mod session;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::kills::Kills;
use self::recorder::Recorder;
use crate::support::{Client, Launch, Random, Server};

/// The variable that sets how long to go on, in seconds.
const SECONDS: &str = "TAVOLA_HISTORY_SECONDS";
/// Requests of all clients of an episode, about.
const EPISODE_OPERATIONS: usize = 900;
const KILLS_IN_EPISODE: usize = 3;

/// Who does what in an episode.
#[derive(Clone, Copy, Debug)]
enum Workload {
    /// Single requests on a few entities, checked entity by entity.
    Entities,
    /// Transactions on the rows of a partition, checked as a whole.
    Bank,
}

#[test]
fn histories_of_concurrent_clients_are_linearizable() {
    let seed = Random::seed_or(11);
    tell(&format!("histories: seed {seed} (repeat with TAVOLA_TEST_SEED={seed})"));
    let mut random = Random::new(seed);
    let server = Arc::new(Launch::new().start());
    let seconds = std::env::var(SECONDS).map(|text| text.parse().expect("a number of seconds"));
    let (start, at_least) = (Instant::now(), Duration::from_secs(seconds.unwrap_or(0)));
    let mut total = Tally::default();
    loop {
        for (workload, kills) in [
            (Workload::Entities, 0),
            (Workload::Bank, 0),
            (Workload::Entities, KILLS_IN_EPISODE),
            (Workload::Bank, KILLS_IN_EPISODE),
        ] {
            total.add(&episode(&server, workload, kills, random.next()));
        }
        if start.elapsed() >= at_least {
            break;
        }
    }
    assert!(total.done > total.operations / 8, "little was done: {total:?}");
    assert!(total.refused > 0 && total.unknown > 0, "nothing was contested: {total:?}");
    let seconds = start.elapsed().as_secs_f64();
    let operations = total.operations;
    tell(&format!(
        "histories: seed {seed}, {operations} operations, {seconds:.1} seconds, {total:?}"
    ));
}

/// What a run has been through.
#[derive(Debug, Default)]
struct Tally {
    episodes: usize,
    operations: usize,
    done: usize,
    refused: usize,
    unknown: usize,
    kills: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.episodes += other.episodes;
        self.operations += other.operations;
        self.done += other.done;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.kills += other.kills;
    }
}

/// Some clients on a partition of their own, and the check of what they saw.
fn episode(server: &Arc<Server>, workload: Workload, kills: usize, seed: u64) -> Tally {
    let table = Client::new(server).new_table();
    let (recorder, mut random) = (Recorder::new(), Random::new(seed));
    let kills = Kills::new(server, kills, EPISODE_OPERATIONS);
    let history = match workload {
        Workload::Entities => entities::run(&table, &kills, &recorder, &mut random),
        Workload::Bank => bank::run(&table, &kills, &recorder, &mut random),
    };
    Client::new(server).drop_table(&table).expect(204);
    let count = |is: fn(&rows::Outcome) -> bool| {
        history.iter().filter(|operation| is(&operation.outcome)).count()
    };
    Tally {
        episodes: 1,
        operations: history.len(),
        done: count(|outcome| matches!(outcome, rows::Outcome::Done)),
        refused: count(|outcome| matches!(outcome, rows::Outcome::Refused(..))),
        unknown: count(|outcome| matches!(outcome, rows::Outcome::Unknown)),
        kills: kills.restarts(),
    }
}

#[expect(clippy::print_stdout, reason = "a long run shows what it did, a failed one its seed")]
fn tell(line: &str) {
    println!("{line}");
}
