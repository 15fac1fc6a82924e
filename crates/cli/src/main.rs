//! The one binary: `serve` and the operator's verbs.

mod advise;
mod cert;
mod check;
mod config;
mod connection;
mod health;
mod hot;
mod index;
mod logging;
mod options;
mod private;
mod reload;
mod salvage;
mod sample;
mod serve;
mod system_table;
mod text_table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::advise::AdviseOptions;
use crate::cert::CertOptions;
use crate::check::CheckOptions;
use crate::health::HealthOptions;
use crate::hot::HotOptions;
use crate::index::IndexOptions;
use crate::options::ServeOptions;
use crate::salvage::SalvageOptions;
use crate::sample::ConfigOptions;

/// Requests are many small allocations; the system's allocator spent a tenth of the time on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tavola: Azure Table and Queue storage that anyone can run.
#[derive(Debug, Parser)]
// A flag given twice counts as given last: tools put flags before those of their users (`docs/clients.md`).
#[command(
    name = "tavola",
    version,
    args_conflicts_with_subcommands = true,
    args_override_self = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service (also without a command)
    Serve(Box<ServeOptions>),
    /// Verify a data folder that no service is using
    Check(CheckOptions),
    /// Copy what can still be read of a damaged data folder into a new one
    Salvage(SalvageOptions),
    /// Make a certificate for development
    Cert(CertOptions),
    /// Ask a running service whether it is well
    Health(HealthOptions),
    /// Declare, show, verify and drop indexes of tables
    Index(IndexOptions),
    /// Propose indexes for the queries that ran
    Advise(AdviseOptions),
    /// Show the partitions that are asked for most
    Hot(HotOptions),
    /// Print a commented configuration file
    Config(ConfigOptions),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return logging::report_usage(&error),
    };
    let done = match arguments.command {
        None => serve::run(arguments.serve),
        Some(Command::Serve(options)) => serve::run(*options),
        Some(Command::Check(options)) => check::run(&options),
        Some(Command::Salvage(options)) => salvage::run(&options),
        Some(Command::Cert(options)) => cert::run(&options),
        Some(Command::Health(options)) => health::run(&options),
        Some(Command::Index(options)) => index::run(&options),
        Some(Command::Advise(options)) => advise::run(&options),
        Some(Command::Hot(options)) => hot::run(&options),
        Some(Command::Config(options)) => sample::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => logging::report(&error),
    }
}
