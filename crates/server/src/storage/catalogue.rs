//! Which tables there are: the catalogue rows, and a cache of them that every request asks.
//!
//! The cache may be behind for the length of a race, never for longer. That is safe because ids are never
//! reused: a write that raced a drop lands in a dead range, which the sweeper clears.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use tavola_engine::{AnyEngine, Decision, Engine, Reader, Transition, WriteSet};
use tavola_wire::table::names::TableName;
use tavola_wire::xml::acl::{self, SignedIdentifier};
use tavola_wire::{ErrorCode, Ticks};

use crate::background::sweeper::SweepSignal;
use crate::error::{Result, corrupt, engine_error};
use crate::storage::detached::detached;
use crate::storage::layout::{self, AccountId, EntityKeys, TableId, TableRecord};

/// A table as requests see it.
#[derive(Debug)]
pub(crate) struct Table {
    pub id: TableId,
    /// In the case it was created with.
    pub name: String,
    pub policies: Vec<SignedIdentifier>,
}

impl Table {
    fn from_record(record: &TableRecord) -> Result<Self> {
        let policies = acl::parse(&record.policies)
            .map_err(|_| corrupt(format!("the access policies of table {}", record.name)))?;
        Ok(Self { id: record.id, name: record.name.clone(), policies })
    }

    pub(crate) fn keys(&self) -> EntityKeys {
        EntityKeys::of(self.id)
    }
}

#[derive(Debug)]
pub(crate) struct Catalogue {
    engine: AnyEngine,
    cache: RwLock<Cache>,
    /// Told of every drop.
    pub sweep: SweepSignal,
}

/// Tables by account and lower-case name.
#[derive(Debug, Default)]
struct Cache {
    tables: BTreeMap<AccountId, HashMap<Box<str>, Arc<Table>>>,
    /// Counts the changes, so that what was read before one is not kept after it.
    changes: u64,
}

impl Catalogue {
    pub(crate) fn new(engine: AnyEngine) -> Self {
        Self { engine, cache: RwLock::default(), sweep: SweepSignal::default() }
    }

    /// The table of that name.
    ///
    /// # Errors
    /// 404 `TableNotFound`.
    pub(crate) async fn find(
        &self,
        account: AccountId,
        name: &TableName<'_>,
    ) -> Result<Arc<Table>> {
        let lower = name.lower();
        let changes = {
            let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(table) = cache.tables.get(&account).and_then(|t| t.get(lower.as_ref())) {
                return Ok(table.clone());
            }
            cache.changes
        };
        let stored = self.engine.get(&layout::table_key(account, &lower)).await;
        let Some(stored) = stored.map_err(engine_error)? else {
            return Err(ErrorCode::TableNotFound.into());
        };
        let table = Arc::new(Table::from_record(&decode(&stored)?)?);
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        // A drop since the read must not be undone by remembering what was there before it.
        if cache.changes == changes {
            cache.tables.entry(account).or_default().insert(lower.into(), table.clone());
        }
        Ok(table)
    }

    /// Creates a table.
    ///
    /// # Errors
    /// 409 `TableAlreadyExists`, also when the names differ by case alone.
    pub(crate) async fn create(
        self: &Arc<Self>,
        account: AccountId,
        name: &TableName<'_>,
        now: Ticks,
    ) -> Result<()> {
        let (catalogue, name) = (Arc::clone(self), name.clone().into_owned());
        detached(async move {
            let transition = CreateTable {
                keys: [layout::sequence_key(), layout::table_key(account, &name.lower())],
                name: name.as_str().to_owned(),
                now,
            };
            catalogue.engine.transact(transition).await.map_err(engine_error)??;
            // Whoever dropped the table of this name before may not have come to forget it yet.
            catalogue.forget(account, &name);
            Ok(())
        })
        .await
    }

    /// Drops a table: its name is free at once, its rows are swept later.
    ///
    /// # Errors
    /// 404 `ResourceNotFound`.
    pub(crate) async fn drop_table(
        self: &Arc<Self>,
        account: AccountId,
        name: &TableName<'_>,
        now: Ticks,
    ) -> Result<()> {
        let (catalogue, name) = (Arc::clone(self), name.clone().into_owned());
        detached(async move {
            let dropped = catalogue.drop_stored(account, &name, now).await;
            catalogue.forget(account, &name);
            catalogue.sweep.table_dropped();
            dropped
        })
        .await
    }

    async fn drop_stored(
        &self,
        account: AccountId,
        name: &TableName<'_>,
        now: Ticks,
    ) -> Result<()> {
        // The marker's key holds the id, and a transition declares its keys beforehand: read the id, and
        // start again in the unlikely case that the name meanwhile stands for another table.
        loop {
            let key = layout::table_key(account, &name.lower());
            let stored = self.engine.get(&key).await.map_err(engine_error)?;
            let Some(stored) = stored else { return Err(ErrorCode::ResourceNotFound.into()) };
            let id = decode(&stored)?.id;
            let transition = DropTable { keys: [key, layout::dropped_key(id)], id, now };
            match self.engine.transact(transition).await.map_err(engine_error)? {
                Dropped::Yes => return Ok(()),
                Dropped::NotFound => return Err(ErrorCode::ResourceNotFound.into()),
                Dropped::Replaced => {}
            }
        }
    }

    /// Replaces the access policies of a table.
    ///
    /// # Errors
    /// 404 `TableNotFound`.
    pub(crate) async fn set_policies(
        self: &Arc<Self>,
        account: AccountId,
        name: &TableName<'_>,
        policies: &[SignedIdentifier],
    ) -> Result<()> {
        let policies = if policies.is_empty() { Bytes::new() } else { acl::write(policies).into() };
        let (catalogue, name) = (Arc::clone(self), name.clone().into_owned());
        detached(async move {
            let keys = [layout::table_key(account, &name.lower())];
            let verdict = catalogue.engine.transact(SetPolicies { keys, policies }).await;
            catalogue.forget(account, &name);
            verdict.map_err(engine_error)?
        })
        .await
    }

    fn forget(&self, account: AccountId, name: &TableName<'_>) {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        cache.changes += 1;
        if let Some(tables) = cache.tables.get_mut(&account) {
            tables.remove(name.lower().as_ref());
        }
    }
}

fn decode(stored: &[u8]) -> Result<TableRecord> {
    TableRecord::decode(stored).ok_or_else(|| corrupt("a catalogue row"))
}

struct CreateTable {
    keys: [Bytes; 2],
    name: String,
    now: Ticks,
}

impl Transition for CreateTable {
    type Verdict = Result<()>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<Result<()>> {
        if values[1].is_some() {
            return Decision::Abort(Err(ErrorCode::TableAlreadyExists.into()));
        }
        let Some(id) = next_id(values[0].as_deref()) else {
            return Decision::Abort(Err(corrupt("the id sequence")));
        };
        let record = TableRecord {
            id: TableId(id),
            created: self.now,
            name: self.name.clone(),
            policies: Bytes::new(),
        };
        writes.put(self.keys[0].clone(), layout::encode_id(id + 1));
        writes.put(self.keys[1].clone(), record.encode());
        Decision::Commit(Ok(()))
    }
}

/// The next unused id; the first is 1. `None` if the stored one is not an id.
pub(crate) fn next_id(stored: Option<&[u8]>) -> Option<u64> {
    stored.map_or(Some(1), layout::decode_id)
}

struct DropTable {
    keys: [Bytes; 2],
    id: TableId,
    now: Ticks,
}

enum Dropped {
    Yes,
    NotFound,
    /// The name stands for another table than when it was read.
    Replaced,
}

impl Transition for DropTable {
    type Verdict = Dropped;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    /// Its rows go later, and take more than the marker.
    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<Dropped> {
        let Some(stored) = &values[0] else { return Decision::Abort(Dropped::NotFound) };
        if TableRecord::decode(stored).is_none_or(|record| record.id != self.id) {
            return Decision::Abort(Dropped::Replaced);
        }
        writes.delete(self.keys[0].clone());
        writes.put(self.keys[1].clone(), layout::encode_moment(self.now));
        Decision::Commit(Dropped::Yes)
    }
}

struct SetPolicies {
    keys: [Bytes; 1],
    policies: Bytes,
}

impl Transition for SetPolicies {
    type Verdict = Result<()>;

    fn keys(&self) -> &[Bytes] {
        &self.keys
    }

    fn apply(&mut self, values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<Result<()>> {
        let Some(stored) = &values[0] else {
            return Decision::Abort(Err(ErrorCode::TableNotFound.into()));
        };
        let Some(mut record) = TableRecord::decode(stored) else {
            return Decision::Abort(Err(corrupt("a catalogue row")));
        };
        record.policies = self.policies.clone();
        writes.put(self.keys[0].clone(), record.encode());
        Decision::Commit(Ok(()))
    }
}
