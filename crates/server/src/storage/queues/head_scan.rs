//! Looking for the messages of a queue: the rows from its beginning on, up to the first that is not visible yet.

use std::ops::ControlFlow;
use std::sync::Arc;

use tavola_engine::{Reader, Visitor};

use super::Queues;
use super::live_queue::{Candidate, Expired, LiveQueue, Refill, ScanStart, Taken};
use super::stamps::Now;
use crate::storage::Result;
use crate::storage::layout::message::{Header, MessageKeys, Place, place_of};

/// Messages that are made ready at a time: enough for many requests, and a few KiB.
pub(super) const READY_MAX: usize = 256;
/// Rows of one scan; expired messages that await the sweeper are passed, and may be many.
const ROWS_MAX: usize = 4096;

impl Queues {
    /// Takes up to so many messages that nobody else has taken. They are perhaps gone by the time they are claimed.
    pub(super) async fn take(
        &self,
        live: &Arc<LiveQueue>,
        messages_max: usize,
        now: Now,
    ) -> Result<Taken> {
        let mut taken = Taken::new(live);
        let mut found = Refill::Found;
        loop {
            let before = taken.len();
            let may_have_more = live.take_ready(&mut taken, messages_max, now);
            // A message that is being put, or one that was found twice, is not waited for.
            let is_stuck = taken.len() == before && found.goes_on_at().is_none();
            if !may_have_more || found == Refill::Nothing || (is_stuck && before > 0) {
                return Ok(taken);
            }
            found = self.refill(live, (1, READY_MAX), now, found.goes_on_at()).await?;
        }
    }

    /// Makes so many messages ready, if there are as many; up to `ready_max` more where one has to look. What has expired is
    /// passed, once.
    pub(super) async fn make_ready(
        &self,
        live: &LiveQueue,
        wanted: usize,
        ready_max: usize,
        now: Now,
    ) -> Result<()> {
        let mut from = None;
        while live.readiness(wanted, now).is_none() {
            let found = self.refill(live, (wanted, ready_max), now, from).await?;
            if found == Refill::Nothing {
                break;
            }
            from = found.goes_on_at();
        }
        Ok(())
    }

    /// Looks for messages, unless so many are ready or there is nothing to look for: from this place on, where another look
    /// has ended before.
    async fn refill(
        &self,
        live: &LiveQueue,
        (wanted, ready_max): (usize, usize),
        now: Now,
        from: Option<Place>,
    ) -> Result<Refill> {
        if let Some(known) = live.readiness(wanted, now) {
            return Ok(known);
        }
        let _one_at_a_time = live.refilling.lock().await;
        // Somebody else may have found some meanwhile.
        if let Some(known) = live.readiness(wanted, now) {
            return Ok(known);
        }
        let ScanStart(start) = live.begin_scan(from);
        let range = MessageKeys(live.store).headers_from(start);
        let scan = self.engine.scan(range, HeadScan::new(now, ready_max)).await?;
        self.count_scan(scan.rows);
        let refill = match scan.found.len() {
            0 if scan.rows > ROWS_MAX => Refill::NotDone(scan.next),
            0 => Refill::Nothing,
            _ => Refill::Found,
        };
        live.end_scan(start, scan.found, scan.expired, scan.next);
        Ok(refill)
    }
}

/// Finds messages that can be got.
struct HeadScan {
    now: Now,
    found_max: usize,
    found: Vec<Candidate>,
    expired: Option<Expired>,
    rows: usize,
    /// The first place that was not looked at.
    next: Place,
}

impl HeadScan {
    fn new(now: Now, found_max: usize) -> Self {
        Self { now, found_max, found: Vec::new(), expired: None, rows: 0, next: Place::END }
    }
}

impl Visitor for HeadScan {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.rows += 1;
        let (Some(place), Some(expires)) = (place_of(key), Header::expiry_of(value)) else {
            warn_of(key);
            return ControlFlow::Continue(());
        };
        let is_full = self.found.len() == self.found_max || self.rows > ROWS_MAX;
        if place.visible > self.now.visible() || is_full {
            self.next = place;
            return ControlFlow::Break(());
        }
        if expires > self.now.expired() {
            self.found.push(Candidate { place, expires });
        } else {
            Expired::add(&mut self.expired, place, expires, self.now);
        }
        ControlFlow::Continue(())
    }
}

/// Reads the first messages that can be got.
pub(super) struct PeekScan {
    now: Now,
    messages_max: usize,
    pub(super) found: Vec<(Place, Header)>,
    pub(super) rows: usize,
}

impl PeekScan {
    pub(super) fn new(now: Now, messages_max: usize) -> Self {
        Self { now, messages_max, found: Vec::new(), rows: 0 }
    }
}

impl Visitor for PeekScan {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        self.rows += 1;
        let (Some(place), Some(header)) = (place_of(key), Header::decode(value)) else {
            warn_of(key);
            return ControlFlow::Continue(());
        };
        if place.visible > self.now.visible() {
            return ControlFlow::Break(());
        }
        if header.expires > self.now.expired() {
            self.found.push((place, header));
        }
        if self.found.len() == self.messages_max {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// One message that cannot be read must not keep the others back.
pub(super) fn warn_of(key: &[u8]) {
    tracing::error!(row = %key.escape_ascii(), "the header of a message cannot be read; it is left out");
}
