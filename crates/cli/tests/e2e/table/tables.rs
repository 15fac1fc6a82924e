//! Tables: create, list, get, drop, access policies (wire-reference 3.1 to 3.5).

use std::sync::Arc;

use serde_json::json;

use crate::support::client::{FULL, MINIMAL, NONE, unused_name, values};
use crate::support::{Client, Launch, shared_client};

fn table_names(list: &[serde_json::Value]) -> Vec<String> {
    list.iter().map(|table| table["TableName"].as_str().unwrap().to_owned()).collect()
}

/// A client of a server of its own, for tests that list tables.
fn own_client(tables: &[&str]) -> Client {
    let client = Client::new(&Arc::new(Launch::new().start()));
    for table in tables {
        client.create_table(table).expect(204);
    }
    client
}

/// 3.3: without Prefer, 201 with Location and the table as it was created.
#[test]
fn create_table_answers_201_with_the_table() {
    let client = shared_client();
    let name = unused_name();
    let created = client.post("/Tables", &json!({ "TableName": name })).send().expect(201);
    let base = client.base();
    assert_eq!(created.header("location"), Some(format!("{base}/Tables('{name}')").as_str()));
    assert_eq!(
        created.header("content-type"),
        Some("application/json;odata=minimalmetadata;streaming=true;charset=utf-8")
    );
    assert_eq!(created.header("cache-control"), Some("no-cache"));
    assert_eq!(created.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(created.header("x-ms-version"), Some("2019-02-02"));
    assert_eq!(created.header("etag"), None);
    assert_eq!(created.header("dataserviceid"), None);
    assert_eq!(created.header("preference-applied"), None);
    assert_eq!(
        created.text(),
        format!(
            "{{\"odata.metadata\":\"{base}/$metadata#Tables/@Element\",\"TableName\":\"{name}\"}}"
        )
    );
}

/// 3.3: `return-no-content` answers 204 and names the table in two headers.
#[test]
fn create_table_is_silent_when_asked() {
    let client = shared_client();
    let name = unused_name();
    let created = client.create_table(&name).expect(204);
    let url = format!("{}/Tables('{name}')", client.base());
    assert_eq!(created.header("location"), Some(url.as_str()));
    assert_eq!(created.header("dataserviceid"), Some(url.as_str()));
    assert_eq!(created.header("preference-applied"), Some("return-no-content"));
    let echoed = client.post("/Tables", &json!({ "TableName": unused_name() }));
    let echoed = echoed.header("Prefer", "return-content").send().expect(201);
    assert_eq!(echoed.header("preference-applied"), Some("return-content"));
}

/// 3.3: a name is taken whatever its case; the error carries Preference-Applied (2.2).
#[test]
fn create_table_refuses_a_taken_name_in_any_case() {
    let client = shared_client();
    let name = client.new_table();
    for taken in [name.clone(), name.to_lowercase(), name.to_uppercase()] {
        let refused = client.create_table(&taken).expect_error(409, "TableAlreadyExists");
        assert_eq!(refused.message(), "The table specified already exists.");
        assert_eq!(refused.header("preference-applied"), Some("return-no-content"));
    }
}

/// 5: names of tables, with the misspelling that clients look for.
#[test]
fn create_table_checks_the_name() {
    let client = shared_client();
    let length = "The specified resource name length is not within the permissible limits.";
    let characters = "The specifed resource name contains invalid characters.";
    let reserved = "One of the request inputs is not valid.";
    for (name, code, message) in [
        ("ab".to_owned(), "OutOfRangeInput", length),
        ("a".repeat(64), "OutOfRangeInput", length),
        ("1abc".to_owned(), "InvalidResourceName", characters),
        ("my_table".to_owned(), "InvalidResourceName", characters),
        ("my-table".to_owned(), "InvalidResourceName", characters),
        ("$MetricsHourPrimaryTransactionsTable".to_owned(), "InvalidResourceName", characters),
        ("tables".to_owned(), "InvalidInput", reserved),
        ("TABLES".to_owned(), "InvalidInput", reserved),
    ] {
        let refused = client.create_table(&name).expect_error(400, code);
        assert_eq!(refused.message(), message, "{name}");
    }
    for body in
        ["", "{}", "[]", "{\"TableName\":5}", "{\"TableName\":null}", "{\"TableName\":\"abc\""]
    {
        client.request("POST", "/Tables").body("application/json", body).send().expect(400);
    }
    client.create_table(&"a".repeat(63)).expect(204);
    client.create_table("abc").expect(204);
}

/// 5: the same checks come before existence in entity and ACL calls.
#[test]
fn every_call_checks_the_name_of_its_table() {
    let client = shared_client();
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    client.insert("my_table", &entity).expect_error(400, "InvalidResourceName");
    client.entity("ab", ("p", "r")).expect_error(400, "OutOfRangeInput");
    client.query("1abc", &[]).send().expect_error(400, "InvalidResourceName");
    client.get("/ab?comp=acl").send().expect_error(400, "OutOfRangeInput");
}

/// 3.2 and 4.1: one table at each level.
#[test]
fn get_table_answers_the_table() {
    let client = shared_client();
    let name = client.new_table();
    let path = format!("/Tables('{name}')");
    let base = client.base();
    let minimal = client.get(&path).accept(MINIMAL).send().expect(200);
    assert_eq!(
        minimal.text(),
        format!(
            "{{\"odata.metadata\":\"{base}/$metadata#Tables/@Element\",\"TableName\":\"{name}\"}}"
        )
    );
    let none = client.get(&path).accept(NONE).send().expect(200);
    assert_eq!(none.text(), format!("{{\"TableName\":\"{name}\"}}"));
    let full = client.get(&path).accept(FULL).send().expect(200).json();
    assert_eq!(full["odata.type"], format!("{}.Tables", client.account));
    assert_eq!(full["odata.id"], format!("{base}/Tables('{name}')"));
    assert_eq!(full["odata.editLink"], format!("Tables('{name}')"));
    client.get("/Tables('missing')").send().expect_error(404, "ResourceNotFound");
}

/// 3.4: 204; the second time 404 ResourceNotFound, not TableNotFound.
#[test]
fn delete_table_removes_it_with_its_entities() {
    let client = shared_client();
    let name = client.new_table();
    client.insert(&name, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    let deleted = client.drop_table(&name.to_lowercase()).expect(204);
    assert!(deleted.body.is_empty());
    client.drop_table(&name).expect_error(404, "ResourceNotFound");
    client.entity(&name, ("p", "r")).expect_error(404, "TableNotFound");
    client.create_table(&name).expect(204);
    client.entity(&name, ("p", "r")).expect_error(404, "ResourceNotFound");
}

/// 3.1: the list, in order and in the case of creation.
#[test]
fn query_tables_lists_all_in_order() {
    let client = own_client(&["beta", "Alpha", "gamma"]);
    let base = client.base();
    let minimal = client.get("/Tables").accept(MINIMAL).send().expect(200);
    assert_eq!(
        minimal.text(),
        format!(
            "{{\"odata.metadata\":\"{base}/$metadata#Tables\",\"value\":[{{\"TableName\":\"Alpha\"}},\
             {{\"TableName\":\"beta\"}},{{\"TableName\":\"gamma\"}}]}}"
        )
    );
    let none = client.get("/Tables()").accept(NONE).send().expect(200);
    assert_eq!(
        none.text(),
        r#"{"value":[{"TableName":"Alpha"},{"TableName":"beta"},{"TableName":"gamma"}]}"#
    );
}

/// 3.1 and 6.1: `$filter` on TableName, as `az storage table exists` sends it.
#[test]
fn query_tables_filters_by_name() {
    let client = own_client(&["alpha", "beta", "gamma", "delta"]);
    for (filter, expected) in [
        ("TableName eq 'beta'", vec!["beta"]),
        ("TableName ge 'b' and TableName lt 'd'", vec!["beta"]),
        ("not (TableName eq 'beta')", vec!["alpha", "delta", "gamma"]),
        ("TableName eq 'missing'", vec![]),
    ] {
        let filter = crate::support::encode(filter);
        let list = client.get(format!("/Tables?$filter={filter}")).send().expect(200);
        assert_eq!(table_names(&values(&list)), expected, "{filter}");
    }
}

/// 7: `$top` and NextTableName, also after a crash.
#[test]
fn query_tables_goes_page_by_page() {
    let client = own_client(&["t001", "t002", "t003", "t004", "t005"]);
    let mut names = Vec::new();
    let mut path = "/Tables?$top=2".to_owned();
    loop {
        let page = client.get(&path).send().expect(200);
        let tables = values(&page);
        assert!(tables.len() <= 2);
        names.extend(table_names(&tables));
        let Some(token) = page.header("x-ms-continuation-NextTableName") else { break };
        assert!(token.starts_with("1!"), "{token}");
        path = format!("/Tables?$top=2&NextTableName={}", crate::support::encode(token));
        client.server().crash_and_restart();
    }
    assert_eq!(names, ["t001", "t002", "t003", "t004", "t005"]);
}

const EMPTY_ACL: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers />";

fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// 3.5: byte for byte, dates padded to seven digits, an empty policy as an id alone.
#[test]
fn table_acl_comes_back_as_the_service_writes_it() {
    let client = shared_client();
    let name = client.new_table();
    let path = format!("/{name}?comp=acl");
    let empty = client.get(&path).accept("application/xml").send().expect(200);
    assert_eq!(empty.header("content-type"), Some("application/xml"));
    assert_eq!(empty.header("cache-control"), None);
    assert_eq!(empty.header("x-content-type-options"), None);
    assert_eq!(without_bom(empty.text()), EMPTY_ACL);

    let document = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier>\
        <Id>testid</Id><AccessPolicy><Start>2011-10-11</Start><Expiry>2011-10-12T00:00:00Z</Expiry>\
        <Permission>r</Permission></AccessPolicy></SignedIdentifier><SignedIdentifier><Id>empty</Id>\
        <AccessPolicy /></SignedIdentifier></SignedIdentifiers>";
    let set = client.request("PUT", &path).body("application/xml", document).send().expect(204);
    assert_eq!(set.header("cache-control"), None);
    let stored = client.get(&path).send().expect(200);
    assert_eq!(
        without_bom(stored.text()),
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier>\
         <Id>testid</Id><AccessPolicy><Start>2011-10-11T00:00:00.0000000Z</Start>\
         <Expiry>2011-10-12T00:00:00.0000000Z</Expiry><Permission>r</Permission></AccessPolicy>\
         </SignedIdentifier><SignedIdentifier><Id>empty</Id></SignedIdentifier></SignedIdentifiers>"
    );

    client.request("PUT", &path).send().expect(204);
    assert_eq!(without_bom(client.get(&path).send().expect(200).text()), EMPTY_ACL);
}

fn identifiers(count: usize, id_length: usize) -> String {
    let one = |index| format!("<SignedIdentifier><Id>{index:0>id_length$}</Id></SignedIdentifier>");
    let all: String = (0..count).map(one).collect();
    format!("<SignedIdentifiers>{all}</SignedIdentifiers>")
}

/// 3.5: five identifiers of 64 characters; errors are XML with their code in a header.
#[test]
fn table_acl_has_limits() {
    let client = shared_client();
    let name = client.new_table();
    let set = |table: &str, document: String| {
        let path = format!("/{table}?comp=acl");
        client.request("PUT", path).body("application/xml", document).send()
    };
    set(&name, identifiers(5, 64)).expect(204);
    for document in [identifiers(6, 1), identifiers(1, 65), "<SignedIdentifiers>".to_owned()] {
        let refused = set(&name, document).expect_error(400, "InvalidXmlDocument");
        assert_eq!(refused.header("x-ms-error-code"), Some("InvalidXmlDocument"));
        assert_eq!(refused.header("content-type"), Some("application/xml"));
        assert_eq!(refused.message(), "XML specified is not syntactically valid.");
        assert!(
            refused.text().starts_with(
                "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\
                 \"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">\
                 <m:code>InvalidXmlDocument</m:code><m:message xml:lang=\"en-US\">"
            ),
            "{}",
            refused.text()
        );
    }
    set("missing", identifiers(1, 1)).expect_error(404, "TableNotFound");
    client.get("/missing?comp=acl").send().expect_error(404, "TableNotFound");
}
