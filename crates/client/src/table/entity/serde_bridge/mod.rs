//! Serde types as entities.
//!
//! A struct or map with the fields `PartitionKey` and `RowKey`, and values that are properties, is an entity. Serde has
//! no word for GUIDs and moments, so [`guid`] and [`date_time`] mark such fields; without them they are strings.

mod de;
mod ser;

use azure_core::Uuid;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};

use de::ValueDeserializer;
use ser::FieldsSerializer;

use super::{Entity, TableEntity};
use crate::core::error::{Result, conversion};
use crate::table::value::{DateTime, EdmValue};

const GUID: &str = "$tavola::guid";
const DATE_TIME: &str = "$tavola::date_time";

/// Makes an entity of any serde type that has a `PartitionKey` and a `RowKey`.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use serde::{Deserialize, Serialize};
/// use tavola_client::{Entity, Serde, TableEntity};
///
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// #[serde(rename_all = "PascalCase")]
/// struct Employee {
///     partition_key: String,
///     row_key: String,
///     age: i32,
///     salary: i64,
///     photo: Vec<u8>,
///     #[serde(skip_serializing_if = "Option::is_none")]
///     phone: Option<String>,
/// }
///
/// let employee = Employee {
///     partition_key: "Sales".into(),
///     row_key: "00010".into(),
///     age: 34,
///     salary: 85_000,
///     photo: vec![1, 2],
///     phone: None,
/// };
/// let entity = Serde(employee).to_entity()?;
/// let expected = Entity::new("Sales", "00010").with("Age", 34).with("Salary", 85_000_i64).with("Photo", vec![1, 2]);
/// assert_eq!(entity, expected);
/// assert_eq!(Serde::<Employee>::from_entity(entity)?.0.age, 34);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Serde<T>(pub T);

impl<T: Serialize + DeserializeOwned> TableEntity for Serde<T> {
    fn to_entity(&self) -> Result<Entity> {
        let mut entity = Entity::default();
        let fields = self.0.serialize(FieldsSerializer)?;
        let (mut partition_key, mut row_key) = (None, None);
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("PartitionKey", Some(EdmValue::String(key))) => partition_key = Some(key),
                ("RowKey", Some(EdmValue::String(key))) => row_key = Some(key),
                (_, Some(value)) => entity.push(name, value),
                (_, None) => {}
            }
        }
        match (partition_key, row_key) {
            (Some(partition_key), Some(row_key)) => entity.set_keys(partition_key, row_key),
            _ => return Err(conversion("the type has no PartitionKey and RowKey that are texts")),
        }
        Ok(entity)
    }

    fn from_entity(mut entity: Entity) -> Result<Self> {
        let keys = [
            ("PartitionKey".to_owned(), EdmValue::String(entity.take_partition_key())),
            ("RowKey".to_owned(), EdmValue::String(entity.take_row_key())),
        ];
        let fields = keys.into_iter().chain(entity.into_properties());
        let fields = fields.map(|(name, value)| (name, ValueDeserializer(value)));
        Ok(Self(T::deserialize(MapDeserializer::new(fields))?))
    }
}

/// Marks a serde field as `Edm.Guid`: `#[serde(with = "tavola_client::guid")]`.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use serde::{Deserialize, Serialize};
/// use tavola_client::{EdmValue, Serde, TableEntity, Uuid};
///
/// #[derive(Serialize, Deserialize)]
/// #[serde(rename_all = "PascalCase")]
/// struct Device {
///     partition_key: String,
///     row_key: String,
///     #[serde(with = "tavola_client::guid")]
///     serial: Uuid,
/// }
///
/// let serial = Uuid::from_u128(7);
/// let device = Device { partition_key: "hall".into(), row_key: "1".into(), serial };
/// assert_eq!(Serde(device).to_entity()?.value("Serial"), Some(&EdmValue::Guid(serial)));
/// # Ok(())
/// # }
/// ```
pub mod guid {
    use super::*;

    /// Writes the GUID.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(guid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(GUID, &guid.to_string())
    }

    /// Reads the GUID.
    ///
    /// # Errors
    /// A text that is none.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uuid::parse_str(&text).map_err(D::Error::custom)
    }
}

/// Marks a serde field as `Edm.DateTime`: `#[serde(with = "tavola_client::date_time")]`.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use serde::{Deserialize, Serialize};
/// use tavola_client::{DateTime, EdmValue, Serde, TableEntity};
///
/// #[derive(Serialize, Deserialize)]
/// #[serde(rename_all = "PascalCase")]
/// struct Login {
///     partition_key: String,
///     row_key: String,
///     #[serde(with = "tavola_client::date_time")]
///     at: DateTime,
/// }
///
/// let at = DateTime::parse_iso("2026-11-15T12:00:00Z").unwrap();
/// let login = Login { partition_key: "jens".into(), row_key: "1".into(), at };
/// assert_eq!(Serde(login).to_entity()?.value("At"), Some(&EdmValue::DateTime(at)));
/// # Ok(())
/// # }
/// ```
pub mod date_time {
    use super::*;

    /// Writes the moment.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(moment: &DateTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(DATE_TIME, &moment.to_iso())
    }

    /// Reads the moment.
    ///
    /// # Errors
    /// A text that is none.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        DateTime::parse_iso(&text).ok_or_else(|| D::Error::custom("the text is no moment"))
    }
}

/// The error that serde wants; it becomes a conversion error of the client.
#[derive(Debug)]
struct BridgeError(String);

impl std::fmt::Display for BridgeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BridgeError {}

impl serde::ser::Error for BridgeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl serde::de::Error for BridgeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<BridgeError> for azure_core::Error {
    fn from(error: BridgeError) -> Self {
        conversion(error.0)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    enum Grade {
        Junior,
        Senior,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Everything {
        partition_key: String,
        row_key: String,
        flag: bool,
        small: i16,
        number: i32,
        large: i64,
        ratio: f64,
        grade: Grade,
        #[serde(with = "guid")]
        id: Uuid,
        #[serde(with = "date_time")]
        since: DateTime,
        bytes: Vec<u8>,
        nothing: Option<i32>,
        something: Option<i64>,
    }

    fn everything() -> Everything {
        Everything {
            partition_key: "p".into(),
            row_key: "r".into(),
            flag: true,
            small: -3,
            number: 7,
            large: 1 << 40,
            ratio: 0.1,
            grade: Grade::Senior,
            id: Uuid::from_u128(9),
            since: DateTime::parse_iso("2020-02-29T01:02:03.4567891Z").unwrap(),
            bytes: vec![0, 255],
            nothing: None,
            something: Some(5),
        }
    }

    #[test]
    fn a_serde_type_maps_to_exact_types_and_back() {
        let entity = Serde(everything()).to_entity().unwrap();
        let expected = Entity::new("p", "r")
            .with("Flag", true)
            .with("Small", -3)
            .with("Number", 7)
            .with("Large", 1_i64 << 40)
            .with("Ratio", 0.1)
            .with("Grade", "Senior")
            .with("Id", Uuid::from_u128(9))
            .with("Since", everything().since)
            .with("Bytes", vec![0_u8, 255])
            .with("Something", 5_i64);
        assert_eq!(entity, expected);
        assert_eq!(Serde::<Everything>::from_entity(entity).unwrap().0, everything());
    }

    #[test]
    fn maps_are_entities_and_other_things_are_not() {
        use std::collections::BTreeMap;
        let map = BTreeMap::from([("PartitionKey", "p"), ("RowKey", "r"), ("A", "1")]);
        let map: BTreeMap<String, String> =
            map.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(Serde(map).to_entity().unwrap(), Entity::new("p", "r").with("A", "1"));
        assert!(Serde(vec![1]).to_entity().is_err());
        assert!(Serde(5).to_entity().is_err());
        let no_keys = BTreeMap::from([("A".to_owned(), 1)]);
        assert!(Serde(no_keys).to_entity().is_err());
        let nested = BTreeMap::from([("A".to_owned(), vec![300])]);
        assert!(Serde(nested).to_entity().unwrap_err().to_string().contains("bytes"));
    }
}
