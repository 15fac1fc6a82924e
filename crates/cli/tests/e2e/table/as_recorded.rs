//! Points in which the live service differs from its documentation, as recordings and Microsoft's own test suites show
//! them (wire-reference 16 and 17).

use std::sync::Arc;

use serde_json::{Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{Permissions, TableSasSpec};

use crate::support::client::{Client, entity_path, query_string, values};
use crate::support::{Batch, KEY, Launch, Response, minutes_from_now, shared_client};

const NOT_AUTHENTIC: &str = "Server failed to authenticate the request. Make sure the value of Authorization header \
                             is formed correctly including the signature.";
const SEE_CHALLENGE: &str = "Server failed to authenticate the request. Please refer to the information in the \
                             www-authenticate header.";

/// 17: the prefix that `ListTables("employee")` asks for, in any case, in ranges and in pages.
#[test]
fn table_filters_ignore_case() {
    let client = Client::new(&Arc::new(Launch::new().start()));
    for table in ["zebra", "Employee2024", "EMPLOYEE2025", "aardvark", "employees", "Employer"] {
        client.create_table(table).expect(204);
    }
    let page = |options: &[(&str, &str)]| {
        let page = client.get(format!("/Tables{}", query_string(options))).send().expect(200);
        let names: Vec<_> =
            values(&page).iter().map(|table| table["TableName"].to_string()).collect();
        (names.join(" ").replace('"', ""), page)
    };
    let all = "Employee2024 EMPLOYEE2025 employees";
    let prefix = "(TableName ge 'employee') and (TableName lt 'employee{')";
    for (filter, expected) in [
        (prefix, all),
        ("(TableName ge 'EMPLOYEE') and (TableName lt 'EMPLOYEE{')", all),
        ("TableName ge 'Employee' and TableName lt 'employeE{'", all),
        ("TableName eq 'employee2024'", "Employee2024"),
        ("TableName eq 'ZEBRA' or 'AARDVARK' eq TableName", "aardvark zebra"),
        ("not (TableName gt 'EMPLOYEE2024')", "aardvark Employee2024"),
        ("TableName gt 'employees' and TableName ne 'zEBRA'", "Employer"),
    ] {
        assert_eq!(page(&[("$filter", filter)]).0, expected, "{filter}");
    }
    let (first, reply) = page(&[("$filter", prefix), ("$top", "2")]);
    let next = reply.header("x-ms-continuation-NextTableName").expect("another page");
    let rest = page(&[("$filter", prefix), ("$top", "2"), ("NextTableName", next)]).0;
    assert_eq!((first.as_str(), rest.as_str()), ("Employee2024 EMPLOYEE2025", "employees"));
}

/// 17: a mistyped filter is told from one that finds nothing.
#[test]
fn a_key_is_no_operand() {
    let client = shared_client();
    let table = client.new_table();
    let text = |filter: &str| {
        let refused = client.query(&table, &[("$filter", filter)]).send();
        refused.expect_error(400, "InvalidInput").message()
    };
    assert_eq!(
        text("(PartitionKey ) and (RowKey ge '000050')"),
        "A binary operator with incompatible types was detected. Found operand types 'Edm.String' and \
         'Edm.Boolean' for operator kind 'And'."
    );
    assert_eq!(
        text("A eq 1 or Timestamp"),
        "A binary operator with incompatible types was detected. Found operand types 'Edm.Boolean' and \
         'Edm.DateTime' for operator kind 'Or'."
    );
    assert_eq!(
        text("not RowKey"),
        "A unary operator with an incompatible type was detected. Found operand type 'Edm.String' for \
         operator kind 'Not'."
    );
    client.query(&table, &[("$filter", "A and RowKey ge 'x'")]).send().expect(200);
}

fn binary(row: &str, bytes: usize) -> Value {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(vec![0; bytes]);
    json!({"PartitionKey": "p", "RowKey": row, "B@odata.type": "Edm.Binary", "B": text})
}

/// 17: a property of 1 MiB makes the entity too large, a smaller one only itself.
#[test]
fn a_property_as_large_as_an_entity() {
    let client = shared_client();
    let table = client.new_table();
    let letters = |row: &str, units: usize| json!({"PartitionKey": "p", "RowKey": row, "S": "x".repeat(units)});
    for (entity, code) in [
        (binary("r", 1 << 20), "EntityTooLarge"),
        (binary("r", (1 << 20) - 1), "PropertyValueTooLarge"),
        (letters("r", 1 << 19), "EntityTooLarge"),
        (letters("r", (1 << 19) - 1), "PropertyValueTooLarge"),
    ] {
        client.insert(&table, &entity).expect_error(400, code);
        client.put(&table, ("p", "r"), &entity).send().expect_error(400, code);
        let reply = Batch::new().insert(&client, &table, &entity).send(&client);
        let part = reply.parts.into_iter().next().expect("a part").expect_error(400, code);
        if code == "EntityTooLarge" {
            let text = "0:The entity is larger than the maximum allowed size (1MB).";
            assert_eq!(part.message(), text);
        }
    }
}

fn set_rule(
    client: &Client,
    origins: &str,
    methods: &str,
    allowed: &str,
    exposed: &str,
) -> Response {
    let document = format!(
        "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>{origins}</AllowedOrigins>\
         <AllowedMethods>{methods}</AllowedMethods><MaxAgeInSeconds>0</MaxAgeInSeconds>\
         <ExposedHeaders>{exposed}</ExposedHeaders><AllowedHeaders>{allowed}</AllowedHeaders>\
         </CorsRule></Cors></StorageServiceProperties>"
    );
    client.request("PUT", PROPERTIES).body("application/xml", document).send()
}

const PROPERTIES: &str = "/?restype=service&comp=properties";

/// 17 and 16: limits of a CORS rule, its methods, and how its lists read back.
#[test]
fn cors_rules() {
    let client = Client::new(&Arc::new(Launch::new().start()));
    let list = |count: usize| -> String {
        (0..count).map(|number| format!("x-ms-meta-{number}")).collect::<Vec<_>>().join(",")
    };
    let (most, more) = (list(64), list(65));
    for (origins, allowed, exposed) in [
        (more.as_str(), "", ""),
        ("*", more.as_str(), ""),
        ("*", "", more.as_str()),
        ("*", "a*,b*,c*", ""),
        ("*", "", "a*,b*,c*"),
    ] {
        let refused = set_rule(&client, origins, "GET", allowed, exposed);
        refused.expect_error(400, "InvalidXmlNodeValue");
    }
    set_rule(&client, &most, "GET", "", "").expect(202);
    set_rule(&client, "*", "GET", "", &format!("a*,b*,{most}")).expect(202);
    let refused = set_rule(&client, "*", "BREW", "", "").expect_error(400, "InvalidXmlDocument");
    assert_eq!(refused.reason, "XML specified is not syntactically valid.");

    set_rule(&client, "www.xyz.com", "TRACE,CONNECT", "", "a*,b,c*").expect(202);
    let properties = client.get(PROPERTIES).send().expect(200);
    let expected = "<CorsRule><AllowedMethods>TRACE,CONNECT</AllowedMethods><AllowedOrigins>www.xyz.com\
                    </AllowedOrigins><AllowedHeaders /><ExposedHeaders>b,a*,c*</ExposedHeaders>";
    assert!(properties.text().contains(expected), "{}", properties.text());
}

/// 17: the reason of the status line is what `StorageException.Message` shows.
#[test]
fn reasons_of_status_lines() {
    let client = shared_client();
    let table = client.new_table();
    let acl = client.get(format!("/{table}x?comp=acl")).send().expect(404);
    assert_eq!(acl.reason, "The table specified does not exist.");
    let forged =
        client.get("/Tables").header("Authorization", "SharedKeyLite devstoreaccount1:AAAA");
    let forged = forged.header("x-ms-date", httpdate::fmt_http_date(crate::support::now())).send();
    assert_eq!((forged.status, forged.reason.as_str()), (403, NOT_AUTHENTIC));
    let nobody = client.anonymous().get("/Tables").send();
    assert_eq!((nobody.status, nobody.reason.as_str()), (401, SEE_CHALLENGE));
    let xml = client.anonymous().get(PROPERTIES).accept("application/xml").send();
    assert_eq!((xml.status, xml.reason.as_str()), (401, SEE_CHALLENGE));
    // Errors in JSON have the usual one.
    let missing = client.entity(&table, ("p", "r")).expect(404);
    assert_eq!(missing.reason, "Not Found");
}

/// 17 and 16: a path behind a table never answers its entities, and existence comes first.
#[test]
fn paths_behind_a_table() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    for behind in ["Tables", "Tables()", "xyz", "$count", "Tables?$format=application/json", "x/y"]
    {
        let refused = client.get(format!("/{table}/{behind}")).send();
        let refused = refused.expect_error(501, "NotImplemented");
        let text = "The requested operation is not implemented on the specified resource.";
        assert_eq!(refused.message(), text, "{behind}");
        client.get(format!("/nosuch/{behind}")).send().expect_error(404, "TableNotFound");
    }
    client.get(format!("/{table}/")).send().expect(200);
    client.delete("/nosuch/Tables('nosuch')").send().expect_error(404, "TableNotFound");
    let path = format!("/{table}/Tables('{table}')");
    client.delete(path).send().expect_error(400, "InvalidInput");
    for path in ["/nosuch('x')", "/nosuch(PartitionKey='x')"] {
        for method in ["GET", "PUT", "MERGE", "DELETE"] {
            let request = client.request(method, path).if_match("*").json(&json!({}));
            request.send().expect_error(404, "TableNotFound");
        }
    }
    // Recorded: this inserts into the table.
    let entity = json!({"PartitionKey": "p", "RowKey": "s"});
    client.post(format!("/{table}/Tables"), &entity).send().expect(201);
    // The same in a batch.
    let one_key = |table: &str| {
        let path = format!("/{table}('x')");
        let batch = Batch::new().operation(&client, "DELETE", &path, "If-Match: *\r\n", None);
        batch.send(&client).parts.into_iter().next().expect("a part")
    };
    one_key(&table).expect_error(400, "InvalidInput");
    one_key("nosuch").expect_error(404, "TableNotFound");
}

/// 17 and 16: whoever is not known is told so before anything of OData.
#[test]
fn headers_of_failed_authentication() {
    let client = shared_client();
    let nobody = client.anonymous().get("/Tables").send();
    let nobody = nobody.expect_error(401, "NoAuthenticationInformation");
    let forged =
        client.get("/Tables").header("Authorization", "SharedKeyLite devstoreaccount1:AAAA");
    let forged = forged.header("x-ms-date", httpdate::fmt_http_date(crate::support::now())).send();
    let forged = forged.expect_error(403, "AuthenticationFailed");
    let bearer = client.get("/Tables").header("Authorization", "Bearer x.y.z");
    let bearer = bearer.header("x-ms-version", "2020-12-06").send();
    let bearer = bearer.expect_error(401, "InvalidAuthenticationInfo");
    assert_eq!(bearer.message(), SEE_CHALLENGE);
    for refused in [nobody, forged, bearer] {
        assert_eq!(refused.header("content-type"), Some("application/json"));
        assert_eq!(refused.header("x-ms-error-code").map(str::to_owned), refused.code());
        assert_eq!(refused.header("cache-control"), None);
        assert_eq!(refused.header("x-content-type-options"), None);
        assert_eq!(refused.header("www-authenticate").is_some(), refused.status == 401);
    }
}

/// The names of the properties in an entity's JSON, in their order, without those of every entity.
fn order(found: &Response) -> String {
    let text = found.text();
    let (_, rest) = text.split_once("\"Timestamp\":").expect("a timestamp");
    let names =
        rest.split('"').skip(2).filter(|part| part.starts_with(['a', 'b', 'B', '_', '\u{e9}']));
    names.collect::<Vec<_>>().join(" ")
}

/// 16: Insert keeps the order of the properties, everything else sorts them by name.
#[test]
fn order_of_properties() {
    let client = shared_client();
    let table = client.new_table();
    // As text, for a JSON value of this test has no order.
    let members = r#""b":1,"é":2,"a":3,"Birthday":4,"_":5,"ab":6"#;
    let (given, sorted) = ("b \u{e9} a Birthday _ ab", "Birthday _ a ab b \u{e9}");
    let insert = |row: &str| {
        let body = format!(r#"{{"PartitionKey":"p",{members},"RowKey":"{row}"}}"#);
        client
            .request("POST", format!("/{table}"))
            .body("application/json", body)
            .send()
            .expect(201)
    };
    let found = |row: &str| {
        let found = order(&client.entity(&table, ("p", row)).expect(200));
        let filter = format!("PartitionKey eq 'p' and RowKey eq '{row}'");
        let queried = client.query(&table, &[("$filter", &filter)]).send().expect(200);
        assert_eq!(order(&queried), found);
        found
    };
    let body = format!("{{{members}}}");
    assert_eq!(order(&insert("insert")), given);
    assert_eq!(found("insert"), given);
    for (row, method, if_match) in [
        ("upsert", "PUT", None),
        ("upsert-merge", "PATCH", None),
        ("replace", "PUT", Some("*")),
        ("merge", "MERGE", Some("*")),
    ] {
        if if_match.is_some() {
            insert(row);
        }
        let change = client.request(method, entity_path(&table, "p", row));
        let change = change.body("application/json", body.as_str());
        let change = if_match.into_iter().fold(change, |change, etag| change.if_match(etag));
        change.send().expect(204);
        assert_eq!(found(row), sorted, "{row}");
    }
    // A merge of one property sorts them all.
    client.merge(&table, ("p", "insert"), &json!({"a": 7})).if_match("*").send().expect(204);
    assert_eq!(found("insert"), sorted);
}

/// 16: the same for the operations of a transaction.
#[test]
fn order_of_properties_in_a_batch() {
    let client = shared_client();
    let table = client.new_table();
    let insert = |batch: Batch, row: &str| {
        let entity = format!(r#"{{"PartitionKey":"p","RowKey":"{row}","b":1,"a":2,"Birthday":3}}"#);
        batch.insert_text(&client, &table, &entity)
    };
    let batch = ["kept", "merged", "replaced"].into_iter().fold(Batch::new(), insert);
    batch.send(&client).response.expect(202);
    let found = |row: &str| order(&client.entity(&table, ("p", row)).expect(200));
    assert_eq!(found("merged"), "b a Birthday");
    let changes = [
        ("PATCH", "merged", "If-Match: *\r\n"),
        ("PUT", "replaced", "If-Match: *\r\n"),
        ("PATCH", "new", ""),
        ("PUT", "other", ""),
    ];
    let batch = changes.iter().fold(Batch::new(), |batch, (method, row, headers)| {
        let path = entity_path(&table, "p", row);
        batch.text_operation(&client, method, &path, headers, r#"{"b":1,"a":2,"B":3}"#)
    });
    for part in batch.send(&client).parts {
        part.expect(204);
    }
    assert_eq!(found("kept"), "b a Birthday");
    assert_eq!(found("merged"), "B Birthday a b");
    for row in ["replaced", "new", "other"] {
        assert_eq!(found(row), "B a b", "{row}");
    }
}

/// 16: truth values as text in any case, and keys of any type where the URL has them.
#[test]
fn bodies_are_read_generously() {
    let client = shared_client();
    let table = client.new_table();
    for (row, text, value) in [("1", "False", false), ("2", "TRUE", true), ("3", "true", true)] {
        let entity =
            json!({"PartitionKey": "p", "RowKey": row, "B@odata.type": "Edm.Boolean", "B": text});
        client.insert(&table, &entity).expect(204);
        assert_eq!(client.entity(&table, ("p", row)).json()["B"], value);
    }
    let typed = |edm: &str, value: Value| {
        json!({"PartitionKey@odata.type": edm, "PartitionKey": value, "RowKey@odata.type": edm,
               "RowKey": value, "A": edm})
    };
    for (edm, value) in [
        ("Edm.DateTime", json!("2021-01-01T00:00:00Z")),
        ("Edm.Guid", json!("c9da6455-213d-42c9-9a79-3e9149a57833")),
        ("Edm.Binary", json!("YmluYXJ5")),
        ("Edm.Int64", json!("5")),
        ("Edm.Int32", json!(5)),
    ] {
        let body = typed(edm, value);
        client.put(&table, ("p", "t"), &body).send().expect(204);
        client.merge(&table, ("p", "t"), &body).if_match("*").send().expect(204);
        client.request("MERGE", entity_path(&table, "p", "t")).json(&body).send().expect(204);
        let batch = Batch::new().put(&client, &table, ("p", "t"), Some("*"), &body);
        let batch = batch.merge(&client, &table, ("p", "u"), None, &body);
        for part in batch.send(&client).parts {
            part.expect(204);
        }
        let found = client.entity(&table, ("p", "t")).json();
        assert_eq!((&found["RowKey"], &found["A"]), (&json!("t"), &json!(edm)));
        client.insert(&table, &body).expect_error(400, "InvalidInput");
    }
}

/// 16: a weak ETag that no entity has is a condition that fails; what is not weak is no ETag.
#[test]
fn etags_of_nothing() {
    let client = shared_client();
    let table = client.new_table();
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    let etag = client.insert(&table, &entity).expect(204).etag();
    for (if_match, status, code) in [
        ("W/\"wrong\"".to_owned(), 412, "UpdateConditionNotSatisfied"),
        (etag.replace("W/", ""), 400, "InvalidInput"),
        (etag.replace("W/", "w/"), 400, "InvalidInput"),
        ("\"wrong\"".to_owned(), 400, "InvalidInput"),
    ] {
        let put = client.put(&table, ("p", "r"), &entity).if_match(&if_match);
        put.send().expect_error(status, code);
        let merge = client.merge(&table, ("p", "r"), &entity).if_match(&if_match);
        merge.send().expect_error(status, code);
        client.remove(&table, ("p", "r"), &if_match).expect_error(status, code);
        let batch = Batch::new().put(&client, &table, ("p", "r"), Some(&if_match), &entity);
        let part = batch.send(&client).parts.into_iter().next().expect("a part");
        part.expect_error(status, code);
    }
    client.remove(&table, ("p", "none"), "W/\"wrong\"").expect_error(404, "ResourceNotFound");
    assert_eq!(client.entity(&table, ("p", "r")).expect(200).etag(), etag);
}

/// A signature covers one value of each field, so a second one is nobody's.
#[test]
fn a_signature_with_a_field_twice() {
    let client = shared_client();
    let table = client.new_table();
    let key = AccountKey::from_base64(KEY).expect("a key");
    let permissions = Permissions::parse_table("r").expect("permissions");
    let token =
        TableSasSpec::new(&table, permissions, minutes_from_now(60)).sign(&client.account, &key);
    let query = |token: String| client.with_sas(token).query(&table, &[]).send();
    query(token.clone()).expect(200);
    // As the .NET clients write it.
    query(format!("{token}&")).expect(200);
    query(format!("{token}&timeout=5&timeout=6")).expect(200);
    for twice in [
        format!("{token}&sp=r"),
        format!("sp=raud&{token}"),
        format!("{token}&se=2030-01-01"),
        format!("{token}&si=&si="),
        format!("{token}&{token}"),
    ] {
        query(twice).expect_error(403, "AuthenticationFailed");
    }
}
