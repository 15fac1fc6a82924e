//! If-Match against what is stored, by every verb and every way to say it (wire-reference 1.5, 3.7, 8).

use serde_json::json;

use crate::support::client::{Request, entity_path};
use crate::support::{Client, shared_client};

const STALE: &str = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";

/// What an If-Match says of the row.
#[derive(Clone, Copy, Debug)]
enum Condition {
    Absent,
    Any,
    Current,
    Stale,
}

/// The ways in which a client asks for a change.
const WAYS: [(&str, Option<&str>); 8] = [
    ("PUT", None),
    ("PATCH", None),
    ("MERGE", None),
    ("DELETE", None),
    ("POST", Some("MERGE")),
    ("POST", Some("PUT")),
    ("POST", Some("DELETE")),
    ("POST", Some("PATCH")),
];

fn change<'a>(client: &'a Client, path: &str, way: (&str, Option<&str>)) -> Request<'a> {
    let request = client.request(way.0, path);
    let is_delete = way.0 == "DELETE" || way.1 == Some("DELETE");
    let request = if is_delete { request } else { request.json(&json!({"A": 2})) };
    match way.1 {
        Some(method) => request.header("X-HTTP-Method", method),
        None => request,
    }
}

/// 3.7, the whole table: verb x condition x row.
#[test]
fn the_matrix_of_conditions() {
    let client = shared_client();
    let table = client.new_table();
    for (index, way) in WAYS.into_iter().enumerate() {
        let is_delete = way.0 == "DELETE" || way.1 == Some("DELETE");
        for (condition, present, absent) in [
            (
                Condition::Absent,
                if is_delete { 400 } else { 204 },
                if is_delete { 400 } else { 204 },
            ),
            (Condition::Any, 204, 404),
            (Condition::Current, 204, 404),
            (Condition::Stale, 412, 404),
        ] {
            for (exists, expected) in [(true, present), (false, absent)] {
                let row = format!("{index}{condition:?}{exists}");
                let etag = match exists {
                    true => {
                        let entity = json!({"PartitionKey": "p", "RowKey": row, "A": 1});
                        client.insert(&table, &entity).expect(204).etag()
                    }
                    false => STALE.replace("2020", "2021"),
                };
                let request = change(&client, &entity_path(&table, "p", &row), way);
                let answer = match condition {
                    Condition::Absent => request.send(),
                    Condition::Any => request.if_match("*").send(),
                    Condition::Current => request.if_match(&etag).send(),
                    Condition::Stale => request.if_match(STALE).send(),
                };
                let said = format!("{way:?} {condition:?} exists: {exists}");
                assert_eq!(answer.status, expected, "{said} {}", answer.text());
                let code = match expected {
                    404 => Some("ResourceNotFound"),
                    412 => Some("UpdateConditionNotSatisfied"),
                    400 => Some("InvalidInput"),
                    _ => None,
                };
                assert_eq!(answer.code().as_deref(), code, "{said}");
                let has_etag = expected == 204 && !is_delete;
                assert_eq!(answer.header("etag").is_some(), has_etag, "{said}");
                let now = client.entity(&table, ("p", &row)).status;
                let there = match (expected, is_delete) {
                    (204, is_delete) => !is_delete,
                    _ => exists,
                };
                assert_eq!(now == 200, there, "{said}");
            }
        }
    }
}

/// 3.7: what is no ETag, and If-None-Match, which writes do not take.
#[test]
fn malformed_conditions_are_refused() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    let path = entity_path(&table, "p", "r");
    let put = || client.request("PUT", &path).json(&json!({}));
    let refused = put().if_match("abc").send().expect_error(400, "InvalidInput");
    assert_eq!(
        refused.message(),
        "The etag value 'abc' specified in one of the request headers is not valid. Please make \
         sure only one etag value is specified and is valid."
    );
    for garbled in ["\"datetime'garbled'\"", "W/\"datetime'\u{e9}'\""] {
        put().if_match(garbled).send().expect_error(400, "InvalidInput");
    }
    put().if_match("*").if_match("*").send().expect_error(400, "InvalidInput");
    put().header("If-None-Match", "*").send().expect_error(400, "InvalidInput");
    put().if_match("*").header("If-None-Match", "*").send().expect_error(400, "InvalidInput");
    let delete = client.delete(&path).header("If-None-Match", "*");
    delete.send().expect_error(400, "InvalidInput");
    client.entity(&table, ("p", "r")).expect(200);
}

/// 8: clients that decode `%3A`, and Java, which loses the last quote.
#[test]
fn an_etag_is_understood_as_clients_send_it_back() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    let mut etag = client.insert(&table, &entity).expect(204).etag();
    for spelling in [
        |etag: &str| etag.replace("%3A", ":"),
        |etag: &str| etag.trim_end_matches('"').to_owned(),
        |etag: &str| etag.to_owned(),
    ] {
        let put = client.put(&table, ("p", "r"), &entity).if_match(&spelling(&etag));
        etag = put.send().expect(204).etag();
    }
}

/// 1.5: errors of the tunnel.
#[test]
fn a_tunnelled_verb_is_checked() {
    let client = shared_client();
    let table = client.new_table();
    let path = entity_path(&table, "p", "r");
    let get = client.get(&path).header("X-HTTP-Method", "MERGE");
    get.send().expect_error(400, "XMethodNotUsingPost");
    let post = || client.post(&path, &json!({"A": 1}));
    post().header("X-HTTP-Method", "GRAB").send().expect_error(400, "XMethodIncorrectValue");
    let twice = post().header("X-HTTP-Method", "MERGE").header("X-HTTP-Method", "MERGE");
    twice.send().expect_error(400, "XMethodIncorrectCount");
    post().send().expect(405);
    client.request("PUT", format!("/{table}")).json(&json!({})).send().expect(405);
}
