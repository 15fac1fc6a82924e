//! Every operation of the two clients, as a program would call it.

use azure_core::http::request::options::ClientRequestId;
use azure_core::http::{ClientMethodOptions, Context, StatusCode};
use futures::{StreamExt, TryStreamExt};
use tavola_client::{
    AccessPolicy, CallOptions, CorsRule, DateTime, Entity, ErrorCode, ErrorExt, IfMatch,
    ListTablesOptions, Permissions, QueryOptions, ServiceStats, SignedIdentifier,
    TableServiceClient, Transaction, UpdateMode, filter,
};

use crate::support::{Defect, TestTable, account, fresh_name};

#[tokio::test]
async fn tables_are_made_found_and_deleted() {
    let account = account();
    let service = account.service();
    let name = fresh_name();
    assert!(service.create_table_if_not_exists(&name, None).await.unwrap());
    assert!(!service.create_table_if_not_exists(&name, None).await.unwrap());
    let error = service.create_table(&name, None).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::TableAlreadyExists));
    assert_eq!(error.http_status(), Some(StatusCode::Conflict));

    let options = ListTablesOptions {
        filter: Some(filter!(TableName == name.as_str())),
        ..Default::default()
    };
    let found: Vec<_> = service.list_tables(Some(options)).try_collect().await.unwrap();
    assert_eq!(found, [name.as_str()]);

    let table = service.table_client(name.as_str()).unwrap();
    assert!(table.exists(None).await.unwrap());
    service.delete_table(&name, None).await.unwrap();
    assert!(!table.exists(None).await.unwrap());
    assert!(service.delete_table(&name, None).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn listing_goes_over_pages_and_can_be_resumed() {
    let account = account();
    let service = account.service();
    let prefix = fresh_name();
    let names: Vec<_> = (0..5).map(|index| format!("{prefix}{index}")).collect();
    for name in &names {
        service.create_table(name, None).await.unwrap();
    }
    let options = ListTablesOptions {
        filter: Some(filter!(TableName.starts_with(prefix.as_str()))),
        page_size: Some(2),
        ..Default::default()
    };
    let mut pages = service.list_tables(Some(options.clone())).by_page();
    let first = pages.next().await.unwrap().unwrap();
    assert_eq!(first.names, names[..2]);
    let continuation = pages.into_continuation();
    assert!(continuation.is_some());
    let rest = ListTablesOptions { continuation, ..options };
    let rest: Vec<_> = service.list_tables(Some(rest)).try_collect().await.unwrap();
    assert_eq!(rest, names[2..]);
    for name in &names {
        service.delete_table(name, None).await.unwrap();
    }
}

#[tokio::test]
async fn an_entity_lives_through_every_change() {
    let table = TestTable::create().await;
    let entity = Entity::new("p", "r").with("A", 1).with("B", "two");
    let inserted = table.insert_entity(&entity, None).await.unwrap();
    let error = table.insert_entity(&entity, None).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
    assert!(!error.may_have_been_applied());

    let read = table.get_entity::<Entity>("p", "r", None).await.unwrap();
    assert_eq!(read.value, entity);
    assert_eq!(&read.etag, inserted.etag());
    assert!(read.timestamp.is_some());

    let change = Entity::new("p", "r").with("A", 2);
    let merged = table.update_entity(&change, UpdateMode::Merge, &read, None).await.unwrap();
    let read_again = table.get_entity::<Entity>("p", "r", None).await.unwrap();
    assert_eq!(read_again.get::<i32>("A").unwrap(), 2);
    assert_eq!(read_again.get::<String>("B").unwrap(), "two");
    assert_eq!(&read_again.etag, merged.etag());

    let stale = table.update_entity(&change, UpdateMode::Replace, &read, None).await.unwrap_err();
    assert!(stale.is_precondition_failed());
    table.update_entity(&change, UpdateMode::Replace, IfMatch::Any, None).await.unwrap();
    let replaced = table.get_entity::<Entity>("p", "r", None).await.unwrap();
    assert_eq!(replaced.value, change);

    let stale = table.delete_entity("p", "r", &read, None).await.unwrap_err();
    assert_eq!(stale.code(), Some(ErrorCode::UpdateConditionNotSatisfied));
    table.delete_entity("p", "r", &replaced, None).await.unwrap();
    let gone = table.get_entity::<Entity>("p", "r", None).await.unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::ResourceNotFound));
    assert!(table.get_entity_if_exists::<Entity>("p", "r", None).await.unwrap().is_none());

    table.upsert_entity(&entity, UpdateMode::Merge, None).await.unwrap();
    table.upsert_entity(&change, UpdateMode::Replace, None).await.unwrap();
    let upserted = table.get_entity::<Entity>("p", "r", None).await.unwrap();
    assert_eq!(upserted.value, change);
    table.delete().await;
}

#[tokio::test]
async fn answers_carry_version_status_and_the_names_of_the_request() {
    let table = TestTable::create().await;
    let entity = Entity::new("p", "r").with("A", 1);
    let id = ClientRequestId::new("nightly-7".to_owned());
    let context = Context::new().with_value(id);
    let options =
        CallOptions { method_options: ClientMethodOptions { context }, ..Default::default() };
    let written = table.insert_entity(&entity, Some(options)).await.unwrap();
    assert_eq!(written.status(), StatusCode::NoContent);
    assert_eq!(written.client_request_id(), Some("nightly-7"));
    assert!(written.request_id().is_some());

    // A write tells the next which version it is meant for.
    let again = table.update_entity(&entity, UpdateMode::Replace, &written, None).await.unwrap();
    assert_ne!(again.etag(), written.etag());
    assert_ne!(again.client_request_id(), written.client_request_id());
    let stale =
        table.update_entity(&entity, UpdateMode::Replace, &written, None).await.unwrap_err();
    let error = stale.service_error().unwrap();
    assert!(error.request_id().is_some() && error.client_request_id().is_some());

    let read = table.get_entity::<Entity>("p", "r", None).await.unwrap();
    assert!(read.request_id().is_some() && read.request_id() != again.request_id());
    assert_eq!(&read.etag, again.etag());
    let found: Vec<_> = table.query_entities::<Entity>(None).try_collect().await.unwrap();
    assert!(found[0].request_id().is_some() && found[0] == read, "by whichever request");

    let mut transaction = Transaction::new();
    transaction.delete("p", "r", again.etag()).unwrap();
    let done = table.submit_transaction(&transaction, None).await.unwrap();
    assert_eq!(done.info().unwrap().status(), StatusCode::Accepted);
    table.delete().await;
}

#[tokio::test]
async fn what_is_gone_can_be_deleted_if_it_exists() {
    let table = TestTable::create().await;
    let written = table.insert_entity(&Entity::new("p", "r"), None).await.unwrap();
    let changed = Entity::new("p", "r").with("A", 1);
    table.upsert_entity(&changed, UpdateMode::Replace, None).await.unwrap();
    let error = table.delete_entity_if_exists("p", "r", &written, None).await.unwrap_err();
    assert!(error.is_precondition_failed(), "it is there, in another version");
    assert!(table.delete_entity_if_exists("p", "r", IfMatch::Any, None).await.unwrap());
    assert!(!table.delete_entity_if_exists("p", "r", IfMatch::Any, None).await.unwrap());
    assert!(table.delete_if_exists(None).await.unwrap());
    assert!(!table.delete_if_exists(None).await.unwrap());
    let error = table.delete_entity_if_exists("p", "r", IfMatch::Any, None).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::TableNotFound));
}

/// Everybody adds one, at the same time, and no addition is lost.
#[tokio::test]
async fn changes_of_what_was_read_are_all_made() {
    let table = TestTable::create().await;
    table.insert_entity(&Entity::new("p", "count").with("N", 0), None).await.unwrap();
    let add = || async {
        let changed = table.read_modify_write(
            "p",
            "count",
            |count: &mut Entity| {
                let number: i32 = count.get("N")?;
                count.set("N", number + 1);
                Ok(())
            },
            None,
        );
        changed.await.unwrap().get::<i32>("N").unwrap()
    };
    let mut seen = futures::future::join_all((0..12).map(|_| add())).await;
    seen.sort_unstable();
    assert_eq!(seen, (1..=12).collect::<Vec<_>>());

    let refusal = || azure_core::Error::with_message(azure_core::error::ErrorKind::Other, "no");
    let kept = table.read_modify_write("p", "count", |_: &mut Entity| Err(refusal()), None).await;
    assert_eq!(kept.unwrap_err().to_string(), "no");
    let missing = table.read_modify_write("p", "none", |_: &mut Entity| Ok(()), None).await;
    assert!(missing.unwrap_err().is_not_found());
    table.delete().await;
}

#[tokio::test]
async fn a_missing_table_is_not_a_missing_entity() {
    let account = account();
    let table = account.service().table_client(fresh_name()).unwrap();
    let error = table.get_entity_if_exists::<Entity>("p", "r", None).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::TableNotFound));
}

#[tokio::test]
async fn transactions_are_whole_and_name_what_failed() {
    let table = TestTable::create().await;
    let mut first = Transaction::new();
    for index in 0..100 {
        first.insert(&Entity::new("p", format!("{index:03}")).with("N", index)).unwrap();
    }
    let etags = table.submit_transaction(&first, None).await.unwrap();
    assert_eq!(etags.etags().len(), 100);
    let read = table.get_entity::<Entity>("p", "042", None).await.unwrap();
    assert_eq!(etags.etags()[42].as_ref(), Some(&read.etag));

    let mut mixed = Transaction::new();
    mixed.delete("p", "000", IfMatch::Any).unwrap();
    mixed.upsert(&Entity::new("p", "new").with("N", 1), UpdateMode::Merge).unwrap();
    mixed.update(&Entity::new("p", "042").with("M", 1), UpdateMode::Merge, &read).unwrap();
    mixed.insert(&Entity::new("p", "007")).unwrap();
    mixed.delete("p", "001", IfMatch::Any).unwrap();
    let error = table.submit_transaction(&mixed, None).await.unwrap_err();
    assert_eq!(error.failed_operation(), Some(3));
    assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
    assert_eq!(error.http_status(), Some(StatusCode::Conflict));
    assert!(table.get_entity::<Entity>("p", "000", None).await.is_ok(), "nothing was done");

    let mut last = Transaction::new();
    last.delete("p", "000", IfMatch::Any).unwrap();
    last.update(&Entity::new("p", "042").with("M", 1), UpdateMode::Merge, &read).unwrap();
    let etags = table.submit_transaction(&last, None).await.unwrap();
    assert_eq!(etags.etags()[0], None);
    assert!(etags.etags()[1].is_some());
    assert!(table.get_entity::<Entity>("p", "000", None).await.unwrap_err().is_not_found());
    let merged = table.get_entity::<Entity>("p", "042", None).await.unwrap();
    assert_eq!((merged.get::<i32>("M").unwrap(), merged.get::<i32>("N").unwrap()), (1, 42));

    assert!(table.submit_transaction(&Transaction::new(), None).await.unwrap().info().is_none());
    table.delete().await;
}

#[tokio::test]
async fn queries_filter_project_and_go_over_pages() {
    let table = TestTable::create().await;
    for partition in ["a", "b"] {
        let mut transaction = Transaction::new();
        for index in 0..25 {
            let entity = Entity::new(partition, format!("{index:03}"));
            transaction.insert(&entity.with("N", index).with("Text", "x")).unwrap();
        }
        table.submit_transaction(&transaction, None).await.unwrap();
    }
    let options = QueryOptions {
        filter: Some(filter!(PartitionKey == "b" && N >= 5)),
        select: Some(vec!["N".into()]),
        page_size: Some(7),
        ..Default::default()
    };
    let mut pager = table.query_entities::<Entity>(options.clone());
    let mut numbers = Vec::new();
    while let Some(stored) = pager.try_next().await.unwrap() {
        assert_eq!(stored.partition_key(), "b");
        assert_eq!(stored.properties().len(), 1);
        assert!(!stored.etag.as_ref().is_empty() && stored.timestamp.is_some());
        numbers.push(stored.get::<i32>("N").unwrap());
    }
    assert_eq!(numbers, (5..25).collect::<Vec<_>>());

    let mut pages = table.query_entities::<Entity>(options.clone()).by_page();
    assert_eq!(pages.next().await.unwrap().unwrap().entities.len(), 7);
    // The token is a text: it can be kept and taken up by another process.
    let kept: String = pages.into_continuation().unwrap().to_string();
    let resumed = QueryOptions { continuation: Some(kept.parse().unwrap()), ..options };
    let rest: Vec<_> = table.query_entities::<Entity>(resumed).try_collect().await.unwrap();
    let rest: Vec<i32> = rest.iter().map(|stored| stored.get("N").unwrap()).collect();
    assert_eq!(rest, (12..25).collect::<Vec<_>>());

    let all: Vec<_> = table.query_entities::<Entity>(None).try_collect().await.unwrap();
    assert_eq!(all.len(), 50);
    table.delete().await;
}

#[tokio::test]
async fn a_tavola_explains_what_a_query_cost() {
    let table = TestTable::create().await;
    if table.account.is_tavola() {
        for index in 0..10 {
            let entity = Entity::new("p", index.to_string()).with("N", index);
            table.insert_entity(&entity, None).await.unwrap();
        }
        let options = QueryOptions {
            filter: Some(filter!(PartitionKey == "p" && N == 3)),
            explain: true,
            ..Default::default()
        };
        let mut pages = table.query_entities::<Entity>(options).by_page();
        let report = pages.next().await.unwrap().unwrap().report.unwrap();
        assert_eq!(report.kind, "partition scan");
        assert_eq!((report.rows_examined, report.rows_returned), (10, 1));
    }
    table.delete().await;
}

#[tokio::test]
async fn awkward_keys_and_texts_survive() {
    let table = TestTable::create().await;
    for key in [
        "",
        " ",
        "O'Brien",
        "100%",
        "a+b c&d=e",
        "%20",
        "\u{20ac}\u{1F600}",
        "(x),y='z'",
        "..",
        "a:b;c@d!~*",
    ] {
        let entity = Entity::new(key, key).with("Text", key);
        table.insert_entity(&entity, None).await.unwrap();
        let read = table.get_entity::<Entity>(key, key, None).await.unwrap();
        assert_eq!(read.value, entity, "{key:?}");
        let found: Vec<_> = table
            .query_entities::<Entity>(filter!(PartitionKey == key && Text == key))
            .try_collect()
            .await
            .unwrap();
        assert_eq!(found.len(), 1, "{key:?}");
        let mut transaction = Transaction::new();
        transaction.update(&entity, UpdateMode::Replace, IfMatch::Any).unwrap();
        table.submit_transaction(&transaction, None).await.unwrap();
        table.delete_entity(key, key, IfMatch::Any, None).await.unwrap();
    }
    let error = table.get_entity::<Entity>("a/b", "r", None).await.unwrap_err();
    assert!(error.to_string().contains("PartitionKey"), "{error}");
    table.delete().await;
}

#[tokio::test]
async fn policies_and_settings_come_back() {
    let table = TestTable::create().await;
    assert_eq!(table.get_access_policies(None).await.unwrap(), []);
    let policy = SignedIdentifier {
        id: "readers".into(),
        access_policy: Some(AccessPolicy {
            start: table.account.has(Defect::PolicyStart).then_some(DateTime::MIN_STORED),
            expiry: DateTime::parse_iso("2040-01-01"),
            permission: Some(Permissions::READ),
        }),
    };
    table.set_access_policies(std::slice::from_ref(&policy), None).await.unwrap();
    assert_eq!(table.get_access_policies(None).await.unwrap(), [policy]);

    let service = table.account.service();
    let before = service.get_properties(None).await.unwrap();
    let mut changed = before.clone();
    changed.cors = vec![CorsRule {
        allowed_origins: vec!["http://example.com".into()],
        allowed_methods: vec!["GET".into()],
        max_age_seconds: 60,
        exposed_headers: match table.account.has(Defect::EmptyCorsList) {
            true => vec!["x-ms-request-id".into()],
            false => Vec::new(),
        },
        allowed_headers: vec!["x-ms-*".into()],
    }];
    service.set_properties(&changed, None).await.unwrap();
    // Azure takes up to 30 seconds to follow; what runs here follows at once.
    if table.account.is_local() {
        assert_eq!(service.get_properties(None).await.unwrap().cors, changed.cors);
    }
    service.set_properties(&before, None).await.unwrap();
    assert!(matches!(service.get_stats(None).await.unwrap(), ServiceStats::Live { .. }));
    table.delete().await;
}

#[tokio::test]
async fn a_wrong_key_is_told_as_such() {
    let account = account();
    if account.is_tavola() {
        let wrong = account.connection_string().replace("AccountKey=Eby8", "AccountKey=AAAA");
        let service = TableServiceClient::from_connection_string(&wrong, None).unwrap();
        let error = service.create_table(&fresh_name(), None).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::AuthenticationFailed));
        assert_eq!(error.http_status(), Some(StatusCode::Forbidden));
        assert!(!error.is_transient());
        assert!(error.service_error().unwrap().message().contains("authenticate"));
    }
}
