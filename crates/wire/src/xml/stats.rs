//! The body of Get Service Stats: how far the secondary is behind.

use std::time::{Duration, UNIX_EPOCH};

use super::document::{self, Children, DECLARATION, invalid, write_close, write_leaf, write_open};
use super::reader::BYTE_ORDER_MARK;
use crate::error::Result;
use crate::ticks::Ticks;

/// The state of geo-replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStats {
    /// The secondary answers; writes before this moment can be read there.
    Live {
        last_sync: Ticks,
    },
    Bootstrap,
    Unavailable,
}

/// Writes the document. The time is RFC 1123, and empty unless the secondary is live.
pub fn write(stats: &ServiceStats) -> String {
    let (status, last_sync) = match stats {
        ServiceStats::Live { last_sync } => ("live", http_date(*last_sync)),
        ServiceStats::Bootstrap => ("bootstrap", String::new()),
        ServiceStats::Unavailable => ("unavailable", String::new()),
    };
    let mut out = [BYTE_ORDER_MARK, DECLARATION].concat();
    write_open(&mut out, "StorageServiceStats");
    write_open(&mut out, "GeoReplication");
    write_leaf(&mut out, "Status", status);
    write_leaf(&mut out, "LastSyncTime", &last_sync);
    write_close(&mut out, "GeoReplication");
    write_close(&mut out, "StorageServiceStats");
    out
}

/// Reads the document, as a client does.
///
/// # Errors
/// `InvalidXmlDocument` for anything that is no such document.
pub fn parse(body: &[u8]) -> Result<ServiceStats> {
    let root = document::parse(body)?;
    let mut children = Children::of(&root)?;
    let replication = children.required("GeoReplication")?;
    let mut children = Children::of(replication)?;
    match children.required("Status")?.leaf_text()?.trim() {
        "live" => {
            let text = children.required("LastSyncTime")?.leaf_text()?.trim();
            let since = httpdate::parse_http_date(text)
                .ok()
                .and_then(|moment| moment.duration_since(UNIX_EPOCH).ok())
                .ok_or_else(|| invalid("LastSyncTime is no date"))?;
            let nanoseconds = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
            Ok(ServiceStats::Live { last_sync: Ticks::from_unix_nanos(nanoseconds) })
        }
        "bootstrap" => Ok(ServiceStats::Bootstrap),
        "unavailable" => Ok(ServiceStats::Unavailable),
        _ => Err(invalid("Status is not known")),
    }
}

/// HTTP dates start with 1970; an earlier moment is printed as that one.
fn http_date(moment: Ticks) -> String {
    let seconds = moment.unix_seconds().max(0);
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded body in the reference, section 12.3.
    #[test]
    fn a_live_secondary() {
        let last_sync = Ticks::parse_iso("2021-09-20T23:06:50.9Z").unwrap();
        assert_eq!(
            write(&ServiceStats::Live { last_sync }),
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Mon, 20 Sep 2021 23:06:50 GMT</LastSyncTime></GeoReplication></StorageServiceStats>"
        );
    }

    #[test]
    fn others_have_no_time() {
        for (stats, status) in
            [(ServiceStats::Bootstrap, "bootstrap"), (ServiceStats::Unavailable, "unavailable")]
        {
            let expected = format!("<Status>{status}</Status><LastSyncTime></LastSyncTime>");
            assert!(write(&stats).contains(&expected));
        }
    }

    #[test]
    fn a_client_reads_what_the_service_writes() {
        let last_sync = Ticks::parse_iso("2021-09-20T23:06:50Z").unwrap();
        for stats in
            [ServiceStats::Live { last_sync }, ServiceStats::Bootstrap, ServiceStats::Unavailable]
        {
            assert_eq!(parse(write(&stats).as_bytes()).unwrap(), stats);
        }
        assert!(parse(b"<StorageServiceStats />").is_err());
    }
}
