//! One test per client, with the bytes that it sends, then the odd cases of wire reference 9.1 and
//! 9.5.
//!
//! Bodies marked as captured were taken off the wire of that release; host, GUIDs and one Python
//! row key were changed and some repeated headers and operations left out. The other bodies are
//! written after the wire reference.

use proptest::prelude::*;

use super::*;
use crate::table::if_match::IfMatch;
use crate::table::negotiate::Preference;

const CONTENT_TYPE: &str = "multipart/mixed; boundary=batch_1";
const ACCOUNT: &str = "devstoreaccount1";

fn parse(body: &str) -> Result<BatchRequest<'_>> {
    BatchRequest::parse(CONTENT_TYPE, body.as_bytes())
}

fn operations<'a>(body: &'a str) -> Vec<Operation<'a>> {
    let mut batch = parse(body).unwrap();
    assert_eq!(batch.parts.len(), 1);
    match batch.parts.remove(0) {
        Part::Changeset(changeset) => {
            assert!(!changeset.exceeds_limit);
            changeset.operations
        }
        Part::Single(operation) => panic!("{operation:?}"),
    }
}

/// Table, partition key and row key.
fn entity(operation: &Operation<'_>) -> (String, String, String) {
    match operation.resource(ACCOUNT).unwrap() {
        ResourcePath::Entity { table, partition_key, row_key } => (
            table.as_str().into(),
            partition_key.for_write().unwrap().into(),
            row_key.for_write().unwrap().into(),
        ),
        other => panic!("{other:?}"),
    }
}

fn key(partition_key: &str, row_key: &str) -> (String, String, String) {
    ("t1x".into(), partition_key.into(), row_key.into())
}

fn is_insert(operation: &Operation<'_>) -> bool {
    let resource = operation.resource(ACCOUNT).unwrap();
    matches!(resource, ResourcePath::TableEntities(table) if table.as_str() == "t1x")
        && operation.verb == Verb::Post
}

/// A batch around one changeset with the given operations, in CRLF.
fn wrap(parts: &[&str]) -> String {
    let mut body = "--batch_1\nContent-Type: multipart/mixed; boundary=changeset_2\n\n".to_owned();
    for part in parts {
        body.push_str("--changeset_2\nContent-Type: application/http\n");
        body.push_str("Content-Transfer-Encoding: binary\n\n");
        body.push_str(part);
        body.push('\n');
    }
    body.push_str("--changeset_2--\n\n--batch_1--\n");
    body.replace('\n', "\r\n")
}

#[test]
fn python_12_7() {
    // Captured. Content-ID stands among the MIME headers, Content-Length is given.
    let body = concat!(
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n",
        "--changeset_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n",
        "Content-ID: 0\r\n\r\n",
        "POST http://127.0.0.1:10002/devstoreaccount1/t1x HTTP/1.1\r\n",
        "Content-Type: application/json\r\nContent-Length: 124\r\nx-ms-version: 2019-02-02\r\n",
        "DataServiceVersion: 3.0\r\nAccept: application/json;odata=minimalmetadata\r\n",
        "x-ms-date: Sun, 15 Nov 2026 13:37:52 GMT\r\nDate: Sun, 15 Nov 2026 13:37:52 GMT\r\n\r\n",
        r#"{"PartitionKey": "O'B r", "PartitionKey@odata.type": "Edm.String", "RowKey": "1", "#,
        r#""RowKey@odata.type": "Edm.String", "v": 5}"#,
        "\r\n--changeset_2\r\nContent-Type: application/http\r\n",
        "Content-Transfer-Encoding: binary\r\nContent-ID: 1\r\n\r\n",
        "PATCH http://127.0.0.1:10002/devstoreaccount1/",
        "t1x(PartitionKey='O%27%27B%20r',RowKey='2%C3%A9') HTTP/1.1\r\n",
        "Content-Type: application/json\r\nContent-Length: 2\r\nAccept: application/json\r\n\r\n",
        "{}\r\n--changeset_2\r\nContent-Type: application/http\r\n",
        "Content-Transfer-Encoding: binary\r\nContent-ID: 2\r\n\r\n",
        "DELETE http://127.0.0.1:10002/devstoreaccount1/",
        "t1x(PartitionKey='O%27%27B%20r',RowKey='3') HTTP/1.1\r\n",
        "x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\n",
        "Accept: application/json;odata=minimalmetadata\r\nIf-Match: *\r\n",
        "x-ms-date: Sun, 15 Nov 2026 13:37:52 GMT\r\nDate: Sun, 15 Nov 2026 13:37:52 GMT\r\n\r\n",
        "\r\n--changeset_2--\r\n\r\n--batch_1--\r\n",
    );
    let operations = operations(body);
    assert_eq!(operations.len(), 3);
    assert!(is_insert(&operations[0]));
    assert!(operations[0].body.starts_with(b"{\"PartitionKey\": \"O'B r\""));
    assert_eq!(operations[0].body.len(), 124);
    assert_eq!(operations[0].prefer, None);
    assert_eq!(operations[0].content_id, None, "the MIME level is not echoed");
    assert_eq!(operations[1].verb, Verb::Merge);
    assert_eq!(entity(&operations[1]), key("O'B r", "2\u{e9}"));
    assert_eq!(operations[1].if_match, None);
    assert_eq!(operations[2].verb, Verb::Delete);
    assert_eq!(entity(&operations[2]), key("O'B r", "3"));
    assert_eq!(IfMatch::parse(operations[2].if_match).unwrap(), IfMatch::Any);
    assert_eq!(operations[2].body, b"");
}

#[test]
fn python_12_7_without_operations() {
    // Captured: an empty part, then the end.
    let body = concat!(
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n",
        "--changeset_2\r\n\r\n--changeset_2--\r\n\r\n--batch_1--\r\n",
    );
    assert!(operations(body).is_empty());
    let closed_at_once = body.replace("--changeset_2\r\n\r\n", "");
    assert!(operations(&closed_at_once).is_empty());
}

#[test]
fn javascript_13() {
    // Captured. Lower-case part headers, one empty line too many before each body, no lengths.
    let body = concat!(
        "--batch_1\r\ncontent-type: multipart/mixed; boundary=changeset_2\r\n\r\n\r\n",
        "--changeset_2\r\ncontent-type: application/http\r\ncontent-transfer-encoding: binary\r\n",
        "\r\nPOST http://127.0.0.1:10002/devstoreaccount1/t1x HTTP/1.1\r\n",
        "Content-Type: application/json;odata=nometadata\r\n",
        "Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n",
        "Prefer: return-no-content\r\n\r\n\r\n",
        r#"{"PartitionKey":"O'B r","RowKey":"1","v":5}"#,
        "\r\n--changeset_2\r\ncontent-type: application/http\r\n",
        "content-transfer-encoding: binary\r\n\r\n",
        "PATCH http://127.0.0.1:10002/devstoreaccount1/",
        "t1x(PartitionKey='O''B%20r',RowKey='2') HTTP/1.1\r\n",
        "Content-Type: application/json\r\nDataServiceVersion: 3.0\r\nAccept: application/json\r\n",
        "If-Match: *\r\n\r\n\r\n",
        r#"{"PartitionKey":"O'B r","RowKey":"2"}"#,
        "\r\n--changeset_2\r\ncontent-type: application/http\r\n",
        "content-transfer-encoding: binary\r\n\r\n",
        "DELETE http://127.0.0.1:10002/devstoreaccount1/",
        "t1x(PartitionKey='O''B%20r',RowKey='3') HTTP/1.1\r\n",
        "Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n",
        "If-Match: *\r\n\r\n\r\n--changeset_2--\r\n--batch_1--\r\n",
    );
    let operations = operations(body);
    assert_eq!(operations.len(), 3);
    assert!(is_insert(&operations[0]));
    assert_eq!(operations[0].body, br#"{"PartitionKey":"O'B r","RowKey":"1","v":5}"#);
    assert_eq!(operations[0].prefer.and_then(Preference::parse), Some(Preference::ReturnNoContent));
    assert_eq!(entity(&operations[1]), key("O'B r", "2"));
    assert_eq!(operations[1].body, br#"{"PartitionKey":"O'B r","RowKey":"2"}"#);
    assert_eq!(entity(&operations[2]), key("O'B r", "3"));
    assert_eq!(operations[2].body, b"");
}

#[test]
fn go_1_3() {
    // Captured. Sorted headers, empty values, `$format` in encoded form.
    let body = concat!(
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_2\r\n\r\n",
        "--changeset_2\r\nContent-Transfer-Encoding: binary\r\nContent-Type: application/http\r\n",
        "\r\nPOST http://127.0.0.1:10002/devstoreaccount1/t1x",
        "?%24format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\r\n",
        "Accept: application/json;odata=minimalmetadata\r\nContent-Length: 35\r\n",
        "Content-Type: application/json\r\nDataServiceVersion: \r\nPrefer: return-no-content\r\n",
        "x-ms-version: \r\n\r\n",
        r#"{"PartitionKey":"p r","RowKey":"1"}"#,
        "\r\n--changeset_2\r\nContent-Transfer-Encoding: binary\r\n",
        "Content-Type: application/http\r\n\r\n",
        "DELETE http://127.0.0.1:10002/devstoreaccount1/t1x(PartitionKey='p%20r',RowKey='3')",
        "?%24format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\r\n",
        "Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: \r\n",
        "If-Match: *\r\nx-ms-version: \r\n\r\n\r\n--changeset_2--\r\n\r\n--batch_1--\r\n",
    );
    let operations = operations(body);
    assert_eq!(operations.len(), 2);
    assert!(is_insert(&operations[0]));
    let query = operations[0].query().unwrap();
    assert_eq!(query.format(), Some("application/json;odata=minimalmetadata"));
    assert_eq!(operations[0].body, br#"{"PartitionKey":"p r","RowKey":"1"}"#);
    assert_eq!(entity(&operations[1]), key("p r", "3"));
}

#[test]
fn node_azure_storage_2_10() {
    // Captured. Bare LF, no final line end, a charset beside the boundary, Content-ID from index 1.
    let body = concat!(
        "--batch_1\ncontent-type: multipart/mixed;charset=\"utf-8\";boundary=changeset_2\n\n",
        "--changeset_2\ncontent-type: application/http\ncontent-transfer-encoding: binary\n\n",
        "POST http://127.0.0.1:10002/devstoreaccount1/t1x HTTP/1.1\nPrefer: return-no-content\n",
        "content-length: 43\ncontent-type: application/json;type=entry\n",
        "accept: application/json;odata=minimalmetadata\nmaxdataserviceversion: 3.0;NetFx\n\n",
        "{\"PartitionKey\":\"O'B r\",\"RowKey\":\"1\",\"v\":5}\n",
        "--changeset_2\ncontent-type: application/http\ncontent-transfer-encoding: binary\n\n",
        "MERGE http://127.0.0.1:10002/devstoreaccount1/",
        "t1x(PartitionKey=%27O%27%27B%20r%27,RowKey=%272%27) HTTP/1.1\nif-match: *\n",
        "content-length: 37\ncontent-type: application/json;type=entry\n",
        "accept: application/json;odata=minimalmetadata\nmaxdataserviceversion: 3.0;NetFx\n",
        "content-id: 1\n\n{\"PartitionKey\":\"O'B r\",\"RowKey\":\"2\"}\n",
        "--changeset_2--\n--batch_1--",
    );
    let content_type = "multipart/mixed; charset=\"utf-8\"; boundary=batch_1";
    let batch = BatchRequest::parse(content_type, body.as_bytes()).unwrap();
    let [Part::Changeset(Changeset { operations, .. })] = &batch.parts[..] else { panic!() };
    assert_eq!(operations.len(), 2);
    assert!(is_insert(&operations[0]));
    assert_eq!(operations[0].body, br#"{"PartitionKey":"O'B r","RowKey":"1","v":5}"#);
    assert_eq!(operations[0].content_id, None);
    assert_eq!(operations[1].verb, Verb::Merge);
    assert_eq!(entity(&operations[1]), key("O'B r", "2"));
    assert_eq!(operations[1].content_id, Some("1"));
    assert_eq!(operations[1].content_type, Some("application/json;type=entry"));
}

#[test]
fn node_azure_storage_2_10_retrieves() {
    // Captured: a query directly under the batch.
    let body = concat!(
        "--batch_1\ncontent-type: application/http\ncontent-transfer-encoding: binary\n\n",
        "GET http://127.0.0.1:10002/devstoreaccount1/",
        "t1x(PartitionKey=%27p%27,RowKey=%27r%27) HTTP/1.1\n",
        "accept: application/json;odata=minimalmetadata\nmaxdataserviceversion: 3.0;NetFx\n\n",
        "--batch_1--",
    );
    let batch = parse(body).unwrap();
    let [Part::Single(operation)] = &batch.parts[..] else { panic!("{batch:?}") };
    assert_eq!(operation.verb, Verb::Get);
    assert_eq!(entity(operation), key("p", "r"));
    assert_eq!(operation.accept, Some("application/json;odata=minimalmetadata"));
}

#[test]
fn dotnet_12() {
    // Wire reference 9.1: absolute URL with `$format`, a Host header, no length, PUT.
    let body = wrap(&[
        "POST https://acct.table.core.windows.net/t1x?$format=application%2Fjson%3Bodata%3D\
         minimalmetadata HTTP/1.1\nHost: acct.table.core.windows.net\nx-ms-version: 2020-12-06\n\
         DataServiceVersion: 3.0\nPrefer: return-no-content\nAccept: application/json\n\
         Content-Type: application/json; odata=nometadata\n\n{\"RowKey\":\"1\"}",
        "PUT https://acct.table.core.windows.net/t1x(PartitionKey='p',RowKey='2')?$format=\
         application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\n\
         Host: acct.table.core.windows.net\n\
         If-Match: W/\"datetime'2021-01-06T01%3A01%3A30.9296707Z'\"\n\n{\"RowKey\":\"2\"}",
    ]);
    let operations = operations(&body);
    assert!(is_insert(&operations[0]));
    assert_eq!(operations[1].verb, Verb::Put);
    assert_eq!(entity(&operations[1]), key("p", "2"));
    let version = IfMatch::Version("2021-01-06T01:01:30.9296707Z".into());
    assert_eq!(IfMatch::parse(operations[1].if_match).unwrap(), version);
}

#[test]
fn java_12() {
    // Wire reference 14: MERGE inside batches.
    let body = wrap(&["MERGE https://acct.table.core.windows.net/\
         t1x(PartitionKey='p',RowKey='2') HTTP/1.1\nContent-Type: application/json\n\
         Accept: application/json\nDataServiceVersion: 3.0\nContent-Length: 14\n\n\
         {\"RowKey\":\"2\"}"]);
    let operations = operations(&body);
    assert_eq!(operations[0].verb, Verb::Merge);
    assert_eq!(operations[0].body, b"{\"RowKey\":\"2\"}");
}

#[test]
fn legacy_python() {
    // Wire reference 9.1: relative URLs without Host, Content-ID among the inner headers from 1.
    let body = wrap(&[
        "POST /t1x HTTP/1.1\nContent-ID: 1\nAccept: application/json;odata=minimalmetadata\n\
         Content-Type: application/json\nContent-Length: 14\n\n{\"RowKey\":\"1\"}",
        "PUT /t1x(PartitionKey='001',RowKey='batch put') HTTP/1.1\nContent-ID: 2\n\
         If-Match: *\nContent-Length: 99\n\n{}",
    ]);
    let operations = operations(&body);
    assert!(is_insert(&operations[0]));
    assert_eq!(operations[0].content_id, Some("1"));
    // The URL is not encoded, and the length is wrong.
    assert_eq!(entity(&operations[1]), key("001", "batch put"));
    assert_eq!(operations[1].body, b"{}");
}

#[test]
fn cosmos_style_clients_tunnel_merges() {
    // Wire reference 1.1: SDKs that take localhost for Cosmos.
    let body = wrap(&["POST http://localhost:10003/devstoreaccount1/\
         t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nX-HTTP-Method: MERGE\nIf-Match: *\n\n{}"]);
    assert_eq!(operations(&body)[0].verb, Verb::Merge);
    let twice = body.replace("If-Match: *", "x-http-method: MERGE");
    assert_eq!(parse(&twice).unwrap_err().code(), ErrorCode::XMethodIncorrectCount);
    let put = body.replace("POST http", "PUT http");
    assert_eq!(parse(&put).unwrap_err().code(), ErrorCode::XMethodNotUsingPost);
}

#[test]
fn leftover_sas_fields_are_part_of_the_query() {
    let body =
        wrap(&["POST https://acct.table.core.windows.net/t1x?tn=t1x&si=policy HTTP/1.1\n\n{}"]);
    let operations = operations(&body);
    assert!(is_insert(&operations[0]));
    assert_eq!(operations[0].query().unwrap().value("tn"), Some("t1x"));
}

#[test]
fn preamble_epilogue_and_quoted_boundaries_are_tolerated() {
    let body = wrap(&["DELETE /t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nIf-Match: *"])
        .replace("boundary=changeset_2", "boundary=\"changeset_2\"");
    let body = format!("A preamble.\r\n{body}\r\nAn epilogue.\r\n--batch_1--\r\n");
    let batch =
        BatchRequest::parse("multipart/mixed; boundary=\"batch_1\"", body.as_bytes()).unwrap();
    let [Part::Changeset(changeset)] = &batch.parts[..] else { panic!("{batch:?}") };
    // The headers end with the part: there is no empty line.
    assert_eq!(changeset.operations[0].if_match, Some("*"));
}

#[test]
fn several_parts_keep_their_order() {
    let changeset = wrap(&["DELETE /t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nIf-Match: *\n"]);
    let first = changeset.replace("\r\n--batch_1--\r\n", "");
    let get = "--batch_1\r\nContent-Type: application/http\r\n\r\nGET /t1x() HTTP/1.1\r\n\r\n";
    let body = format!("{first}{changeset}").replace("--batch_1--", &format!("{get}--batch_1--"));
    let batch = parse(&body).unwrap();
    let kinds: Vec<_> = batch.parts.iter().map(|part| matches!(part, Part::Changeset(_))).collect();
    assert_eq!(kinds, [true, true, false]);
    let many = get.repeat(PARTS_MAX + 1) + "--batch_1--";
    assert_eq!(parse(&many).unwrap_err().code(), ErrorCode::InvalidInput);
}

#[test]
fn the_hundred_and_first_operation_is_reported() {
    let operation = "DELETE /t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nIf-Match: *\n";
    assert_eq!(operations(&wrap(&[operation; OPERATIONS_MAX])).len(), 100);
    let body = wrap(&[operation; OPERATIONS_MAX + 1]);
    let batch = parse(&body).unwrap();
    let [Part::Changeset(changeset)] = &batch.parts[..] else { panic!() };
    assert!(changeset.exceeds_limit);
    assert_eq!(changeset.operations.len(), OPERATIONS_MAX);
    assert_eq!(
        Changeset::limit_error().message(),
        "The batch request operation exceeds the maximum 100 changes per change set."
    );
}

#[test]
fn what_is_no_batch_is_refused() {
    // Wire reference 9.5.
    let delete = "DELETE /t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nIf-Match: *\n";
    let good = wrap(&[delete]);
    assert!(parse(&good).is_ok());
    let unclosed = good.replace("--changeset_2--\r\n", "");
    let twice = good.replace("If-Match: *", "If-Match: *\r\nIf-Match: *");
    for (case, body) in [
        ("nothing", ""),
        ("garbage", "garbage"),
        ("no part", "--batch_1--\r\n"),
        ("an empty part", "--batch_1\r\n\r\n--batch_1--\r\n"),
        ("a lost end", &unclosed),
        ("two conditions", &twice),
        ("no version", &good.replace(" HTTP/1.1", "")),
        ("no URL", &good.replace("/t1x(PartitionKey='p',RowKey='1')", "")),
        ("no request", &wrap(&[""])),
        ("another media type", &good.replace("application/http", "application/json")),
        ("a nested changeset", &good.replace("application/http", "multipart/mixed; boundary=x")),
        ("a changeset without boundary", &good.replace("; boundary=changeset_2", "")),
        ("a long line", &good.replace("RowKey='1'", &"x".repeat(multipart::LINE_LEN_MAX))),
        ("many headers", &good.replace("If-Match: *", &"A: b\r\n".repeat(50))),
    ] {
        let error = parse(body).expect_err(case);
        assert_eq!((error.code(), error.status()), (ErrorCode::InvalidInput, 400), "{case}");
    }
    for content_type in ["application/json", "multipart/mixed", "", "multipart/mixed; boundary="] {
        let error = BatchRequest::parse(content_type, good.as_bytes()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidInput, "{content_type}");
    }
    let verb = good.replace("DELETE", "BREW");
    assert_eq!(parse(&verb).unwrap_err().code(), ErrorCode::UnsupportedHttpVerb);
}

#[test]
fn a_batch_that_lost_its_end_is_never_executed_in_part() {
    let delete = "DELETE /t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nIf-Match: *\n";
    let body = wrap(&[delete; 3]);
    for end in 0..body.len() {
        if let Ok(batch) = parse(&body[..end]) {
            let [Part::Changeset(changeset)] = &batch.parts[..] else { panic!("{end}") };
            assert_eq!(changeset.operations.len(), 3, "{end}");
        }
    }
}

#[test]
fn a_content_id_that_could_break_a_header_is_dropped() {
    let body = wrap(&["DELETE /t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nContent-ID: a\x0bb\n"]);
    assert_eq!(operations(&body)[0].content_id, None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        content_type in any::<String>(),
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let _ = BatchRequest::parse(&content_type, &body);
        let _ = BatchRequest::parse(CONTENT_TYPE, &body);
    }

    #[test]
    fn shuffled_pieces_never_panic(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "--batch_1", "--changeset_2", "--", "\r\n", "\n", "\r", " ", ":",
                "Content-Type: multipart/mixed; boundary=changeset_2\r\n\r\n",
                "Content-Type: application/http\r\n\r\n", "POST /t1x HTTP/1.1\r\n", "GET ",
                "HTTP/1.1", "If-Match: *", "X-HTTP-Method: MERGE\r\n", "{\"a\":1}", "\u{e9}",
            ]),
            0..40,
        )
    ) {
        if let Ok(batch) = parse(&pieces.concat()) {
            for part in &batch.parts {
                if let Part::Single(operation) = part {
                    let _ = (operation.resource(ACCOUNT), operation.query());
                }
            }
        }
    }

    #[test]
    fn a_damaged_batch_never_panics(cut in 0_usize..400, byte in any::<u8>()) {
        let body = wrap(&["PUT /t1x(PartitionKey='p',RowKey='1') HTTP/1.1\nIf-Match: *\n\n{}"]);
        let mut body = body.into_bytes();
        let at = cut % body.len();
        body[at] = byte;
        let _ = BatchRequest::parse(CONTENT_TYPE, &body);
        let _ = BatchRequest::parse(CONTENT_TYPE, &body[..at]);
    }
}
