//! The largest transactions that indexes multiply.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::support::{Batch, shared_client};

/// A hundred entities, four megabytes, three copies of each and five more rows.
#[test]
fn the_largest_transaction_is_copied_three_times() {
    let client = shared_client();
    let table = client.new_table();
    for number in 0..8 {
        let include = if number < 3 { "*" } else { "" };
        let keys = if number % 2 == 0 { "Group" } else { "Text" };
        declare(
            &client,
            &table,
            &format!("Index{number}"),
            &json!({"Keys": keys, "Include": include}),
        );
    }
    for number in 0..8 {
        wait_for(&client, &table, &format!("Index{number}"), "Readable");
    }
    let batch = |group: &str| {
        (0..100).fold(Batch::new(), |batch, row| {
            let entity = json!({"Group": group, "Text": "x".repeat(30_000), "Row": row});
            batch.put(&client, &table, ("p", &format!("{row:03}")), None, &entity)
        })
    };
    batch("one").send(&client).expect_done(100);
    batch("two").send(&client).expect_done(100);
    for number in 0..8 {
        assert_sound(&client, &table, &format!("Index{number}"), 100);
    }
}

/// A merge sends a few bytes and writes the whole entity, and each copy of it. What many of them may copy is bounded.
#[test]
fn merges_of_large_entities_copy_no_more_than_others_can_wait_for() {
    let client = shared_client();
    let table = client.new_table();
    for number in 0..3 {
        let definition = json!({"Keys": "Group", "Include": "*"});
        build(&client, &table, &format!("Index{number}"), &definition);
    }
    let texts: serde_json::Map<_, _> =
        (0..15).map(|number| (format!("Text{number}"), json!("x".repeat(32_000)))).collect();
    // Above 64 MiB if each is copied three times.
    let rows = 50;
    for row in 0..rows {
        let mut entity = json!({"PartitionKey": "p", "RowKey": format!("{row:03}"), "Group": "g"});
        entity.as_object_mut().unwrap().extend(texts.clone());
        client.insert(&table, &entity).expect(204);
    }
    let merges = |rows: std::ops::Range<usize>| {
        rows.fold(Batch::new(), |batch, row| {
            let path = entity_path(&table, "p", &format!("{row:03}"));
            batch.operation(
                &client,
                "MERGE",
                &path,
                "If-Match: *\r\n",
                Some(&json!({"Group": "h"})),
            )
        })
    };
    let refused = merges(0..rows).send(&client);
    let last = refused.expect_failure(413, "RequestBodyTooLarge", 46);
    assert!(last.text().contains("Send fewer changes"), "{}", last.text());
    merges(0..rows / 2).send(&client).expect_done(rows / 2);
    for number in 0..3 {
        assert_sound(&client, &table, &format!("Index{number}"), rows);
    }
}

/// What finds no memory now is tried again, and what never can is refused for good.
#[test]
fn copies_for_which_there_is_never_memory_are_refused_for_good() {
    let launch = Launch::new().args(["--inMemoryPersistence", "--message-memory-mb", "16"]);
    let client = Client::new(&Arc::new(launch.start()));
    let table = client.new_table();
    for number in 0..4 {
        // An index may copy everything by its names, too.
        let include = if number < 3 { "*" } else { "Text,Row" };
        let definition = json!({"Keys": "Group", "Include": include});
        build(&client, &table, &format!("Index{number}"), &definition);
    }
    let batch = |rows: usize| {
        (0..rows).fold(Batch::new(), |batch, row| {
            let entity = json!({"Group": "g", "Text": "x".repeat(30_000), "Row": row});
            batch.put(&client, &table, ("p", &format!("{row:03}")), None, &entity)
        })
    };
    // Three megabytes, and four times as much to copy, of twelve that there are.
    let refused = batch(100).send(&client);
    let last = refused.expect_failure(413, "RequestBodyTooLarge", 79);
    assert!(last.text().contains("Send fewer changes"), "{}", last.text());
    batch(60).send(&client).expect_done(60);
    // Indexes that nobody writes any more need no memory.
    for number in 0..4 {
        let path = entity_path(INDEXES, &table, &format!("Index{number}"));
        client.delete(path).header("If-Match", "*").send().expect(204);
    }
    batch(100).send(&client).expect_done(100);
}
