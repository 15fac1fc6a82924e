//! What is scraped and probed: the figures that `ops/` builds on are there, and readiness says why it is refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::admin::{figure, metrics, plain_get, wait_until};
use crate::support::client::unused_name;
use crate::support::{Client, Launch, Server};
use crate::table::indexes::build;

fn start(launch: Launch) -> (Arc<Server>, Client) {
    let server = Arc::new(launch.args(["--admin-port", "0"]).start());
    let client = Client::new(&server);
    (server, client)
}

/// The names of all series that are served.
fn served_names(metrics: &str) -> BTreeSet<&str> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).collect()
}

/// The names of our metrics in a text, whatever stands around them.
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split(|character| !is_part(character));
    words.filter(|word| word.starts_with("tavola_") || word.starts_with("process_")).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Every metric that dashboard, alerts and the page for operators name is served, and every one that is served stands on
/// the page.
#[test]
fn every_metric_that_is_named_exists() {
    let (server, client) = start(Launch::new());
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    client.query(&table, &[]).send().expect(200);
    // Codes are there from their first failure on.
    client.query("missing", &[]).send().expect(404);
    let metrics = metrics(&server);
    let served = served_names(&metrics);
    assert!(served.len() > 40, "{served:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/operations.md");
    let mut count = 0;
    for file in files(&root.join("ops")).into_iter().chain([page.clone()]) {
        let text = std::fs::read_to_string(&file).unwrap();
        for name in named(&text) {
            // The page names a family, and not each of its series.
            let is_family = |series: &&str| {
                file == page
                    && ["_bucket", "_sum", "_count"]
                        .iter()
                        .any(|end| series.strip_suffix(end) == Some(name))
            };
            let exists = served.contains(name) || served.iter().any(is_family);
            assert!(exists, "{} names {name}", file.display());
            count += 1;
        }
    }
    assert!(count > 80, "the files are not read: {count}");
    let text = std::fs::read_to_string(&page).unwrap();
    let explained = named(&text);
    for series in served {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| series.strip_suffix(end));
        assert!(
            explained.contains(family.unwrap_or(series)),
            "docs/operations.md does not explain {series}"
        );
    }
}

/// The values of a label of a metric.
fn label_values<'m>(metrics: &'m str, name: &str, label: &str) -> BTreeSet<&'m str> {
    let series = metrics.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let begin = format!("{label}=\"");
    series
        .filter_map(|labels| labels.split_once(&begin)?.1.split_once('"').map(|(value, _)| value))
        .collect()
}

/// What a label says stands on the pages that explain it: in the line of its metric, or in a table of reasons.
#[test]
fn every_value_of_a_label_is_explained() {
    let (server, _) = start(Launch::new());
    let metrics = metrics(&server);
    let page = |name: &str| {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        std::fs::read_to_string(docs.join(name)).unwrap()
    };
    let (operations, indexes) = (page("operations.md"), page("indexes.md"));
    for (name, label, count) in
        [("tavola_queries_total", "kind", 5), ("tavola_index_queries_total", "use", 5)]
    {
        let row = operations.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let values = label_values(&metrics, name, label);
        assert!(values.len() >= count, "{name}: {values:?}");
        for value in values {
            let words = format!(" {value}");
            assert!(row.unwrap().contains(&words), "docs/operations.md: {name} {value}");
        }
    }
    for (name, text, count) in
        [("tavola_refusals_total", &operations, 15), ("tavola_index_fallbacks_total", &indexes, 7)]
    {
        let values = label_values(&metrics, name, "reason");
        assert!(values.len() >= count, "{name}: {values:?}");
        for value in values {
            assert!(text.contains(&format!("`{value}`")), "{name}: no page explains {value}");
        }
    }
}

#[test]
fn the_dashboard_is_json_with_expressions() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/grafana/tavola.json");
    let dashboard: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let shown = panels.iter().filter(|panel| panel["type"] != "row");
    for panel in shown {
        let targets = panel["targets"].as_array().unwrap();
        assert!(targets.iter().all(|target| target["expr"].is_string()), "{panel}");
    }
}

/// Figures move with what is done.
#[test]
fn figures_of_engine_and_queries() {
    let (server, client) = start(Launch::new());
    let table = client.new_table();
    for row in ["1", "2", "3"] {
        client.insert(&table, &json!({"PartitionKey": "p", "RowKey": row})).expect(204);
    }
    client.matches(&table, "PartitionKey eq 'p' and RowKey eq '1'");
    client.matches(&table, "PartitionKey eq 'p'");
    client.query(&table, &[]).send().expect(200);
    // One page by an index, and one of the index itself.
    let view = unused_name();
    build(&client, &table, "ByTown", &json!({"Keys": "Town?", "BrowseAs": view}));
    client.matches(&table, "Town eq 'Redmond'");
    assert_eq!(client.matches(&view, "").len(), 3);
    let metrics = metrics(&server);
    for line in [
        "tavola_queries_total{kind=\"index\"} 2\n".to_owned(),
        "tavola_index_queries_total{use=\"ordered\"} 1\n".to_owned(),
        "tavola_index_queries_total{use=\"browsed\"} 1\n".to_owned(),
        "tavola_index_fallbacks_total{reason=\"too-wide\"} 0\n".to_owned(),
        "tavola_index_entries_examined_total 3\n".to_owned(),
        "tavola_index_orphans_total 0\n".to_owned(),
        "tavola_queries_total{kind=\"point\"} 1\n".to_owned(),
        "tavola_queries_total{kind=\"partition scan\"} 1\n".to_owned(),
        "tavola_queries_total{kind=\"table scan\"} 1\n".to_owned(),
        "tavola_engine_disk_full 0\n".to_owned(),
        format!("tavola_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    let value = |name| figure::<f64>(&metrics, name);
    assert!(value("tavola_engine_commit_seconds_count") >= 4.0);
    assert!(value("tavola_engine_commit_seconds_sum") > 0.0);
    assert!(value("tavola_engine_journal_bytes") > 0.0);
    assert!(value("tavola_engine_memtable_bytes") > 0.0);
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_open_fds") > 5.0);
    let infinite = value("tavola_engine_commit_seconds_bucket{le=\"+Inf\"}");
    assert_eq!(infinite, value("tavola_engine_commit_seconds_count"));
}

/// Syncs are tried apart from commits, and nothing of it is to be seen in the data folder.
#[test]
fn syncs_are_timed_while_there_are_commits() {
    let (server, client) = start(Launch::new());
    let files = || std::fs::read_dir(server.data_folder()).unwrap().count();
    let files_before = files();
    client.new_table();
    let seconds = wait_until("a sync", || {
        let metrics = metrics(&server);
        let is_timed = figure::<u64>(&metrics, "tavola_engine_sync_seconds_count") > 0;
        is_timed.then(|| figure::<f64>(&metrics, "tavola_engine_sync_seconds_sum"))
    });
    assert!(seconds > 0.0);
    assert_eq!(files(), files_before);
}

/// What keeps it from being ready is in `disk.rs`: a full disk, an engine that has failed.
#[test]
fn a_server_that_takes_writes_is_ready() {
    let (server, _) = start(Launch::new());
    let admin = server.admin_address().unwrap();
    assert_eq!(plain_get(admin, "/ready").expect(200).text(), "ready\n");
    assert_eq!(plain_get(admin, "/health").expect(200).text(), "ok\n");
}
