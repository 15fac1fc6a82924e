//! Client-side encryption, as the service sees it and as the client does.

use std::sync::Arc;

use futures::TryStreamExt;
use tavola_client::encryption::{EncryptionPolicy, KeyRing};
use tavola_client::{
    EdmType, Entity, IfMatch, QueryOptions, TableEntity, Transaction, UpdateMode, filter,
};

use crate::support::TestTable;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    #[table(encrypt)]
    salary: i64,
    #[table(encrypt)]
    note: Option<String>,
}

/// A table of several types must not forget what one of them marks.
#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Item {
    #[table(entity_type = "Employee")]
    Employee(Employee),
    #[table(other)]
    Other(Entity),
}

fn employee(id: &str) -> Employee {
    Employee {
        department: "Sales".into(),
        id: id.into(),
        name: "Jens".into(),
        salary: 85_000,
        note: Some("b\u{e9}".into()),
    }
}

fn policy(keys: KeyRing) -> EncryptionPolicy {
    EncryptionPolicy::new(Arc::new(keys))
}

#[tokio::test]
async fn marked_properties_are_ciphertext_for_everybody_else() {
    let table = TestTable::create().await;
    let sealed = table.table.clone().with_encryption(policy(KeyRing::new("k1", [1; 32])));
    sealed.insert_entity(&employee("1"), None).await.unwrap();
    let mut transaction = Transaction::new();
    transaction.insert(&employee("2")).unwrap();
    transaction.upsert(&employee("3"), UpdateMode::Replace).unwrap();
    sealed.submit_transaction(&transaction, None).await.unwrap();

    let found: Vec<_> = sealed
        .query_entities::<Employee>(filter!(PartitionKey == "Sales" && Name == "Jens"))
        .map_ok(|stored| stored.into_value())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(found, [employee("1"), employee("2"), employee("3")]);

    let bare = table.get_entity::<Entity>("Sales", "2", None).await.unwrap();
    for name in ["Salary", "Note"] {
        assert_eq!(bare.value(name).unwrap().edm_type(), EdmType::Binary, "{name}");
    }
    assert_eq!(bare.get::<String>("Name").unwrap(), "Jens");

    sealed.insert_entity(&Item::Employee(employee("4")), None).await.unwrap();
    let bare = table.get_entity::<Entity>("Sales", "4", None).await.unwrap();
    assert_eq!(bare.value("Salary").unwrap().edm_type(), EdmType::Binary);
    let item = sealed.get_entity::<Item>("Sales", "4", None).await.unwrap();
    assert_eq!(item.value, Item::Employee(employee("4")));

    let options = QueryOptions { select: Some(vec!["Salary".into()]), ..Default::default() };
    let projected: Vec<_> = sealed.query_entities::<Entity>(options).try_collect().await.unwrap();
    assert_eq!(projected[0].value, Entity::new("Sales", "1").with("Salary", 85_000_i64));
    table.delete().await;
}

#[tokio::test]
async fn a_merge_is_refused_before_anything_is_lost() {
    let table = TestTable::create().await;
    let sealed = table.table.clone().with_encryption(policy(KeyRing::new("k1", [1; 32])));
    sealed.insert_entity(&employee("1"), None).await.unwrap();
    let error = sealed.upsert_entity(&employee("1"), UpdateMode::Merge, None).await.unwrap_err();
    assert!(error.to_string().contains("cannot be merged"), "{error}");
    let mut transaction = Transaction::new();
    transaction.update(&employee("1"), UpdateMode::Merge, IfMatch::Any).unwrap();
    assert!(sealed.submit_transaction(&transaction, None).await.is_err());
    // And a client without keys does not write in the clear what is marked.
    assert!(table.insert_entity(&employee("9"), None).await.is_err());
    assert!(table.submit_transaction(&transaction, None).await.is_err());
    table.delete().await;
}

#[tokio::test]
async fn keys_are_rotated_without_touching_values() {
    let table = TestTable::create().await;
    let old = policy(KeyRing::new("k1", [1; 32]));
    let sealed = table.table.clone().with_encryption(old.clone());
    for id in ["1", "2", "3"] {
        sealed.insert_entity(&employee(id), None).await.unwrap();
    }
    let before = table.get_entity::<Entity>("Sales", "1", None).await.unwrap();

    let both = policy(KeyRing::new("k2", [2; 32]).with_key("k1", [1; 32]));
    let rotated = table.table.clone().with_encryption(both.clone());
    rotated.upsert_entity(&employee("3"), UpdateMode::Replace, None).await.unwrap();
    assert_eq!(both.rewrap(&rotated).await.unwrap(), 2);
    assert_eq!(both.rewrap(&rotated).await.unwrap(), 0);

    let after = table.get_entity::<Entity>("Sales", "1", None).await.unwrap();
    assert_eq!(before.value("Salary"), after.value("Salary"));
    let new_only = table.table.clone().with_encryption(policy(KeyRing::new("k2", [2; 32])));
    let read = new_only.get_entity::<Employee>("Sales", "1", None).await.unwrap();
    assert_eq!(read.value, employee("1"));
    assert!(sealed.get_entity::<Employee>("Sales", "1", None).await.is_err());
    table.delete().await;
}
