#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

// The derive macro writes `::tavola_client`, in this crate too.
extern crate self as tavola_client;

mod attempts;
pub mod bulk;
mod clients;
mod clock;
mod connection_string;
mod credential;
pub mod encryption;
mod entity;
mod error;
mod filter;
#[doc(hidden)]
pub mod macros;
mod parallel;
pub mod patterns;
mod transaction;
mod transport;
mod value;

pub use clients::*;
pub use connection_string::ConnectionString;
pub use credential::{
    Credential, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, SasCredential, SharedKeyCredential,
};
pub use entity::*;
pub use error::{ErrorExt, Result, TableError};
pub use filter::{
    Column, Filter, Operator, PARTITION_KEY, QueryCost, ROW_KEY, ScanWarning, TIMESTAMP, prefix_end,
};
pub use parallel::merge_sorted;
pub use transaction::{Operation, TRANSACTION_BYTES_MAX, TRANSACTION_OPERATIONS_MAX, Transaction};
pub use transport::{TransportOptions, new_transport};
pub use value::{DateTime, EdmProperty, EdmValue};

pub use clock::now;
pub use tavola_client_derive::{TableEntity, filter};

/// Texts of the protocol that the client hands through: codes, signatures, settings.
pub use tavola_wire::ErrorCode;
pub use tavola_wire::auth::sas::{
    AccountSasSpec, IpRange, KeyBound, KeyRangeLimit, Permissions, Protocols, ResourceTypes,
    TableSasSpec,
};
pub use tavola_wire::entity::EdmType;
pub use tavola_wire::xml::acl::{AccessPolicy, SignedIdentifier};
pub use tavola_wire::xml::service_properties::{
    CorsRule, Logging, Metrics, RetentionPolicy, ServiceProperties,
};
pub use tavola_wire::xml::stats::ServiceStats;

pub use azure_core::Uuid;
pub use azure_core::http::Etag;
