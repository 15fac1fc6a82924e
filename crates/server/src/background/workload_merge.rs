//! Brings together, now and then, what the threads have counted of the workload.
//!
//! Reading the figures does the same; this sees to it that what nobody reads fades all the same, and that no thread's
//! sketch grows old. Ranges that were too wide are forgotten here as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::{Next, Stop, Task};
use crate::storage::Result;
use crate::workload::Workload;

const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct WorkloadMerge {
    workload: Arc<Workload>,
    /// Nobody asks for it.
    trigger: Arc<Notify>,
}

impl WorkloadMerge {
    pub(crate) fn new(workload: Arc<Workload>) -> Self {
        Self { workload, trigger: Arc::default() }
    }
}

impl Task for WorkloadMerge {
    const NAME: &'static str = "workload";

    fn trigger(&self) -> Arc<Notify> {
        self.trigger.clone()
    }

    async fn round(&mut self, _: &Stop) -> Result<Next> {
        self.workload.hot_partitions.merge(Instant::now());
        self.workload.wide_ranges.forget_old();
        Ok(Next::After(PAUSE))
    }
}
