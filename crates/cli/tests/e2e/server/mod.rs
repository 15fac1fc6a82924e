//! What every service has in common: who may ask, what strangers and crashes can do, starting and stopping.

pub(crate) mod bearer;
pub(crate) mod check;
mod crash;
#[cfg(unix)]
mod damage;
#[cfg(target_os = "linux")]
mod disk;
mod drop_in;
mod histories;
mod hostile;
mod local_user;
mod measuring;
mod network_path;
mod rerun;
mod running;
mod secrets;
mod shared_key;
mod stranger;
pub(crate) mod upgrade;
