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
    ("tavola", &["tavola-server"]),
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
    let document = root().join("docs/security.md");
    let text = std::fs::read_to_string(&document).unwrap();
    let tables = text.split("| What | Shown by |\n|---|---|\n").skip(1);
    let rows = tables.flat_map(|table| table.lines().take_while(|line| line.starts_with('|')));
    let mut named = 0;
    for row in rows {
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
    assert!(named > 50, "the tables are not read: {named}");
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
