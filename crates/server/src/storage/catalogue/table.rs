//! Tables in the catalogue.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use tavola_wire::Ticks;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::table::names::TableName;
use tavola_wire::xml::acl;

use super::{Catalogue, Resource};
use crate::storage::layout::{AccountId, EntityKeys, TableId, TableRecord};
use crate::storage::{Error, Result};

/// A table as requests see it.
#[derive(Debug)]
pub(crate) struct Table {
    pub id: TableId,
    /// In the case it was created with.
    pub name: String,
    /// Shared with requests whose signature refers to one.
    pub policies: Arc<[SignedIdentifier]>,
}

impl Table {
    pub(crate) fn keys(&self) -> EntityKeys {
        EntityKeys::of(self.id)
    }
}

impl Resource for Table {
    type Name<'a> = TableName<'a>;
    type Record = TableRecord;

    fn key_name<'a>(name: &'a TableName<'_>) -> Cow<'a, str> {
        name.lower()
    }

    fn from_record(record: TableRecord) -> Result<Self> {
        let TableRecord { id, name, policies, .. } = record;
        match acl::parse(&policies) {
            Ok(policies) => Ok(Self { id, name, policies: policies.into() }),
            Err(_) => Err(Error::Corrupt(format!("the access policies of table {name}"))),
        }
    }
}

impl Catalogue<Table> {
    /// Creates a table.
    ///
    /// # Errors
    /// [`Error::Exists`], also when the names differ by case alone.
    pub(crate) async fn create_table(
        self: &Arc<Self>,
        account: AccountId,
        name: &TableName<'_>,
        created: Ticks,
    ) -> Result<()> {
        let as_written = name.as_str().to_owned();
        let record = move |id| {
            let (id, name) = (TableId::from(id), as_written.clone());
            TableRecord { id, created, name, policies: Bytes::new() }
        };
        self.create(account, name, record).await.map(drop)
    }

    /// Replaces the access policies of a table.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn set_policies(
        self: &Arc<Self>,
        account: AccountId,
        name: &TableName<'_>,
        policies: &[SignedIdentifier],
    ) -> Result<()> {
        let policies = if policies.is_empty() { Bytes::new() } else { acl::write(policies).into() };
        self.update(account, name, move |record| record.policies = policies.clone()).await
    }
}
