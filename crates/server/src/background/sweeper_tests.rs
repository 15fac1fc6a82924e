//! When drops are swept, for tables and for a second kind.

use tavola_engine::conformance::commit;
use tavola_engine::{MemoryEngine, Write};
use tokio::sync::watch;

use super::*;
use crate::storage::layout::message::{MessageKeys, Place};
use crate::storage::layout::{EntityKeys, Kind, StoreId, TableId, sample};

/// A sweeper of a server that began ten minutes ago, and what it sweeps.
struct Setting {
    engine: AnyEngine,
    clock: Arc<Clock>,
    sweeper: Sweeper,
    stop: watch::Sender<bool>,
    stopped: Stop,
}

impl Setting {
    fn new() -> Self {
        let (engine, clock) = (AnyEngine::Memory(MemoryEngine::new()), Arc::<Clock>::default());
        let started = ago(&clock, 600);
        let sweeper = Sweeper::new(engine.clone(), clock.clone(), Arc::default(), started);
        let (stop, stopped) = watch::channel(false);
        Self { engine, clock, sweeper, stop, stopped: Stop(stopped) }
    }

    async fn round(&mut self) -> Next {
        self.sweeper.round(&self.stopped).await.unwrap()
    }

    async fn put(&self, rows: Vec<(Bytes, Bytes)>) {
        let puts = rows.into_iter().map(|(key, value)| Write::Put(key, value));
        commit(&self.engine, puts.collect()).await;
    }

    /// Something that was dropped that many seconds ago, with a row.
    async fn drop_ago(&self, kind: Kind, id: u64, seconds: i64) {
        let dropped = Dropped { id: ResourceId(id), kind, at: ago(&self.clock, seconds) };
        let row = (row_key(kind, id), Bytes::from_static(b"row"));
        self.put(vec![(dropped.key(), dropped.encode()), row]).await;
    }

    /// Whether the row is there, and whether that of the drop is.
    async fn is_there(&self, kind: Kind, id: u64) -> (bool, bool) {
        let dropped = Key::Dropped { id: ResourceId(id) }.encode();
        let (row, dropped) =
            (self.engine.get(&row_key(kind, id)).await, self.engine.get(&dropped).await);
        (row.unwrap().is_some(), dropped.unwrap().is_some())
    }
}

fn ago(clock: &Clock, seconds: i64) -> Ticks {
    Ticks(clock.now().0 - seconds * Ticks::PER_MINUTE / 60)
}

fn row_key(kind: Kind, id: u64) -> Bytes {
    match kind {
        Kind::Table => EntityKeys::of(TableId(id)).key("p", "r"),
        Kind::Queue => MessageKeys(StoreId(id)).header(Place::MIN),
        Kind::Sample => sample::row_key(ResourceId(id), "row"),
    }
}

#[tokio::test]
async fn a_new_drop_is_swept_at_once_and_kept_in_mind() {
    for kind in [Kind::Table, Kind::Queue, Kind::Sample] {
        let mut setting = Setting::new();
        setting.drop_ago(kind, 2, 0).await;
        setting.put(vec![(row_key(kind, 3), Bytes::from_static(b"another's"))]).await;
        assert_eq!(setting.round().await, Next::After(RECHECK));
        assert_eq!(setting.is_there(kind, 2).await, (false, true));
        assert_eq!(setting.is_there(kind, 3).await, (true, false));
    }
}

/// A request that found the table before it was dropped writes after the first sweep.
#[tokio::test]
async fn what_comes_late_is_swept_when_the_grace_has_passed() {
    for kind in [Kind::Table, Kind::Queue, Kind::Sample] {
        let mut setting = Setting::new();
        setting.drop_ago(kind, 2, 30).await;
        assert_eq!(setting.round().await, Next::After(RECHECK));
        setting.put(vec![(row_key(kind, 2), Bytes::from_static(b"late"))]).await;
        assert_eq!(setting.round().await, Next::After(RECHECK));
        assert_eq!(setting.is_there(kind, 2).await, (true, true));
        // As if half a minute had passed.
        setting.drop_ago(kind, 2, 61).await;
        assert_eq!(setting.round().await, Next::WhenAsked);
        assert_eq!(setting.is_there(kind, 2).await, (false, false));
    }
}

#[tokio::test]
async fn what_was_dropped_before_the_start_needs_no_grace() {
    let mut setting = Setting::new();
    setting.sweeper.started = setting.clock.now();
    setting.drop_ago(Kind::Table, 2, 1).await;
    assert_eq!(setting.round().await, Next::WhenAsked);
    assert_eq!(setting.is_there(Kind::Table, 2).await, (false, false));
}

#[tokio::test]
async fn more_drops_than_a_round_takes_are_all_swept() {
    let mut setting = Setting::new();
    let drops = DROPS_PER_ROUND_MAX as u64 + 1;
    for id in 1..=drops {
        setting.drop_ago(Kind::Table, id, 61).await;
    }
    assert_eq!(setting.round().await, Next::After(Duration::ZERO));
    assert_eq!(setting.is_there(Kind::Table, drops).await, (true, true));
    assert_eq!(setting.round().await, Next::WhenAsked);
    assert_eq!(setting.is_there(Kind::Table, drops).await, (false, false));
}

#[tokio::test]
async fn a_stop_leaves_the_rest_for_the_next_start() {
    let mut setting = Setting::new();
    setting.drop_ago(Kind::Table, 2, 61).await;
    setting.stop.send(true).unwrap();
    setting.round().await;
    assert_eq!(setting.is_there(Kind::Table, 2).await, (true, true));
}

/// A kind of a later version: nothing is known of its rows.
#[tokio::test]
async fn what_cannot_be_read_is_left_alone() {
    let mut setting = Setting::new();
    setting.drop_ago(Kind::Table, 2, 61).await;
    let unknown = [&[0; 8][..], b"?"].concat();
    setting.put(vec![(Key::Dropped { id: ResourceId(1) }.encode(), unknown.into())]).await;
    assert_eq!(setting.round().await, Next::WhenAsked);
    assert_eq!(setting.is_there(Kind::Table, 1).await, (false, true));
    assert_eq!(setting.is_there(Kind::Table, 2).await, (false, false));
}
