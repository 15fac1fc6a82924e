//! The page of all kept results, in Markdown. What stands outside the two marks is people's, and stays.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::commands::compare::CompareResult;
use crate::commands::footprint::FootprintResult;
use crate::commands::growth::GrowthResult;
use crate::commands::indexes::IndexesResult;
use crate::commands::latency::LatencyResult;
use crate::commands::mixed::MixedResult;
use crate::commands::queues::QueuesResult;
use crate::commands::run::side_by_side;
use crate::goals;
use crate::host;
use crate::machine::Machine;
use crate::record::Record;
use crate::table::{micros, number};
use crate::workload::Workload;

const BEGIN: &str = "<!-- measured: begin (tavola-bench writes what follows) -->\n";
const END: &str = "<!-- measured: end -->\n";

/// The kept results of all commands.
#[derive(Default)]
struct Results {
    compare: Option<Record<CompareResult>>,
    growth: Option<Record<GrowthResult>>,
    latency: Option<Record<LatencyResult>>,
    footprint: Option<Record<FootprintResult>>,
    mixed: Option<Record<MixedResult>>,
    indexes: Option<Record<IndexesResult>>,
    queues: Option<Record<QueuesResult>>,
}

/// Writes the page beside the folder of results, and gives its path.
pub fn write(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.with_extension("md");
    let measured = Results::load(folder)?.to_markdown();
    let before = if path.exists() {
        fs::read_to_string(&path)?
    } else {
        format!("# Performance\n\n{BEGIN}{END}")
    };
    let page = replace(&before, &measured).with_context(|| format!("in {}", path.display()))?;
    fs::write(&path, page)?;
    Ok(path)
}

/// Puts text between the marks.
fn replace(page: &str, measured: &str) -> anyhow::Result<String> {
    let parts =
        page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else { bail!("the marks {BEGIN:?} and {END:?} are missing") };
    Ok([before, BEGIN, measured, END, after].concat())
}

impl Results {
    fn load(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            compare: Record::load(folder, "compare")?,
            growth: Record::load(folder, "growth")?,
            latency: Record::load(folder, "latency")?,
            footprint: Record::load(folder, "footprint")?,
            mixed: Record::load(folder, "mixed")?,
            indexes: Record::load(folder, "indexes")?,
            queues: Record::load(folder, "queues")?,
        })
    }

    fn to_markdown(&self) -> String {
        let mut out = self.asked();
        if let Some(record) = &self.compare {
            out += &section("Side by side", record, &compared(&record.result));
        }
        if let Some(record) = &self.growth {
            let connections = record.result.connections;
            let stolen = stolen(record.result.steps.iter().map(|step| step.stolen_max));
            let text = format!(
                "A server for each size, in turn; with {connections} connections, and with one where it says alone.\n{stolen}\n{}",
                record.result.table()
            );
            out += &section("As the table grows", record, &text);
        }
        if let Some(record) = &self.latency {
            out += &section("One durable insert", record, &latency(&record.result));
        }
        if let Some(record) = &self.footprint {
            out += &section("Memory, disk and start", record, &record.result.table());
        }
        if let Some(record) = &self.mixed {
            let stolen = stolen([record.result.alone.stolen_max]);
            let text = format!("{}{stolen}", record.result.table());
            out += &section("Reads beside a table scan", record, &text);
        }
        if let Some(record) = &self.indexes {
            let stolen = stolen(record.result.rows.iter().map(|row| row.stolen_max));
            let text = format!("{}\n{stolen}", record.result.table());
            out += &section("With index tables", record, &text);
        }
        if let Some(record) = &self.queues {
            let QueuesResult { rows, .. } = &record.result;
            let stolen = stolen(rows.iter().map(|row| row.stolen_max));
            let text = format!("{}{stolen}\n{}", record.result.describe(), record.result.table());
            out += &section("Messages of queues", record, &text);
        }
        out.push('\n');
        out
    }

    /// What is asked, service by service, of those whose results are there.
    fn asked(&self) -> String {
        let tables = goals::of_tables(
            self.compare.as_ref().map(|record| &record.result),
            self.growth.as_ref().map(|record| &record.result),
            self.latency.as_ref().map(|record| &record.result),
            self.footprint.as_ref().map(|record| &record.result),
            self.mixed.as_ref().map(|record| &record.result),
        );
        let mut out = "\n## What is asked, and what was reached\n".to_owned();
        let mut part = |title: &str, goals: &[goals::Goal]| {
            out += &format!("\n### {title}\n\n{}", goals::table(goals));
        };
        part("Tables", &tables);
        if let Some(record) = &self.indexes {
            part("Index tables", &goals::of_indexes(&record.result));
        }
        if let Some(record) = &self.queues {
            part("Queues", &goals::of_queues(&record.result));
        }
        out
    }
}

fn section<T>(title: &str, record: &Record<T>, text: &str) -> String {
    let Record { command, date, commit, machine, .. } = record;
    let machine = describe(machine);
    format!(
        "\n## {title}\n\n```\n{command}\n```\n\n{date}, commit {commit}, on {machine}.\n\n{text}"
    )
}

fn describe(machine: &Machine) -> String {
    let Machine { cores, processor, memory_gigabytes, kernel, load_before, .. } = machine;
    let syncs = format!(
        "one fdatasync of 4 KiB takes {} (p50) to {} (p99)",
        micros(machine.fdatasync_p50_micros),
        micros(machine.fdatasync_p99_micros)
    );
    format!(
        "{cores} cores ({processor}), {memory_gigabytes} GB, Linux {kernel}; {syncs}; load average {load_before} before"
    )
}

fn compared(result: &CompareResult) -> String {
    let CompareResult { connections, seconds, rounds, .. } = result;
    let mut out = format!(
        "{connections} keep-alive connections (scans: one per core, or one where it says so), each with a shared access signature, {rounds} rounds of {seconds} s each, the servers in turn, in the order of the table.\n"
    );
    if let Some(version) = &result.azurite_version {
        out += &format!(
            "Azurite is version {version}, keeping its data on disk as it does by default, which it does some\nseconds later and not before it answers.\n"
        );
    }
    let loaded =
        |target: &str| result.rows.iter().find(|row| row.target == target).map(|row| row.loaded);
    if let (Some(ours), Some(theirs)) = (loaded("tavola"), loaded("azurite"))
        && ours != theirs
    {
        let (ours, theirs) = (number(ours as f64), number(theirs as f64));
        out += &format!(
            "Azurite holds {theirs} entities where the service holds {ours}: it is slower the more there are.\n"
        );
    }
    if let Some(rate) = result.bare_engine_rows_per_second {
        let cpu = result.bare_engine_cpu_micros_per_transaction.map_or_else(String::new, micros);
        out += &format!(
            "The bare engine committed {} rows per second in transactions of 100, each synced ({cpu} of CPU).\n",
            number(rate)
        );
    }
    out += &scanned(result);
    let engine = [result.bare_engine_stolen_max];
    out += &stolen(result.rows.iter().map(|row| row.stolen_max).chain(engine));
    format!("{out}\n{}", side_by_side(&result.rows))
}

/// Says plainly where Azurite is ahead or near.
fn scanned(result: &CompareResult) -> String {
    let ratio = |workload| result.ratio(workload, workload, "azurite");
    let Some(many) = ratio(Workload::ScanFilter) else { return String::new() };
    let one = ratio(Workload::ScanFilterOne)
        .map_or_else(String::new, |one| format!(", and {} times by one client", number(one)));
    format!(
        "A filter that neither a key nor an index helps with (`scan-filter`) reads the whole table: {} times Azurite's rate with a client per core{one}. Azurite holds all entities as objects in memory; an [index table](indexes.md) spares the scan.\n",
        number(many)
    )
}

/// How busy the host was, if that is known.
fn stolen(shares: impl IntoIterator<Item = Option<f64>>) -> String {
    host::most(shares).map_or_else(String::new, |share| {
        format!(
            "The host took at most {:.1} % of the processors away in a round that counts.\n",
            share * 100.0
        )
    })
}

fn latency(result: &LatencyResult) -> String {
    let stolen = stolen([result.stolen_max]);
    format!(
        "With one connection an insert takes {} (p50) to {} (p99), one fdatasync on the same disk {} to {}: {} beyond it.\n{stolen}",
        micros(result.insert_p50_micros),
        micros(result.insert_p99_micros),
        micros(result.fdatasync_p50_micros),
        micros(result.fdatasync_p99_micros),
        micros(result.beyond_fdatasync_micros())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_people_stays_and_figures_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("performance");
        let page = folder.path().join("performance.md");
        fs::write(&page, format!("# Title\n\nBefore.\n\n{BEGIN}old figures\n{END}\nAfter.\n"))
            .unwrap();
        let result = LatencyResult {
            insert_p50_micros: 130.0,
            fdatasync_p50_micros: 90.0,
            ..LatencyResult::default()
        };
        Record::new("latency", folder.path(), Machine::default(), result)
            .save(&results, "latency")
            .unwrap();
        assert_eq!(write(&results).unwrap(), page);
        let first = fs::read_to_string(&page).unwrap();
        assert!(first.starts_with("# Title\n\nBefore.\n"), "{first}");
        assert!(first.ends_with("\nAfter.\n"), "{first}");
        assert!(!first.contains("old figures") && first.contains("40.0 us beyond it"), "{first}");
        write(&results).unwrap();
        assert_eq!(
            fs::read_to_string(&page).unwrap(),
            first,
            "the same results make the same page"
        );
    }

    #[test]
    fn a_page_without_marks_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.md"), "mine").unwrap();
        assert!(write(&folder.path().join("x")).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("x.md")).unwrap(), "mine");
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let text = Results::default().to_markdown();
        assert!(text.contains("not measured") && !text.contains("## Side by side"), "{text}");
        assert!(text.contains("### Tables") && !text.contains("### Queues"), "{text}");
    }

    #[test]
    fn queues_and_indexes_have_a_part_of_their_own_once_measured() {
        let folder = tempfile::tempdir().unwrap();
        let (root, machine) = (folder.path(), Machine::default());
        let queues = QueuesResult { messages: 1_000_000, ..QueuesResult::default() };
        Record::new("queues", root, machine.clone(), queues).save(root, "queues").unwrap();
        Record::new("indexes", root, machine, IndexesResult::default())
            .save(root, "indexes")
            .unwrap();
        let text = Results::load(root).unwrap().to_markdown();
        for expected in ["### Queues", "enqueue, of the bare", "### Index tables", "## Messages"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
    }
}
