//! The examples of the client crate, run as they are against the server.
//!
//! Cargo builds examples for the tests of their own package only, so they are taken in here as modules: all that is left out is
//! a `main` that hands its arguments on and turns an error into the exit code.

#[path = "../../../client/examples/index_table/customers.rs"]
mod customers;
#[path = "../../../client/examples/employee_directory/directory.rs"]
mod directory;
#[path = "../../../client/examples/patterns/shown.rs"]
mod shown;

use tavola_client::{Entity, UpdateMode};

use crate::support::{account, fresh_name};

#[expect(dead_code, reason = "it is a program, with a `main`")]
mod getting_started {
    include!("../../../client/examples/getting_started/main.rs");

    pub(super) async fn found(connection_string: &str) -> usize {
        run(connection_string).await.unwrap()
    }
}

/// The page's first example is the program itself, and can be run any number of times, beside the other examples.
#[tokio::test]
async fn the_first_steps_can_be_taken_twice() {
    let account = account();
    assert_eq!(getting_started::found(account.connection_string()).await, 2);
    // The tutorial of the project's own page, which uses the same keys.
    let people = account.service().table_client("People").unwrap();
    people.create_if_not_exists(None).await.unwrap();
    let ken = Entity::new("Sales", "00010").with("FirstName", "Ken").with("Age", 23);
    people.upsert_entity(&ken, UpdateMode::Merge, None).await.unwrap();
    assert_eq!(getting_started::found(account.connection_string()).await, 2);
    people.delete(None).await.unwrap();
    account.service().delete_table("GettingStarted", None).await.unwrap();

    let program = include_str!("../../../client/examples/getting_started/main.rs");
    let (_, program) = program.split_once("\n\n").unwrap();
    // The lints are ours and nobody else's.
    let lines = program.lines().filter(|line| !line.starts_with("#[expect("));
    let program: Vec<_> = lines.collect();
    let program = program.join("\n");
    assert!(
        include_str!("../../../client/README.md").contains(&program),
        "the page shows it as it is"
    );
}

#[tokio::test]
async fn the_directory_walks_through_the_guide() {
    let account = account();
    let mut out = Vec::new();
    directory::run(Some(account.connection_string()), &fresh_name(), &mut out).await.unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("404 entities in 4 departments, written with 8 requests"), "{out}");
    assert!(out.contains("an employee by both keys: point query, 1 found, 1 request(s)"), "{out}");
    assert!(out.contains("20 listed; 20 found"), "{out}");
    assert!(out.contains("100 employees, 1 department, 1 index entities by one query"), "{out}");
    assert!(out.contains("the department's manager is boss@contoso.com"), "{out}");
    if account.is_tavola() {
        assert!(
            out.contains(
                "a last name in a department: partition scan, 20 found, 1 request(s), 101 rows"
            ),
            "{out}"
        );
    }
}

/// Twice in a row, and the second time the same.
#[tokio::test]
async fn the_index_table_pattern_is_shown_with_what_it_costs() {
    let account = account();
    let name = fresh_name();
    for _ in 0..2 {
        let mut out = Vec::new();
        customers::run(Some(account.connection_string()), &name, &mut out).await.unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.starts_with("1000 customers in 16 shards\n"), "{out}");
        for line in [
            "without an index: 50 found; table scan",
            "both: 5 found; ",
            "one of them by its keys: 1 found; point",
        ] {
            assert!(out.contains(line), "{line}\n{out}");
        }
        if !account.is_tavola() {
            continue;
        }
        let index = |name: &str, how: &str, count: u32| {
            format!(
                "{count} found; index {name} ({how}): {count} entries passed, {count} rows \
                 examined, {count} returned\n"
            )
        };
        // A few more rows are examined to see whether a scan is better.
        let looked_up = |name: &str, count: u32| {
            format!("{count} found; index {name} (ordered): {count} entries passed, ")
        };
        for (what, cost) in [
            ("without an index", "50 found; table scan: 1000 rows examined, 50 returned\n".into()),
            ("references, each looked up", looked_up("ByTown", 50)),
            ("copies of everything", index("ByTown", "ordered covering", 50)),
            ("copies of what is asked for often", index("ByTown", "ordered covering", 50)),
            ("and the rest looked up", looked_up("ByTown", 50)),
            ("names that begin with Ro", index("ByLastName", "sorted", 100)),
            ("both", index("ByTownAndName", "ordered", 5)),
            ("the first alone", index("ByTownAndName", "sorted", 50)),
            ("the second alone", "100 found; table scan: 1000 rows examined, ".into()),
            ("found without a hash", index("ByTownAndName", "ordered", 5)),
        ] {
            assert!(out.contains(&format!("  {what}: {cost}")), "{what}: {cost}\n{out}");
        }
    }
}

/// Each by its name, as a reader asks for one.
#[tokio::test]
async fn every_pattern_has_an_example_that_runs() {
    let account = account();
    let prefix = fresh_name();
    let mut lines = Vec::new();
    for name in shown::NAMES {
        let (wanted, mut out) = ([name.to_owned()], Vec::new());
        shown::run(Some(account.connection_string()), &prefix, &wanted, &mut out).await.unwrap();
        let line = String::from_utf8(out).unwrap();
        assert!(line.starts_with(&format!("{name}: ")) && line.lines().count() == 1, "{line}");
        lines.push(line.trim_end().to_owned());
    }
    let expected = [
        "intra_partition_index: found employee 000223 by mail",
        "inter_partition_index: by mail alone: nobody, then Sales",
        "eventually_consistent: current: false, archived: 1",
        "queue_worker: 4 messages done, 1 among the dead letters",
        "index_entities: Jones is 000152 and 000153",
        "compound_key: reviews 000123_2011 and 000123_2012",
        "log_tail: the latest two of five are [4, 3]",
        "high_volume_delete: 2 months dropped, 1 login left",
        "data_series: 44 messages in a day of 24 slots",
        "wide_entity: 365 days read as one, 12 messages on one",
        "denormalization: the department knows new@contoso.com",
        "spread_writes: in order from 8 partitions: 0005 0006 0007 0008 0009",
        "client_join: employee 00010 works on floor 3",
        "heterogeneous: 2 of 3 entities are employees",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn the_examples_tell_what_they_cannot_do() {
    let mut out = Vec::new();
    let error = shown::run(None, "t", &["sharding".into()], &mut out).await.unwrap_err();
    assert!(error.to_string().starts_with("there is no pattern sharding; there are intra_"));
    assert!(directory::run(Some("AccountName=a"), "t", &mut out).await.is_err());
    assert!(out.is_empty());
}

/// The list above is checked against this one, and this one against the modules.
#[test]
fn every_pattern_is_in_the_examples() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../client/src/patterns");
    let mut modules: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        // What the patterns share is none itself.
        .filter(|name| name != "mod" && name != "index")
        .collect();
    modules.sort_unstable();
    let mut names = shown::NAMES;
    names.sort_unstable();
    assert_eq!(modules, names);
}
