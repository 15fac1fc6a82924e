//! The command line of the benchmarks.

#![allow(clippy::print_stdout, reason = "it prints reports")]

use clap::{Parser, Subcommand};
use tavola_bench::commands::{compare, footprint, growth, indexes, latency, mixed, queues, run};
use tavola_bench::{bare, page, record, soak};

#[derive(Parser)]
#[command(
    name = "tavola-bench",
    about = "How fast is it, beside Azurite and beside what the machine allows?"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure servers that are running, side by side
    Run(run::RunOptions),
    /// Measure the service beside Azurite and the bare server, on fresh data
    Compare(compare::CompareOptions),
    /// Measure inserts and reads as a table grows
    Growth(growth::GrowthOptions),
    /// Measure one durable insert beside one fdatasync
    Latency(latency::LatencyOptions),
    /// Measure memory, disk and the start after kill -9
    Footprint(footprint::FootprintOptions),
    /// Measure reads with and without a table scan beside them
    Mixed(mixed::MixedOptions),
    /// Measure queries and writes with indexes, beside those without
    Indexes(indexes::IndexesOptions),
    /// Measure messages of short and long queues, beside Azurite and the bare server
    Queues(queues::QueuesOptions),
    /// Write docs/performance.md from the kept results again
    Page,
    /// Load a running server with everything at once for long, and judge whether it stays the same
    Soak(soak::SoakOptions),
    /// Be the bare server: answers of the right size, and nothing behind them
    Bare {
        /// Port to listen on; 0 picks a free one and prints it
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
}

fn main() -> anyhow::Result<()> {
    let results = match Cli::parse().command {
        Command::Compare(options) => compare::compare(&options)?,
        Command::Growth(options) => growth::growth(&options)?,
        Command::Latency(options) => latency::latency(&options)?,
        Command::Footprint(options) => footprint::footprint(&options)?,
        Command::Mixed(options) => mixed::mixed(&options)?,
        Command::Indexes(options) => indexes::indexes(&options)?,
        Command::Queues(options) => queues::queues(&options)?,
        Command::Page => record::repository()?.join("docs/performance"),
        Command::Run(options) => return run::run(&options),
        Command::Soak(options) => return soak::soak(&options),
        Command::Bare { port } => return serve_bare(port),
    };
    let page = page::write(&results)?;
    println!("\nthe results in {} are written to {}", results.display(), page.display());
    Ok(())
}

fn serve_bare(port: u16) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let (listener, address) = bare::listen(port).await?;
        println!("bare server is listening at http://{address}");
        match bare::serve(listener).await {}
    })
}
