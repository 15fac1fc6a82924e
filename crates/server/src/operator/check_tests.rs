//! The words of the check about rows that nobody should have written.

use tavola_engine::conformance::commit;
use tavola_engine::{EmbeddedEngine, EmbeddedOptions, Write};
use tavola_wire::queue::MessageId;
use tavola_wire::queue::metadata::Metadata;
use tavola_wire::table::index::{IndexDefinition, IndexRow, RowMaker, RowScratch};
use tavola_wire::table::stored::{EntityWriter, Value, set_timestamp};
use tavola_wire::{Service, Ticks};

use super::*;
use crate::storage::index::definitions;
use crate::storage::layout::message::{
    Header, HeaderText, MessageKeys, Moment, Place, encode_text,
};
use crate::storage::layout::{EntityKeys, IndexKeys, IndexState, Kind, entity_key_of};

fn record(id: u64, name: &str) -> Bytes {
    let created = Ticks::MIN_STORED;
    TableRecord::new(TableId(id), created, name.into()).encode()
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
        let writes = rows.into_iter().map(|(key, value)| Write::Put(key, value)).collect();
        commit(&engine, writes).await;
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

/// A table with an index, and the rows that its entities have.
fn indexed() -> Vec<(Bytes, Bytes)> {
    let mut record = TableRecord::new(TableId(2), Ticks::MIN_STORED, "People".into());
    let definition = IndexDefinition::parse("A", "", "", false).unwrap();
    definitions::declare(&mut record.indexes, "ByA", &definition, None, Ticks(1)).unwrap();
    record.indexes.indexes[0].state = IndexState::Readable;
    let mut rows = sound();
    rows[2].1 = record.encode();
    rows.push((index_row("p", "r"), Bytes::from_static(b"\x01")));
    let build = BuildRecord { is_done: true, ..BuildRecord::default() };
    rows.push((Key::IndexBuild { table: TableId(2), number: 1 }.encode(), build.encode()));
    rows.push((Key::Features.encode(), features::list(&[Feature::Index])));
    rows
}

const QUEUE: MessageKeys = MessageKeys(StoreId(4));

fn place(visible: u64) -> Place {
    Place { visible: Moment(visible), id: MessageId([7; 16]) }
}

/// A header with a text in a row of its own.
fn header(visible: u64, expires: u64, length: u32) -> (Bytes, Bytes) {
    let (inserted, expires) = (Ticks::MIN_STORED, Moment(expires));
    let text = HeaderText::Row(length);
    let header = Header { inserted, expires, dequeue_count: 0, is_updated: false, text };
    (QUEUE.header(place(visible)), header.encode())
}

fn text(expires: u64, length: usize) -> (Bytes, Bytes) {
    (QUEUE.text(Moment(expires), MessageId([7; 16])), encode_text(&vec![b'x'; length]))
}

/// A queue with two messages, where the first is at the mark.
fn queued() -> Vec<(Bytes, Bytes)> {
    let mut rows = sound();
    rows[0].1 = sequence::encode(5);
    rows.push((Key::Features.encode(), features::list(&[Feature::Queue])));
    rows.push((queue_key(1, "orders"), queue(4)));
    rows.push((Key::LowMark { store: StoreId(4) }.encode(), mark::encode_low(place(10))));
    rows.extend([header(10, 70, 300), text(70, 300), header(20, 90, 400), text(90, 400)]);
    rows
}

#[test]
fn messages_that_agree_with_their_texts_are_sound() {
    let report = report(queued());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.queues, report.messages), (1, 2));
}

#[test]
fn messages_that_do_not_agree_with_their_texts_are_told() {
    let but = |without: (Bytes, Bytes), with: Option<(Bytes, Bytes)>| {
        let others = queued().into_iter().filter(move |(key, _)| *key != without.0);
        others.chain(with).collect::<Vec<_>>()
    };
    for (rows, expected) in [
        (but(text(70, 300), None), "1 of its messages have no text"),
        (but(header(10, 70, 300), None), "1 texts of its messages are left over"),
        // One of each.
        (but(text(70, 300), Some(text(71, 300))), "missing, and as many are left over"),
        (but(text(70, 300), Some(text(70, 301))), "missing, and as many are left over"),
        (but(header(10, 70, 300), Some(header(9, 70, 300))), "it lies before the mark"),
    ] {
        let report = report(rows);
        assert_eq!(report.problem_count(), 1, "{report:?}");
        assert!(report.row_problems[0].contains(expected), "{expected}: {report:?}");
    }
}

/// An older version, which does not know the feature, would serve the folder.
#[test]
fn a_feature_that_is_not_in_the_list_is_told() {
    let unlisted = |mut rows: Vec<(Bytes, Bytes)>| {
        rows.retain(|(key, _)| *key != Key::Features.encode());
        rows
    };
    let listed = |rows, feature| {
        let mut rows = unlisted(rows);
        rows.push((Key::Features.encode(), features::list(&[feature])));
        rows
    };
    for (rows, name, key) in [
        (unlisted(queued()), "queue", queue_key(1, "orders")),
        (listed(queued(), Feature::Index), "queue", queue_key(1, "orders")),
        (unlisted(indexed()), "index", table_key(1, "people")),
        (listed(indexed(), Feature::Queue), "index", table_key(1, "people")),
    ] {
        let report = report(rows);
        assert_eq!(report.problem_count(), 1, "{report:?}");
        let told = &report.row_problems[0];
        assert!(told.contains(&format!("does not say `{name}`")), "{told}");
        assert!(told.contains(&key.escape_ascii().to_string()), "{told}");
    }
}

/// The row of an entity whose `A` is 7.
fn index_row(partition_key: &str, row_key: &str) -> Bytes {
    let key = EntityKeys::of(TableId(2)).key(partition_key, row_key);
    let (definition, value) = (IndexDefinition::parse("A", "", "", false).unwrap(), entity(&["A"]));
    let mut row = None;
    let keep = |_: usize, found: IndexRow<'_>| {
        row = Some(IndexKeys::of(TableId(2), 1).key(found.parts_and_suffix));
    };
    let (maker, entity) = (RowMaker::new([&definition]), EntityRef::parse(&value).unwrap());
    maker.rows(entity_key_of(&key), entity, &mut RowScratch::default(), keep).unwrap();
    row.unwrap()
}

#[test]
fn an_index_that_agrees_with_its_entities_is_sound() {
    let report = report(indexed());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.index_rows, 1);
}

#[test]
fn rows_of_indexes_that_do_not_agree_are_told() {
    let without_row = || {
        let row = index_row("p", "r");
        indexed().into_iter().filter(move |(key, _)| *key != row).collect::<Vec<_>>()
    };
    let with = |mut rows: Vec<(Bytes, Bytes)>, key: Bytes, value: &'static [u8]| {
        rows.push((key, Bytes::from_static(value)));
        rows
    };
    for (rows, expected) in [
        (without_row(), "it has no row in index"),
        (with(without_row(), index_row("p", "r"), b"\x02"), "it has another row"),
        (with(indexed(), index_row("p", "other"), b"\x01"), "it points to no entity"),
        (
            with(indexed(), IndexKeys::of(TableId(2), 1).key(b"\x05p\0r"), b"\x01"),
            "it points to an entity with other values",
        ),
        (with(indexed(), IndexKeys::of(TableId(2), 1).key(b"?"), b"\x01"), "it cannot be read"),
        (with(indexed(), IndexKeys::of(TableId(2), 2).key(b"x"), b""), "it belongs to no index"),
        (with(indexed(), IndexKeys::of(TableId(9), 1).key(b"x"), b""), "it belongs to no index"),
        (
            with(indexed(), Key::IndexBuild { table: TableId(2), number: 3 }.encode(), b"?"),
            "the state of a build cannot be read",
        ),
    ] {
        let report = report(rows);
        let told = report.row_problems.join("\n");
        assert!(told.contains(expected), "{expected}: {told}");
    }
    // Those of a dropped table await the sweeper.
    let swept = with(indexed(), IndexKeys::of(TableId(3), 1).key(b"x"), b"");
    assert!(report(swept).is_sound());
}
