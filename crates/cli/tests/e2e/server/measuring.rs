//! The load driver against the real binary, for a moment: that each workload gets what it asks for, and that a soak
//! finds everything as it was acknowledged. How long anything takes is not looked at.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum as _;
use tavola_bench::commands::run::Plan;
use tavola_bench::measure::Contender;
use tavola_bench::soak::{SoakOptions, soak};
use tavola_bench::target::Target;
use tavola_bench::workload::Workload;

use crate::support::{Launch, Server};

fn server() -> Arc<Server> {
    Arc::new(Launch::new().start())
}

#[test]
fn every_workload_gets_what_it_asks_for() {
    let server = server();
    // Without its process, nothing waits for it to rest between two workloads.
    let contender = Contender::new(Target::new("tavola", server.address()), None, 6_000);
    let plan = Plan {
        workloads: Workload::value_variants().to_vec(),
        connections: 4,
        round: Duration::from_millis(150),
        rounds: 1,
        settle: Duration::ZERO,
    };
    let rows = plan.run(std::slice::from_ref(&contender), &mut |_| Ok(())).unwrap();
    assert_eq!(rows.len(), Workload::value_variants().len());
    for row in rows {
        assert!(row.operations > 0, "{row:?}");
        assert!(row.failures.is_empty(), "{row:?}");
    }
}

#[test]
fn a_short_soak_passes() {
    let server = server();
    let options = SoakOptions {
        target: Target::new("tavola", server.address()),
        pid: server.pid(),
        data: server.folder().to_owned(),
        minutes: 0.04,
        connections: 16,
        entities: 1_000,
        seed: 1,
        json: None,
    };
    soak(&options).unwrap();
}
