//! Each limit can be reached, and is told when it is passed.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::support::client::{row_keys, values};
use crate::support::shared_client;

/// As `docs/indexes.md` has it.
const PER_ACCOUNT: usize = 1000;
const PER_TABLE: usize = 16;

fn names(count: usize) -> String {
    (0..count).map(|number| format!("N{number}")).collect::<Vec<_>>().join(",")
}

#[test]
fn definitions_reach_their_limits_and_do_not_pass_them() {
    let client = shared_client();
    let table = client.new_table();
    let comparisons = |count: usize| vec!["Flag ne 'x'"; count].join(" and ");
    let text = |bytes: usize| format!("Flag ne '{}'", "x".repeat(bytes - "Flag ne ''".len()));
    let cases = [
        (json!({"Keys": names(4)}), json!({"Keys": names(5)}), "one to 4 properties"),
        (
            json!({"Keys": "A", "Include": names(20)}),
            json!({"Keys": "A", "Include": names(21)}),
            "at most 20 properties",
        ),
        (
            json!({"Keys": "A", "Filter": comparisons(8)}),
            json!({"Keys": "A", "Filter": comparisons(9)}),
            "at most 8 comparisons",
        ),
        (
            json!({"Keys": "A", "Filter": text(8192)}),
            json!({"Keys": "A", "Filter": text(8193)}),
            "at most 8192 bytes",
        ),
    ];
    for (number, (reached, passed, words)) in cases.iter().enumerate() {
        build(&client, &table, &format!("Index{number}"), reached);
        let refused = client.put(INDEXES, (&table, "Passed"), passed).send();
        let refused = refused.expect_error(400, "InvalidInput");
        assert!(refused.text().contains(words), "{words}: {}", refused.text());
    }
    assert_gone(&client, &table, "Passed");
}

/// Values count for the order with their first 512 bytes, and are compared as a whole.
#[test]
fn values_that_differ_late_are_told_apart() {
    let client = shared_client();
    let table = client.new_table();
    let value = |bytes: usize, end: &str| "x".repeat(bytes - end.len()) + end;
    let all =
        [value(511, "a"), value(512, "a"), value(513, "ya"), value(513, "yb"), value(2000, "z")];
    for (row, value) in all.iter().enumerate() {
        let entity = json!({"PartitionKey": "p", "RowKey": row.to_string(), "Value": value});
        client.insert(&table, &entity).expect(204);
    }
    build(&client, &table, "ByValue", &json!({"Keys": "Value"}));
    for (row, value) in all.iter().enumerate() {
        let filter = format!("Value eq '{value}'");
        let page = explained(&client, &table, &[("$filter", &filter)]);
        assert_eq!(page.header("x-tavola-index"), Some("ByValue"), "{row}");
        assert_eq!(row_keys(&values(&page)), [row.to_string()]);
        let greater = client.rows(&table, &format!("Value gt '{value}'"));
        let expected = all.iter().enumerate().filter(|(_, other)| *other > value);
        assert_eq!(greater, expected.map(|(row, _)| row.to_string()).collect::<Vec<_>>(), "{row}");
    }
    assert_sound(&client, &table, "ByValue", all.len());
}

#[test]
fn a_query_reads_256_ranges_of_an_index() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r", "A": "7"})).expect(204);
    build(&client, &table, "ByA", &json!({"Keys": "A"}));
    let ask = |count: usize| {
        let terms: Vec<_> = (0..count).map(|number| format!("A eq '{number}'")).collect();
        let page = explained(&client, &table, &[("$filter", &terms.join(" or "))]);
        assert_eq!(row_keys(&values(&page)), ["r"]);
        let header = |name: &str| page.header(name).map(str::to_owned);
        (header("x-tavola-index-use"), header("x-tavola-index-not-used"))
    };
    assert_eq!(ask(256), (Some("merged".to_owned()), None));
    assert_eq!(ask(257), (None, Some("ByA=too-many-streams".to_owned())));
}

#[test]
fn an_account_has_a_thousand_indexes() {
    let server = Arc::new(Launch::new().arg("--inMemoryPersistence").start());
    let client = Client::new(&server);
    let entity = |table: &str, number: usize| json!({"PartitionKey": table, "RowKey": format!("Index{number}"), "Keys": "A"});
    let mut tables = Vec::new();
    for first in (0..PER_ACCOUNT).step_by(PER_TABLE) {
        let table = client.new_table();
        let count = PER_TABLE.min(PER_ACCOUNT - first);
        let declared = (0..count).fold(Batch::new(), |batch, number| {
            batch.insert(&client, INDEXES, &entity(&table, number))
        });
        declared.send(&client).expect_done(count);
        tables.push((table, count));
    }
    assert_eq!(client.matches(INDEXES, "").len(), PER_ACCOUNT);
    let refused = |table: &str| {
        let refused = client.insert(INDEXES, &entity(table, 99));
        let refused = refused.expect_error(400, "InvalidInput");
        assert!(refused.text().contains("at most 1000 indexes"), "{}", refused.text());
    };
    // In a table that has some, in one that has none, and as the last of a batch.
    let (last, new) = (tables.last().unwrap().0.clone(), client.new_table());
    refused(&last);
    refused(&new);
    client.remove(INDEXES, (&last, "Index0"), "*").expect(204);
    Batch::new()
        .insert(&client, INDEXES, &entity(&new, 0))
        .insert(&client, INDEXES, &entity(&new, 1))
        .send(&client)
        .expect_failure(400, "InvalidInput", 1);
    // What is dropped counts no more, and neither do the indexes of a table that is.
    client.insert(INDEXES, &entity(&new, 0)).expect(204);
    refused(&new);
    client.drop_table(&tables[0].0).expect(204);
    for number in 1..PER_TABLE {
        client.insert(INDEXES, &entity(&new, number)).expect(204);
    }
    client.insert(INDEXES, &entity(&last, 0)).expect(204);
    refused(&last);
    // Another definition for one is no other.
    client.merge(INDEXES, (&new, "Index0"), &json!({"Keys": "B"})).send().expect(204);
    wait_for(&client, &new, "Index0", "Readable");
}
