//! The clients without async.

use std::time::Duration;

use tavola_client::blocking::queue::QueueServiceClient;
use tavola_client::blocking::{TableClient, TableServiceClient};
use tavola_client::queue::{MessageEncoding, MessageUpdate};
use tavola_client::{Entity, ErrorExt, IfMatch, Operation, QueryOptions, UpdateMode, filter};

use crate::support::{account, fresh_name};

#[test]
fn a_program_without_a_runtime_can_do_everything() {
    let account = account();
    let service =
        TableServiceClient::from_connection_string(account.connection_string(), None).unwrap();
    let name = fresh_name();
    assert!(service.create_table_if_not_exists(&name, None).unwrap());
    let table = service.table_client(name.as_str()).unwrap();
    let operations = (0..25).map(|index| {
        let entity = Entity::new("p", format!("{index:03}")).with("N", index);
        Operation::upsert(&entity, UpdateMode::Replace).unwrap()
    });
    assert_eq!(table.bulk(operations, None).unwrap().progress.done, 25);

    let options =
        QueryOptions { filter: Some(filter!(N >= 5)), page_size: Some(7), ..Default::default() };
    let mut found = table.query_entities::<Entity>(options.clone());
    let first: Vec<i32> =
        found.by_ref().take(3).map(|item| item.unwrap().get("N").unwrap()).collect();
    assert_eq!(first, [5, 6, 7]);
    let rest = QueryOptions { continuation: found.continuation(), ..options };
    let rest = table.query_entities::<Entity>(rest);
    assert_eq!(rest.map(|item| item.unwrap().get::<i32>("N").unwrap()).next(), Some(8));

    let changed = table.read_modify_write(
        "p",
        "003",
        |entity: &mut Entity| {
            entity.set("N", 300);
            Ok(())
        },
        None,
    );
    let stored = table.get_entity::<Entity>("p", "003", None).unwrap();
    assert_eq!(changed.unwrap().etag, stored.etag);
    assert!(table.delete_entity_if_exists("p", "003", IfMatch::Any, None).unwrap());
    assert!(table.get_entity::<Entity>("p", "003", None).unwrap_err().is_not_found());
    let is_there = service.list_tables(None).any(|table| table.unwrap() == name);
    assert!(is_there);
    let policies = table.run(|table| async move { table.get_access_policies(None).await });
    assert!(policies.unwrap().unwrap().is_empty());
    service.delete_table(&name, None).unwrap();
    assert!(!table.delete_if_exists(None).unwrap());
}

#[test]
fn queues_need_no_runtime_either() {
    let account = account();
    let service =
        QueueServiceClient::from_connection_string(account.connection_string(), None).unwrap();
    let name = fresh_name();
    assert!(service.create_queue_if_not_exists(&name, None).unwrap());
    let queue = service.queue_client(name.as_str()).unwrap();
    queue.send_message("one", None).unwrap();
    queue.clone().with_encoding(MessageEncoding::Base64).send_json(&2, None).unwrap();
    assert_eq!(queue.get_properties(None).unwrap().approximate_message_count, 2);
    assert_eq!(queue.peek_messages(None).unwrap()[0].text().unwrap(), "one");
    let mut message = queue.receive_messages(None).unwrap().remove(0);
    let update = MessageUpdate::visible_after(Duration::from_secs(60));
    queue.update_message(&mut message.receipt, update, None).unwrap();
    assert!(queue.delete_message_if_exists(&message.receipt, None).unwrap());
    assert_eq!(queue.receive_messages(None).unwrap()[0].raw_text(), "Mg==");
    assert!(service.list_queues(None).any(|queue| queue.unwrap().name == name));
    let policies = queue.run(|queue| async move { queue.get_access_policies(None).await });
    assert!(policies.unwrap().unwrap().is_empty());
    service.delete_queue(&name, None).unwrap();
    assert!(!queue.delete_if_exists(None).unwrap());
}

/// Several threads share a client.
#[test]
fn threads_share_a_client() {
    let account = account();
    let table =
        TableClient::from_connection_string(account.connection_string(), &fresh_name(), None)
            .unwrap();
    table.create(None).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for row in 0..10 {
                    let entity = Entity::new(thread.to_string(), row.to_string());
                    table.insert_entity(&entity, None).unwrap();
                }
            });
        }
    });
    assert_eq!(table.query_entities::<Entity>(None).count(), 40);
    table.delete(None).unwrap();
}

#[test]
fn inside_of_a_runtime_the_error_says_so() {
    let account = account();
    let connection = account.connection_string();
    let table = TableClient::from_connection_string(connection, "people", None).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let said = "a blocking client was called inside of an async runtime";
        let error = table.create(None).unwrap_err();
        assert!(error.to_string().starts_with(said), "{error}");
        assert!(TableServiceClient::from_connection_string(connection, None).is_err());
        let items: Vec<_> = table.query_entities::<Entity>(None).collect();
        assert!(items.len() == 1 && items[0].is_err());
        // The last of a client may end here, and its runtime with it.
        drop(table);
    });
}
