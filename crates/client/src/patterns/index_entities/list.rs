//! A list in one index entity, or in several when it is longer than one takes.
//!
//! The first entity has the value as its row key. Further ones have a mark behind it that no written value has, and a
//! number; the first one counts them, so that a short list takes one point query. Every change of a list changes the first
//! entity too, under its ETag: two writers of a list never miss each other.

use std::collections::BTreeSet;

use futures::TryStreamExt;

use crate::error::refused;
use crate::{Entity, Filter, IfMatch, Operation, ROW_KEY, Result, Stored, TableClient, UpdateMode};

/// Between a value and the number of a further entity. Written texts have `~~` before `0` and `1` alone.
const FURTHER: &str = "~~2";
/// UTF-16 units of a list in one property, below the 32,768 that a string may have.
const UNITS_PER_PROPERTY: usize = 30_000;
/// Properties of an index entity, below the 1 MiB that an entity may have.
const PROPERTIES_PER_ENTITY: usize = 16;

/// How lists are written.
#[derive(Clone, Debug)]
pub(super) struct ListOptions {
    property: String,
    pub(super) separator: char,
    pub(super) units_per_entity: usize,
}

impl ListOptions {
    pub(super) fn new(property: String) -> Self {
        let units_per_entity = UNITS_PER_PROPERTY * PROPERTIES_PER_ENTITY;
        Self { property, separator: ',', units_per_entity }
    }

    /// The keys in an index entity; `None` for an entity of another kind.
    pub(super) fn keys_of(&self, entity: &Entity) -> Option<BTreeSet<String>> {
        let list = |number| entity.get::<String>(&self.property(number)).ok();
        let first = list(0)?;
        let lists = std::iter::once(first).chain((1..).map_while(list));
        let keys = lists.flat_map(|list| {
            let keys = list.split(self.separator).map(str::trim);
            keys.filter(|key| !key.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        });
        Some(keys.collect())
    }

    /// The entity with these keys instead of those it has; its other properties stay.
    fn with_keys(&self, mut entity: Entity, keys: &BTreeSet<String>) -> Entity {
        for number in 0..PROPERTIES_PER_ENTITY {
            entity.remove(&self.property(number));
        }
        let (mut list, mut units, mut number) = (String::new(), 0, 0);
        for key in keys {
            if units > 0 && units + units_of(key) + 1 > UNITS_PER_PROPERTY {
                entity.set(self.property(number), std::mem::take(&mut list));
                (units, number) = (0, number + 1);
            }
            if units > 0 {
                list.push(self.separator);
            }
            list.push_str(key);
            units += units_of(key) + 1;
        }
        entity.with(self.property(number), list)
    }

    /// `EmployeeIDs`, `EmployeeIDs01`, ...
    fn property(&self, number: usize) -> String {
        match number {
            0 => self.property.clone(),
            number => format!("{}{number:02}", self.property),
        }
    }

    /// Whether the list goes on in further entities.
    pub(super) fn is_long(&self, first: &Entity) -> bool {
        first.value(&self.further_property()).is_some()
    }

    /// The number of the last further entity that the list has had.
    fn further_property(&self) -> String {
        format!("{}Further", self.property)
    }
}

/// The row key of the list that a row key belongs to.
pub(super) fn first_row_key(row_key: &str) -> &str {
    row_key.rsplit_once(FURTHER).map_or(row_key, |(first, _)| first)
}

/// One entity of a list.
struct Shelf {
    stored: Stored<Entity>,
    keys: BTreeSet<String>,
}

/// A list as it was read.
pub(super) struct List<'a> {
    options: &'a ListOptions,
    partition_key: &'a str,
    row_key: &'a str,
    first: Option<Shelf>,
    further: Vec<Shelf>,
}

impl<'a> List<'a> {
    pub(super) async fn read(
        table: &TableClient,
        partition_key: &'a str,
        row_key: &'a str,
        options: &'a ListOptions,
    ) -> Result<Self> {
        let mut list = Self { options, partition_key, row_key, first: None, further: Vec::new() };
        let first = table.get_entity_if_exists::<Entity>(partition_key, row_key, None).await?;
        let Some(first) = first else { return Ok(list) };
        let first = list.shelf(first)?;
        if options.is_long(&first.stored) {
            let rows = ROW_KEY.starts_with(&format!("{row_key}{FURTHER}"));
            let found = table.query_entities::<Entity>(Filter::partition(partition_key) & rows);
            let found: Vec<_> = found.try_collect().await?;
            list.further = found.into_iter().map(|row| list.shelf(row)).collect::<Result<_>>()?;
        }
        list.first = Some(first);
        Ok(list)
    }

    fn shelf(&self, stored: Stored<Entity>) -> Result<Shelf> {
        match self.options.keys_of(&stored) {
            Some(keys) => Ok(Shelf { stored, keys }),
            None => Err(refused(format!(
                "the entity is no list, give lists a prefix: row_key={}",
                stored.row_key()
            ))),
        }
    }

    pub(super) fn keys(&self) -> BTreeSet<String> {
        self.first.iter().chain(&self.further).flat_map(|shelf| shelf.keys.clone()).collect()
    }

    /// The operations that add a key; none if it is there.
    pub(super) fn add(&self, key: &str) -> Result<Vec<Operation>> {
        if key.is_empty() || key.contains(self.options.separator) || key.trim() != key {
            return Err(refused(format!(
                "the key cannot be in a list, choose another separator: key={key}"
            )));
        }
        let Some(first) = &self.first else {
            let keys = BTreeSet::from([key.to_owned()]);
            let entity = Entity::new(self.partition_key, self.row_key);
            return Ok(vec![Operation::insert(&self.options.with_keys(entity, &keys))?]);
        };
        if self.keys().contains(key) {
            return Ok(Vec::new());
        }
        let room = self.options.units_per_entity.saturating_sub(units_of(key) + 1);
        let with = |shelf: &Shelf| {
            let mut keys = shelf.keys.clone();
            keys.insert(key.to_owned());
            self.update(shelf, &keys)
        };
        if first.units() <= room {
            return Ok(vec![with(first)?]);
        }
        if let Some(shelf) = self.further.iter().find(|shelf| shelf.units() <= room) {
            return Ok(vec![self.touch(first, None)?, with(shelf)?]);
        }
        let number = first.stored.get::<i32>(&self.options.further_property()).unwrap_or(0) + 1;
        let entity =
            Entity::new(self.partition_key, format!("{}{FURTHER}{number:06}", self.row_key));
        let keys = BTreeSet::from([key.to_owned()]);
        let insert = Operation::insert(&self.options.with_keys(entity, &keys))?;
        Ok(vec![self.touch(first, Some(number))?, insert])
    }

    /// The operations that take a key away; none if it is not there. A list without keys is deleted.
    pub(super) fn remove(&self, key: &str) -> Result<Vec<Operation>> {
        let Some(first) = &self.first else { return Ok(Vec::new()) };
        let Some(shelf) = self.further.iter().chain([first]).find(|shelf| shelf.keys.contains(key))
        else {
            return Ok(Vec::new());
        };
        let is_first = std::ptr::eq(shelf, first);
        let mut keys = shelf.keys.clone();
        keys.remove(key);
        if self.keys().len() == 1 {
            let shelves = std::iter::once(first).chain(&self.further);
            return shelves.map(|shelf| self.delete(shelf)).collect();
        }
        match (is_first, keys.is_empty()) {
            (true, _) => Ok(vec![self.update(first, &keys)?]),
            (false, true) => Ok(vec![self.touch(first, None)?, self.delete(shelf)?]),
            (false, false) => Ok(vec![self.touch(first, None)?, self.update(shelf, &keys)?]),
        }
    }

    fn update(&self, shelf: &Shelf, keys: &BTreeSet<String>) -> Result<Operation> {
        let entity = self.options.with_keys(shelf.stored.value.clone(), keys);
        Operation::update(&entity, UpdateMode::Replace, &shelf.stored)
    }

    fn delete(&self, shelf: &Shelf) -> Result<Operation> {
        Operation::delete(self.partition_key, shelf.stored.row_key(), IfMatch::from(&shelf.stored))
    }

    /// Changes the version of the first entity, and the number of further ones if it is given.
    fn touch(&self, first: &Shelf, further: Option<i32>) -> Result<Operation> {
        let mut entity = Entity::new(self.partition_key, self.row_key);
        if let Some(further) = further {
            entity.set(self.options.further_property(), further);
        }
        Operation::update(&entity, UpdateMode::Merge, &first.stored)
    }
}

impl Shelf {
    fn units(&self) -> usize {
        self.keys.iter().map(|key| units_of(key) + 1).sum()
    }
}

fn units_of(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ListOptions {
        ListOptions::new("EmployeeIDs".into())
    }

    #[test]
    fn the_layout_of_the_guide_is_read_and_written() {
        let keys = ["000152", "000153"].map(str::to_owned).into();
        let entity = options().with_keys(Entity::new("Sales", "Jones"), &keys);
        assert_eq!(entity, Entity::new("Sales", "Jones").with("EmployeeIDs", "000152,000153"));
        let spaced = Entity::new("Sales", "Jones").with("EmployeeIDs", "000153, 000152,");
        assert_eq!(options().keys_of(&spaced), Some(keys));
        assert_eq!(options().keys_of(&Entity::new("Sales", "000152").with("Age", 3)), None);
        let empty = Entity::new("Sales", "Jones").with("EmployeeIDs", "");
        assert_eq!(options().keys_of(&empty), Some(BTreeSet::new()));
    }

    #[test]
    fn a_long_list_takes_several_properties() {
        let keys: BTreeSet<_> = (0..10_000).map(|index| format!("{index:08}")).collect();
        let entity = options().with_keys(Entity::new("p", "r").with("Note", "kept"), &keys);
        assert_eq!(entity.properties().len(), 5);
        for (_, value) in entity.properties() {
            let entity = Entity::new("", "").with("A", value.clone());
            assert!(entity.stored_bytes() < 64 * 1024);
        }
        assert_eq!(options().keys_of(&entity), Some(keys));
        let none = options().with_keys(entity, &BTreeSet::new());
        assert_eq!(none, Entity::new("p", "r").with("Note", "kept").with("EmployeeIDs", ""));
    }

    #[test]
    fn the_largest_list_fits_into_an_entity() {
        let keys: BTreeSet<_> = (0..PROPERTIES_PER_ENTITY)
            .map(|index| format!("{index:03}{}", "x".repeat(UNITS_PER_PROPERTY - 4)))
            .collect();
        let entity = options().with_keys(Entity::new("p", "r"), &keys);
        assert_eq!(entity.properties().len(), PROPERTIES_PER_ENTITY);
        assert!(entity.stored_bytes() <= tavola_wire::table::stored::ENTITY_BYTES_MAX);
    }

    #[test]
    fn further_entities_belong_to_their_list() {
        assert_eq!(first_row_key("Jones~~2000001"), "Jones");
        assert_eq!(first_row_key("Jones"), "Jones");
    }
}
