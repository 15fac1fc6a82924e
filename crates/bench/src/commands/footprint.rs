//! `footprint`: memory and disk that many entities take, and how soon the service is back after `kill -9`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::entity::Keys;
use crate::load::load;
use crate::process;
use crate::request::Client;
use crate::servers::Server;
use crate::stage::{Setting, Stage, runtime, wait_until_settled};
use crate::table::{Table, megabytes, number};

const TABLE: &str = "footprint";
/// Starts are measured so often; the slowest counts.
const STARTS: usize = 3;

#[derive(Args, Clone, Debug)]
pub struct FootprintOptions {
    #[command(flatten)]
    setting: Setting,
    #[arg(long, default_value_t = 1_000_000)]
    entities: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FootprintResult {
    pub entities: u64,
    pub json_bytes: u64,
    pub disk_bytes: u64,
    pub resident_loaded_bytes: u64,
    pub resident_resting_bytes: u64,
    pub resident_most_bytes: u64,
    /// From starting the process to the first entity read: the first killed right after the load, with its journals
    /// full, the others at rest.
    pub start_seconds: Vec<f64>,
}

pub fn footprint(options: &FootprintOptions) -> anyhow::Result<PathBuf> {
    let stage = options.setting.stage()?;
    let mut result = FootprintResult { entities: options.entities, ..FootprintResult::default() };
    let server = stage.start()?;
    let loaded = runtime()?.block_on(load(&server.target("tavola"), TABLE, 0, options.entities))?;
    result.json_bytes = loaded.json_bytes;
    result.resident_loaded_bytes = resident(&server)?;
    result.resident_most_bytes =
        process::resident_bytes_max(server.pid()).context("the server's memory")?;
    let mut server = restart(&stage, server, &mut result)?;
    wait_until_settled(&stage.data(), server.pid());
    result.resident_resting_bytes = resident(&server)?;
    result.disk_bytes = process::folder_bytes(&stage.data());
    while result.start_seconds.len() < STARTS {
        server = restart(&stage, server, &mut result)?;
    }
    drop(server);
    println!("{}", result.table());
    stage.keep("footprint", &format!("footprint --entities {}", options.entities), result)
}

fn resident(server: &Server) -> anyhow::Result<u64> {
    process::resident_bytes(server.pid()).context("the server's memory")
}

fn restart(stage: &Stage, server: Server, result: &mut FootprintResult) -> anyhow::Result<Server> {
    server.kill();
    let start = Instant::now();
    let server = stage.start()?;
    let keys = Keys::default();
    let last = keys.place(result.entities - 1);
    let target = server.target("tavola");
    runtime()?
        .block_on(Client::new(&target, keys).get(TABLE, last))
        .context("reading after a start")?;
    result.start_seconds.push(start.elapsed().as_secs_f64());
    ensure!(start.elapsed() < Duration::from_secs(600), "the service takes too long to start");
    Ok(server)
}

impl FootprintResult {
    pub fn slowest_start_seconds(&self) -> f64 {
        self.start_seconds.iter().copied().fold(0.0, f64::max)
    }

    pub fn disk_share_of_json(&self) -> f64 {
        self.disk_bytes as f64 / self.json_bytes as f64
    }

    pub fn table(&self) -> String {
        let each =
            |bytes: u64| format!("{} bytes each", number(bytes as f64 / self.entities as f64));
        let mut table = Table::new(["With so many entities", &number(self.entities as f64), ""]);
        let mut row =
            |what: &str, value: String, note: String| table.row([what.to_owned(), value, note]);
        row("JSON that they came as", megabytes(self.json_bytes), each(self.json_bytes));
        row("on disk, once compaction is done", megabytes(self.disk_bytes), each(self.disk_bytes));
        row("memory right after the load", megabytes(self.resident_loaded_bytes), String::new());
        row("memory at most", megabytes(self.resident_most_bytes), String::new());
        row(
            "memory after a restart, at rest",
            megabytes(self.resident_resting_bytes),
            String::new(),
        );
        for (index, seconds) in self.start_seconds.iter().enumerate() {
            let note = if index == 0 { "killed right after the load" } else { "killed at rest" };
            row(
                "start after kill -9 until an entity is read",
                format!("{seconds:.2} s"),
                note.to_owned(),
            );
        }
        table.to_markdown()
    }
}
