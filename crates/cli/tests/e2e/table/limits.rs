//! The limits of section 5: what just fits, and the code of what just does not.

use std::io::BufReader;
use std::net::TcpStream;

use serde_json::{Map, Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::{Scheme, SignedRequest};

use crate::support::client::{entity_path, query_string, values};
use crate::support::{Batch, Client, KEY, Response, encode, http, now, shared_client};

fn entity(row: &str, members: impl IntoIterator<Item = (String, Value)>) -> Value {
    let mut entity = Map::from_iter([
        ("PartitionKey".to_owned(), json!("p")),
        ("RowKey".to_owned(), json!(row)),
    ]);
    entity.extend(members);
    Value::Object(entity)
}

fn numbered(count: usize) -> impl Iterator<Item = (String, Value)> {
    (0..count).map(|number| (format!("P{number}"), json!(number)))
}

fn insert(client: &Client, table: &str, name: &str, value: Value) -> Response {
    client.insert(table, &entity("r", [(name.to_owned(), value)]))
}

#[test]
fn an_entity_has_252_properties() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &entity("fits", numbered(252))).expect(204);
    let refused = client.insert(&table, &entity("not", numbered(253)));
    let refused = refused.expect_error(400, "TooManyProperties");
    assert_eq!(
        refused.message(),
        "The entity contains more properties than allowed. Each entity can include up to 252 \
         properties to store data. Each entity also has 3 system properties."
    );
    let one_more = json!({"Another": 1});
    let merge = client.merge(&table, ("p", "fits"), &one_more).if_match("*").send();
    merge.expect_error(400, "TooManyProperties");
    let with_null = entity("null", numbered(252).chain([("Nothing".to_owned(), Value::Null)]));
    client.insert(&table, &with_null).expect(204);
}

#[test]
fn a_string_has_64_kib_of_utf16() {
    let client = shared_client();
    let table = client.new_table();
    let units = 32 * 1024;
    insert(&client, &table, "A", json!("a".repeat(units))).expect(204);
    let refused = client.put(&table, ("p", "r"), &json!({"A": "a".repeat(units + 1)})).send();
    let refused = refused.expect_error(400, "PropertyValueTooLarge");
    assert_eq!(
        refused.message(),
        "The property value exceeds the maximum allowed size (64KB). If the property value is a \
         string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    );
    // Three bytes of UTF-8 are one unit; a pair of surrogates is two.
    let put = |text: String| client.put(&table, ("p", "r"), &json!({ "A": text })).send();
    put("\u{20ac}".repeat(units)).expect(204);
    put("\u{1f600}".repeat(units / 2)).expect(204);
    put("\u{1f600}".repeat(units / 2 + 1)).expect_error(400, "PropertyValueTooLarge");
}

#[test]
fn a_binary_has_64_kib() {
    use base64::Engine as _;
    let client = shared_client();
    let table = client.new_table();
    let put = |bytes: usize| {
        let text = base64::engine::general_purpose::STANDARD.encode(vec![7; bytes]);
        let body = json!({"A@odata.type": "Edm.Binary", "A": text});
        client.put(&table, ("p", "r"), &body).send()
    };
    put(64 * 1024).expect(204);
    put(64 * 1024 + 1).expect_error(400, "PropertyValueTooLarge");
}

/// The size model at the end of section 5: 4 + 2 per unit of the keys, per property 8 + 2 per unit of the name + 4 +
/// 2 per unit of a string.
#[test]
fn an_entity_has_1_mib() {
    let client = shared_client();
    let table = client.new_table();
    let strings = |last: usize| {
        let whole = (0..15).map(|n| (format!("P{n:02}"), json!("a".repeat(32 * 1024))));
        whole.chain([("Last".to_owned(), json!("a".repeat(last)))])
    };
    let used = 4 + 2 * (1 + 1) + 15 * (8 + 2 * 3 + 4 + 64 * 1024) + 8 + 2 * 4 + 4;
    let last = (1024 * 1024 - used) / 2;
    client.insert(&table, &entity("a", strings(last))).expect(204);
    let refused = client.insert(&table, &entity("b", strings(last + 1)));
    let refused = refused.expect_error(400, "EntityTooLarge");
    assert_eq!(refused.message(), "The entity is larger than the maximum allowed size (1MB).");
    let merge = client.merge(&table, ("p", "a"), &json!({"More": 1})).if_match("*").send();
    merge.expect_error(400, "EntityTooLarge");
}

#[test]
fn a_body_has_4_mib() {
    let client = shared_client();
    let table = client.new_table();
    let blank = " ".repeat(4 * 1024 * 1024);
    let json = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let insert = |body: String| {
        client.request("POST", format!("/{table}")).body("application/json", body).send()
    };
    insert(format!("{json}{}", &blank[json.len()..])).expect(201);
    insert(format!("{json} {}", &blank[json.len()..])).expect_error(413, "RequestBodyTooLarge");
    // A batch is a body as well, and the connection stays usable or is closed, never stuck.
    let text = "a".repeat(32 * 1024);
    let big =
        |row: usize| entity(&format!("{row}"), (0..15).map(|n| (format!("P{n}"), json!(text))));
    let batch = (0..9).fold(Batch::new(), |batch, row| batch.insert(&client, &table, &big(row)));
    batch.send(&client).response.expect_error(413, "RequestBodyTooLarge");
    let batch = (0..8).fold(Batch::new(), |batch, row| batch.insert(&client, &table, &big(row)));
    batch.send(&client).expect_done(8);
}

/// 5 and 9.5: most clients write all of a body before they read, so the answer must not overtake them with a closed
/// connection: what is somewhat too large has to be taken in and thrown away.
#[test]
fn clients_that_write_first_learn_that_a_body_is_too_large() {
    let client = shared_client();
    let address = client.server().address();
    let target = format!("/{}/Tables", client.root);
    let body = vec![b' '; 8 * 1024 * 1024];
    let (date, key) = (httpdate::fmt_http_date(now()), AccountKey::from_base64(KEY).unwrap());
    let signed = SignedRequest {
        verb: "POST",
        content_md5: "",
        content_type: "",
        date: &date,
        account: &client.account,
        raw_path: &target,
        comp: None,
    };
    let headers = [
        ("Host", address.to_string()),
        ("x-ms-date", date.clone()),
        ("Authorization", signed.sign(Scheme::SharedKey, &key)),
        ("Content-Length", body.len().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    http::write(stream.get_mut(), "POST", &target, &headers, &body).expect("the body is taken");
    http::read(&mut stream).expect("an answer").expect_error(413, "RequestBodyTooLarge");
}

#[test]
fn a_key_has_512_units() {
    let client = shared_client();
    let table = client.new_table();
    let keys = |partition: &str, row: &str| json!({"PartitionKey": partition, "RowKey": row});
    for key in ["k".repeat(512), "\u{20ac}".repeat(512), "\u{1f600}".repeat(256)] {
        client.insert(&table, &keys(&key, "r")).expect(204);
        client.insert(&table, &keys("p", &key)).expect(204);
        client.entity(&table, (&key, "r")).expect(200);
        let longer = format!("{key}x");
        client.insert(&table, &keys(&longer, "r")).expect_error(400, "PropertyValueTooLarge");
        client.insert(&table, &keys("p", &longer)).expect_error(400, "PropertyValueTooLarge");
        let put = client.put(&table, ("p", &longer), &json!({})).send();
        put.expect_error(400, "PropertyValueTooLarge");
    }
}

#[test]
fn forbidden_characters_in_keys() {
    let client = shared_client();
    let table = client.new_table();
    for character in ['/', '\\', '#', '?', '\u{1}', '\u{1f}', '\u{7f}', '\u{9f}'] {
        let key = format!("a{character}b");
        for (name, keys) in [
            ("PartitionKey", json!({"PartitionKey": key, "RowKey": "r"})),
            ("RowKey", json!({"PartitionKey": "p", "RowKey": key})),
        ] {
            let refused = client.insert(&table, &keys).expect_error(400, "OutOfRangeInput");
            assert_eq!(
                refused.message(),
                format!("The '{name}' parameter of value '{key}' is out of range.")
            );
        }
    }
    // 1.3: in URLs reads and writes differ.
    for character in ['#', '?', '\u{80}'] {
        let key = format!("a{character}b");
        client.entity(&table, ("p", &key)).expect_error(404, "ResourceNotFound");
        let put = client.put(&table, ("p", &key), &json!({})).send();
        let put = put.expect_error(400, "OutOfRangeInput");
        assert_eq!(put.message(), "One of the request inputs is out of range.");
    }
    for character in ['/', '\\'] {
        let refused = client.entity(&table, ("p", &format!("a{character}b")));
        let refused = refused.expect_error(400, "InvalidInput");
        assert_eq!(refused.message(), "Bad Request - Error in query syntax.");
    }
    client.entity(&table, ("p", "a\u{1}b")).expect(400);
}

#[test]
fn property_names() {
    let client = shared_client();
    let table = client.new_table();
    insert(&client, &table, &"n".repeat(255), json!(1)).expect(204);
    let put = |name: &str| client.put(&table, ("p", "r"), &json!({ name: 1 })).send();
    let long = put(&"n".repeat(256)).expect_error(400, "PropertyNameTooLong");
    assert_eq!(long.message(), "The property name exceeds the maximum allowed length (255).");
    for name in ["123", "a-b", "a b", "1a"] {
        let bad = put(name).expect_error(400, "PropertyNameInvalid");
        assert_eq!(bad.message(), "The property name is invalid.", "{name}");
    }
    for name in ["_a", "\u{e9}t\u{e9}", "a1"] {
        put(name).expect(204);
    }
    let twice = r#"{"PartitionKey":"p","RowKey":"twice","A":1,"A":2}"#;
    let request = client.request("POST", format!("/{table}")).body("application/json", twice);
    request.send().expect_error(400, "DuplicatePropertiesSpecified");
}

#[test]
fn top_is_0_to_1000() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &entity("r", [])).expect(204);
    let top = |text: &str| client.query(&table, &[("$top", text)]).send();
    for text in ["1001", "-1", "x", "99999999999999999999"] {
        let refused = top(text).expect_error(400, "InvalidInput");
        assert_eq!(refused.message(), "One of the request inputs is not valid.");
    }
    let empty = top("0").expect(200);
    assert!(values(&empty).is_empty());
    assert_eq!(empty.header("x-ms-continuation-NextPartitionKey"), None);
    assert_eq!(values(&top("1000").expect(200)).len(), 1);
}

/// 2.1: a client's own id is echoed up to 1 KiB.
#[test]
fn a_client_request_id_has_1_kib() {
    let client = shared_client();
    let table = client.new_table();
    for (length, echoed) in [(1024, true), (1025, false)] {
        let id = "i".repeat(length);
        let page = client.query(&table, &[]).header("x-ms-client-request-id", &id).send();
        assert_eq!(page.expect(200).header("x-ms-client-request-id").is_some(), echoed);
    }
}

/// Product rule: any well-formed version is served and echoed; what is no version is refused (2.1).
#[test]
fn any_version_is_served() {
    let client = shared_client();
    let table = client.new_table();
    let versioned =
        |version: &str| client.query(&table, &[]).header("x-ms-version", version).send();
    for version in ["2017-04-17", "2020-12-06", "2031-01-01"] {
        assert_eq!(versioned(version).expect(200).header("x-ms-version"), Some(version));
    }
    versioned("latest").expect_error(400, "InvalidHeaderValue");
}

/// A filter as long as those that Orleans sends: 60 KB of row keys, each a point.
#[test]
fn a_url_of_60_kb_is_served() {
    let client = shared_client();
    let table = client.new_table();
    for row in ["00003", "00500", "00999"] {
        client.insert(&table, &entity(row, [])).expect(204);
    }
    let rows: Vec<_> = (0..1600).map(|n| format!("(RowKey eq '{n:05}')")).collect();
    let filter = format!("(PartitionKey eq 'p') and ({})", rows.join(" or "));
    let query = query_string(&[("$filter", &filter)]);
    assert!(query.len() > 60 * 1024, "{}", query.len());
    let page = client.query(&table, &[("$filter", &filter)]).header("x-tavola-explain", "true");
    let page = page.send().expect(200);
    assert_eq!(crate::support::client::row_keys(&values(&page)), ["00003", "00500", "00999"]);
    assert_eq!(page.header("x-tavola-rows-examined"), Some("3"));
    assert_eq!(page.header("x-tavola-query-kind"), Some("point"));
}

/// The HTTP library takes a request target of 65,534 bytes, and says of more that it is too long.
#[test]
fn a_url_has_64_kib_less_two_bytes() {
    let client = shared_client();
    let table = client.new_table();
    let path = |filter: &str| format!("/{table}()?$filter={filter}");
    let fixed = path("A%20eq%20''").len() + client.root.len() + 1;
    let of = |bytes: usize| path(&format!("A%20eq%20'{}'", "a".repeat(bytes - fixed)));
    client.get(of(65_534)).send().expect(200);
    client.get(of(65_535)).send().expect(414);
}

/// 6.2: nesting has a bound, and reaching it is an answer, not an end of the process.
#[test]
fn deep_filters_are_bounded() {
    let client = shared_client();
    let table = client.new_table();
    let filter = format!("{}A eq 1{}", "(".repeat(20_000), ")".repeat(20_000));
    let refused = client.get(format!("/{table}()?$filter={}", encode(&filter))).send();
    assert!([400, 414, 431].contains(&refused.status), "{}", refused.status);
    client.get(entity_path(&table, "p", "r")).send().expect(404);
}

/// Bodies that are nested without end are refused, and the process goes on.
#[test]
fn deep_bodies_are_bounded() {
    let client = shared_client();
    let table = client.new_table();
    let depth = 100_000;
    let nested = format!(
        "{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"A\":{}{}}}",
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let insert = client.request("POST", format!("/{table}")).body("application/json", nested);
    insert.send().expect_error(400, "InvalidInput");
    let xml =
        format!("{}{}", "<SignedIdentifiers>".repeat(depth), "</SignedIdentifiers>".repeat(depth));
    for path in [format!("/{table}?comp=acl"), "/?restype=service&comp=properties".to_owned()] {
        let set = client.request("PUT", path).body("application/xml", xml.clone());
        set.send().expect_error(400, "InvalidXmlDocument");
    }
    let not_text = b"{\"PartitionKey\":\"p\",\"RowKey\":\"\xff\"}";
    let insert = client.request("POST", format!("/{table}")).body("application/json", not_text);
    insert.send().expect_error(400, "InvalidInput");
    assert!(client.rows(&table, "").is_empty());
}
