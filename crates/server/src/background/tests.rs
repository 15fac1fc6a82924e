//! Rounds in time. The clock is tokio's and stands still until everyone waits for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::time::Instant;

use super::*;

/// A task that notes when its rounds begin, and answers by a script whose last line is repeated.
struct Scripted {
    script: Vec<fn() -> Result<Next>>,
    trigger: Arc<Notify>,
    begun: Arc<Mutex<Vec<Instant>>>,
}

impl Task for Scripted {
    const NAME: &'static str = "scripted";

    fn trigger(&self) -> Arc<Notify> {
        self.trigger.clone()
    }

    async fn round(&mut self, _: &Stop) -> Result<Next> {
        let mut begun = self.begun.lock().unwrap();
        let line = begun.len().min(self.script.len() - 1);
        begun.push(Instant::now());
        drop(begun);
        self.script[line]()
    }
}

/// A script that runs.
struct Play {
    stop: watch::Sender<bool>,
    trigger: Arc<Notify>,
    begun: Arc<Mutex<Vec<Instant>>>,
    started: Instant,
    background: Background,
}

impl Play {
    fn of(script: &[fn() -> Result<Next>]) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (trigger, begun) = (Arc::<Notify>::default(), Arc::<Mutex<Vec<_>>>::default());
        let mut background = Background::new(stopped);
        background.start(Scripted {
            script: script.to_vec(),
            trigger: trigger.clone(),
            begun: begun.clone(),
        });
        Self { stop, trigger, begun, started: Instant::now(), background }
    }

    /// When the rounds began, in seconds since the start.
    fn begun(&self) -> Vec<f64> {
        let begun = self.begun.lock().unwrap();
        begun.iter().map(|at| at.duration_since(self.started).as_secs_f64()).collect()
    }

    /// Waits until everything that is due within `seconds` has happened.
    async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

fn when_asked() -> Result<Next> {
    Ok(Next::WhenAsked)
}

fn each_minute() -> Result<Next> {
    Ok(Next::After(Duration::from_secs(60)))
}

fn failure() -> Result<Next> {
    Err(EngineError::Busy.into())
}

fn panics() -> Result<Next> {
    panic!("on purpose")
}

fn closed() -> Result<Next> {
    Err(EngineError::Closed.into())
}

/// That each pause is the expected one, or up to a tenth longer.
fn assert_pauses(begun: &[f64], expected: &[f64]) {
    let pauses: Vec<_> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), expected.len(), "{pauses:?}");
    for (pause, expected) in pauses.iter().zip(expected) {
        assert!((*expected..expected * 1.1 + 0.01).contains(pause), "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_without_a_time_waits_to_be_asked() {
    let play = Play::of(&[when_asked]);
    play.wait(100_000).await;
    assert_eq!(play.begun(), [0.0]);
    play.trigger.notify_one();
    play.wait(100_000).await;
    assert_eq!(play.begun(), [0.0, 100_000.0]);
}

#[tokio::test(start_paused = true)]
async fn rounds_come_at_their_time_and_a_trigger_brings_one_forward() {
    let play = Play::of(&[each_minute]);
    play.wait(200).await;
    assert_pauses(&play.begun(), &[60.0, 60.0, 60.0]);
    play.trigger.notify_one();
    play.wait(1).await;
    assert_eq!(play.begun()[4..], [200.0]);
}

#[tokio::test(start_paused = true)]
async fn failures_rest_longer_each_time_until_one_round_succeeds() {
    let play = Play::of(&[
        failure, failure, failure, failure, failure, failure, panics, failure, when_asked, failure,
    ]);
    let asking = {
        let trigger = play.trigger.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                trigger.notify_one();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
    };
    play.wait(260).await;
    asking.await.unwrap();
    // The triggers meanwhile are one when the round succeeds, and the next failure begins with a second again.
    assert_pauses(&play.begun()[..9], &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
    assert_pauses(&play.begun()[8..12], &[0.0, 1.0, 2.0]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_engine_ends_the_task() {
    let mut play = Play::of(&[closed]);
    play.background.ended().await;
    assert_eq!(play.begun(), [0.0]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_for_the_next_round() {
    for script in [when_asked, each_minute, failure] {
        let mut play = Play::of(&[script]);
        tokio::task::yield_now().await;
        play.stop.send(true).unwrap();
        play.background.ended().await;
        assert_eq!(play.begun(), [0.0]);
        assert_eq!(play.started.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_with_the_server_that_nobody_stopped() {
    let Play { stop, mut background, .. } = Play::of(&[each_minute]);
    drop(stop);
    background.ended().await;
}

/// A task of two long steps that asks in between.
struct LongRound {
    steps: Arc<AtomicUsize>,
}

impl Task for LongRound {
    const NAME: &'static str = "long round";

    fn trigger(&self) -> Arc<Notify> {
        Arc::default()
    }

    async fn round(&mut self, stop: &Stop) -> Result<Next> {
        while !stop.is_requested() {
            tokio::time::sleep(Duration::from_secs(10)).await;
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Next::WhenAsked)
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_the_step_that_is_under_way_come_to_its_end() {
    let (stop, stopped) = watch::channel(false);
    let steps = Arc::<AtomicUsize>::default();
    let mut background = Background::new(stopped);
    background.start(LongRound { steps: steps.clone() });
    tokio::time::sleep(Duration::from_secs(15)).await;
    stop.send(true).unwrap();
    // The wait may be given up and begun again.
    let waited = tokio::time::timeout(Duration::from_secs(1), background.ended()).await;
    assert!(waited.is_err());
    background.ended().await;
    assert_eq!(steps.load(Ordering::Relaxed), 2);
}

#[test]
fn the_rest_after_failures_is_bounded() {
    let rests: Vec<_> = (0..8).map(|before| backoff(before).as_secs()).collect();
    assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
}

proptest! {
    #[test]
    fn jitter_only_lengthens_and_by_a_tenth_at_most(millis in 0..100_000_000_u64, random: u64) {
        let pause = Duration::from_millis(millis);
        let spread = spread(pause, random);
        prop_assert!(pause <= spread && spread <= pause + pause.mul_f64(JITTER_SHARE));
    }
}

#[test]
fn jitter_differs() {
    let pause = Duration::from_secs(10);
    assert_eq!(spread(pause, 0), pause);
    assert_eq!(spread(pause, u64::MAX), Duration::from_secs(11));
}
