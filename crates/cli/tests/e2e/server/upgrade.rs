//! Data folders of every format that was ever written open, and hold what was written.
//!
//! `upgrade_features` has what is particular to format 2. `tests/fixtures/format-<number>/` holds a folder and, in `expected.json`, what the server answered when it was made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tavola_engine::conformance::commit;
use tavola_engine::{EmbeddedEngine, EmbeddedOptions, Reader, Write};

use crate::support::client::values;
use crate::support::{Batch, Client, Launch, Server, now_ticks};

/// The format that this version writes as long as no feature is used that needs another.
const FORMAT: u32 = 1;

const PROPERTIES: &str = "/?restype=service&comp=properties";

pub(super) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::write(target, std::fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Copies the fixture of this format: a folder with every kind of file.
pub(crate) fn copy_fixture(to: &Path) {
    copy(&fixtures().join(format!("format-{FORMAT}")).join("data"), to);
}

#[test]
fn every_format_opens_with_all_it_holds() {
    let formats: Vec<_> = std::fs::read_dir(fixtures()).unwrap().map(Result::unwrap).collect();
    assert!(formats.len() >= FORMAT as usize);
    for format in formats {
        let path = format.path();
        let text = std::fs::read_to_string(path.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        copy(&path.join("data"), &folder.path().join("tavola-data"));
        let server = Arc::new(Server::start_in(Launch::new(), folder));
        let client = Client::new(&server);
        assert_answers(&client, &expected, &path);
        let dropped = expected["dropped"].as_str().unwrap();
        client.query(dropped, &[]).send().expect_error(404, "TableNotFound");
        // It is in use: what is written is there after another start.
        let row = json!({"PartitionKey": "later", "RowKey": "version"});
        client.insert("Plain", &row).expect(204);
        server.restart_cleanly();
        let client = Client::new(&server);
        client.entity("Plain", ("later", "version")).expect(200);
        client
            .delete("/Plain(PartitionKey='later',RowKey='version')")
            .if_match("*")
            .send()
            .expect(204);
        assert_answers(&client, &expected, &path);
    }
}

/// What every format has; others hold more.
fn assert_answers(client: &Client, expected: &Value, path: &Path) {
    let found = answers(client);
    for (what, found) in found.as_object().unwrap() {
        assert_eq!(*found, expected[what], "{what} of {}", path.display());
    }
}

/// Every table that can be read, with ETags and types.
pub(super) fn answers(client: &Client) -> Value {
    let tables = values(&client.get("/Tables").send().expect(200));
    let mut entities = BTreeMap::new();
    let mut policies = BTreeMap::new();
    let names = tables.iter().map(|table| table["TableName"].as_str().unwrap());
    // Whose entities are the server's own, and count what is done.
    for table in names.filter(|name| !name.starts_with("Tavola")) {
        entities.insert(table, client.matches(table, ""));
        let acl = client.get(format!("/{table}?comp=acl")).send().expect(200);
        policies.insert(table, acl.text().to_owned());
    }
    let properties = client.get(PROPERTIES).send().expect(200).text().to_owned();
    json!({
        "tables": entities, "policies": policies, "properties": properties, "dropped": "Dropped",
    })
}

/// Writes the fixture of the format that this version writes, if there is none yet:
/// `cargo test -p tavola --test e2e write_the_fixture -- --ignored`.
#[test]
#[ignore = "writes a fixture; run it when the format changes"]
fn write_the_fixture() {
    let target = new_fixture(&format!("format-{FORMAT}"));
    let (server, data) = start_with_small_memtable();
    let client = Client::new(&server);
    fill(&client);
    let mut expected = answers(&client);
    server.ask_to_stop();
    assert!(server.wait().success());
    mark_as_dropped(&data, "unswept");
    for list in ["tables", "policies"] {
        expected[list].as_object_mut().unwrap().remove("Unswept");
    }
    keep(&data, &expected, &target);
}

/// Where a fixture is written, which must not be there yet.
pub(super) fn new_fixture(name: &str) -> PathBuf {
    let target = fixtures().join(name);
    assert!(!target.join("data").exists(), "a fixture is never written again");
    target
}

/// A server and its data folder, which keeps the size of a memtable: a small one, so that rows get into tables.
pub(super) fn start_with_small_memtable() -> (Arc<Server>, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("tavola-data");
    let options = EmbeddedOptions { memtable_bytes: 4 * 1024, ..EmbeddedOptions::default() };
    drop(EmbeddedEngine::open(&data, options).unwrap());
    (Arc::new(Server::start_in(Launch::new(), folder)), data)
}

/// Writes a data folder down, with what it must answer.
pub(super) fn keep(data: &Path, expected: &Value, target: &Path) {
    copy(data, &target.join("data"));
    shorten_journals(&target.join("data/store"));
    let text = serde_json::to_string_pretty(expected).unwrap();
    std::fs::write(target.join("expected.json"), text + "\n").unwrap();
}

fn fill(client: &Client) {
    for table in ["Plain", "Types", "Dropped", "Unswept", "Empty", "ManyRows"] {
        client.create_table(table).expect(204);
    }
    let types = json!({
        "PartitionKey": "types", "RowKey": "all",
        "Text": "Grüße, 世界 😀", "Empty": "", "Yes": true, "No": false, "Int": -7, "Zero": 0,
        "Long": "-9223372036854775808", "Long@odata.type": "Edm.Int64",
        "Double": 1.5, "Whole": 3.0, "Whole@odata.type": "Edm.Double",
        "NaN": "NaN", "NaN@odata.type": "Edm.Double",
        "Infinite": "-Infinity", "Infinite@odata.type": "Edm.Double",
        "Moment": "2024-02-29T12:34:56.7890123Z", "Moment@odata.type": "Edm.DateTime",
        "Guid": "00112233-4455-6677-8899-aabbccddeeff", "Guid@odata.type": "Edm.Guid",
        "Bytes": "AAECAwT/", "Bytes@odata.type": "Edm.Binary",
    });
    client.insert("Types", &types).expect(204);
    // Keys that sort by UTF-16 code unit, at both ends and empty.
    for (partition, row) in
        [("", ""), ("a", "ab"), ("a", "😀"), ("a", "\u{e000}"), ("ä", "'quoted'")]
    {
        let entity =
            json!({"PartitionKey": partition, "RowKey": row, "Keys": format!("{partition}|{row}")});
        client.insert("Plain", &entity).expect(204);
    }
    // Together large enough for a value file.
    let letter = |index: u32| char::from(b'a' + (index * 7 % 26) as u8);
    let text: String = (0..17_000).map(letter).collect();
    let large = json!({"PartitionKey": "large", "RowKey": "1", "First": text, "Second": text});
    client.insert("Plain", &large).expect(204);
    for batch in 0..3 {
        let rows = (0..40).fold(Batch::new(), |rows, row| {
            let entity = json!({
                "PartitionKey": format!("p{batch}"), "RowKey": format!("{row:03}"), "Number": row,
            });
            rows.insert(client, "ManyRows", &entity)
        });
        rows.send(client).expect_done(40);
    }
    for row in ["000", "017", "039"] {
        client.remove("ManyRows", ("p1", row), "*").expect(204);
    }
    client.merge("Types", ("types", "all"), &json!({"Merged": 1})).if_match("*").send().expect(204);
    for table in ["Dropped", "Unswept"] {
        client.insert(table, &json!({"PartitionKey": "p", "RowKey": "r"})).expect(204);
    }
    client.drop_table("Dropped").expect(204);
    put_policies_and_properties(client, &["Plain"]);
    // The end of the journal, in no table yet.
    client.insert("Plain", &json!({"PartitionKey": "z", "RowKey": "last"})).expect(204);
}

pub(super) fn put_policies_and_properties(client: &Client, tables: &[&str]) {
    let acl = "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
        <Start>2024-01-01T00:00:00Z</Start><Expiry>2034-01-01T00:00:00Z</Expiry>\
        <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    for table in tables {
        let request = client.request("PUT", format!("/{table}?comp=acl"));
        request.body("application/xml", acl).send().expect(204);
    }
    let properties = "<StorageServiceProperties><Cors><CorsRule>\
        <AllowedOrigins>https://example.org</AllowedOrigins><AllowedMethods>GET</AllowedMethods>\
        <AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
        <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    client.request("PUT", PROPERTIES).body("application/xml", properties).send().expect(202);
}

/// What dropping a table writes, with nobody there to sweep its rows.
fn mark_as_dropped(data: &Path, lower_name: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = EmbeddedEngine::open(data, EmbeddedOptions::default()).unwrap();
        let key = Bytes::from([&b"T\0\0\0\0\0\0\0\x01"[..], lower_name.as_bytes()].concat());
        let record = engine.get(&key).await.unwrap().expect("the table");
        let id = u64::from_le_bytes(record[1..9].try_into().unwrap());
        let mark = Bytes::from([&b"D"[..], &id.to_be_bytes()].concat());
        let moment = Bytes::copy_from_slice(&now_ticks().0.to_le_bytes());
        commit(&engine, vec![Write::Delete(key), Write::Put(mark, moment)]).await;
    });
}

/// Journals are preallocated; without their zeros they are the same.
fn shorten_journals(store: &Path) {
    for entry in std::fs::read_dir(store).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "jnl") {
            let mut bytes = std::fs::read(&path).unwrap();
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(end);
            std::fs::write(&path, bytes).unwrap();
        }
    }
}
