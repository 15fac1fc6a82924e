//! An index read as a table, in its own order.

use serde_json::{Value, json};

use super::{INDEXES, build, customer, explained, explanation, index, insert_all, wait_for};
use crate::support::client::{next_tokens, row_keys, unused_name, values};
use crate::support::{Batch, Client, Response, shared_client};
use crate::table::paging::all_pages;

/// A table, and a view of its customers by town and name.
fn view(client: &Client) -> (String, String) {
    let table = client.new_table();
    let mut all = vec![
        customer(3, "a", "Smith", "Redmond"),
        customer(1, "a", "Brown", "Seattle"),
        customer(2, "b", "Smith", "Redmond"),
        customer(4, "b", "Adams", "Redmond"),
        customer(5, "b", "O|Neil/~", "Boston"),
    ];
    all.push(json!({ "PartitionKey": "c", "RowKey": "6", "Town": "Boston" }));
    insert_all(client, &table, &all);
    let name = unused_name();
    build(client, &table, "ByTown", &json!({ "Keys": "Town,LastName", "BrowseAs": name }));
    (table, name)
}

fn keys(entities: &[Value]) -> Vec<String> {
    let key = |entity: &Value| {
        let text = |name: &str| entity[name].as_str().unwrap_or("-").to_owned();
        format!("{} {}", text("PartitionKey"), text("RowKey"))
    };
    entities.iter().map(key).collect()
}

const ALL: [&str; 6] = [
    "Boston ~-|c|6",
    "Boston O~7CNeil~2F~7E|b|0005",
    "Redmond Adams|b|0004",
    "Redmond Smith|a|0003",
    "Redmond Smith|b|0002",
    "Seattle Brown|a|0001",
];

#[test]
fn rows_come_in_the_order_of_the_index() {
    let client = shared_client();
    let (_, view) = view(&client);
    let all = values(&client.query(&view, &[]).send().expect(200));
    assert_eq!(keys(&all), ALL);
    assert_eq!(all[2]["OriginPartitionKey"], "b");
    assert_eq!(all[2]["OriginRowKey"], "0004");
    assert_eq!(all[2]["LastName"], "Adams");
    for page in ["1", "2", "5"] {
        let pages = all_pages(&client, &view, &[("$top", page)], || ());
        assert_eq!(keys(&pages.concat()), ALL);
    }
    for (filter, expected) in [
        ("PartitionKey eq 'Redmond'", &ALL[2..5]),
        ("PartitionKey eq 'Redmond' and RowKey ge 'Smith|' and RowKey lt 'Smith}'", &ALL[3..5]),
        ("PartitionKey gt 'Boston' and PartitionKey lt 'S'", &ALL[2..5]),
        ("LastName eq 'Brown'", &ALL[5..]),
        ("PartitionKey eq 'Nowhere'", &[]),
    ] {
        assert_eq!(keys(&client.matches(&view, filter)), expected, "{filter}");
    }
}

#[test]
fn numbers_sort_as_numbers() {
    let client = shared_client();
    let table = client.new_table();
    let all: Vec<_> = [100, 20, 3, -1]
        .map(|age| json!({ "PartitionKey": "p", "RowKey": age.to_string(), "Age": age }))
        .into();
    insert_all(&client, &table, &all);
    let view = unused_name();
    build(&client, &table, "ByAge", &json!({ "Keys": "Age", "Include": "*", "BrowseAs": view }));
    let found = values(&client.query(&view, &[]).send().expect(200));
    assert_eq!(keys(&found), ["~i-1 p|-1", "~i3 p|3", "~i20 p|20", "~i100 p|100"]);
}

#[test]
fn rows_are_found_by_their_keys_and_follow_their_entities() {
    let client = shared_client();
    let (table, view) = view(&client);
    let found = client.entity(&view, ("Redmond", "Adams|b|0004")).expect(200);
    assert_eq!(found.json()["OriginRowKey"], "0004");
    client.merge(&table, ("b", "0004"), &json!({ "Town": "Austin" })).send().expect(204);
    client.entity(&view, ("Redmond", "Adams|b|0004")).expect_error(404, "ResourceNotFound");
    client.entity(&view, ("Austin", "Adams|b|0004")).expect(200);
    client.entity(&view, ("Austin", "no such key")).expect_error(404, "ResourceNotFound");
    assert_eq!(keys(&client.matches(&view, ""))[0], "Austin Adams|b|0004");
}

#[test]
fn it_is_read_only_and_its_name_is_taken() {
    let client = shared_client();
    let (table, view) = view(&client);
    let entity = json!({ "PartitionKey": "p", "RowKey": "r" });
    client.insert(&view, &entity).expect_error(403, "InsufficientAccountPermissions");
    let changed = client.put(&view, ("Redmond", "Adams|b|0004"), &json!({})).send();
    changed.expect_error(403, "InsufficientAccountPermissions");
    client.create_table(&view).expect_error(409, "TableAlreadyExists");
    let names = values(&client.get("/Tables").send().expect(200));
    assert!(names.iter().any(|name| name["TableName"] == view.as_str()));
    // Deleting it removes the name, not the index.
    client.drop_table(&view).expect(204);
    client.query(&view, &[]).send().expect_error(404, "TableNotFound");
    assert_eq!(row_keys(&client.matches(&table, "Town eq 'Seattle'")), ["0001"]);
    let index = client.entity(INDEXES, (&table, "ByTown")).expect(200).json();
    assert_eq!(index["State"], "Readable");
}

#[test]
fn it_goes_with_its_table() {
    let client = shared_client();
    let (table, view) = view(&client);
    client.drop_table(&table).expect(204);
    client.query(&view, &[]).send().expect_error(404, "TableNotFound");
}

#[test]
fn tokens_that_were_not_made_here_are_refused() {
    let client = shared_client();
    let (_, view) = view(&client);
    for token in ["x", "1!4!cG", "1!4!----"] {
        let answer = client.query(&view, &[("NextPartitionKey", token)]).send();
        answer.expect_error(400, "InvalidInput");
    }
}

/// A row of a view has keys made of several, and they may be longer than those of any entity.
#[test]
fn rows_with_long_keys_are_found_by_them() {
    let client = shared_client();
    let table = client.new_table();
    let [a, b, partition, row] = ["A", "B", "P", "R"].map(|letter| letter.repeat(512));
    let entity = json!({ "PartitionKey": partition, "RowKey": row, "A": a, "B": b });
    insert_all(&client, &table, &[entity]);
    let view = unused_name();
    build(&client, &table, "ByBoth", &json!({ "Keys": "A,B", "BrowseAs": view }));
    let row_key = format!("{b}|{partition}|{row}");
    assert_eq!(keys(&client.matches(&view, "")), [format!("{a} {row_key}")]);
    let found = client.entity(&view, (&a, &row_key)).expect(200).json();
    assert_eq!((&found["RowKey"], &found["OriginRowKey"]), (&json!(row_key), &json!(row)));
    for missing in [format!("{row_key}R"), row_key.replace('|', "#")] {
        client.entity(&view, (&a, &missing)).expect_error(404, "ResourceNotFound");
    }
    // No stored entity has such keys.
    client.entity(&table, (&a, &row_key)).expect_error(404, "ResourceNotFound");
}

#[test]
fn two_indexes_of_a_table_do_not_have_one_view() {
    let client = shared_client();
    let (table, view) = view(&client);
    let by_name = |name: &str| json!({ "Keys": "LastName", "BrowseAs": name });
    for name in [view.clone(), view.to_lowercase(), view.to_uppercase()] {
        let taken = client.put(INDEXES, (&table, "ByName"), &by_name(&name)).send();
        taken.expect_error(409, "TableAlreadyExists");
    }
    client.entity(INDEXES, (&table, "ByName")).expect(404);
    assert_eq!(keys(&client.matches(&view, "")), ALL);
    // Nor do two that are declared together.
    let other = unused_name();
    Batch::new()
        .put(&client, INDEXES, (&table, "One"), None, &by_name(&other))
        .put(&client, INDEXES, (&table, "Two"), None, &by_name(&other.to_uppercase()))
        .send(&client)
        .expect_failure(409, "TableAlreadyExists", 1);
    client.entity(INDEXES, (&table, "One")).expect(404);
}

#[test]
fn a_batch_hands_the_name_of_a_view_over() {
    let client = shared_client();
    let (table, view) = view(&client);
    let by_name = json!({ "Keys": "LastName", "BrowseAs": view.to_uppercase() });
    Batch::new()
        .put(&client, INDEXES, (&table, "ByName"), None, &by_name)
        .merge(&client, INDEXES, (&table, "ByTown"), None, &json!({ "BrowseAs": "" }))
        .send(&client)
        .expect_done(2);
    wait_for(&client, &table, "ByName", "Readable");
    assert_eq!(keys(&client.matches(&view, ""))[0], "Adams b|0004");
    assert_eq!(index(&client, &table, "ByTown")["BrowseAs"], "");
    // And from one that goes.
    let back = json!({ "Keys": "Town,LastName", "BrowseAs": view });
    Batch::new()
        .put(&client, INDEXES, (&table, "ByTown"), None, &back)
        .delete(&client, INDEXES, (&table, "ByName"), "*")
        .send(&client)
        .expect_done(2);
    wait_for(&client, &table, "ByTown", "Readable");
    assert_eq!(keys(&client.matches(&view, "")), ALL);
}

#[test]
fn a_view_is_listed_in_the_letters_that_were_written_last() {
    let client = shared_client();
    let (table, view) = view(&client);
    let acl = format!("/{view}?comp=acl");
    let policies =
        "<SignedIdentifiers><SignedIdentifier><Id>kept</Id></SignedIdentifier></SignedIdentifiers>";
    client.request("PUT", &acl).body("application/xml", policies).send().expect(204);
    for name in [view.to_uppercase(), view.to_lowercase()] {
        client.merge(INDEXES, (&table, "ByTown"), &json!({ "BrowseAs": name })).send().expect(204);
        let listed = client.query("Tables", &[("$filter", &format!("TableName eq '{view}'"))]);
        let listed = values(&listed.send().expect(200));
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(listed[0]["TableName"], name.as_str());
        assert_eq!(index(&client, &table, "ByTown")["BrowseAs"], name.as_str());
        assert_eq!(keys(&client.matches(&view, "")), ALL);
        assert!(client.get(&acl).send().expect(200).text().contains("<Id>kept</Id>"));
    }
}

fn next_page(client: &Client, view: &str, first: &Response) -> Response {
    let tokens = next_tokens(first).expect("there is more");
    let [partition_key, row_key] = [&tokens.0, &tokens.1].map(String::as_str);
    client.query(view, &[("NextPartitionKey", partition_key), ("NextRowKey", row_key)]).send()
}

/// The places of another index are others, though it has the same name.
#[test]
fn a_listing_does_not_go_on_in_another_index() {
    let client = shared_client();
    let (table, view) = view(&client);
    let first = client.query(&view, &[("$top", "2")]).send().expect(200);
    let same = next_page(&client, &view, &first).expect(200);
    assert_eq!(keys(&values(&same)), ALL[2..]);
    build(&client, &table, "ByTown", &json!({ "Keys": "LastName", "BrowseAs": view }));
    let other = next_page(&client, &view, &first);
    assert!(other.expect_error(400, "InvalidInput").text().contains("begin anew"));
    // The name of an index of another table.
    let again = client.query(&view, &[("$top", "2")]).send().expect(200);
    client.drop_table(&table).expect(204);
    let other = client.new_table();
    insert_all(&client, &other, &[customer(3, "a", "Smith", "Redmond")]);
    build(&client, &other, "ByTown", &json!({ "Keys": "LastName", "BrowseAs": view }));
    next_page(&client, &view, &again).expect_error(400, "InvalidInput");
}

#[test]
fn a_page_of_a_view_that_is_gone_is_of_no_table() {
    let client = shared_client();
    let (_, view) = view(&client);
    let first = client.query(&view, &[("$top", "2")]).send().expect(200);
    client.drop_table(&view).expect(204);
    next_page(&client, &view, &first).expect_error(404, "TableNotFound");
    let undecodable = client.query(&view, &[("NextPartitionKey", "x")]).send();
    undecodable.expect_error(400, "InvalidInput");
}

/// What is passed and what is looked at: kind, index, use, index rows, entities returned and examined.
#[test]
fn no_more_rows_are_looked_at_than_the_keys_ask_for() {
    let client = shared_client();
    let (_, view) = view(&client);
    let explained = |filter: &str| explanation(&explained(&client, &view, &[("$filter", filter)]));
    for (filter, expected) in [
        ("", "6 6/6"),
        ("PartitionKey eq 'Redmond'", "3 3/3"),
        ("PartitionKey eq 'Redmond' and RowKey eq 'Smith|a|0003'", "0 1/1"),
        ("PartitionKey eq 'Redmond' and RowKey eq 'Smith|a|0004'", "0 0/0"),
        ("PartitionKey eq 'Redmond' and RowKey ge 'Smith|a|' and RowKey lt 'Smith|a}'", "1 1/1"),
        ("PartitionKey eq 'Redmond' and RowKey ge 'Sm' and RowKey lt 'Sn'", "2 2/2"),
        ("PartitionKey ge 'Redmond' and LastName eq 'Brown'", "6 1/4"),
    ] {
        let expected = format!("index ByTown browsed {expected}");
        assert_eq!(explained(filter), expected, "{filter}");
    }
}
