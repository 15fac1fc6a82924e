//! An index whose rows are not what the entities say: nobody is told anything wrong, and it is not used any more.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tavola_engine::conformance::commit;
use tavola_engine::{EmbeddedEngine, EmbeddedOptions, KeyRange, Reader, Visitor, Write};

use super::*;
use crate::support::client::row_keys;

#[test]
fn an_index_with_a_row_without_its_entity_is_used_no_more() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    let view = format!("View{}", std::process::id());
    let people: Vec<_> = (0..50).map(|row| person("p", row)).collect();
    insert_all(&client, &table, &people);
    let by_town = json!({"Keys": "Town"});
    build(&client, &table, "ByTown", &by_town);
    build(&client, &table, "ByAge", &json!({"Keys": "Age", "BrowseAs": view}));
    build(&client, &table, "Copies", &json!({"Keys": "Email", "Include": "*"}));

    server.ask_to_stop();
    assert!(server.wait().success());
    remove_entity(&server.data_folder(), &table, 3);
    server.start_again();

    // The answer is right at once, whoever asks first.
    let expected: Vec<_> = (0..50).filter(|row| row % 7 == 3 && *row != 3).collect();
    let expected: Vec<_> = expected.into_iter().map(|row| format!("{row:05}")).collect();
    let filter = "Town eq 'Town3'";
    assert_eq!(client.rows(&table, filter), expected);
    let failed = wait_for(&client, &table, "ByTown", "Failed");
    assert!(failed["Error"].as_str().unwrap().contains("does not exist"), "{failed}");
    let page = explained(&client, &table, &[("$filter", filter)]);
    assert_eq!(row_keys(&crate::support::client::values(&page)), expected);
    assert_eq!(page.header("x-tavola-index-not-used"), Some("ByTown=failed"));
    assert_eq!(page.header("x-tavola-index"), None);
    let (is_done, told) = command_line(&client, &["show", &table, "ByTown"]);
    assert!(is_done && told.contains("Failed") && told.contains("does not exist"), "{told}");
    // To ask for a verification is not to declare it again.
    let (is_done, told) = command_line(&client, &["verify", &table, "ByTown"]);
    assert!(!is_done && told.contains("has failed") && told.contains("does not exist"), "{told}");
    assert!(verify(&client, &table, "ByTown").contains("does not exist"));
    assert_eq!(index(&client, &table, "ByTown")["State"], "Failed");
    // Nobody has met a wrong row of the others yet.
    for name in ["ByAge", "Copies"] {
        assert_eq!(index(&client, &table, name)["State"], "Readable");
    }
    assert_eq!(client.matches(&view, "").len(), 49);
    wait_for(&client, &table, "ByAge", "Failed");
    client.query(&view, &[]).send().expect_error(404, "TableNotFound");
    // What needs no index does not ask for one.
    let row = json!({"PartitionKey": "p", "RowKey": "r"});
    client.insert(&view, &row).expect_error(403, "InsufficientAccountPermissions");
    client.get(format!("/{view}?comp=acl")).send().expect(200);

    // A verification tells whoever may read about indexes how many rows are wrong, and neither keys nor values.
    let told = verify(&client, &table, "Copies");
    assert!(told.starts_with("1 differences, 49 entries expected, 50 found"), "{told}");
    let (is_done, printed) = command_line(&client, &["verify", &table, "Copies"]);
    assert!(!is_done && printed.contains(&told), "{printed}");
    let shown = command_line(&client, &["show", &table, "Copies"]).1;
    let listed = client.query(INDEXES, &[]).send().expect(200);
    for text in [&told, &printed, &shown, listed.text()] {
        assert!(!text.contains("example.com") && !text.contains("00003"), "{text}");
    }
    let state = index(&client, &table, "Copies")["State"].clone();
    assert_eq!(state, "Readable", "a verification alone decides nothing");

    // It stays so, writers have no trouble with it, and another declaration mends it.
    server.crash_and_restart();
    assert_eq!(index(&client, &table, "ByTown")["State"], "Failed");
    client.insert(&table, &person("q", 3)).expect(204);
    client.remove(&table, ("p", "00010"), "*").expect(204);
    client.remove(INDEXES, (&table, "Copies"), "*").expect(204);
    for (name, definition) in [("ByTown", by_town), ("ByAge", json!({"Keys": "Age"}))] {
        let built = build(&client, &table, name, &definition);
        assert_eq!(built["Error"], "", "{built}");
        assert_sound(&client, &table, name, 49);
    }
    let page = explained(&client, &table, &[("$filter", filter)]);
    assert_eq!(page.header("x-tavola-index"), Some("ByTown"));
    let expected: Vec<_> = ["00017", "00024", "00031", "00038", "00045", "00003"].into();
    assert_eq!(row_keys(&crate::support::client::values(&page)), expected);
}

/// Takes an entity away behind the back of the indexes: the one at this place in the table.
fn remove_entity(data: &Path, table: &str, place: usize) {
    struct Keys(Vec<Bytes>);
    impl Visitor for Keys {
        fn visit(&mut self, key: &[u8], _: &[u8]) -> ControlFlow<()> {
            self.0.push(Bytes::copy_from_slice(key));
            ControlFlow::Continue(())
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = EmbeddedEngine::open(data, EmbeddedOptions::default()).unwrap();
        let name = table.to_lowercase();
        let record = Bytes::from([&b"T\0\0\0\0\0\0\0\x01"[..], name.as_bytes()].concat());
        let record = engine.get(&record).await.unwrap().expect("the table");
        let id = u64::from_le_bytes(record[1..9].try_into().unwrap());
        let first = |id: u64| Bytes::from([&b"E"[..], &id.to_be_bytes()].concat());
        let rows = KeyRange { start: first(id), end: first(id + 1) };
        let keys = engine.scan(rows, Keys(Vec::new())).await.unwrap().0;
        commit(&engine, vec![Write::Delete(keys[place].clone())]).await;
    });
}
