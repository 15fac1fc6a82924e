//! Each example of the Index Table pattern, on a table whose key is the customer's id: by town, by last name, by both,
//! with hashed shards, and the movies of an actor. What the pattern keeps in index tables by hand, the server keeps.

use serde_json::{Value, json};

use super::{build, customer, explained, explanation, insert_all};
use crate::support::client::{row_keys, values};
use crate::support::{Client, shared_client};

const TOWNS: [&str; 5] = ["Redmond", "Seattle", "Portland", "Chicago", "Boston"];
const NAMES: [&str; 7] = ["Smith", "Jones", "Robinson", "Brown", "Clarke", "Green", "Howard"];

/// 700 customers, each town and name in every combination, in shards by a hash of the id as the pattern has them.
fn customers(client: &Client) -> String {
    let table = client.new_table();
    let mut all: Vec<Value> = (0..700)
        .map(|id| {
            let shard = format!("shard-{}", (id * 7919) % 11);
            customer(id, &shard, NAMES[id % NAMES.len()], TOWNS[id % TOWNS.len()])
        })
        .collect();
    all.sort_by_key(|customer| customer["PartitionKey"].to_string());
    insert_all(client, &table, &all);
    table
}

fn found(client: &Client, table: &str, options: &[(&str, &str)]) -> (String, Vec<String>) {
    let page = explained(client, table, options);
    (explanation(&page), row_keys(&values(&page)))
}

#[test]
fn customers_by_town_in_three_strategies() {
    let client = shared_client();
    let table = customers(&client);
    let by_town = [("$filter", "Town eq 'Redmond'")];
    let (before, expected) = found(&client, &table, &by_town);
    assert_eq!(before, "table scan - - - 140/700");

    // Strategy 2: references alone. Every entity is looked up.
    build(&client, &table, "ByTown", &json!({ "Keys": "Town" }));
    let (reference, keys) = found(&client, &table, &by_town);
    // One customer in five is too many for look-ups: the rest is scanned, and the answer is the same.
    assert!(reference.starts_with("index ByTown ordered "), "{reference}");
    assert_eq!(keys, expected);

    // Strategy 1: all data in the index, no look-up.
    build(&client, &table, "ByTown", &json!({ "Keys": "Town", "Include": "*" }));
    let (copy, keys) = found(&client, &table, &by_town);
    assert_eq!(copy, "index ByTown ordered covering 140 140/140");
    assert_eq!(keys, expected);

    // Strategy 3: what is asked for often.
    build(&client, &table, "ByTown", &json!({ "Keys": "Town", "Include": "LastName" }));
    let select = ("$select", "RowKey,LastName");
    let (partly, keys) = found(&client, &table, &[by_town[0], select]);
    assert_eq!(partly, "index ByTown ordered covering 140 140/140");
    assert_eq!(keys, expected);
}

#[test]
fn customers_by_last_name() {
    let client = shared_client();
    let table = customers(&client);
    let by_name = [("$filter", "LastName ge 'Ro' and LastName lt 'Rp'")];
    let (_, expected) = found(&client, &table, &by_name);
    build(&client, &table, "ByLastName", &json!({ "Keys": "LastName" }));
    let (range, keys) = found(&client, &table, &by_name);
    assert_eq!(range, "index ByLastName sorted 100 100/100");
    assert_eq!((keys.len(), keys), (100, expected));
}

#[test]
fn customers_by_town_and_last_name() {
    let client = shared_client();
    let table = customers(&client);
    build(&client, &table, "ByTownAndName", &json!({ "Keys": "Town,LastName" }));
    let filter = "Town eq 'Redmond' and LastName eq 'Smith'";
    let (both, keys) = found(&client, &table, &[("$filter", filter)]);
    assert_eq!(both, "index ByTownAndName ordered 20 20/20");
    assert_eq!(keys.len(), 20);
    let (leading, keys) = found(&client, &table, &[("$filter", "Town eq 'Redmond'")]);
    assert_eq!(leading, "index ByTownAndName sorted 140 140/140");
    assert_eq!(keys.len(), 140);
    let (trailing, _) = found(&client, &table, &[("$filter", "LastName eq 'Smith'")]);
    assert_eq!(trailing, "table scan - - - 100/700");
}

/// The index names the hashed shard of each customer: nobody calculates it.
#[test]
fn hashed_shards_are_found_without_their_hash() {
    let client = shared_client();
    let table = customers(&client);
    build(&client, &table, "ByTownAndName", &json!({ "Keys": "Town,LastName" }));
    let filter = "Town eq 'Boston' and LastName eq 'Howard'";
    let page = explained(&client, &table, &[("$filter", filter)]);
    let shards: Vec<_> =
        values(&page).iter().map(|customer| customer["PartitionKey"].clone()).collect();
    assert!(shards.windows(2).all(|pair| pair[0].as_str() <= pair[1].as_str()));
    assert_eq!(shards.len(), 20);
}

#[test]
fn movies_of_an_actor() {
    let client = shared_client();
    let table = client.new_table();
    let movie = |genre: &str, name: &str, star: &str| json!({ "PartitionKey": genre, "RowKey": name, "StarringActor": star });
    let movies = [
        movie("Action", "Explosion", "Terrell Munz"),
        movie("Action", "Fight", "Sean Bentley"),
        movie("Comedy", "Laughter", "Terrell Munz"),
        movie("Documentary", "Ants", "Pilar Ackerman"),
    ];
    insert_all(&client, &table, &movies);
    build(&client, &table, "ByActor", &json!({ "Keys": "StarringActor" }));
    let filter = [("$filter", "StarringActor eq 'Terrell Munz'")];
    let (explanation, names) = found(&client, &table, &filter);
    assert_eq!(explanation, "index ByActor ordered 2 2/2");
    assert_eq!(names, ["Explosion", "Laughter"]);
    // The intra-partition index of the guide.
    build(&client, &table, "InGenre", &json!({ "Keys": "PartitionKey,StarringActor" }));
    let filter = "PartitionKey eq 'Comedy' and StarringActor eq 'Terrell Munz'";
    let (local, names) = found(&client, &table, &[("$filter", filter)]);
    assert_eq!(local, "index InGenre ordered 1 1/1");
    assert_eq!(names, ["Laughter"]);
}
