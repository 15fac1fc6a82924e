//! Indexes of a service that keeps them, through the client's own names for them.

use futures::TryStreamExt;
use tavola_client::{
    Entity, ErrorCode, ErrorExt, IndexSpec, IndexState, QueryOptions, TableEntity, filter,
};

use crate::support::TestTable;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(index(name = "ByTown", keys = "Town,LastName", include = "*"))]
#[table(index(name = "ByEmail", keys = "Email", unique))]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    town: String,
    last_name: String,
    email: String,
}

fn person(id: usize) -> Person {
    Person {
        country: "dk".into(),
        id: format!("{id:03}"),
        town: format!("Town{}", id % 3),
        last_name: "Hansen".into(),
        email: format!("{id}@example.com"),
    }
}

#[tokio::test]
async fn a_type_declares_its_indexes() {
    let table = TestTable::create().await;
    if !table.account.is_tavola() {
        assert!(!table.ensure_indexes::<Person>(None).await.unwrap());
        return table.delete().await;
    }
    for id in 0..50 {
        table.insert_entity(&person(id), None).await.unwrap();
    }
    for _ in 0..2 {
        assert!(table.ensure_indexes::<Person>(None).await.unwrap());
    }
    let indexes = table.account.service().indexes().unwrap();
    for (name, spec) in Person::indexes() {
        let built = indexes.wait_until_readable(table.name(), name).await.unwrap();
        assert_eq!((built.spec, built.entries, built.state), (spec, 50, IndexState::Readable));
    }
    let twin = Person { id: "twin".into(), ..person(7) };
    let refused = table.insert_entity(&twin, None).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::UniqueIndexViolation));
    let options = QueryOptions { filter: Some(filter!(Town == "Town1")), ..Default::default() };
    let found: Vec<_> =
        table.query_entities::<Entity>(Some(options)).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(found.len(), 17);
    let listed = indexes.list(Some(table.name()), None).await.unwrap();
    assert_eq!(listed.len(), 2);
    indexes.drop_index(table.name(), "ByTown", None).await.unwrap();
    let gone = indexes.get(table.name(), "ByTown", None).await.unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::ResourceNotFound));
    let wrong = indexes.declare(table.name(), "Wrong", &IndexSpec::on("A,,"), None).await;
    assert_eq!(wrong.unwrap_err().code(), Some(ErrorCode::InvalidInput));
    table.delete().await;
}
