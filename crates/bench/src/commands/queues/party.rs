//! The servers that take part: the service with its queue in four states, Azurite, and the bare server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tavola_wire::service::Service;
use tokio::runtime::Runtime;

use super::SMALL;
use crate::bare::IDLE_QUEUE;
use crate::entity::Keys;
use crate::measure::{Contender, Tally};
use crate::process;
use crate::queue::backlog::Backlog;
use crate::queue::chores::{Chore, carry_out};
use crate::queue::operations::HIDDEN_SECONDS;
use crate::queue::workload::{QueueWork, QueueWorkload};
use crate::request::Client;
use crate::servers::{self, Server};
use crate::stage::{Stage, wait_until_settled};
use crate::table::number;

const QUEUE: &str = "work";

/// What is in the queue beside the messages that are worked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Few messages wait, and nothing else.
    Few,
    /// Many wait.
    Waiting,
    /// Many are not visible, and few wait.
    Invisible,
    /// Many were put, claimed and deleted, and few wait.
    Deleted,
}

/// One server, its queue, and what was measured of it.
pub(super) struct Party {
    server: Server,
    data: Option<PathBuf>,
    pub(super) contender: Contender,
    pub(super) backlog: Arc<Backlog>,
    /// Messages that wait before a round.
    level: u64,
    state: State,
    kind: Kind,
    works: Vec<Arc<QueueWork>>,
    tallies: Vec<Vec<Tally>>,
    /// Once everything was loaded, and before anything was measured.
    pub(super) resident_loaded_bytes: u64,
    pub(super) disk_loaded_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tavola,
    Azurite,
    Bare,
}

impl State {
    pub(super) const ALL: [Self; 4] = [Self::Few, Self::Waiting, Self::Invisible, Self::Deleted];

    /// What the service in this state is called in reports.
    pub(super) fn target(self, many: u64) -> String {
        let many = number(many as f64);
        match self {
            Self::Few => "tavola".to_owned(),
            Self::Waiting => format!("tavola, {many} waiting"),
            Self::Invisible => format!("tavola, {many} invisible"),
            Self::Deleted => format!("tavola, {many} deleted"),
        }
    }

    /// The queue itself is polled where nothing in it is visible.
    fn idle_queue(self) -> &'static str {
        match self {
            Self::Few | Self::Waiting => IDLE_QUEUE,
            Self::Invisible | Self::Deleted => QUEUE,
        }
    }
}

impl Party {
    pub(super) fn tavola(stage: &Stage, state: State, many: u64) -> anyhow::Result<Self> {
        let data = stage.folder.path().join(format!("{state:?}"));
        let server = servers::tavola_queues(&stage.binary, &data)?;
        let level = if state == State::Waiting { many } else { SMALL };
        let remembers = matches!(state, State::Invisible | State::Deleted);
        let backlog = Backlog::new(QUEUE, level, remembers);
        let name = state.target(many);
        let party = Self::new(server, &name, level, backlog, state, Kind::Tavola);
        Ok(Self { data: Some(data), ..party })
    }

    pub(super) fn azurite(stage: &Stage) -> anyhow::Result<Self> {
        let data = stage.folder.path().join("azurite");
        let server = servers::azurite(&stage.root, &data, Service::Queue)?;
        // It is so much slower that a round leaves most of the messages where they are.
        let backlog = Backlog::new(QUEUE, 0, false);
        Ok(Self::new(server, "azurite", SMALL, backlog, State::Few, Kind::Azurite))
    }

    pub(super) fn bare() -> anyhow::Result<Self> {
        let backlog = Backlog::endless(QUEUE);
        Ok(Self::new(servers::bare()?, "bare", 0, backlog, State::Few, Kind::Bare))
    }

    fn new(
        server: Server,
        name: &str,
        level: u64,
        backlog: Backlog,
        state: State,
        kind: Kind,
    ) -> Self {
        let (target, pid) = (server.target(name).for_queues(), Some(server.pid()));
        let contender = match kind {
            Kind::Bare => Contender::bare(target, pid),
            Kind::Tavola | Kind::Azurite => Contender::new(target, pid, level),
        };
        let backlog = Arc::new(backlog);
        let work = |workload| {
            let (backlog, idle) = (backlog.clone(), state.idle_queue().to_owned());
            Arc::new(QueueWork { workload, backlog, idle })
        };
        Self {
            server,
            data: None,
            contender,
            level,
            state,
            kind,
            works: QueueWorkload::ALL.map(work).into(),
            tallies: vec![Vec::new(); QueueWorkload::ALL.len()],
            backlog,
            resident_loaded_bytes: 0,
            disk_loaded_bytes: 0,
        }
    }

    pub(super) fn is_azurite(&self) -> bool {
        self.kind == Kind::Azurite
    }

    pub(super) fn is_tavola(&self) -> bool {
        self.kind == Kind::Tavola
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(super) fn work(&self, workload: QueueWorkload) -> &Arc<QueueWork> {
        &self.works[workload as usize]
    }

    pub(super) fn tallies(&self, workload: QueueWorkload) -> &[Tally] {
        &self.tallies[workload as usize]
    }

    pub(super) fn count(&mut self, workload: QueueWorkload, tally: Tally) {
        self.tallies[workload as usize].push(tally);
    }

    /// Makes the queues, and brings them into their state. Where the queue itself is polled, no messages wait yet.
    pub(super) fn set_up(&mut self, runtime: &Runtime, many: u64) -> anyhow::Result<()> {
        if self.kind == Kind::Bare {
            return Ok(());
        }
        let start = Instant::now();
        runtime.block_on(async {
            let mut client = Client::new(&self.contender.target, Keys::default());
            client.create_queue(QUEUE).await?;
            client.create_queue(IDLE_QUEUE).await?;
            let put =
                |messages, hidden_seconds| self.chore(Chore::Put { messages, hidden_seconds });
            match self.state {
                State::Few | State::Waiting => {
                    put(self.level, 0).await?;
                    self.backlog.add(self.level);
                }
                State::Invisible => put(many, HIDDEN_SECONDS).await?,
                State::Deleted => {
                    put(many, 0).await?;
                    self.chore(Chore::Drain { messages: many }).await?;
                }
            }
            anyhow::Ok(())
        })?;
        println!(
            "{}: set up in {:.1} s",
            self.contender.target.name,
            start.elapsed().as_secs_f64()
        );
        if let Some(data) = &self.data {
            wait_until_settled(data, self.pid());
            self.resident_loaded_bytes = self.resident_bytes();
            self.disk_loaded_bytes = process::folder_bytes(data);
        }
        Ok(())
    }

    /// Puts messages until so many lie above the floor, and as many wait as are to.
    pub(super) fn top_up(&self, runtime: &Runtime, above_the_floor: u64) -> anyhow::Result<bool> {
        let wanted = match self.kind {
            Kind::Tavola => self.level.max(self.backlog.floor + above_the_floor),
            Kind::Azurite | Kind::Bare => self.level,
        };
        let messages = wanted.saturating_sub(self.backlog.waiting());
        runtime.block_on(self.chore(Chore::Put { messages, hidden_seconds: 0 }))?;
        self.backlog.add(messages);
        Ok(messages > 0)
    }

    /// Takes away what the rounds have left behind, as far as that is not in line with the state.
    pub(super) fn clean_up(&self, runtime: &Runtime) -> anyhow::Result<()> {
        let client = || Client::new(&self.contender.target, Keys::default());
        match (self.kind, self.state) {
            (Kind::Bare | Kind::Azurite, _) | (_, State::Waiting) => Ok(()),
            (Kind::Tavola, State::Few) => {
                runtime.block_on(client().clear_messages(QUEUE))?;
                self.backlog.cleared();
                Ok(())
            }
            (Kind::Tavola, State::Invisible | State::Deleted) => runtime.block_on(async {
                self.chore(Chore::Delete(self.backlog.take_claimed())).await?;
                let messages = self.backlog.waiting().saturating_sub(self.level);
                self.chore(Chore::Drain { messages }).await?;
                self.backlog.reserve(messages);
                Ok(())
            }),
        }
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        process::resident_bytes(self.pid()).unwrap_or_default()
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.data.as_deref().map_or(0, process::folder_bytes)
    }

    async fn chore(&self, chore: Chore) -> anyhow::Result<()> {
        carry_out(&self.contender.target, QUEUE, chore).await
    }
}
