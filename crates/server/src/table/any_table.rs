//! A table as operations on entities address it: one that is stored, one of the server's own, or an index.
//!
//! The catalogue is asked first, so that stored tables pay nothing for the others.

use std::sync::Arc;

use bytes::Bytes;
use tavola_engine::Reader;
use tavola_wire::ErrorCode;
use tavola_wire::table::names::TableName;

use super::change_set::{self, Refused};
use super::entity_change::{Applied, EntityChange};
use super::errors::in_table;
use super::index_view::IndexView;
use super::system::SystemTable;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, engine_error};
use crate::storage;
use crate::storage::catalogue::Table;
use crate::workload::hot_partitions::PartitionRequest;

#[derive(Clone, Debug)]
pub(crate) enum AnyTable {
    Stored(Arc<Table>),
    System(SystemTable),
    /// Read-only: the record of its name. The index is looked for when it is read.
    View(Arc<Table>),
}

impl AnyTable {
    /// The table of that name.
    ///
    /// # Errors
    /// 404 `TableNotFound`; 403 for a table of the server's own that the caller must not see.
    pub(crate) async fn find(
        context: &RequestContext<'_>,
        permit: Permit<'_>,
        name: &TableName<'_>,
    ) -> Result<Self> {
        match context.state.catalogue.find(context.account.id, name).await {
            Ok(table) if table.view.is_some() => Ok(Self::View(table)),
            Ok(table) => Ok(Self::Stored(table)),
            Err(storage::Error::NotFound) => {
                let table = SystemTable::named(name).ok_or(storage::Error::NotFound);
                let table = table.map_err(in_table)?;
                table.check_permit(permit)?;
                Ok(Self::System(table))
            }
            Err(error) => Err(in_table(error)),
        }
    }

    /// The encoded entity with these keys.
    pub(crate) async fn get(
        &self,
        context: &RequestContext<'_>,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Bytes>> {
        match self {
            Self::Stored(table) => {
                let key = table.keys().key(partition_key, row_key);
                let stored = context.state.engine.get(&key).await.map_err(engine_error)?;
                note(context, table, partition_key, stored.as_ref().map_or(0, Bytes::len), 0);
                Ok(stored)
            }
            Self::System(table) => {
                let rows = Box::pin(table.rows(context)).await?;
                Ok(rows.get(partition_key, row_key).cloned())
            }
            Self::View(view) => {
                let view = Box::pin(IndexView::find(context, view)).await?;
                Box::pin(view.get(context, partition_key, row_key)).await
            }
        }
    }

    /// Makes all changes of the set, or none. The caller has seen to it that no entity appears twice.
    pub(crate) async fn commit(
        &self,
        context: &RequestContext<'_>,
        changes: Vec<EntityChange>,
    ) -> Result<Vec<Applied>, Refused> {
        match self {
            Self::Stored(table) => {
                if let Some(first) = changes.first() {
                    // All changes of a set are of one partition.
                    let bytes = context.body.len();
                    note(context, table, &first.partition_key, bytes, changes.len());
                }
                change_set::commit(context, table, changes).await
            }
            Self::System(table) => Box::pin(table.commit(context, changes)).await,
            Self::View(_) => {
                Err(Refused { index: 0, error: ErrorCode::InsufficientAccountPermissions.into() })
            }
        }
    }
}

/// Counts a request for the hottest partitions.
fn note(
    context: &RequestContext<'_>,
    table: &Table,
    partition_key: &str,
    bytes: usize,
    writes: usize,
) {
    context.state.workload.hot_partitions.note(PartitionRequest {
        account: context.account.id,
        table: table.id,
        table_name: &table.name,
        partition_key,
        bytes,
        writes,
    });
}
