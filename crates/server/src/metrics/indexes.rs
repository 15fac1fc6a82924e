//! How queries use indexes. Which index it was stands in `TavolaIndexes`, not in labels: users name them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tavola_wire::explain::{How, Reason};

use crate::storage::index::Builds;

#[derive(Debug)]
pub(crate) struct IndexMetrics {
    queries: Family<UseLabels, Counter<u64, AtomicU64>>,
    fallbacks: Family<ReasonLabels, Counter<u64, AtomicU64>>,
    pub entries: Counter,
    pub orphans: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UseLabels {
    r#use: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

impl IndexMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let new = Self {
            queries: Family::default(),
            fallbacks: Family::default(),
            entries: Counter::default(),
            orphans: Counter::default(),
        };
        // All there are, from zero on: a rate is known only of a counter that was there before.
        for how in How::ALL {
            drop(new.queries.get_or_create(&UseLabels { r#use: how.name() }));
        }
        for reason in Reason::ALL {
            drop(new.fallbacks.get_or_create(&ReasonLabels { reason: reason.name() }));
        }
        let queries = "Pages whose entities indexes found";
        registry.register("index_queries", queries, new.queries.clone());
        let fallbacks = "Indexes that might have helped a page and were not used";
        registry.register("index_fallbacks", fallbacks, new.fallbacks.clone());
        let entries = "Index rows that queries passed";
        registry.register("index_entries_examined", entries, new.entries.clone());
        let orphans = "Index rows that queries found without their entity";
        registry.register("index_orphans", orphans, new.orphans.clone());
        new
    }

    pub(crate) fn note_use(&self, how: How) {
        self.queries.get_or_create(&UseLabels { r#use: how.name() }).inc();
    }

    pub(crate) fn note_fallback(&self, reason: Reason) {
        self.fallbacks.get_or_create(&ReasonLabels { reason: reason.name() }).inc();
    }
}

/// Adds how far builds have come, asked for when the figures are.
pub(crate) fn register_builds(registry: &mut Registry, builds: &Arc<Builds>) {
    registry.register_collector(Box::new(BuildCollector(builds.clone())));
}

#[derive(Debug)]
struct BuildCollector(Arc<Builds>);

impl Collector for BuildCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (builds, entities) = self.0.total();
        let builds = u64::try_from(builds).unwrap_or(u64::MAX);
        for (name, help, value) in [
            ("index_builds", "Indexes that are being built", builds),
            ("index_build_entities_done", "Entities that these builds have seen", entities.done),
            (
                "index_build_entities_expected",
                "Entities of the tables that these builds go through",
                entities.expected,
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}
