//! What requests have in hand: messages that were taken to be claimed, and writes on their way.

use std::sync::Arc;

use super::{Candidate, Expired, Head, LiveQueue};
use crate::storage::layout::message::{Moment, Place};
use crate::storage::queues::stamps::Now;

/// Messages that one request has taken, to claim them. Dropped unused, they are looked for again.
pub(in super::super) struct Taken {
    live: Arc<LiveQueue>,
    pub(super) candidates: Vec<Candidate>,
}

impl Taken {
    pub(in super::super) fn new(live: &Arc<LiveQueue>) -> Self {
        Self { live: Arc::clone(live), candidates: Vec::new() }
    }

    pub(in super::super) fn len(&self) -> usize {
        self.candidates.len()
    }

    pub(in super::super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.candidates.iter().map(|candidate| candidate.place)
    }

    pub(super) fn holds(&self, place: Place) -> bool {
        self.places().any(|other| other == place)
    }

    /// Leaves out those that have expired since.
    pub(in super::super) fn pass_expired(&mut self, now: Now) {
        let mut head = self.live.head();
        self.candidates.retain(|candidate| {
            let is_alive = candidate.expires > now.expired();
            if !is_alive {
                Expired::add(&mut head.expired, candidate.place, candidate.expires, now);
            }
            is_alive
        });
    }

    /// Begins the write that moves them to this moment.
    pub(in super::super) fn begin_write(mut self, visible: Moment) -> Writing {
        let candidates = std::mem::take(&mut self.candidates);
        self.live.begin(Some(visible), candidates, 0)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.candidates.is_empty() {
            self.live.head().give_back(&self.candidates);
        }
    }
}

/// A write on its way. If it is dropped unfinished, the engine could not say whether it was made.
pub(in super::super) struct Writing {
    pub(super) live: Arc<LiveQueue>,
    pub(super) visible: Option<Moment>,
    /// The messages that it moves there, if it is a claim.
    pub(super) claimed: Vec<Candidate>,
    /// Messages that were counted before it is made.
    pub(super) added: i64,
    pub(super) is_finished: bool,
}

impl Writing {
    /// It was made, and has changed the number of messages by so many beside those that were counted before.
    pub(in super::super) fn finish(mut self, change: i64) {
        self.is_finished = true;
        let live = Arc::clone(&self.live);
        let mut head = live.head();
        head.changes += change;
        head.removed += self.claimed.len() as u64 + u64::from(change < 0);
        self.end(&mut head);
    }

    /// It was certainly not made.
    pub(in super::super) fn refused(mut self) {
        self.is_finished = true;
        let live = Arc::clone(&self.live);
        let mut head = live.head();
        self.end(&mut head);
        head.changes -= self.added;
        head.give_back(&self.claimed);
    }

    fn end(&self, head: &mut Head) {
        head.claims -= usize::from(!self.claimed.is_empty());
        if let Some(visible) = self.visible
            && let Some(count) = head.writes.get_mut(&visible)
        {
            *count -= 1;
            if *count == 0 {
                head.writes.remove(&visible);
            }
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let live = Arc::clone(&self.live);
        let mut head = live.head();
        self.end(&mut head);
        let visible = self.visible.map_or(Place::END, Place::first_at);
        let places = self.claimed.iter().map(|candidate| candidate.place);
        head.abandon(places.fold(visible, Place::min));
    }
}
