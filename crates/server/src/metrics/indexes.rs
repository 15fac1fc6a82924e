//! How queries use indexes. Which index it was stands in `TavolaIndexes`, not in labels: users name them.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tavola_wire::explain::{How, Reason};

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
