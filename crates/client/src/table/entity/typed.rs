//! Rust types that are entities.

use azure_core::Uuid;

use super::{Entity, IndexSpec};
use crate::core::error::Result;
use crate::patterns::compound_key::{Compound, Inverted};
use crate::table::value::DateTime;

/// The property that names the type of an entity in a table of several types.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{ENTITY_TYPE, ENTITY_VERSION, TableEntity};
///
/// #[derive(TableEntity)]
/// #[table(entity_type = "Employee", version = 2, upgrade = upgrade)]
/// struct Employee {
///     #[table(partition_key)]
///     department: String,
///     #[table(row_key)]
///     id: String,
/// }
///
/// # fn upgrade(entity: tavola_client::Entity, _found: i32) -> azure_core::Result<tavola_client::Entity> { Ok(entity) }
/// let entity = Employee { department: "Sales".into(), id: "00010".into() }.to_entity()?;
/// assert_eq!(entity.get::<String>(ENTITY_TYPE)?, "Employee");
/// assert_eq!(entity.get::<i32>(ENTITY_VERSION)?, 2);
/// # Ok(())
/// # }
/// ```
pub const ENTITY_TYPE: &str = "EntityType";
/// The property that counts the versions of a type.
pub const ENTITY_VERSION: &str = "EntityVersion";

/// A type that is stored as an entity.
///
/// Three kinds of types are: [`Entity`], whose shape is known at run time only; structs and enums with
/// `#[derive(TableEntity)]`; and any serde type inside [`Serde`](crate::Serde).
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{Entity, TableEntity};
///
/// #[derive(TableEntity, Debug, PartialEq)]
/// #[table(rename_all = "PascalCase")]
/// struct Employee {
///     #[table(partition_key)]
///     department: String,
///     #[table(row_key)]
///     id: String,
///     first_name: String,
///     age: i32,
///     phone: Option<String>,
/// }
///
/// let jens = Employee {
///     department: "Sales".into(),
///     id: "00010".into(),
///     first_name: "Jens".into(),
///     age: 34,
///     phone: None,
/// };
/// let entity = jens.to_entity()?;
/// assert_eq!(entity, Entity::new("Sales", "00010").with("FirstName", "Jens").with("Age", 34));
/// assert_eq!(Employee::from_entity(entity)?, jens);
/// assert!(jens.encrypted_properties().is_empty(), "none is marked with #[table(encrypt)]");
/// # Ok(())
/// # }
/// ```
pub trait TableEntity: Sized {
    /// The entity to store.
    ///
    /// # Errors
    /// A value that no entity can hold.
    fn to_entity(&self) -> Result<Entity>;

    /// Reads an entity.
    ///
    /// # Errors
    /// A property that is missing or of another type.
    fn from_entity(entity: Entity) -> Result<Self>;

    /// The properties that are encrypted before they leave the client; those with `#[table(encrypt)]`.
    ///
    /// Asked of the value, because the variants of an enum differ.
    fn encrypted_properties(&self) -> &'static [&'static str] {
        &[]
    }

    /// The indexes that a table of this type has by their names, those with `#[table(index(...))]`; see
    /// [`TableClient::ensure_indexes`](crate::TableClient::ensure_indexes).
    ///
    /// `keys`, `include` and `filter` name properties as they are stored: after `rename` and `rename_all`, and the keys as
    /// `PartitionKey` and `RowKey`. On a struct, names that it does not store and properties that are encrypted do not
    /// compile; on an enum, and for the fields of what is flattened, nothing is checked.
    ///
    /// ```
    /// use tavola_client::TableEntity;
    ///
    /// #[derive(TableEntity)]
    /// #[table(index(name = "ByEmail", keys = "email", unique))]
    /// struct Person {
    ///     #[table(partition_key)]
    ///     country: String,
    ///     #[table(row_key)]
    ///     id: String,
    ///     email: String,
    /// }
    ///
    /// let [(name, spec)] = &Person::indexes()[..] else { panic!() };
    /// assert_eq!((*name, spec.keys.as_str(), spec.unique), ("ByEmail", "email", true));
    /// ```
    fn indexes() -> Vec<(&'static str, IndexSpec)> {
        Vec::new()
    }
}

impl TableEntity for Entity {
    fn to_entity(&self) -> Result<Entity> {
        Ok(self.clone())
    }

    fn from_entity(entity: Entity) -> Result<Self> {
        Ok(entity)
    }
}

/// A type that is a partition key or a row key: texts, integers, moments and GUIDs, their
/// [inverse](crate::patterns::compound_key::Inverted), and [compound keys](crate::patterns::compound_key) of these.
///
/// Numbers and moments are written with a fixed number of digits, so that keys sort as the values do.
///
/// ```
/// # fn main() -> tavola_client::Result<()> {
/// use tavola_client::patterns::compound_key::Inverted;
/// use tavola_client::{DateTime, KeyField, TableEntity};
///
/// #[derive(TableEntity)]
/// struct LogLine {
///     #[table(partition_key)]
///     machine: u32,
///     /// The newest first.
///     #[table(row_key)]
///     at: Inverted<DateTime>,
///     text: String,
/// }
///
/// let at = Inverted(DateTime::parse_iso("2026-11-17").unwrap());
/// let line = LogLine { machine: 7, at, text: "started".into() }.to_entity()?;
/// assert_eq!(line.partition_key(), "0000000007");
/// assert_eq!(Inverted::<DateTime>::from_key(line.row_key().to_owned())?, at);
/// assert_eq!(7_u32.to_key()?, "0000000007");
/// # Ok(())
/// # }
/// ```
///
/// A type of your own:
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use azure_core::Result;
/// use tavola_client::{KeyField, TableEntity};
///
/// /// A department, whose names are all upper case in keys.
/// #[derive(Debug, PartialEq)]
/// struct Department(String);
///
/// impl KeyField for Department {
///     fn to_key(&self) -> Result<String> {
///         Ok(self.0.to_uppercase())
///     }
///
///     fn from_key(key: String) -> Result<Self> {
///         Ok(Self(key))
///     }
/// }
///
/// #[derive(TableEntity)]
/// struct Employee {
///     #[table(partition_key)]
///     department: Department,
///     #[table(row_key)]
///     id: String,
/// }
///
/// let jens = Employee { department: Department("Sales".into()), id: "00010".into() };
/// assert_eq!(jens.to_entity()?.partition_key(), "SALES");
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a key",
    label = "keys are texts, integers, moments, GUIDs or compounds of these"
)]
pub trait KeyField: Sized {
    /// The key as it is stored.
    ///
    /// # Errors
    /// A value that no key can hold.
    fn to_key(&self) -> Result<String>;

    /// Reads a stored key.
    ///
    /// # Errors
    /// A text that this type does not write.
    fn from_key(key: String) -> Result<Self>;
}

impl KeyField for String {
    fn to_key(&self) -> Result<String> {
        Ok(self.clone())
    }

    fn from_key(key: String) -> Result<Self> {
        Ok(key)
    }
}

/// Declares the types that are keys by themselves, written as they are in compound keys.
macro_rules! keys {
    ($($rust:ty),+) => {
        $(impl KeyField for $rust {
            fn to_key(&self) -> Result<String> {
                Compound::<($rust,)>((*self,)).to_key()
            }

            fn from_key(key: String) -> Result<Self> {
                Ok(Compound::<($rust,)>::from_key(key)?.0.0)
            }
        })+
    };
}

keys!(u16, u32, u64, i32, i64, DateTime, Uuid);
keys!(
    Inverted<u16>,
    Inverted<u32>,
    Inverted<u64>,
    Inverted<i32>,
    Inverted<i64>,
    Inverted<DateTime>
);
