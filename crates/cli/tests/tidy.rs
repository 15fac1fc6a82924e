//! The shape of the house, as a test: which crate may know which, how long a file may be, what no file holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may depend on whom. A new edge is a decision: write it down in `docs/architecture.md` first.
const EDGES: [(&str, &[&str]); 7] = [
    ("tavola-client", &["tavola-client-derive", "tavola-wire"]),
    ("tavola-client-derive", &[]),
    ("tavola-wire", &[]),
    ("tavola-engine", &[]),
    ("tavola-server", &["tavola-engine", "tavola-wire"]),
    ("tavola", &["tavola-client", "tavola-server"]),
    ("tavola-bench", &["tavola-wire"]),
];

/// Lines of a source file before its tests. One idea per file.
const LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn crates_know_only_whom_they_may() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<_, _> = EDGES.into_iter().collect();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let expected = allowed.get(name).unwrap_or_else(|| panic!("{name} is not in the plan"));
        let edges: Vec<_> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|dependency| dependency.starts_with("tavola"))
            .collect();
        assert_eq!(&edges, expected, "edges of {name}");
    }
}

#[test]
fn files_stay_short_and_finished() {
    let mut problems = Vec::new();
    for file in source_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        let is_test = name.contains("/tests/") || name.contains("tests.rs");
        let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = before_tests.lines().count();
        if lines > LINES_MAX && !is_test {
            problems.push(format!("{name} has {lines} lines before its tests"));
        }
        for word in ["TODO", "FIXME", "XXX", "HACK"] {
            // This file names them.
            if text.contains(word) && !name.ends_with("tidy.rs") {
                problems.push(format!("{name} holds a {word}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What tests ask of a server is in no build that is not made for tests.
#[test]
fn a_plain_build_has_no_test_hooks() {
    let features = |edges: &str| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--package", "tavola", "--offline", "--edges", edges])
            .args(["--format", "{p} {f}"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (plain, with_tests) = (features("normal,build"), features("normal,build,dev"));
    assert!(plain.contains("tavola-server v"), "{plain}");
    assert!(!plain.contains("test-hooks"), "{plain}");
    assert!(with_tests.contains("test-hooks"), "{with_tests}");
}

/// Every line of the threat model names a test that shows it, and every test that it names is there.
#[test]
fn the_threat_model_names_tests_that_exist() {
    check_shown("docs/security.md", 50);
}

/// So does every statement of the guide.
#[test]
fn the_guide_names_tests_that_exist() {
    check_shown("docs/guide.md", 80);
}

/// Checks the tables of a page whose last column is "Shown by": each row links at least one test that exists, and there are
/// that many links.
fn check_shown(page: &str, least: usize) {
    let document = root().join(page);
    let text = std::fs::read_to_string(&document).unwrap();
    let rows = tables(&text).into_iter().filter(|(head, _)| head.ends_with("| Shown by |"));
    let mut named = 0;
    for row in rows.flat_map(|(_, rows)| rows) {
        // [`name`](path)
        let links: Vec<_> =
            row.split("[`").skip(1).filter_map(|rest| rest.split_once("`](")).collect();
        assert!(!links.is_empty(), "no test shows it: {row}");
        for (name, rest) in links {
            let (path, _) = rest.split_once(')').unwrap_or_else(|| panic!("a broken link: {row}"));
            let file = document.parent().unwrap().join(path);
            let source =
                std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("no {path}: {row}"));
            assert!(is_test(&source, name), "{path} has no test {name}");
            named += 1;
        }
    }
    assert!(named > least, "the tables are not read: {named}");
}

/// The tables of a page: the line of names, and the rows.
fn tables(text: &str) -> Vec<(&str, Vec<&str>)> {
    let lines: Vec<_> = text.lines().collect();
    let rules = (1..lines.len()).filter(|at| lines[*at].starts_with("|---"));
    let table = |rule: usize| {
        let rows = lines[rule + 1..].iter().take_while(|line| line.starts_with('|'));
        (lines[rule - 1], rows.copied().collect())
    };
    rules.map(table).collect()
}

/// The limits that `docs/design.md` lists are the constants of the code.
#[test]
fn the_limits_that_are_written_down_are_those_of_the_code() {
    let document = root().join("docs/design.md");
    let text = std::fs::read_to_string(&document).unwrap();
    let limits = tables(&text).into_iter().filter(|(head, _)| head.ends_with("| Constant |"));
    let mut compared = 0;
    for row in limits.flat_map(|(_, rows)| rows) {
        // | what | value | [`NAME`](path) |
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let link = cells[3].strip_prefix("[`").and_then(|rest| rest.split_once("`]("));
        let (name, path) = link.unwrap_or_else(|| panic!("no constant: {row}"));
        let file = document.parent().unwrap().join(path.trim_end_matches(')'));
        let source = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("no {path}: {row}"));
        let written: u64 = cells[2].replace(',', "").parse().unwrap_or_else(|_| panic!("{row}"));
        assert_eq!(constant(&source, name), Some(written), "{row}");
        compared += 1;
    }
    assert!(compared > 20, "the table is not read: {compared}");
}

/// The value of a constant that is a number or a product of numbers.
fn constant(source: &str, name: &str) -> Option<u64> {
    let (_, rest) = source.split_once(&format!("const {name}: "))?;
    let (_, value) = rest.split_once(';')?.0.split_once('=')?;
    value.split('*').map(|factor| factor.trim().replace('_', "").parse::<u64>().ok()).product()
}

/// Whether the source has a function of this name that is a test.
fn is_test(source: &str, name: &str) -> bool {
    let lines: Vec<_> = source.lines().map(str::trim_start).collect();
    let is_definition = |line: &str| {
        [format!("fn {name}("), format!("async fn {name}(")]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let definitions = (0..lines.len()).filter(|index| is_definition(lines[*index]));
    // Attributes stand directly above.
    definitions.into_iter().any(|index| {
        let above = lines[..index].iter().rev().take_while(|line| line.starts_with("#["));
        above
            .into_iter()
            .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}
