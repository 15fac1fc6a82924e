//! The definition of an index: which values are its key, and how much of the entity it holds.
//!
//! The Index Table pattern knows four choices, and every pattern that keeps indexes takes them from here:
//!
//! | Choice | Call | Finding costs | Writing costs |
//! |---|---|---|---|
//! | full copy | [`Index::unique`], [`Index::many`] | one look-up | the whole entity once more |
//! | partial copy | [`Index::partial`] | one look-up for what it holds, two for the rest | these properties once more |
//! | reference | [`Index::reference`] | two look-ups | a row of keys |
//! | composite key | several properties in [`Parts`] | as the others, by all or the first of them | as the others |
//!
//! An index is *unique* if no two entities of a partition can have the same value (mail addresses), and of *many* if they can
//! (last names): then the id of the entity is appended to its key.
//!
//! # The keys
//! A key is a prefix and the value, as the guide prints them: `email_jonesj@contoso.com`. Texts stand as they are, but for
//! what a key cannot hold. Integers have 19 digits or as many as [`Part::digits`] says, moments 19 digits of ticks or a day
//! (2012-08-22) with [`Part::day`], GUIDs their usual form; booleans are `false` and `true`; doubles and bytes are
//! hexadecimal digits that sort as the values do. Values and ids are separated by a blank, which is less than every other character, so
//! that lists and ranges come in the order of the values; [`Index::separator`] chooses another.
//!
//! An entity that lacks one of the properties is not in the index. One whose property is a list can have an entry for each
//! item: [`Part::each`].

mod part;
mod query;

use crate::error::refused;
use crate::patterns::compound_key::{KeyStyle, check_separator};
use crate::{EdmValue, Entity, Result};

pub use part::{IndexValue, KeyValue, Part, Parts};
pub use query::IndexQuery;
pub(crate) use query::{Elsewhere, Primaries};

/// Properties of the service that no index can be made of.
const SYSTEM_PROPERTIES: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

/// An index over one property or several.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::patterns::index::{Index, Part};
///
/// // One employee for each address; the whole entity, found with one look-up.
/// let by_email = Index::unique("email_", "Email");
/// // Many of each name, with what a list shows.
/// let by_name = Index::many("name_", ["LastName", "FirstName"]).partial(["Email"]);
/// // Keys alone, and days instead of ticks.
/// let by_day = Index::many("hired_", Part::new("Hired").day()).reference();
/// // As other programs separate value and id.
/// let by_town = Index::many("town_", "Town").separator('_');
/// assert_eq!(by_town.prefix(), "town_");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    prefix: String,
    parts: Vec<Part>,
    is_unique: bool,
    separator: char,
    copied: Copied,
}

/// How much of an entity its row in the index holds.
#[derive(Clone, Debug, PartialEq)]
enum Copied {
    All,
    Some(Vec<String>),
}

impl Index {
    /// An index of values that no two entities share, with full copies.
    pub fn unique(prefix: impl Into<String>, parts: impl Into<Parts>) -> Self {
        Self::new(prefix.into(), parts.into(), true)
    }

    /// An index of values that many entities share, with full copies. The id is appended to the value.
    pub fn many(prefix: impl Into<String>, parts: impl Into<Parts>) -> Self {
        Self::new(prefix.into(), parts.into(), false)
    }

    fn new(prefix: String, parts: Parts, is_unique: bool) -> Self {
        Self { prefix, parts: parts.0, is_unique, separator: ' ', copied: Copied::All }
    }

    /// Holds these properties alone, beside the id.
    #[must_use]
    pub fn partial(mut self, properties: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.copied = Copied::Some(properties.into_iter().map(Into::into).collect());
        self
    }

    /// Holds the id and nothing else.
    #[must_use]
    pub fn reference(mut self) -> Self {
        self.copied = Copied::Some(Vec::new());
        self
    }

    /// Separates values and id by this character instead of a blank: one of `_-:;,|+=&`. Ranges over texts need the blank.
    #[must_use]
    pub fn separator(mut self, separator: char) -> Self {
        self.separator = separator;
        self
    }

    /// The start of its keys, which is its name, too.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The same index under another prefix.
    pub(crate) fn with_prefix(mut self, prefix: String) -> Self {
        self.prefix = prefix;
        self
    }

    /// The properties that its keys are made of.
    pub(crate) fn properties(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(Part::property)
    }

    /// Tells what is wrong with the definition, once and for all.
    pub(crate) fn check(&self) -> Result<()> {
        check_separator(self.separator)?;
        if self.parts.is_empty() {
            return Err(refused(format!("an index has at least one part: index={}", self.prefix)));
        }
        for part in &self.parts {
            if SYSTEM_PROPERTIES.contains(&part.property()) {
                return Err(refused(format!(
                    "an index is made of properties that the entity brings: property={}",
                    part.property()
                )));
            }
            part.check()?;
        }
        Ok(())
    }

    /// The keys of an entity in this index, with the prefix: one, or one for each item of a list; none for an entity that
    /// lacks a property.
    pub(crate) fn keys_of(&self, entity: &Entity, id: &str) -> Result<Vec<String>> {
        let mut tuples = vec![Vec::new()];
        for part in &self.parts {
            let values = part.values(entity)?;
            let longer = tuples.iter().flat_map(|tuple: &Vec<EdmValue>| {
                values.iter().map(|value| [tuple.as_slice(), std::slice::from_ref(value)].concat())
            });
            tuples = longer.collect();
        }
        tuples.iter().map(|values| self.key_of(values, id)).collect()
    }

    fn key_of(&self, values: &[EdmValue], id: &str) -> Result<String> {
        let mut key = format!("{}{}", self.prefix, self.key_start(values)?);
        if !self.is_unique {
            key.push(self.separator);
            KeyStyle::WHOLE.push_text(id, &mut key);
        }
        Ok(key)
    }

    /// Whether an entity may have several entries.
    pub(crate) fn is_over_lists(&self) -> bool {
        self.parts.iter().any(Part::is_list)
    }

    /// The key of a unique index, with the prefix, for all of its values.
    pub(crate) fn whole_key(&self, values: &IndexValue) -> Result<String> {
        match self.is_whole_key(values.0.len()) {
            true => Ok(format!("{}{}", self.prefix, self.key_start(&values.0)?)),
            false => Err(refused(format!("the index has {} values", self.parts.len()))),
        }
    }

    /// The key, after the prefix, as far as these values go; without a separator at the end.
    fn key_start(&self, values: &[EdmValue]) -> Result<String> {
        if values.is_empty() || values.len() > self.parts.len() {
            return Err(refused(format!(
                "the index has {} values: index={} values={}",
                self.parts.len(),
                self.prefix,
                values.len()
            )));
        }
        let mut key = String::new();
        for (number, (part, value)) in self.parts.iter().zip(values).enumerate() {
            if number > 0 {
                key.push(self.separator);
            }
            part.write(value, self.style(number), &mut key)?;
        }
        Ok(key)
    }

    /// A separator is escaped where it would be taken for one: everywhere but at the end of the key.
    fn style(&self, part: usize) -> KeyStyle {
        match self.is_whole_key(part + 1) {
            true => KeyStyle::WHOLE,
            false => KeyStyle::before(self.separator),
        }
    }

    /// Whether that many values are a key, with nothing behind them.
    fn is_whole_key(&self, values: usize) -> bool {
        self.is_unique && values == self.parts.len()
    }

    /// The row of an entity in this index, without its keys.
    pub(crate) fn copy_of(&self, entity: &Entity) -> Entity {
        let mut copy = Entity::default();
        for (name, value) in entity.properties().filter(|(name, _)| self.holds(name)) {
            copy.set(name, value.clone());
        }
        copy
    }

    /// Whether a copy holds this property if the entity has it.
    fn holds(&self, property: &str) -> bool {
        match &self.copied {
            Copied::All => true,
            Copied::Some(names) => names.iter().any(|name| name == property),
        }
    }

    /// Whether a copy answers what is asked for: all properties, or these.
    fn answers(&self, select: Option<&[String]>) -> bool {
        match select {
            None => self.copied == Copied::All,
            Some(names) => names.iter().all(|name| self.holds(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, DateTime, Uuid};

    fn key(index: &Index, entity: &Entity) -> String {
        index.check().unwrap();
        let id = entity.row_key();
        let mut keys = index.keys_of(entity, id).unwrap();
        assert_eq!(keys.len(), 1);
        keys.remove(0)
    }

    #[test]
    fn keys_are_those_of_the_guide() {
        let jones = Entity::new("Sales", "000223")
            .with("Email", "jonesj@contoso.com")
            .with("LastName", "Jones")
            .with("Town", "Redmond")
            .with("Age", 34);
        for (index, expected) in [
            (Index::unique("email_", "Email"), "email_jonesj@contoso.com"),
            (Index::many("lastname_", "LastName"), "lastname_Jones 000223"),
            (Index::many("lastname_", "LastName").separator('_'), "lastname_Jones_000223"),
            (Index::many("", ["Town", "LastName"]), "Redmond Jones 000223"),
            (Index::unique("age_", Part::new("Age").digits(8)), "age_00000034"),
        ] {
            assert_eq!(key(&index, &jones), expected);
        }
    }

    #[test]
    fn a_list_has_an_entry_for_each_item() {
        let film = Entity::new("Action", "Heat")
            .with("Actors", "De Niro, Pacino,,Pacino")
            .with("Year", 1995);
        let by_actor = Index::many("actor_", Part::new("Actors").each(','));
        assert_eq!(
            by_actor.keys_of(&film, "Heat").unwrap(),
            ["actor_De!20Niro Heat", "actor_Pacino Heat"]
        );
        let parts = [Part::new("Year").digits(4), Part::new("Actors").each(',')];
        assert_eq!(
            Index::unique("", parts).separator('_').keys_of(&film, "Heat").unwrap(),
            ["1995_De Niro", "1995_Pacino"]
        );
    }

    #[test]
    fn every_type_is_a_key() {
        let entity = Entity::new("p", "7")
            .with("Text", "a/b c")
            .with("Flag", true)
            .with("Small", -1)
            .with("Large", 1_i64)
            .with("Real", 0.5)
            .with("Moment", DateTime::parse_iso("2012-08-22T00:50:32Z").unwrap())
            .with("Guid", Uuid::from_u128(7))
            .with("Bytes", vec![0x0a_u8, 0xff]);
        for (property, expected) in [
            ("Text", "a.~1b c"),
            ("Flag", "true"),
            ("Small", "!9999999999999999999"),
            ("Large", "0000000000000000001"),
            ("Real", "bfe0000000000000"),
            ("Moment", "0634811934320000000"),
            ("Guid", "00000000-0000-0000-0000-000000000007"),
            ("Bytes", "0aff"),
        ] {
            assert_eq!(key(&Index::unique("", property), &entity), expected, "{property}");
        }
        let by_day = Index::unique("", Part::new("Moment").day());
        assert_eq!(key(&by_day, &entity), "2012-08-22");
        assert!(Index::unique("", "Missing").keys_of(&entity, "7").unwrap().is_empty());
        assert!(Index::unique("", ["Text", "Missing"]).keys_of(&entity, "7").unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_an_index_is_refused_when_it_is_defined() {
        for index in [
            Index::unique("a_", "Timestamp"),
            Index::unique("a_", ["Email", "RowKey"]),
            Index::unique("a_", [""; 0]),
            Index::many("a_", "Email").separator('7'),
            Index::unique("a_", Part::new("Age").digits(0)),
            Index::unique("a_", Part::new("Age").digits(20)),
            Index::unique("a_", Part::from(Column::<String>::new("Email")).digits(6)),
            Index::unique("a_", Part::from(Column::<i32>::new("Age")).day()),
            Index::unique("a_", Part::from(Column::<String>::new("Email")).descending()),
            Index::many("a_", Part::from(Column::<i32>::new("Ages")).each(',')),
            Index::many("a_", Part::new("Ages").each(',').digits(3)),
        ] {
            assert!(index.check().is_err(), "{index:?}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_an_error_and_no_missing_copy() {
        let entity = Entity::new("p", "1").with("Age", "34").with("Long", 1_234_567);
        for part in [
            Part::from(Column::<i32>::new("Age")),
            Part::new("Age").digits(3),
            Part::new("Age").day(),
            Part::new("Age").descending(),
            Part::new("Long").digits(3),
            Part::new("Long").each(','),
        ] {
            assert!(Index::many("a_", part.clone()).keys_of(&entity, "1").is_err(), "{part:?}");
        }
        // A smaller number stands for a larger one, as everywhere in the client.
        let age = Entity::new("p", "1").with("Age", 34);
        let by_age = Index::unique("", Part::from(Column::<i64>::new("Age")));
        assert_eq!(key(&by_age, &age), "0000000000000000034");
    }
}
