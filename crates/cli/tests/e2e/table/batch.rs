//! Entity group transactions (wire-reference 9): what parsers of real clients send and expect, and atomicity.

use serde_json::{Value, json};

use crate::support::client::entity_path;
use crate::support::http::between;
use crate::support::{Batch, BatchReply, Client, shared_client};

const MULTIPART: &str = "multipart/mixed; boundary=batch_b";

fn row(number: usize) -> Value {
    json!({"PartitionKey": "p", "RowKey": format!("{number:03}"), "A": number})
}

fn post(client: &Client, body: impl Into<Vec<u8>>) -> BatchReply {
    BatchReply::read(client.request("POST", "/$batch").body(MULTIPART, body).send())
}

/// 9.2: the literal text of a success, with the boundaries and ETags taken out of it.
#[test]
fn a_success_has_the_exact_text() {
    let client = shared_client();
    let table = client.new_table();
    for number in [2, 3] {
        client.insert(&table, &row(number)).expect(204);
    }
    let reply = Batch::new()
        .operation(
            &client,
            "POST",
            &format!("/{table}"),
            "Content-ID: 1\r\nPrefer: return-no-content\r\n",
            Some(&row(1)),
        )
        .put(&client, &table, ("p", "002"), Some("*"), &json!({"A": 5}))
        .delete(&client, &table, ("p", "003"), "*")
        .send(&client);
    let text = reply.response.text();
    let outer = between(text, "--batchresponse_", "\r\n").expect("a boundary");
    let inner = between(text, "boundary=changesetresponse_", "\r\n").expect("a boundary");
    let etags: Vec<_> = reply.parts.iter().map(|part| part.header("etag")).collect();
    let (first, second) = (etags[0].expect("an ETag"), etags[1].expect("an ETag"));
    let url = format!("{}/{table}(PartitionKey='p',RowKey='001')", client.base());
    let part = format!(
        "--changesetresponse_{inner}\r\nContent-Type: application/http\r\n\
         Content-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\n"
    );
    assert_eq!(
        text,
        format!(
            "--batchresponse_{outer}\r\n\
             Content-Type: multipart/mixed; boundary=changesetresponse_{inner}\r\n\r\n\
             {part}Content-ID: 1\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n\
             Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nLocation: {url}\r\n\
             DataServiceId: {url}\r\nETag: {first}\r\n\r\n\r\n\
             {part}X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n\
             DataServiceVersion: 1.0;\r\nETag: {second}\r\n\r\n\r\n\
             {part}X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n\
             DataServiceVersion: 1.0;\r\n\r\n\r\n\
             --changesetresponse_{inner}--\r\n--batchresponse_{outer}--\r\n"
        )
    );
    let content_type = format!("multipart/mixed; boundary=batchresponse_{outer}");
    assert_eq!(reply.response.header("content-type"), Some(content_type.as_str()));
    assert_eq!(reply.response.header("cache-control"), Some("no-cache"));
    assert_eq!(reply.response.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(client.rows(&table, ""), ["001", "002"]);
}

/// 9.2: an insert that echoes, with its headers in order and its JSON on one line.
#[test]
fn an_insert_without_preference_echoes_in_its_part() {
    let client = shared_client();
    let table = client.new_table();
    let batch = Batch::new().operation(&client, "POST", &format!("/{table}"), "", Some(&row(1)));
    let reply = batch.send(&client);
    let [part] = reply.expect_done(1) else { unreachable!() };
    assert_eq!((part.status, part.reason.as_str()), (201, "Created"));
    let names: Vec<_> = part.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "DataServiceVersion",
            "Content-Type",
            "X-Content-Type-Options",
            "Cache-Control",
            "Location",
            "ETag"
        ]
    );
    assert_eq!(part.json()["A"], 1);
    assert_eq!(part.json()["odata.etag"], json!(part.etag()));
}

/// 9.4: one part with the natural status, the index in front of the message, and nothing applied.
#[test]
fn a_failure_is_one_part_and_leaves_nothing() {
    let client = shared_client();
    let table = client.new_table();
    let kept = client.insert(&table, &row(9)).expect(204).etag();
    let base = || Batch::new().insert(&client, &table, &row(1)).insert(&client, &table, &row(2));
    let stale = kept.replace("20", "19");
    for (batch, status, code, index) in [
        (base().insert(&client, &table, &row(9)), 409, "EntityAlreadyExists", 2),
        (
            base().put(&client, &table, ("p", "009"), Some(&stale), &json!({})),
            412,
            "UpdateConditionNotSatisfied",
            2,
        ),
        (
            base().merge(&client, &table, ("p", "777"), Some("*"), &json!({})),
            404,
            "ResourceNotFound",
            2,
        ),
        (base().delete(&client, &table, ("p", "777"), "*"), 404, "ResourceNotFound", 2),
        (
            base().insert(&client, &table, &json!({"PartitionKey": "p"})),
            400,
            "PropertiesNeedValue",
            2,
        ),
        (
            base().insert(&client, &table, &json!({"PartitionKey": "q", "RowKey": "1"})),
            400,
            "CommandsInBatchActOnDifferentPartitions",
            2,
        ),
        (base().insert(&client, &table, &row(1)), 400, "InvalidDuplicateRow", 2),
        (base().delete(&client, &table, ("p", "001"), "*"), 400, "InvalidDuplicateRow", 2),
        (Batch::new().insert(&client, "missing", &row(1)), 404, "TableNotFound", 0),
        (Batch::new().insert(&client, "bad_name", &row(1)), 400, "InvalidResourceName", 0),
    ] {
        let reply = batch.send(&client);
        let part = reply.expect_failure(status, code, index);
        assert_eq!(part.header("DataServiceVersion"), Some("3.0;"));
        assert_eq!(
            part.header("Content-Type"),
            Some("application/json;odata=minimalmetadata;streaming=true;charset=utf-8")
        );
        assert_eq!(client.rows(&table, ""), ["009"], "{code}");
        assert_eq!(client.entity(&table, ("p", "009")).etag(), kept);
    }
}

/// 9.4: the messages that the live service sends.
#[test]
fn messages_of_failures() {
    let client = shared_client();
    let table = client.new_table();
    let twice = Batch::new().insert(&client, &table, &row(1)).insert(&client, &table, &row(1));
    let reply = twice.send(&client);
    assert_eq!(
        reply.expect_failure(400, "InvalidDuplicateRow", 1).message(),
        "1:The batch request contains multiple changes with same row key. An entity can appear only \
         once in a batch request."
    );
    let other = json!({"PartitionKey": "q", "RowKey": "1"});
    let mixed = Batch::new().insert(&client, &table, &row(1)).insert(&client, &table, &other);
    let reply = mixed.send(&client);
    let part = reply.expect_failure(400, "CommandsInBatchActOnDifferentPartitions", 1);
    assert_eq!(part.message(), "1:All commands in a batch must operate on same entity group.");
    assert_eq!(part.header("Preference-Applied"), Some("return-no-content"));
}

/// 5 and 9.4: a hundred operations, not more.
#[test]
fn a_hundred_operations_and_no_more() {
    let client = shared_client();
    let table = client.new_table();
    let batch =
        |count| (0..count).fold(Batch::new(), |batch, n| batch.insert(&client, &table, &row(n)));
    let reply = batch(101).send(&client);
    assert_eq!(
        reply.expect_failure(400, "InvalidInput", 99).message(),
        "99:The batch request operation exceeds the maximum 100 changes per change set."
    );
    assert!(client.rows(&table, "").is_empty());
    batch(100).send(&client).expect_done(100);
    assert_eq!(client.rows(&table, "").len(), 100);
}

/// 9.1: what azure-storage-node sends: LF, no final newline, quoted charset, lower-case names, `type=entry`.
#[test]
fn the_parser_takes_what_node_sends() {
    let client = shared_client();
    let table = client.new_table();
    let body = format!(
        "--batch_b\ncontent-type: multipart/mixed;charset=\"utf-8\";boundary=changeset_c\n\n\
         --changeset_c\ncontent-type: application/http\ncontent-transfer-encoding: binary\n\n\
         POST {}/{table} HTTP/1.1\ncontent-id: 1\nprefer: return-no-content\n\
         accept: application/json;odata=minimalmetadata\n\
         content-type: application/json;odata=nometadata;type=entry\ncontent-length: 35\n\n\
         {{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}}\n--changeset_c--\n--batch_b--",
        client.base()
    );
    let request = client.request("POST", "/$batch");
    let reply = request.body("multipart/mixed; charset=\"utf-8\";boundary=batch_b", body).send();
    let reply = BatchReply::read(reply);
    assert_eq!(reply.expect_done(1)[0].header("Content-ID"), Some("1"));
}

/// 9.1: an extra line before the body (JS), relative URLs (old Python), Content-ID of MIME (Python 12), which is
/// not echoed, and a tunnelled MERGE with a query (.NET on localhost).
#[test]
fn the_parser_takes_what_other_clients_send() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &row(2)).expect(204);
    let root = &client.root;
    let body = format!(
        "preamble\r\n--batch_b\r\nContent-Type: multipart/mixed; boundary=\"changeset_c\"\r\n\r\n\
         --changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
         Content-ID: 0\r\n\r\n\
         PUT /{root}/{table}(PartitionKey='p',RowKey='001') HTTP/1.1\r\n\
         Dataserviceversion: 3.0\r\nContent-Type: application/json\r\n\r\n\r\n{{\"A\":1}}\r\n\
         --changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         POST http://elsewhere:10002/{root}/{table}(PartitionKey=%27p%27,RowKey=%27002%27)?%24format=application%2Fjson HTTP/1.1\r\n\
         Host: elsewhere:10002\r\nX-HTTP-Method: MERGE\r\nIf-Match: *\r\nContent-Type: application/json\r\n\r\n\
         {{\"B\":2}}\r\n\
         --changeset_c--\r\n--batch_b--\r\nepilogue"
    );
    let reply = post(&client, body);
    assert_eq!(reply.expect_done(2)[0].header("Content-ID"), None);
    assert_eq!(client.entity(&table, ("p", "002")).expect(200).json()["B"], 2);
    assert_eq!(client.rows(&table, ""), ["001", "002"]);
}

/// 9.3: one query as a batch, and nothing beside it.
#[test]
fn a_single_query_in_a_batch() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &row(1)).expect(204);
    let part = |row: &str| {
        format!(
            "--batch_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             GET {}{} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n\r\n",
            client.base(),
            entity_path(&table, "p", row)
        )
    };
    let reply = post(&client, format!("{}--batch_b--\r\n", part("001")));
    let [found] = reply.expect_done(1) else { unreachable!() };
    assert_eq!((found.status, found.reason.as_str()), (200, "OK"));
    assert_eq!(found.json()["A"], 1);
    assert_eq!(found.header("DataServiceVersion"), Some("3.0;"));
    assert_eq!(found.etag(), client.entity(&table, ("p", "001")).etag());
    assert!(!reply.response.text().contains("changesetresponse"));

    let reply = post(&client, format!("{}--batch_b--\r\n", part("404")));
    reply.expect_failure(404, "ResourceNotFound", 0);
    let two = format!("{}{}--batch_b--\r\n", part("001"), part("001"));
    assert_eq!(post(&client, two).response.status, 400);
}

/// 9.5: failures of the whole, and the changeset without operations.
#[test]
fn batches_that_cannot_be_read() {
    let client = shared_client();
    let table = client.new_table();
    let empty = post(&client, Batch::new().body());
    assert_eq!(empty.response.status, 202);
    assert!(empty.parts.is_empty());
    assert!(empty.response.text().starts_with("--batchresponse_"), "{}", empty.response.text());
    assert!(empty.response.text().contains("--changesetresponse_"));

    for body in ["", "garbage", "--batch_b--\r\n", "--other\r\n\r\n--other--\r\n"] {
        post(&client, body).response.expect_error(400, "InvalidInput");
    }
    let json = client.post("/$batch", &json!({}));
    json.send().expect_error(400, "InvalidInput");
    let no_boundary = client.request("POST", "/$batch").body("multipart/mixed", "x");
    no_boundary.send().expect_error(400, "InvalidInput");
    let elsewhere = client.request("POST", format!("/{table}")).body(MULTIPART, "x");
    elsewhere.send().expect_error(415, "MediaTypeNotSupported");
}

/// 9.5: the first changeset is executed, a second one refused in its place.
#[test]
fn a_second_changeset_is_refused() {
    let client = shared_client();
    let table = client.new_table();
    let first = Batch::new().insert(&client, &table, &row(1)).body();
    let second = Batch::new().insert(&client, &table, &row(2)).body();
    let body = format!("{}{}", first.strip_suffix("--batch_b--\r\n").unwrap(), second);
    let reply = post(&client, body);
    let statuses: Vec<_> = reply.parts.iter().map(|part| part.status).collect();
    assert_eq!(statuses, [204, 400], "{}", reply.response.text());
    assert_eq!(client.rows(&table, ""), ["001"]);
}

/// 9: operations run in order on one state, with one moment; both upserts work in a batch.
#[test]
fn upserts_in_a_batch() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &row(1)).expect(204);
    let reply = Batch::new()
        .put(&client, &table, ("p", "000"), None, &json!({"B": 1}))
        .merge(&client, &table, ("p", "001"), None, &json!({"B": 1}))
        .send(&client);
    reply.expect_done(2);
    let merged = client.entity(&table, ("p", "001")).expect(200).json();
    assert_eq!((&merged["A"], &merged["B"]), (&json!(1), &json!(1)));
}

/// 9: a transaction is seen as a whole: who reads the partition sees all rows of one number.
#[test]
fn readers_never_see_half_a_transaction() {
    const ROWS: usize = 5;
    let client = shared_client();
    let table = client.new_table();
    let write = |client: &Client, number: usize| {
        let batch = (0..ROWS).fold(Batch::new(), |batch, row| {
            let keys = ("p", format!("{row}"));
            batch.put(client, &table, (keys.0, &keys.1), None, &json!({ "Number": number }))
        });
        batch.send(client).expect_done(ROWS);
    };
    write(&client, 0);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for filter in
            ["PartitionKey eq 'p'", "PartitionKey eq 'p' and (RowKey eq '0' or RowKey ge '2')"]
        {
            let (server, table, done) = (client.server(), &table, &done);
            scope.spawn(move || {
                let reader = Client::new(server);
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let found = reader.matches(table, filter);
                    let numbers: Vec<_> = found.iter().map(|entity| &entity["Number"]).collect();
                    assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "{numbers:?}");
                }
            });
        }
        for number in 1..100 {
            write(&client, number);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// 9.1: all operations address one table.
#[test]
fn a_batch_is_for_one_table() {
    let client = shared_client();
    let (table, other) = (client.new_table(), client.new_table());
    let reply = Batch::new()
        .insert(&client, &table, &row(1))
        .insert(&client, &other, &row(2))
        .send(&client);
    let [part] = &reply.parts[..] else { panic!("{}", reply.response.text()) };
    assert_eq!(part.status, 400);
    assert!(client.rows(&table, "").is_empty() && client.rows(&other, "").is_empty());
    // The name's case does not make it another.
    let lower = table.to_lowercase();
    let batch = Batch::new().insert(&client, &table, &row(1)).insert(&client, &lower, &row(2));
    batch.send(&client).expect_done(2);
}

/// 9.3: a query does not go with changes.
#[test]
fn a_query_inside_a_changeset_is_refused() {
    let client = shared_client();
    let table = client.new_table();
    let path = entity_path(&table, "p", "001");
    let batch = Batch::new().insert(&client, &table, &row(1));
    let reply = batch.operation(&client, "GET", &path, "", None).send(&client);
    let status = reply.parts.first().map_or(reply.response.status, |part| part.status);
    assert_eq!(status, 400, "{}", reply.response.text());
    assert!(client.rows(&table, "").is_empty());
}

/// 9.1: fields of a token that JS leaves in the URLs of parts.
#[test]
fn leftover_fields_in_part_urls_are_ignored() {
    let client = shared_client();
    let table = client.new_table();
    let path = format!("/{table}?tn={table}&si=policy&sip=127.0.0.1");
    let batch = Batch::new().operation(&client, "POST", &path, "", Some(&row(1)));
    batch.send(&client).expect_done(1);
}

/// 9.4: a failure means that nothing was done, also when it is the answer that cannot be given.
#[test]
fn an_answer_in_no_format_is_refused_before_anything_is_written() {
    let client = shared_client();
    let table = client.new_table();
    let entity = |row: &str| json!({"PartitionKey": "p", "RowKey": row});
    let path = format!("/{table}?$format=atom");
    let batch = Batch::new().insert(&client, &table, &entity("1")).operation(
        &client,
        "POST",
        &path,
        "",
        Some(&entity("2")),
    );
    batch.send(&client).expect_failure(415, "AtomFormatNotSupported", 1);
    assert!(client.rows(&table, "").is_empty());
}
