//! Names of tables, keys and ETags: a name, two pairs of keys, and an `If-Match`, each on its line.

use tavola_wire::Ticks;
use tavola_wire::table::if_match::IfMatch;
use tavola_wire::table::names::{KEY_UNITS_MAX, KeyName, TableName, check_key, key_problem};
use tavola_wire::table::stored::key::{
    compare_text, push_entity_key, push_ordered, read_entity_key, read_ordered,
};
use tavola_wire::table::stored::{check_name, utf16_units};

use crate::input::{assert_refusal, lines};

pub fn run(data: &[u8]) {
    stored_key(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [name, pk1, rk1, pk2, rk2, etag] = lines(text);
    table_name(name);
    property_name(name);
    keys([(pk1, rk1), (pk2, rk2)]);
    if_match(etag);
}

/// What cannot have been written is not read.
fn stored_key(bytes: &[u8]) {
    if let Some(text) = read_ordered(bytes) {
        let mut written = Vec::new();
        push_ordered(&mut written, &text);
        assert_eq!(written, bytes, "{text:?}");
    }
    let Some((partition_key, row_key)) = read_entity_key(bytes) else { return };
    if key_problem(&partition_key).is_none() && key_problem(&row_key).is_none() {
        let mut written = Vec::new();
        push_entity_key(&mut written, &partition_key, &row_key);
        assert_eq!(written, bytes);
    }
}

fn table_name(text: &str) {
    let letters = text.strip_prefix('$').unwrap_or(text);
    let is_legal = (3..=63).contains(&letters.len())
        && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !letters.as_bytes()[0].is_ascii_digit()
        && !letters.eq_ignore_ascii_case("tables");
    match TableName::parse_addressed(text) {
        Ok(name) => {
            assert!(is_legal, "{text:?}");
            assert_eq!(name.as_str(), text);
            assert_eq!(name.lower(), text.to_lowercase());
            assert!(name.is_same_table(&TableName::parse_addressed(name.lower()).unwrap()));
        }
        Err(error) => {
            assert!(!is_legal, "{text:?}");
            assert_refusal(&error);
        }
    }
    assert_eq!(TableName::parse(text).is_ok(), is_legal && letters == text);
}

fn property_name(text: &str) {
    assert_eq!(utf16_units(text.as_bytes()), text.encode_utf16().count());
    if let Err(error) = check_name(text) {
        assert_refusal(&error);
    }
}

/// Keys sort by UTF-16 unit, partition first, and come back from their bytes.
fn keys(pairs: [(&str, &str); 2]) {
    let mut stored = Vec::new();
    for (partition_key, row_key) in pairs {
        for (name, key) in [(KeyName::PartitionKey, partition_key), (KeyName::RowKey, row_key)] {
            let is_long = key.encode_utf16().count() > KEY_UNITS_MAX;
            let is_odd = key.chars().any(|c| "/\\#?".contains(c) || c.is_control());
            match check_key(name, key) {
                Ok(()) => assert!(!is_long && !is_odd, "{key:?}"),
                Err(error) => {
                    assert!(is_long || is_odd, "{key:?}");
                    assert_refusal(&error);
                    return;
                }
            }
        }
        let mut bytes = Vec::new();
        push_entity_key(&mut bytes, partition_key, row_key);
        let (read_partition, read_row) = read_entity_key(&bytes).expect("our own key");
        assert_eq!((&*read_partition, &*read_row), (partition_key, row_key));
        stored.push(bytes);
    }
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    let [(pk1, rk1), (pk2, rk2)] = pairs;
    let expected = (units(pk1), units(rk1)).cmp(&(units(pk2), units(rk2)));
    assert_eq!(stored[0].cmp(&stored[1]), expected);
    assert_eq!(compare_text(pk1, pk2), units(pk1).cmp(&units(pk2)));
}

fn if_match(text: &str) {
    match IfMatch::parse(Some(text)) {
        Ok(IfMatch::Absent) => panic!("a header is not absent"),
        Ok(IfMatch::Any) => assert_eq!(text.trim_ascii(), "*"),
        Ok(IfMatch::Version(date)) => {
            let Some(moment) = Ticks::parse_iso(&date) else { return };
            let etag = moment.to_etag();
            let again = IfMatch::parse(Some(&etag)).expect("our own ETag");
            let IfMatch::Version(again) = again else { panic!("{etag}") };
            assert_eq!(Ticks::parse_iso(&again), Some(moment), "{etag}");
        }
        Ok(IfMatch::Unknown) => assert!(text.trim_ascii().starts_with("W/\""), "{text:?}"),
        Err(error) => assert_refusal(&error),
    }
}
