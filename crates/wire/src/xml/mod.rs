//! The XML bodies of the service: access policies, service properties, stats and errors.
//!
//! XML is what these few operations speak; everything else is JSON. The reader is hardened: what
//! is not well-formed is refused, no document type, no entities beyond the five, limited depth. The size of a body is bounded by the
//! caller. Namespaces are not resolved.

pub mod acl;
pub mod error;
pub mod service_properties;
pub mod stats;

pub(crate) mod document;
pub(crate) mod reader;
pub(crate) mod syntax;
