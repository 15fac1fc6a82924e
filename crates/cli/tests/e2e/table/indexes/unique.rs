//! Unique indexes: claims, exchanges within a transaction, and what a build finds.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::support::{Batch, shared_client};

fn account(row: &str, email: &str) -> Value {
    json!({"PartitionKey": "p", "RowKey": row, "Email": email})
}

#[test]
fn a_value_belongs_to_one_entity() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &account("1", "a")).expect(204);
    build(&client, &table, "ByEmail", &json!({"Keys": "Email", "Unique": true}));
    let violation = client.insert(&table, &account("2", "a"));
    let violation = violation.expect_error(409, "UniqueIndexViolation");
    assert!(violation.text().contains("ByEmail"), "{}", violation.text());
    client.insert(&table, &account("2", "b")).expect(204);
    let other = json!({"Email": "a"});
    client.merge(&table, ("p", "2"), &other).send().expect_error(409, "UniqueIndexViolation");
    client.put(&table, ("p", "2"), &other).send().expect_error(409, "UniqueIndexViolation");
    client.put(&table, ("p", "3"), &other).send().expect_error(409, "UniqueIndexViolation");
    client.entity(&table, ("p", "3")).expect(404);
    // Those without the property do not count, and its own value is no obstacle.
    client.put(&table, ("p", "4"), &json!({"A": 1})).send().expect(204);
    client.put(&table, ("p", "5"), &json!({"A": 1})).send().expect(204);
    client.merge(&table, ("p", "2"), &json!({"A": 1})).send().expect(204);
    client.put(&table, ("p", "2"), &json!({"Email": "b", "A": 2})).send().expect(204);
    // What was given up is free.
    client.remove(&table, ("p", "1"), "*").expect(204);
    client.merge(&table, ("p", "2"), &other).send().expect(204);
    client.insert(&table, &account("1", "b")).expect(204);
    assert_sound(&client, &table, "ByEmail", 2);
}

#[test]
fn a_transaction_may_exchange_values_and_names_the_change_that_violates() {
    let client = shared_client();
    let table = client.new_table();
    build(&client, &table, "ByEmail", &json!({"Keys": "Email", "Unique": true, "Include": "*"}));
    for (row, email) in [("1", "a"), ("2", "b"), ("3", "c")] {
        client.insert(&table, &account(row, email)).expect(204);
    }
    let email = |email: &str| json!({"Email": email});
    Batch::new()
        .merge(&client, &table, ("p", "1"), None, &email("b"))
        .merge(&client, &table, ("p", "2"), None, &email("c"))
        .merge(&client, &table, ("p", "3"), None, &email("a"))
        .send(&client)
        .expect_done(3);
    assert_sound(&client, &table, "ByEmail", 3);
    Batch::new()
        .delete(&client, &table, ("p", "1"), "*")
        .insert(&client, &table, &account("4", "b"))
        .insert(&client, &table, &account("5", "d"))
        .send(&client)
        .expect_done(3);
    Batch::new()
        .insert(&client, &table, &account("6", "e"))
        .insert(&client, &table, &account("7", "d"))
        .send(&client)
        .expect_failure(409, "UniqueIndexViolation", 1);
    Batch::new()
        .insert(&client, &table, &account("6", "e"))
        .insert(&client, &table, &account("7", "f"))
        .insert(&client, &table, &account("8", "e"))
        .send(&client)
        .expect_failure(409, "UniqueIndexViolation", 2);
    client.entity(&table, ("p", "6")).expect(404);
    assert_sound(&client, &table, "ByEmail", 4);
}

#[test]
fn a_build_that_finds_the_same_values_twice_fails_and_can_be_tried_again() {
    let client = shared_client();
    let table = client.new_table();
    for row in 0..100 {
        client.insert(&table, &account(&row.to_string(), &(row % 90).to_string())).expect(204);
    }
    declare(&client, &table, "ByEmail", &json!({"Keys": "Email", "Unique": true}));
    let failed = wait_for(&client, &table, "ByEmail", "Failed");
    let told = failed["Error"].as_str().unwrap();
    assert!(told.contains("Email") && !told.contains("95"), "{told}");
    // Writers are not refused by what is not there.
    client.insert(&table, &account("100", "5")).expect(204);
    for row in 90..101 {
        client.remove(&table, ("p", &row.to_string()), "*").expect(204);
    }
    declare(&client, &table, "ByEmail", &json!({"Keys": "Email", "Unique": true}));
    wait_for(&client, &table, "ByEmail", "Readable");
    assert_sound(&client, &table, "ByEmail", 90);
}

/// Many want the same value at the same time: one gets it.
#[test]
fn concurrent_claims_have_one_winner() {
    let client = shared_client();
    let table = client.new_table();
    build(&client, &table, "ByEmail", &json!({"Keys": "Email", "Unique": true}));
    let server = Arc::clone(client.server());
    let winners: Vec<usize> = std::thread::scope(|scope| {
        let claim = |task: usize| {
            let (server, table) = (&server, &table);
            move || {
                let client = Client::new(server);
                let won = |round: &usize| {
                    let entity = account(&format!("{task}-{round}"), &round.to_string());
                    client.insert(table, &entity).status == 204
                };
                (0..30).filter(won).count()
            }
        };
        let tasks: Vec<_> = (0..6).map(|task| scope.spawn(claim(task))).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    assert_eq!(winners.iter().sum::<usize>(), 30, "{winners:?}");
    assert_sound(&client, &table, "ByEmail", 30);
}

#[test]
fn a_dropped_index_refuses_nothing_once_its_drop_is_answered() {
    let client = shared_client();
    let table = client.new_table();
    client.insert(&table, &account("1", "a")).expect(204);
    for _ in 0..10 {
        build(&client, &table, "ByEmail", &json!({"Keys": "Email", "Unique": true}));
        client.insert(&table, &account("2", "a")).expect_error(409, "UniqueIndexViolation");
        client.remove(INDEXES, (&table, "ByEmail"), "*").expect(204);
        client.insert(&table, &account("2", "a")).expect(204);
        client.remove(&table, ("p", "2"), "*").expect(204);
    }
}

#[test]
fn a_definition_that_failed_says_how_long_the_one_before_is_used() {
    let client = shared_client();
    let table = client.new_table();
    for row in ["1", "2"] {
        client.insert(&table, &account(row, "a")).expect(204);
    }
    build(&client, &table, "ByEmail", &json!({"Keys": "Email"}));
    declare(&client, &table, "ByEmail", &json!({"Keys": "Email", "Unique": true}));
    let failed = wait_for(&client, &table, "ByEmail", "Failed");
    let told = "The definition before this one is used until this one is replaced or dropped.";
    assert_eq!(failed["Note"], told);
    let page = explained(&client, &table, &[("$filter", "Email eq 'a'")]);
    assert_eq!(page.header("x-tavola-index"), Some("ByEmail"));
    let built = build(&client, &table, "ByEmail", &json!({"Keys": "Email"}));
    assert_eq!(built["Note"], "");
}
