//! Signatures that the client makes and uses.

use futures::TryStreamExt;
use tavola_client::{
    AccessPolicy, AccountSasSpec, DateTime, Entity, ErrorCode, ErrorExt, KeyRangeLimit,
    Permissions, ResourceTypes, SasCredential, SignedIdentifier, TableClient, TableSasSpec,
    TableServiceClient,
};

use crate::support::{Defect, TestTable};

fn expiry() -> DateTime {
    DateTime::parse_iso("2040-01-01").unwrap()
}

fn with_sas(table: &TestTable, token: &str) -> TableClient {
    let endpoint = table.account.service().endpoint().to_string();
    TableClient::new(&endpoint, table.name(), SasCredential::new(token), None).unwrap()
}

#[tokio::test]
async fn an_account_signature_opens_what_it_says() {
    let table = TestTable::create().await;
    table.insert_entity(&Entity::new("p", "r"), None).await.unwrap();
    let service = table.account.service();
    let spec = AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, expiry());
    let token = service.sas(&spec).unwrap();
    let url = format!("{}?{token}", service.endpoint());
    let reader = TableServiceClient::from_sas_url(&url, None).unwrap();
    let reader = reader.table_client(table.name()).unwrap();
    assert!(reader.get_entity::<Entity>("p", "r", None).await.is_ok());
    let error = reader.insert_entity(&Entity::new("p", "s"), None).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AuthorizationPermissionMismatch));
    assert!(reader.sas(&TableSasSpec::new("t", Permissions::READ, expiry())).is_err());
    table.delete().await;
}

#[tokio::test]
async fn a_table_signature_can_be_bound_to_a_range() {
    let table = TestTable::create().await;
    for partition in ["a", "b", "c"] {
        table.insert_entity(&Entity::new(partition, "r"), None).await.unwrap();
    }
    let spec = TableSasSpec {
        range: KeyRangeLimit::new(Some("b"), None, Some("b"), None).unwrap(),
        ..TableSasSpec::new(table.name(), Permissions::TABLE_ALL, expiry())
    };
    let holder = with_sas(&table, &table.sas(&spec).unwrap());
    assert!(holder.get_entity::<Entity>("b", "r", None).await.is_ok());
    if !table.account.has(Defect::SasRanges) {
        let found: Vec<_> = holder.query_entities::<Entity>(None).try_collect().await.unwrap();
        assert_eq!(found.len(), 1);
        let error = holder.insert_entity(&Entity::new("c", "s"), None).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::AuthorizationFailure));
    }
    table.delete().await;
}

#[tokio::test]
async fn a_signature_by_policy_ends_with_the_policy() {
    let table = TestTable::create().await;
    table.insert_entity(&Entity::new("p", "r"), None).await.unwrap();
    let policy = SignedIdentifier {
        id: "readers".into(),
        access_policy: Some(AccessPolicy {
            start: table.account.has(Defect::PolicyStart).then_some(DateTime::MIN_STORED),
            expiry: Some(expiry()),
            permission: Some(Permissions::READ),
        }),
    };
    table.set_access_policies(&[policy], None).await.unwrap();
    let token = table.sas(&TableSasSpec::with_policy(table.name(), "readers")).unwrap();
    let holder = with_sas(&table, &token);
    // Azure takes up to 30 seconds to follow a policy; what runs here follows at once.
    if table.account.is_local() {
        assert!(holder.get_entity::<Entity>("p", "r", None).await.is_ok());
        table.set_access_policies(&[], None).await.unwrap();
        let error = holder.get_entity::<Entity>("p", "r", None).await.unwrap_err();
        let expected = match table.account.has(Defect::RevokedPolicyCode) {
            true => ErrorCode::AuthorizationFailure,
            false => ErrorCode::AuthenticationFailed,
        };
        assert_eq!(error.code(), Some(expected));
    }
    table.delete().await;
}
