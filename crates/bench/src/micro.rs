//! What the micro-benchmarks (`benches/`) share: the entities of the loads, as JSON and as they are stored.

use tavola_wire::table::json::read_entity;
use tavola_wire::table::stored::key::push_entity_key;

use crate::entity::Keys;

/// The JSON that an entity comes as.
pub fn entity_json(keys: Keys, number: u64) -> Vec<u8> {
    let mut json = Vec::new();
    keys.push_entity(&mut json, keys.place(number), 0);
    json
}

/// The bytes that an entity is stored as.
pub fn stored_entity(keys: Keys, number: u64) -> Vec<u8> {
    read_entity(&entity_json(keys, number)).expect("entities of a load are legal").entity
}

/// The key that an entity is stored under in its table.
pub fn stored_key(keys: Keys, number: u64) -> Vec<u8> {
    let (place, mut partition, mut row) = (keys.place(number), Vec::new(), Vec::new());
    keys.push_partition_key(&mut partition, place);
    keys.push_row_key(&mut row, place);
    let text = |bytes| String::from_utf8(bytes).expect("keys are text");
    let mut key = Vec::new();
    push_entity_key(&mut key, &text(partition), &text(row));
    key
}
