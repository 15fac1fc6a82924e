//! The changes that one request makes, as one transition of the engine: all of them or none.

use std::sync::Arc;

use bytes::Bytes;
use tavola_engine::{Decision, Engine, Transition, WriteSet};
use tavola_wire::{ErrorCode, StorageError, Ticks};

use super::entity_change::{Applied, ChangeKind, EntityChange};
use crate::context::RequestContext;
use crate::error::{Result, corrupt, engine_error};
use crate::net::memory_budget::{Reservation, UNCOUNTED_BYTES};
use crate::storage::catalogue::Table;
use crate::storage::index::Schema;
use crate::storage::index::row_changes::{Finished, RowChanges};
use crate::storage::layout::{IndexState, TableId, entity_key_of};

/// Bytes that the changes of one request may write into indexes, if there is memory for so many. Few get there: a hundred
/// merges of large entities, each of which is copied into several indexes, would keep all other writes waiting for seconds.
const INDEX_BYTES_MAX: usize = 64 * 1024 * 1024;

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
    let refused = |error| Refused { index: 0, error };
    if table.view.is_some() {
        return Err(refused(ErrorCode::InsufficientAccountPermissions.into()));
    }
    let keys: Vec<_> = changes
        .iter()
        .map(|change| table.keys().key(&change.partition_key, &change.row_key))
        .collect();
    let (now, body) = (context.stamp(), context.body.clone());
    let schema = table.schema.clone();
    // What can never be reserved beside the body is refused, and not tried again.
    let memory_max = context.state.memory_budget.message_max().saturating_sub(body.len());
    let index_bytes_max = INDEX_BYTES_MAX.min(memory_max).max(UNCOUNTED_BYTES);
    let copies = reserve_copies(context, &schema, index_bytes_max).map_err(refused)?;
    let first_key = keys.first().cloned();
    let transition = ChangeSet {
        keys,
        changes,
        now,
        table: table.id,
        schema,
        _body: body,
        copies,
        index_bytes_max,
    };
    let verdict = context.state.engine.transact(transition).await;
    let made = verdict.map_err(|error| refused(engine_error(error)))??;
    for (index, entries) in table.schema.indexes().iter().zip(made.entries) {
        match index.state {
            IndexState::Building => {
                // All of them are of one partition.
                let key = first_key.as_deref().map_or(&[][..], entity_key_of);
                index.statistics.note_changes_beside_build(key, made.rows, entries);
            }
            state if state.is_read() => index.statistics.note_changes(made.rows, entries),
            _ => {}
        }
    }
    Ok(made.applied)
}

/// Memory for what indexes write beside the entities themselves, before the changes wait to be made: an index that copies whole
/// entities writes the body once more. It may come to more, with merges and with copies of some properties, or to less; that
/// is known when the changes are made.
fn reserve_copies(
    context: &RequestContext<'_>,
    schema: &Schema,
    index_bytes_max: usize,
) -> Result<Reservation> {
    let mut reservation = context.state.memory_budget.reservation();
    let expected = context.body.len() * schema.whole_copies();
    reservation.grow_to(expected.min(index_bytes_max))?;
    Ok(reservation)
}

struct ChangeSet {
    keys: Vec<Bytes>,
    changes: Vec<EntityChange>,
    now: Ticks,
    table: TableId,
    /// Held until the changes are made or refused, whether or not anyone still waits for that: see
    /// [`generation`](crate::storage::index::generation).
    schema: Arc<Schema>,
    /// The request may be abandoned while its changes wait to be committed; they need memory all the same, and the
    /// body carries what is reserved for it.
    _body: Bytes,
    /// Memory for what is written into indexes.
    copies: Reservation,
    index_bytes_max: usize,
}

/// The changes that were made.
struct Made {
    applied: Vec<Applied>,
    /// Entities more than before.
    rows: i64,
    /// Rows more than before, of each index; empty if no row was changed.
    entries: Vec<i64>,
}

impl Transition for ChangeSet {
    type Verdict = Result<Made, Refused>;

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
        let mut made = Made { applied: all, rows: 0, entries: Vec::new() };
        if !self.schema.is_empty() {
            match self.change_index_rows(values, &made.applied, writes) {
                Ok(Finished::Written(entries)) => made.entries = entries,
                Ok(Finished::Read(keys)) => return Decision::Read(keys),
                Ok(Finished::Violation { change: index, index_name }) => {
                    let error = violation(&index_name);
                    return Decision::Abort(Err(Refused { index, error }));
                }
                Err(refused) => return Decision::Abort(Err(refused)),
            }
            let count = |is_there: bool| i64::from(is_there);
            let changed = values.iter().zip(&made.applied);
            made.rows = changed
                .map(|(stored, applied)| count(applied.entity.is_some()) - count(stored.is_some()))
                .sum();
        }
        for (key, applied) in self.keys.iter().zip(&made.applied) {
            match &applied.entity {
                Some(entity) => writes.put(key.clone(), entity.clone()),
                None => writes.delete(key.clone()),
            }
        }
        Decision::Commit(Ok(made))
    }
}

impl ChangeSet {
    fn change_index_rows(
        &mut self,
        values: &[Option<Bytes>],
        all: &[Applied],
        writes: &mut WriteSet,
    ) -> Result<Finished, Refused> {
        let (stored, read) = values.split_at(self.keys.len());
        let mut rows = RowChanges::new(&self.schema, self.table);
        for (index, (change, key)) in self.changes.iter().zip(&self.keys).enumerate() {
            let (old, new) = (stored[index].as_deref(), all[index].entity.as_deref());
            let merged = change.merged_properties().filter(|_| old.is_some());
            if merged.is_some_and(|merged| self.schema.has_same_rows_with(merged)) {
                continue;
            }
            let refused = |error| Refused { index, error };
            rows.add(index, entity_key_of(key), old, new)
                .map_err(|error| refused(corrupt(error)))?;
            if rows.value_bytes() > self.index_bytes_max {
                return Err(refused(too_much_for_indexes(self.index_bytes_max)));
            }
            // Made again, the changes have the memory already.
            self.copies.grow_to(rows.value_bytes()).map_err(refused)?;
        }
        Ok(rows.finish(read, writes))
    }
}

fn too_much_for_indexes(bytes_max: usize) -> StorageError {
    let detail = format!(
        "The indexes of the table would have to copy more than {} MiB for this request. Send fewer changes at a time.",
        bytes_max / (1024 * 1024)
    );
    StorageError::with_detail(ErrorCode::RequestBodyTooLarge, detail)
}

/// Says which index it is, and never which entity has the values: the caller may have no right to see that.
fn violation(index_name: &str) -> StorageError {
    let detail = format!("Another entity has the same values in the unique index {index_name}.");
    StorageError::with_detail(ErrorCode::UniqueIndexViolation, detail)
}
