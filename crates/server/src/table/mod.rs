//! The operations of the table service, one file each: parsed input, the keys it touches, the reply.
//!
//! [`entity_change`] is the heart: what inserting, replacing, merging and deleting an entity mean, as one pure
//! function that single requests and transactions share.

pub(crate) mod acl;
pub(crate) mod batch;
pub(crate) mod change_set;
pub(crate) mod create_table;
pub(crate) mod delete_table;
pub(crate) mod entity_change;
pub(crate) mod entity_page;
pub(crate) mod errors;
pub(crate) mod get_entity;
pub(crate) mod get_table;
pub(crate) mod insert_entity;
pub(crate) mod operation;
pub(crate) mod query_entities;
pub(crate) mod query_tables;
pub(crate) mod service_properties;
pub(crate) mod service_stats;
pub(crate) mod update_entity;
