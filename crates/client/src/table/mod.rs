//! Tables: one client for those of an account, one for the entities of a table, and what entities are.

mod admin;
pub mod bulk;
pub mod encryption;
mod entities;
pub(crate) mod entity;
mod explain;
pub(crate) mod filter;
mod index_info;
mod indexes;
mod options;
pub(crate) mod parallel;
mod query;
mod read_modify_write;
mod service_client;
mod spec;
mod split;
mod table_client;
pub(crate) mod transaction;
pub(crate) mod value;

pub use crate::core::options::CallOptions;
pub use explain::{IndexUse, QueryExplanation, QueryReport};
pub use index_info::{IndexInfo, IndexState};
pub use indexes::IndexClient;
pub use options::*;
pub use query::{EntityPage, EntityPager, TablePage, TablePager};
pub use service_client::TableServiceClient;
pub use split::PartitionRange;
pub use table_client::TableClient;

#[cfg(test)]
pub(crate) use spec::TABLE_SERVICE;
pub(crate) use table_client::{entity_link, method_of};
