//! What `queues` found, as it is kept and shown.

use serde::{Deserialize, Serialize};

use super::party::State;
use super::{AZURITE_CONNECTIONS_MAX, SMALL};
use crate::commands::run::side_by_side;
use crate::measure::Row;
use crate::queue::workload::QueueWorkload;
use crate::table::{Table, megabytes, number};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct QueuesResult {
    /// Messages of a long queue.
    pub messages: u64,
    pub connections: usize,
    pub seconds: f64,
    pub rounds: u64,
    pub azurite_version: Option<String>,
    pub rows: Vec<Row>,
    pub footprints: Vec<Footprint>,
}

/// What the service takes with a queue in one state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Footprint {
    pub target: String,
    /// Loaded and at rest.
    pub resident_loaded_bytes: u64,
    pub disk_loaded_bytes: u64,
    /// After everything was measured.
    pub resident_end_bytes: u64,
    pub disk_end_bytes: u64,
}

impl QueuesResult {
    pub fn row(&self, workload: QueueWorkload, target: &str) -> Option<&Row> {
        let is_it = |row: &&Row| row.workload == workload.name() && row.target == target;
        self.rows.iter().find(is_it)
    }

    /// Messages per second of the service with a short queue, as a multiple of another server's.
    pub fn ratio(&self, workload: QueueWorkload, other: &str) -> Option<f64> {
        let (own, other) = (self.row(workload, "tavola")?, self.row(workload, other)?);
        let messages_each = |row: &Row| row.entities_per_second / row.operations_per_second;
        let ratio = own.times(other)? * messages_each(own) / messages_each(other);
        // Who did nothing has no messages in each operation.
        ratio.is_finite().then_some(ratio)
    }

    /// Messages per second that are claimed by 32, as a multiple of those that are enqueued.
    pub fn claims_of_enqueues(&self) -> Option<f64> {
        let rate = |workload| Some(self.row(workload, "tavola")?.entities_per_second);
        Some(rate(QueueWorkload::ClaimMany)? / rate(QueueWorkload::Enqueue)?)
    }

    /// How the service is called with many messages that wait, that are invisible, and that were deleted.
    pub fn long_targets(&self) -> [(&'static str, String); 3] {
        let named = |what, state: State| (what, state.target(self.messages));
        [
            named("waiting", State::Waiting),
            named("invisible", State::Invisible),
            named("deleted", State::Deleted),
        ]
    }

    pub fn table(&self) -> String {
        let mut table = Table::new([
            "Memory and disk",
            "memory, loaded",
            "memory at the end",
            "disk, loaded",
            "disk at the end",
        ]);
        for footprint in &self.footprints {
            table.row([
                footprint.target.clone(),
                megabytes(footprint.resident_loaded_bytes),
                megabytes(footprint.resident_end_bytes),
                megabytes(footprint.disk_loaded_bytes),
                megabytes(footprint.disk_end_bytes),
            ]);
        }
        format!("{}\n{}", side_by_side(&self.rows), table.to_markdown())
    }

    /// How it was measured, for the page.
    pub fn describe(&self) -> String {
        let Self { connections, seconds, rounds, .. } = self;
        let (few, many) = (number(SMALL as f64), number(self.messages as f64));
        let mut out = format!(
            "{connections} keep-alive connections, each with a shared access signature, messages of 1 KiB, {rounds} rounds of {seconds} s each (claims of 32: half of it), the servers in turn.\n\
            {few} messages wait in the queue when a round begins, and no fewer while claims are measured: what they take is put before.\n\
            Beside it stands the service with {many} messages that wait; with as many that are invisible, and with as many that were put, claimed and deleted, {few} waiting in both.\n\
            A queue that is polled has nothing visible: it is empty, or holds the {many} invisible messages, or held the deleted ones.\n\
            A claim and its delete are two requests and count as one, of the bare server as well; rates of `claim-32` are requests with 32 messages each.\n"
        );
        if let Some(version) = &self.azurite_version {
            out += &format!(
                "Azurite is version {version} with {few} messages and {AZURITE_CONNECTIONS_MAX} connections (it does one thing after the other, and with more a round would only take longer), keeping its data on disk as it does by default, some seconds after it answered.\n"
            );
        }
        out
    }
}
