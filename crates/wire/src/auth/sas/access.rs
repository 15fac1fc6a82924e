//! The operations that need permission, of all services. Which letters each needs is said in the file of its service.

/// An operation that needs permission. A batch asks for each of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    /// Query Tables, and Get Table, which lists one.
    QueryTables,
    CreateTable,
    DeleteTable,
    /// Get or Set Table ACL.
    TableAcl,
    Entity {
        table: &'a str,
        operation: EntityOperation,
    },
    Queue(QueueAccess),
    Blob(BlobAccess),
}

/// An operation on the entities of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityOperation {
    Get,
    Query,
    Insert,
    /// Update or Merge with a condition.
    Update,
    /// Insert Or Replace, Insert Or Merge.
    Upsert,
    Delete,
}

/// An operation of the queue service that needs permission, beside those that all services have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAccess {
    ListQueues,
    CreateQueue,
    DeleteQueue,
    GetMetadata,
    SetMetadata,
    /// Get or Set Queue ACL.
    Acl,
    PutMessage,
    GetMessages,
    PeekMessages,
    UpdateMessage,
    DeleteMessage,
    ClearMessages,
}

/// An operation of the blob service that needs permission, beside those that all services have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobAccess {
    ListContainers,
    /// Any token will do.
    AccountInformation,
    CreateContainer,
    /// Properties and metadata.
    GetContainer,
    /// Set Container Metadata, Lease Container, Restore Container.
    WriteContainer,
    BreakContainerLease,
    DeleteContainer,
    /// Get or Set Container ACL.
    ContainerAcl,
    ListBlobs,
    /// Find Blobs by Tags, in the account.
    FindBlobs,
    /// Find Blobs by Tags, in a container.
    FindBlobsInContainer,
    Blob(BlobOperation),
}

/// An operation on a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobOperation {
    /// Content, properties, metadata, block list, page ranges; the source of a copy.
    Read,
    /// Put Blob, Put Block List, Snapshot, the destination of a copy. What exists may be replaced only if
    /// [`Grant::may_overwrite`](super::Grant::may_overwrite).
    Create,
    /// Blocks, pages, properties, metadata, tier, Undelete, leases.
    Write,
    Append,
    BreakLease,
    Delete,
    DeleteVersion,
    DeletePermanently,
    Tags,
    /// Immutability policies and legal holds.
    Immutability,
}
