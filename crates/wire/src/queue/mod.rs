//! What is the queue service's alone: names and resources, metadata, parameters, receipts, and its XML documents.
//!
//! Numbers in comments are sections of the reference for queues.

pub mod answers;
pub mod body;
pub mod list;
pub mod message;
pub mod metadata;
pub mod names;
pub mod parameters;
pub mod receipt;
pub mod resource;

pub use message::MessageId;
pub use names::QueueName;
pub use receipt::PopReceipt;
pub use resource::ResourcePath;
