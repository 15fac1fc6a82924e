//! A data folder of format 2, with indexes and queues, opens with all it holds; and one of format 1 stays what it is until
//! its first index.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::check::check;
use super::upgrade::{
    answers, copy, fixtures, keep, new_fixture, put_policies_and_properties,
    start_with_small_memtable,
};
use crate::queue::stored;
use crate::support::client::NONE;
use crate::support::{Client, Launch, Server};
use crate::table::indexes::{
    INDEXES, assert_sound, build, customer, declare, explained, explanation, index, insert_all,
    wait_for,
};

const FORMAT_2: &str = "format-2";
const TABLE: &str = "Customers";
const VIEW: &str = "CustomersByTown";
const CUSTOMERS: usize = 42;
const TOWNS: [&str; 3] = ["Redmond", "Seattle", "Portland"];
/// What is told of an index and does not change by itself.
const TOLD: [&str; 9] =
    ["Keys", "Include", "Filter", "Unique", "BrowseAs", "State", "Error", "OffType", "Timestamp"];

#[test]
fn indexes_and_queues_of_format_2_open_with_all_they_hold() {
    let path = fixtures().join(FORMAT_2);
    let text = std::fs::read_to_string(path.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("tavola-data");
    copy(&path.join("data"), &data);
    assert_sound_folder(&data);
    let server = Arc::new(Server::start_in(Launch::new(), folder));
    let client = Client::new(&server);
    assert_eq!(marker(&server), 2);
    assert_eq!(indexes(&client), expected["indexes"]);
    for (name, entries) in [("ByTown", 42), ("ByEmail", 42), ("ByAge", 41), ("Active", 21)] {
        assert_sound(&client, TABLE, name, entries);
    }
    let ask = |filter: &str| explanation(&explained(&client, TABLE, &[("$filter", filter)]));
    let filter = "Town eq 'Redmond' and LastName eq 'Smith'";
    assert_eq!(ask(filter), "index ByTown ordered 7 7/7");
    assert_eq!(ask("Email eq '7@example.com'"), "index ByEmail ordered covering 1 1/1");
    assert_eq!(ask("Age eq 9"), "index ByAge merged 1 1/1");
    // In use: kept, unique, shown.
    let twin =
        json!({"PartitionKey": "x", "RowKey": "twin", "Email": "7@example.com", "Town": "Redmond"});
    client.insert(TABLE, &twin).expect_error(409, "UniqueIndexViolation");
    let other = json!({"PartitionKey": "x", "RowKey": "other", "Email": "x", "Town": "Redmond"});
    client.insert(TABLE, &other).expect(204);
    assert_eq!(client.matches(VIEW, "PartitionKey eq 'Redmond'").len(), 15);
    client.remove(TABLE, ("x", "other"), "*").expect(204);
    build(&client, TABLE, "ByName", &json!({"Keys": "LastName"}));
    stored::assert_filled(&server, &expected["queues"]);
    server.ask_to_stop();
    assert!(server.wait().success());
    assert_sound_folder(&data);
}

#[test]
fn a_folder_of_format_1_stays_one_until_its_first_index() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("tavola-data");
    copy(&fixtures().join("format-1/data"), &data);
    let server = Arc::new(Server::start_in(Launch::new(), folder));
    let client = Client::new(&server);
    let before = answers(&client);
    assert_eq!(marker(&server), 1);
    client.insert("Plain", &json!({"PartitionKey": "q", "RowKey": "later"})).expect(204);
    client.remove("Plain", ("q", "later"), "*").expect(204);
    // What is refused is no index.
    let wrong = client.put(INDEXES, ("Plain", "Wrong"), &json!({"Keys": ""})).send();
    wrong.expect_error(400, "InvalidInput");
    server.restart_cleanly();
    assert_eq!(marker(&server), 1);
    build(&client, "ManyRows", "ByNumber", &json!({"Keys": "Number"}));
    assert_eq!(marker(&server), 2);
    assert_sound(&client, "ManyRows", "ByNumber", 117);
    server.crash_and_restart();
    assert_eq!(marker(&server), 2);
    assert_eq!(answers(&client), before);
    let found = explained(&client, "ManyRows", &[("$filter", "Number eq 17")]);
    assert_eq!(explanation(&found), "index ByNumber merged 2 2/2");
    server.ask_to_stop();
    assert!(server.wait().success());
    assert_sound_folder(&data);
}

/// The format that the folder says it has.
fn marker(server: &Server) -> u32 {
    let text = std::fs::read_to_string(server.data_folder().join("TAVOLA")).unwrap();
    text.trim_end().rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[track_caller]
fn assert_sound_folder(data: &Path) {
    let (code, told) = check(data);
    assert_eq!(code, Some(0), "{told}");
}

/// The indexes of the table, with what is told of them.
fn indexes(client: &Client) -> Value {
    let all = client.get(format!("/{INDEXES}()")).accept(NONE).send().expect(200).json();
    let shown = |index: &Value| {
        let told = TOLD.into_iter().map(|name| (name.to_owned(), index[name].clone()));
        (index["RowKey"].as_str().unwrap().to_owned(), told.collect::<Value>())
    };
    all["value"].as_array().unwrap().iter().map(shown).collect()
}

/// Writes the fixture of format 2, if there is none yet:
/// `cargo test -p tavola --test e2e write_format_2 -- --ignored`.
#[test]
#[ignore = "writes a fixture; run it when the format changes"]
fn write_format_2() {
    let target = new_fixture(FORMAT_2);
    let (server, data) = start_with_small_memtable();
    let client = Client::new(&server);
    fill(&client);
    let queues = stored::fill(&server);
    let mut expected = answers(&client);
    expected["indexes"] = indexes(&client);
    expected["queues"] = queues;
    server.ask_to_stop();
    assert!(server.wait().success());
    keep(&data, &expected, &target);
}

fn fill(client: &Client) {
    for table in ["Plain", TABLE, "Dropped"] {
        client.create_table(table).expect(204);
    }
    client.insert("Plain", &json!({"PartitionKey": "p", "RowKey": "r", "Text": "a"})).expect(204);
    let mut customers: Vec<_> = (0..CUSTOMERS).map(one_customer).collect();
    customers.sort_by_key(|customer| customer["PartitionKey"].to_string());
    // Half of them are there before the indexes are.
    let (early, late) = customers.split_at(CUSTOMERS / 2);
    insert_all(client, TABLE, early);
    build(client, TABLE, "ByTown", &json!({"Keys": "Town,LastName", "BrowseAs": VIEW}));
    build(client, TABLE, "ByEmail", &json!({"Keys": "Email", "Include": "*", "Unique": true}));
    build(client, TABLE, "ByAge", &json!({"Keys": "Age:Int32"}));
    let active = json!({"Keys": "LastName?", "Include": "Town", "Filter": "Active eq true"});
    build(client, TABLE, "Active", &active);
    insert_all(client, TABLE, late);
    // Of another type, and of none.
    client.merge(TABLE, ("shard-0", "0000"), &json!({"Age": 1.5})).send().expect(204);
    // One that cannot be built, one whose definition was replaced, and one that was dropped.
    declare(client, TABLE, "Broken", &json!({"Keys": "Town", "Unique": true}));
    wait_for(client, TABLE, "Broken", "Failed");
    build(client, TABLE, "Replaced", &json!({"Keys": "Notes"}));
    build(client, TABLE, "Replaced", &json!({"Keys": "Notes,Age"}));
    build(client, TABLE, "Gone", &json!({"Keys": "Notes"}));
    client.remove(INDEXES, (TABLE, "Gone"), "*").expect(204);
    build(client, "Dropped", "ByAnything", &json!({"Keys": "Anything"}));
    client.drop_table("Dropped").expect(204);
    put_policies_and_properties(client, &["Plain", TABLE, VIEW]);
    assert_eq!(index(client, TABLE, "ByTown")["State"], "Readable");
    // Numbers that steer are kept with a build that ends.
    build(client, "Plain", "ByText", &json!({"Keys": "Text"}));
}

fn one_customer(id: usize) -> Value {
    let last_name = if id.is_multiple_of(2) { "Smith" } else { "Jones" };
    let shard = format!("shard-{}", id % 5);
    let mut customer = customer(id, &shard, last_name, TOWNS[id % TOWNS.len()]);
    customer["Email"] = format!("{id}@example.com").into();
    customer["Active"] = (id < CUSTOMERS / 2).into();
    if id > 1 {
        customer["Age"] = id.into();
    }
    customer
}
