//! Bulk insert of many entities, with progress.
//!
//! `TAVOLA_CONNECTION=... cargo bench -p tavola-client --bench bulk_insert`; `TAVOLA_BULK_ENTITIES` sets another number than
//! a million.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tavola_client::bulk::BulkOptions;
use tavola_client::{Entity, Operation, Result, TableServiceClient, UpdateMode};

const PARTITIONS: usize = 200;

#[tokio::main]
async fn main() -> Result<()> {
    let Ok(connection) = std::env::var("TAVOLA_CONNECTION") else {
        println!("TAVOLA_CONNECTION is not set: nothing to measure");
        return Ok(());
    };
    let count: usize = match std::env::var("TAVOLA_BULK_ENTITIES") {
        Ok(text) => text.parse().expect("TAVOLA_BULK_ENTITIES is a number"),
        Err(_) => 1_000_000,
    };
    let service = TableServiceClient::from_connection_string(&connection, None)?;
    let table = service.table_client("bulkinsert")?;
    table.create_if_not_exists(None).await?;
    let operations = (0..count).map(|index| {
        let entity = Entity::new(format!("{:03}", index % PARTITIONS), format!("{index:08}"))
            .with("Name", "some employee of some department")
            .with("Age", 34)
            .with("Salary", 85_000_i64)
            .with("Active", true);
        Operation::upsert(&entity, UpdateMode::Replace).expect("a legal entity")
    });
    // About twenty lines on the way, whatever the number.
    let (step, next) = (count.div_ceil(20), AtomicUsize::new(0));
    let start = Instant::now();
    let options = BulkOptions {
        concurrency: Some(16),
        progress: Some(Arc::new(move |progress| {
            if progress.done >= next.load(Ordering::Relaxed) {
                next.store(progress.done + step, Ordering::Relaxed);
                let rate = progress.done as f64 / start.elapsed().as_secs_f64();
                println!("{} of {count} done, {rate:.0} each second", progress.done);
            }
        })),
        ..Default::default()
    };
    let report = table.bulk(operations, Some(options)).await;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} done and {} failed with {} transactions in {seconds:.1} s: {:.0} each second",
        report.progress.done,
        report.progress.failed,
        report.progress.transactions,
        report.progress.done as f64 / seconds
    );
    table.delete(None).await.map(|_| ())
}
