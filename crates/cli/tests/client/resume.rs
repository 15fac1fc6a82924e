//! Queries that stop anywhere and go on exactly there.

use futures::{StreamExt, TryStreamExt};
use tavola_client::{
    Continuation, Entity, EntityPager, ListTablesOptions, Operation, QueryOptions, UpdateMode,
    filter,
};

use crate::support::{TestTable, account, fresh_name};

const ROWS: i32 = 25;

async fn filled() -> TestTable {
    let table = TestTable::create().await;
    let operations = (0..ROWS).map(|index| {
        let entity = Entity::new(format!("p{}", index / 10), format!("{index:03}"));
        Operation::upsert(&entity.with("N", index), UpdateMode::Replace).unwrap()
    });
    assert_eq!(table.bulk(operations, None).await.progress.failed, 0);
    table
}

fn options(continuation: Option<Continuation>, page_size: u16) -> QueryOptions {
    let filter = Some(filter!(N >= 0));
    QueryOptions { filter, page_size: Some(page_size), continuation, ..Default::default() }
}

async fn numbers(pager: EntityPager<Entity>) -> Vec<i32> {
    pager.map(|stored| stored.unwrap().get::<i32>("N").unwrap()).collect().await
}

/// The example of `Pager`'s documentation: two items, a kept text, and the third.
#[tokio::test]
async fn the_documented_example_goes_on_with_the_third() {
    let table = filled().await;
    let mut everyone = table.query_entities::<Entity>(None);
    let first = everyone.try_next().await.unwrap().unwrap();
    let second = everyone.try_next().await.unwrap().unwrap();
    assert_eq!((first.row_key(), second.row_key()), ("000", "001"));
    let kept = everyone.continuation().unwrap().to_string();

    let rest = QueryOptions { continuation: Some(kept.parse().unwrap()), ..Default::default() };
    let mut rest = table.query_entities::<Entity>(rest);
    let third = rest.try_next().await.unwrap().unwrap();
    assert_eq!(third.row_key(), "002");
    table.delete().await;
}

/// After every item, for a page that begins, is halfway, or ends there.
#[tokio::test]
async fn no_item_comes_twice_and_none_is_lost() {
    let table = filled().await;
    for stop in 0..=ROWS {
        let mut pager = table.query_entities::<Entity>(options(None, 7));
        let taken: Vec<_> = pager.by_ref().take(usize::try_from(stop).unwrap()).collect().await;
        assert!(taken.iter().all(Result::is_ok));
        let position = pager.into_continuation();
        let rest = match position {
            Some(position) => {
                // Another size of pages does not matter.
                let others = table.query_entities(options(Some(position.clone()), 4));
                let rest = numbers(others).await;
                assert_eq!(numbers(table.query_entities(options(Some(position), 7))).await, rest);
                rest
            }
            None => Vec::new(),
        };
        assert_eq!(rest, (stop..ROWS).collect::<Vec<_>>(), "stopped after {stop}");
    }
    table.delete().await;
}

/// One item by each process, to the end.
#[tokio::test]
async fn resuming_again_and_again_comes_to_the_end() {
    let table = filled().await;
    let (mut position, mut found) = (None, Vec::new());
    loop {
        let mut pager = table.query_entities::<Entity>(options(position.take(), 10));
        let Some(stored) = pager.try_next().await.unwrap() else { break };
        found.push(stored.get::<i32>("N").unwrap());
        match pager.into_continuation() {
            Some(next) => position = Some(next.to_string().parse().unwrap()),
            None => break,
        }
    }
    assert_eq!(found, (0..ROWS).collect::<Vec<_>>());
    table.delete().await;
}

#[tokio::test]
async fn pages_go_on_within_a_page_too() {
    let table = filled().await;
    let mut pager = table.query_entities::<Entity>(options(None, 10));
    for _ in 0..3 {
        pager.try_next().await.unwrap();
    }
    let position = pager.continuation();
    let sizes = |pages: Vec<tavola_client::EntityPage<Entity>>| -> Vec<usize> {
        pages.iter().map(|page| page.entities.len()).collect()
    };
    let pages: Vec<_> = pager.by_page().try_collect().await.unwrap();
    assert!(pages.iter().all(|page| page.request_id.is_some()));
    assert_eq!(sizes(pages), [7, 10, 5]);
    let resumed = table.query_entities::<Entity>(options(position, 10)).by_page();
    assert_eq!(sizes(resumed.try_collect().await.unwrap()), [7, 10, 5]);
    table.delete().await;
}

#[tokio::test]
async fn lists_of_tables_go_on_in_the_same_way() {
    let account = account();
    let (service, prefix) = (account.service(), fresh_name());
    let names: Vec<_> = (0..5).map(|index| format!("{prefix}{index}")).collect();
    for name in &names {
        service.create_table(name, None).await.unwrap();
    }
    let options = ListTablesOptions {
        filter: Some(filter!(TableName.starts_with(prefix.as_str()))),
        page_size: Some(3),
        ..Default::default()
    };
    for stop in 0..names.len() {
        let mut tables = service.list_tables(Some(options.clone()));
        for _ in 0..stop {
            tables.try_next().await.unwrap();
        }
        let continuation = tables.into_continuation();
        let rest = ListTablesOptions { continuation, ..options.clone() };
        let rest: Vec<String> = service.list_tables(Some(rest)).try_collect().await.unwrap();
        assert_eq!(rest, names[stop..]);
    }
    for name in &names {
        service.delete_table(name, None).await.unwrap();
    }
}
