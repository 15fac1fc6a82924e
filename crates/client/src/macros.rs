//! What the derive macro calls. Nobody else should.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::entity::{ENTITY_TYPE, ENTITY_VERSION, Entity, IndexSpec, TableEntity};
use crate::error::{Result, conversion};
use crate::value::EdmValue;

/// What JSON writes for nothing.
const NULL: &str = "null";

pub fn entity_type(entity: &Entity) -> Option<&str> {
    match entity.value(ENTITY_TYPE) {
        Some(EdmValue::String(name)) => Some(name),
        _ => None,
    }
}

/// An entity without the property is taken: it was written before the table had several types.
pub fn check_entity_type(entity: &mut Entity, expected: &str) -> Result<()> {
    match entity.take::<Option<String>>(ENTITY_TYPE)? {
        Some(found) if found != expected => Err(conversion(format!(
            "the entity is of another type: expected={expected} found={found} partition_key={} row_key={}",
            entity.partition_key(),
            entity.row_key()
        ))),
        _ => Ok(()),
    }
}

/// The version of an entity, the first if it has none. One from the future is refused: writing it back would lose what
/// this program does not know.
pub fn take_version(entity: &mut Entity, newest: i32) -> Result<i32> {
    let found = entity.take::<Option<i32>>(ENTITY_VERSION)?.unwrap_or(1);
    match found <= newest {
        true => Ok(found),
        false => Err(conversion(format!(
            "the entity is of a newer version: newest={newest} found={found} partition_key={} row_key={}",
            entity.partition_key(),
            entity.row_key()
        ))),
    }
}

pub fn check_partition_key_prefix(entity: &Entity, prefix: &str) -> Result<()> {
    check_prefix("partition key", entity.partition_key(), prefix)
}

pub fn check_row_key_prefix(entity: &Entity, prefix: &str) -> Result<()> {
    check_prefix("row key", entity.row_key(), prefix)
}

fn check_prefix(which: &str, key: &str, prefix: &str) -> Result<()> {
    match key.starts_with(prefix) {
        true => Ok(()),
        false => Err(conversion(format!(
            "the {which} does not tell the type: prefix={prefix} key={key}"
        ))),
    }
}

/// Indexes of one of several types that a table holds; one that another has declared is the same.
pub fn add_indexes<T: TableEntity>(indexes: &mut Vec<(&'static str, IndexSpec)>) {
    for (name, spec) in T::indexes() {
        if indexes.iter().all(|(other, _)| *other != name) {
            indexes.push((name, spec));
        }
    }
}

pub fn no_variant(entity: &Entity) -> azure_core::Error {
    conversion(format!(
        "the entity is of no known type: type={:?} partition_key={} row_key={}",
        entity_type(entity),
        entity.partition_key(),
        entity.row_key()
    ))
}

/// Stores any serde type as a text in JSON; what is null there is left out.
pub fn set_json<T: Serialize>(entity: &mut Entity, name: &str, value: &T) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|error| conversion(format!("the field is no JSON: {error} property={name}")))?;
    if text == NULL {
        entity.remove(name);
    } else {
        entity.set(name, text);
    }
    Ok(())
}

/// Reads what [`set_json`] stored.
pub fn take_json<T: DeserializeOwned>(entity: &mut Entity, name: &str) -> Result<T> {
    let stored = entity.take::<Option<String>>(name)?;
    match serde_json::from_str(stored.as_deref().unwrap_or(NULL)) {
        Ok(value) => Ok(value),
        Err(error) => {
            let problem = match stored {
                Some(_) => format!("the property is not the JSON of its type: {error}"),
                None => "the entity has no such property".to_owned(),
            };
            let (partition_key, row_key) = (entity.partition_key(), entity.row_key());
            Err(conversion(format!(
                "{problem} property={name} partition_key={partition_key} row_key={row_key}"
            )))
        }
    }
}

/// As [`take_json`]; the default for a property that is not there.
pub fn take_json_or_default<T: DeserializeOwned + Default>(
    entity: &mut Entity,
    name: &str,
) -> Result<T> {
    match entity.value(name) {
        Some(_) => take_json(entity, name),
        None => Ok(T::default()),
    }
}
