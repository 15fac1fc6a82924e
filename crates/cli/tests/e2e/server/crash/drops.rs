//! Dropping: durable once answered, whole although nobody waits, and the space comes back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::values;
use crate::support::{Batch, Client, Launch, Random};

/// Issue "The engine": a drop is durable once answered, and a name can be used again at once.
#[test]
fn dropped_tables_stay_dropped() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let (dropped, reused, kept) = (client.new_table(), client.new_table(), client.new_table());
    for table in [&dropped, &reused, &kept] {
        load(&client, table, 0, 3, 10);
    }
    client.drop_table(&dropped).expect(204);
    client.drop_table(&reused).expect(204);
    client.create_table(&reused).expect(204);
    client.insert(&reused, &json!({"PartitionKey": "new", "RowKey": "row"})).expect(204);
    for _ in 0..2 {
        server.crash_and_restart();
        client.query(&dropped, &[]).send().expect_error(404, "TableNotFound");
        assert_eq!(client.rows(&reused, ""), ["row"]);
        assert_eq!(client.rows(&kept, "").len(), 300);
    }
}

/// Fills a table with batches of a hundred rows.
fn load(client: &Client, table: &str, from: usize, batches: usize, text_bytes: usize) {
    let mut random = Random::new(from as u64);
    let noise: String = (0..4096).map(|_| format!("{:016x}", random.next())).collect();
    for number in from..from + batches {
        let batch = (0..100).fold(Batch::new(), |batch, row| {
            let start = random.below(noise.len() - text_bytes);
            let text = &noise[start..start + text_bytes];
            let entity =
                format!(r#"{{"PartitionKey":"p{number:05}","RowKey":"{row:02}","Text":"{text}"}}"#);
            batch.insert_text(client, table, &entity)
        });
        batch.send(client).expect_done(100);
    }
}

/// The bytes of a folder: its journals, and all that is not a journal.
fn folder_bytes(folder: &Path) -> (u64, u64) {
    let entries = std::fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
    // Files come and go while the server runs.
    entries.unwrap_or_default().into_iter().fold((0, 0), |(journals, others), entry| {
        let (more_journals, more_others) = match entry.metadata() {
            Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
            Ok(meta) if entry.path().extension().is_some_and(|ending| ending == "jnl") => {
                (meta.len(), 0)
            }
            Ok(meta) => (0, meta.len()),
            Err(_) => (0, 0),
        };
        (journals + more_journals, others + more_others)
    })
}

const LARGE_TABLE_BATCHES: usize = 1000;
const LOADERS: usize = 2;
/// How often the folder is looked at before the space counts as lost.
const SPACE_CHECKS_MAX: usize = 600;

/// Issue "The engine": dropping a large table returns at once, its name is free at once, a crash right after
/// loses nothing, and its space comes back while the service runs. A journal is kept until it is full, so it
/// counts apart.
#[test]
fn the_space_of_a_dropped_table_comes_back() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let kept = client.new_table();
    load(&client, &kept, 0, 1, 64);
    let table = client.new_table();
    let share = LARGE_TABLE_BATCHES / LOADERS;
    std::thread::scope(|scope| {
        for loader in 0..LOADERS {
            let (server, table) = (&server, &table);
            scope.spawn(move || load(&Client::new(server), table, loader * share, share, 256));
        }
    });
    let (journals, others) = folder_bytes(&server.data_folder());
    let full = journals + others;
    assert!(full > 20 << 20, "{full}");

    client.drop_table(&table).expect(204);
    client.create_table(&table).expect(204);
    assert!(client.rows(&table, "").is_empty());
    client.insert(&table, &json!({"PartitionKey": "p00000", "RowKey": "00"})).expect(204);
    // Killed while the rows are being cleared.
    server.crash_and_restart();
    assert_eq!(client.rows(&table, ""), ["00"]);

    let is_back = || {
        let (journals, others) = folder_bytes(&server.data_folder());
        journals + others < full * 2 / 3 && others < full / 50
    };
    for _ in 0..SPACE_CHECKS_MAX {
        if is_back() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let left = folder_bytes(&server.data_folder());
    assert!(is_back(), "{left:?} bytes of {full} are left\n{}", server.log());
    assert_eq!(client.rows(&table, ""), ["00"]);
    assert_eq!(client.rows(&kept, "").len(), 100);
    let tables: Vec<Value> = values(&client.get("/Tables").send().expect(200));
    assert_eq!(tables.len(), 2);
}

/// A client that goes away while its table is dropped must not leave the server with the old table in mind: what is
/// written to a new table of the same name would be swept with the old one.
#[test]
fn a_drop_that_nobody_waits_for_is_whole() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let row = json!({"PartitionKey": "p", "RowKey": "r"});
    let tables: Vec<_> = (0..30).map(|_| client.new_table()).collect();
    for table in &tables {
        client.insert(table, &row).expect(204);
        client.delete(format!("/Tables('{table}')")).send_and_leave();
        // Some of these were heard and some were not; those that were are soon done.
        let mut looks = 0..50;
        while looks.next().is_some()
            && client.get(format!("/Tables('{table}')")).send().status == 200
        {}
        client.drop_table(table);
        client.create_table(table).expect(204);
        client.insert(table, &row).expect(204);
    }
    server.restart_cleanly();
    let client = Client::new(&server);
    for table in &tables {
        client.entity(table, ("p", "r")).expect(200);
    }
}
