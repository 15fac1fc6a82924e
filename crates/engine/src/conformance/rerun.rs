//! An engine that runs every transition more than once: purity is checked, not promised.
//!
//! A distributed engine runs a transition again when another has changed what it read. Here each is run three times on
//! its way into the engine behind: on the values that there are, then, with its outcome thrown away, on none, as a first
//! attempt may find them, and again on those that there are. The last run counts, and must have come to the same as the
//! first; if not, it panics and so fails, loudly and alone.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use crate::{
    Decision, Engine, Fullness, Guard, KeyRange, Reader, Result, Status, Transition, Versioned,
    Visitor, WriteSet,
};

/// `E`, with every transition run more than once.
#[derive(Clone, Debug)]
pub struct Rerun<E> {
    engine: E,
}

impl<E: Engine> Rerun<E> {
    pub fn new(engine: E) -> Self {
        Self { engine }
    }

    /// The engine behind.
    pub fn inner(&self) -> &E {
        &self.engine
    }
}

impl<E: Engine> Reader for Rerun<E> {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.engine.get(key).await
    }

    async fn get_versioned(&self, key: &[u8]) -> Result<Versioned> {
        self.engine.get_versioned(key).await
    }

    async fn scan<V: Visitor>(&self, range: KeyRange, visitor: V) -> Result<V> {
        self.engine.scan(range, visitor).await
    }
}

impl<E: Engine> Engine for Rerun<E> {
    type Snapshot = E::Snapshot;

    async fn snapshot(&self) -> Result<E::Snapshot> {
        self.engine.snapshot().await
    }

    async fn transact<T: Transition>(&self, transition: T) -> Result<T::Verdict> {
        self.engine.transact(Repeated { transition }).await
    }

    async fn drop_range(&self, range: KeyRange) -> Result<()> {
        self.engine.drop_range(range).await
    }
}

impl<E: Engine> Status for Rerun<E> {
    fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    fn fullness(&self) -> Fullness {
        self.engine.fullness()
    }

    fn failed(&self) -> impl Future<Output = String> + Send {
        self.engine.failed()
    }

    fn raise_format(&self, format: u32) -> std::io::Result<()> {
        self.inner().raise_format(format)
    }

    fn close(&self) {
        self.engine.close();
    }
}

struct Repeated<T> {
    transition: T,
}

impl<T: Transition> Transition for Repeated<T> {
    type Verdict = T::Verdict;

    fn keys(&self) -> &[Bytes] {
        self.transition.keys()
    }

    fn guards(&self) -> &[Guard] {
        self.transition.guards()
    }

    fn frees_space(&self) -> bool {
        self.transition.frees_space()
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Self::Verdict> {
        let declared = (self.keys().to_vec(), self.guards().to_vec(), self.frees_space());
        let mut first_writes = WriteSet::default();
        // Copies: a transition that keeps what it was shown keeps something of its own.
        let copies: Vec<_> =
            values.iter().map(|value| value.as_deref().map(Bytes::copy_from_slice)).collect();
        let first = self.transition.apply(&copies, &mut first_writes);
        let absent = vec![None; values.len()];
        // Nobody would see it panic; what it comes to is not asked for either.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.transition.apply(&absent, &mut WriteSet::default());
        }));
        let last = self.transition.apply(values, writes);
        assert_eq!(
            (self.keys().to_vec(), self.guards().to_vec(), self.frees_space()),
            declared,
            "a transition declares something else after it was run"
        );
        assert_eq!(
            matches!(first, Decision::Commit(_)),
            matches!(last, Decision::Commit(_)),
            "a transition decides otherwise when it is run again"
        );
        assert_eq!(
            first_writes, *writes,
            "a transition writes something else when it is run again"
        );
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{Apply, put};
    use crate::{Error, MemoryEngine};

    async fn told<T: Transition>(transition: T) -> String {
        let engine = Rerun::new(MemoryEngine::new());
        put(&engine, "a", "1").await;
        let failed = engine.transact(transition).await.err().expect("a failure");
        // As before.
        assert_eq!(engine.get(b"a").await.unwrap(), Some("1".into()));
        let Error::Panicked(message) = failed else { panic!("{failed}") };
        message
    }

    #[tokio::test]
    async fn writes_that_change_from_run_to_run_are_found() {
        let mut runs = 0;
        let counting = Apply::new(["a"], move |_, writes| {
            runs += 1;
            writes.put("a".into(), runs.to_string().into());
            Decision::Commit(())
        });
        assert!(told(counting).await.contains("writes something else"));
        let mut keys = vec![Bytes::from("a")];
        let used_up = Apply::new(["a"], move |_, writes| {
            keys.drain(..).for_each(|key| writes.delete(key));
            Decision::Commit(())
        });
        assert!(told(used_up).await.contains("writes something else"));
    }

    #[tokio::test]
    async fn decisions_that_change_from_run_to_run_are_found() {
        let mut runs = 0;
        let changing = Apply::new(["a"], move |_, _| {
            runs += 1;
            if runs == 1 { Decision::Commit(()) } else { Decision::Abort(()) }
        });
        assert!(told(changing).await.contains("decides otherwise"));
    }

    /// What it remembers of rows that another attempt has seen.
    #[tokio::test]
    async fn a_memory_of_other_rows_is_found() {
        let mut was_absent = false;
        let remembering = Apply::new(["a"], move |values, writes| {
            was_absent |= values[0].is_none();
            writes.put("b".into(), was_absent.to_string().into());
            Decision::Commit(())
        });
        assert!(told(remembering).await.contains("writes something else"));
    }
}
