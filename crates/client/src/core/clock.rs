//! The one place where the client reads the clock: the date of a signature, the age of a cache, the key of a log.

use azure_core::time::OffsetDateTime;
use tavola_wire::Ticks;

/// The moment as the service counts it.
///
/// ```
/// use tavola_client::{Entity, now};
///
/// let login = Entity::new("jens", "0001").with("At", now());
/// assert!(login.get::<tavola_client::DateTime>("At").unwrap() <= now());
/// ```
pub fn now() -> Ticks {
    Ticks::from_unix_nanos(OffsetDateTime::now_utc().unix_timestamp_nanos())
}

/// The moment as HTTP writes it, for `x-ms-date`.
pub(crate) fn http_date() -> String {
    azure_core::time::to_rfc7231(&OffsetDateTime::now_utc())
}
