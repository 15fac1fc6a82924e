//! Tables that the server itself keeps: their names, who may read them, and that they are read like any other.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use tavola_engine::conformance::commit;
use tavola_engine::{EmbeddedEngine, EmbeddedOptions, Reader, Write};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes, TableSasSpec};

use crate::support::client::values;
use crate::support::{Batch, Client, KEY, Launch, minutes_from_now, shared_client};

const NAMES: [&str; 4] = ["TavolaAdvice", "TavolaHotPartitions", "TavolaIndexes", "TavolaTables"];
/// Those that nobody writes to.
const READ_ONLY: [&str; 3] = ["TavolaAdvice", "TavolaHotPartitions", "TavolaTables"];

#[test]
fn reserved_names_are_taken_in_any_case_of_letters() {
    let client = shared_client();
    for name in NAMES {
        for name in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
            client.create_table(&name).expect_error(409, "TableAlreadyExists");
        }
    }
    // Other names that begin like them are legal, as on Azure.
    client.create_table("TavolaOther").expect(204);
}

/// They are there for those who look, and an account without tables still lists none.
#[test]
fn they_exist_and_a_new_account_lists_nothing() {
    let client = Client::new(&Arc::new(Launch::new().start()));
    for name in NAMES {
        let found = client.get(format!("/Tables('{}')", name.to_lowercase())).send().expect(200);
        assert_eq!(found.json()["TableName"], name);
        assert_eq!(
            values(&client.query(name, &[]).send().expect(200)),
            Vec::<serde_json::Value>::new()
        );
        client.entity(name, ("p", "r")).expect_error(404, "ResourceNotFound");
        let acl = client.get(format!("/{name}?comp=acl")).send().expect(200);
        assert!(!acl.text().contains("<Id>"), "{}", acl.text());
    }
    assert_eq!(values(&client.get("/Tables").send().expect(200)), Vec::<serde_json::Value>::new());
}

#[test]
fn nobody_writes_to_those_that_are_read_only() {
    let client = shared_client();
    let refused = "InsufficientAccountPermissions";
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    for name in READ_ONLY {
        client.insert(name, &entity).expect_error(403, refused);
        client.put(name, ("p", "r"), &entity).send().expect_error(403, refused);
        client.merge(name, ("p", "r"), &entity).if_match("*").send().expect_error(403, refused);
        client.remove(name, ("p", "r"), "*").expect_error(403, refused);
        let batch = Batch::new().insert(&client, name, &entity).send(&client);
        batch.expect_failure(403, refused, 0);
        client.drop_table(name).expect_error(403, refused);
        let acl = client.request("PUT", format!("/{name}?comp=acl"));
        acl.body("application/xml", "<SignedIdentifiers/>").send().expect_error(403, refused);
    }
}

fn table_sas(client: &Client, table: &str, permissions: &str) -> Client {
    let permissions = Permissions::parse_table(permissions).unwrap();
    let spec = TableSasSpec::new(table, permissions, minutes_from_now(10));
    client.with_sas(spec.sign(&client.account, &AccountKey::from_base64(KEY).unwrap()))
}

/// Rights are those of every table, but the partition keys of all tables are for the owner alone.
#[test]
fn signatures_open_them_as_any_table_except_for_partition_keys() {
    let client = shared_client();
    let permissions = Permissions::parse_account("rl").unwrap();
    let spec = AccountSasSpec::new(permissions, ResourceTypes::ALL, minutes_from_now(10));
    let account =
        client.with_sas(spec.sign(&client.account, &AccountKey::from_base64(KEY).unwrap()));
    for name in ["TavolaAdvice", "TavolaIndexes", "TavolaTables"] {
        table_sas(&client, name, "r").query(name, &[]).send().expect(200);
        account.query(name, &[]).send().expect(200);
        let other = table_sas(&client, "customers", "r").query(name, &[]).send();
        other.expect_error(403, "AuthenticationFailed");
        let writer = table_sas(&client, name, "a").query(name, &[]).send();
        writer.expect_error(403, "AuthorizationPermissionMismatch");
    }
    let hot = "TavolaHotPartitions";
    for reader in [table_sas(&client, hot, "r"), account] {
        reader.query(hot, &[]).send().expect_error(403, "AuthorizationFailure");
        reader.entity(hot, ("p", "r")).expect_error(403, "AuthorizationFailure");
    }
    client.query(hot, &[]).send().expect(200);
}

/// A table of such a name from before is the user's, and works as it did.
#[test]
fn a_users_table_from_before_keeps_working_with_a_warning() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    client.create_table("TavolaAdvicX").expect(204);
    client.insert("TavolaAdvicX", &json!({"PartitionKey": "p", "RowKey": "mine"})).expect(204);
    server.ask_to_stop();
    assert!(server.wait().success());
    assert!(!server.log().contains("reserved"), "{}", server.log());
    rename(&server.data_folder(), "TavolaAdvicX", "TavolaAdvice");
    server.start_again();

    let log = server.log();
    assert!(log.contains("reserved") && log.contains("TavolaAdvice"), "{log}");
    assert_eq!(client.rows("tavolaadvice", ""), ["mine"]);
    client.insert("TavolaAdvice", &json!({"PartitionKey": "p", "RowKey": "new"})).expect(204);
    assert_eq!(client.rows("TavolaAdvice", ""), ["mine", "new"]);
    let tables = values(&client.get("/Tables").send().expect(200));
    assert_eq!(tables.len(), 1, "{tables:?}");
    client.create_table("TAVOLAADVICE").expect_error(409, "TableAlreadyExists");
    client.drop_table("TavolaAdvice").expect(204);
    // From now on it is the server's.
    assert_eq!(client.rows("TavolaAdvice", ""), [""; 0]);
    client.create_table("TavolaAdvice").expect_error(409, "TableAlreadyExists");
}

/// Gives a table of a folder another name of the same length, as if an older server had made it.
fn rename(data: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = EmbeddedEngine::open(data, EmbeddedOptions::default()).unwrap();
        let key = |name: &str| {
            Bytes::from([&b"T\0\0\0\0\0\0\0\x01"[..], name.to_lowercase().as_bytes()].concat())
        };
        let mut record = engine.get(&key(from)).await.unwrap().expect("the table").to_vec();
        let at = record.windows(from.len()).position(|bytes| bytes == from.as_bytes()).unwrap();
        record[at..at + to.len()].copy_from_slice(to.as_bytes());
        commit(&engine, vec![Write::Delete(key(from)), Write::Put(key(to), record.into())]).await;
    });
}
