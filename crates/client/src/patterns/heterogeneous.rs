//! Heterogeneous types and inheritance: several types in one table, told apart when they are read.
//!
//! A department and its employees in one partition can change in one transaction and be read by one query. Each entity tells
//! its type by the property `EntityType` or by the start of its row key, and an enum with `#[derive(TableEntity)]` turns a
//! query into a stream of Rust values. Properties that several types have in common are a struct with
//! `#[derive(PropertySet)]`, which each of them contains: inheritance by composition.
//!
//! **Use it** for types that are read or changed together. **Do not use it** for types that merely could share a table: the
//! scans of each read over the others.
//!
//! **Cost**: nothing beside the property, of some 50 bytes for each entity. A row key prefix makes one type a range:
//! `RowKey.starts_with("EMP_")` reads no other. **Half-done**: nothing. While a new version of a type is rolled out, programs of
//! the old version fail on entities of the new one, because writing them back would lose what they do not know.
//!
//! ```
//! # fn main() -> azure_core::Result<()> {
//! use tavola_client::{Entity, TableEntity};
//! use tavola_client::patterns::heterogeneous::PropertySet;
//!
//! #[derive(PropertySet, Debug, Default, PartialEq)]
//! #[table(rename_all = "PascalCase")]
//! struct Person {
//!     first_name: String,
//!     last_name: String,
//! }
//!
//! #[derive(TableEntity, Debug, PartialEq)]
//! #[table(rename_all = "PascalCase")]
//! struct Employee {
//!     #[table(partition_key)]
//!     department: String,
//!     #[table(row_key)]
//!     id: String,
//!     #[table(flatten)]
//!     person: Person,
//!     salary: i64,
//! }
//!
//! #[derive(TableEntity, Debug, PartialEq)]
//! enum Item {
//!     #[table(entity_type = "Employee")]
//!     Employee(Employee),
//!     #[table(row_key_prefix = "DEPT_")]
//!     Department(Entity),
//! }
//!
//! let stored = Entity::new("Sales", "00010")
//!     .with("EntityType", "Employee")
//!     .with("FirstName", "Jens")
//!     .with("LastName", "Jones")
//!     .with("Salary", 85_000_i64);
//! let Item::Employee(jens) = Item::from_entity(stored)? else { panic!() };
//! assert_eq!(jens.person.first_name, "Jens");
//! # Ok(())
//! # }
//! ```

use crate::{ENTITY_TYPE, Entity, Filter, Operator, Result};

/// Implements [`PropertySet`](trait@PropertySet) for a struct.
///
/// ```
/// use tavola_client::patterns::heterogeneous::PropertySet;
///
/// #[derive(PropertySet)]
/// #[table(rename_all = "PascalCase")]
/// struct Address {
///     street: String,
///     #[table(rename = "ZIP")]
///     zip: Option<String>,
/// }
/// ```
#[doc(inline)]
pub use tavola_client_derive::PropertySet;

/// Properties that several entity types have in common.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::Entity;
/// use tavola_client::patterns::heterogeneous::PropertySet;
///
/// #[derive(PropertySet)]
/// #[table(rename_all = "PascalCase")]
/// struct Person {
///     first_name: String,
/// }
///
/// let mut entity = Entity::new("Sales", "00010").with("Age", 34);
/// Person { first_name: "Jens".into() }.write_to(&mut entity)?;
/// assert_eq!(entity.get::<String>("FirstName")?, "Jens");
/// assert_eq!(Person::take_from(&mut entity)?.first_name, "Jens");
/// # Ok(())
/// # }
/// ```
pub trait PropertySet: Sized {
    /// Writes the properties into an entity.
    ///
    /// # Errors
    /// A value that no property can hold.
    fn write_to(&self, entity: &mut Entity) -> Result<()>;

    /// Takes the properties from an entity.
    ///
    /// # Errors
    /// A property that is missing or of another type.
    fn take_from(entity: &mut Entity) -> Result<Self>;
}

/// The entities of one type, by the property that names it. Without a partition this reads the whole table.
///
/// ```
/// use tavola_client::patterns::heterogeneous::of_type;
///
/// assert_eq!(of_type("Employee").to_string(), "EntityType eq 'Employee'");
/// ```
pub fn of_type(name: &str) -> Filter {
    Filter::compare(ENTITY_TYPE, Operator::Eq, name)
}
