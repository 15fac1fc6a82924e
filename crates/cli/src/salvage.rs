//! `tavola salvage`: what can still be read of a damaged data folder, in a new one.

use std::io::Write;
use std::path::PathBuf;
use std::process::exit;

use clap::Args;
use tavola_server::{SalvageReport, salvage};

#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 everything was readable, 1 something was lost (each loss is told), 2 wrong use.\n\
    The damaged folder is not changed. Serve the new one with `tavola --data NEW_DIR`."
)]
pub(crate) struct SalvageOptions {
    /// The damaged data folder, which no service is using
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The new data folder: one that is not there yet, or empty
    #[arg(long, value_name = "NEW_DIR")]
    to: PathBuf,
}

/// What clap answers to wrong arguments.
const USAGE: i32 = 2;

/// Entities between two words of progress.
const PROGRESS_ENTITIES: u64 = 100_000;

pub(crate) fn run(options: &SalvageOptions) -> anyhow::Result<()> {
    let report = match salvage(&options.folder, &options.to, show) {
        Ok(report) => report,
        Err(error) => {
            let is_usage = error.is_usage();
            let _ = writeln!(std::io::stderr(), "Error: {error}");
            exit(if is_usage { USAGE } else { 1 });
        }
    };
    print(&report, options)?;
    if !report.is_complete() {
        exit(1);
    }
    Ok(())
}

fn print(report: &SalvageReport, options: &SalvageOptions) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(
        stdout,
        "Copied {} accounts, {} tables, {} entities to {}",
        report.accounts,
        report.tables,
        report.entities,
        options.to.display()
    )?;
    for loss in &report.losses {
        writeln!(stdout, "Lost: {loss}")?;
    }
    for row in &report.senseless {
        writeln!(stdout, "Left out: {row}")?;
    }
    let more = report.senseless_count - report.senseless.len() as u64;
    if more > 0 {
        writeln!(stdout, "... and {more} more rows")?;
    }
    for row in &report.made_up {
        writeln!(stdout, "Made up: {row}")?;
    }
    if report.is_complete() {
        writeln!(stdout, "Everything was readable")?;
    } else {
        writeln!(
            stdout,
            "Not everything was readable. Where rows are lost, older versions of them may be in their place"
        )?;
    }
    stdout.flush()
}

fn show(entities: u64) {
    if entities.is_multiple_of(PROGRESS_ENTITIES) {
        // Nobody has to be listening.
        let _ = writeln!(std::io::stderr(), "entities: {entities}");
    }
}
