//! How the work on a message ends.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// How the work on a message ended.
///
/// ```
/// use tavola_client::patterns::queue_worker::JobResult;
///
/// async fn pack(order: &str) -> JobResult {
///     let number: u32 = order.parse()?;
///     println!("packed {number}");
///     Ok(())
/// }
/// ```
pub type JobResult = Result<(), JobError>;

/// Why work failed, and what becomes of the message. Every error of std becomes one that is to be tried again, so that `?`
/// works; a boxed one, or one of `anyhow`, does with `.map_err(JobError::retry)?`.
///
/// ```
/// use std::time::Duration;
/// use tavola_client::patterns::queue_worker::{JobError, JobResult};
///
/// fn pack(order: &str) -> JobResult {
///     // A message that nobody will ever understand: to the dead letters at once.
///     let number: u32 = order.parse().map_err(|error| JobError::poison(error))?;
///     if number > 1000 {
///         // Not before tomorrow.
///         let closed = std::io::Error::other("the store is closed");
///         return Err(JobError::retry_after(Duration::from_secs(24 * 3600), closed));
///     }
///     if number == 1000 {
///         return Err(JobError::retry("no boxes left"));
///     }
///     Err(std::io::Error::other("no lorry"))?
/// }
///
/// assert!(pack("x").unwrap_err().is_poison());
/// assert_eq!(pack("1000").unwrap_err().to_string(), "no boxes left");
/// assert_eq!(pack("17").unwrap_err().to_string(), "no lorry");
/// ```
pub struct JobError {
    fate: Fate,
    source: Box<dyn StdError + Send + Sync>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Retry(Option<Duration>),
    Poison,
}

impl JobError {
    fn new(fate: Fate, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { fate, source: error.into() }
    }

    /// A failure to try again after the pause of the worker: for what is no error of std, such as a text or a boxed error.
    pub fn retry(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Fate::Retry(None), error)
    }

    /// A failure to try again after this pause, instead of that of the worker. A message that ends by itself before is
    /// tried sooner.
    pub fn retry_after(pause: Duration, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Fate::Retry(Some(pause)), error)
    }

    /// A failure that trying again does not help: the message goes to the dead letters at once.
    pub fn poison(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Fate::Poison, error)
    }

    /// Whether trying again does not help.
    pub fn is_poison(&self) -> bool {
        self.fate == Fate::Poison
    }

    /// The same failure, with what was tried before its words.
    pub(crate) fn in_step(self, step: &str) -> Self {
        Self::new(self.fate, format!("step {step}: {}", self.source))
    }

    pub(super) fn panicked() -> Self {
        Self::retry("the work panicked")
    }

    pub(super) fn fate(&self) -> Fate {
        self.fate
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

/// It is no error of std itself, so that every other can become one.
impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.fate, self.source)
    }
}
