//! The queue service, byte by byte. Numbers in comments are sections of the reference for queues.

mod access;
mod client;
mod crash;
#[cfg(target_os = "linux")]
mod full_disk;
mod histories;
mod listening;
mod messages;
mod queues;
mod receipts;
mod restore;
mod service;
pub(crate) mod stored;
