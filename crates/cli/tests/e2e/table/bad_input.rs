//! Bad input: nesting, overlapping boundaries, mixed line ends, invalid UTF-8, doubled members, numbers beyond their
//! range. Each line of a table is a request and the exact answer to it; none leaves anything behind.
//!
//! What fits within the limits, and what just does not, is in `limits`.

use crate::support::client::entity_path;
use crate::support::{BatchReply, Client, Response, shared_client};

const INVALID: &str = "One of the request inputs is not valid.";
const PROCESSING: &str = "An error occurred while processing this request.";
const SYNTAX: &str = "Bad Request - Error in query syntax.";
const XML: &str = "XML specified is not syntactically valid.";

#[track_caller]
fn expect(response: Response, status: u16, code: &str, message: &str) {
    let response = response.expect_error(status, code);
    assert_eq!(response.message(), message);
}

/// Members that follow the keys in the body of an entity, and what is wrong with them.
const MEMBERS: [(&[u8], &str, &str); 37] = [
    // Invalid UTF-8: in a value, in a name, a surrogate, an overlong form, a character that is cut off.
    (b"\"A\":\"\xff\"", "InvalidInput", PROCESSING),
    (b"\"\xc3\x28\":1", "InvalidInput", PROCESSING),
    (b"\"A\":\"\xed\xa0\x80\"", "InvalidInput", PROCESSING),
    (b"\"A\":\"\xc0\xaf\"", "InvalidInput", PROCESSING),
    (b"\"A\":\"\xf0\x9f\x98\"", "InvalidInput", PROCESSING),
    (b"\"A\":\"\\ud83d\"", "InvalidInput", PROCESSING),
    (b"\"A\":\"\\ude00\\ud83d\"", "InvalidInput", PROCESSING),
    // Members that come twice, also when one is spelled with an escape, is null, or is ignored otherwise.
    (b"\"A\":1,\"A\":1", "DuplicatePropertiesSpecified", DUPLICATE),
    (b"\"A\":1,\"\\u0041\":2", "DuplicatePropertiesSpecified", DUPLICATE),
    (b"\"A\":null,\"A\":1", "DuplicatePropertiesSpecified", DUPLICATE),
    (b"\"RowKey\":\"other\"", "DuplicatePropertiesSpecified", DUPLICATE),
    (b"\"Timestamp\":null,\"Timestamp\":null", "DuplicatePropertiesSpecified", DUPLICATE),
    // Numbers beyond their range.
    (b"\"A\":1e999", "InvalidInput", PROCESSING),
    (b"\"A\":-1e999", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Double\",\"A\":\"1e999\"", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Double\",\"A\":\"inf\"", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Int32\",\"A\":2147483648", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Int32\",\"A\":\"-2147483649\"", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Int32\",\"A\":1.0", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Int64\",\"A\":9223372036854775808", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Int64\",\"A\":\"-9223372036854775809\"", "InvalidInput", PROCESSING),
    (
        b"\"A@odata.type\":\"Edm.DateTime\",\"A\":\"10000-01-01T00:00:00Z\"",
        "InvalidInput",
        PROCESSING,
    ),
    (
        b"\"A@odata.type\":\"Edm.DateTime\",\"A\":\"9999-12-31T23:59:59-01:00\"",
        "InvalidInput",
        PROCESSING,
    ),
    (b"\"A@odata.type\":\"Edm.DateTime\",\"A\":\"2023-02-29\"", "InvalidInput", PROCESSING),
    (b"\"A\":01", "InvalidInput", PROCESSING),
    (b"\"A\":+1", "InvalidInput", PROCESSING),
    (b"\"A\":NaN", "InvalidInput", PROCESSING),
    // Nesting, annotations that say nothing, and what is no JSON.
    (b"\"A\":[]", "InvalidInput", PROCESSING),
    (b"\"A\":{\"B\":{\"C\":{}}}", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Edm.Single\",\"A\":1", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":7,\"A\":1", "InvalidInput", PROCESSING),
    (b"\"A@odata.type\":\"Collection(Edm.Int32)\",\"A\":\"1\"", "InvalidInput", PROCESSING),
    (b"\"A\":\"line\nend\"", "InvalidInput", PROCESSING),
    (b"\"A\":'1'", "InvalidInput", PROCESSING),
    (b"\"A\":1,", "InvalidInput", PROCESSING),
    (b"\"A\":\"\0\"", "InvalidInput", PROCESSING),
    (b"\"\":1", "PropertyNameInvalid", "The property name is invalid."),
];
const DUPLICATE: &str = "A property is specified more than one time.";

/// The keys and some members.
fn entity(members: &[u8]) -> Vec<u8> {
    [b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",", members, b"}"].concat()
}

#[test]
fn members_of_entities() {
    let client = shared_client();
    let table = client.new_table();
    let point = entity_path(&table, "p", "r");
    for (members, code, message) in MEMBERS {
        for (method, path) in
            [("POST", format!("/{table}")), ("PUT", point.clone()), ("MERGE", point.clone())]
        {
            let request = client.request(method, path).body("application/json", entity(members));
            let response = request.send();
            let found = (response.status, response.code());
            let shown = members.escape_ascii();
            assert_eq!(found, (400, Some(code.to_owned())), "{method} {shown}");
            assert_eq!(response.message(), message, "{method} {shown}");
        }
    }
    assert!(client.rows(&table, "").is_empty());
}

/// The same in a transaction, which they take down with them.
#[test]
fn members_of_entities_in_a_batch() {
    let client = shared_client();
    let table = client.new_table();
    for (members, code, message) in MEMBERS {
        let good = b"{\"PartitionKey\":\"p\",\"RowKey\":\"good\"}".to_vec();
        let body = batch(&table, &[good, entity(members)]);
        let reply = BatchReply::read(post(&client, "batch_b", body));
        let part = reply.expect_failure(400, code, 1);
        assert_eq!(part.message(), format!("1:{message}"), "{}", members.escape_ascii());
    }
    assert!(client.rows(&table, "").is_empty());
}

#[test]
fn bodies_that_are_no_entity() {
    let client = shared_client();
    let table = client.new_table();
    let deep =
        |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    for body in [
        "",
        " ",
        "null",
        "5",
        "\"text\"",
        "[]",
        "[{}]",
        "{",
        "{}{}",
        "{} x",
        "{\"A\"}",
        "{1:2}",
        "\u{feff}\u{feff}{}",
        &deep("[", "]"),
        &deep("{\"A\":", "}"),
    ] {
        let shown = &body[..body.len().min(40)];
        for (method, path) in [
            ("POST", format!("/{table}")),
            ("PUT", entity_path(&table, "p", "r")),
            ("POST", "/Tables".to_owned()),
        ] {
            let response = client.request(method, path).body("application/json", body).send();
            assert_eq!(
                (response.status, response.code().as_deref()),
                (400, Some("InvalidInput")),
                "{method} {shown}"
            );
            assert_eq!(response.message(), PROCESSING, "{method} {shown}");
        }
    }
    // An object with more members than an entity can have, all of them null.
    let members: Vec<_> = (0..5000).map(|n| format!("\"P{n}\":null")).collect();
    let insert = client.request("POST", format!("/{table}"));
    let insert = insert.body("application/json", format!("{{{}}}", members.join(",")));
    expect(insert.send(), 400, "InvalidInput", PROCESSING);
    assert!(client.rows(&table, "").is_empty());
}

#[test]
fn a_table_with_two_names() {
    let client = shared_client();
    let body = r#"{"TableName":"TwoNamesA","TableName":"TwoNamesB"}"#;
    let create = client.request("POST", "/Tables").body("application/json", body);
    expect(create.send(), 400, "DuplicatePropertiesSpecified", DUPLICATE);
    for name in ["TwoNamesA", "TwoNamesB"] {
        client.get(format!("/Tables('{name}')")).send().expect_error(404, "ResourceNotFound");
    }
}

/// An integer beyond 32 bits is a double on the service, however long it is (4.2).
#[test]
fn long_integers_are_doubles() {
    let client = shared_client();
    let table = client.new_table();
    for (row, number, expected) in [
        ("1", "9223372036854775808", 9_223_372_036_854_775_808.0),
        ("2", "-123456789012345678901234567890", -1.234_567_890_123_456_8e29),
    ] {
        let body = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\",\"A\":{number}}}");
        client
            .request("POST", format!("/{table}"))
            .body("application/json", body)
            .send()
            .expect(201);
        assert_eq!(client.entity(&table, ("p", row)).json()["A"], expected, "{number}");
    }
}

#[test]
fn filters() {
    let client = shared_client();
    let table = client.new_table();
    let nots = |count: usize| format!("{}A", "not ".repeat(count));
    let nested = |count: usize| format!("{}A{}", "A and (A or (".repeat(count), "))".repeat(count));
    let open = "(".repeat(9000);
    for (filter, status, code, message) in [
        // Nesting: 200 levels of meaning.
        (nots(200), 400, "InvalidInput", INVALID.to_owned()),
        (nots(4000), 400, "InvalidInput", INVALID.to_owned()),
        (nested(100), 400, "InvalidInput", INVALID.to_owned()),
        (nested(1500), 400, "InvalidInput", INVALID.to_owned()),
        (open.clone(), 400, "InvalidInput", format!("Syntax error at position 9000 in '{open}'.")),
        (format!("startswith({open}"), 501, "NotImplemented", NOT_IMPLEMENTED.to_owned()),
        // Numbers beyond their range.
        ("A eq 2147483648".into(), 400, "InvalidInput", unrecognized("Int32", "2147483648")),
        ("A eq -2147483649".into(), 400, "InvalidInput", unrecognized("Int32", "-2147483649")),
        (
            "A eq 9223372036854775808L".into(),
            400,
            "InvalidInput",
            unrecognized("Int64", "9223372036854775808L"),
        ),
        ("A eq 1e999".into(), 400, "InvalidInput", unrecognized("Double", "1e999")),
        ("A eq 1.5L".into(), 400, "InvalidInput", unrecognized("Int64", "1.5L")),
        (
            "A eq datetime'10000-01-01'".into(),
            400,
            "InvalidInput",
            unrecognized("DateTime", "datetime'10000-01-01'"),
        ),
        ("A eq guid'0'".into(), 400, "InvalidInput", unrecognized("Guid", "guid'0'")),
        ("A eq X'0'".into(), 400, "InvalidInput", unrecognized("Binary", "X'0'")),
        (
            "A eq 'open".into(),
            400,
            "InvalidInput",
            "Syntax error at position 10 in 'A eq 'open'.".to_owned(),
        ),
        (
            "A eq\0 1".into(),
            400,
            "InvalidInput",
            "Syntax error at position 5 in 'A eq\0 1'.".to_owned(),
        ),
    ] {
        let response = client.query(&table, &[("$filter", &filter)]).send();
        let shown = &filter[..filter.len().min(40)];
        let found = (response.status, response.code());
        assert_eq!(found, (status, Some(code.to_owned())), "{shown}");
        assert_eq!(response.message(), message, "{shown}");
    }
    // Deep and long, and well.
    let parentheses = format!("{open}A eq 1{}", ")".repeat(9000));
    for filter in
        [nots(199), nested(99), parentheses, format!("PartitionKey eq '{}'", "k".repeat(15_000))]
    {
        let page = client.query(&table, &[("$filter", &filter)]).send().expect(200);
        assert_eq!(page.json()["value"], serde_json::json!([]));
    }
}

const NOT_IMPLEMENTED: &str =
    "The requested operation is not implemented on the specified resource.";

fn unrecognized(edm: &str, literal: &str) -> String {
    format!("Unrecognized 'Edm.{edm}' literal '{literal}' at '5' in 'A eq {literal}'.")
}

/// Literals that no key can be find nothing, and cost nothing (5).
#[test]
fn filters_for_keys_that_cannot_be() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &serde_json::json!({"PartitionKey": "a", "RowKey": "r"})).expect(204);
    let long = "a".repeat(5000);
    for (literal, below) in
        [("a/b", true), ("a#", true), ("a\0", true), (&long, true), ("A\u{1f}", false)]
    {
        let filter = format!("PartitionKey eq '{literal}' and RowKey eq 'r'");
        let page = client.query(&table, &[("$filter", &filter)]).header("x-tavola-explain", "true");
        let page = page.send().expect(200);
        assert_eq!(page.json()["value"], serde_json::json!([]), "{literal:?}");
        assert_eq!(page.header("x-tavola-key-spans"), Some("0"), "{literal:?}");
        let rows = client.rows(&table, &format!("PartitionKey lt '{literal}'"));
        assert_eq!(rows.len(), usize::from(below), "{literal:?}");
    }
}

#[test]
fn urls() {
    let client = shared_client();
    let table = client.new_table();
    let point = |key: &str| format!("/{table}(PartitionKey='p',RowKey='{key}')");
    for (path, status, code, message) in [
        // Escapes that are none, and bytes that are no UTF-8.
        (point("%FF"), 400, "InvalidInput", SYNTAX),
        (point("%C3"), 400, "InvalidInput", SYNTAX),
        (point("%ED%A0%80"), 400, "InvalidInput", SYNTAX),
        (point("%zz"), 400, "InvalidInput", SYNTAX),
        (point("%2"), 400, "InvalidInput", SYNTAX),
        (point("%00"), 400, "InvalidInput", "Bad Request - Invalid URL"),
        (point("a'b"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}(PartitionKey='p',RowKey='r'"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}(PartitionKey='p',RowKey='r'))"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}(PartitionKey=p,RowKey=r)"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}{}", "(".repeat(9000)), 400, "InvalidInput", SYNTAX),
        (format!("/{table}%FF"), 400, "InvalidInput", SYNTAX),
        (
            "/T%C3%A9st".to_owned(),
            400,
            "InvalidResourceName",
            "The specifed resource name contains invalid characters.",
        ),
        // The same in the query string.
        (format!("/{table}()?$filter=%FF"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}()?$filter=%C3%28"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}()?%FF=1"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}()?$filter=%"), 400, "InvalidInput", SYNTAX),
        (format!("/{table}()?{}", "a=b&".repeat(65)), 400, "InvalidInput", SYNTAX),
        // Options beyond their range, and tokens that were not made here.
        (format!("/{table}()?$top=18446744073709551616"), 400, "InvalidInput", INVALID),
        (format!("/{table}()?$top=1e1"), 400, "InvalidInput", INVALID),
        (
            format!("/{table}()?timeout=0"),
            400,
            "OutOfRangeQueryParameterValue",
            "One of the query parameters specified in the request URI is outside the permissible range.",
        ),
        (
            format!("/{table}()?timeout=-1"),
            400,
            "InvalidQueryParameterValue",
            "Value for one of the query parameters specified in the request URI is invalid.",
        ),
        (format!("/{table}()?NextPartitionKey=garbage"), 400, "InvalidInput", INVALID),
        // A key that is not UTF-8, one with a NUL, one that is too long.
        (format!("/{table}()?NextPartitionKey=1!4!_w--"), 400, "InvalidInput", INVALID),
        (format!("/{table}()?NextPartitionKey=1!4!AA--"), 400, "InvalidInput", INVALID),
        (
            format!("/{table}()?NextPartitionKey=1!2052!{}", "AAAA".repeat(513)),
            400,
            "InvalidInput",
            INVALID,
        ),
        ("/Tables?NextTableName=1!4!_w--".to_owned(), 400, "InvalidInput", INVALID),
    ] {
        let response = client.get(&path).send();
        let shown = &path[..path.len().min(80)];
        let found = (response.status, response.code());
        assert_eq!(found, (status, Some(code.to_owned())), "{shown}");
        assert_eq!(response.message(), message, "{shown}");
    }
}

#[test]
fn conditions() {
    let client = shared_client();
    let table = client.new_table();
    client
        .insert(&table, &serde_json::json!({"PartitionKey": "p", "RowKey": "r", "A": 1}))
        .expect(204);
    for etag in [
        "",
        "datetime'2021-12-01'",
        "\"datetime'2021-12-01'\"",
        "w/\"datetime'2021-12-01'\"",
        "\u{e9}",
        "*, *",
        "W/\"a\", W/\"b\"",
    ] {
        let put = client.put(&table, ("p", "r"), &serde_json::json!({"A": 2})).if_match(etag);
        let message = format!(
            "The etag value '{etag}' specified in one of the request headers is not valid. Please make sure only \
             one etag value is specified and is valid."
        );
        expect(put.send(), 400, "InvalidInput", &message);
    }
    // Well-formed, and of no entity.
    for etag in ["W/\"datetime'2021-13-01'\"", "W/\"datetime'9999-12-31T23%3A59%3A60Z'\""] {
        let put = client.put(&table, ("p", "r"), &serde_json::json!({"A": 2})).if_match(etag);
        put.send().expect_error(412, "UpdateConditionNotSatisfied");
    }
    assert_eq!(client.entity(&table, ("p", "r")).json()["A"], 1);
}

#[test]
fn xml_bodies() {
    let client = shared_client();
    let table = client.new_table();
    let deep = format!("{}{}", "<a>".repeat(50_000), "</a>".repeat(50_000));
    let wide = format!("<a>{}</a>", "<b/>".repeat(500_000));
    let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
    let acl = |inner: &str| {
        format!(
            "<SignedIdentifiers><SignedIdentifier>{inner}</SignedIdentifier></SignedIdentifiers>"
        )
        .into_bytes()
    };
    let retention = |days: &str| {
        let policy = format!(
            "<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>"
        );
        let logging = format!(
            "<Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>true</Write>{policy}</Logging>"
        );
        format!("<StorageServiceProperties>{logging}</StorageServiceProperties>").into_bytes()
    };
    let (policies, properties) =
        (format!("/{table}?comp=acl"), "/?restype=service&comp=properties".to_owned());
    let mut cases = Vec::new();
    for path in [&policies, &properties] {
        for body in [
            deep.as_bytes(),
            wide.as_bytes(),
            bomb.as_bytes(),
            b"<a>\xff</a>",
            b"<a",
            b"text",
            b"<a></b>",
            b"<a>\0</a>",
        ] {
            cases.push((path, body.to_vec(), "InvalidXmlDocument", XML));
        }
    }
    let value = "The value provided for one of the XML nodes in the request body was not in the correct format.";
    for (inner, code, message) in [
        ("<Id>a</Id><Id>b</Id>", "InvalidXmlDocument", XML),
        (
            "<Id>a</Id><AccessPolicy><Expiry>10000-01-01</Expiry></AccessPolicy>",
            "InvalidXmlNodeValue",
            value,
        ),
        (
            "<Id>a</Id><AccessPolicy><Permission>raudx</Permission></AccessPolicy>",
            "InvalidXmlNodeValue",
            value,
        ),
    ] {
        cases.push((&policies, acl(inner), code, message));
    }
    for days in ["0", "366", "4294967297", "-1", "+7", "7.0"] {
        cases.push((&properties, retention(days), "InvalidXmlDocument", XML));
    }
    for (path, body, code, message) in cases {
        let shown = body[..body.len().min(300)].escape_ascii().to_string();
        let response = client.request("PUT", path).body("application/xml", body).send();
        assert_eq!(
            (response.status, response.code().as_deref()),
            (400, Some(code)),
            "{path} {shown}"
        );
        assert_eq!(response.message(), message, "{path} {shown}");
    }
    client.get(&policies).send().expect(200);
}

fn post(client: &Client, boundary: &str, body: Vec<u8>) -> Response {
    let content_type = format!("multipart/mixed; boundary=\"{boundary}\"");
    client.request("POST", "/$batch").body(&content_type, body).send()
}

/// A changeset of inserts, with the usual boundaries.
fn batch(table: &str, entities: &[Vec<u8>]) -> Vec<u8> {
    let mut body =
        b"--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n".to_vec();
    for entity in entities {
        let head = format!(
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             POST /{table} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(entity);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--changeset_c--\r\n--batch_b--\r\n");
    body
}

/// A batch of two inserts as text, with rows of this name.
fn two_inserts(table: &str, row: &str) -> String {
    let entity =
        |number| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}{number}\"}}").into_bytes();
    String::from_utf8(batch(table, &[entity(1), entity(2)])).unwrap()
}

/// 9.1: boundaries that contain, continue or repeat each other or the dashes, and line ends of both kinds.
#[test]
fn batches_that_are_hard_to_read() {
    let client = shared_client();
    let table = client.new_table();
    let usual = two_inserts(&table, "r");
    let with =
        |outer: &str, inner: &str| usual.replace("batch_b", outer).replace("changeset_c", inner);
    // Every line with another end than the one before.
    let mixed: String = usual
        .split("\r\n")
        .enumerate()
        .map(|(index, line)| format!("{line}{}", if index % 2 == 0 { "\n" } else { "\r\n" }))
        .collect();
    for (boundary, body) in [
        ("b", with("b", "bb")),
        ("bb", with("bb", "b")),
        ("batch", with("batch", "batch-")),
        ("---", with("---", "----")),
        ("-", with("-", "----")),
        ("aXaXa", with("aXaXa", "aXa")),
        ("x", with("x", "--x")),
        ("batch_b", mixed),
        ("batch_b", usual.replace("\r\n", "\n")),
        ("batch_b", usual.replace("changeset_c\r\n", "changeset_c \t\r\n")),
        ("batch_b", format!("--batch\r\nbatch_b\r\n -- batch_b\r\n{usual}--batch_b\r\nmore\r\n")),
    ] {
        let reply = BatchReply::read(post(&client, boundary, body.clone().into_bytes()));
        assert_eq!(reply.parts.len(), 2, "{body:?} {}", reply.response.text());
        reply.expect_done(2);
        assert_eq!(client.rows(&table, ""), ["r1", "r2"], "{body:?}");
        for row in ["r1", "r2"] {
            client.remove(&table, ("p", row), "*").expect(204);
        }
    }
}

#[test]
fn batches_that_cannot_be_read() {
    let client = shared_client();
    let table = client.new_table();
    let usual = two_inserts(&table, "r");
    let replaced = |from: &str, to: &str| {
        assert!(usual.contains(from), "{from}");
        usual.replace(from, to).into_bytes()
    };
    let bytes = |from: &str, to: &[u8]| {
        let at = usual.find(from).unwrap();
        [&usual.as_bytes()[..at], to, &usual.as_bytes()[at + from.len()..]].concat()
    };
    for (what, body) in [
        ("one boundary for both", replaced("changeset_c", "batch_b")),
        ("a boundary that is the end of the other", replaced("changeset_c", "batch_b--")),
        (
            "the outer boundary inside an entity",
            replaced("\"RowKey\"", "\r\n--batch_b--\r\n\"RowKey\""),
        ),
        (
            "the inner boundary inside an entity",
            replaced("\"RowKey\":\"r2\"", "\r\n--changeset_c\r\n\"RowKey\""),
        ),
        ("no end of the changeset", replaced("--changeset_c--\r\n", "")),
        ("the end of another changeset", replaced("--changeset_c--", "--changeset_c-")),
        ("no line ends but CR", replaced("\r\n", "\r")),
        (
            "a changeset inside a changeset",
            replaced("application/http", "multipart/mixed; boundary=d"),
        ),
        ("a URL that is not UTF-8", bytes(&format!("/{table}"), b"/\xff\xfe")),
        ("a header that is not UTF-8", bytes("return-no-content", b"\xff")),
        ("a MIME header that is not UTF-8", bytes("binary", b"\xc3\x28")),
        ("a folded header", replaced("Prefer: ", "Prefer:\r\n ")),
        ("no version", replaced(" HTTP/1.1", "")),
        (
            "a line without end",
            replaced(&format!("/{table} "), &format!("/{} ", "a".repeat(20_000))),
        ),
        (
            "headers without end",
            replaced("Prefer: ", &format!("{}Prefer: ", "A: b\r\n".repeat(50))),
        ),
        (
            "parts without end",
            [
                b"--batch_b\r\nContent-Type: application/http\r\n\r\nGET /t HTTP/1.1\r\n\r\n"
                    .repeat(17),
                b"--batch_b--".to_vec(),
            ]
            .concat(),
        ),
    ] {
        let response = post(&client, "batch_b", body);
        assert_eq!(
            (response.status, response.code().as_deref()),
            (400, Some("InvalidInput")),
            "{what}: {}",
            response.text()
        );
        assert_eq!(response.message(), INVALID, "{what}");
        assert!(client.rows(&table, "").is_empty(), "{what}");
    }
}
