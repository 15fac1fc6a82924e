//! Moments for messages: each later than every one before it, also over a restart.
//!
//! A row says up to which moment stamps may have been given out, some seconds ahead, and is written before a stamp passes
//! it. So a start after a crash goes on behind every stamp of the last run, and a server that is idle writes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tavola_engine::{AnyEngine, Decision, Engine, Reader, Transition, WriteSet};
use tavola_wire::Ticks;

use crate::clock::hybrid::{HybridClock, Reading, TimeSource};
use crate::storage::layout::message::Moment;
use crate::storage::layout::{Key, mark};
use crate::storage::{Error, Result};

/// How far ahead the mark is set. After a crash the clock is ahead of the wall clock by up to this much, and half as much
/// again where the mark was moved before anybody had to wait for it.
const AHEAD: i64 = 2 * Ticks::PER_SECOND;

/// The same while the clock is ahead already, so that crashes in a row do not add up.
const LITTLE_AHEAD: i64 = Ticks::PER_SECOND / 20;

/// The present, as messages see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Messages are visible that are so by then. From [`Stamps::now`] a stamp, given out once.
    pub(super) stamp: Ticks,
    /// Messages live from one time of day to another. Not a stamp: those stay ahead of a clock that was set wrong for a
    /// while, and what seemed to expire then has not.
    pub(super) time_of_day: Ticks,
}

impl Now {
    fn of(reading: Reading) -> Self {
        Self { stamp: reading.stamp, time_of_day: reading.time_of_day }
    }

    pub(super) fn visible(self) -> Moment {
        self.stamp.into()
    }

    pub(super) fn expired(self) -> Moment {
        self.time_of_day.into()
    }
}

#[derive(Debug)]
pub(super) struct Stamps {
    clock: HybridClock,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: AnyEngine,
    /// Stamps up to this may be given out.
    mark: AtomicI64,
    /// One at a time moves the mark.
    moving: tokio::sync::Mutex<()>,
}

impl Stamps {
    pub(super) async fn open(engine: AnyEngine, time: Arc<dyn TimeSource>) -> Result<Self> {
        let stored = engine.get(&Key::ClockMark.encode()).await?;
        let mark = stored.map_or(Some(Ticks(0)), |stored| mark::decode_clock(&stored));
        let mark = mark.ok_or_else(|| Error::Corrupt("the mark of the clock".into()))?;
        let clock = HybridClock::new(time, mark);
        let (mark, moving) = (AtomicI64::new(mark.0), tokio::sync::Mutex::default());
        Ok(Self { clock, shared: Arc::new(Shared { engine, mark, moving }) })
    }

    /// A moment that no other request has.
    pub(super) async fn next(&self) -> Result<Ticks> {
        self.read().await.map(|reading| reading.stamp)
    }

    /// The present; its stamp is one that no other request has.
    pub(super) async fn now(&self) -> Result<Now> {
        self.read().await.map(Now::of)
    }

    /// The present, for those who only look: it writes nothing, however often it is asked.
    pub(super) fn look(&self) -> Now {
        Now::of(self.clock.look())
    }

    async fn read(&self) -> Result<Reading> {
        let reading = self.clock.read();
        let (stamp, ahead) =
            (reading.stamp, if reading.lead() > AHEAD { LITTLE_AHEAD } else { AHEAD });
        let left = self.shared.mark.load(Ordering::Acquire) - stamp.0;
        if left < 0 {
            self.shared.raise(stamp, ahead).await?;
        } else if left < ahead / 2
            && let Ok(moving) = self.shared.moving.try_lock()
        {
            // Before anybody has to wait for it.
            drop(moving);
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                if let Err(error) = shared.raise(Ticks(stamp.0 + ahead / 2), ahead).await {
                    tracing::debug!(%error, "the mark of the clock was not moved in time");
                }
            });
        }
        Ok(reading)
    }

    /// How long ago the wall clock jumped ahead, if it did or may have.
    pub(super) fn since_jump(&self) -> Option<Duration> {
        self.clock.since_jump()
    }

    /// Sets the mark to what was given out, so that the next start is not ahead.
    pub(super) async fn close(&self) -> Result<()> {
        let last = self.clock.last();
        let mark = self.shared.mark.load(Ordering::Acquire);
        if mark > last.0 && mark > 0 && self.shared.has_written() {
            self.shared.write(last).await?;
        }
        Ok(())
    }
}

impl Shared {
    /// Moves the mark beyond a stamp, if it is not there already.
    async fn raise(&self, stamp: Ticks, ahead: i64) -> Result<()> {
        let _moving = self.moving.lock().await;
        if self.mark.load(Ordering::Acquire) < stamp.0 {
            self.write(Ticks(stamp.0 + ahead)).await?;
        }
        Ok(())
    }

    async fn write(&self, mark: Ticks) -> Result<()> {
        let keys = [Key::ClockMark.encode()];
        self.engine.transact(WriteMark { keys, mark: mark::encode_clock(mark) }).await?;
        self.mark.store(mark.0, Ordering::Release);
        Ok(())
    }

    /// Whether there is a mark at all.
    fn has_written(&self) -> bool {
        self.mark.load(Ordering::Acquire) > 0
    }
}

/// Writes a mark.
pub(super) struct WriteMark {
    pub(super) keys: [Bytes; 1],
    pub(super) mark: Bytes,
}

impl Transition for WriteMark {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// A few bytes in place of as many: without it no message could be deleted from a disk that is nearly full.
    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, _: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        writes.put(self.keys[0].clone(), self.mark.clone());
        Decision::Commit(())
    }
}

#[cfg(test)]
mod tests {
    use tavola_engine::MemoryEngine;

    use super::*;
    use crate::clock::hybrid::tests::TestTime;

    const NOW: i64 = 600_000_000 * Ticks::PER_SECOND;

    async fn stored(engine: &AnyEngine) -> Option<Ticks> {
        let stored = engine.get(&Key::ClockMark.encode()).await.unwrap();
        stored.map(|stored| mark::decode_clock(&stored).unwrap())
    }

    /// Also when the wall clock was set back by an hour between the two.
    #[tokio::test]
    async fn no_stamp_is_given_out_again_after_a_crash() {
        let engine = AnyEngine::Memory(MemoryEngine::new());
        let time = TestTime::new(NOW);
        let mut last = Ticks(0);
        for _ in 0..10 {
            let stamps = Stamps::open(engine.clone(), time.clone()).await.unwrap();
            for _ in 0..100 {
                let stamp = stamps.next().await.unwrap();
                assert!(stamp > last);
                assert!(stored(&engine).await.unwrap() >= stamp);
                last = stamp;
                time.advance(Ticks::PER_SECOND / 10);
            }
            time.step(-3600 * Ticks::PER_SECOND);
        }
    }

    /// A claim ends that much earlier for those who look at another clock.
    #[tokio::test]
    async fn crashes_in_a_row_do_not_add_up() {
        let engine = AnyEngine::Memory(MemoryEngine::new());
        let time = TestTime::new(NOW);
        for _ in 0..100 {
            let stamps = Stamps::open(engine.clone(), time.clone()).await.unwrap();
            for _ in 0..10 {
                let lead = stamps.next().await.unwrap().0 - time.wall().0;
                assert!(lead <= 2 * AHEAD, "{lead}");
                time.advance(Ticks::PER_SECOND / 10);
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn who_is_not_asked_writes_nothing_and_an_orderly_stop_leaves_no_lead() {
        let engine = AnyEngine::Memory(MemoryEngine::new());
        let time = TestTime::new(NOW);
        let stamps = Stamps::open(engine.clone(), time.clone()).await.unwrap();
        stamps.close().await.unwrap();
        assert_eq!(stored(&engine).await, None);
        let last = stamps.next().await.unwrap();
        assert_eq!(stored(&engine).await, Some(Ticks(last.0 + AHEAD)));
        stamps.close().await.unwrap();
        assert_eq!(stored(&engine).await, Some(last));
        let stamps = Stamps::open(engine, time).await.unwrap();
        assert_eq!(stamps.next().await.unwrap(), Ticks(last.0 + 1));
    }
}
