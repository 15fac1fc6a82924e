//! `TavolaIndexes`: indexes are declared by writing entities, one for each index, and what becomes of them is read there.
//!
//! PartitionKey is the name of the table, RowKey that of the index. `Keys`, `Include`, `Filter`, `Unique` and `BrowseAs`
//! are the definition; the other properties are the server's, and what a client sends for them is ignored, so that one
//! may write back what it has read. A property that is none of these is refused: a misspelt name must not pass.

use std::sync::Arc;

use tavola_wire::explain::NO_INDEX;
use tavola_wire::table::index::IndexDefinition;
use tavola_wire::table::names::TableName;
use tavola_wire::table::stored::{EntityRef, EntityWriter, Value, set_timestamp};
use tavola_wire::{ErrorCode, StorageError, Ticks};

use super::{SystemRows, SystemTable};
use crate::context::RequestContext;
use crate::error::{Result, corrupt, storage_failure};
use crate::storage;
use crate::storage::features::Feature;
use crate::storage::index::{IndexRegistry, IndexState, definitions};
use crate::storage::layout::{AccountId, IndexRecord, TableId, TableRecord};
use crate::table::change_set::Refused;
use crate::table::entity_change::{Applied, ChangeKind, EntityChange};
use crate::table::errors::in_table;

/// Bytes of a partial index's filter: it is kept with the table, and eight comparisons need far less.
const FILTER_BYTES_MAX: usize = 8 * 1024;

/// What the server says of an index; sent by a client, it is ignored.
const SERVER_PROPERTIES: [&str; 11] = [
    "State",
    "Progress",
    "Entries",
    "Bytes",
    "Distinct",
    "LargestShare",
    "OffType",
    "Uses",
    "LastUsed",
    "Error",
    "Note",
];

/// Every index of an account.
pub(super) async fn rows(context: &RequestContext<'_>) -> Result<SystemRows> {
    let (catalogue, account) = (&context.state.catalogue, context.account.id);
    let mut rows = SystemRows::default();
    for name in catalogue.indexes().indexed_tables(account) {
        let record = match catalogue.table_record(account, &name).await {
            Ok(record) => record,
            // Dropped in this moment.
            Err(storage::Error::NotFound) => continue,
            Err(error) => return Err(storage_failure(error)),
        };
        for name in definitions::names(&record.indexes) {
            if let Some(index) = definitions::latest(&record.indexes, name) {
                let entity = entity(&record, index, catalogue.indexes());
                rows.insert(&record.name, name, index.changed, entity);
            }
        }
    }
    Ok(rows)
}

/// Declares, changes and drops indexes of one table: all that the changes ask for, or nothing.
pub(super) async fn commit(
    context: &RequestContext<'_>,
    changes: Vec<EntityChange>,
) -> Result<Vec<Applied>, Refused> {
    let Some(first) = changes.first() else { return Ok(Vec::new()) };
    let refused = |error| Refused { index: 0, error };
    let not_found = |_| refused(ErrorCode::TableNotFound.into());
    let table = TableName::parse(first.partition_key.as_str()).map_err(not_found)?;
    let table = table.lower().into_owned();
    let (catalogue, account) = (&context.state.catalogue, context.account.id);
    let registry = Arc::clone(catalogue.indexes());
    let declaration =
        Declaration { changes, account, table: table.clone(), registry, now: context.stamp() };
    // The folder gets its new format with the first index, not with the first attempt.
    let record = catalogue.table_record(account, &table).await;
    let before = record.map_err(|error| refused(in_table(error)))?;
    let mut after = before.clone();
    declaration.apply(&mut after).map_err(|failure| failure.0)?;
    let names = catalogue.check_views(account, &table, &before, &after).await;
    names.map_err(|error| Failure::from(error).0)?;
    let ensured = context.state.features.ensure(Feature::Index).await;
    ensured.map_err(|error| refused(storage_failure(error)))?;
    let declared = catalogue
        .change_schema(account, &table, move |record| {
            let told = declaration.apply(record)?;
            Ok::<_, Failure>((told, declaration.verifications(record)))
        })
        .await;
    let (applied, verifications) = declared.map_err(|failure| failure.0)?;
    for verification in verifications {
        let Verification { table: id, number, name } = verification;
        catalogue.indexes().statistics.of(id, number).begin_verification();
        catalogue.indexes().add_verification(account, &table, &name);
    }
    if applied.iter().any(|applied| applied.entity.is_none()) {
        // The drop is done: what is left of it, the builder does otherwise.
        let retired = catalogue.retire_unique(account, &table, context.stamp()).await;
        if let Err(error) = retired {
            tracing::debug!(table, %error, "a dropped unique index is not retired yet");
        }
    }
    Ok(applied)
}

pub(super) fn is_listed(registry: &IndexRegistry, account: AccountId) -> bool {
    registry.has_indexes(account)
}

/// An index that is to be compared with its entities.
struct Verification {
    table: TableId,
    number: u16,
    name: String,
}

/// The changes of a request, to be laid on the record of the table.
struct Declaration {
    changes: Vec<EntityChange>,
    account: AccountId,
    /// As keys hold it.
    table: String,
    registry: Arc<IndexRegistry>,
    now: Ticks,
}

/// Why a declaration fails.
struct Failure(Refused);

impl From<storage::Error> for Failure {
    fn from(error: storage::Error) -> Self {
        let error = match error {
            storage::Error::Exists => view_exists("There is a table with the name of BrowseAs."),
            error => in_table(error),
        };
        Self(Refused { index: 0, error })
    }
}

impl Declaration {
    fn apply(&self, record: &mut TableRecord) -> Result<Vec<Applied>, Failure> {
        let failed = |index, error| Failure(Refused { index, error });
        if record.view.is_some() {
            return Err(failed(0, invalid("An index that is read as a table has no indexes.")));
        }
        let mut all = Vec::with_capacity(self.changes.len());
        for (index, change) in self.changes.iter().enumerate() {
            let applied = self.apply_one(record, change).map_err(|error| failed(index, error))?;
            all.push(applied);
        }
        // Asked of all changes together: one may take the name that another gives up.
        let shares_view =
            |change: &EntityChange| definitions::shares_view(&record.indexes, &change.row_key);
        if let Some(index) = self.changes.iter().rposition(shares_view) {
            return Err(failed(
                index,
                view_exists("Another index is read under the name of BrowseAs."),
            ));
        }
        let others = self.registry.indexes_of_others(self.account, &self.table);
        let count = others + definitions::names(&record.indexes).len();
        let is_declaring = all.iter().any(|applied| applied.entity.is_some());
        if is_declaring && count > definitions::DEFINITIONS_PER_ACCOUNT_MAX {
            let error = definitions::LimitError::Definitions.to_string();
            return Err(failed(self.changes.len() - 1, invalid(error)));
        }
        Ok(all)
    }

    fn apply_one(&self, record: &mut TableRecord, change: &EntityChange) -> Result<Applied> {
        if record.name != change.partition_key {
            if matches!(change.kind, ChangeKind::Delete(_)) {
                return Err(ErrorCode::ResourceNotFound.into());
            }
            return Err(invalid(format!("The name of the table is written {}.", record.name)));
        }
        let name = change.row_key.as_str();
        let before = definitions::latest(&record.indexes, name);
        let stored = before.map(|index| encoded(record, index, &self.registry));
        let applied = change.apply(stored.as_deref(), self.now)?;
        let Some(entity) = &applied.entity else {
            definitions::drop_index(&mut record.indexes, name, applied.timestamp);
            return Ok(applied);
        };
        if let Some(index) = before.filter(|_| asks_only_to_verify(change)) {
            // Declared once more, one that has failed would be built anew.
            let entity = Some(encoded(record, index, &self.registry).into());
            return Ok(Applied { timestamp: index.changed, entity });
        }
        TableName::parse(name)?;
        if name.eq_ignore_ascii_case(NO_INDEX) {
            return Err(invalid("An index cannot be named none: as a hint it means no index."));
        }
        let is_same = |other: &&str| *other != name && other.eq_ignore_ascii_case(name);
        if before.is_none()
            && let Some(other) = definitions::names(&record.indexes).into_iter().find(is_same)
        {
            let detail = format!("There is an index {other}; letters differ only in their case.");
            return Err(StorageError::with_detail(ErrorCode::EntityAlreadyExists, detail));
        }
        let wanted = Wanted::read(EntityRef::parse(entity).map_err(corrupt)?)?;
        let definition = wanted.definition()?;
        let browse_as = wanted.browse_as(record)?;
        let list = &mut record.indexes;
        definitions::declare(list, name, &definition, browse_as, applied.timestamp)
            .map_err(|limit| invalid(limit.to_string()))?;
        let declared = definitions::latest(&record.indexes, name);
        let declared = declared.ok_or(ErrorCode::InternalError)?;
        let entity = Some(encoded(record, declared, &self.registry).into());
        Ok(Applied { timestamp: declared.changed, entity })
    }

    /// The indexes that are to be verified, because the request says so. Known with the record that is committed: nothing
    /// can fail then that would leave what an earlier verification has said.
    fn verifications(&self, record: &TableRecord) -> Vec<Verification> {
        let is_asked = |change: &&EntityChange| {
            change.body().is_some_and(|body| {
                let mut properties = body.properties().filter_map(Result::ok);
                properties.any(|property| {
                    property.name == b"Verify" && property.value() == Some(Value::Boolean(true))
                })
            })
        };
        let asked = self.changes.iter().filter(is_asked);
        asked
            .filter_map(|change| definitions::latest(&record.indexes, &change.row_key))
            .map(|index| Verification {
                table: record.id,
                number: index.number,
                name: index.name.clone(),
            })
            .collect()
    }
}

/// Whether a change says nothing of the definition.
fn asks_only_to_verify(change: &EntityChange) -> bool {
    let Some(body) = change.body().filter(|_| matches!(change.kind, ChangeKind::Merge(_))) else {
        return false;
    };
    let mut properties = body.properties().filter_map(Result::ok).peekable();
    properties.peek().is_some() && properties.all(|property| property.name == b"Verify")
}

/// What a client wants an index to be.
#[derive(Default)]
struct Wanted {
    keys: Option<String>,
    include: String,
    filter: String,
    unique: bool,
    browse_as: String,
}

impl Wanted {
    fn read(entity: EntityRef<'_>) -> Result<Self> {
        let mut wanted = Self::default();
        for property in entity.properties() {
            let property = property.map_err(corrupt)?;
            let name = property.name_str().unwrap_or_default();
            let value = property.value().ok_or_else(|| corrupt("a property"))?;
            match (name, value) {
                ("Keys", Value::String(text)) => wanted.keys = Some(text.to_owned()),
                ("Include", Value::String(text)) => wanted.include = text.to_owned(),
                ("Filter", Value::String(text)) => wanted.filter = text.to_owned(),
                ("BrowseAs", Value::String(text)) => wanted.browse_as = text.trim().to_owned(),
                ("Unique", Value::Boolean(unique)) => wanted.unique = unique,
                // Some clients send nothing but texts.
                ("Unique", Value::String(text)) if text.eq_ignore_ascii_case("true") => {
                    wanted.unique = true;
                }
                ("Unique", Value::String(text)) if text.eq_ignore_ascii_case("false") => {
                    wanted.unique = false;
                }
                ("Keys" | "Include" | "Filter" | "BrowseAs", _) => {
                    return Err(invalid(format!("{name} must be a text.")));
                }
                ("Unique", _) => return Err(invalid("Unique must be true or false.")),
                // A request to verify, or what the last one came to.
                ("Verify", _) => {}
                (name, _) if SERVER_PROPERTIES.contains(&name) => {}
                (name, _) => {
                    return Err(invalid(format!(
                        "{name} is no property of an index; they are Keys, Include, Filter, Unique and BrowseAs."
                    )));
                }
            }
        }
        Ok(wanted)
    }

    fn definition(&self) -> Result<IndexDefinition> {
        let keys = self.keys.as_deref().ok_or_else(|| {
            StorageError::with_detail(ErrorCode::PropertiesNeedValue, "Keys must be given.")
        })?;
        if self.filter.len() > FILTER_BYTES_MAX {
            return Err(invalid(format!("Filter can have at most {FILTER_BYTES_MAX} bytes.")));
        }
        IndexDefinition::parse(keys, &self.include, &self.filter, self.unique)
            .map_err(|error| invalid(error.to_string()))
    }

    fn browse_as(&self, record: &TableRecord) -> Result<Option<&str>> {
        if self.browse_as.is_empty() {
            return Ok(None);
        }
        let name = TableName::parse(self.browse_as.as_str())?;
        let is_own = record.name.eq_ignore_ascii_case(name.as_str());
        if is_own || SystemTable::named(&name).is_some() {
            return Err(ErrorCode::TableAlreadyExists.into());
        }
        Ok(Some(&self.browse_as))
    }
}

/// An index as clients read it, with its timestamp.
fn encoded(record: &TableRecord, index: &IndexRecord, registry: &IndexRegistry) -> Vec<u8> {
    let mut entity = entity(record, index, registry).finish();
    set_timestamp(&mut entity, index.changed);
    entity
}

fn entity(record: &TableRecord, index: &IndexRecord, registry: &IndexRegistry) -> EntityWriter {
    let statistics = registry.statistics.of(record.id, index.number);
    let known = statistics.get();
    let number = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let mut entity = EntityWriter::new();
    let definition = &index.definition;
    entity.push("Keys", Value::String(&definition.keys));
    entity.push("Include", Value::String(&definition.include));
    entity.push("Filter", Value::String(&definition.filter));
    entity.push("Unique", Value::Boolean(definition.unique));
    entity.push("BrowseAs", Value::String(index.browse_as.as_deref().unwrap_or_default()));
    entity.push("State", Value::String(state_text(record, index)));
    entity.push("Progress", number(known.rows));
    entity.push("Entries", number(known.entries));
    entity.push("Bytes", number(known.bytes));
    entity.push("Distinct", number(known.distinct.min(known.entries)));
    let share = if known.entries == 0 { 0.0 } else { known.largest as f64 / known.entries as f64 };
    entity.push("LargestShare", Value::Double(share.min(1.0)));
    entity.push("OffType", number(known.off_type));
    entity.push("Uses", number(known.uses));
    if let Some(last_used) = known.last_used {
        entity.push("LastUsed", Value::DateTime(last_used));
    }
    entity.push("Error", Value::String(&index.error));
    entity.push("Note", Value::String(&note(record, index)));
    if let Some(words) = statistics.verification() {
        entity.push("Verify", Value::String(&words));
    }
    entity
}

/// What a user has to know: whether it can be used, is on its way, or never will be.
fn state_text(record: &TableRecord, index: &IndexRecord) -> &'static str {
    match index.state {
        IndexState::DeleteOnly | IndexState::WriteOnly | IndexState::Building => "Building",
        // What is said to be readable refuses nothing that it should not.
        IndexState::Readable if definitions::waits_for_retiring_unique(&record.indexes, index) => {
            "Building"
        }
        IndexState::Readable => "Readable",
        IndexState::Failing | IndexState::Failed => "Failed",
        IndexState::Retiring | IndexState::Dropped => "Dropping",
    }
}

fn note(record: &TableRecord, index: &IndexRecord) -> String {
    let mut notes = Vec::new();
    if definitions::readable_before(&record.indexes, index).is_some() {
        notes.push(if index.state.has_failed() {
            "The definition before this one is used until this one is replaced or dropped."
        } else {
            "The definition before this one is used until this one is built."
        });
    }
    let names = index.definition.keys.split(',').map(|part| part.trim_end_matches(['!', '?']));
    if names.into_iter().any(|name| name.split(':').next() == Some("Timestamp")) {
        notes.push("Timestamp changes with every write, which each rewrite a row of this index.");
    }
    notes.join(" ")
}

fn view_exists(detail: &'static str) -> StorageError {
    StorageError::with_detail(ErrorCode::TableAlreadyExists, detail)
}

fn invalid(detail: impl Into<std::borrow::Cow<'static, str>>) -> StorageError {
    StorageError::with_detail(ErrorCode::InvalidInput, detail)
}
