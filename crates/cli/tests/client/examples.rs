//! The examples of the client crate, run as they are against the server.

#[path = "../../../client/examples/employee_directory/directory.rs"]
mod directory;
#[path = "../../../client/examples/patterns/shown.rs"]
mod shown;

use crate::support::{account, fresh_name};

#[tokio::test]
async fn the_directory_walks_through_the_guide() {
    let account = account();
    let mut out = Vec::new();
    directory::run(&account.service(), &fresh_name(), &mut out).await.unwrap();
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

#[tokio::test]
async fn every_pattern_has_an_example_that_runs() {
    let account = account();
    let mut out = Vec::new();
    let prefix = fresh_name();
    shown::run(&account.service(), &prefix, &[], &mut out).await.unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().count(), shown::NAMES.len(), "{out}");
    for line in [
        "intra_partition_index: found employee 000223 by mail",
        "index_entities: Jones is 000152 and 000153",
        "compound_key: 2 reviews of employee 00123",
        "log_tail: the latest two of five are [4, 3]",
        "high_volume_delete: 2 months dropped, 1 login left",
        "data_series: 43 messages in a day of 24 slots",
        "wide_entity: 600 properties read as one",
        "denormalization: the department knows new@contoso.com",
        "spread_writes: in order from 8 partitions: 0005 0006 0007 0008 0009",
        "client_join: employee 00010 works on floor 3",
        "heterogeneous: 2 of 3 entities are employees",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
}
