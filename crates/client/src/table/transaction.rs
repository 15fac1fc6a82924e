//! Entity group transactions: up to a hundred changes of one partition, all or none.

use std::collections::HashSet;

use azure_core::Uuid;
use azure_core::http::{ClientMethodOptions, Etag, Method};
use tavola_wire::table::batch::request::OPERATIONS_MAX;
use tavola_wire::table::batch::{BatchRequestWriter, OutgoingOperation, read_response};

use crate::core::error::{Result, TableError, conversion, refused};
use crate::core::pipeline::{Call, Core, Format};
use crate::table::encryption::EncryptionPolicy;
use crate::table::entity::{Entity, TableEntity, check_keys, json};
use crate::table::value::EdmValue;
use crate::table::{IfMatch, UpdateMode, entity_link, method_of};

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
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
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

pub(crate) async fn submit(
    core: &Core,
    table: &str,
    transaction: &Transaction,
    encryption: Option<&EncryptionPolicy>,
    options: &ClientMethodOptions<'static>,
) -> Result<Vec<Option<Etag>>> {
    if transaction.is_empty() {
        return Ok(Vec::new());
    }
    let mut writer = BatchRequestWriter::new(Uuid::new_v4().to_string());
    for operation in &transaction.operations {
        write(&mut writer, core, table, operation, encryption).await?;
    }
    let content_type = writer.content_type();
    let body = writer.finish();
    if body.len() > TRANSACTION_BYTES_MAX {
        return Err(refused(format!("a transaction has at most 4 MiB: bytes={}", body.len())));
    }
    let call = Call {
        method: Method::Post,
        resource: "$batch",
        query: &[],
        headers: &[("content-type", &content_type)],
        body,
        format: Format::Json,
    };
    let (response, maybe_applied) = core.send_watched(call, options).await?;
    let content_type = response.headers().get_str(&"content-type".into())?;
    let replies = read_response(content_type, response.body())
        .map_err(|_| conversion("the answer to the transaction cannot be read"))?;
    if let Some(failed) = replies.iter().find(|reply| reply.status >= 300) {
        let count = transaction.len();
        let error =
            TableError::from_part(failed.status, failed.body, count, &response, maybe_applied);
        return Err(error.into());
    }
    if replies.len() != transaction.len() {
        return Err(conversion("the answer to the transaction has another number of parts"));
    }
    Ok(replies.iter().map(|reply| reply.etag.map(Etag::from)).collect())
}

async fn write(
    writer: &mut BatchRequestWriter,
    core: &Core,
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
    let url = core.url(resource);
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
