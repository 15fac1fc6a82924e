//! The suite that every engine passes.
//!
//! Each check takes a fresh, empty engine and panics where the contract of [`Engine`](crate::Engine) is broken.
//! [`conformance_tests!`](crate::conformance_tests) makes a test of each. An engine's own promises (durability,
//! queues, locks) are tested next to it. [`Rerun`] is an engine that passes it only if every transition is pure.

mod drops;
mod guards;
mod history;
mod more_reads;
mod owned_writes;
mod reads;
mod rerun;
mod support;
mod transactions;

pub use drops::*;
pub use guards::*;
pub use history::*;
pub use more_reads::*;
pub use owned_writes::*;
pub use reads::*;
pub use rerun::Rerun;
pub use support::{Apply, commit, put, random, range, rows};
pub use transactions::*;

/// Makes a test of every check; `$open` is an expression that opens a fresh engine and a guard that is kept until
/// the test ends: `(engine, guard)`. Each check runs as a task, as callers do in a server.
#[macro_export]
macro_rules! conformance_tests {
    ($open:expr) => {
        $crate::conformance_tests!(@each $open,
            get_finds_what_was_put,
            scan_is_ordered_and_bounded,
            a_long_scan_has_the_same_ends,
            scan_stops_where_the_visitor_breaks,
            empty_and_large_values_and_keys_survive,
            a_snapshot_stays_as_it_was,
            a_scan_sees_whole_transactions,
            point_reads_see_whole_transactions,
            a_panicking_visitor_fails_alone,
            an_abort_writes_nothing,
            a_transition_reads_what_was_answered_before,
            the_last_write_of_a_key_wins,
            concurrent_increments_lose_nothing,
            concurrent_transfers_keep_the_sum,
            a_panicking_transition_fails_alone,
            owned_writes_commit_with_the_rest,
            owned_writes_are_aborted_with_the_rest,
            owners_of_different_rows_never_collide,
            what_is_read_and_not_written_is_isolated,
            more_reads_follow_the_first_values,
            what_was_written_before_more_reads_is_forgotten,
            more_reads_see_what_was_written_at_the_same_time,
            who_asks_for_more_reads_twice_fails_alone,
            an_untracked_version_always_holds,
            a_guard_holds_while_its_row_stays,
            a_guard_fails_once_its_row_has_changed,
            a_failed_guard_writes_nothing,
            guards_are_checked_at_the_moment_of_the_commit,
            a_dropped_range_is_gone_and_usable_again,
            a_drop_lets_others_write,
            a_long_history_equals_a_model,
        );
    };
    (@each $open:expr, $($check:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let (engine, _guard) = $open;
                let check = $crate::conformance::$check(::std::sync::Arc::new(engine));
                tokio::spawn(check).await.expect("the check holds");
            }
        )*
    };
}
