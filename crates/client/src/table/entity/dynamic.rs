//! An entity whose shape is known at run time only.

use tavola_wire::table::names::{KeyName, check_key};

use crate::core::error::{Result, conversion};
use crate::table::value::{EdmProperty, EdmValue};

/// A partition key, a row key, and properties in the order they were set.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{EdmValue, Entity};
///
/// let mut entity = Entity::new("Sales", "00010").with("FirstName", "Jens").with("Age", 34);
/// assert_eq!((entity.partition_key(), entity.row_key()), ("Sales", "00010"));
///
/// // A property is read as a type; an option may be absent, and nothing is converted.
/// assert_eq!(entity.get::<i32>("Age")?, 34);
/// assert_eq!(entity.get::<Option<String>>("Phone")?, None);
/// assert!(entity.get::<String>("Age").is_err());
/// assert_eq!(entity.value("Age"), Some(&EdmValue::Int32(34)));
///
/// // Changing: `set` gives what was there, `None` removes, `take` moves the value out.
/// assert_eq!(entity.set("Age", 35), Some(EdmValue::Int32(34)));
/// entity.set_property("Phone", &Some("555-0100".to_owned()))?;
/// entity.set_property("Phone", &None::<String>)?;
/// assert!(entity.set_property("Hash", &u64::MAX).is_err(), "no property holds it");
/// assert_eq!(entity.take::<String>("FirstName")?, "Jens");
/// assert_eq!(entity.remove("FirstName"), None);
/// assert_eq!(entity.properties().collect::<Vec<_>>(), [("Age", &EdmValue::Int32(35))]);
/// assert!(entity.stored_bytes() < 1024 * 1024, "what the service counts");
///
/// // A copy under other keys.
/// let mut copy = entity.clone();
/// copy.set_keys(entity.take_partition_key(), format!("age_{}", entity.get::<i32>("Age")?));
/// assert_eq!(copy.take_row_key(), "age_35");
/// for (name, value) in copy.into_properties() {
///     println!("{name}: {value:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entity {
    partition_key: String,
    row_key: String,
    properties: Vec<(String, EdmValue)>,
}

impl Entity {
    /// An entity without properties.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self {
            partition_key: partition_key.into(),
            row_key: row_key.into(),
            properties: Vec::new(),
        }
    }

    /// Adds or replaces a property.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<EdmValue>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds or replaces a property; gives the value that it had.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<EdmValue>) -> Option<EdmValue> {
        let (name, value) = (name.into(), value.into());
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => Some(std::mem::replace(known, value)),
            None => {
                self.properties.push((name, value));
                None
            }
        }
    }

    /// Adds or replaces a property by any type that is one; `None` removes it.
    ///
    /// # Errors
    /// A value that no property can hold; the entity stays as it is.
    pub fn set_property(&mut self, name: &str, value: &impl EdmProperty) -> Result<()> {
        match value.to_edm().map_err(|error| self.of_property(name, &error))? {
            Some(value) => {
                self.set(name, value);
            }
            None => {
                self.remove(name);
            }
        }
        Ok(())
    }

    /// Removes a property; gives the value that it had.
    pub fn remove(&mut self, name: &str) -> Option<EdmValue> {
        let at = self.properties.iter().position(|(known, _)| known == name)?;
        Some(self.properties.remove(at).1)
    }

    /// The property as a type.
    ///
    /// # Errors
    /// A missing property, unless the type is an option, and a property of another type.
    pub fn get<T: EdmProperty>(&self, name: &str) -> Result<T> {
        T::from_edm(self.value(name).cloned()).map_err(|error| self.of_property(name, &error))
    }

    /// The property as a type, moved out of the entity.
    ///
    /// # Errors
    /// As [`Entity::get`].
    pub fn take<T: EdmProperty>(&mut self, name: &str) -> Result<T> {
        T::from_edm(self.remove(name)).map_err(|error| self.of_property(name, &error))
    }

    /// The value of a property, of whatever type it is.
    pub fn value(&self, name: &str) -> Option<&EdmValue> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The partition key.
    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    /// The row key.
    pub fn row_key(&self) -> &str {
        &self.row_key
    }

    /// The partition key, moved out of the entity.
    pub fn take_partition_key(&mut self) -> String {
        std::mem::take(&mut self.partition_key)
    }

    /// The row key, moved out of the entity.
    pub fn take_row_key(&mut self) -> String {
        std::mem::take(&mut self.row_key)
    }

    /// Gives the entity other keys, for a copy.
    pub fn set_keys(&mut self, partition_key: impl Into<String>, row_key: impl Into<String>) {
        self.partition_key = partition_key.into();
        self.row_key = row_key.into();
    }

    /// Names and values, in the order they were set or received.
    pub fn properties(&self) -> impl ExactSizeIterator<Item = (&str, &EdmValue)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Names and values, moved out of the entity.
    pub fn into_properties(self) -> impl ExactSizeIterator<Item = (String, EdmValue)> {
        self.properties.into_iter()
    }

    /// The bytes that the service counts against the 1 MiB that an entity may have.
    pub fn stored_bytes(&self) -> usize {
        let units = |text: &str| text.encode_utf16().count();
        let keys = 4 + 2 * (units(&self.partition_key) + units(&self.row_key));
        let property =
            |(name, value): &(String, EdmValue)| 8 + 2 * units(name) + value.stored_bytes();
        keys + self.properties.iter().map(property).sum::<usize>()
    }

    /// Checks the keys before they go into a URL, where a slash would mean something else.
    pub(crate) fn check_keys(&self) -> Result<()> {
        check_keys(&self.partition_key, &self.row_key)
    }

    pub(crate) fn push(&mut self, name: String, value: EdmValue) {
        self.properties.push((name, value));
    }

    fn of_property(&self, name: &str, error: &azure_core::Error) -> azure_core::Error {
        conversion(format!(
            "{error} property={name} partition_key={} row_key={}",
            self.partition_key, self.row_key
        ))
    }
}

pub(crate) fn check_keys(partition_key: &str, row_key: &str) -> Result<()> {
    check_key(KeyName::PartitionKey, partition_key)
        .and_then(|()| check_key(KeyName::RowKey, row_key))
        .map_err(|error| conversion(error.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_keep_their_place() {
        let mut entity = Entity::new("p", "r").with("B", 1).with("A", true).with("B", 2);
        let names: Vec<_> = entity.properties().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["B", "A"]);
        assert_eq!(entity.take::<i32>("B").unwrap(), 2);
        assert_eq!(entity.value("B"), None);
        entity.set_property("A", &None::<bool>).unwrap();
        assert_eq!(entity, Entity::new("p", "r"));
    }

    #[test]
    fn a_wrong_type_names_the_property_and_the_entity() {
        let error = Entity::new("p", "r").with("A", 1).get::<bool>("A").unwrap_err().to_string();
        assert!(error.contains("property=A partition_key=p row_key=r"), "{error}");
        assert!(error.contains("Edm.Int32 and not Edm.Boolean"), "{error}");
    }

    #[test]
    fn keys_that_cannot_be_are_refused_before_they_are_sent() {
        assert!(Entity::new("", "").check_keys().is_ok());
        assert!(Entity::new("a/b", "r").check_keys().is_err());
        assert!(Entity::new("p", "x".repeat(513)).check_keys().is_err());
    }
}
