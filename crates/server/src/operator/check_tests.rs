//! The words of the check about rows that nobody should have written.

use tavola_engine::{Decision, EmbeddedEngine, EmbeddedOptions, Engine, Transition, WriteSet};
use tavola_wire::Service;
use tavola_wire::queue::MessageId;
use tavola_wire::queue::metadata::Metadata;
use tavola_wire::table::stored::{EntityWriter, Value, set_timestamp};

use super::*;
use crate::storage::layout::message::{MessageKeys, Moment, Place};
use crate::storage::layout::{EntityKeys, Kind};

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

fn table_key(account: u64, name: &str) -> Bytes {
    Key::Table { account: AccountId(account), name }.encode()
}

fn properties_key(account: u64) -> Bytes {
    Key::Properties { account: AccountId(account), service: Service::Table }.encode()
}

fn queue_key(account: u64, name: &str) -> Bytes {
    Key::Queue { account: AccountId(account), name }.encode()
}

fn queue(store: u64) -> Bytes {
    let (created, metadata) = (Ticks::MIN_STORED, Metadata::default());
    QueueRecord { store: StoreId(store), created, metadata, policies: Bytes::new() }.encode()
}

fn dropped_key(id: u64) -> Bytes {
    Key::Dropped { id: ResourceId(id) }.encode()
}

fn dropped(id: u64) -> Bytes {
    Dropped { id: ResourceId(id), kind: Kind::Table, at: Ticks::MIN_STORED }.encode()
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
        (Key::Sequence.encode(), sequence::encode(4)),
        (Key::Account { name: "account" }.encode(), account::encode(AccountId(1))),
        (table_key(1, "people"), record(2, "People")),
        (dropped_key(3), dropped(3)),
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
        (Bytes::from_static(b"Y12345678"), Bytes::new(), "no family of rows begins like this"),
        (Bytes::from_static(b"T1"), Bytes::new(), "its key is too short"),
        (
            Key::Account { name: "other" }.encode(),
            account::encode(AccountId(4)),
            "its id 4 was never given out",
        ),
        (
            Key::Account { name: "other" }.encode(),
            account::encode(AccountId(1)),
            "two accounts have the same id",
        ),
        (
            Key::Account { name: "Other" }.encode(),
            account::encode(AccountId(3)),
            "no name of an account",
        ),
        (table_key(1, "pets"), record(9, "Pets"), "id 9 was never given out"),
        (table_key(1, "pets"), record(2, "Pets"), "two tables have the same id"),
        (table_key(1, "pets"), record(3, "Pets"), "also stands for something"),
        (table_key(1, "pets"), record(3, "Cats"), "another name than its own"),
        (table_key(1, "a-b"), record(3, "a-b"), "its name is not legal"),
        (table_key(2, "pets"), record(3, "Pets"), "it belongs to no account"),
        (table_key(1, "pets"), Bytes::from_static(b"x"), "record cannot be read"),
        (properties_key(1), Bytes::from_static(b"\x02"), "service properties"),
        (dropped_key(3), Bytes::from_static(b"x"), "it does not say when"),
        (EntityKeys::of(TableId(1)).key("p", "r"), entity(&[]), "it belongs to no table"),
        (entity_keys.raw(b"no separator"), entity(&[]), "its key cannot be read"),
        (entity_keys.key("a/b", "r"), entity(&[]), "its key is not legal"),
        (entity_keys.key("p", "x"), Bytes::from_static(b"x"), "its value is no entity"),
        (entity_keys.key("p", "x"), early.into(), "its value is no entity"),
        (entity_keys.key("p", "x"), cut.into(), "its properties cannot all be read"),
        (entity_keys.key("p", "x"), longer.into(), "its properties cannot all be read"),
        (entity_keys.key("p", "x"), entity(&["A", "A"]), "two properties have the same name"),
        (entity_keys.key("p", "x"), entity(&["1A"]), "a property's name is not legal"),
        (Key::Features.encode(), Bytes::from_static(b"\x01\x05other"), "does not know"),
        (Key::ClockMark.encode(), Bytes::from_static(b"\x01"), "no mark of the clock"),
        (queue_key(1, "orders"), Bytes::from_static(b"x"), "queue record cannot be read"),
        (queue_key(1, "Orders"), queue(3), "its name is not legal"),
        (queue_key(2, "orders"), queue(3), "it belongs to no account"),
        (queue_key(1, "orders"), queue(9), "id 9 was never given out"),
        (queue_key(1, "orders"), queue(2), "also stands for something"),
        (MessageKeys(StoreId(1)).header(Place::MIN), Bytes::new(), "it belongs to no queue"),
        (MessageKeys(StoreId(3)).header(Place::MIN), Bytes::new(), "header of a message"),
        (
            MessageKeys(StoreId(3)).text(Moment(1), MessageId::MIN),
            Bytes::new(),
            "text of a message",
        ),
        (Key::LowMark { store: StoreId(1) }.encode(), Bytes::new(), "it belongs to no queue"),
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
