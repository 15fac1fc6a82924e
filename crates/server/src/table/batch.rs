//! Entity group transactions: up to a hundred changes of one partition, all of them or none; or one query.

use std::collections::HashSet;

use http::header::CONTENT_TYPE;
use tavola_wire::auth::sas::{self, EntityOperation};
use tavola_wire::table::batch::request::OPERATIONS_MAX;
use tavola_wire::table::batch::response::{Outcome, indexed_message};
use tavola_wire::table::batch::{
    BatchRequest, BatchWriter, Changeset, Operation, Part, PartResponse,
};
use tavola_wire::table::json::push_error;
use tavola_wire::table::names::TableName;
use tavola_wire::table::negotiate::{MetadataLevel, Preference};
use tavola_wire::table::{ResourcePath, key_count_error};
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, StorageError};

use super::any_table::AnyTable;
use super::change_set::Refused;
use super::entity_change::{Applied, Condition, EntityChange};
use super::odata::{self, is_front_end};
use super::operation::{EntityAddress, entity_operation};
use super::update_entity::refuse_if_none_match;
use super::{get_entity, insert_entity};
use crate::auth::permit::{Access, Permit};
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(crate) async fn run(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    body: &[u8],
) -> Result<Reply> {
    let content_type = context.head.header(&CONTENT_TYPE).unwrap_or_default();
    let batch = BatchRequest::parse(content_type, body)?;
    let id = context.state.ids.next().to_string();
    let mut writer = BatchWriter::new(&id);
    match &batch.parts[..] {
        [Part::Single(operation)] if operation.verb == Verb::Get => {
            query(context, permit, operation, &mut writer).await?;
        }
        parts => changesets(context, permit, parts, &mut writer).await?,
    }
    let content_type = writer.content_type();
    Ok(odata::multipart(&content_type, writer.finish()))
}

/// The first changeset is executed; any other is refused in its place.
async fn changesets(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    parts: &[Part<'_>],
    writer: &mut BatchWriter<'_>,
) -> Result<()> {
    if parts.iter().any(|part| matches!(part, Part::Single(_))) {
        return Err(ErrorCode::InvalidInput.into());
    }
    if context.head.address.secondary {
        return Err(ErrorCode::InsufficientAccountPermissions.into());
    }
    for (index, part) in parts.iter().enumerate() {
        let Part::Changeset(changeset) = part else { continue };
        let outcome = match index {
            0 => execute(context, permit, changeset).await,
            _ => Err(Refused { index: 0, error: ErrorCode::InvalidInput.into() }),
        };
        let id = context.state.ids.next().to_string();
        match outcome {
            Ok(answers) => {
                let parts = changeset.operations.iter().zip(&answers);
                writer.changeset(&id, parts.map(|(operation, answer)| answer.part(operation)));
            }
            // What is not the client's fault fails the request, so that clients try again.
            Err(Refused { error, .. }) if error.status() >= 500 => return Err(error),
            Err(refused) => {
                context.notes.set_failure(&refused.error, Some(refused.index));
                let operation = changeset.operations.get(refused.index);
                let mut failure = Failure::new(context, &refused, operation);
                // As recorded: too many operations are counted behind the front end.
                failure.no_cache |= changeset.exceeds_limit;
                writer.changeset(&id, [failure.part(operation)]);
            }
        }
    }
    Ok(())
}

/// Makes all changes of a changeset, or none.
async fn execute(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    changeset: &Changeset<'_>,
) -> Result<Vec<Answer>, Refused> {
    if changeset.exceeds_limit {
        return Err(Refused { index: OPERATIONS_MAX - 1, error: Changeset::limit_error() });
    }
    let mut prepared = Prepared::default();
    for (index, operation) in changeset.operations.iter().enumerate() {
        prepared.add(context, permit, operation).await.map_err(|error| Refused { index, error })?;
    }
    let Some((table, name)) = prepared.table else { return Ok(Vec::new()) };
    let levels = prepared.levels;
    let keys: Vec<_> = prepared
        .changes
        .iter()
        .map(|change| (change.partition_key.clone(), change.row_key.clone()))
        .collect();
    let applied = table.commit(context, prepared.changes).await?;
    let answers = changeset.operations.iter().zip(keys).zip(levels).zip(&applied).enumerate();
    answers
        .map(|(index, (((operation, keys), level), applied))| {
            Answer::new(context, &name, operation, &keys, level, applied)
                .map_err(|error| Refused { index, error })
        })
        .collect()
}

/// The changes of a changeset, checked one by one: one table, one partition, each row once.
#[derive(Default)]
struct Prepared {
    table: Option<(AnyTable, TableName<'static>)>,
    changes: Vec<EntityChange>,
    /// At which level each change is echoed, if it is. Known before anything is committed: an answer that cannot
    /// be given is a reason to refuse.
    levels: Vec<Option<MetadataLevel>>,
    rows: HashSet<String>,
}

impl Prepared {
    /// Each change asks for a permit of its own.
    async fn add(
        &mut self,
        context: &RequestContext<'_>,
        batch: Permit<'_>,
        operation: &Operation<'_>,
    ) -> Result<()> {
        let resource = operation.resource(&context.account.name)?;
        let Some(name) = resource.table().cloned() else {
            return Err(ErrorCode::InvalidInput.into());
        };
        let condition = Condition::from_header(operation.if_match)?;
        let kind = match (operation.verb, &resource) {
            (Verb::Post, ResourcePath::TableEntities(_) | ResourcePath::BelowTable(_)) => {
                EntityOperation::Insert
            }
            (
                verb @ (Verb::Put | Verb::Merge | Verb::Delete),
                ResourcePath::Entity { .. } | ResourcePath::MismatchedKeys(_),
            ) => entity_operation(verb, condition != Condition::None),
            _ => return Err(ErrorCode::InvalidInput.into()),
        };
        let permit = batch.for_part(entity_access(&name, kind))?;
        match &self.table {
            None => {
                let table = AnyTable::find(context, permit, &name).await?;
                self.table = Some((table, name.into_owned()));
            }
            Some((_, first)) if first.is_same_table(&name) => {}
            Some(_) => return Err(ErrorCode::CommandsInBatchActOnDifferentPartitions.into()),
        }
        let change = match resource {
            ResourcePath::Entity { table, partition_key, row_key } => {
                if !context.state.settings.loose {
                    refuse_if_none_match(operation.if_none_match, operation.if_match)?;
                }
                let address = EntityAddress { table, partition_key, row_key };
                EntityChange::at(operation.verb, &address, condition, operation.body)?
            }
            ResourcePath::MismatchedKeys(table) => {
                return Err(key_count_error(&context.account.name, table.as_str()));
            }
            _ => EntityChange::insert(operation.body)?,
        };
        permit.check_key(&change.partition_key, &change.row_key)?;
        if self.changes.first().is_some_and(|first| first.partition_key != change.partition_key) {
            return Err(ErrorCode::CommandsInBatchActOnDifferentPartitions.into());
        }
        if !self.rows.insert(change.row_key.clone()) {
            return Err(ErrorCode::InvalidDuplicateRow.into());
        }
        let is_echoed = kind == EntityOperation::Insert
            && preference(operation) != Some(Preference::ReturnNoContent);
        self.levels.push(is_echoed.then(|| level(operation)).transpose()?);
        self.changes.push(change);
        Ok(())
    }
}

/// What an operation came to, with the texts that its part of the response borrows.
enum Answer {
    Inserted { location: String, etag: String, echo: Option<(MetadataLevel, Vec<u8>)> },
    Updated { etag: String },
    Deleted,
}

impl Answer {
    fn new(
        context: &RequestContext<'_>,
        table: &TableName<'_>,
        operation: &Operation<'_>,
        (partition_key, row_key): &(String, String),
        level: Option<MetadataLevel>,
        applied: &Applied,
    ) -> Result<Self> {
        let etag = applied.timestamp.to_etag();
        Ok(match operation.verb {
            Verb::Delete => Self::Deleted,
            Verb::Post => {
                let base = context.head.base();
                let location = insert_entity::location(&base, table, partition_key, row_key);
                let echo = |level| {
                    insert_entity::echo(context, table, partition_key, row_key, applied, level)
                        .map(|echo| (level, echo))
                };
                Self::Inserted { location, etag, echo: level.map(echo).transpose()? }
            }
            _ => Self::Updated { etag },
        })
    }

    fn part<'a>(&'a self, operation: &Operation<'a>) -> PartResponse<'a> {
        let (outcome, preference_applied) = match self {
            Self::Deleted => (Outcome::Deleted, None),
            Self::Updated { etag } => (Outcome::Updated { etag }, None),
            Self::Inserted { location, etag, echo: None } => {
                (Outcome::Inserted { location, etag }, preference(operation))
            }
            Self::Inserted { location, etag, echo: Some((level, body)) } => {
                let content_type = level.content_type();
                let outcome = Outcome::InsertedWithContent { content_type, location, etag, body };
                (outcome, preference(operation))
            }
        };
        PartResponse { content_id: operation.content_id, preference_applied, outcome }
    }
}

/// The one part that stands for a changeset which was not executed.
struct Failure {
    status: u16,
    no_cache: bool,
    has_table: bool,
    level: MetadataLevel,
    body: Vec<u8>,
}

impl Failure {
    fn new(
        context: &RequestContext<'_>,
        refused: &Refused,
        operation: Option<&Operation<'_>>,
    ) -> Self {
        let Refused { index, error } = refused;
        let mut body = Vec::with_capacity(256);
        let message = indexed_message(*index, &error.explained_message());
        let id = context.id.to_string();
        push_error(&mut body, error.code().as_str(), &message, &id, context.state.clock.now());
        Self {
            status: error.status(),
            no_cache: !is_front_end(error.code()),
            has_table: error.code() != ErrorCode::TableNotFound,
            level: operation.and_then(|operation| level(operation).ok()).unwrap_or_default(),
            body,
        }
    }

    fn part<'a>(&'a self, operation: Option<&Operation<'a>>) -> PartResponse<'a> {
        PartResponse {
            content_id: operation.and_then(|operation| operation.content_id),
            // As recorded: without a table there is nothing that a preference could apply to.
            preference_applied: operation.and_then(preference).filter(|_| self.has_table),
            outcome: Outcome::Failed {
                status: self.status,
                no_cache: self.no_cache,
                content_type: self.level.content_type(),
                body: &self.body,
            },
        }
    }
}

/// The query that a batch may consist of: one entity by its keys.
async fn query(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    operation: &Operation<'_>,
    writer: &mut BatchWriter<'_>,
) -> Result<()> {
    let level = level(operation)?;
    let found = read(context, permit, operation, level).await;
    match found {
        Ok((body, timestamp)) => {
            let etag = timestamp.to_etag();
            let content_type = level.content_type();
            let outcome = Outcome::Queried { content_type, etag: Some(&etag), body: &body };
            let content_id = operation.content_id;
            writer.single(&PartResponse { content_id, preference_applied: None, outcome });
        }
        Err(error) if error.status() >= 500 && error.code() != ErrorCode::NotImplemented => {
            return Err(error);
        }
        Err(error) => {
            context.notes.set_failure(&error, Some(0));
            let failure = Failure::new(context, &Refused { index: 0, error }, Some(operation));
            writer.single(&failure.part(Some(operation)));
        }
    }
    Ok(())
}

async fn read(
    context: &RequestContext<'_>,
    batch: Permit<'_>,
    operation: &Operation<'_>,
    level: MetadataLevel,
) -> Result<(Vec<u8>, tavola_wire::Ticks)> {
    match operation.resource(&context.account.name)? {
        ResourcePath::Entity { table, partition_key, row_key } => {
            let address = EntityAddress { table, partition_key, row_key };
            let query = operation.query()?;
            let permit = batch.for_part(entity_access(&address.table, EntityOperation::Get))?;
            get_entity::read(context, permit, &address, level, query.select()).await
        }
        _ => Err(StorageError::new(ErrorCode::NotImplemented)),
    }
}

fn entity_access<'a>(table: &'a TableName<'_>, operation: EntityOperation) -> Access<'a> {
    Access::To(sas::Access::Entity { table: table.as_str(), operation })
}

fn preference(operation: &Operation<'_>) -> Option<Preference> {
    let is_insert = operation.verb == Verb::Post;
    operation.prefer.filter(|_| is_insert).and_then(Preference::parse)
}

fn level(operation: &Operation<'_>) -> Result<MetadataLevel> {
    MetadataLevel::negotiate(operation.query()?.format(), operation.accept)
}
