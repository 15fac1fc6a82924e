//! `$filter` and `$select` end to end (wire-reference 6), and what queries cost.

use serde_json::{Value, json};

use crate::support::client::{row_keys, values};
use crate::support::{Client, Response, shared_client};

/// A table with one row per type, and rows whose property is missing or of another type.
fn typed_table(client: &Client) -> String {
    let table = client.new_table();
    let rows = [
        json!({"RowKey": "bool", "V": true}),
        json!({"RowKey": "int32", "V": 3}),
        json!({"RowKey": "int64", "V@odata.type": "Edm.Int64", "V": "3"}),
        json!({"RowKey": "double", "V": 3.0}),
        json!({"RowKey": "string", "V": "3"}),
        json!({"RowKey": "date", "V@odata.type": "Edm.DateTime", "V": "2020-01-01T00:00:00Z"}),
        json!({"RowKey": "guid", "V@odata.type": "Edm.Guid",
            "V": "c9da6455-213d-42c9-9a79-3e9149a57833"}),
        json!({"RowKey": "binary", "V@odata.type": "Edm.Binary", "V": "CgsM"}),
        json!({"RowKey": "none"}),
    ];
    for mut row in rows {
        row["PartitionKey"] = json!("p");
        client.insert(&table, &row).expect(204);
    }
    table
}

/// The rows that a filter matches, compared as a set in key order.
#[track_caller]
fn assert_matches(client: &Client, table: &str, filter: &str, expected: &[&str]) {
    assert_eq!(client.rows(table, filter), expected, "{filter}");
}

/// 6.3: equality by type; the literal widens to the property's type, never the other way.
#[test]
fn equality_is_typed() {
    let client = shared_client();
    let table = typed_table(&client);
    for (filter, expected) in [
        ("V eq true", vec!["bool"]),
        ("V eq 3", vec!["double", "int32", "int64"]),
        ("V eq 3L", vec!["double", "int64"]),
        ("V eq 3.0", vec!["double"]),
        ("V eq '3'", vec!["string"]),
        ("V eq datetime'2020-01-01T00:00:00Z'", vec!["date"]),
        ("V eq datetime'2020-01-01T01:00:00.0000000+01:00'", vec!["date"]),
        ("V eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", vec!["guid"]),
        ("V eq 'c9da6455-213d-42c9-9a79-3e9149a57833'", vec![]),
        ("V eq X'0a0b0c'", vec!["binary"]),
        ("V eq binary'0A0B0C'", vec!["binary"]),
        ("V", vec!["bool"]),
        ("not V", vec!["binary", "date", "double", "guid", "int32", "int64", "none", "string"]),
    ] {
        assert_matches(&client, &table, filter, &expected);
    }
}

/// 6.3: a missing property fails every comparison; a mismatched one is less than the literal.
#[test]
fn missing_and_mismatched_properties() {
    let client = shared_client();
    let table = typed_table(&client);
    let all = ["binary", "bool", "date", "double", "guid", "int32", "int64", "none", "string"];
    let without = |gone: &[&str]| -> Vec<&str> {
        all.iter().copied().filter(|row| !gone.contains(row)).collect()
    };
    for (filter, expected) in [
        ("V ne '3'", without(&["none", "string"])),
        ("V lt ''", without(&["none", "string"])),
        ("V gt ''", vec!["string"]),
        ("V ne 3", without(&["none", "double", "int32", "int64"])),
        ("V ge 3L", vec!["double", "int64"]),
        ("not (V eq 'x')", all.to_vec()),
        ("not (Missing eq 1)", all.to_vec()),
        ("Missing ne 1", vec![]),
    ] {
        assert_matches(&client, &table, filter, &expected);
    }
}

fn named_table(client: &Client) -> String {
    let table = client.new_table();
    for (row, name, number) in
        [("1", "Anna", 1), ("2", "Bert", 2), ("3", "anna", 3), ("4", "O'Brien", -4)]
    {
        let entity = json!({"PartitionKey": "p", "RowKey": row, "Name": name, "Number": number});
        client.insert(&table, &entity).expect(204);
    }
    table
}

/// 6.2: grammar: precedence, flipped operands, blanks, quotes, constants, the forms that SDKs generate (6.4).
#[test]
fn the_grammar() {
    let client = shared_client();
    let table = named_table(&client);
    for (filter, expected) in [
        ("", vec!["1", "2", "3", "4"]),
        ("   ", vec!["1", "2", "3", "4"]),
        ("true", vec!["1", "2", "3", "4"]),
        ("false", vec![]),
        ("Name eq 'O''Brien'", vec!["4"]),
        ("Name ge 'A' and Name lt 'B'", vec!["1"]),
        ("'B' lt Name", vec!["2", "3", "4"]),
        ("2 gt Number", vec!["1", "4"]),
        ("Number eq 1 or Number eq 2 and Name eq 'x'", vec!["1"]),
        ("(Number eq 1 or Number eq 2) and Name eq 'Bert'", vec!["2"]),
        ("not Number eq 1 and Number lt 3", vec!["2", "4"]),
        ("not (Number eq 1) and not(Number eq 2)", vec!["3", "4"]),
        ("(PartitionKey eq 'p') and (RowKey ge '3')", vec!["3", "4"]),
        ("(Number ge -4) and\t(Number le -4)", vec!["4"]),
        ("Timestamp gt datetime'2020-01-01T00:00:00Z'", vec!["1", "2", "3", "4"]),
        ("name eq 'Anna'", vec![]),
    ] {
        assert_matches(&client, &table, filter, &expected);
    }
    // 1.4: names may be encoded, and plus is a blank.
    let plus = client.get(format!("/{table}()?%24filter=Number+eq+2")).send().expect(200);
    assert_eq!(row_keys(&values(&plus)), ["2"]);
}

fn refusal(client: &Client, table: &str, filter: &str) -> Response {
    client.query(table, &[("$filter", filter)]).send()
}

/// 6.2: what is not a filter, what is not implemented, and the words for both.
#[test]
fn refused_filters() {
    let client = shared_client();
    let table = named_table(&client);
    for filter in [
        "startswith(Name, 'A')",
        "substringof('a', Name)",
        "length(Name) eq 3",
        "year(Timestamp) eq 2020",
        "Number add 1 eq 2",
        "Name eq Number",
        "1 eq 1",
    ] {
        let refused = refusal(&client, &table, filter).expect_error(501, "NotImplemented");
        assert_eq!(
            refused.message(),
            "The requested operation is not implemented on the specified resource.",
            "{filter}"
        );
    }
    let null = refusal(&client, &table, "Name eq null").expect_error(400, "InvalidInput");
    assert_eq!(null.message(), "One of the request inputs is not valid.");
    let null = refusal(&client, &table, "Name lt null").expect_error(400, "InvalidInput");
    assert_eq!(
        null.message(),
        "The operator 'LessThan' is not supported for the 'null' literal; only equality checks are \
         supported."
    );
    let big = refusal(&client, &table, "Number eq 5454161346626").expect_error(400, "InvalidInput");
    assert!(
        big.message().starts_with("Unrecognized 'Edm.Int32' literal '5454161346626'"),
        "{}",
        big.message()
    );
    let syntax = refusal(&client, &table, "aaa bbb ccc").expect_error(400, "InvalidInput");
    assert_eq!(syntax.message(), "Syntax error at position 7 in 'aaa bbb ccc'.");
    for filter in ["Name eq", "Name Eq 'a'", "(Name eq 'a'", "Name eq 'a", "and"] {
        refusal(&client, &table, filter).expect_error(400, "InvalidInput");
    }
    // Keywords are lower case. Whether this is a syntax error or a comparison of two properties is open.
    let keyword = refusal(&client, &table, "Name eq True");
    assert!([400, 501].contains(&keyword.status), "{}", keyword.status);
    refusal(&client, "missing", "Name eq 'a'").expect_error(404, "TableNotFound");
}

/// 6.1: a projection, with null for what is missing and the list in the metadata.
#[test]
fn select_answers_null_for_what_is_missing() {
    let client = shared_client();
    let table = named_table(&client);
    let page = client.get(format!("/{table}()?$select=Name,xyz&$filter=Number%20le%201")).send();
    let page = page.expect(200);
    let etags: Vec<_> =
        ["1", "4"].map(|row| json!(client.entity(&table, ("p", row)).etag()).to_string()).into();
    assert_eq!(
        page.text(),
        format!(
            "{{\"odata.metadata\":\"{}/$metadata#{table}&$select=Name,xyz\",\"value\":[\
             {{\"odata.etag\":{},\"Name\":\"Anna\",\"xyz\":null}},\
             {{\"odata.etag\":{},\"Name\":\"O'Brien\",\"xyz\":null}}]}}",
            client.base(),
            etags[0],
            etags[1]
        )
    );
    let all = client.get(format!("/{table}()?$select=&$filter=")).send().expect(200);
    assert_eq!(values(&all).len(), 4);
    assert_eq!(values(&all)[0]["Number"], 1);
    assert!(all.text().contains(&format!("#{table}&$select=\"")), "{}", all.text());
    let star = client.get(format!("/{table}()?$select=*")).send().expect(200);
    assert_eq!(values(&star)[0]["Name"], "Anna");
    let keys = client.get(format!("/{table}()?$select=RowKey")).send().expect(200);
    assert_eq!(values(&keys)[0].as_object().unwrap().len(), 2);
}

/// 6.1: other OData options are not served.
#[test]
fn other_options_are_not_implemented() {
    let client = shared_client();
    let table = client.new_table();
    for option in ["$orderby=Name", "$skip=1", "$expand=x", "$inlinecount=allpages"] {
        let refused = client.get(format!("/{table}()?{option}")).send();
        refused.expect_error(501, "NotImplemented");
    }
    client.get(format!("/{table}()?unknown=1&timeout=20")).send().expect(200);
}

/// Rows `a`/`0`.. to `a`/`9` and the same in `b`, for the cost of queries.
fn costs_table(client: &Client) -> String {
    let table = client.new_table();
    for partition in ["a", "b"] {
        for row in 0..10 {
            let entity =
                json!({"PartitionKey": partition, "RowKey": row.to_string(), "V": row % 2});
            client.insert(&table, &entity).expect(204);
        }
    }
    table
}

fn explained(client: &Client, table: &str, filter: &str) -> (String, u64, u64) {
    let page = client.query(table, &[("$filter", filter)]).header("x-tavola-explain", "true");
    let page = page.send().expect(200);
    let header = |name: &str| page.header(name).unwrap_or_else(|| panic!("{page:?}")).to_owned();
    let number = |name: &str| header(name).parse().expect("a number");
    assert_eq!(number("x-tavola-rows-returned"), values(&page).len() as u64);
    (
        header("x-tavola-query-kind"),
        number("x-tavola-rows-examined"),
        number("x-tavola-rows-returned"),
    )
}

/// Issue "The protocol": a filter on keys costs what its keys cost, also with `or`.
#[test]
fn queries_examine_no_more_than_they_must() {
    let client = shared_client();
    let table = &costs_table(&client);
    for (filter, kind, examined, returned) in [
        ("PartitionKey eq 'a' and RowKey eq '3'", "point", 1, 1),
        ("PartitionKey eq 'a' and RowKey eq 'none'", "point", 0, 0),
        ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '7')", "point", 2, 2),
        ("(PartitionKey eq 'a' or PartitionKey eq 'b') and RowKey eq '1'", "point", 2, 2),
        (
            "(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'b' and RowKey eq '2')",
            "point",
            2,
            2,
        ),
        ("PartitionKey eq 'a' and RowKey ge '3' and RowKey lt '6'", "range", 3, 3),
        ("PartitionKey eq 'a' and RowKey ge '3' and RowKey lt '6' and V eq 1", "range", 3, 2),
        ("PartitionKey eq 'a'", "partition scan", 10, 10),
        ("PartitionKey eq 'a' and V eq 1", "partition scan", 10, 5),
        ("V eq 1", "table scan", 20, 10),
        ("RowKey eq '1'", "table scan", 20, 2),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", "point", 0, 0),
    ] {
        let found = explained(&client, table, filter);
        assert_eq!(found, (kind.to_owned(), examined, returned), "{filter}");
    }
    let quiet = client.query(table, &[("$filter", "V eq 1")]).send().expect(200);
    let told: Vec<_> =
        quiet.headers.iter().filter(|(name, _)| name.starts_with("x-tavola")).collect();
    assert_eq!(told, [] as [&(String, String); 0]);
}

/// 3.9: order by UTF-16 code unit, in which a pair of surrogates comes before U+FFFD.
#[test]
fn order_is_by_code_unit() {
    let client = shared_client();
    let table = client.new_table();
    let rows = ["", "A", "B", "a", "aa", "b", "\u{e9}", "\u{20ac}", "\u{1f600}", "\u{fffd}"];
    for row in rows.iter().rev() {
        client.insert(&table, &json!({"PartitionKey": "p", "RowKey": row})).expect(204);
    }
    assert_eq!(client.rows(&table, ""), rows);
    assert_eq!(client.rows(&table, "RowKey gt '\u{20ac}'"), ["\u{1f600}", "\u{fffd}"]);
    assert_eq!(client.rows(&table, "PartitionKey eq 'p' and RowKey lt 'a'"), ["", "A", "B"]);
    let partitions: Vec<Value> =
        ["b", "", "a"].map(|p| json!({"PartitionKey": p, "RowKey": "1"})).into();
    let other = client.new_table();
    for entity in &partitions {
        client.insert(&other, entity).expect(204);
    }
    let found = client.matches(&other, "");
    let found: Vec<_> = found.iter().map(|entity| entity["PartitionKey"].clone()).collect();
    assert_eq!(found, ["", "a", "b"]);
}

/// 6.3: numbers compare as numbers and dates as dates, to the last digit.
#[test]
fn numbers_and_dates_compare_exactly() {
    let client = shared_client();
    let table = client.new_table();
    for (row, long, date) in [
        ("1", "9", "2020-01-01T00:00:00.1234567Z"),
        ("2", "10", "2020-01-01T00:00:00.1234568Z"),
        ("3", "9007199254740993", "2020-01-01T00:00:01Z"),
        ("4", "-9223372036854775808", "9999-12-31T23:59:59.9999999Z"),
    ] {
        let entity = json!({
            "PartitionKey": "p", "RowKey": row, "L@odata.type": "Edm.Int64", "L": long,
            "D@odata.type": "Edm.DateTime", "D": date,
        });
        client.insert(&table, &entity).expect(204);
    }
    for (filter, expected) in [
        ("L gt 9L", vec!["2", "3"]),
        ("L le 10", vec!["1", "2", "4"]),
        ("L eq 9007199254740993L", vec!["3"]),
        ("L eq 9007199254740992L", vec![]),
        ("L eq -9223372036854775808L", vec!["4"]),
        ("D gt datetime'2020-01-01T00:00:00.1234567Z'", vec!["2", "3", "4"]),
        ("D lt datetime'2020-01-01T00:00:01'", vec!["1", "2"]),
        ("D eq datetime'2019-12-31T23:00:01-01:00'", vec!["3"]),
    ] {
        assert_matches(&client, &table, filter, &expected);
    }
}
