//! `TavolaAdvice`: one row for each piece of advice on indexes.
//!
//! PartitionKey is the table, RowKey the action and the name of the index. `Keys` and `Include` are as the table of
//! indexes takes them.

use std::collections::BTreeSet;
use std::time::Instant;

use tavola_wire::table::index::Missing;
use tavola_wire::table::names::TableName;
use tavola_wire::table::stored::{EntityWriter, Value};

use super::SystemRows;
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::storage;
use crate::storage::catalogue::Table;
use crate::storage::index::Index;
use crate::storage::layout::TableId;
use crate::workload::ShapeRecord;
use crate::workload::advice::{self, Advice, DeclaredIndex};

pub(super) async fn rows(context: &RequestContext<'_>) -> Result<SystemRows> {
    let (account, workload) = (context.account.id, &context.state.workload);
    let (mut shapes, declared) = (workload.shapes.of(account), declared(context).await?);
    let existing = existing(context, &shapes).await?;
    shapes.retain(|shape| existing.contains(&shape.table.0));
    let now = context.state.clock.now();
    let writes = |table: TableId| workload.hot_partitions.writes(table, Instant::now());
    let mut rows = SystemRows::default();
    for advice in advice::advise(&shapes, &declared, writes, now) {
        let row_key = format!("{}-{}", advice.action.as_str(), advice.name);
        rows.insert(&advice.table_name, &row_key, advice.last_seen, entity(&advice));
    }
    Ok(rows)
}

/// The indexes of the account.
async fn declared(context: &RequestContext<'_>) -> Result<Vec<DeclaredIndex>> {
    let (catalogue, account) = (&context.state.catalogue, context.account.id);
    let mut declared = Vec::new();
    for name in catalogue.indexes().indexed_tables(account) {
        match catalogue.find(account, &TableName::parse_addressed(&*name)?).await {
            Ok(table) => {
                let indexes = table.schema.indexes().iter();
                let named = indexes.filter(|index| index.state.is_named());
                declared.extend(named.map(|index| declared_index(&table, index)));
            }
            // Dropped in this moment.
            Err(storage::Error::NotFound) => {}
            Err(error) => return Err(storage_failure(error)),
        }
    }
    Ok(declared)
}

fn declared_index(table: &Table, index: &Index) -> DeclaredIndex {
    let keys = &index.definition.keys;
    let last_used = index.statistics.get().last_used;
    DeclaredIndex {
        table: table.id,
        table_name: table.name.clone(),
        name: index.name.clone(),
        keys: keys.iter().map(|part| part.property.clone()).collect(),
        parts_needed: keys
            .iter()
            .rposition(|part| part.missing == Missing::Skip)
            .map_or(0, |last| last + 1),
        is_whole: index.definition.filter.is_none() && !index.state.has_failed(),
        is_kept: index.definition.unique || index.browse_as.is_some(),
        used: last_used.map_or(index.changed, |used| used.max(index.changed)),
        is_readable: index.state.is_read(),
    }
}

/// Those of the tables that still exist: another table of the same name has nothing to do with the queries of before.
async fn existing(context: &RequestContext<'_>, shapes: &[ShapeRecord]) -> Result<BTreeSet<u64>> {
    let names: BTreeSet<_> = shapes.iter().map(|shape| shape.table_name.as_str()).collect();
    let mut existing = BTreeSet::new();
    for name in names {
        match context
            .state
            .catalogue
            .find(context.account.id, &TableName::parse_addressed(name)?)
            .await
        {
            Ok(table) => existing.insert(table.id.0),
            Err(storage::Error::NotFound) => continue,
            Err(error) => return Err(storage_failure(error)),
        };
    }
    Ok(existing)
}

fn entity(advice: &Advice) -> EntityWriter {
    let count = |count: u64| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX));
    let mut entity = EntityWriter::new();
    entity.push("Action", Value::String(advice.action.as_str()));
    entity.push("Name", Value::String(&advice.name));
    entity.push("Keys", Value::String(&advice.keys));
    entity.push("Include", Value::String(&advice.include));
    entity.push("GainSeconds", Value::Double(advice.gain_seconds));
    entity.push("PriceSeconds", Value::Double(advice.price_seconds));
    entity.push("PriceBytes", count(advice.price_bytes));
    entity.push("Executions", count(advice.executions));
    entity.push("RowsExamined", count(advice.examined));
    entity.push("RowsReturned", count(advice.returned));
    entity.push("LastSeen", Value::DateTime(advice.last_seen));
    entity.push("Shapes", Value::String(&advice.shapes));
    entity.push("Note", Value::String(&advice.note));
    entity
}
