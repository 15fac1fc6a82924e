//! Entities: a bag of properties, typed structs, serde types, and what the service says beside them.

mod dynamic;
mod index_spec;
pub(crate) mod json;
mod serde_bridge;
mod stored;
mod typed;

pub use dynamic::Entity;
pub(crate) use dynamic::check_keys;
pub use index_spec::IndexSpec;
pub use serde_bridge::{Serde, date_time, guid};
pub use stored::Stored;
pub use typed::{ENTITY_TYPE, ENTITY_VERSION, KeyField, TableEntity};
