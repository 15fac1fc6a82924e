//! The changes that one request makes, as one transition of the engine: all of them or none.

use bytes::Bytes;
use tavola_engine::{Decision, Engine, Transition, WriteSet};
use tavola_wire::{StorageError, Ticks};

use super::entity_change::{Applied, ChangeKind, EntityChange};
use crate::context::RequestContext;
use crate::error::engine_error;
use crate::storage::catalogue::Table;

/// Why a set of changes was refused: the change that could not be made.
#[derive(Debug)]
pub(crate) struct Refused {
    pub index: usize,
    pub error: StorageError,
}

/// Makes all changes of the set, or none.
///
/// The caller has seen to it that no entity appears twice.
pub(crate) async fn commit(
    context: &RequestContext<'_>,
    table: &Table,
    changes: Vec<EntityChange>,
) -> Result<Vec<Applied>, Refused> {
    let keys = changes
        .iter()
        .map(|change| table.keys().key(&change.partition_key, &change.row_key))
        .collect();
    let (now, body) = (context.stamp(), context.body.clone());
    let transition = ChangeSet { keys, changes, now, _body: body };
    let verdict = context.state.engine.transact(transition).await;
    verdict.map_err(|error| Refused { index: 0, error: engine_error(error) })?
}

struct ChangeSet {
    keys: Vec<Bytes>,
    changes: Vec<EntityChange>,
    now: Ticks,
    /// The request may be abandoned while its changes wait to be committed; they need memory all the same, and the
    /// body carries what is reserved for it.
    _body: Bytes,
}

impl Transition for ChangeSet {
    type Verdict = Result<Vec<Applied>, Refused>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn frees_space(&self) -> bool {
        self.changes.iter().all(|change| matches!(change.kind, ChangeKind::Delete(_)))
    }

    fn apply(
        &mut self,
        values: &[Option<Bytes>],
        writes: &mut WriteSet,
    ) -> Decision<Self::Verdict> {
        let mut all = Vec::with_capacity(self.changes.len());
        for (index, (change, stored)) in self.changes.iter().zip(values).enumerate() {
            match change.apply(stored.as_deref(), self.now) {
                Ok(applied) => all.push(applied),
                Err(error) => return Decision::Abort(Err(Refused { index, error })),
            }
        }
        for (key, applied) in self.keys.iter().zip(&all) {
            match &applied.entity {
                Some(entity) => writes.put(key.clone(), entity.clone()),
                None => writes.delete(key.clone()),
            }
        }
        Decision::Commit(Ok(all))
    }
}
