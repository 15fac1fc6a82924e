//! One change of one entity: what insert, replace, merge and delete mean for the row they address.
//!
//! Pure: the stored bytes and the moment come in, the new bytes go out. A single request is a set of one
//! such change, an entity group transaction a set of up to a hundred.

use bytes::Bytes;
use tavola_wire::table::if_match::IfMatch;
use tavola_wire::table::json::{EntityBody, read_changes, read_entity};
use tavola_wire::table::names::{KeyName, check_key};
use tavola_wire::table::stored::{EntityRef, check_entity, merge, set_timestamp, sort_by_name};
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, StorageError, Ticks};

use super::operation::EntityAddress;
use crate::error::{Result, corrupt};

/// One change of one entity.
#[derive(Debug)]
pub(crate) struct EntityChange {
    pub kind: ChangeKind,
    pub partition_key: String,
    pub row_key: String,
    /// Encoded, with the timestamp yet to be set; empty for a delete.
    entity: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Insert,
    Replace(Condition),
    Merge(Condition),
    Delete(Condition),
}

/// What must hold of the stored entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing: if there is no entity, it is inserted.
    None,
    /// It exists.
    Exists,
    /// It exists and was last written at this moment.
    Version(Ticks),
    /// It exists and has an ETag that no entity has.
    Never,
}

/// What a change came to.
#[derive(Debug)]
pub(crate) struct Applied {
    /// When the entity was written, which its ETag is made of.
    pub timestamp: Ticks,
    /// The stored entity; none after a delete.
    pub entity: Option<Bytes>,
}

impl Condition {
    /// # Errors
    /// 400 `InvalidInput` for what is no ETag.
    pub(crate) fn from_header(if_match: Option<&str>) -> Result<Self> {
        match IfMatch::parse(if_match)? {
            IfMatch::Absent => Ok(Self::None),
            IfMatch::Any => Ok(Self::Exists),
            IfMatch::Version(text) => {
                Ok(Ticks::parse_iso(&text).map_or(Self::Never, Self::Version))
            }
            IfMatch::Unknown => Ok(Self::Never),
        }
    }

    fn check(self, stored: Option<Ticks>) -> Result<()> {
        match (self, stored) {
            (Self::None, _) | (Self::Exists, Some(_)) => Ok(()),
            (_, None) => Err(ErrorCode::ResourceNotFound.into()),
            (Self::Version(version), Some(stored)) if version == stored => Ok(()),
            (Self::Version(_) | Self::Never, Some(_)) => {
                Err(ErrorCode::UpdateConditionNotSatisfied.into())
            }
        }
    }
}

impl EntityChange {
    /// An insert: the keys are in the body.
    pub(crate) fn insert(body: &[u8]) -> Result<Self> {
        let EntityBody { partition_key, row_key, entity } = read_entity(body)?;
        let (Some(partition_key), Some(row_key)) = (partition_key, row_key) else {
            return Err(ErrorCode::PropertiesNeedValue.into());
        };
        check_key(KeyName::PartitionKey, &partition_key)?;
        check_key(KeyName::RowKey, &row_key)?;
        check_size(&partition_key, &row_key, &entity)?;
        Ok(Self { kind: ChangeKind::Insert, partition_key, row_key, entity })
    }

    /// A change of the entity at `address`: its keys count, those in the body are ignored. Unlike an insert it does not
    /// keep the order of the properties, but sorts them.
    pub(crate) fn at(
        verb: Verb,
        address: &EntityAddress<'_>,
        condition: Condition,
        body: &[u8],
    ) -> Result<Self> {
        let partition_key = address.partition_key.for_write()?.to_owned();
        let row_key = address.row_key.for_write()?.to_owned();
        let kind = match verb {
            Verb::Put => ChangeKind::Replace(condition),
            Verb::Merge => ChangeKind::Merge(condition),
            Verb::Delete => ChangeKind::Delete(condition),
            Verb::Get | Verb::Head | Verb::Post | Verb::Options => {
                return Err(ErrorCode::MethodNotAllowed.into());
            }
        };
        let entity = match kind {
            ChangeKind::Delete(Condition::None) => {
                return Err(StorageError::with_detail(
                    ErrorCode::InvalidInput,
                    "The If-Match header is required to delete an entity.",
                ));
            }
            ChangeKind::Delete(_) => Vec::new(),
            _ => {
                let entity = sort_by_name(read_changes(body)?).map_err(corrupt)?;
                check_size(&partition_key, &row_key, &entity)?;
                entity
            }
        };
        Ok(Self { kind, partition_key, row_key, entity })
    }

    /// The properties that are laid on those of the stored entity, if it is a merge.
    pub(crate) fn merged_properties(&self) -> Option<EntityRef<'_>> {
        self.body().filter(|_| matches!(self.kind, ChangeKind::Merge(_)))
    }

    /// The properties that it brings; none for a delete.
    pub(crate) fn body(&self) -> Option<EntityRef<'_>> {
        EntityRef::parse(&self.entity).ok()
    }

    /// The change laid on what is stored. The new timestamp is later than the old one, whatever the clock says.
    pub(crate) fn apply(&self, stored: Option<&[u8]>, now: Ticks) -> Result<Applied> {
        let stored = stored.map(EntityRef::parse).transpose().map_err(corrupt)?;
        let written = stored.map(|entity| entity.timestamp());
        let timestamp = written.map_or(now, |written| now.max(Ticks(written.0 + 1)));
        let mut entity = match self.kind {
            ChangeKind::Insert if stored.is_some() => {
                return Err(ErrorCode::EntityAlreadyExists.into());
            }
            ChangeKind::Insert => self.entity.clone(),
            ChangeKind::Replace(condition) => {
                condition.check(written)?;
                self.entity.clone()
            }
            ChangeKind::Merge(condition) => {
                condition.check(written)?;
                self.merged(stored)?
            }
            ChangeKind::Delete(condition) => {
                condition.check(written)?;
                return Ok(Applied { timestamp, entity: None });
            }
        };
        set_timestamp(&mut entity, timestamp);
        Ok(Applied { timestamp, entity: Some(entity.into()) })
    }

    fn merged(&self, stored: Option<EntityRef<'_>>) -> Result<Vec<u8>> {
        let Some(stored) = stored else { return Ok(self.entity.clone()) };
        let changes = EntityRef::parse(&self.entity).map_err(corrupt)?;
        let merged = merge(stored, changes).map_err(corrupt)?;
        check_size(&self.partition_key, &self.row_key, &merged)?;
        Ok(merged)
    }
}

fn check_size(partition_key: &str, row_key: &str, entity: &[u8]) -> Result<()> {
    check_entity(partition_key, row_key, EntityRef::parse(entity).map_err(corrupt)?)
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::ResourcePath;

    use super::*;

    const NOW: Ticks = Ticks(700_000_000_000_000_000);

    fn address() -> EntityAddress<'static> {
        match ResourcePath::parse("/tbl(PartitionKey='p',RowKey='r')", "acct").unwrap() {
            ResourcePath::Entity { table, partition_key, row_key } => {
                EntityAddress { table, partition_key, row_key }
            }
            other => panic!("{other:?}"),
        }
    }

    fn stored(json: &str, at: Ticks) -> Vec<u8> {
        let mut entity = read_entity(json.as_bytes()).unwrap().entity;
        set_timestamp(&mut entity, at);
        entity
    }

    fn change(verb: Verb, condition: Condition, json: &str) -> EntityChange {
        EntityChange::at(verb, &address(), condition, json.as_bytes()).unwrap()
    }

    /// The conditional rules of the protocol: verb and condition against no entity, one, and one of that version.
    #[test]
    fn conditions_decide_as_the_protocol_says() {
        let old = Ticks(5);
        let row = stored("{\"A\":1}", old);
        for verb in [Verb::Put, Verb::Merge, Verb::Delete] {
            for (condition, stored, expected) in [
                (Condition::Exists, None, Some(ErrorCode::ResourceNotFound)),
                (Condition::Exists, Some(&row), None),
                (Condition::Version(old), None, Some(ErrorCode::ResourceNotFound)),
                (Condition::Never, None, Some(ErrorCode::ResourceNotFound)),
                (Condition::Never, Some(&row), Some(ErrorCode::UpdateConditionNotSatisfied)),
                (Condition::Version(old), Some(&row), None),
                (
                    Condition::Version(Ticks(6)),
                    Some(&row),
                    Some(ErrorCode::UpdateConditionNotSatisfied),
                ),
            ] {
                let applied = change(verb, condition, "{}").apply(stored.map(Vec::as_slice), NOW);
                assert_eq!(applied.err().map(|e| e.code()), expected, "{verb:?} {condition:?}");
            }
        }
        for verb in [Verb::Put, Verb::Merge] {
            assert!(change(verb, Condition::None, "{}").apply(None, NOW).is_ok());
            assert!(change(verb, Condition::None, "{}").apply(Some(&row), NOW).is_ok());
        }
        assert!(EntityChange::at(Verb::Delete, &address(), Condition::None, b"").is_err());
        for garbled in ["W/\"datetime'garbled'\"", "W/\"wrong\""] {
            assert_eq!(Condition::from_header(Some(garbled)).unwrap(), Condition::Never);
        }
        let strong = Condition::from_header(Some("\"wrong\"")).unwrap_err();
        assert_eq!(strong.code(), ErrorCode::InvalidInput);
    }

    #[test]
    fn all_but_inserts_sort_the_properties() {
        let names = |entity: &[u8]| -> Vec<String> {
            let entity = EntityRef::parse(entity).unwrap();
            let name = |property: Result<_, _>| -> String {
                let property: tavola_wire::table::stored::Property<'_> = property.unwrap();
                property.name_str().unwrap().to_owned()
            };
            entity.properties().map(name).collect()
        };
        let insert = br#"{"PartitionKey":"p","b":1,"RowKey":"r","a":1,"C":1}"#;
        let inserted = EntityChange::insert(insert).unwrap().apply(None, NOW).unwrap();
        let row = inserted.entity.unwrap();
        assert_eq!(names(&row), ["b", "a", "C"]);
        for (verb, stored, expected) in [
            (Verb::Put, None, &["D", "aa"][..]),
            (Verb::Put, Some(&row[..]), &["D", "aa"]),
            (Verb::Merge, None, &["D", "aa"]),
            (Verb::Merge, Some(&row[..]), &["C", "D", "a", "aa", "b"]),
        ] {
            let changed = change(verb, Condition::None, r#"{"aa":1,"D":1}"#).apply(stored, NOW);
            assert_eq!(names(&changed.unwrap().entity.unwrap()), expected, "{verb:?}");
        }
    }

    #[test]
    fn an_insert_needs_both_keys_and_a_free_row() {
        let insert = EntityChange::insert(br#"{"PartitionKey":"p","RowKey":"r","A":1}"#).unwrap();
        assert!(insert.apply(None, NOW).is_ok());
        let row = stored("{}", Ticks(5));
        let error = insert.apply(Some(&row), NOW).unwrap_err();
        assert_eq!(error.code(), ErrorCode::EntityAlreadyExists);
        let code = |json: &str| EntityChange::insert(json.as_bytes()).unwrap_err().code();
        assert_eq!(code(r#"{"PartitionKey":"p"}"#), ErrorCode::PropertiesNeedValue);
        assert_eq!(code(r#"{"PartitionKey":"p","RowKey":"a/b"}"#), ErrorCode::OutOfRangeInput);
    }

    #[test]
    fn replace_drops_and_merge_keeps_what_is_not_named() {
        let row = stored(r#"{"A":1,"B":2}"#, Ticks(5));
        let count = |verb| {
            let applied = change(verb, Condition::None, r#"{"C":3}"#).apply(Some(&row), NOW);
            EntityRef::parse(&applied.unwrap().entity.unwrap()).unwrap().property_count()
        };
        assert_eq!(count(Verb::Put), 1);
        assert_eq!(count(Verb::Merge), 3);
    }

    #[test]
    fn a_timestamp_grows_even_when_the_clock_goes_back() {
        let row = stored("{}", Ticks(NOW.0 + 100));
        let applied = change(Verb::Put, Condition::None, "{}").apply(Some(&row), NOW).unwrap();
        assert_eq!(applied.timestamp, Ticks(NOW.0 + 101));
        assert_eq!(
            EntityRef::parse(&applied.entity.unwrap()).unwrap().timestamp(),
            applied.timestamp
        );
    }

    #[test]
    fn a_merge_must_not_outgrow_the_limits() {
        let members = |from: usize, to: usize| {
            let list: Vec<_> = (from..to).map(|index| format!("\"p{index}\":1")).collect();
            format!("{{{}}}", list.join(","))
        };
        let row = stored(&members(0, 200), Ticks(5));
        let merge =
            |to| change(Verb::Merge, Condition::Exists, &members(100, to)).apply(Some(&row), NOW);
        assert!(merge(252).is_ok());
        assert_eq!(merge(253).unwrap_err().code(), ErrorCode::TooManyProperties);
    }
}
