//! A panic on purpose, for the tests that show what a panic does. Debug builds alone have it, and only when the
//! environment asks for it when they start.

use std::sync::LazyLock;

use crate::request::head::RequestHead;

/// Set by the tests.
const VARIABLE: &str = "TAVOLA_TEST_FAULTS";
const HEADER: http::HeaderName = http::HeaderName::from_static("x-tavola-test-fault");

pub(crate) fn panic_if_asked(head: &RequestHead<'_>) {
    static IS_ALLOWED: LazyLock<bool> = LazyLock::new(|| std::env::var_os(VARIABLE).is_some());
    if *IS_ALLOWED && head.header(&HEADER) == Some("panic") {
        panic!("a fault that a test asked for");
    }
}
