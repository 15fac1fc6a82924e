//! What the check says about rows that nobody should have written.

use tavola_engine::{Decision, EmbeddedEngine, EmbeddedOptions, Engine, Transition, WriteSet};
use tavola_wire::table::stored::{EntityWriter, Value, set_timestamp};

use super::*;
use crate::storage::layout::{AccountId, EntityKeys, TableId};

struct Put(Vec<(Bytes, Bytes)>);

impl Transition for Put {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &[]
    }

    fn apply(&mut self, _: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        for (key, value) in self.0.drain(..) {
            writes.put(key, value);
        }
        Decision::Commit(())
    }
}

fn record(id: u64, name: &str) -> Bytes {
    let created = Ticks::MIN_STORED;
    TableRecord { id: TableId(id), created, name: name.into(), policies: Bytes::new() }.encode()
}

fn entity(names: &[&str]) -> Bytes {
    let mut writer = EntityWriter::new();
    for name in names {
        writer.push(name, Value::Int32(7));
    }
    let mut bytes = writer.finish();
    set_timestamp(&mut bytes, Ticks::MIN_STORED);
    bytes.into()
}

/// An account, a table with an entity, and a table that was dropped and is not swept.
fn sound() -> Vec<(Bytes, Bytes)> {
    vec![
        (layout::sequence_key(), layout::encode_id(4)),
        (layout::account_key("account"), layout::encode_id(1)),
        (layout::table_key(AccountId(1), "people"), record(2, "People")),
        (layout::dropped_key(TableId(3)), layout::encode_moment(Ticks::MIN_STORED)),
        (EntityKeys::of(TableId(2)).key("p", "r"), entity(&["A", "B"])),
        (EntityKeys::of(TableId(3)).key("p", "r"), entity(&[])),
    ]
}

/// The report on a folder with these rows.
fn report(rows: Vec<(Bytes, Bytes)>) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = EmbeddedEngine::open(folder.path(), EmbeddedOptions::default()).unwrap();
        engine.transact(Put(rows)).await.unwrap();
    });
    check(folder.path(), |_| {}).unwrap()
}

#[test]
fn sound_rows_are_counted() {
    let report = report(sound());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.accounts, report.tables, report.dropped_tables), (1, 1, 1));
    assert_eq!(report.entities, 2);
}

#[test]
fn rows_that_nobody_wrote_are_told() {
    let entity_keys = EntityKeys::of(TableId(2));
    let mut cut = entity(&["A"]).to_vec();
    cut.pop();
    let mut longer = entity(&["A"]).to_vec();
    longer.push(0);
    let mut early = entity(&["A"]).to_vec();
    set_timestamp(&mut early, Ticks(-1));
    let wrong: Vec<(Bytes, Bytes, &str)> = vec![
        (Bytes::from_static(b"X12345678"), Bytes::new(), "no family of rows begins like this"),
        (Bytes::from_static(b"T1"), Bytes::new(), "its key is too short"),
        (layout::account_key("other"), layout::encode_id(4), "its id 4 was never given out"),
        (layout::account_key("other"), layout::encode_id(1), "two accounts have the same id"),
        (layout::account_key("Other"), layout::encode_id(3), "no name of an account"),
        (layout::table_key(AccountId(1), "pets"), record(9, "Pets"), "id 9 was never given out"),
        (layout::table_key(AccountId(1), "pets"), record(2, "Pets"), "two tables have the same id"),
        (layout::table_key(AccountId(1), "pets"), record(3, "Pets"), "also stands for something"),
        (layout::table_key(AccountId(1), "pets"), record(3, "Cats"), "another name than its own"),
        (layout::table_key(AccountId(1), "a-b"), record(3, "a-b"), "its name is not legal"),
        (layout::table_key(AccountId(2), "pets"), record(3, "Pets"), "it belongs to no account"),
        (
            layout::table_key(AccountId(1), "pets"),
            Bytes::from_static(b"x"),
            "record cannot be read",
        ),
        (layout::properties_key(AccountId(1)), Bytes::from_static(b"\x02"), "service properties"),
        (layout::dropped_key(TableId(3)), Bytes::from_static(b"x"), "it does not say when"),
        (EntityKeys::of(TableId(1)).key("p", "r"), entity(&[]), "it belongs to no table"),
        (entity_keys.raw(b"no separator"), entity(&[]), "its key cannot be read"),
        (entity_keys.key("a/b", "r"), entity(&[]), "its key is not legal"),
        (entity_keys.key("p", "x"), Bytes::from_static(b"x"), "its value is no entity"),
        (entity_keys.key("p", "x"), early.into(), "its value is no entity"),
        (entity_keys.key("p", "x"), cut.into(), "its properties cannot all be read"),
        (entity_keys.key("p", "x"), longer.into(), "its properties cannot all be read"),
        (entity_keys.key("p", "x"), entity(&["A", "A"]), "two properties have the same name"),
        (entity_keys.key("p", "x"), entity(&["1A"]), "a property's name is not legal"),
    ];
    for (key, value, expected) in wrong {
        let mut rows = sound();
        rows.push((key.clone(), value));
        let report = report(rows);
        let told = report.row_problems.join("\n");
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(told.contains(&key.escape_ascii().to_string()), "{told}");
        assert!(report.files.problems.is_empty());
    }
}
