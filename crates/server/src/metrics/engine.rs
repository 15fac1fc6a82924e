//! The engine's own counters, shown as metrics when they are asked for.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tavola_engine::{AnyEngine, Histogram, Stats, Status, StoreFigures};

const NANOS_PER_SECOND: f64 = 1e9;

pub(crate) fn register(registry: &mut Registry, engine: &AnyEngine) {
    registry.register_collector(Box::new(EngineCollector { engine: engine.clone() }));
}

#[derive(Debug)]
struct EngineCollector {
    engine: AnyEngine,
}

impl Collector for EngineCollector {
    /// Of an engine in memory there are zeros: a dashboard shows that nothing happens, not that something is missing.
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let none = Stats::default();
        let stats = self.engine.stats().unwrap_or(&none);
        let figures = self.engine.figures().unwrap_or_default();
        let mut encoder = Encoder(encoder);
        encode_counters(&mut encoder, stats, &figures)?;
        encode_gauges(&mut encoder, stats, &figures, self.engine.fullness().takes_writes)?;
        let help = "Time of a durable commit: journal, sync, memory";
        encoder.histogram("engine_commit_seconds", help, &stats.commit_nanos, COMMITS)?;
        let help = "Time of a sync alone, tried once a second while there are commits";
        encoder.histogram("engine_sync_seconds", help, &stats.sync_nanos, COMMITS)?;
        let help = "Transitions in a durable commit";
        encoder.histogram("engine_commit_transitions", help, &stats.group_size, GROUPS)?;
        let (help, nanos) = ("Time of a step of compaction", &stats.compaction_nanos);
        encoder.histogram("engine_compaction_seconds", help, nanos, COMPACTIONS)
    }
}

fn encode_counters(
    encoder: &mut Encoder<'_>,
    stats: &Stats,
    figures: &StoreFigures,
) -> fmt::Result {
    for (name, help, value) in [
        ("engine_transitions", "Transitions answered", stats.transitions.load(Relaxed)),
        ("engine_writes", "Rows put or deleted", stats.writes.load(Relaxed)),
        ("engine_busy", "Requests refused: queue full", stats.busy_refusals.load(Relaxed)),
        ("engine_full", "Requests refused: disk nearly full", stats.full_refusals.load(Relaxed)),
        ("engine_panics", "Transitions that panicked", stats.panics.load(Relaxed)),
        (
            "engine_compaction_bytes",
            "Bytes that compaction wrote at most",
            stats.compaction_bytes.load(Relaxed),
        ),
        ("engine_cache_hits", "Blocks found in the cache", figures.cache_hits),
        ("engine_cache_misses", "Blocks read from files", figures.cache_misses),
    ] {
        encoder.counter(name, help, value)?;
    }
    Ok(())
}

fn encode_gauges(
    encoder: &mut Encoder<'_>,
    stats: &Stats,
    figures: &StoreFigures,
    takes_writes: bool,
) -> fmt::Result {
    for (name, help, value) in [
        (
            "engine_queue_depth",
            "Requests waiting for the committer",
            stats.queue_depth.load(Relaxed),
        ),
        (
            "engine_disk_free_bytes",
            "Room on the disk of the data folder",
            stats.disk_free_bytes.load(Relaxed),
        ),
        (
            "engine_disk_full",
            "1 while writes are refused for lack of room",
            u64::from(!takes_writes),
        ),
        ("engine_compacting", "1 while compaction runs", stats.compacting.load(Relaxed)),
        ("engine_table_bytes", "Tables on disk", figures.table_bytes),
        ("engine_journal_bytes", "Journals on disk", figures.journal_bytes),
        ("engine_memtable_bytes", "Written, and not yet flushed to tables", figures.memtable_bytes),
        (
            "engine_uncompacted_runs",
            "Flushed memtables that wait for compaction",
            figures.uncompacted_runs,
        ),
        ("engine_deletions", "Deletions in tables that scans pass", figures.deletions),
        ("engine_cache_bytes", "Memory of the block cache", figures.cache_bytes),
        ("engine_cache_bytes_max", "What the block cache may use", figures.cache_bytes_max),
    ] {
        encoder.gauge(name, help, value)?;
    }
    Ok(())
}

/// Which bounds of a histogram are shown, and in which unit.
#[derive(Clone, Copy)]
struct Shown {
    /// As they were recorded: powers of two.
    bounds: (u64, u64),
    /// How many of what was recorded make one of what is shown.
    scale: f64,
}

/// 16 us to 17 s.
const COMMITS: Shown = Shown { bounds: (1 << 14, 1 << 34), scale: NANOS_PER_SECOND };
/// 1 ms to 9 minutes.
const COMPACTIONS: Shown = Shown { bounds: (1 << 20, 1 << 39), scale: NANOS_PER_SECOND };
const GROUPS: Shown = Shown { bounds: (1, 1 << 12), scale: 1.0 };

/// Buckets between two bounds: the first has everything below it as well, and a last one, without a bound, the rest.
fn merged(buckets: impl Iterator<Item = (u64, u64)>, bounds: (u64, u64)) -> Vec<(f64, u64)> {
    let (mut below, mut above, mut shown) = (0, 0, Vec::new());
    for (bound, count) in buckets {
        if bound < bounds.0 {
            below += count;
        } else if bound > bounds.1 {
            above += count;
        } else {
            shown.push((bound as f64, count + std::mem::take(&mut below)));
        }
    }
    shown.push((f64::INFINITY, above));
    shown
}

/// Writes figures that are kept elsewhere.
struct Encoder<'a>(DescriptorEncoder<'a>);

impl Encoder<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let counter = ConstCounter::new(value);
        counter.encode(self.0.encode_descriptor(name, help, None, counter.metric_type())?)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        gauge.encode(self.0.encode_descriptor(name, help, None, gauge.metric_type())?)
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        histogram: &Histogram,
        shown: Shown,
    ) -> fmt::Result {
        let Shown { bounds, scale } = shown;
        let buckets = merged(histogram.buckets(), bounds);
        let buckets: Vec<_> =
            buckets.into_iter().map(|(bound, count)| (bound / scale, count)).collect();
        // Not what was recorded meanwhile: the buckets must add up.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let sum = histogram.sum() as f64 / scale;
        metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_beyond_the_bounds_are_counted_in_the_next() {
        let buckets = (0..6).map(|power| (1 << power, 1));
        let expected = [(4.0, 3), (8.0, 1), (16.0, 1), (f64::INFINITY, 1)];
        assert_eq!(merged(buckets, (4, 16)), expected);
    }
}
