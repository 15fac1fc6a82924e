//! The part of a check that is about indexes: every row belongs to one, and those that queries trust are complete.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use futures_util::FutureExt;
use tavola_engine::{CheckedRows, Visitor};

use super::problems::Problems;
use crate::storage::index::verify::verify;
use crate::storage::layout::{
    Family, IndexRecord, IndexState, Key, KeyError, ResourceId, TableId, TableRecord,
};

/// The indexes of all tables, as their records have them.
#[derive(Default)]
pub(super) struct IndexCheck {
    /// With the keys of the tables' records.
    indexes: BTreeMap<TableId, (Vec<u8>, Vec<IndexRecord>)>,
    /// Tables whose indexes names stand for, with the keys of their rows.
    views: Vec<(TableId, String, Vec<u8>)>,
}

impl IndexCheck {
    /// Notes the indexes of a table.
    pub(super) fn see(&mut self, key: &[u8], record: &TableRecord) -> Result<(), &'static str> {
        if let Some(view) = &record.view {
            self.views.push((view.table, view.index.clone(), key.to_vec()));
        }
        let list = &record.indexes;
        self.indexes.insert(record.id, (key.to_vec(), list.indexes.clone()));
        for index in &list.indexes {
            index.definition.parse().map_err(|_| "the definition of an index cannot be read")?;
            if index.number == 0 || index.number > list.last_number {
                return Err("the number of an index was never given out");
            }
        }
        let mut numbers: Vec<_> = list.indexes.iter().map(|index| index.number).collect();
        numbers.dedup();
        let is_distinct = numbers.len() == list.indexes.len() && numbers.is_sorted();
        if is_distinct { Ok(()) } else { Err("two indexes have the same number") }
    }

    /// Whether there is such an index, or was one whose table awaits the sweeper.
    pub(super) fn has(
        &self,
        table: TableId,
        number: u16,
        is_dropped: impl Fn(ResourceId) -> bool,
    ) -> bool {
        let found = self.indexes.get(&table);
        found.is_some_and(|(_, indexes)| indexes.iter().any(|index| index.number == number))
            || is_dropped(table.into())
    }

    /// Compares names with the indexes that they stand for.
    pub(super) fn compare_views(&self, problems: &mut Problems) {
        for (table, name, key) in &self.views {
            let is_theirs = |index: &IndexRecord| index.name == *name && index.browse_as.is_some();
            let found = self.indexes.get(table);
            if !found.is_some_and(|(_, indexes)| indexes.iter().any(is_theirs)) {
                problems.add(key, "it shows an index that there is not");
            }
        }
    }

    /// Reads all rows of indexes; answers how many there are.
    pub(super) fn check_rows(
        self,
        rows: &CheckedRows,
        is_dropped: impl Fn(ResourceId) -> bool + Send + 'static,
        problems: &mut Problems,
    ) -> u64 {
        let visitor = IndexRows { known: self, is_dropped, rows: 0, problems: Problems::default() };
        let IndexRows { known, rows: count, problems: found, .. } =
            match rows.scan(&Family::Index.range(), visitor) {
                Ok(visitor) => visitor,
                Err(error) => {
                    problems.tell(format!("the rows of indexes cannot all be read: {error}"));
                    return 0;
                }
            };
        problems.append(found);
        for (table, (key, indexes)) in &known.indexes {
            for index in indexes.iter().filter(|index| is_complete(index.state)) {
                compare(rows, *table, key, index, problems);
            }
        }
        count
    }
}

/// Queries trust those, or did a moment ago.
fn is_complete(state: IndexState) -> bool {
    matches!(state, IndexState::Readable | IndexState::Retiring)
}

fn compare(
    rows: &CheckedRows,
    table: TableId,
    key: &[u8],
    index: &IndexRecord,
    problems: &mut Problems,
) {
    let Ok(definition) = index.definition.parse() else { return };
    // The rows are in files, and reading them waits for nobody.
    let verified = verify(rows, table, index.number, &definition).now_or_never();
    match verified.expect("nothing to wait for") {
        Ok(verified) => {
            for difference in &verified.differences {
                problems.tell(format!("index {}: {difference}", index.name));
            }
        }
        Err(error) => {
            problems.add(key, &format!("its index {} cannot be compared: {error}", index.name));
        }
    }
}

struct IndexRows<F> {
    known: IndexCheck,
    is_dropped: F,
    rows: u64,
    problems: Problems,
}

impl<F: Fn(ResourceId) -> bool + Send + 'static> Visitor for IndexRows<F> {
    fn visit(&mut self, key: &[u8], _: &[u8]) -> ControlFlow<()> {
        self.rows += 1;
        match Key::decode(key) {
            Ok(Key::Index { table, number, .. })
                if self.known.has(table, number, &self.is_dropped) => {}
            Ok(_) => self.problems.add(key, "it belongs to no index"),
            Err(KeyError(problem)) => self.problems.add(key, problem),
        }
        ControlFlow::Continue(())
    }
}
