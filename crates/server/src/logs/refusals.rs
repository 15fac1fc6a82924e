//! Which refusals are logged: the first few of each reason in every minute, so that an operator sees why a client is
//! refused and no client can fill the disk. Metrics count all of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tavola_wire::RefusalReason;

/// Lines of one reason in one window.
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct RefusalLog {
    /// By the number of the reason.
    windows: Vec<Mutex<Window>>,
}

#[derive(Debug, Default)]
struct Window {
    began: Option<Instant>,
    lines: u32,
    /// Refusals since the last line.
    left_out: u64,
}

impl RefusalLog {
    pub(crate) fn new() -> Self {
        Self { windows: RefusalReason::ALL.iter().map(|_| Mutex::default()).collect() }
    }

    /// Whether to log a refusal, and if so, how many of its reason were left out since the last line.
    pub(crate) fn admit(&self, reason: RefusalReason) -> Option<u64> {
        self.admit_at(reason, Instant::now())
    }

    fn admit_at(&self, reason: RefusalReason, now: Instant) -> Option<u64> {
        let window = &self.windows[reason as usize];
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        if window.began.is_none_or(|began| now.duration_since(began) >= WINDOW) {
            window.began = Some(now);
            window.lines = 0;
        }
        if window.lines == LINES_MAX {
            window.left_out += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_few_lines_a_minute_and_says_what_was_left_out() {
        let (log, start) = (RefusalLog::new(), Instant::now());
        let admitted =
            |reason, at| (0..100).filter_map(|_| log.admit_at(reason, at)).collect::<Vec<_>>();
        assert_eq!(admitted(RefusalReason::WrongKey, start), [0; LINES_MAX as usize]);
        assert_eq!(admitted(RefusalReason::Expired, start), [0; LINES_MAX as usize]);
        assert!(admitted(RefusalReason::WrongKey, start + WINDOW / 2).is_empty());
        let later = admitted(RefusalReason::WrongKey, start + WINDOW);
        assert_eq!((later.len(), later[0], later[1]), (LINES_MAX as usize, 190, 0));
    }
}
