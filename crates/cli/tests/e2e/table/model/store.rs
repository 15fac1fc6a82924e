//! The model: tables as sorted maps, changes as the protocol describes them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::support::Random;

/// A key, ordered by UTF-16 code unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

pub(crate) type Keys = (Key, Key);
pub(crate) type Rows = BTreeMap<Keys, Row>;

impl Key {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.0.is_ascii() && other.0.is_ascii() {
            return self.0.cmp(&other.0);
        }
        self.0.encode_utf16().cmp(other.0.encode_utf16())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(crate) fn key(partition: &str, row: &str) -> Keys {
    (Key(partition.to_owned()), Key(row.to_owned()))
}

/// All tables; names keep their case.
#[derive(Default)]
pub(crate) struct Store(BTreeMap<String, Rows>);

impl Store {
    pub(crate) fn create(&mut self, table: &str) -> bool {
        if self.0.contains_key(table) {
            return false;
        }
        self.0.insert(table.to_owned(), Rows::new());
        true
    }

    pub(crate) fn drop(&mut self, table: &str) -> bool {
        self.0.remove(table).is_some()
    }

    pub(crate) fn rows(&self, table: &str) -> Option<&Rows> {
        self.0.get(table)
    }

    pub(crate) fn rows_mut(&mut self, table: &str) -> Option<&mut Rows> {
        self.0.get_mut(table)
    }
}

/// A stored entity.
pub(crate) struct Row {
    pub etag: String,
    pub properties: Properties,
}

impl Row {
    /// Holds an entity that came back against this one.
    #[track_caller]
    pub(crate) fn assert_is(&self, keys: (&str, &str), entity: &Value) {
        assert_eq!(
            (entity["PartitionKey"].as_str(), entity["RowKey"].as_str()),
            (Some(keys.0), Some(keys.1))
        );
        let mut found = entity.as_object().expect("an object").clone();
        let time = found.remove("Timestamp").expect("a timestamp");
        let time = time.as_str().expect("a text").replace(':', "%3A");
        assert_eq!(self.etag, format!("W/\"datetime'{time}'\""));
        for system in ["odata.metadata", "odata.etag", "PartitionKey", "RowKey"] {
            found.remove(system);
        }
        assert_eq!(Value::Object(found), self.properties.to_json());
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Property {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Text(String),
    Boolean(bool),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Properties(pub BTreeMap<String, Property>);

/// The names that entities and filters use.
pub(crate) const NAMES: [&str; 4] = ["A", "B", "C", "D"];
/// The texts that entities and filters use.
pub(crate) const TEXTS: [&str; 5] = ["", "a", "B", "b\u{e9}", "O'Brien"];

impl Properties {
    pub(crate) fn random(random: &mut Random) -> Self {
        let mut properties = BTreeMap::new();
        for name in NAMES {
            let property = match random.below(7) {
                0 => Property::Int32(small(random)),
                1 => Property::Int64(i64::from(small(random))),
                2 => Property::Double(f64::from(small(random)) / 2.0),
                3 => Property::Text((*random.pick(&TEXTS)).to_owned()),
                4 => Property::Boolean(random.one_in(2)),
                _ => continue,
            };
            properties.insert(name.to_owned(), property);
        }
        Self(properties)
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut members = Map::new();
        for (name, property) in &self.0 {
            let value = match property {
                Property::Int32(number) => json!(number),
                Property::Int64(number) => {
                    members.insert(format!("{name}@odata.type"), json!("Edm.Int64"));
                    json!(number.to_string())
                }
                Property::Double(number) => json!(number),
                Property::Text(text) => json!(text),
                Property::Boolean(value) => json!(value),
            };
            members.insert(name.clone(), value);
        }
        Value::Object(members)
    }

    pub(crate) fn to_entity(&self, partition: &str, row: &str) -> Value {
        let mut entity = self.to_json();
        entity["PartitionKey"] = json!(partition);
        entity["RowKey"] = json!(row);
        entity
    }
}

/// From -3 to 3, so that values meet.
pub(crate) fn small(random: &mut Random) -> i32 {
    i32::try_from(random.below(7)).expect("a small number") - 3
}

/// What If-Match says.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Any,
    Version(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Insert(Properties),
    Replace(Option<Condition>, Properties),
    Merge(Option<Condition>, Properties),
    Delete(Condition),
}

impl Change {
    fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Insert(_) => None,
            Self::Replace(condition, _) | Self::Merge(condition, _) => condition.as_ref(),
            Self::Delete(condition) => Some(condition),
        }
    }

    pub(crate) fn if_match(&self) -> Option<String> {
        self.condition().map(|condition| match condition {
            Condition::Any => "*".to_owned(),
            Condition::Version(etag) => etag.clone(),
        })
    }

    /// Why the change is not made, if it is not.
    pub(crate) fn refusal(&self, stored: Option<&Row>) -> Option<(u16, &'static str)> {
        match (self, self.condition(), stored) {
            (Self::Insert(_), _, Some(_)) => Some((409, "EntityAlreadyExists")),
            (_, Some(_), None) => Some((404, "ResourceNotFound")),
            (_, Some(Condition::Version(etag)), Some(row)) if *etag != row.etag => {
                Some((412, "UpdateConditionNotSatisfied"))
            }
            _ => None,
        }
    }

    /// What it makes of an entity, if it is made; `None` if the entity is gone then.
    pub(crate) fn outcome(&self, stored: Option<&Row>) -> Option<Properties> {
        match (self, stored) {
            (Self::Delete(_), _) => None,
            (Self::Merge(_, new), Some(old)) => {
                let mut merged = old.properties.clone();
                merged.0.extend(new.0.clone());
                Some(merged)
            }
            (Self::Insert(new) | Self::Replace(_, new) | Self::Merge(_, new), _) => {
                Some(new.clone())
            }
        }
    }

    /// Makes the change; a new ETag must differ from the old one.
    pub(crate) fn apply(&self, rows: &mut Rows, partition: &str, row: &str, etag: Option<&str>) {
        let keys = key(partition, row);
        let old = rows.remove(&keys);
        let Some(properties) = self.outcome(old.as_ref()) else {
            assert_eq!(etag, None, "a delete has no ETag");
            return;
        };
        let etag = etag.expect("an ETag").to_owned();
        assert_ne!(old.map(|row| row.etag).as_deref(), Some(&*etag));
        rows.insert(keys, Row { etag, properties });
    }
}
