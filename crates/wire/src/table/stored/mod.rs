//! Entities: EDM values, the bytes that an entity is stored as, and the rules that a stored entity obeys.

mod encoded;
pub mod key;
mod limits;
mod merge;
mod value;

pub use encoded::{EntityRef, EntityWriter, MalformedEntity, Properties, Property, set_timestamp};
pub use limits::{
    BINARY_BYTES_MAX, ENTITY_BYTES_MAX, NAME_UNITS_MAX, PROPERTIES_MAX, STRING_UNITS_MAX,
    check_entity, check_name, check_value, utf16_units,
};
pub use merge::merge;
pub use value::{EdmType, Value, guid_text, parse_guid, push_guid};
