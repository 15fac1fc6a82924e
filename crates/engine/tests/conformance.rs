//! Every engine passes the same suite.

mod memory {
    tavola_engine::conformance_tests!((tavola_engine::MemoryEngine::new(), ()));
}

mod embedded {
    use tavola_engine::{EmbeddedEngine, EmbeddedOptions};

    fn open() -> (EmbeddedEngine, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let engine = EmbeddedEngine::open(folder.path(), EmbeddedOptions::default()).unwrap();
        (engine, folder)
    }

    tavola_engine::conformance_tests!(open());
}

/// With a memtable this small, flushes and compactions run all the time under the suite.
mod embedded_under_compaction {
    use tavola_engine::{EmbeddedEngine, EmbeddedOptions};

    fn open() -> (EmbeddedEngine, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions { memtable_bytes: 16 * 1024, ..EmbeddedOptions::default() };
        let engine = EmbeddedEngine::open(folder.path(), options).unwrap();
        (engine, folder)
    }

    tavola_engine::conformance_tests!(open());
}

mod any {
    use tavola_engine::{AnyEngine, MemoryEngine};

    tavola_engine::conformance_tests!((AnyEngine::Memory(MemoryEngine::new()), ()));
}

/// Every transition of the suite is pure, and no engine minds that it is run more than once.
mod memory_rerun {
    use tavola_engine::MemoryEngine;
    use tavola_engine::conformance::Rerun;

    tavola_engine::conformance_tests!((Rerun::new(MemoryEngine::new()), ()));
}

mod embedded_rerun {
    use tavola_engine::conformance::Rerun;
    use tavola_engine::{EmbeddedEngine, EmbeddedOptions};

    fn open() -> (Rerun<EmbeddedEngine>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let engine = EmbeddedEngine::open(folder.path(), EmbeddedOptions::default()).unwrap();
        (Rerun::new(engine), folder)
    }

    tavola_engine::conformance_tests!(open());
}
