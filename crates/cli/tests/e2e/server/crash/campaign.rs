//! Rounds of work, kill, restart and check on one data folder.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::churn::Churner;
use super::pager::{Pager, RowName};
use super::round::{Kind, Round};
use super::writer::Writer;
use crate::support::client::values;
use crate::support::{Client, Launch, Random, Server};

const WRITERS: usize = 10;
const CHURNERS: usize = 2;
const TABLE: &str = "Ledger";
/// Rounds between two looks at every row there is; the others look at what may have changed.
const ROUNDS_BETWEEN_FULL_CHECKS: usize = 10;

/// A server, and everyone who works on it with what they know.
pub(super) struct Campaign {
    seed: u64,
    random: Random,
    server: Arc<Server>,
    writers: Vec<Writer>,
    churners: Vec<Churner>,
    pager: Pager,
    /// How long the last start took: the span in which to kill the next one.
    starting: Duration,
    tally: Tally,
}

/// What a campaign has been through.
#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    kills_while_starting: usize,
    acknowledged: usize,
    refused: usize,
    bytes: usize,
    /// Requests under way at a kill that turned out to have been done, and not.
    done_unheard: usize,
    undone_unheard: usize,
    tokens_carried: usize,
    rows_checked: usize,
}

impl Campaign {
    pub(super) fn new(seed: u64) -> Self {
        tell(&format!("crash: seed {seed} (repeat with TAVOLA_TEST_SEED={seed})"));
        let mut random = Random::new(seed);
        let start = Instant::now();
        let server = Arc::new(Launch::new().start());
        let starting = start.elapsed();
        Client::new(&server).create_table(TABLE).expect(204);
        Self {
            seed,
            server,
            starting,
            writers: (0..WRITERS).map(|number| Writer::new(TABLE, number, random.next())).collect(),
            churners: (0..CHURNERS).map(|number| Churner::new(number, random.next())).collect(),
            pager: Pager::new(TABLE, random.next()),
            random,
            tally: Tally::default(),
        }
    }

    pub(super) fn run(mut self, rounds: usize) {
        let start = Instant::now();
        for number in 0..rounds {
            let kind = Kind::of(number);
            self.work_until_killed(kind);
            self.start_again(kind);
            let is_full = number % ROUNDS_BETWEEN_FULL_CHECKS == 0 || number + 1 == rounds;
            self.check(is_full);
            tell(&format!("crash: round {} of {rounds}, {kind:?}, {:?}", number + 1, self.tally));
        }
        assert!(self.tally.tokens_carried > 0 || rounds < 2, "{:?}", self.tally);
        let (seed, seconds) = (self.seed, start.elapsed().as_secs_f64());
        let operations = self.tally.acknowledged + self.tally.refused;
        tell(&format!(
            "crash: seed {seed}, {rounds} rounds, {operations} operations, {seconds:.1} seconds, {:?}",
            self.tally
        ));
    }

    fn work_until_killed(&mut self, kind: Kind) {
        let round = Round::new(kind, &self.server);
        let known = Arc::new(self.archived());
        self.pager.keep_a_token(&Client::new(&self.server), &known);
        std::thread::scope(|scope| {
            let (server, round, known) = (&self.server, &round, &known);
            for writer in &mut self.writers {
                scope.spawn(move || writer.run(server, round));
            }
            for churner in &mut self.churners {
                scope.spawn(move || churner.run(server, round));
            }
            let pager = &mut self.pager;
            scope.spawn(move || pager.run(server, round, known));
            round.wait_for_the_moment(&mut self.random);
            round.kill();
        });
        self.tally.kills += 1;
        self.tally.acknowledged += round.acknowledged();
        self.tally.refused += round.refused();
        self.tally.bytes += round.bytes();
    }

    fn start_again(&mut self, kind: Kind) {
        let kills = match kind {
            Kind::Recovery => 1 + self.random.below(3),
            _ => usize::from(self.random.one_in(4)),
        };
        for _ in 0..kills {
            // A little beyond, since a start with more to recover takes longer than the last.
            let micros = usize::try_from(self.starting.as_micros()).expect("a short start");
            let micros = self.random.below(micros + micros / 2 + 1);
            self.server.start_and_kill_after(Duration::from_micros(micros as u64));
            self.tally.kills_while_starting += 1;
        }
        let start = Instant::now();
        self.server.start_again();
        self.starting = start.elapsed();
    }

    fn check(&mut self, is_full: bool) {
        let client = Client::new(&self.server);
        for writer in &mut self.writers {
            let settled = writer.check(&client, is_full);
            self.tally.rows_checked += settled.rows;
            self.tally.done_unheard += usize::from(settled.done_unheard);
            self.tally.undone_unheard += usize::from(settled.undone_unheard);
        }
        for churner in &mut self.churners {
            self.tally.rows_checked += churner.check(&client);
        }
        let archived = self.archived();
        self.tally.tokens_carried += self.pager.finish(&client, &archived);
        let found = values(&client.get("/Tables").send().expect(200));
        let found: BTreeSet<_> =
            found.iter().map(|table| table["TableName"].as_str().expect("a name")).collect();
        let churned = self.churners.iter().flat_map(Churner::tables);
        assert_eq!(found, churned.chain([TABLE]).collect());
    }

    /// The rows that are only ever added to.
    fn archived(&self) -> BTreeSet<RowName> {
        self.writers.iter().flat_map(Writer::archived).collect()
    }
}

#[expect(clippy::print_stdout, reason = "a long run shows how it goes, a failed one its seed")]
fn tell(line: &str) {
    println!("{line}");
}
