//! Indexes that are declared, replaced, built and dropped while others write, and the server is killed amid all of it.
//! Values of a unique index that all want to have.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::server::check::check;
use crate::support::{Batch, Launch, Random, Server};

const ROUNDS: usize = 4;
const ROWS: usize = 400;
const WRITERS: u64 = 3;

/// Changes random rows until the server is gone.
fn write_until_killed(server: &Arc<Server>, table: &str, seed: u64) {
    let client = Client::new(server).without_resending();
    let mut random = Random::new(seed);
    let partition = format!("w{}", seed % WRITERS);
    loop {
        let row = format!("{:05}", random.below(ROWS));
        let entity = json!({
            "Town": format!("Town{}", random.below(5)),
            "Serial": format!("{partition}-{row}"),
            "Age": random.below(50),
        });
        let keys = (partition.as_str(), row.as_str());
        let path = entity_path(table, keys.0, keys.1);
        let sent = match random.below(8) {
            0 => client.delete(&path).header("If-Match", "*").try_send().map(drop),
            1 | 2 => {
                client.request("PATCH", &path).json(&json!({"Town": "Other"})).try_send().map(drop)
            }
            3 => {
                let other = format!("{:05}", ROWS + random.below(20));
                Batch::new()
                    .put(&client, table, keys, None, &entity)
                    .put(&client, table, (&partition, &other), None, &json!({"Age": 7}))
                    .try_send(&client)
                    .map(drop)
            }
            _ => client.request("PUT", &path).json(&entity).try_send().map(drop),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Declares and drops until the server is gone.
fn declare_until_killed(server: &Arc<Server>, table: &str, seed: u64) {
    let client = Client::new(server).without_resending();
    let mut random = Random::new(seed);
    loop {
        let definition = match random.below(4) {
            0 => json!({"Keys": "Town"}),
            1 => json!({"Keys": "Town,Age", "Include": "Age"}),
            2 => json!({"Keys": "Serial", "Unique": true, "Include": "*"}),
            _ => json!({"Keys": "PartitionKey,Age", "Filter": "Town eq 'Town1'"}),
        };
        let path = entity_path(INDEXES, table, &format!("Index{}", random.below(3)));
        let sent = match random.below(5) {
            0 => client.delete(&path).header("If-Match", "*").try_send(),
            _ => client.request("PUT", &path).json(&definition).try_send(),
        };
        if sent.is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(random.below(60) as u64));
    }
}

#[test]
fn indexes_are_what_the_entities_say_after_every_kill() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    for row in 0..ROWS {
        client.insert(&table, &person("p", row)).expect(204);
    }
    let mut verified = 0;
    for round in 0..ROUNDS as u64 {
        // One that nobody drops, so that there is something to compare after each kill.
        let keys = ["Town", "Age,Town", "Serial?", "PartitionKey,Town"][round as usize % 4];
        declare(&Client::new(&server), &table, "Index9", &json!({"Keys": keys}));
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (server, table) = (&server, &table);
                scope.spawn(move || write_until_killed(server, table, round * WRITERS + writer));
            }
            let (server, table) = (&server, &table);
            scope.spawn(move || declare_until_killed(server, table, round + 100));
            std::thread::sleep(Duration::from_millis(250 + 170 * round));
            server.kill();
        });
        server.start_again();
        let client = Client::new(&server);
        let indexes = client.matches(INDEXES, &format!("PartitionKey eq '{table}'"));
        assert!(indexes.iter().any(|index| index["RowKey"] == "Index9"), "{indexes:?}");
        for found in &indexes {
            let name = found["RowKey"].as_str().unwrap();
            wait_for(&client, &table, name, "Readable");
            let told = verify(&client, &table, name);
            assert!(
                told.starts_with("sound: "),
                "round {round}, {found}: {told}\n{}",
                server.log()
            );
            verified += 1;
        }
    }
    assert!(verified >= ROUNDS, "{verified} indexes were compared");
    server.ask_to_stop();
    assert!(server.wait().success());
    let (code, told) = check(&server.data_folder());
    assert_eq!(code, Some(0), "{told}");
}

/// Values that are claimed, fewer than the entities of all writers.
const CLAIMS: usize = 12;
const CLAIMING_ROWS: usize = 6;

/// Claims values, gives them up and exchanges them within a transaction until the server is gone. Counts what is refused.
fn claim_until_killed(server: &Arc<Server>, table: &str, seed: u64, violations: &AtomicUsize) {
    let client = Client::new(server).without_resending();
    let mut random = Random::new(seed);
    let partition = format!("w{}", seed % WRITERS);
    let row = |number: usize| format!("{number:05}");
    loop {
        let (first, second) = (random.below(CLAIMING_ROWS), 1 + random.below(CLAIMING_ROWS - 1));
        let rows = [row(first), row((first + second) % CLAIMING_ROWS)];
        let (one, step) = (random.below(CLAIMS), 1 + random.below(CLAIMS - 1));
        let claim = |number: usize| json!({"Claim": number % CLAIMS, "Town": partition});
        let path = entity_path(table, &partition, &rows[0]);
        let answer = match random.below(6) {
            0 => client.delete(&path).header("If-Match", "*").try_send(),
            1 => client.request("PUT", &path).json(&json!({"Town": "none"})).try_send(),
            2 | 3 => client.request("PUT", &path).json(&claim(one)).try_send(),
            _ => Batch::new()
                .put(&client, table, (&partition, &rows[0]), None, &claim(one))
                .put(&client, table, (&partition, &rows[1]), None, &claim(one + step))
                .try_send(&client)
                .map(|reply| reply.parts.into_iter().next().unwrap_or(reply.response)),
        };
        let Ok(answer) = answer else { return };
        assert!([204, 404, 409].contains(&answer.status), "{answer:?}");
        if answer.status == 409 {
            violations.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_value_that_many_claim_is_nobody_elses_after_every_kill() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = client.new_table();
    let definition = json!({"Keys": "Claim", "Unique": true, "Include": "Town"});
    build(&client, &table, "Claims", &definition);
    let violations = AtomicUsize::new(0);
    for round in 0..ROUNDS as u64 {
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (server, table, violations) = (&server, &table, &violations);
                let seed = round * WRITERS + writer;
                scope.spawn(move || claim_until_killed(server, table, seed, violations));
            }
            std::thread::sleep(Duration::from_millis(200 + 130 * round));
            server.kill();
        });
        server.start_again();
        let client = Client::new(&server);
        let claims: Vec<_> = client.matches(&table, "Claim ge 0");
        let claims: Vec<_> = claims.iter().map(|it| it["Claim"].as_u64().unwrap()).collect();
        let different: BTreeSet<_> = claims.iter().collect();
        assert_eq!(different.len(), claims.len(), "round {round}: {claims:?}");
        assert_sound(&client, &table, "Claims", claims.len());
    }
    let violations = violations.into_inner();
    assert!(violations > 10, "{violations} claims were refused");
    server.ask_to_stop();
    assert!(server.wait().success());
    let (code, told) = check(&server.data_folder());
    assert_eq!(code, Some(0), "{told}");
}
