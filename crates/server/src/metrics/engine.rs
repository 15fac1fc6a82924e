//! The engine's own counters, shown as metrics when they are asked for.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tavola_engine::AnyEngine;

pub(crate) fn register(registry: &mut Registry, engine: &AnyEngine) {
    registry.register_collector(Box::new(EngineCollector { engine: engine.clone() }));
}

#[derive(Debug)]
struct EngineCollector {
    engine: AnyEngine,
}

impl Collector for EngineCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(stats) = self.engine.stats() else { return Ok(()) };
        for (name, help, value) in [
            ("engine_transitions", "Transitions answered", stats.transitions.load(Relaxed)),
            ("engine_writes", "Rows put or deleted", stats.writes.load(Relaxed)),
            ("engine_commits", "Durable commits (groups)", stats.group_size.count()),
            ("engine_committed", "Transitions in durable commits", stats.group_size.sum()),
            ("engine_commit_nanoseconds", "Time spent committing", stats.commit_nanos.sum()),
            ("engine_busy", "Requests refused: queue full", stats.busy_refusals.load(Relaxed)),
            (
                "engine_full",
                "Requests refused: disk nearly full",
                stats.full_refusals.load(Relaxed),
            ),
            ("engine_panics", "Transitions that panicked", stats.panics.load(Relaxed)),
        ] {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        for (name, help, value) in [
            ("engine_queue_depth", "Requests waiting for the committer", &stats.queue_depth),
            (
                "engine_disk_free_bytes",
                "Room on the disk of the data folder",
                &stats.disk_free_bytes,
            ),
            ("engine_disk_full", "1 while writes are refused for lack of room", &stats.disk_full),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value.load(Relaxed)).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}
