//! What is made up for rows that others depend on, and that the result is always sound.

use tavola_wire::queue::MessageId;
use tavola_wire::table::index::IndexDefinition;
use tavola_wire::table::stored::{EntityWriter, Value, set_timestamp};

use super::*;
use crate::operator::check::check;
use crate::storage::index::definitions;
use crate::storage::layout::message::{
    Header, HeaderText, MessageKeys, Moment, Place, encode_text,
};
use crate::storage::layout::{BuildRecord, EntityKeys, IndexKeys, IndexState, Kind};

fn dropped() -> Dropped {
    Dropped { id: TableId(5).into(), kind: Kind::Table, at: Ticks::MIN_STORED }
}

fn record(id: u64, name: &str) -> Bytes {
    let created = Ticks::MIN_STORED;
    TableRecord::new(TableId(id), created, name.into()).encode()
}

fn entity() -> Bytes {
    let mut writer = EntityWriter::new();
    writer.push("A", Value::Int32(7));
    let mut bytes = writer.finish();
    set_timestamp(&mut bytes, Ticks::MIN_STORED);
    bytes.into()
}

/// Two accounts with a table each, and a dropped table that is not swept.
fn sound() -> Vec<(Bytes, Bytes)> {
    vec![
        (Key::Sequence.encode(), sequence::encode(6)),
        (Key::Account { name: "first" }.encode(), account::encode(AccountId(1))),
        (Key::Account { name: "second" }.encode(), account::encode(AccountId(2))),
        (TableRecord::key(AccountId(1), "people"), record(3, "People")),
        (TableRecord::key(AccountId(2), "places"), record(4, "Places")),
        (dropped().key(), dropped().encode()),
        (EntityKeys::of(TableId(3)).key("p", "1"), entity()),
        (EntityKeys::of(TableId(3)).key("p", "2"), entity()),
        (EntityKeys::of(TableId(4)).key("p", "1"), entity()),
        (EntityKeys::of(TableId(5)).key("p", "1"), entity()),
    ]
}

/// Salvages a folder with these rows, and checks the result.
fn salvaged(rows: Vec<(Bytes, Bytes)>) -> SalvageReport {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let mut source = Target::create(&from).unwrap();
    for (key, value) in rows {
        source.put(key, value);
    }
    source.finish().unwrap();
    let report = salvage(&from, &to, |_| {}).unwrap();
    let result = check(&to, |_| {}).unwrap();
    assert!(result.is_sound(), "{result:?}");
    assert_eq!(result.entities, report.entities);
    assert_eq!((result.accounts, result.tables), (report.accounts, report.tables));
    report
}

/// The rows without those with these keys.
fn without(keys: &[Bytes]) -> Vec<(Bytes, Bytes)> {
    sound().into_iter().filter(|(key, _)| !keys.contains(key)).collect()
}

#[test]
fn a_sound_folder_is_copied() {
    let report = salvaged(sound());
    assert!(report.is_complete(), "{report:?}");
    assert_eq!((report.accounts, report.tables, report.entities), (2, 2, 4));
    let report = salvaged(Vec::new());
    assert!(report.is_complete(), "{report:?}");
}

#[test]
fn a_lost_sequence_goes_on_after_the_highest_id() {
    let report = salvaged(without(&[Key::Sequence.encode()]));
    assert_eq!(report.made_up, ["the sequence of ids was lost; it goes on at 6"]);
    assert_eq!(report.entities, 4);
}

#[test]
fn entities_without_a_table_get_one_that_is_nobodys() {
    let report = salvaged(without(&[TableRecord::key(AccountId(1), "people"), dropped().key()]));
    assert_eq!((report.accounts, report.tables, report.entities), (3, 3, 4));
    let told = report.made_up.join("\n");
    assert!(told.contains("table Recovered3 of account recovered: holds 2 entities"), "{told}");
    assert!(told.contains("table Recovered5 of account recovered: holds 1 entities"), "{told}");
}

/// With one account there is no doubt whose they are.
#[test]
fn entities_without_a_table_belong_to_the_only_account() {
    let of_second = [
        Key::Account { name: "second" }.encode(),
        TableRecord::key(AccountId(2), "places"),
        TableRecord::key(AccountId(1), "people"),
        EntityKeys::of(TableId(4)).key("p", "1"),
    ];
    let report = salvaged(without(&of_second));
    assert_eq!((report.accounts, report.tables, report.entities), (1, 1, 3));
    let told = report.made_up.join("\n");
    assert!(told.contains("table Recovered3 of account first: holds 2 entities"), "{told}");
}

#[test]
fn tables_without_an_account_get_one() {
    let report = salvaged(without(&[Key::Account { name: "second" }.encode()]));
    assert_eq!((report.accounts, report.tables, report.entities), (2, 2, 4));
    assert!(report.made_up[0].contains("account recovered2"), "{report:?}");
}

#[test]
fn rows_that_make_no_sense_are_left_out_and_told() {
    let mut rows = sound();
    rows.push((EntityKeys::of(TableId(3)).key("p", "3"), Bytes::from_static(b"nothing")));
    let report = salvaged(rows);
    assert_eq!((report.entities, report.senseless_count), (4, 1));
    assert!(!report.is_complete());
}

#[test]
fn a_folder_with_something_in_it_is_no_target() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    Target::create(&from).unwrap().finish().unwrap();
    let error = salvage(&from, folder.path(), |_| {}).unwrap_err();
    assert!(matches!(error, SalvageError::TargetNotEmpty(_)) && error.is_usage(), "{error}");
    let error = salvage(&from, from.join("inside"), |_| {}).unwrap_err();
    assert!(matches!(error, SalvageError::TargetInside(_)) && error.is_usage(), "{error}");
    let error = salvage(folder.path().join("none"), folder.path().join("to"), |_| {}).unwrap_err();
    assert!(matches!(error, SalvageError::Source(_)) && error.is_usage(), "{error}");
    assert!(!folder.path().join("to").exists());
}

/// Rows of indexes are not copied: every index begins again.
#[test]
fn indexes_are_built_again() {
    let mut record = TableRecord::new(TableId(3), Ticks::MIN_STORED, "People".into());
    let definition = IndexDefinition::parse("A", "", "", false).unwrap();
    definitions::declare(&mut record.indexes, "ByA", &definition, None, Ticks(1)).unwrap();
    record.indexes.indexes[0].state = IndexState::Readable;
    let mut rows = sound();
    rows[3].1 = record.encode();
    rows.push((IndexKeys::of(TableId(3), 1).key(b"x"), Bytes::new()));
    let build = Key::IndexBuild { table: TableId(3), number: 1 };
    rows.push((build.encode(), BuildRecord::default().encode()));
    let lost = salvaged(rows.clone());
    assert!(lost.made_up.iter().any(|made_up| made_up.contains("features")), "{lost:?}");
    rows.push((Key::Features.encode(), features::list(&[Feature::Index])));
    assert!(salvaged(rows).is_complete());
    record.indexes.build_again();
    assert_eq!(record.indexes.indexes[0].state, IndexState::DeleteOnly);
}

/// A queue with a short and a long message, and what is left of another one.
fn with_queues() -> Vec<(Bytes, Bytes)> {
    let record = QueueRecord {
        store: StoreId(6),
        created: Ticks::MIN_STORED,
        metadata: Metadata::default(),
        policies: Bytes::new(),
    };
    let header = |text: HeaderText| Header {
        inserted: Ticks::MIN_STORED,
        expires: Moment::NEVER,
        dequeue_count: 0,
        is_updated: false,
        text,
    };
    let place = |number: u8| Place { visible: Moment(7), id: MessageId([number; 16]) };
    let (short, long) = (HeaderText::Inline("short".into()), HeaderText::Row(1000));
    let (keys, lost) = (MessageKeys(StoreId(6)), MessageKeys(StoreId(7)));
    let text = |number: u8| keys.text(Moment::NEVER, MessageId([number; 16]));
    let mut rows = sound();
    rows.retain(|(key, _)| *key != Key::Sequence.encode());
    rows.extend([
        (Key::Sequence.encode(), sequence::encode(8)),
        (Key::Features.encode(), features::list(&[Feature::Queue])),
        (Key::ClockMark.encode(), mark::encode_clock(Ticks::MIN_STORED)),
        (Key::LowMark { store: StoreId(6) }.encode(), mark::encode_low(Place::MIN)),
        (QueueRecord::key(AccountId(1), "orders"), record.encode()),
        (keys.header(place(1)), header(short.clone()).encode()),
        (keys.header(place(2)), header(long.clone()).encode()),
        (text(2), encode_text(&[b'x'; 1000])),
        // Without its text, and a text without its message.
        (keys.header(place(3)), header(long).encode()),
        (text(4), encode_text(b"left over")),
        // Without its queue.
        (lost.header(place(5)), header(short).encode()),
    ]);
    rows
}

#[test]
fn messages_go_with_their_texts_and_get_a_queue() {
    let report = salvaged(with_queues());
    assert_eq!((report.queues, report.messages), (2, 3));
    assert_eq!(report.senseless_count, 2, "{:?}", report.senseless);
    let of_queue = report.made_up.iter().find(|line| line.contains("queue recovered-7"));
    assert!(of_queue.is_some_and(|line| line.contains("1 messages")), "{:?}", report.made_up);
    // The folder says of itself that it has queues, also when that row was lost.
    let mut rows = with_queues();
    rows.retain(|(key, _)| *key != Key::Features.encode());
    let added = |rows| {
        let made_up = salvaged(rows).made_up;
        let lines = made_up.iter().filter_map(|line| line.split_once("did not say "));
        lines.map(|(_, name)| name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(added(rows.clone()), ["`queue`"]);
    // And that it has indexes, or a start would not look for them.
    let mut record = TableRecord::new(TableId(3), Ticks::MIN_STORED, "People".into());
    let definition = IndexDefinition::parse("A", "", "", false).unwrap();
    definitions::declare(&mut record.indexes, "ByA", &definition, None, Ticks(1)).unwrap();
    let people = rows.iter_mut().find(|(key, _)| *key == sound()[3].0);
    people.unwrap().1 = record.encode();
    assert_eq!(added(rows.clone()), ["`index`", "`queue`"]);
    // Also beside what an older list says.
    rows.push((Key::Features.encode(), features::list(&[Feature::Index])));
    assert_eq!(added(rows), ["`queue`"]);
}

/// A message whose text cannot be read, or is another's by its length, is lost with it.
#[test]
fn a_message_goes_with_its_damaged_text() {
    for damaged in [&b"\x01\xFF"[..], b"\x02text", b"\x01short"] {
        let mut rows = with_queues();
        let is_text = |key: &[u8]| key.first() == Some(&(Family::MessageText as u8));
        rows.iter_mut().find(|(key, _)| is_text(key)).unwrap().1 = Bytes::from_static(damaged);
        let report = salvaged(rows);
        assert_eq!((report.messages, report.senseless_count), (2, 4), "{:?}", report.senseless);
    }
}
