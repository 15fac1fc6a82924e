//! The server that Rust programs start in their own tests, with the client that they use.

use tavola_client::{Entity, TableServiceClient, TryStreamExt, filter};
use tavola_server::TestServer;

/// As the docs of `TestServer` show it; in the smallest runtime that there is.
#[tokio::test]
async fn a_program_tests_itself_without_a_process() {
    let server = TestServer::start().await;
    let service =
        TableServiceClient::from_connection_string(&server.connection_string(), None).unwrap();
    let employees = service.table_client("Employees").unwrap();
    employees.create(None).await.unwrap();
    for row in ["1", "2", "3"] {
        let entity = Entity::new("Sales", row).with("Age", 30);
        employees.insert_entity(&entity, None).await.unwrap();
    }
    let found =
        employees.query_entities::<Entity>(filter!(PartitionKey == "Sales" && RowKey >= "2"));
    let found: Vec<_> = found.try_collect().await.unwrap();
    assert_eq!(found.len(), 2);

    // Another one has nothing of it.
    let other = TestServer::start().await;
    let service =
        TableServiceClient::from_connection_string(&other.connection_string(), None).unwrap();
    let tables: Vec<_> = service.list_tables(None).try_collect().await.unwrap();
    assert!(tables.is_empty());
    server.stop().await;
}
