//! `tavola check`: is a data folder what was written to it?

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use tavola_server::{CheckProgress, CheckReport, check};

#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// The data folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Folders below this size are checked too quickly to speak of progress.
const PROGRESS_BYTES_MIN: u64 = 1 << 30;

pub(crate) fn run(options: &CheckOptions) -> anyhow::Result<()> {
    let mut told = 0;
    let report = check(&options.folder, move |progress| show(progress, &mut told))?;
    print(&report, options)?;
    match report.problem_count() {
        0 => Ok(()),
        1 => bail!("1 problem found in {}", options.folder.display()),
        count => bail!("{count} problems found in {}", options.folder.display()),
    }
}

fn print(report: &CheckReport, options: &CheckOptions) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let files = &report.files;
    writeln!(
        stdout,
        "Read {} bytes: {} table files, {} value files, {} journals with {} entries",
        files.bytes, files.tables, files.value_files, files.journals, files.journal_entries
    )?;
    writeln!(
        stdout,
        "Found {} accounts, {} tables, {} entities; {} dropped tables await the sweeper",
        report.accounts, report.tables, report.entities, report.dropped_tables
    )?;
    if report.queues > 0 {
        writeln!(stdout, "Found {} queues, {} messages", report.queues, report.messages)?;
    }
    if files.leftovers > 0 {
        writeln!(
            stdout,
            "{} files of interrupted work, which the next start removes",
            files.leftovers
        )?;
    }
    for link in &files.links_used {
        writeln!(
            stdout,
            "Note: {}: its journal is missing in the store; the next start takes it back from here",
            link.display()
        )?;
    }
    if let Some(tail) = &files.torn_tail {
        writeln!(stdout, "Note: {tail}; the next start cuts it off")?;
    }
    for problem in &files.problems {
        writeln!(stdout, "Damaged: {problem}")?;
    }
    for problem in &report.row_problems {
        writeln!(stdout, "Wrong: {problem}")?;
    }
    let more = report.row_problem_count - report.row_problems.len() as u64;
    if more > 0 {
        writeln!(stdout, "... and {more} more rows")?;
    }
    if report.is_sound() {
        writeln!(stdout, "The data folder is sound")?;
    } else {
        let folder = options.folder.display();
        writeln!(
            stdout,
            "`tavola salvage {folder} --to NEW_DIR` copies every row that can still be read"
        )?;
    }
    stdout.flush()
}

/// A line for every tenth of a large folder, and for every hundred thousand entities.
fn show(progress: CheckProgress, told: &mut u64) {
    let line = match progress {
        CheckProgress::Bytes { done, total } if total >= PROGRESS_BYTES_MIN => {
            let tenths = done * 10 / total;
            if tenths <= *told {
                return;
            }
            *told = tenths;
            format!("files: {} of {} MB", done >> 20, total >> 20)
        }
        CheckProgress::Bytes { .. } => return,
        CheckProgress::Entities(count) => format!("entities: {count}"),
    };
    // Nobody has to be listening.
    let _ = writeln!(std::io::stderr(), "{line}");
}
