//! What every service has in common: who may ask, what strangers and crashes can do, starting and stopping.

mod access_log;
pub(crate) mod admin;
pub(crate) mod bearer;
pub(crate) mod check;
mod crash;
#[cfg(unix)]
mod damage;
#[cfg(target_os = "linux")]
pub(crate) mod disk;
mod drop_in;
mod histories;
mod hostile;
mod local_user;
mod measuring;
mod monitoring;
mod network_path;
mod refusals;
mod reload;
mod rerun;
mod running;
mod secrets;
mod shared_key;
mod stranger;
pub(crate) mod upgrade;
mod upgrade_features;
