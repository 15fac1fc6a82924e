//! Series, wide entities, and tables that are dropped whole.

use std::time::Duration;

use futures::TryStreamExt;
use tavola_client::patterns::data_series::DataSeries;
use tavola_client::patterns::high_volume_delete::{Period, TablePerPeriod, days};
use tavola_client::patterns::wide_entity::WideEntities;
use tavola_client::{DateTime, Entity, now};

use super::{moment, row_keys};
use crate::support::{TestTable, account, fresh_name};

#[tokio::test]
async fn old_periods_go_as_whole_tables() {
    let account = account();
    let prefix = format!("{}p", fresh_name().chars().take(20).collect::<String>());
    let logins = TablePerPeriod::new(account.service(), prefix, Period::Month).unwrap();
    for (day, row) in
        [("2026-09-30", "a"), ("2026-10-01", "b"), ("2026-10-31", "c"), ("2026-11-01", "d")]
    {
        logins.insert(moment(day), &Entity::new("p", row)).await.unwrap();
    }
    let all = |from: &'static str, to: &'static str| {
        let logins = logins.clone();
        async move {
            let stream = logins.query::<Entity>(moment(from), moment(to), None).await.unwrap();
            let found: Vec<_> = stream.try_collect().await.unwrap();
            found.iter().map(|stored| stored.row_key().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(all("2026-01-01", "2026-12-31").await, ["a", "b", "c", "d"]);
    assert_eq!(all("2026-10-15", "2026-10-16").await, ["b", "c"], "whole periods");
    assert_eq!(logins.drop_before(moment("2026-11-20")).await.unwrap().len(), 2);
    assert_eq!(all("2026-01-01", "2026-12-31").await, ["d"]);
    logins.drop_before(moment("2027-01-01")).await.unwrap();
    assert_eq!(all("2026-01-01", "2026-12-31").await, Vec::<String>::new());
}

/// "Delete records of all login requests that are more than 60 days old."
#[tokio::test]
async fn what_is_older_than_sixty_days_goes() {
    let account = account();
    let prefix = format!("{}p", fresh_name().chars().take(20).collect::<String>());
    let logins = TablePerPeriod::new(account.service(), prefix, Period::Day).unwrap();
    let ago = |age: Duration| {
        DateTime::from_unix_nanos(
            i128::from(now().unix_seconds() - age.as_secs() as i64) * 1_000_000_000,
        )
    };
    for age in [0, 59, 62, 400] {
        logins.insert(ago(days(age)), &Entity::new("jens", age.to_string())).await.unwrap();
    }
    assert_eq!(logins.keep(days(60)).await.unwrap().len(), 2);
    let rest = logins.query::<Entity>(ago(days(500)), now(), None).await.unwrap();
    let rest: Vec<_> = rest.map_ok(|login| login.row_key().to_owned()).try_collect().await.unwrap();
    assert_eq!(rest, ["59", "0"]);
    assert_eq!(logins.keep(days(60)).await.unwrap(), Vec::<String>::new());
    logins.drop_before(moment("9999-01-01")).await.unwrap();
}

#[tokio::test]
async fn a_series_is_written_by_slots_and_read_whole() {
    let table = TestTable::create().await;
    let messages = DataSeries::<i32>::new(table.table.clone(), 24).unwrap().slot_prefix("Hour");
    messages.record("jens", "2026-11-15", [(0, 5), (23, 7)]).await.unwrap();
    messages.record("jens", "2026-11-15", [(9, 12), (23, 8)]).await.unwrap();
    let day = messages.read("jens", "2026-11-15").await.unwrap();
    assert_eq!(day.len(), 24);
    assert_eq!((day[0], day[9], day[10], day[23]), (Some(5), Some(12), None, Some(8)));
    let entity = table.get_entity::<Entity>("jens", "2026-11-15", None).await.unwrap();
    assert_eq!(entity.get::<i32>("Hour09").unwrap(), 12);
    assert_eq!(messages.read("jens", "2026-11-16").await.unwrap(), vec![None; 24]);
    assert!(messages.record("jens", "2026-11-15", [(24, 1)]).await.is_err());
    assert!(messages.add("jens", "2026-11-15", 24, 1).await.is_err());
    for slots in [0, 25_201] {
        assert!(DataSeries::<i32>::new(table.table.clone(), slots).is_err());
    }
    table.delete().await;
}

/// "If you have multiple clients updating an entity simultaneously, you will need to use the ETag."
#[tokio::test]
async fn clients_that_add_at_once_lose_nothing() {
    let table = TestTable::create().await;
    let messages = DataSeries::<i64>::new(table.table.clone(), 24).unwrap();
    let writers = (0..6).map(|_| {
        let messages = messages.clone();
        async move {
            for _ in 0..5 {
                messages.add("jens", "2026-11-15", 9, 2).await.unwrap();
            }
        }
    });
    futures::future::join_all(writers).await;
    assert_eq!(messages.read("jens", "2026-11-15").await.unwrap()[9], Some(60));
    assert_eq!(messages.add("jens", "2026-11-15", 10, 1).await.unwrap(), 1);
    table.delete().await;
}

#[tokio::test]
async fn a_year_of_days_lies_in_two_entities() {
    let table = TestTable::create().await;
    let messages = DataSeries::<i32>::new(table.table.clone(), 365).unwrap().slot_prefix("Day");
    messages.record("000123", "2026", (0..365).map(|day| (day, day as i32))).await.unwrap();
    assert_eq!(row_keys(&table).await, ["2026_1", "2026_2"]);
    messages.add("000123", "2026", 364, 1).await.unwrap();
    messages.record("000123", "2026", [(0, 7)]).await.unwrap();
    let year = messages.read("000123", "2026").await.unwrap();
    assert_eq!(year.len(), 365);
    assert_eq!(
        (year[0], year[251], year[252], year[364]),
        (Some(7), Some(251), Some(252), Some(365))
    );
    assert_eq!(messages.read("000123", "2027").await.unwrap(), vec![None; 365]);
    table.delete().await;
}

#[tokio::test]
async fn a_wide_entity_is_one_whatever_its_rows() {
    let table = TestTable::create().await;
    let surveys = WideEntities::new(table.table.clone());
    let survey = |count: i32| {
        let mut survey = Entity::new("surveys", "2026");
        for question in 0..count {
            survey.set(format!("Answer{question:04}"), question);
        }
        survey
    };
    assert_eq!(surveys.get::<Entity>("surveys", "2026").await.unwrap(), None);
    for count in [600, 1300, 10] {
        surveys.upsert(&survey(count)).await.unwrap();
        assert_eq!(surveys.get::<Entity>("surveys", "2026").await.unwrap(), Some(survey(count)));
    }
    assert_eq!(row_keys(&table).await, ["2026_000"], "rows that are not needed are gone");

    // Two writers at once: one version wins, whole.
    let (small, large) = (survey(300), survey(900));
    let (first, second) =
        futures::future::join(surveys.upsert(&small), surveys.upsert(&large)).await;
    first.unwrap();
    second.unwrap();
    let winner = surveys.get::<Entity>("surveys", "2026").await.unwrap().unwrap();
    assert!(winner == small || winner == large);

    assert!(surveys.delete("surveys", "2026").await.unwrap());
    assert!(!surveys.delete("surveys", "2026").await.unwrap());
    assert_eq!(row_keys(&table).await, Vec::<String>::new());
    table.delete().await;
}

/// "You can use a single merge operation to update the message count for a specific day."
#[tokio::test]
async fn one_day_is_merged_into_a_wide_entity() {
    let table = TestTable::create().await;
    let years = WideEntities::new(table.table.clone());
    let day = |name: &str, count: i32| Entity::new("Sales", "000123").with(name, count);
    let mut year = Entity::new("Sales", "000123");
    for number in 1..=365 {
        year.set(format!("Day{number:03}"), number);
    }
    // Another whose rows lie between.
    years.upsert(&Entity::new("Sales", "000123_2012").with("Day001", 9)).await.unwrap();
    years.upsert(&year).await.unwrap();
    let etags = || async {
        let rows =
            ["000123_000", "000123_001"].map(|row| table.get_entity::<Entity>("Sales", row, None));
        let rows = futures::future::try_join_all(rows).await.unwrap();
        rows.into_iter().map(|row| row.etag).collect::<Vec<_>>()
    };
    let before = etags().await;
    years.merge(&day("Day300", 77)).await.unwrap();
    let after = etags().await;
    assert_eq!((before[0] == after[0], before[1] == after[1]), (true, false), "one row changes");

    years.merge(&day("Day001", 1000).with("Day365", 2000)).await.unwrap();
    years.merge(&day("Leap", 1)).await.unwrap();
    year.set("Day300", 77);
    year.set("Day001", 1000);
    year.set("Day365", 2000);
    year.set("Leap", 1);
    assert_eq!(years.get::<Entity>("Sales", "000123").await.unwrap(), Some(year));
    // Merging into nothing makes one.
    years.merge(&Entity::new("Sales", "new").with("Day001", 1)).await.unwrap();
    assert!(years.get::<Entity>("Sales", "new").await.unwrap().is_some());

    let merges = (0..8).map(|number| {
        let years = years.clone();
        let change = day(&format!("Day{:03}", 100 + number * 30), -number);
        async move { years.merge(&change).await.unwrap() }
    });
    futures::future::join_all(merges).await;
    let year = years.get::<Entity>("Sales", "000123").await.unwrap().unwrap();
    for number in 0..8 {
        assert_eq!(year.get::<i32>(&format!("Day{:03}", 100 + number * 30)).unwrap(), -number);
    }
    table.delete().await;
}
