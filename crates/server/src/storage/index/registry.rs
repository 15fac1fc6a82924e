//! What a process keeps in mind about indexes: who works with which schema, their numbers, and which tables have any.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::build_progress::Builds;
use super::generation::Generations;
use super::statistics::StatisticsList;
use crate::storage::layout::AccountId;

/// A table by its account and the name that keys hold.
pub(crate) type TableKey = (AccountId, Box<str>);

#[derive(Debug, Default)]
pub(crate) struct IndexRegistry {
    pub generations: Generations,
    pub statistics: StatisticsList,
    pub builds: Arc<Builds>,
    /// Told when there is work.
    pub work_signal: Arc<Notify>,
    /// Held while the indexes of a table are read and their number is noted.
    pub counting: tokio::sync::Mutex<()>,
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// How many indexes each table has that has some.
    indexed: BTreeMap<AccountId, BTreeMap<Box<str>, usize>>,
    /// Tables that the builder has to look at.
    work: BTreeSet<TableKey>,
    /// Indexes that are to be verified: table and name.
    to_verify: BTreeMap<TableKey, BTreeSet<String>>,
    /// Rows without an entity that queries found: one of each index, with the key of the entity that they name.
    orphans: BTreeMap<TableKey, BTreeMap<u16, Vec<u8>>>,
}

impl IndexRegistry {
    /// Notes how many indexes a table has.
    pub(crate) fn set_indexes(&self, account: AccountId, table: &str, indexes: usize) {
        let mut tables = self.tables();
        let of_account = tables.indexed.entry(account).or_default();
        if indexes == 0 {
            of_account.remove(table);
        } else {
            of_account.insert(table.into(), indexes);
        }
    }

    /// The tables of an account that have indexes, by the names that keys hold.
    pub(crate) fn indexed_tables(&self, account: AccountId) -> Vec<Box<str>> {
        let tables = self.tables();
        tables.indexed.get(&account).map_or_else(Vec::new, |names| names.keys().cloned().collect())
    }

    pub(crate) fn has_indexes(&self, account: AccountId) -> bool {
        self.tables().indexed.get(&account).is_some_and(|names| !names.is_empty())
    }

    /// Indexes of all tables of an account but one.
    pub(crate) fn indexes_of_others(&self, account: AccountId, table: &str) -> usize {
        let tables = self.tables();
        let Some(names) = tables.indexed.get(&account) else { return 0 };
        names.iter().filter(|(name, _)| &***name != table).map(|(_, indexes)| indexes).sum()
    }

    /// Has the builder look at a table.
    pub(crate) fn add_work(&self, account: AccountId, table: &str) {
        self.tables().work.insert((account, table.into()));
        self.work_signal.notify_one();
    }

    /// Has the builder verify an index.
    pub(crate) fn add_verification(&self, account: AccountId, table: &str, index: &str) {
        let key = (account, Box::from(table));
        self.tables().to_verify.entry(key).or_default().insert(index.to_owned());
        self.add_work(account, table);
    }

    /// Has the builder look at a row without its entity; false if it already looks at another of that index.
    pub(crate) fn add_orphan(
        &self,
        account: AccountId,
        table: &str,
        index: u16,
        entity_key: &[u8],
    ) -> bool {
        let mut tables = self.tables();
        let of_table = tables.orphans.entry((account, table.into())).or_default();
        let is_first = !of_table.contains_key(&index);
        if is_first {
            of_table.insert(index, entity_key.to_vec());
        }
        drop(tables);
        if is_first {
            self.add_work(account, table);
        }
        is_first
    }

    /// The rows without an entity that queries found in a table, which the caller looks at.
    pub(crate) fn take_orphans(&self, table: &TableKey) -> BTreeMap<u16, Vec<u8>> {
        self.tables().orphans.remove(table).unwrap_or_default()
    }

    /// A table that is to be looked at and is not among those that are.
    pub(crate) fn take_work(&self, busy: &BTreeSet<TableKey>) -> Option<TableKey> {
        let mut tables = self.tables();
        let next = tables.work.iter().find(|table| !busy.contains(*table)).cloned()?;
        tables.work.remove(&next);
        Some(next)
    }

    /// The indexes of a table that are to be verified, which the caller does.
    pub(crate) fn take_verifications(&self, table: &TableKey) -> BTreeSet<String> {
        self.tables().to_verify.remove(table).unwrap_or_default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
