//! `queues`: what the queue service does beside the bare server and Azurite, and whether it stays so when a queue is long.
//!
//! All servers run at the same time and are measured in turn, round by round: the service with a short queue, with a long
//! one, with many invisible messages and after many were deleted; Azurite with a short queue; and the bare server.

mod party;
mod result;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tokio::runtime::Runtime;

use self::party::{Party, State};
pub use self::result::{Footprint, QueuesResult};
use super::compare::AZURITE_SAVES_AFTER;
use super::run::progress;
use crate::measure::{Row, Tally};
use crate::queue::workload::QueueWorkload;
use crate::stage::{Setting, Stage, let_rest, runtime};
use crate::{goals, servers};

/// Messages of a short queue.
pub(crate) const SMALL: u64 = 10_000;
/// Messages of a long one.
const LARGE: u64 = 1_000_000;

/// Claims of 32 are many messages: half of a round's time is enough, and half as many to be put before it.
const CLAIM_MANY_SHARE: u32 = 2;
/// Messages that are put for a round of claims, of those that would be enqueued in its time. When they are used up, the
/// round is over.
const CLAIM_ONE_FACTOR: f64 = 1.0;
const CLAIM_MANY_FACTOR: f64 = 3.0;
/// Of the time of a round; the warm-up claims, too.
const WITH_WARM_UP: f64 = 1.2;

/// Azurite does one thing after the other and takes up to a fifth of a second for it: more connections would make rounds
/// longer, and not its rate higher.
pub(crate) const AZURITE_CONNECTIONS_MAX: usize = 16;

/// What is measured in a round, in this order: what reads before what lets the queue grow, and that before what claims.
/// Polls come before all rounds, while some queues have nothing visible.
const IN_ROUND: [QueueWorkload; 4] = [
    QueueWorkload::Peek,
    QueueWorkload::Enqueue,
    QueueWorkload::ClaimDelete,
    QueueWorkload::ClaimMany,
];

#[derive(Args, Clone, Debug)]
pub struct QueuesOptions {
    #[command(flatten)]
    setting: Setting,
    /// Messages of a long queue
    #[arg(long, default_value_t = LARGE)]
    messages: u64,
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Seconds of a round
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Leave Azurite out
    #[arg(long)]
    without_azurite: bool,
}

pub fn queues(options: &QueuesOptions) -> anyhow::Result<PathBuf> {
    let stage = options.setting.stage()?;
    let parties = options.parties(&stage)?;
    let mut bench =
        Bench { options, parties, runtime: runtime()?, azurite_was_written: Cell::new(false) };
    bench.run()?;
    let result = bench.result(&stage)?;
    println!("\n{}\n{}", goals::table(&goals::of_queues(&result)), result.table());
    stage.keep("queues", &options.arguments(), result)
}

impl QueuesOptions {
    fn parties(&self, stage: &Stage) -> anyhow::Result<Vec<Party>> {
        let mut parties = Vec::new();
        for state in State::ALL {
            parties.push(Party::tavola(stage, state, self.messages)?);
        }
        if !self.without_azurite {
            parties.push(Party::azurite(stage)?);
        }
        parties.push(Party::bare()?);
        Ok(parties)
    }

    fn connections_of(&self, party: &Party) -> usize {
        let at_most = if party.is_azurite() { AZURITE_CONNECTIONS_MAX } else { usize::MAX };
        self.connections.min(at_most)
    }

    fn duration(&self, workload: QueueWorkload) -> Duration {
        let round = Duration::from_secs_f64(self.seconds);
        if workload == QueueWorkload::ClaimMany { round / CLAIM_MANY_SHARE } else { round }
    }

    fn arguments(&self) -> String {
        let Self { messages, connections, seconds, rounds, .. } = self;
        let without = if self.without_azurite { " --without-azurite" } else { "" };
        format!(
            "queues --messages {messages} --connections {connections} --seconds {seconds} --rounds {rounds}{without}"
        )
    }
}

struct Bench<'o> {
    options: &'o QueuesOptions,
    parties: Vec<Party>,
    runtime: Runtime,
    /// It will save that some seconds later.
    azurite_was_written: Cell<bool>,
}

impl Bench<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        for party in &mut self.parties {
            party.set_up(&self.runtime, self.options.messages)?;
        }
        self.azurite_was_written.set(true);
        for round in 0..self.options.rounds {
            self.measure_all(QueueWorkload::PollEmpty, round)?;
        }
        for round in 0..self.options.rounds {
            for workload in IN_ROUND {
                self.measure_all(workload, round)?;
            }
            for party in &self.parties {
                party.clean_up(&self.runtime)?;
            }
        }
        Ok(())
    }

    /// Measures a workload of all servers. Each begins a round once, so that none always comes after the same other.
    fn measure_all(&mut self, workload: QueueWorkload, round: u64) -> anyhow::Result<()> {
        for place in 0..self.parties.len() {
            let at = (place + round as usize) % self.parties.len();
            let tally = self.measure(&self.parties[at], workload, round)?;
            self.parties[at].count(workload, tally);
        }
        Ok(())
    }

    fn measure(&self, party: &Party, workload: QueueWorkload, seed: u64) -> anyhow::Result<Tally> {
        let above_the_floor = self.messages_to_claim(party, workload);
        let mut prepared = Ok(());
        let prepare = || {
            let again = self.prepare(party, workload, above_the_floor);
            prepared = std::mem::replace(&mut prepared, Ok(())).and(again);
        };
        let tally = party.contender.measure_undisturbed(
            &self.runtime,
            prepare,
            party.work(workload),
            self.options.connections_of(party),
            self.options.duration(workload),
            seed,
        )?;
        prepared?;
        println!("{}", progress(&party.contender, workload.name(), &tally));
        // What fails in Azurite is counted and shown; anything else that fails would measure something else.
        let may_fail = party.is_azurite();
        ensure!(may_fail || tally.failures.is_empty(), "operations failed: {:?}", tally.failures);
        ensure!(tally.latency.count() > 0, "nothing was measured");
        if party.is_azurite() && workload.writes() {
            self.azurite_was_written.set(true);
        }
        Ok(tally)
    }

    /// Messages that a round of claims may use up, by what was enqueued in the same round.
    fn messages_to_claim(&self, party: &Party, workload: QueueWorkload) -> u64 {
        let factor = match workload {
            QueueWorkload::ClaimDelete => CLAIM_ONE_FACTOR,
            QueueWorkload::ClaimMany => CLAIM_MANY_FACTOR,
            QueueWorkload::Enqueue | QueueWorkload::Peek | QueueWorkload::PollEmpty => return 0,
        };
        let enqueued = party.tallies(QueueWorkload::Enqueue).last();
        let rate = enqueued.map_or(0.0, Tally::operations_per_second);
        let seconds = self.options.duration(workload).as_secs_f64() * WITH_WARM_UP;
        (rate * factor * seconds) as u64
    }

    /// Puts the messages that are needed, and waits until no server has anything left to do.
    fn prepare(
        &self,
        party: &Party,
        workload: QueueWorkload,
        above_the_floor: u64,
    ) -> anyhow::Result<()> {
        // A poll finds nothing: it is measured before anything is put where it looks.
        let was_written =
            workload != QueueWorkload::PollEmpty && party.top_up(&self.runtime, above_the_floor)?;
        if party.is_azurite() && was_written {
            self.azurite_was_written.set(true);
        }
        if self.azurite_was_written.replace(false) && !self.options.without_azurite {
            std::thread::sleep(AZURITE_SAVES_AFTER);
        }
        let pids: Vec<_> = self.parties.iter().map(Party::pid).collect();
        let_rest(&pids);
        Ok(())
    }

    fn result(&self, stage: &Stage) -> anyhow::Result<QueuesResult> {
        let mut rows = Vec::new();
        for workload in QueueWorkload::ALL {
            for party in &self.parties {
                let (name, connections) = (workload.name(), self.options.connections_of(party));
                rows.push(Row::new(&party.contender, name, connections, party.tallies(workload)));
            }
        }
        let azurite_version = match self.options.without_azurite {
            true => None,
            false => Some(servers::azurite_version(&stage.root)?),
        };
        let servers = self.parties.iter().filter(|party| party.is_tavola());
        let footprint = |party: &Party| Footprint {
            target: party.contender.target.name.clone(),
            resident_loaded_bytes: party.resident_loaded_bytes,
            resident_end_bytes: party.resident_bytes(),
            disk_loaded_bytes: party.disk_loaded_bytes,
            disk_end_bytes: party.disk_bytes(),
        };
        Ok(QueuesResult {
            messages: self.options.messages,
            connections: self.options.connections,
            seconds: self.options.seconds,
            rounds: self.options.rounds,
            azurite_version,
            rows,
            footprints: servers.map(footprint).collect(),
        })
    }
}
