//! Whether a connection has the server to itself.
//!
//! A thread that serves one connection only may wait for the disk, which is quicker than to leave that to another. As soon
//! as a second connection is served it may not: what that one asks for would have to wait as well. So a connection is alone
//! once it has asked so many times in a row that others are silent, or ask so seldom that they lose next to nothing.
//! Requests count that are who they claim to be and have come in whole.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Requests in a row of one connection after which it is alone with the next: some hundredths of a second.
const REQUESTS_MIN: u32 = 256;

/// Who asked last, and how often in a row.
#[derive(Debug, Default)]
pub(crate) struct Solitude {
    latest: AtomicU64,
    numbers: AtomicU32,
}

impl Solitude {
    /// A number for a new connection.
    pub(crate) fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes a request; true if the connection is alone with it.
    pub(crate) fn note(&self, connection: u32) -> bool {
        // Relaxed, and not even in one step: whoever is wrongly found alone makes others wait for a moment, nothing else.
        let latest = self.latest.load(Ordering::Relaxed);
        let (last, in_a_row) = ((latest >> 32) as u32, latest as u32);
        let in_a_row = if last == connection { in_a_row } else { 0 };
        if in_a_row < REQUESTS_MIN {
            let latest = u64::from(connection) << 32 | u64::from(in_a_row + 1);
            self.latest.store(latest, Ordering::Relaxed);
        }
        in_a_row == REQUESTS_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_alone_after_many_requests_in_a_row() {
        let solitude = Solitude::default();
        let (first, second) = (solitude.number(), solitude.number());
        let is_alone_after =
            |connection: u32| (0..10 * REQUESTS_MIN).position(|_| solitude.note(connection));
        for connection in [first, second, first] {
            assert_eq!(is_alone_after(connection), Some(REQUESTS_MIN as usize));
            assert!(solitude.note(connection));
        }
        assert!(!solitude.note(second));
        assert!(!solitude.note(first));
    }

    #[test]
    fn connections_that_take_turns_are_never_alone() {
        let solitude = Solitude::default();
        let connections = [solitude.number(), solitude.number()];
        for request in 0..100 * REQUESTS_MIN as usize {
            // One asks a hundred times as often as the other.
            let connection = connections[usize::from(request % 100 == 0)];
            assert!(!solitude.note(connection));
        }
    }
}
