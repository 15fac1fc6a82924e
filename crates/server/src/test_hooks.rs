//! What tests ask of a running server and nobody else can: only builds with the feature `test-hooks` have it, as
//! `cargo test` makes them, and only when the environment asks for it when they start.

use std::sync::LazyLock;

use tavola_engine::conformance::Rerun;
use tavola_engine::{AnyEngine, EmbeddedEngine};

use crate::request::head::RequestHead;

/// Lets requests with [`FAULT`] panic, for the tests that show what a panic does.
const FAULTS_VARIABLE: &str = "TAVOLA_TEST_FAULTS";
const FAULT: http::HeaderName = http::HeaderName::from_static("x-tavola-test-fault");

/// Runs every transition more than once, for the tests that show that they are pure.
const RERUN_VARIABLE: &str = "TAVOLA_TEST_RERUN";

pub(crate) fn panic_if_asked(head: &RequestHead<'_>) {
    static IS_ALLOWED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os(FAULTS_VARIABLE).is_some());
    if *IS_ALLOWED && head.header(&FAULT) == Some("panic") {
        panic!("a fault that a test asked for");
    }
}

pub(crate) fn any_engine(engine: EmbeddedEngine) -> AnyEngine {
    if std::env::var_os(RERUN_VARIABLE).is_none() {
        return AnyEngine::Embedded(engine);
    }
    tracing::info!("every transition is run more than once");
    AnyEngine::Rerun(Rerun::new(engine))
}
