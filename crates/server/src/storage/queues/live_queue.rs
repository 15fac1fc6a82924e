//! What is known of a queue in memory: which messages come next, where to look for more, how many there are.
//!
//! `low` is the place before which no message can be got, except those that are `ready` to be handed out. It is a bound
//! and not a guess, because every write says beforehand at which moment it will put its message, and a scan that
//! moves `low` up stays below the writes that were on their way while it ran. So what was deleted is never passed again, and
//! an empty queue is known to be empty without a look at the rows.
//!
//! A write is followed to its end, also when its request goes away. If the engine cannot say whether it was made, the lowest
//! place that it touches bounds `low` for a while, until it cannot be made any more.

mod in_flight;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tavola_wire::Ticks;
use tokio::sync::RwLock;

pub(super) use self::in_flight::{Taken, Writing};
use super::stamps::Now;
use crate::storage::STRAGGLER_GRACE;
use crate::storage::layout::StoreId;
use crate::storage::layout::message::{Moment, Place};

#[derive(Debug)]
pub(super) struct LiveQueue {
    pub(super) store: StoreId,
    /// Passed by every operation on messages, closed by those that take all messages away.
    gate: Arc<RwLock<()>>,
    /// One at a time looks for messages.
    pub(super) refilling: tokio::sync::Mutex<()>,
    /// One at a time counts them.
    pub(super) surveying: tokio::sync::Mutex<()>,
    head: Mutex<Head>,
}

/// A message that can be got, as far as is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) place: Place,
    pub(super) expires: Moment,
}

/// Messages that have expired. They are passed, and looked for again when the clock says that they have not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expired {
    /// Where the first of them is.
    first: Place,
    /// When the last of them expires.
    last: Moment,
    /// The present of the latest request that passed any.
    seen: Moment,
}

impl Expired {
    pub(super) fn add(passed: &mut Option<Self>, place: Place, expires: Moment, now: Now) {
        let one = Self { first: place, last: expires, seen: now.visible() };
        *passed = Some(passed.map_or(one, |others| others.and(one)));
    }

    fn and(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            seen: self.seen.max(other.seen),
        }
    }

    /// Whether some of them are alive after all, because the time of day was set back. A request that is merely late sees an
    /// earlier time of day too; its stamp is earlier as well.
    fn has_living(&self, now: Now) -> bool {
        self.last > now.expired() && self.seen <= now.visible()
    }
}

#[derive(Debug)]
struct Head {
    /// Messages to be handed out next, in order.
    ready: VecDeque<Candidate>,
    low: Place,
    /// Messages before `low` that had expired and are still stored.
    expired: Option<Expired>,
    /// The moments at which writes that are on their way put their messages, and how many.
    writes: BTreeMap<Moment, u32>,
    /// Claims that are on their way.
    claims: usize,
    /// While a scan runs: the lowest moment of the writes that it may not have seen.
    unseen: Option<Place>,
    /// The lowest place of writes that nobody waits for any more, and when the last of them was begun.
    abandoned: Option<(Place, Instant)>,
    /// Messages less those of `changes`; `None` until they have been counted.
    counted: Option<i64>,
    changes: i64,
    /// Whether the count may be wrong.
    is_doubtful: bool,
    /// No message expires before.
    next_expiry: Moment,
    /// Of those that were put since a count began.
    next_expiry_since: Moment,
    /// Messages that were taken away since the low mark was written.
    removed: u64,
}

/// What came of looking for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refill {
    /// Some are ready.
    Found,
    Nothing,
    /// There was much to pass, and it goes on behind it.
    NotDone(Place),
}

impl Refill {
    pub(super) fn goes_on_at(self) -> Option<Place> {
        match self {
            Self::NotDone(place) => Some(place),
            Self::Found | Self::Nothing => None,
        }
    }
}

/// Where a scan begins.
pub(super) struct ScanStart(pub(super) Place);

impl LiveQueue {
    /// A queue of which nothing is known but that no message lies before `low`.
    pub(super) fn new(store: StoreId, low: Place) -> Self {
        Self::with(store, low, None, Moment(0))
    }

    /// A queue that has just been made and has no messages.
    pub(super) fn new_empty(store: StoreId) -> Self {
        Self::with(store, Place::END, Some(0), Moment::NEVER)
    }

    fn with(store: StoreId, low: Place, counted: Option<i64>, next_expiry: Moment) -> Self {
        let head = Head {
            ready: VecDeque::new(),
            low,
            expired: None,
            writes: BTreeMap::new(),
            claims: 0,
            unseen: None,
            abandoned: None,
            counted,
            changes: 0,
            is_doubtful: false,
            next_expiry,
            next_expiry_since: Moment::NEVER,
            removed: 0,
        };
        Self {
            store,
            gate: Arc::default(),
            refilling: tokio::sync::Mutex::default(),
            surveying: tokio::sync::Mutex::default(),
            head: Mutex::new(head),
        }
    }

    pub(super) fn gate(&self) -> Arc<RwLock<()>> {
        Arc::clone(&self.gate)
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves messages that are ready to `taken`, up to so many in all. Answers whether there may be more to look for.
    pub(super) fn take_ready(&self, taken: &mut Taken, messages_max: usize, now: Now) -> bool {
        let mut head = self.head();
        head.look_again_at_expired(now);
        while taken.len() < messages_max {
            let Some(candidate) = head.ready.pop_front() else { break };
            if candidate.expires <= now.expired() {
                // It stays where it is, until it is swept.
                Expired::add(&mut head.expired, candidate.place, candidate.expires, now);
            } else if !taken.holds(candidate.place) {
                // One may be found twice while others are on their way.
                taken.candidates.push(candidate);
            }
        }
        taken.len() < messages_max && head.low.visible <= now.visible()
    }

    /// Whether so many messages are ready, or fewer but all that there are; `None` if one has to look.
    pub(super) fn readiness(&self, wanted: usize, now: Now) -> Option<Refill> {
        let mut head = self.head();
        head.look_again_at_expired(now);
        head.pass_expired(now);
        let are_all = head.low.visible > now.visible();
        // What is found from `low` on has to come behind what is ready.
        let may_add = head.ready.back().is_none_or(|last| last.place < head.low);
        match head.ready.len() {
            0 if are_all => Some(Refill::Nothing),
            0 => None,
            ready if ready >= wanted || are_all || !may_add => Some(Refill::Found),
            _ => None,
        }
    }

    /// The place of the first message that can be got, or from which on to look for it; `None` if there is nothing.
    pub(super) fn first_place(&self, now: Now) -> Option<Place> {
        let head = self.head();
        let first = head.ready.front().map_or(Place::END, |candidate| candidate.place);
        let first = first.min(head.low);
        (first.visible <= now.visible()).then_some(first)
    }

    /// The places of the next so many messages, or of all if there are fewer; `None` if it is not known which they are.
    pub(super) fn first_ready(&self, messages_max: usize, now: Now) -> Option<Vec<Place>> {
        let head = self.head();
        let is_next = |it: &&Candidate| it.expires > now.expired() && it.place < head.low;
        let next = head.ready.iter().filter(is_next).take(messages_max);
        let places: Vec<_> = next.map(|candidate| candidate.place).collect();
        // One may be there twice while others are on their way.
        let are_enough = places.len() == messages_max || head.low.visible > now.visible();
        (are_enough && places.is_sorted_by(|a, b| a < b)).then_some(places)
    }

    /// Begins a scan, or goes on with one that has come to this place. Nobody else scans, and what is ready lies before it.
    pub(super) fn begin_scan(&self, from: Option<Place>) -> ScanStart {
        let mut head = self.head();
        head.abandoned = head.abandoned.filter(|(_, since)| !is_over(since));
        head.unseen = Some(head.lowest_write());
        ScanStart(from.map_or(head.low, |from| from.max(head.low)))
    }

    /// Ends a scan that found these from its start on, and behind them this place.
    pub(super) fn end_scan(
        &self,
        start: Place,
        found: Vec<Candidate>,
        expired: Option<Expired>,
        next: Place,
    ) {
        let mut head = self.head();
        head.expired = match (head.expired, expired) {
            (Some(before), Some(more)) => Some(before.and(more)),
            (before, more) => before.or(more),
        };
        let unseen = head.unseen.take().unwrap_or(Place::MIN);
        let abandoned = head.abandoned.map_or(Place::END, |(place, _)| place);
        // What lies between the bound and the start, this scan has not looked at.
        let next = if head.low < start { head.low } else { next };
        head.low = next.min(unseen).min(abandoned).min(head.lowest_write());
        head.ready.extend(found);
        // Others may have given theirs back meanwhile.
        if !head.ready.iter().is_sorted_by_key(|candidate| candidate.place) {
            head.sort_ready();
        }
    }

    /// A message at this place is gone.
    pub(super) fn forget(&self, place: Place) {
        let mut head = self.head();
        if let Ok(at) = head.ready.binary_search_by_key(&place, |candidate| candidate.place) {
            head.ready.remove(at);
        }
    }

    /// Begins a write that adds a message, visible at this moment. It counts at once: who sees it has to find it counted.
    pub(super) fn begin_put(self: &Arc<Self>, visible: Moment) -> Writing {
        self.begin(Some(visible), Vec::new(), 1)
    }

    /// Begins a write that moves a message to this moment.
    pub(super) fn begin_write(self: &Arc<Self>, visible: Moment) -> Writing {
        self.begin(Some(visible), Vec::new(), 0)
    }

    /// Begins a write that puts no message anywhere.
    pub(super) fn begin_delete(self: &Arc<Self>) -> Writing {
        self.begin(None, Vec::new(), 0)
    }

    fn begin(
        self: &Arc<Self>,
        visible: Option<Moment>,
        claimed: Vec<Candidate>,
        added: i64,
    ) -> Writing {
        let mut head = self.head();
        head.changes += added;
        if let Some(visible) = visible {
            *head.writes.entry(visible).or_default() += 1;
            let place = Place::first_at(visible);
            head.low = head.low.min(place);
            head.unseen = head.unseen.map(|unseen| unseen.min(place));
        }
        head.claims += usize::from(!claimed.is_empty());
        Writing { live: Arc::clone(self), visible, claimed, added, is_finished: false }
    }

    /// That a message expires then.
    pub(super) fn note_expiry(&self, expires: Moment) {
        let mut head = self.head();
        head.next_expiry = head.next_expiry.min(expires);
        head.next_expiry_since = head.next_expiry_since.min(expires);
    }

    /// How many messages there are, if that is known.
    pub(super) fn count(&self) -> Option<u64> {
        let head = self.head();
        head.counted.map(|counted| (counted + head.changes).max(0).unsigned_abs())
    }

    /// The changes of the count so far, for [`LiveQueue::counted`].
    pub(super) fn changes(&self) -> i64 {
        let mut head = self.head();
        head.is_doubtful = false;
        head.next_expiry_since = Moment::NEVER;
        head.changes
    }

    /// So many messages there were when there had been `changes`; none expires before.
    pub(super) fn counted(&self, messages: i64, changes: i64, next_expiry: Moment) {
        let mut head = self.head();
        head.counted = Some(messages - changes);
        head.next_expiry = next_expiry.min(head.next_expiry_since);
    }

    /// All messages were removed that expired until then; of those that were counted no other expires before `next_expiry`.
    pub(super) fn swept_all(&self, removed: Moment, next_expiry: Moment) {
        let mut head = self.head();
        head.expired = head.expired.filter(|expired| expired.last > removed);
        // Those that nobody has passed since they expired.
        head.ready.retain(|candidate| candidate.expires > removed);
        head.next_expiry = next_expiry.min(head.next_expiry_since);
    }

    /// Messages were removed that had expired.
    pub(super) fn swept(&self, messages: i64) {
        let mut head = self.head();
        head.changes -= messages;
        head.removed += messages.unsigned_abs();
    }

    /// Whether the messages should be counted, because that was never done or may be wrong.
    pub(super) fn is_uncounted(&self) -> bool {
        let head = self.head();
        head.counted.is_none() || head.is_doubtful
    }

    pub(super) fn next_expiry(&self) -> Moment {
        self.head().next_expiry
    }

    /// Since when the first message has been visible, if there is one.
    pub(super) fn oldest(&self) -> Option<Ticks> {
        let head = self.head();
        let first = head.ready.front().map_or(Place::END, |candidate| candidate.place);
        let first = first.min(head.low);
        (Place::MIN < first && first < Place::END).then(|| first.visible.ticks())
    }

    /// Whether the place before which there is no message is worth being written down.
    pub(super) fn needs_low_mark(&self, removed_min: u64) -> bool {
        let head = self.head();
        head.low != Place::MIN && head.removed >= removed_min
    }

    /// The place before which there is no message, to be written down; `None` if it is not certain. Nobody passes the gate.
    pub(super) fn low_mark(&self, now: Moment) -> Option<Place> {
        let mut head = self.head();
        let is_quiet = head.writes.is_empty() && head.claims == 0 && head.abandoned.is_none();
        if !is_quiet || head.low == Place::MIN {
            return None;
        }
        head.removed = 0;
        // What is put later is put at a later moment.
        Some(head.first_known().min(Place::first_at(now)))
    }

    /// The place before which there is no message. Nobody passes the gate.
    pub(super) fn first_known(&self) -> Place {
        self.head().first_known()
    }

    /// There is a message at this place, before all that are known.
    pub(super) fn found_before(&self, place: Place) {
        self.head().look_from(place);
    }
}

impl Head {
    /// The place of the first message, or a bound of it: what is ready, what has expired, and what has not been looked at.
    fn first_known(&self) -> Place {
        let ready = self.ready.front().map_or(Place::END, |candidate| candidate.place);
        let expired = self.expired.map_or(Place::END, |expired| expired.first);
        ready.min(expired).min(self.low)
    }

    fn lowest_write(&self) -> Place {
        self.writes.keys().next().map_or(Place::END, |visible| Place::first_at(*visible))
    }

    /// What has been passed because it had expired may not have, if the clock was wrong.
    fn look_again_at_expired(&mut self, now: Now) {
        if let Some(expired) = self.expired.take_if(|expired| expired.has_living(now)) {
            self.look_from(expired.first);
        }
    }

    /// Looks for messages from this place on, if it did not yet. Those that are ready behind it are found again.
    fn look_from(&mut self, place: Place) {
        self.low = self.low.min(place);
        self.unseen = self.unseen.map(|unseen| unseen.min(place));
        self.ready.retain(|candidate| candidate.place < place);
    }

    /// Takes out of those that are ready what has expired since. It stays where it is, until it is swept.
    fn pass_expired(&mut self, now: Now) {
        if self.next_expiry > now.expired() {
            return;
        }
        let Self { ready, expired, .. } = self;
        ready.retain(|candidate| {
            let is_alive = candidate.expires > now.expired();
            if !is_alive {
                Expired::add(expired, candidate.place, candidate.expires, now);
            }
            is_alive
        });
    }

    /// Messages that were taken and not claimed are the next again.
    fn give_back(&mut self, candidates: &[Candidate]) {
        for candidate in candidates.iter().rev() {
            self.ready.push_front(*candidate);
        }
        // Others may have given theirs back before.
        self.sort_ready();
    }

    fn sort_ready(&mut self) {
        self.ready.make_contiguous().sort_by_key(|candidate| candidate.place);
    }

    /// A write that touches no place before this one may or may not be made.
    fn abandon(&mut self, lowest: Place) {
        self.low = self.low.min(lowest);
        self.unseen = self.unseen.map(|unseen| unseen.min(lowest));
        let before = self.abandoned.filter(|(_, since)| !is_over(since));
        let before = before.map_or(Place::END, |(place, _)| place);
        self.abandoned = Some((before.min(lowest), Instant::now()));
        self.is_doubtful = true;
    }
}

/// Whether no straggler that was begun then can be made any more.
fn is_over(since: &Instant) -> bool {
    since.elapsed() > STRAGGLER_GRACE
}
