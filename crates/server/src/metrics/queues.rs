//! How full the queues are, shown as metrics when they are asked for. No names: they are a user's, and without a bound.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tavola_wire::Ticks;

use crate::clock::Clock;
use crate::storage::queues::Queues;

pub(crate) fn register(registry: &mut Registry, queues: &Arc<Queues>, clock: &Arc<Clock>) {
    let (queues, clock) = (queues.clone(), clock.clone());
    registry.register_collector(Box::new(QueueCollector { queues, clock }));
}

#[derive(Debug)]
struct QueueCollector {
    queues: Arc<Queues>,
    clock: Arc<Clock>,
}

impl Collector for QueueCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let depth = self.queues.depth();
        let age = depth
            .oldest
            .map_or(0, |oldest| ((self.clock.now().0 - oldest.0) / Ticks::PER_SECOND).max(0));
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for (name, help, value) in [
            ("queue_messages", "Messages of all queues, hidden ones too", number(depth.messages)),
            (
                "queue_messages_max",
                "Messages of the queue that has most",
                number(depth.messages_max),
            ),
            (
                "queue_oldest_message_seconds",
                "How long the message that has waited longest could have been got",
                age,
            ),
        ] {
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}
