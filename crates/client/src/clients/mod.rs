//! The clients: one for an account's tables, one for the entities of a table.

mod core;
mod options;
mod query;
mod service;
mod table;
mod table_admin;

pub use options::*;
pub use query::{EntityPage, EntityPager, QueryReport, TablePage, TablePager};
pub use service::TableServiceClient;
pub use table::TableClient;

pub(crate) use self::core::{Call, Core, Format};
pub(crate) use self::table::{entity_link, method_of};
