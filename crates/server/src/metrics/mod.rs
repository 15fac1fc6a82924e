//! What is counted, from the first request on. Handles are made once; the hot path only adds to atomics.

pub(crate) mod engine;
pub(crate) mod indexes;
mod process;
pub(crate) mod queues;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tavola_wire::explain::KIND_INDEX;
use tavola_wire::table::filter::QueryKind;
use tavola_wire::{ErrorCode, RefusalReason, Service};

use self::indexes::IndexMetrics;
use crate::net::memory_budget::MemoryBudget;
use crate::operations::{OperationIndex, OperationSpec, PREFLIGHT, UNRECOGNIZED};

/// The counters of the service.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Names that every program has, without our prefix.
    process: Registry,
    services: Vec<ServiceMetrics>,
    pub connections: Gauge,
    pub connections_accepted: Counter,
    pub connections_refused: Counter,
    pub tls_handshakes_failed: Counter,
    pub connections_stalled: Counter,
    pub http2_requests_refused: Counter,
    pub request_bytes: Counter,
    pub response_bytes: Counter,
    pub rows_examined: Counter,
    pub rows_returned: Counter,
    pub indexes: IndexMetrics,
    pub panics: Counter,
    queries: [Counter; QUERY_KINDS.len()],
    errors: Family<ErrorLabels, Counter>,
    refusals: Family<RefusalLabels, Counter>,
}

/// A service and its operations.
type ServiceOperations = (Service, &'static [OperationSpec]);

/// The operations of one service.
#[derive(Debug)]
struct ServiceMetrics {
    service: Service,
    /// In the order of the service's table.
    operations: Vec<OperationMetrics>,
    preflight: OperationMetrics,
    unrecognized: OperationMetrics,
}

/// One operation's requests by status class, and their latency.
#[derive(Debug)]
struct OperationMetrics {
    by_class: [Counter<u64, AtomicU64>; 5],
    seconds: Histogram,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    service: &'static str,
    operation: &'static str,
    class: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OperationLabels {
    service: &'static str,
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ErrorLabels {
    service: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusalLabels {
    service: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueryKindLabels {
    kind: &'static str,
}

/// Those of plans, and the one of pages that an index found.
const QUERY_KINDS: [&str; 5] = [
    QueryKind::Point.as_str(),
    QueryKind::Range.as_str(),
    QueryKind::PartitionScan.as_str(),
    QueryKind::TableScan.as_str(),
    KIND_INDEX,
];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// 50 us doubled 16 times: up to 1.6 s, and then infinity.
fn latency_buckets() -> impl Iterator<Item = f64> {
    exponential_buckets(50e-6, 2.0, 16)
}

impl Metrics {
    /// For these services and their operations.
    pub(crate) fn new(services: &[ServiceOperations], memory_budget: &Arc<MemoryBudget>) -> Self {
        let mut registry = Registry::with_prefix("tavola");
        let by_service = register_services(&mut registry, services);
        let errors = Family::<ErrorLabels, Counter>::default();
        registry.register("errors", "Requests that failed, by code", errors.clone());
        let refusals = register_refusals(&mut registry, services);
        let queries = register_queries(&mut registry);
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The program that answers", Info::new(version.to_vec()));
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        registry.register_collector(Box::new(MessageMemoryBytes(memory_budget.clone())));
        let indexes = IndexMetrics::register(&mut registry);
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        Self {
            services: by_service,
            errors,
            refusals,
            queries,
            connections,
            connections_accepted: counter("connections_accepted", "Connections accepted"),
            tls_handshakes_failed: counter(
                "tls_handshakes_failed",
                "TLS handshakes that failed or took too long",
            ),
            connections_refused: counter("connections_refused", "Connections refused: too many"),
            connections_stalled: counter(
                "connections_stalled",
                "Connections cut off: replies not taken in time",
            ),
            http2_requests_refused: counter(
                "http2_requests_refused",
                "HTTP/2 requests refused: too many",
            ),
            request_bytes: counter("request_body_bytes", "Bytes of request bodies"),
            response_bytes: counter("response_body_bytes", "Bytes of response bodies"),
            rows_examined: counter("rows_examined", "Entities that queries looked at"),
            rows_returned: counter("rows_returned", "Entities that queries returned"),
            indexes,
            panics: counter("panics", "Requests that ended in a panic and were answered 500"),
            registry,
            process: Registry::default(),
        }
    }

    /// Adds what `register` registers, such as the engine's own figures.
    pub(crate) fn register(&mut self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry);
    }

    /// Adds what the operating system says of this process, and when it began (seconds since 1970).
    pub(crate) fn register_process(&mut self, started: i64) {
        process::register(&mut self.process, started);
    }

    pub(crate) fn answered(
        &self,
        service: Service,
        operation: OperationIndex,
        status: u16,
        elapsed: Duration,
    ) {
        let Some(of_service) = self.services.iter().find(|of| of.service == service) else {
            return;
        };
        let metrics = match operation {
            OperationIndex::Of(index) => &of_service.operations[index],
            OperationIndex::Preflight => &of_service.preflight,
            OperationIndex::Unrecognized => &of_service.unrecognized,
        };
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        metrics.by_class[class].inc();
        metrics.seconds.observe(elapsed.as_secs_f64());
    }

    /// Counts a failure by what clients and operators call it.
    pub(crate) fn failed(&self, service: Service, code: ErrorCode, refusal: Option<RefusalReason>) {
        let service = service.name();
        self.errors.get_or_create(&ErrorLabels { service, code: code.as_str() }).inc();
        if let Some(reason) = refusal {
            let labels = RefusalLabels { service, reason: reason.as_str() };
            self.refusals.get_or_create(&labels).inc();
        }
    }

    /// Counts a query by its kind, as `x-tavola-query-kind` calls it.
    pub(crate) fn query_kind(&self, kind: &str) {
        if let Some(at) = QUERY_KINDS.iter().position(|known| *known == kind) {
            self.queries[at].inc();
        }
    }

    /// Everything in the text format of Prometheus (OpenMetrics).
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        encode_registry(&mut text, &self.process).expect("a string takes every write");
        encode(&mut text, &self.registry).expect("a string takes every write");
        text
    }
}

fn register_services(
    registry: &mut Registry,
    services: &[ServiceOperations],
) -> Vec<ServiceMetrics> {
    let requests = Family::<RequestLabels, Counter>::default();
    registry.register("requests", "Requests answered", requests.clone());
    let seconds = Family::<OperationLabels, Histogram>::new_with_constructor(|| {
        Histogram::new(latency_buckets())
    });
    registry.register("request_seconds", "Time to answer", seconds.clone());
    let of_operation = |service: &'static str, operation| OperationMetrics {
        by_class: CLASSES.map(|class| {
            let labels = RequestLabels { service, operation, class };
            requests.get_or_create(&labels).clone()
        }),
        seconds: seconds.get_or_create(&OperationLabels { service, operation }).clone(),
    };
    let of_service = |(service, specs): &ServiceOperations| ServiceMetrics {
        service: *service,
        operations: specs.iter().map(|spec| of_operation(service.name(), spec.name)).collect(),
        preflight: of_operation(service.name(), PREFLIGHT),
        unrecognized: of_operation(service.name(), UNRECOGNIZED),
    };
    services.iter().map(of_service).collect()
}

fn register_refusals(
    registry: &mut Registry,
    services: &[ServiceOperations],
) -> Family<RefusalLabels, Counter> {
    let refusals = Family::<RefusalLabels, Counter>::default();
    registry.register("refusals", "Requests refused, by reason", refusals.clone());
    // Made before they are needed: an alert on something new needs a zero to rise from.
    for (service, _) in services {
        for reason in RefusalReason::ALL {
            let labels = RefusalLabels { service: service.name(), reason: reason.as_str() };
            drop(refusals.get_or_create(&labels));
        }
    }
    refusals
}

fn register_queries(registry: &mut Registry) -> [Counter; QUERY_KINDS.len()] {
    let queries = Family::<QueryKindLabels, Counter>::default();
    registry.register("queries", "Queries of entities, by kind", queries.clone());
    QUERY_KINDS.map(|kind| queries.get_or_create(&QueryKindLabels { kind }).clone())
}

/// What requests and replies hold, asked for when the figures are.
#[derive(Debug)]
struct MessageMemoryBytes(Arc<MemoryBudget>);

impl Collector for MessageMemoryBytes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let bytes = ConstGauge::new(i64::try_from(self.0.used()).unwrap_or(i64::MAX));
        let help = "Bytes of requests and replies, on their way and in the making";
        let metric =
            encoder.encode_descriptor("message_memory_bytes", help, None, bytes.metric_type())?;
        bytes.encode(metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Effect;
    use crate::request::body::BodyLimit;

    const SPECS: &[OperationSpec] = &[
        OperationSpec { name: "Read", effect: Effect::Read, body: BodyLimit::Whole(0) },
        OperationSpec { name: "Write", effect: Effect::Write, body: BodyLimit::Whole(0) },
    ];

    #[test]
    fn answers_are_counted_by_service_operation_and_class() {
        let services = [(Service::Table, SPECS), (Service::Queue, SPECS)];
        let metrics = Metrics::new(&services, &Arc::new(MemoryBudget::new(0)));
        let answered = |service, operation, status| {
            metrics.answered(service, operation, status, Duration::from_millis(1));
        };
        answered(Service::Table, OperationIndex::Of(1), 200);
        answered(Service::Table, OperationIndex::Of(1), 404);
        answered(Service::Table, OperationIndex::Of(1), 404);
        answered(Service::Queue, OperationIndex::Of(1), 404);
        answered(Service::Queue, OperationIndex::Unrecognized, 400);
        let text = metrics.encode();
        for line in [
            "tavola_requests_total{service=\"table\",operation=\"Write\",class=\"2xx\"} 1",
            "tavola_requests_total{service=\"table\",operation=\"Write\",class=\"4xx\"} 2",
            "tavola_requests_total{service=\"queue\",operation=\"Write\",class=\"4xx\"} 1",
            "tavola_requests_total{service=\"queue\",operation=\"Unrecognized\",class=\"4xx\"} 1",
            "tavola_request_seconds_count{service=\"table\",operation=\"Write\"} 3",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
