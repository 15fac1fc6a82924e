//! The table service, byte by byte.

mod as_recorded;
mod bad_input;
mod batch;
mod conditions;
mod entities;
mod filters;
mod guide;
pub(crate) mod indexes;
mod limits;
pub(crate) mod model;
pub(crate) mod paging;
mod sas;
mod sas_model;
mod sas_random;
mod service;
mod system_tables;
mod tables;
mod urls;
mod workload;
