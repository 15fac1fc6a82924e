//! Declaring, changing, dropping: by every way in which entities are written.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::server::check::check;
use crate::support::client::values;
use crate::support::{Batch, Launch, shared_client};

fn insert_people(client: &Client, table: &str, count: usize) {
    for row in 0..count {
        client.insert(table, &person("p", row)).expect(204);
    }
}

#[test]
fn an_index_is_built_kept_verified_and_dropped() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    insert_people(&client, &table, 200);
    let marker = || std::fs::read_to_string(server.data_folder().join("TAVOLA")).unwrap();
    assert!(marker().ends_with("format 1\n"));
    assert_eq!(client.matches(INDEXES, "PartitionKey ge ''").len(), 0);
    let tables = || client.get("/Tables").accept(NONE).send().expect(200).text().to_owned();
    assert!(!tables().contains(INDEXES));

    for (name, definition) in [
        ("ByTown", json!({"Keys": "Town"})),
        ("ByTownAge", json!({"Keys": "Town,Age:Int64", "Include": "Email"})),
        ("ByEmail", json!({"Keys": "Email", "Include": "*", "Unique": true})),
        ("Young", json!({"Keys": "PartitionKey,Age", "Filter": "Age lt 30"})),
    ] {
        build(&client, &table, name, &definition);
    }
    assert!(marker().ends_with("format 2\n"));
    assert!(tables().contains(INDEXES));
    let young = (0..200).filter(|row| row % 90 < 30).count();
    let all = [("ByTown", 200), ("ByTownAge", 200), ("ByEmail", 200), ("Young", young)];
    for (name, entries) in all {
        let found = index(&client, &table, name);
        assert_eq!(found["Entries"], entries.to_string(), "{found}");
        assert_eq!(found["Progress"], "200", "{found}");
        assert_sound(&client, &table, name, entries);
    }
    let by_town = index(&client, &table, "ByTown");
    assert_eq!(by_town["Distinct"], "7", "{by_town}");
    let share = by_town["LargestShare"].as_f64().unwrap();
    assert!((0.14..0.16).contains(&share), "{by_town}");
    assert_eq!(index(&client, &table, "ByTownAge")["OffType"], "200");

    // Everything that writes.
    client.put(&table, ("p", "00001"), &json!({"Town": "Elsewhere"})).send().expect(204);
    client.merge(&table, ("p", "00002"), &json!({"Age": 3})).send().expect(204);
    client.merge(&table, ("p", "00003"), &json!({"Unrelated": 3})).send().expect(204);
    client.remove(&table, ("p", "00004"), "*").expect(204);
    client.put(&table, ("q", "new"), &json!({"Town": "Town1", "Email": "n"})).send().expect(204);
    Batch::new()
        .insert(&client, &table, &person("p", 1000))
        .delete(&client, &table, ("p", "00005"), "*")
        .merge(&client, &table, ("p", "00006"), None, &json!({"Town": "Town0", "Email": "six"}))
        .send(&client)
        .expect_done(3);
    assert_sound(&client, &table, "ByTown", 200);
    assert_sound(&client, &table, "ByTownAge", 200);
    // The first was replaced without an address.
    assert_sound(&client, &table, "ByEmail", 199);
    let young_now = client.matches(&table, "Age lt 30").len();
    assert_sound(&client, &table, "Young", young_now);

    // A restart goes on with the same.
    server.crash_and_restart();
    for name in ["ByTown", "ByTownAge", "Young"] {
        assert_eq!(index(&client, &table, name)["State"], "Readable");
        assert!(verify(&client, &table, name).starts_with("sound: "));
    }
    client.remove(INDEXES, (&table, "Young"), "*").expect(204);
    assert_gone(&client, &table, "Young");
    client.remove(INDEXES, (&table, "Young"), "*").expect(404);
    insert_more(&client, &table);

    server.ask_to_stop();
    assert!(server.wait().success());
    let (code, told) = check(&server.data_folder());
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("rows of indexes"), "{told}");
}

/// An index that was declared on an empty table is as useful after a restart as before.
#[test]
fn what_is_known_of_an_index_survives_a_stop() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    build(&client, &table, "ByAge", &json!({"Keys": "Age"}));
    let all: Vec<Value> = (0..3000)
        .map(|row| json!({"PartitionKey": "p", "RowKey": format!("{row:04}"), "Age": row}))
        .collect();
    insert_all(&client, &table, &all);
    let ask = || {
        let page =
            explained(&client, &table, &[("$filter", "Age ge 100 and Age lt 200"), ("$top", "10")]);
        assert_eq!(values(&page).len(), 10);
        explanation(&page)
    };
    let told = ask();
    assert!(told.contains("sorted"), "{told}");
    // The rows that were counted, and the use.
    let before = index(&client, &table, "ByAge");
    assert_eq!((&before["Entries"], &before["Uses"]), (&json!("3000"), &json!("1")));
    server.restart_cleanly();
    let after = index(&client, &table, "ByAge");
    for name in ["Entries", "Uses", "LastUsed"] {
        assert_eq!(before[name], after[name], "{name}");
    }
    assert_eq!(ask(), told);
}

fn insert_more(client: &Client, table: &str) {
    for row in 2000..2050 {
        client.insert(table, &person("p", row)).expect(204);
    }
    assert_sound(client, table, "ByTown", 250);
}

#[test]
fn a_new_definition_takes_the_place_of_the_old_one() {
    let client = shared_client();
    let table = client.new_table();
    let people: Vec<_> = (0..2000).map(|row| person("p", row)).collect();
    insert_all(&client, &table, &people);
    build(&client, &table, "Main", &json!({"Keys": "Town"}));
    let before = index(&client, &table, "Main");
    let ask = |filter: &str| {
        let page = explained(&client, &table, &[("$filter", filter), ("$select", "Email")]);
        assert_eq!(page.header("x-tavola-index"), Some("Main"), "{filter}");
        page.header("x-tavola-index-use").unwrap().to_owned()
    };
    assert_eq!(ask("Town eq 'Town3' and Age eq 80"), "ordered");
    // The same again changes nothing, whatever the server's own properties say.
    client.put(INDEXES, (&table, "Main"), &before).send().expect(204);
    assert_eq!(index(&client, &table, "Main")["State"], "Readable");
    let copies = json!({"Include": "Email,Age"});
    client.merge(INDEXES, (&table, "Main"), &copies).send().expect(204);
    // The old one answers until the new one does.
    while index(&client, &table, "Main")["State"] == "Building" {
        ask("Town eq 'Town3' and Age eq 80");
    }
    let after = index(&client, &table, "Main");
    assert_eq!((&after["State"], &after["Keys"]), (&json!("Readable"), &json!("Town")));
    assert_eq!(after["Include"], "Email,Age");
    assert_eq!(ask("Town eq 'Town3' and Age eq 80"), "ordered covering");
    let etag = || client.entity(INDEXES, (&table, "Main")).header("ETag").unwrap().to_owned();
    let before = etag();
    assert_sound(&client, &table, "Main", 2000);
    assert_eq!(etag(), before);
}

/// Two of these towns fall into the same group of the estimate.
#[test]
fn few_different_values_are_counted_exactly() {
    let client = shared_client();
    let table = client.new_table();
    let towns = ["Redmond", "Seattle", "Portland", "Chicago", "Boston", "Zürich"];
    let people = (0..60).map(|row| {
        let mut person = person("p", row);
        person["Town"] = json!(towns[row % 6]);
        person
    });
    insert_all(&client, &table, &people.collect::<Vec<_>>());
    assert_eq!(build(&client, &table, "ByTown", &json!({"Keys": "Town"}))["Distinct"], "6");
}

#[test]
fn a_batch_declares_several_or_none() {
    let client = shared_client();
    let table = client.new_table();
    let entity =
        |name: &str, keys: &str| json!({"PartitionKey": table, "RowKey": name, "Keys": keys});
    Batch::new()
        .insert(&client, INDEXES, &entity("One", "A"))
        .insert(&client, INDEXES, &entity("Two", "B,"))
        .send(&client)
        .expect_failure(400, "InvalidInput", 1);
    assert_eq!(client.matches(INDEXES, &format!("PartitionKey eq '{table}'")).len(), 0);
    Batch::new()
        .insert(&client, INDEXES, &entity("One", "A"))
        .insert(&client, INDEXES, &entity("Two", "B"))
        .send(&client)
        .expect_done(2);
    for name in ["One", "Two"] {
        wait_for(&client, &table, name, "Readable");
    }
    // As any entity: an insert meets what is there, and a condition counts.
    client.insert(INDEXES, &entity("One", "A")).expect_error(409, "EntityAlreadyExists");
    // As names of tables: a hint names an index in any case of letters.
    let other_case = client.put(INDEXES, (&table, "ONE"), &json!({"Keys": "C"})).send();
    other_case.expect_error(409, "EntityAlreadyExists");
    let stale = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";
    client.remove(INDEXES, (&table, "One"), stale).expect_error(412, "UpdateConditionNotSatisfied");
    let found = client.entity(INDEXES, (&table, "One")).expect(200);
    let etag = found.header("ETag").unwrap().to_owned();
    client.remove(INDEXES, (&table, "One"), &etag).expect(204);
    let echo = client.post(format!("/{INDEXES}"), &entity("Three", "A,B")).accept(NONE).send();
    let echo = echo.expect(201).json();
    assert_eq!((&echo["Keys"], &echo["State"]), (&json!("A,B"), &json!("Building")));
}

#[test]
fn what_is_no_index_is_refused() {
    let client = shared_client();
    let table = client.new_table();
    let refused = |name: &str, definition: Value, status: u16, code: &str| {
        let reply = client.put(INDEXES, (&table, name), &definition).send();
        reply.expect_error(status, code);
    };
    for definition in [
        json!({"Keys": "A", "Inculde": "B"}),
        json!({"Keys": 7}),
        json!({"Keys": "A", "Unique": "yes"}),
        json!({"Keys": ""}),
        json!({"Keys": "A,B,C,D,E"}),
        json!({"Keys": "A:Int31"}),
        json!({"Keys": "A", "Include": "PartitionKey"}),
        json!({"Keys": "A", "Filter": "B eq"}),
        json!({"Keys": "A", "Filter": "B eq 1 or C eq 2"}),
        json!({"Keys": "A", "Filter": format!("B eq '{}'", "x".repeat(9000))}),
        json!({"Keys": "A", "Include": (0..21).map(|n| format!("N{n}")).collect::<Vec<_>>().join(",")}),
    ] {
        refused("Wrong", definition, 400, "InvalidInput");
    }
    refused("Wrong", json!({"Include": "A"}), 400, "PropertiesNeedValue");
    refused("no-name", json!({"Keys": "A"}), 400, "InvalidResourceName");
    refused("Wrong", json!({"Keys": "A", "BrowseAs": "a-b"}), 400, "InvalidResourceName");
    refused("Wrong", json!({"Keys": "A", "BrowseAs": table}), 409, "TableAlreadyExists");
    refused("Wrong", json!({"Keys": "A", "BrowseAs": "tavolaADVICE"}), 409, "TableAlreadyExists");
    let elsewhere = |name: &str| client.put(INDEXES, (name, "ByA"), &json!({"Keys": "A"})).send();
    elsewhere("NoSuchTable").expect_error(404, "TableNotFound");
    elsewhere(INDEXES).expect_error(404, "TableNotFound");
    elsewhere(&table.to_uppercase()).expect_error(400, "InvalidInput");
    client.create_table("tavolaindexes").expect_error(409, "TableAlreadyExists");
    client.drop_table(INDEXES).expect(403);
    assert_eq!(client.matches(INDEXES, &format!("PartitionKey eq '{table}'")).len(), 0);
}

#[test]
fn unique_may_be_a_text() {
    let client = shared_client();
    let table = client.new_table();
    for (text, expected) in [("true", true), ("False", false)] {
        declare(&client, &table, "ByA", &json!({"Keys": "A", "Unique": text}));
        assert_eq!(index(&client, &table, "ByA")["Unique"], expected);
    }
}

#[test]
fn a_table_has_sixteen_indexes_and_three_copies() {
    let client = shared_client();
    let table = client.new_table();
    for number in 0..16 {
        let include = if number < 3 { "*" } else { "" };
        let definition = json!({"Keys": "A", "Include": include});
        declare(&client, &table, &format!("Index{number}"), &definition);
    }
    let more = client.put(INDEXES, (&table, "Index16"), &json!({"Keys": "A"})).send();
    assert!(more.expect_error(400, "InvalidInput").text().contains("16"));
    let copy = json!({"Include": "*"});
    let more = client.merge(INDEXES, (&table, "Index9"), &copy).send();
    assert!(more.expect_error(400, "InvalidInput").text().contains("all properties"));
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "1", "A": 7})).expect(204);
    for number in 0..16 {
        wait_for(&client, &table, &format!("Index{number}"), "Readable");
        assert_sound(&client, &table, &format!("Index{number}"), 1);
    }
    client.remove(INDEXES, (&table, "Index3"), "*").expect(204);
    declare(&client, &table, "Index16", &json!({"Keys": "A"}));
    client.drop_table(&table).expect(204);
    assert_eq!(client.matches(INDEXES, &format!("PartitionKey eq '{table}'")).len(), 0);
    client.entity(INDEXES, (&table, "Index1")).expect(404);
}

#[test]
fn the_name_of_a_view_is_that_of_a_table() {
    let client = shared_client();
    let (table, view) = (client.new_table(), format!("View{}", std::process::id()));
    build(&client, &table, "ByA", &json!({"Keys": "A", "BrowseAs": view}));
    client.create_table(&view.to_lowercase()).expect_error(409, "TableAlreadyExists");
    let tables = || client.get("/Tables").accept(NONE).send().expect(200).text().to_owned();
    assert!(tables().contains(&view));
    let entity = json!({"PartitionKey": "p", "RowKey": "1"});
    client.insert(&view, &entity).expect_error(403, "InsufficientAccountPermissions");
    client.put(INDEXES, (&view, "ByB"), &json!({"Keys": "B"})).send().expect(400);
    // The name goes, and the index stays.
    let etag = || client.entity(INDEXES, (&table, "ByA")).header("ETag").unwrap().to_owned();
    let before = etag();
    client.drop_table(&view).expect(204);
    assert_ne!(etag(), before);
    let found = index(&client, &table, "ByA");
    assert_eq!((&found["BrowseAs"], &found["State"]), (&json!(""), &json!("Readable")));
    client.create_table(&view).expect(204);
    let taken = json!({"Keys": "A", "BrowseAs": view});
    client.put(INDEXES, (&table, "ByA"), &taken).send().expect_error(409, "TableAlreadyExists");
    client.drop_table(&view).expect(204);
    // And it goes with the index, and with the table.
    declare(&client, &table, "ByA", &taken);
    client.remove(INDEXES, (&table, "ByA"), "*").expect(204);
    client.create_table(&view).expect(204);
    client.drop_table(&view).expect(204);
    declare(&client, &table, "ByA", &taken);
    client.drop_table(&table).expect(204);
    client.create_table(&view).expect(204);
    client.drop_table(&view).expect(204);
}

#[test]
fn a_refused_declaration_leaves_the_format_of_the_folder() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let (table, other) = (client.new_table(), client.new_table());
    let taken = json!({"Keys": "A", "BrowseAs": other.to_uppercase()});
    let refused = client.put(INDEXES, (&table, "ByA"), &taken).send();
    refused.expect_error(409, "TableAlreadyExists");
    let marker = || std::fs::read_to_string(server.data_folder().join("TAVOLA")).unwrap();
    assert!(marker().ends_with("format 1\n"));
    declare(
        &client,
        &table,
        "ByA",
        &json!({"Keys": "A", "BrowseAs": crate::support::client::unused_name()}),
    );
    assert!(marker().ends_with("format 2\n"));
}

/// The command line does what any client does.
#[test]
fn the_command_line_declares_and_verifies() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    insert_people(&client, &table, 20);
    let run = |arguments: &[&str]| command_line(&client, arguments);
    let (is_done, told) =
        run(&["create", &table, "ByTown", "--keys", "Town,Age", "--include", "Email", "--wait"]);
    assert!(is_done, "{told}");
    let (is_done, told) = run(&["list"]);
    assert!(is_done && told.contains("ByTown") && told.contains("Readable"), "{told}");
    let (is_done, told) = run(&["show", &table, "ByTown"]);
    assert!(is_done && told.contains("Town,Age"), "{told}");
    let (is_done, told) = run(&["verify", &table, "ByTown"]);
    assert!(is_done && told.contains("sound: 20 entries"), "{told}");
    let (is_done, told) = run(&["create", &table, "Wrong", "--keys", "A,,B"]);
    assert!(!is_done && told.contains("not declared"), "{told}");
    // Names of tables are, in any letters.
    let upper = table.to_uppercase();
    for command in ["show", "verify"] {
        let (is_done, told) = run(&[command, &upper, "ByTown"]);
        assert!(is_done, "{told}");
    }
    for property in ["Bytes", "Distinct", "LargestShare", "OffType", "Uses", "Note", "Verify"] {
        let (is_done, told) = run(&["show", &table, "ByTown"]);
        assert!(is_done && told.contains(&format!("\n{property} ")), "{property}: {told}");
    }
    let (is_done, told) = run(&["drop", &upper, "ByTown"]);
    assert!(is_done, "{told}");
    let (is_done, told) = run(&["show", &table, "ByTown"]);
    assert!(!is_done && told.contains("there is no index"), "{told}");
    // Also the first.
    let (is_done, told) = run(&["create", &upper, "ByTown", "--keys", "Town", "--wait"]);
    assert!(is_done, "{told}");
    assert_eq!(index(&client, &table, "ByTown")["State"], "Readable");
}

/// What fails is said to people and to scripts.
#[test]
fn the_command_line_tells_what_fails() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    for row in 0..2 {
        let entity =
            json!({"PartitionKey": "p", "RowKey": row.to_string(), "Email": "x@example.com"});
        client.insert(&table, &entity).expect(204);
    }
    let fails = |arguments: &[&str], words: &str| {
        let (is_done, told) = command_line(&client, arguments);
        assert!(!is_done && told.contains(words), "{arguments:?}: {told}");
        assert!(!told.contains("example.com"), "{told}");
    };
    let unique = ["create", &table, "ByEmail", "--keys", "Email", "--unique", "--wait"];
    fails(&unique, "cannot be built: Two entities have the same values of Email");
    fails(&["create", "Nowhere", "ByTown", "--keys", "Town"], "there is no table Nowhere");
    fails(&["drop", "Nowhere", "ByTown"], "there is no table Nowhere");
    fails(&["create", &table, "ByTown", "--keys", "Town", "--timeout", "1"], "--wait");
    for command in ["show", "drop", "verify"] {
        fails(&[command, &table, "ByTown"], "there is no index ByTown");
    }
    // Something else listens, or nothing.
    let elsewhere = format!("TableEndpoint=http://{}/other", server.address());
    let nobody = "TableEndpoint=http://127.0.0.1:1/devstoreaccount1";
    for endpoint in [&elsewhere, nobody] {
        let connection =
            format!("AccountName=devstoreaccount1;AccountKey={};{endpoint}", crate::support::KEY);
        fails(&["list", "--connection", &connection], "cannot read the table TavolaIndexes");
    }
}

/// What is in one's way is said, and what is not there is not found.
#[test]
fn names_that_cannot_be_and_names_that_are_written_otherwise() {
    let client = shared_client();
    let table = client.new_table();
    let refused = client.put(INDEXES, (&table, "None"), &json!({"Keys": "Town"})).send();
    let refused = refused.expect_error(400, "InvalidInput");
    assert!(refused.text().contains("named none"), "{}", refused.text());
    declare(&client, &table, "ByTown", &json!({"Keys": "Town"}));
    let upper = table.to_uppercase();
    let written_otherwise = client.put(INDEXES, (&upper, "Other"), &json!({"Keys": "Age"})).send();
    let told = written_otherwise.expect_error(400, "InvalidInput");
    assert!(told.text().contains(&table), "{}", told.text());
    client.remove(INDEXES, (&upper, "ByTown"), "*").expect_error(404, "ResourceNotFound");
    client.entity(INDEXES, (&table, "ByTown")).expect(200);
}
