//! Entity group transactions: up to a hundred changes of one partition, all or none.

use std::collections::HashSet;

use azure_core::Uuid;
use azure_core::http::{Etag, Method};
use tavola_wire::table::batch::request::OPERATIONS_MAX;
use tavola_wire::table::batch::{
    BATCH_BYTES_MAX, BatchRequestWriter, OutgoingOperation, read_response,
};

use super::encryption::EncryptionPolicy;
use super::entity::{Entity, TableEntity, check_keys, json};
use super::spec::{ODATA, TABLE_SERVICE};
use super::value::EdmValue;
use super::{IfMatch, UpdateMode, entity_link, method_of};
use crate::core::error::{Result, ServiceError, conversion, refused};
use crate::core::options::CallOptions;
use crate::core::pipeline::{Call, ServicePipeline};
use crate::core::response::{Answer, ResponseInfo};

/// Bytes in the body of a transaction.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{TRANSACTION_BYTES_MAX, TRANSACTION_OPERATIONS_MAX};
///
/// // Bulk work keeps both limits by itself; this is for those who pack on their own.
/// assert_eq!((TRANSACTION_OPERATIONS_MAX, TRANSACTION_BYTES_MAX), (100, 4_194_304));
/// # Ok(())
/// # }
/// ```
pub const TRANSACTION_BYTES_MAX: usize = BATCH_BYTES_MAX;
/// Operations in a transaction.
pub const TRANSACTION_OPERATIONS_MAX: usize = OPERATIONS_MAX;

/// Changes of one partition that happen together.
///
/// What the service would refuse is refused while the transaction is built: a second partition, an entity twice, more
/// than a hundred operations.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{Entity, IfMatch, Operation, Transaction, UpdateMode};
///
/// let mut transaction = Transaction::new();
/// transaction.insert(&Entity::new("Sales", "00010"))?;
/// assert!(transaction.insert(&Entity::new("Sales", "00010")).is_err(), "the same entity twice");
/// assert!(transaction.insert(&Entity::new("Marketing", "00001")).is_err(), "another partition");
/// assert_eq!((transaction.len(), transaction.is_empty()), (1, false));
///
/// // The other operations, one after another or in a chain.
/// transaction
///     .upsert(&Entity::new("Sales", "00011").with("Age", 28), UpdateMode::Merge)?
///     .update(&Entity::new("Sales", "00012").with("Age", 41), UpdateMode::Merge, IfMatch::Any)?
///     .delete("Sales", "00013", IfMatch::Any)?
///     .push(Operation::insert(&Entity::new("Sales", "00014"))?)?;
/// let rows: Vec<_> = transaction.operations().iter().map(|operation| operation.row_key()).collect();
/// assert_eq!(rows, ["00010", "00011", "00012", "00013", "00014"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    operations: Vec<Operation>,
    row_keys: HashSet<String>,
}

/// One change of an entity, for a [`Transaction`] or [bulk work](crate::bulk).
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{Entity, IfMatch, Operation, UpdateMode};
///
/// let jens = Entity::new("Sales", "00010").with("Age", 34);
/// let operations = [
///     Operation::insert(&jens)?,
///     Operation::upsert(&jens, UpdateMode::Merge)?,
///     Operation::update(&jens, UpdateMode::Replace, IfMatch::Any)?,
///     Operation::delete("Sales", "00010", IfMatch::Any)?,
/// ];
/// for operation in &operations {
///     assert_eq!((operation.partition_key(), operation.row_key()), ("Sales", "00010"));
/// }
/// assert!(Operation::insert(&Entity::new("a/b", "1")).is_err(), "no key has a slash");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    pub(crate) action: Action,
    pub(crate) entity: Entity,
    encrypted: &'static [&'static str],
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Insert,
    Upsert(UpdateMode),
    Update(UpdateMode, IfMatch),
    Delete(IfMatch),
}

impl Operation {
    /// Adds an entity; fails if there is one with its keys.
    ///
    /// # Errors
    /// A value that is no entity.
    pub fn insert<T: TableEntity>(entity: &T) -> Result<Self> {
        Self::new(Action::Insert, entity)
    }

    /// Adds an entity, or changes the one that has its keys.
    ///
    /// # Errors
    /// A value that is no entity.
    pub fn upsert<T: TableEntity>(entity: &T, mode: UpdateMode) -> Result<Self> {
        Self::new(Action::Upsert(mode), entity)
    }

    /// Changes an entity that is there.
    ///
    /// # Errors
    /// A value that is no entity.
    pub fn update<T: TableEntity>(
        entity: &T,
        mode: UpdateMode,
        if_match: impl Into<IfMatch>,
    ) -> Result<Self> {
        Self::new(Action::Update(mode, if_match.into()), entity)
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// Keys that no entity can have.
    pub fn delete(
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
        if_match: impl Into<IfMatch>,
    ) -> Result<Self> {
        let entity = Entity::new(partition_key, row_key);
        Self::new(Action::Delete(if_match.into()), &entity)
    }

    /// The partition that it changes.
    pub fn partition_key(&self) -> &str {
        self.entity.partition_key()
    }

    /// The row that it changes.
    pub fn row_key(&self) -> &str {
        self.entity.row_key()
    }

    fn new<T: TableEntity>(action: Action, value: &T) -> Result<Self> {
        let entity = value.to_entity()?;
        check_keys(entity.partition_key(), entity.row_key())?;
        Ok(Self { action, entity, encrypted: value.encrypted_properties() })
    }

    /// A bound of the bytes that this takes in the body, for packing transactions.
    pub(crate) fn body_bytes_max(&self) -> usize {
        let property =
            |(name, value): (&str, &EdmValue)| 2 * name.len() + 64 + text_bytes_max(value);
        let keys = self.partition_key().len() + self.row_key().len();
        // Headers, boundaries and, with encryption, the metadata; keys are in the URL, percent-encoded, and in the body.
        2048 + 9 * keys + self.entity.properties().map(property).sum::<usize>()
    }
}

/// A bound of a value's bytes in JSON, plain or encrypted.
fn text_bytes_max(value: &EdmValue) -> usize {
    match value {
        EdmValue::String(text) => {
            // A control character takes six bytes, a quote two; encryption takes a third more and a frame.
            let is_escaped = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
            let escapes = text.as_bytes().iter().filter(|byte| is_escaped(byte)).count();
            (text.len() + 5 * escapes).max(text.len() * 4 / 3 + 64)
        }
        EdmValue::Binary(bytes) => bytes.len() * 4 / 3 + 64,
        _ => 64,
    }
}

impl Transaction {
    /// A transaction without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entity; the transaction fails if there is one with its keys.
    ///
    /// # Errors
    /// An operation that cannot be part of this transaction; see [`Transaction::push`].
    pub fn insert<T: TableEntity>(&mut self, entity: &T) -> Result<&mut Self> {
        self.push(Operation::insert(entity)?)
    }

    /// Adds an entity, or changes the one that has its keys.
    ///
    /// # Errors
    /// See [`Transaction::push`].
    pub fn upsert<T: TableEntity>(&mut self, entity: &T, mode: UpdateMode) -> Result<&mut Self> {
        self.push(Operation::upsert(entity, mode)?)
    }

    /// Changes an entity that is there.
    ///
    /// # Errors
    /// See [`Transaction::push`].
    pub fn update<T: TableEntity>(
        &mut self,
        entity: &T,
        mode: UpdateMode,
        if_match: impl Into<IfMatch>,
    ) -> Result<&mut Self> {
        self.push(Operation::update(entity, mode, if_match)?)
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// See [`Transaction::push`].
    pub fn delete(
        &mut self,
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
        if_match: impl Into<IfMatch>,
    ) -> Result<&mut Self> {
        self.push(Operation::delete(partition_key, row_key, if_match)?)
    }

    /// Adds any operation.
    ///
    /// # Errors
    /// The hundred and first operation, another partition, or an entity that the transaction changes already.
    pub fn push(&mut self, operation: Operation) -> Result<&mut Self> {
        if self.len() == TRANSACTION_OPERATIONS_MAX {
            return Err(refused("a transaction has at most 100 operations"));
        }
        if let Some(first) = self.operations.first()
            && first.partition_key() != operation.partition_key()
        {
            return Err(refused(format!(
                "a transaction changes one partition: first={} next={}",
                first.partition_key(),
                operation.partition_key()
            )));
        }
        if !self.row_keys.insert(operation.row_key().to_owned()) {
            return Err(refused(format!(
                "a transaction changes an entity once: row_key={}",
                operation.row_key()
            )));
        }
        self.operations.push(operation);
        Ok(self)
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Tells whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The operations, in their order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

/// A transaction that succeeded, with the new versions of what it changed.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use tavola_client::{Entity, IfMatch, Transaction, TransactionResponse};
///
/// let mut transaction = Transaction::new();
/// transaction.insert(&Entity::new("Sales", "00010"))?.delete("Sales", "00011", IfMatch::Any)?;
/// let done: TransactionResponse = people.submit_transaction(&transaction, None).await?;
/// assert!(done.etags()[0].is_some() && done.etags()[1].is_none(), "what was deleted has no version");
/// println!("by request {:?}", done.info().and_then(|info| info.request_id()));
/// let etags = done.into_etags();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionResponse {
    etags: Vec<Option<Etag>>,
    info: Option<ResponseInfo>,
}

impl TransactionResponse {
    /// The new versions, in the order of the operations; a deleted entity has none.
    pub fn etags(&self) -> &[Option<Etag>] {
        &self.etags
    }

    /// The new versions alone.
    pub fn into_etags(self) -> Vec<Option<Etag>> {
        self.etags
    }

    /// The status and the names of the request; `None` for a transaction without operations, which sends none.
    pub fn info(&self) -> Option<&ResponseInfo> {
        self.info.as_ref()
    }
}

pub(crate) async fn submit(
    pipeline: &ServicePipeline,
    table: &str,
    transaction: &Transaction,
    encryption: Option<&EncryptionPolicy>,
    options: &CallOptions,
) -> Result<TransactionResponse> {
    if transaction.is_empty() {
        return Ok(TransactionResponse::default());
    }
    let mut writer = BatchRequestWriter::new(Uuid::new_v4().to_string());
    for operation in &transaction.operations {
        write(&mut writer, pipeline, table, operation, encryption).await?;
    }
    let content_type = writer.content_type();
    let body = writer.finish();
    if body.len() > TRANSACTION_BYTES_MAX {
        return Err(refused(format!("a transaction has at most 4 MiB: bytes={}", body.len())));
    }
    let call = Call {
        headers: &[("content-type", &content_type)],
        body,
        format: ODATA,
        ..Call::new("submit_transaction", Method::Post, "$batch")
    };
    let answer = pipeline.send(call, options).await?;
    let content_type = answer.header("content-type").unwrap_or_default();
    let replies = read_response(content_type, answer.body())
        .map_err(|_| conversion("the answer to the transaction cannot be read"))?;
    if let Some(failed) = replies.iter().find(|reply| reply.status >= 300) {
        return Err(part_error(&answer, failed.status, failed.body, transaction.len()).into());
    }
    if replies.len() != transaction.len() {
        return Err(conversion("the answer to the transaction has another number of parts"));
    }
    let etags = replies.iter().map(|reply| reply.etag.map(Etag::from)).collect();
    Ok(TransactionResponse { etags, info: Some(answer.info) })
}

/// Reads the failed part of a transaction of this many operations. Its message begins with the place of the operation.
fn part_error(answer: &Answer, status: u16, body: &[u8], operations: usize) -> ServiceError {
    let error = ServiceError::from_part(&TABLE_SERVICE, answer, status.into(), body);
    let message = error.message().to_owned();
    let place = message.split_once(':').and_then(|(index, rest)| Some((index.parse().ok()?, rest)));
    match place {
        Some((index, rest)) => {
            let index = Some(index).filter(|index| *index < operations);
            error.of_operation(index, rest.to_owned())
        }
        // The service leaves the index out when there is one operation only.
        None => error.of_operation((operations == 1).then_some(0), message),
    }
}

async fn write(
    writer: &mut BatchRequestWriter,
    pipeline: &ServicePipeline,
    table: &str,
    operation: &Operation,
    encryption: Option<&EncryptionPolicy>,
) -> Result<()> {
    let Operation { action, entity, encrypted } = operation;
    let link = entity_link(table, entity.partition_key(), entity.row_key());
    let (method, resource, if_match) = match action {
        Action::Insert => (Method::Post, table, None),
        Action::Upsert(mode) => (method_of(*mode), link.as_str(), None),
        Action::Update(mode, if_match) => (method_of(*mode), link.as_str(), Some(if_match)),
        Action::Delete(if_match) => (Method::Delete, link.as_str(), Some(if_match)),
    };
    let body = match action {
        Action::Delete(_) => Vec::new(),
        _ => json::write_entity(&outgoing(action, entity, encrypted, encryption).await?),
    };
    let mut headers = vec![("Accept", "application/json;odata=minimalmetadata")];
    if !body.is_empty() {
        headers.push(("Content-Type", "application/json"));
    }
    headers.push(("DataServiceVersion", "3.0"));
    if *action == Action::Insert {
        headers.push(("Prefer", "return-no-content"));
    }
    if let Some(if_match) = if_match {
        headers.push(("If-Match", if_match.as_str()));
    }
    let url = pipeline.url(resource);
    writer.push(&OutgoingOperation {
        verb: method.as_str(),
        url: &url,
        headers: &headers,
        body: &body,
    });
    Ok(())
}

async fn outgoing(
    action: &Action,
    entity: &Entity,
    encrypted: &'static [&'static str],
    encryption: Option<&EncryptionPolicy>,
) -> Result<Entity> {
    let is_merge =
        matches!(action, Action::Upsert(UpdateMode::Merge) | Action::Update(UpdateMode::Merge, _));
    match encryption {
        Some(policy) if is_merge => policy.refuse_merge().map(|()| entity.clone()),
        Some(policy) => policy.encrypt(entity.clone(), encrypted).await,
        None if !encrypted.is_empty() => {
            Err(refused("the type has properties to encrypt and the client has no keys for them"))
        }
        None => Ok(entity.clone()),
    }
}

#[cfg(test)]
mod tests {
    use azure_core::http::headers::Headers;
    use azure_core::http::{RawResponse, StatusCode};

    use super::*;
    use crate::{ErrorCode, ErrorExt};

    const BODY: &str = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"3:The specified entity already exists.\nRequestId:1\nTime:2"}}}"#;

    fn failed(operations: usize) -> azure_core::Error {
        let mut headers = Headers::new();
        headers.insert("x-ms-request-id", "fc61");
        let raw = RawResponse::from_bytes(StatusCode::Accepted, headers, "");
        part_error(&Answer::new(raw, None, false), 409, BODY.as_bytes(), operations).into()
    }

    #[test]
    fn the_answer_of_a_part_names_the_operation() {
        let error = failed(5);
        assert_eq!(error.failed_operation(), Some(3));
        assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
        assert_eq!(error.http_status(), Some(StatusCode::Conflict));
        let answer = error.service_error().unwrap();
        assert_eq!(answer.message(), "The specified entity already exists.");
        assert_eq!(answer.request_id(), Some("fc61"));
        assert!(!error.is_transient() && !error.may_have_been_applied());
    }

    #[test]
    fn an_index_that_cannot_be_is_not_believed() {
        assert_eq!(failed(2).failed_operation(), None);
    }
}
