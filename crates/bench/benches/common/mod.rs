//! How long a micro-benchmark runs: long enough to tell a tenth, short enough that all of them take a minute.

use std::time::Duration;

use criterion::Criterion;

pub(crate) fn quick() -> Criterion {
    Criterion::default()
        .without_plots()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}
