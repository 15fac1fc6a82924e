//! The operations of the table service, one file each: parsed input, the keys it touches, the reply.
//!
//! [`entity_change`] is the heart: what inserting, replacing, merging and deleting an entity mean, as one pure
//! function that single requests and transactions share.

pub mod acl;
pub mod batch;
pub mod change_set;
pub mod create_table;
pub mod delete_table;
pub mod entity_change;
pub mod entity_page;
pub mod get_entity;
pub mod get_table;
pub mod insert_entity;
pub mod query_entities;
pub mod query_tables;
pub mod service_properties;
pub mod service_stats;
pub mod update_entity;
