//! Entities: insert, get, the eight types at the three levels, replace and merge (wire-reference 3.6, 3.8, 4).

use serde_json::{Value, json};

use crate::support::client::{FULL, MINIMAL, NONE, entity_path};
use crate::support::{Client, encode, shared_client};

/// One property of each type, as the full-metadata sample of section 4.1 has them.
fn every_type() -> Value {
    json!({
        "PartitionKey": "p",
        "RowKey": "r",
        "age@odata.type": "Edm.Int64",
        "age": "39",
        "married": true,
        "ratio": 3.1,
        "evenratio": 3.0,
        "birthday@odata.type": "Edm.DateTime",
        "birthday": "1970-10-04T00:00:00.0000000Z",
        "binary@odata.type": "Edm.Binary",
        "binary": "YmluYXJ5",
        "other": 20,
        "clsid@odata.type": "Edm.Guid",
        "clsid": "C9DA6455-213D-42C9-9A79-3E9149A57833",
        "name": "  Jos\u{e9} ",
        "nan@odata.type": "Edm.Double",
        "nan": "NaN",
    })
}

/// Takes the timestamp out of a body, which must be the one of the ETag (8).
fn timestamp(body: &str, etag: &str) -> String {
    let (_, rest) = body.split_once("\"Timestamp\":\"").expect("a timestamp");
    let (timestamp, _) = rest.split_once('"').expect("its end");
    let expected = format!("W/\"datetime'{}'\"", timestamp.replace(':', "%3A"));
    assert_eq!(etag, expected);
    timestamp.to_owned()
}

/// 3.6: 201 with the entity as it is stored, its ETag and its address.
#[test]
fn insert_answers_201_with_the_entity() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "p", "RowKey": "r", "A": 1});
    let inserted = client.post(format!("/{table}"), &entity).send().expect(201);
    let url = format!("{}/{table}(PartitionKey='p',RowKey='r')", client.base());
    assert_eq!(inserted.header("location"), Some(url.as_str()));
    assert_eq!(inserted.header("dataserviceid"), None);
    assert_eq!(inserted.header("preference-applied"), None);
    assert_eq!(inserted.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(inserted.header("cache-control"), Some("no-cache"));
    let etag = inserted.etag();
    let timestamp = timestamp(inserted.text(), &etag);
    assert_eq!(
        inserted.text(),
        format!(
            "{{\"odata.metadata\":\"{}/$metadata#{table}/@Element\",\"odata.etag\":{},\
             \"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"{timestamp}\",\"A\":1}}",
            client.base(),
            json!(etag)
        )
    );
}

/// 3.6: `return-no-content`.
#[test]
fn insert_is_silent_when_asked() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    let inserted = client.insert(&table, &entity).expect(204);
    let url = format!("{}/{table}(PartitionKey='p',RowKey='r')", client.base());
    assert_eq!(inserted.header("location"), Some(url.as_str()));
    assert_eq!(inserted.header("dataserviceid"), Some(url.as_str()));
    assert_eq!(inserted.header("preference-applied"), Some("return-no-content"));
    assert_eq!(inserted.etag(), client.entity(&table, ("p", "r")).expect(200).etag());
    let again = client.insert(&table, &entity).expect_error(409, "EntityAlreadyExists");
    assert_eq!(again.message(), "The specified entity already exists.");
    assert_eq!(again.header("preference-applied"), Some("return-no-content"));
    assert_eq!(again.header("etag"), None);
}

/// 3.6 and 4.2: keys are strings, and both are there.
#[test]
fn insert_needs_both_keys_as_strings() {
    let client = shared_client();
    let table = client.new_table();
    for entity in [
        json!({"RowKey": "r"}),
        json!({"PartitionKey": "p"}),
        json!({"PartitionKey": "p", "RowKey": null}),
        json!({"A": 1}),
    ] {
        let refused = client.insert(&table, &entity).expect_error(400, "PropertiesNeedValue");
        assert_eq!(
            refused.message(),
            "The values are not specified for all properties in the entity."
        );
    }
    for entity in [
        json!({"PartitionKey": 1, "RowKey": "r"}),
        json!({"PartitionKey": "p", "RowKey": true}),
        json!({"PartitionKey": "1", "PartitionKey@odata.type": "Edm.Int64", "RowKey": "r"}),
    ] {
        let refused = client.insert(&table, &entity).expect_error(400, "InvalidInput");
        assert_eq!(refused.message(), "One of the request inputs is not valid.", "{entity}");
    }
    let missing = client.insert("missing", &json!({"PartitionKey": "p", "RowKey": "r"}));
    let missing = missing.expect_error(404, "TableNotFound");
    assert_eq!(missing.message(), "The table specified does not exist.");
    assert_eq!(missing.header("cache-control"), None);
}

/// 11.1: the shape of an error, byte by byte; the request id is the header's.
#[test]
fn an_error_has_the_exact_shape() {
    let client = shared_client();
    let table = client.new_table();
    let path = entity_path(&table, "p", "missing");
    let missing = client.get(&path).header("x-ms-client-request-id", "my own id").send();
    assert_eq!(missing.status, 404);
    let id = missing.header("x-ms-request-id").expect("an id");
    let text = missing.text();
    let (_, time) = text.rsplit_once("\\nTime:").expect("a time");
    let time = time.strip_suffix("\"}}}").expect("the end");
    assert_eq!(time.len(), "2017-11-10T02:44:39.9404831Z".len(), "{time}");
    assert_eq!(
        text,
        format!(
            "{{\"odata.error\":{{\"code\":\"ResourceNotFound\",\"message\":{{\"lang\":\"en-US\",\
             \"value\":\"The specified resource does not exist.\\nRequestId:{id}\\nTime:{time}\"}}}}}}"
        )
    );
    assert_eq!(
        missing.header("content-type"),
        Some("application/json;odata=minimalmetadata;streaming=true;charset=utf-8")
    );
    assert_eq!(missing.header("x-ms-client-request-id"), Some("my own id"));
    assert_eq!(missing.header("etag"), None);
    let none = client.get(&path).accept(NONE).send();
    assert_eq!(
        none.header("content-type"),
        Some("application/json;odata=nometadata;streaming=true;charset=utf-8")
    );
}

fn golden(client: &Client, table: &str, level: &str) -> (String, String, String) {
    let found = client.get(entity_path(table, "p", "r")).accept(level).send().expect(200);
    let etag = found.etag();
    let timestamp = timestamp(found.text(), &etag);
    (found.text().to_owned(), json!(etag).to_string(), timestamp)
}

/// 4.1: the sample of the reference, member by member, at each level.
#[test]
fn an_entity_at_each_metadata_level() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &every_type()).expect(204);
    let (base, account) = (client.base(), &client.account);
    let typed = "\"age@odata.type\":\"Edm.Int64\",\"age\":\"39\",\"married\":true,\"ratio\":3.1,\
        \"evenratio\":3.0,\"birthday@odata.type\":\"Edm.DateTime\",\"birthday\":\"1970-10-04T00:00:00Z\",\
        \"binary@odata.type\":\"Edm.Binary\",\"binary\":\"YmluYXJ5\",\"other\":20,\
        \"clsid@odata.type\":\"Edm.Guid\",\"clsid\":\"c9da6455-213d-42c9-9a79-3e9149a57833\",\
        \"name\":\"  Jos\u{e9} \",\"nan@odata.type\":\"Edm.Double\",\"nan\":\"NaN\"";

    let (full, etag, time) = golden(&client, &table, FULL);
    // Properties come in the order of the insert or sorted; the members before them are fixed.
    let head = format!(
        "{{\"odata.metadata\":\"{base}/$metadata#{table}/@Element\",\"odata.type\":\"{account}.{table}\",\
         \"odata.id\":\"{base}/{table}(PartitionKey='p',RowKey='r')\",\"odata.etag\":{etag},\
         \"odata.editLink\":\"{table}(PartitionKey='p',RowKey='r')\",\"PartitionKey\":\"p\",\
         \"RowKey\":\"r\",\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"{time}\","
    );
    assert_members(&full, &head, typed);

    let (minimal, etag, time) = golden(&client, &table, MINIMAL);
    let head = format!(
        "{{\"odata.metadata\":\"{base}/$metadata#{table}/@Element\",\"odata.etag\":{etag},\
         \"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"{time}\","
    );
    assert_members(&minimal, &head, typed);

    let (none, _, time) = golden(&client, &table, NONE);
    let head = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"{time}\",");
    let untyped = "\"age\":\"39\",\"married\":true,\"ratio\":3.1,\"evenratio\":3.0,\
        \"birthday\":\"1970-10-04T00:00:00Z\",\"binary\":\"YmluYXJ5\",\"other\":20,\
        \"clsid\":\"c9da6455-213d-42c9-9a79-3e9149a57833\",\"name\":\"  Jos\u{e9} \",\"nan\":\"NaN\"";
    assert_members(&none, &head, untyped);
}

/// The head as given, then the properties in any order, each annotation directly before its value.
#[track_caller]
fn assert_members(text: &str, head: &str, properties: &str) {
    let rest = text.strip_prefix(head).unwrap_or_else(|| panic!("{text}\nis not\n{head}"));
    let rest = rest.strip_suffix('}').expect("one object");
    let mut found = members(rest);
    let mut expected = members(properties);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// Members with their annotations; no value of these tests has a comma.
fn members(text: &str) -> Vec<String> {
    let mut members: Vec<String> = Vec::new();
    let mut annotation = String::new();
    for member in text.split(',') {
        if member.contains("@odata.type") {
            annotation = format!("{member},");
        } else {
            members.push(format!("{}{member}", std::mem::take(&mut annotation)));
        }
    }
    members
}

/// 3.9 and 4.1: a query at each level; the object has two members and no other (Java).
#[test]
fn a_query_at_each_metadata_level() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r", "A": 1})).expect(204);
    let etag = json!(client.entity(&table, ("p", "r")).etag()).to_string();
    let (base, account) = (client.base(), &client.account);
    let page = |level: &str| client.query(&table, &[]).accept(level).send().expect(200);
    let time = timestamp(page(NONE).text(), &client.entity(&table, ("p", "r")).etag());
    assert_eq!(page(MINIMAL).header("etag"), None);
    assert_eq!(
        page(MINIMAL).text(),
        format!(
            "{{\"odata.metadata\":\"{base}/$metadata#{table}\",\"value\":[{{\"odata.etag\":{etag},\
             \"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"{time}\",\"A\":1}}]}}"
        )
    );
    assert_eq!(
        page(NONE).text(),
        format!(
            "{{\"value\":[{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"{time}\",\"A\":1}}]}}"
        )
    );
    assert_eq!(
        page(FULL).text(),
        format!(
            "{{\"odata.metadata\":\"{base}/$metadata#{table}\",\"value\":[{{\
             \"odata.type\":\"{account}.{table}\",\
             \"odata.id\":\"{base}/{table}(PartitionKey='p',RowKey='r')\",\"odata.etag\":{etag},\
             \"odata.editLink\":\"{table}(PartitionKey='p',RowKey='r')\",\"PartitionKey\":\"p\",\
             \"RowKey\":\"r\",\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"{time}\",\"A\":1}}]}}"
        )
    );
}

/// 2.3: `$format` wins over Accept; several values are fine; what is not JSON is refused.
#[test]
fn the_level_is_negotiated() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    let level = |format: &str, accept: &str| {
        let path = match format {
            "" => format!("/{table}()"),
            format => format!("/{table}()?%24format={}", encode(format)),
        };
        client.get(path).accept(accept).send()
    };
    for (format, accept, expected) in [
        (NONE, FULL, "nometadata"),
        ("", "application/json", "minimalmetadata"),
        ("", "application/json; odata=fullmetadata", "fullmetadata"),
        ("", "application/json, application/json; odata=minimalmetadata", "minimalmetadata"),
        ("", "*/*", "minimalmetadata"),
    ] {
        let content_type =
            format!("application/json;odata={expected};streaming=true;charset=utf-8");
        let page = level(format, accept).expect(200);
        assert_eq!(page.header("content-type"), Some(content_type.as_str()), "{format} {accept}");
    }
    level("", "application/json;odata=verbose").expect_error(415, "JsonVerboseFormatNotSupported");
    level("", "application/atom+xml").expect(415);
    level("", "image/png").expect_error(415, "MediaTypeNotSupported");
    client.remove(&table, ("p", "r"), "*").expect(204);
}

fn stored(client: &Client, table: &str, row: &str, members: &Value) -> Value {
    let mut entity = json!({"PartitionKey": "p", "RowKey": row});
    entity.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    client.insert(table, &entity).expect(204);
    client.entity(table, ("p", row)).expect(200).json()
}

/// 4.2: the forms in which values come, and the one in which they go.
#[test]
fn values_are_stored_by_type() {
    let client = shared_client();
    let table = client.new_table();
    let date = |text: &str| json!({"V@odata.type": "Edm.DateTime", "V": text});
    let double = |value: Value| json!({"V@odata.type": "Edm.Double", "V": value});
    for (index, (sent, value, annotation)) in [
        (json!({"V": 2_147_483_647}), json!(2_147_483_647), None),
        (json!({"V": -2_147_483_648_i64}), json!(-2_147_483_648_i64), None),
        (json!({"V": 2_147_483_648_i64}), json!(2_147_483_648.0), None),
        (json!({"V@odata.type": "Edm.Int32", "V": 5}), json!(5), None),
        (
            json!({"V@odata.type": "Edm.Int64", "V": "-9223372036854775808"}),
            json!("-9223372036854775808"),
            Some("Edm.Int64"),
        ),
        (double(json!(5)), json!(5.0), None),
        (double(json!("3.25")), json!(3.25), None),
        (double(json!("-Infinity")), json!("-Infinity"), Some("Edm.Double")),
        (json!({"V": -0.0}), json!(0.0), None),
        (json!({"V@odata.type": "Edm.Boolean", "V": "true"}), json!(true), None),
        (date("2020-01-02"), json!("2020-01-02T00:00:00Z"), Some("Edm.DateTime")),
        (date("2020-01-02T03:04:05.200Z"), json!("2020-01-02T03:04:05.2Z"), Some("Edm.DateTime")),
        (
            date("2020-01-02T03:04:05.1234567"),
            json!("2020-01-02T03:04:05.1234567Z"),
            Some("Edm.DateTime"),
        ),
        (date("2020-01-02T03:04:05+01:00"), json!("2020-01-02T02:04:05Z"), Some("Edm.DateTime")),
        (date("1601-01-01T00:00:00Z"), json!("1601-01-01T00:00:00Z"), Some("Edm.DateTime")),
        (
            date("9999-12-31T23:59:59.9999999Z"),
            json!("9999-12-31T23:59:59.9999999Z"),
            Some("Edm.DateTime"),
        ),
        (json!({"V": ""}), json!(""), None),
        (json!({"V@odata.type": "Edm.Binary", "V": ""}), json!(""), Some("Edm.Binary")),
    ]
    .into_iter()
    .enumerate()
    {
        let found = stored(&client, &table, &index.to_string(), &sent);
        assert_eq!(found["V"], value, "{sent}");
        assert_eq!(found["V@odata.type"].as_str(), annotation, "{sent}");
    }
}

/// 4.2: a double is written with a point or an exponent, so that clients do not take it for an Int32.
#[test]
fn a_double_never_looks_like_an_integer() {
    let client = shared_client();
    let table = client.new_table();
    let body =
        r#"{"PartitionKey":"p","RowKey":"r","A":5.0,"B":1e20,"C":1.5e-7,"D":123456789012.0}"#;
    let insert = client.request("POST", format!("/{table}")).body("application/json", body);
    insert.send().expect(201);
    let found = client.entity(&table, ("p", "r")).expect(200);
    for name in ["A", "B", "C", "D"] {
        let (_, rest) = found.text().split_once(&format!("\"{name}\":")).unwrap();
        let number = rest.split([',', '}']).next().unwrap();
        assert!(number.contains(['.', 'e', 'E']), "{name} {number}");
    }
    assert_eq!(found.json()["B"], json!(1e20));
    assert_eq!(found.json()["C"], json!(1.5e-7));
}

/// 4.2: what cannot be read as its type.
#[test]
fn values_that_are_not_of_their_type_are_refused() {
    let client = shared_client();
    let table = client.new_table();
    let typed = |edm: &str, value: Value| json!({"PartitionKey": "p", "RowKey": "r", "V@odata.type": edm, "V": value});
    let processing = "An error occurred while processing this request.";
    for (entity, message) in [
        (typed("Edm.Int32", json!(2_147_483_648_i64)), Some(processing)),
        (typed("Edm.Int64", json!("9223372036854775808")), Some(processing)),
        (typed("Edm.Int64", json!("abc")), Some(processing)),
        (typed("Edm.Guid", json!("not-a-guid")), Some(processing)),
        (typed("Edm.DateTime", json!("yesterday")), Some(processing)),
        (typed("Edm.Binary", json!("***")), Some(processing)),
        (json!({"PartitionKey": "p", "RowKey": "r", "V": [1]}), None),
        (json!({"PartitionKey": "p", "RowKey": "r", "V": {"a": 1}}), None),
    ] {
        let refused = client.insert(&table, &entity).expect_error(400, "InvalidInput");
        if let Some(message) = message {
            assert_eq!(refused.message(), message, "{entity}");
        }
    }
    let early = typed("Edm.DateTime", json!("0001-01-01T00:00:00Z"));
    let refused = client.insert(&table, &early).expect_error(400, "OutOfRangeInput");
    assert_eq!(
        refused.message(),
        "The 'V' parameter of value '01/01/0001 00:00:00' is out of range."
    );
    let broken = client.request("POST", format!("/{table}")).body("application/json", "{\"A\":");
    broken.send().expect_error(400, "InvalidInput");
}

/// 4.3: members that a server must ignore, as clients write them back.
#[test]
fn system_members_are_ignored_on_write() {
    let client = shared_client();
    let table = client.new_table();
    let found = stored(
        &client,
        &table,
        "r",
        &json!({
            "Timestamp": "0001-01-01T00:00:00Z",
            "odata.etag": "W/\"x\"",
            "odata.metadata": "anything",
            "PartitionKey@odata.type": "Edm.String",
            "A@odata.type@odata.type": "Edm.String",
            "A@odata.type": "Edm.String",
            "A": "a",
            "Gone": null,
            "etag": "mine",
            "birthday": 1,
            "Birthday": 2,
        }),
    );
    assert_ne!(found["Timestamp"], "0001-01-01T00:00:00Z");
    assert_eq!(found["A"], "a");
    assert_eq!(found["etag"], "mine");
    assert_eq!((&found["birthday"], &found["Birthday"]), (&json!(1), &json!(2)));
    assert!(found.get("Gone").is_none());
    let null = json!({"PartitionKey": "p", "RowKey": "n", "Timestamp": null});
    client.insert(&table, &null).expect(204);
}

/// 3.7: replace drops what is not in the payload, merge keeps it, and null in a merge does nothing.
#[test]
fn replace_drops_and_merge_keeps() {
    let client = shared_client();
    let table = client.new_table();
    let keys = ("p", "r");
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r", "A": 1, "B": 2})).expect(204);
    let merge = json!({"B": null, "C": 3, "A": "text"});
    client.merge(&table, keys, &merge).if_match("*").send().expect(204);
    let merged = client.entity(&table, keys).expect(200).json();
    assert_eq!((&merged["A"], &merged["B"], &merged["C"]), (&json!("text"), &json!(2), &json!(3)));
    client.put(&table, keys, &json!({"D": 4})).if_match("*").send().expect(204);
    let replaced = client.get(entity_path(&table, "p", "r")).accept(NONE).send().expect(200).json();
    let names: Vec<_> = replaced.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["D", "PartitionKey", "RowKey", "Timestamp"]);
}

/// 3.7: keys in the URL count; those in the body are ignored, since Go doubles their quotes.
#[test]
fn keys_in_the_body_of_an_update_are_ignored() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "O''Brien", "RowKey": "other", "A": 1});
    client.put(&table, ("O'Brien", "r"), &entity).send().expect(204);
    let found = client.entity(&table, ("O'Brien", "r")).expect(200).json();
    assert_eq!((&found["PartitionKey"], &found["RowKey"]), (&json!("O'Brien"), &json!("r")));
    assert_eq!(client.matches(&table, "").len(), 1);
}

/// 8: every write changes the ETag, and later is greater.
#[test]
fn etags_grow_with_every_write() {
    let client = shared_client();
    let table = client.new_table();
    let keys = ("p", "r");
    let mut last = String::new();
    for number in 0..50 {
        let body = json!({ "A": number });
        let written = match number % 2 {
            0 => client.put(&table, keys, &body).send().expect(204),
            _ => client.merge(&table, keys, &body).send().expect(204),
        };
        assert_eq!(written.header("location"), None);
        let etag = padded(&written.etag());
        assert!(etag > last, "{etag} after {last}");
        last = etag;
    }
    let found = client.entity(&table, keys).expect(200);
    assert_eq!(padded(&found.etag()), last);
    timestamp(found.text(), &found.etag());
}

/// The time of an ETag with all its digits, so that texts compare as times.
fn padded(etag: &str) -> String {
    let time = etag.trim_start_matches("W/\"datetime'").trim_end_matches("Z'\"");
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{seconds}.{fraction:0<7}")
}

/// 3.8 and 6.1: `$select` on one entity, with null for what it lacks and the list in the metadata.
#[test]
fn get_entity_selects_properties() {
    let client = shared_client();
    let table = client.new_table();
    let entity =
        json!({"PartitionKey": "p", "RowKey": "r", "A@odata.type": "Edm.Int64", "A": "1", "B": 2});
    client.insert(&table, &entity).expect(204);
    let path = format!("{}?$select=A,Missing", entity_path(&table, "p", "r"));
    let found = client.get(path).send().expect(200);
    assert_eq!(
        found.text(),
        format!(
            "{{\"odata.metadata\":\"{}/$metadata#{table}/@Element&$select=A,Missing\",\
             \"odata.etag\":{},\"A@odata.type\":\"Edm.Int64\",\"A\":\"1\",\"Missing\":null}}",
            client.base(),
            json!(found.etag())
        )
    );
    client.entity(&table, ("p", "x")).expect_error(404, "ResourceNotFound");
    client.entity("missing", ("p", "r")).expect_error(404, "TableNotFound");
}

/// 1.2 and 2.2: a table is found in any case, and echoes use the case of the request.
#[test]
fn a_table_is_addressed_in_any_case() {
    let client = shared_client();
    let table = client.new_table();
    let lower = table.to_lowercase();
    client.insert(&lower, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    let page = client.query(&lower, &[]).send().expect(200);
    assert_eq!(page.json()["odata.metadata"], format!("{}/$metadata#{lower}", client.base()));
    client.entity(&table.to_uppercase(), ("p", "r")).expect(200);
}

/// 2.1: a body in chunks, and a content type with anything behind it.
#[test]
fn bodies_in_chunks() {
    let client = shared_client();
    let table = client.new_table();
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let (start, end) = entity.split_at(10);
    let chunks = format!("{:x}\r\n{start}\r\n{:x}\r\n{end}\r\n0\r\n\r\n", start.len(), end.len());
    let request = client.request("POST", format!("/{table}"));
    let request = request.header("Transfer-Encoding", "chunked");
    let request = request.body("application/json; charset=utf-8;odata=nometadata", chunks);
    request.send().expect(201);
    client.entity(&table, ("p", "r")).expect(200);
}

/// 2.2: headers of every answer.
#[test]
fn headers_of_every_answer() {
    let client = shared_client();
    let table = client.new_table();
    for answer in [
        client.query(&table, &[]).send().expect(200),
        client.query("missing", &[]).send().expect(404),
        client.get(format!("/{table}?comp=acl")).send().expect(200),
    ] {
        let server = answer.header("server").expect("a server");
        assert!(server.starts_with("Windows-Azure-Table/1.0"), "{server}");
        httpdate::parse_http_date(answer.header("date").expect("a date")).expect("an HTTP date");
        let id = answer.header("x-ms-request-id").expect("an id");
        let groups: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(answer.header("x-ms-version"), Some("2019-02-02"));
    }
}

/// 3.7 and 8: of those who change one version, one succeeds.
#[test]
fn one_of_many_wins_a_version() {
    let client = shared_client();
    let table = client.new_table();
    let insert = json!({"PartitionKey": "p", "RowKey": "r", "Count": 0});
    for round in 0..5 {
        let entity = json!({"PartitionKey": "p", "RowKey": format!("{round}")});
        let statuses = race(&client, |client| client.insert(&table, &entity).status);
        assert_eq!(statuses, [204, 409, 409, 409]);
    }
    client.insert(&table, &insert).expect(204);
    for _ in 0..5 {
        let etag = client.entity(&table, ("p", "r")).expect(200).etag();
        let statuses = race(&client, |client| {
            client.put(&table, ("p", "r"), &json!({})).if_match(&etag).send().status
        });
        assert_eq!(statuses, [204, 412, 412, 412]);
    }
}

/// What four clients get at the same time, sorted.
fn race(client: &Client, ask: impl Fn(&Client) -> u16 + Sync) -> Vec<u16> {
    let server = client.server();
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..4).map(|_| scope.spawn(|| ask(&Client::new(server)))).collect();
        racers.into_iter().map(|racer| racer.join().expect("an answer")).collect()
    });
    statuses.sort_unstable();
    statuses
}
