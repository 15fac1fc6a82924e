//! The indexes of a table, as a request that found the table works with them.

use std::sync::Arc;

use tavola_wire::Ticks;
use tavola_wire::table::index::{Include, IndexDefinition, RowMaker};
use tavola_wire::table::stored::EntityRef;

use super::generation::Generation;
use super::statistics::{IndexStatistics, StatisticsList};
use crate::storage::layout::{DefinitionTexts, IndexList, IndexRecord, IndexState, TableId};
use crate::storage::{Error, Result};

/// The indexes of a table. Every change of entities and every page of a query holds it until it is answered.
#[derive(Debug)]
pub(crate) struct Schema {
    /// Without those that nobody keeps any more.
    indexes: Vec<Index>,
    /// Of all `indexes`, in their order.
    row_maker: RowMaker,
    /// Writers keep the rows of all `indexes`; of none they only take rows away.
    is_written: bool,
    /// While it lives, somebody works with this schema.
    _generation: Option<Arc<Generation>>,
}

/// One index.
#[derive(Debug)]
pub(crate) struct Index {
    pub number: u16,
    pub name: String,
    pub definition: IndexDefinition,
    pub state: IndexState,
    /// The name under which it can be read as a table.
    pub browse_as: Option<String>,
    /// When its definition or its state was changed last.
    pub changed: Ticks,
    pub statistics: Arc<IndexStatistics>,
}

impl Schema {
    /// # Errors
    /// [`Error::Corrupt`] for a definition that nobody can have declared.
    pub(crate) fn read(list: &IndexList) -> Result<Self> {
        let kept = list.indexes.iter().filter(|index| index.state.is_deleted_from());
        let indexes = kept.map(Index::read).collect::<Result<Vec<_>>>()?;
        let row_maker = RowMaker::new(indexes.iter().map(|index| &index.definition));
        let is_written = indexes.iter().all(|index| index.state.is_written());
        Ok(Self { indexes, row_maker, is_written, _generation: None })
    }

    /// The same, as what is found in this generation works with it, with the numbers that all share.
    pub(crate) fn attach(
        &mut self,
        table: TableId,
        generation: Arc<Generation>,
        statistics: &StatisticsList,
    ) {
        for index in &mut self.indexes {
            index.statistics = statistics.of(table, index.number);
        }
        self._generation = Some(generation);
    }

    pub(crate) fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// Whether writers have nothing to do for indexes.
    pub(crate) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Whether a change between these states of an entity surely leaves all rows as they are.
    pub(crate) fn has_same_rows(&self, old: EntityRef<'_>, new: EntityRef<'_>) -> bool {
        self.is_written && self.row_maker.has_same_rows(old, new)
    }

    /// The same of a merge of these properties into any entity that is stored.
    pub(crate) fn has_same_rows_with(&self, merged: EntityRef<'_>) -> bool {
        self.is_written && self.row_maker.has_same_rows_with(merged)
    }

    /// Derives the rows of all [`Schema::indexes`], in their order.
    pub(crate) fn row_maker(&self) -> &RowMaker {
        &self.row_maker
    }

    /// How many indexes have a copy of each entity that is written.
    pub(crate) fn whole_copies(&self) -> usize {
        let has_copy =
            |index: &&Index| index.state.is_written() && index.definition.include == Include::All;
        self.indexes.iter().filter(has_copy).count()
    }
}

impl Index {
    fn read(record: &IndexRecord) -> Result<Self> {
        let corrupt = |_| Error::Corrupt(format!("the definition of index {}", record.name));
        Ok(Self {
            number: record.number,
            name: record.name.clone(),
            definition: record.definition.parse().map_err(corrupt)?,
            state: record.state,
            browse_as: record.browse_as.clone(),
            changed: record.changed,
            statistics: Arc::default(),
        })
    }
}

impl DefinitionTexts {
    /// The texts of a definition, in one form for one meaning.
    pub(crate) fn of(definition: &IndexDefinition) -> Self {
        Self {
            keys: definition.keys_text(),
            include: definition.include_text(),
            filter: definition.filter_text(),
            unique: definition.unique,
            part_bytes_max: definition.part_bytes_max,
        }
    }

    pub(crate) fn parse(
        &self,
    ) -> Result<IndexDefinition, tavola_wire::table::index::DefinitionError> {
        let Self { keys, include, filter, unique, part_bytes_max } = self;
        let definition = IndexDefinition::parse(keys, include, filter, *unique)?;
        Ok(IndexDefinition { part_bytes_max: *part_bytes_max, ..definition })
    }
}
