//! JSON as the service reads and writes it: entities, lists, tables and errors, at three metadata levels.

mod escape;
mod read;
mod tables;
mod write;

pub use escape::push_string;
pub use read::{EntityBody, read_changes, read_entity, read_table_name};
pub use tables::TableFormat;
pub use write::{EntityFormat, push_error};
