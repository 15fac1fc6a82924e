//! Hot partitions: found under a skewed load, whatever the speed of the machine.

use std::sync::Arc;

use serde_json::{Value, json};

use super::printed;
use crate::support::{Batch, Client, Launch};

/// Every other request is for one partition of forty.
fn skewed_load(client: &Client) {
    client.create_table("Orders").expect(204);
    for partition in 0..40 {
        let entity = json!({"PartitionKey": format!("p{partition}"), "RowKey": "r", "Text": "x".repeat(100)});
        client.insert("Orders", &entity).expect(204);
    }
    for number in 0..800 {
        let partition = if number % 2 == 0 { 7 } else { number / 2 % 40 };
        client.entity("Orders", (&format!("p{partition}"), "r")).expect(200);
    }
}

fn hottest(client: &Client) -> Value {
    let mut rows = client.matches("TavolaHotPartitions", "Rank eq 1");
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

#[test]
fn a_hot_partition_is_found() {
    let client = Client::new(&Arc::new(Launch::new().arg("--inMemoryPersistence").start()));
    assert!(printed(&client, &["hot"]).starts_with("No partition"));
    skewed_load(&client);
    let hot = hottest(&client);
    assert_eq!((&hot["PartitionKey"], &hot["RowKey"]), (&json!("Orders"), &json!("p7")));
    // Half of the requests, of which one in eight is looked at.
    let share = hot["Share"].as_f64().unwrap();
    assert!((0.25..=0.75).contains(&share), "{hot}");
    assert!(hot["RequestsPerSecond"].as_f64().unwrap() > 0.0, "{hot}");
    assert!(hot["BytesPerSecond"].as_f64().unwrap() > hot["RequestsPerSecond"].as_f64().unwrap());
    assert_eq!(hot["Error"].as_f64(), Some(0.0), "there are fewer partitions than counters");
    let again = client.entity("TavolaHotPartitions", ("Orders", "p7")).expect(200);
    assert_eq!(again.json()["Rank"], json!(1));

    let text = printed(&client, &["hot"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("TABLE   PARTITION  REQUESTS/S"), "{text}");
    assert!(lines[1].starts_with("Orders  \"p7\" "), "{text}");
    let json = printed(&client, &["hot", "--json", "--table", "orders"]);
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["RowKey"], "p7");
}

/// Writes, queries and transactions count as reads do.
#[test]
fn every_way_to_reach_a_partition_counts() {
    let client = Client::new(&Arc::new(Launch::new().arg("--inMemoryPersistence").start()));
    client.create_table("Orders").expect(204);
    let entity =
        |partition: &str, row: usize| json!({"PartitionKey": partition, "RowKey": row.to_string()});
    for row in 0..200 {
        client.merge("Orders", ("merge", "r"), &json!({"A": 1})).send().expect(204);
        client.insert("Orders", &entity("insert", row)).expect(204);
        let filter = "PartitionKey eq 'query' and A eq 1";
        client.query("Orders", &[("$filter", filter)]).send().expect(200);
        let batch = Batch::new().insert(&client, "Orders", &entity("batch", row));
        batch.send(&client).expect_done(1);
    }
    for _ in 0..200 {
        // No partition can have such a key.
        client.query("Orders", &[("$filter", "PartitionKey eq 'a/b'")]).send().expect(200);
    }
    let found = client.rows("TavolaHotPartitions", "PartitionKey eq 'Orders'");
    assert_eq!(found, ["batch", "insert", "merge", "query"]);
}
