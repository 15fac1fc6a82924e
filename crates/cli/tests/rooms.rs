//! The rooms of the house, as a test: which part of a crate may know which. `docs/architecture.md` draws the same map.
//!
//! Rooms are listed from the ground up. A file may use what lies below its own room, never what lies above it, and the
//! services know nothing of each other. So nothing can run in a circle, and a service moves in or out without the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The server, from the ground up. Rooms on one line do not know each other.
const SERVER: &[&[&str]] = &[
    &["clock", "config"],
    &["storage"],
    &["error"],
    &["net"],
    &["request"],
    &["auth", "operations", "test_hooks", "workload"],
    &["metrics", "logs", "background", "operator"],
    &["state"],
    &["admin", "connection", "context"],
    &["tenant"],
    &["queue", "table", "arrival"],
    &["handle"],
    &["services"],
    &["listener"],
    &["start"],
    &["test_server"],
];

/// The embedded engine, likewise.
const EMBEDDED: &[&[&str]] = &[
    &["locks", "options", "stats"],
    &["files"],
    &["commit"],
    &["store"],
    &["scan"],
    &["shared"],
    &["drop_range"],
    &["check", "salvage"],
];

#[test]
fn rooms_of_the_server_know_only_what_lies_below() {
    check_rooms(&source("server/src"), "crate", SERVER);
}

#[test]
fn rooms_of_the_embedded_engine_know_only_what_lies_below() {
    check_rooms(&source("engine/src/embedded"), "crate::embedded", EMBEDDED);
}

/// What the test itself rests on.
#[test]
fn uses_are_read_in_every_form() {
    let text = "#[cfg(test)]\nmod support;\n\
                use crate::net::{tls, sniff::{sniff, Sniffed}};\npub(crate) use crate::state::State;\n\
                use super::head;\nlet x = crate::clock::now();\n#[cfg(test)]\nmod tests {\n    use crate::start;\n}\n";
    let found = rooms_used(text, "crate");
    assert_eq!(found, ["clock", "net", "state"].into_iter().map(str::to_owned).collect());
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path).canonicalize().unwrap()
}

fn check_rooms(source: &Path, root: &str, floors: &[&[&str]]) {
    let floor_of: BTreeMap<&str, usize> = floors
        .iter()
        .enumerate()
        .flat_map(|(floor, rooms)| rooms.iter().map(move |room| (*room, floor)))
        .collect();
    let mut problems = Vec::new();
    let mut edges = 0;
    for file in source_files(source) {
        let path = file.strip_prefix(source).unwrap();
        let room = path.components().next().unwrap().as_os_str().to_str().unwrap();
        let room = room.trim_end_matches(".rs");
        // The face of a crate or of a folder shows every room.
        let is_test =
            path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
        if ["lib", "mod"].contains(&room) || is_test {
            continue;
        }
        let Some(floor) = floor_of.get(room) else {
            problems.push(format!("{} is in no room of the plan", path.display()));
            continue;
        };
        let text = std::fs::read_to_string(&file).unwrap();
        for used in rooms_used(&text, root).into_iter().filter(|used| used != room) {
            match floor_of.get(used.as_str()) {
                Some(below) if below < floor => edges += 1,
                Some(_) => problems.push(format!("{} knows {used}", path.display())),
                // The face of a crate or of a folder is above its rooms.
                None => problems.push(format!("{} knows {used}, no room", path.display())),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(edges > 5, "the imports are not read: {edges}");
}

/// The rooms that a file names, outside of its tests.
fn rooms_used(text: &str, root: &str) -> BTreeSet<String> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    let product = lines.collect::<Vec<_>>().join("\n");
    let mut rooms = BTreeSet::new();
    for rest in product.split(&format!("{root}::")).skip(1) {
        let names = match rest.strip_prefix('{') {
            // `crate::{a, b::{c, d}}`: what stands at the first level of the braces.
            Some(group) => first_level(group),
            None => vec![rest.to_owned()],
        };
        for name in names {
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            rooms.insert(name[..end.unwrap_or(name.len())].to_owned());
        }
    }
    rooms
}

fn first_level(group: &str) -> Vec<String> {
    let (mut names, mut depth, mut name) = (Vec::new(), 0, String::new());
    for character in group.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(std::mem::take(&mut name).trim().to_owned()),
            _ => {}
        }
        if depth == 0 && character != ',' {
            name.push(character);
        }
    }
    names.push(name.trim().to_owned());
    names
}

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files
}
