//! Entities at rest, as `docs/format.md` has them: EDM values, the bytes that an entity and its key are stored as, the rules
//! that a stored entity obeys, and a filter that runs over those bytes.

mod entity;
pub mod key;
mod limits;
mod merge;
mod order;
pub(crate) mod program;
mod value;

pub use entity::{
    EntityRef, EntityWriter, MalformedEntity, Properties, Property, set_timestamp, with_properties,
};
pub use limits::{
    BINARY_BYTES_MAX, ENTITY_BYTES_MAX, PROPERTIES_MAX, check_entity, check_name, check_value,
    utf16_units,
};
pub use merge::merge;
pub use order::sort_by_name;
pub use program::{Program, Scratch};
pub(crate) use value::parse_guid;
pub use value::{EdmType, Value, guid_text, push_guid};
