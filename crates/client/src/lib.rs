#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

// The derive macro writes `::tavola_client`, in this crate too.
extern crate self as tavola_client;

/// The page for those who come from another crate: its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-azure-data-tables.md")]
struct FromAzureDataTables;

#[cfg(feature = "blocking")]
pub mod blocking;
mod core;
#[doc(hidden)]
pub mod macros;
pub mod patterns;
pub mod queue;
mod table;

pub use self::core::builder::ClientBuilder;
pub use self::core::clock::now;
pub use self::core::connection_string::ConnectionString;
pub use self::core::credential::{
    Credential, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, SasCredential, SharedKeyCredential,
};
pub use self::core::error::{ErrorExt, Result, ServiceError};
pub use self::core::options::ServiceClientOptions;
pub use self::core::pager::{Continuation, Page, Pager, Pages};
pub use self::core::response::{ResponseInfo, WriteResponse};
pub use self::core::transport::{TransportOptions, new_transport};
pub use entity::*;
#[doc(hidden)]
pub use filter::Operator;
pub use filter::{
    Column, Filter, PARTITION_KEY, QueryCost, ROW_KEY, ScanWarning, TIMESTAMP, prefix_end,
};
pub use parallel::merge_sorted;
pub use table::*;
pub use transaction::{
    Operation, TRANSACTION_BYTES_MAX, TRANSACTION_OPERATIONS_MAX, Transaction, TransactionResponse,
};
pub use value::{DateTime, EdmProperty, EdmValue};

// The patterns are written against these paths.
pub(crate) use self::core::error;
pub(crate) use self::table::{entity, filter, parallel, transaction, value};

/// Implements [`TableEntity`](trait@TableEntity) for a struct, or for an enum over several of them.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{Entity, TableEntity, Uuid};
///
/// #[derive(TableEntity, Debug, PartialEq)]
/// #[table(rename_all = "PascalCase", entity_type = "Employee", columns)]
/// struct Employee {
///     #[table(partition_key)]
///     department: String,
///     #[table(row_key)]
///     id: String,
///     #[table(rename = "Mail")]
///     email: Option<String>,
///     /// Entities from before this property was added have 0.
///     #[table(default)]
///     age: i32,
///     badge: Uuid,
///     /// Any serde type, as a text in JSON.
///     #[table(json, default)]
///     skills: Vec<String>,
///     #[table(skip)]
///     is_shown: bool,
/// }
///
/// #[derive(TableEntity, Debug, PartialEq)]
/// enum Item {
///     #[table(entity_type = "Employee")]
///     Employee(Employee),
///     #[table(row_key_prefix = "DEPT_")]
///     Department(Entity),
///     #[table(partition_key_prefix = "Review_")]
///     Review(Entity),
///     #[table(other)]
///     Other(Entity),
/// }
///
/// let stored = Entity::new("Sales", "00010")
///     .with("EntityType", "Employee")
///     .with("Mail", "jens@contoso.com")
///     .with("Badge", Uuid::from_u128(7));
/// let stored = stored.with("Skills", r#"["Rust","chess"]"#);
/// let Item::Employee(jens) = Item::from_entity(stored)? else { panic!("an employee") };
/// assert_eq!((jens.email.as_deref(), jens.age), (Some("jens@contoso.com"), 0));
/// assert_eq!(jens.skills, ["Rust", "chess"]);
/// assert!(matches!(Item::from_entity(Entity::new("Review_00010", "2026"))?, Item::Review(_)));
/// assert!(Item::Review(Entity::new("Sales", "2026")).to_entity().is_err(), "the prefix is missing");
/// assert_eq!(Employee::AGE.ge(18).to_string(), "Age ge 18");
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use tavola_client_derive::TableEntity;

/// A [`Filter`] that reads like Rust.
///
/// ```
/// use tavola_client::filter;
///
/// let (name, since) = ("O'Brien", 30);
/// let wanted = filter!(
///     PartitionKey == "Sales" && RowKey.starts_with("0001") && (Name == name || Age >= since) && !Retired
/// );
/// assert_eq!(
///     wanted.to_string(),
///     "PartitionKey eq 'Sales' and RowKey ge '0001' and RowKey lt '0002' \
///      and (Name eq 'O''Brien' or Age ge 30) and not (Retired eq true)"
/// );
/// ```
#[doc(inline)]
pub use tavola_client_derive::filter;

/// The codes of the service's errors.
///
/// ```
/// use tavola_client::{ErrorCode, ErrorExt};
///
/// fn is_busy(error: &azure_core::Error) -> bool {
///     matches!(error.code(), Some(ErrorCode::ServerBusy | ErrorCode::OperationTimedOut))
/// }
/// # assert_eq!(ErrorCode::ServerBusy.as_str(), "ServerBusy");
/// ```
#[doc(inline)]
pub use tavola_wire::ErrorCode;

/// What a shared access signature is made of.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::{
///     AccountSasSpec, DateTime, IpRange, KeyBound, KeyRangeLimit, Permissions, Protocols,
///     ResourceTypes, TableSasSpec, TableServiceClient,
/// };
///
/// let service = TableServiceClient::from_connection_string("UseDevelopmentStorage=true", None)?;
/// let expiry = DateTime::parse_iso("2030-01-01").unwrap();
///
/// // For the whole account, over TLS and from these addresses alone.
/// let account = AccountSasSpec {
///     ip_range: IpRange::parse("10.0.0.1-10.0.0.9"),
///     protocols: Some(Protocols::HttpsOnly),
///     ..AccountSasSpec::new(Permissions::READ | Permissions::LIST, ResourceTypes::ALL, expiry)
/// };
/// assert!(service.sas(&account)?.contains("&sip=10.0.0.1-10.0.0.9&spr=https&"));
///
/// // For one partition of one table.
/// let sales = || Some(KeyBound { partition_key: "Sales".into(), row_key: None });
/// let table = TableSasSpec {
///     range: KeyRangeLimit { start: sales(), end: sales() },
///     ..TableSasSpec::new("people", Permissions::READ | Permissions::ADD, expiry)
/// };
/// assert!(service.table_client("people")?.sas(&table)?.contains("&spk=Sales&epk=Sales&"));
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use tavola_wire::auth::sas::{
    AccountSasSpec, IpRange, KeyBound, KeyRangeLimit, Permissions, Protocols, ResourceTypes,
    TableSasSpec,
};

/// The types of properties.
///
/// ```
/// use tavola_client::{EdmType, EdmValue};
///
/// assert_eq!(EdmValue::from(85_000_i64).edm_type(), EdmType::Int64);
/// assert_eq!(EdmType::Int64.name(), "Edm.Int64");
/// ```
#[doc(inline)]
pub use tavola_wire::table::stored::EdmType;

/// A stored access policy, which signatures can refer to by its id.
///
/// ```no_run
/// # async fn run(people: tavola_client::TableClient) -> azure_core::Result<()> {
/// use tavola_client::{AccessPolicy, Permissions, SignedIdentifier};
///
/// let policy = AccessPolicy { start: None, expiry: None, permission: Some(Permissions::READ) };
/// let readers = SignedIdentifier { id: "readers".into(), access_policy: Some(policy) };
/// people.set_access_policies(&[readers], None).await?;
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use tavola_wire::auth::{AccessPolicy, SignedIdentifier};

/// The settings of the service.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
/// use tavola_client::{CorsRule, Logging, Metrics, RetentionPolicy, ServiceProperties};
///
/// let week = RetentionPolicy { days: Some(7) };
/// let properties = ServiceProperties {
///     logging: Logging { read: false, write: true, delete: true, retention: week },
///     hour_metrics: Metrics { include_apis: Some(true), retention: week },
///     cors: vec![CorsRule {
///         allowed_origins: vec!["https://contoso.com".into()],
///         allowed_methods: vec!["GET".into()],
///         max_age_seconds: 60,
///         exposed_headers: Vec::new(),
///         allowed_headers: vec!["x-ms-*".into()],
///     }],
///     ..Default::default()
/// };
/// service.set_properties(&properties, None).await?;
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use tavola_wire::xml::service_properties::{
    CorsRule, Logging, Metrics, RetentionPolicy, ServiceProperties,
};

/// How far the readable copy is.
///
/// ```no_run
/// # async fn run(service: tavola_client::TableServiceClient) -> azure_core::Result<()> {
/// use tavola_client::ServiceStats;
///
/// match service.get_stats(None).await? {
///     ServiceStats::Live { last_sync } => println!("in step up to {}", last_sync.to_iso()),
///     ServiceStats::Bootstrap | ServiceStats::Unavailable => println!("no copy to read from"),
/// }
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use tavola_wire::xml::stats::ServiceStats;

/// The crate that this one stands on: its options, policies and credentials.
pub use azure_core;
pub use azure_core::http::{Etag, StatusCode, Url};
pub use azure_core::{Error, Uuid};
/// What makes `try_next` and `try_collect` work on a [`Pager`].
pub use futures::{StreamExt, TryStreamExt};
