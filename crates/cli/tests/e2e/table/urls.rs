//! Addresses: keys in URLs, styles of the service root, the secondary (wire-reference 1, 2.2, 10.3).

use serde_json::json;

use crate::support::client::entity_path;
use crate::support::{Client, shared_client};

/// 1.3 and 2.2: keys with everything in them, found again by their own Location.
#[test]
fn keys_survive_the_url() {
    let client = shared_client();
    let table = client.new_table();
    for (partition, row) in [
        ("", ""),
        ("O'Brien", "it''s"),
        ("a,b)=(c", "x y"),
        ("%20", "100%"),
        ("a+b", "&=;@$"),
        ("A'aaa\"_b", "\u{e9}\u{20ac}\u{1f600}"),
        ("PartitionKey='x'", ".."),
    ] {
        let entity = json!({"PartitionKey": partition, "RowKey": row, "A": 1});
        let inserted = client.insert(&table, &entity).expect(204);
        let found = client.entity(&table, (partition, row)).expect(200);
        assert_eq!(found.json()["PartitionKey"], partition);
        assert_eq!(found.json()["RowKey"], row);
        let location = inserted.header("location").expect("a location");
        let path = location.strip_prefix(&client.base()).expect("below the root");
        assert_eq!(client.get(path).send().expect(200).etag(), found.etag(), "{location}");
    }
}

/// 2.2: quotes doubled and raw, the rest percent-encoded.
#[test]
fn a_location_is_encoded_as_the_service_does() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "A'aaa\"_b", "RowKey": "\u{e9}"});
    let inserted = client.insert(&table, &entity).expect(204);
    let expected = format!("{}/{table}(PartitionKey='A''aaa%22_b',RowKey='%C3%A9')", client.base());
    assert_eq!(inserted.header("location"), Some(expected.as_str()));
}

/// 1.3: encoded quotes, keys in the other order, blanks.
#[test]
fn spellings_of_a_key_predicate() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    for predicate in [
        "(PartitionKey=%27p%27,RowKey=%27r%27)",
        "(RowKey='r',PartitionKey='p')",
        "(PartitionKey='p',%20RowKey='r')",
    ] {
        client.get(format!("/{table}{predicate}")).send().expect(200);
    }
    for predicate in ["('p')", "(PartitionKey='p')", "(PartitionKey='p',RowKey='r',X='x')"] {
        for suffix in ["", "?$top=10"] {
            let refused = client.get(format!("/{table}{predicate}{suffix}")).send();
            let refused = refused.expect_error(400, "InvalidInput");
            assert_eq!(
                refused.message(),
                format!(
                    "The number of keys specified in the URI does not match number of key properties \
                     for the resource '{}.{table}'.",
                    client.account
                )
            );
        }
    }
    client.get("/Tables(%27missing%27)").send().expect_error(404, "ResourceNotFound");
}

/// 1.2: what follows a table's name, and service calls below a table.
#[test]
fn paths_beyond_the_table() {
    let client = shared_client();
    let table = client.new_table();
    let post = |path: String| client.post(path, &json!({"TableName": table})).send();
    post("/missing/Tables".to_owned()).expect_error(404, "TableNotFound");
    post(format!("/{table}/Tables")).expect_error(400, "PropertiesNeedValue");
    let delete = client.delete(format!("/{table}/Tables('{table}')")).send();
    delete.expect_error(400, "InvalidInput");
    let service = client.get(format!("/{table}?restype=service&comp=properties")).send();
    service.expect_error(400, "InvalidQueryParameterValue");
    client.get(entity_path(&table, "p", "r")).send().expect_error(404, "ResourceNotFound");
}

/// 1.1: the account in the host name.
#[test]
fn host_style() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    let port = client.server().address().port();
    let host = format!("{}.table.localhost:{port}", client.account);
    // Signed over the path as sent, which has no account in it.
    let mut by_host = client.as_other(client.credentials.clone());
    by_host.root = String::new();
    let raw = by_host.request("GET", entity_path(&table, "p", "r").trim_start_matches('/'));
    let found = raw.header("Host", &host).send().expect(200);
    assert_eq!(found.json()["odata.metadata"], format!("http://{host}/$metadata#{table}/@Element"));
}

fn secondary(client: &Client) -> Client {
    let mut secondary = client.as_other(client.credentials.clone());
    secondary.root = format!("{}-secondary", client.account);
    secondary
}

/// 10.4 and 12.3: the secondary reads, and refuses to write.
#[test]
fn the_secondary_is_read_only() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    client.insert(&table, &entity).expect(204);
    let secondary = secondary(&client);
    secondary.entity(&table, ("p", "r")).expect(200);
    assert_eq!(secondary.rows(&table, ""), ["r"]);
    secondary.get("/Tables").send().expect(200);
    let batch = crate::support::Batch::new().insert(&client, &table, &entity);
    for refused in [
        secondary.insert(&table, &entity),
        secondary.put(&table, ("p", "r"), &entity).send(),
        secondary.merge(&table, ("p", "r"), &entity).send(),
        secondary.remove(&table, ("p", "r"), "*"),
        secondary.create_table("another"),
        secondary.drop_table(&table),
        batch.send(&secondary).response,
        secondary.request("PUT", format!("/{table}?comp=acl")).send(),
        secondary.request("PUT", "/?restype=service&comp=properties").send(),
    ] {
        let refused = refused.expect_error(403, "InsufficientAccountPermissions");
        assert_eq!(refused.message(), "Write operations are not allowed.");
    }
    client.entity(&table, ("p", "r")).expect(200);
}

/// 12.3: statistics are the secondary's to give.
#[test]
fn stats_are_told_by_the_secondary() {
    let client = shared_client();
    let path = "/?restype=service&comp=stats";
    let stats = secondary(&client).get(path).send().expect(200);
    assert_eq!(stats.header("content-type"), Some("application/xml"));
    let text = stats.text().trim_start_matches('\u{feff}');
    let start = "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>\
        <Status>live</Status><LastSyncTime>";
    let rest = text.strip_prefix(start).unwrap_or_else(|| panic!("{text}"));
    let time = rest.strip_suffix("</LastSyncTime></GeoReplication></StorageServiceStats>");
    httpdate::parse_http_date(time.expect("the end")).expect("a date");
    client.get(path).send().expect_error(400, "InvalidQueryParameterValue");
}

/// Paths that are no text, or lead nowhere, are answered.
#[test]
fn unreadable_paths() {
    let client = shared_client();
    let table = client.new_table();
    for path in [
        format!("/{table}(PartitionKey='%FF',RowKey='r')"),
        format!("/{table}(PartitionKey='p,RowKey='r')"),
        format!("/{table}(PartitionKey='p',RowKey='r'"),
        format!("/{table}()?$filter=%FF"),
    ] {
        let refused = client.get(&path).send();
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.code().is_some(), "{}", refused.text());
    }
}
