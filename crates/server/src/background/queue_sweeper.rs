//! Counts the messages of queues after a start, and removes those that have expired.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::{Next, Stop, Task};
use crate::storage::Result;
use crate::storage::features::{Feature, Features};
use crate::storage::queues::Queues;

/// How often queues are looked at. Each is read as a whole only if something in it has expired for long enough.
const EVERY: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct QueueSweeper {
    queues: Arc<Queues>,
    features: Arc<Features>,
    trigger: Arc<Notify>,
}

impl QueueSweeper {
    pub(crate) fn new(queues: Arc<Queues>, features: Arc<Features>) -> Self {
        Self { queues, features, trigger: Arc::default() }
    }
}

impl Task for QueueSweeper {
    const NAME: &'static str = "sweeping expired messages";

    fn trigger(&self) -> Arc<Notify> {
        self.trigger.clone()
    }

    async fn round(&mut self, stop: &Stop) -> Result<Next> {
        let is_done = !self.features.is_in_use(Feature::Queue)
            || self.queues.tidy(|| stop.is_requested()).await?;
        Ok(Next::After(if is_done { EVERY } else { Duration::ZERO }))
    }
}
