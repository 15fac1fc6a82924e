//! Those without a credential of an account: they learn nothing and change nothing, whatever they ask for.

use std::sync::Arc;

use serde_json::json;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes, TableSasSpec};
use tavola_wire::auth::shared_key::Scheme;

use crate::support::client::values;
use crate::support::{Batch, Client, Credentials, Launch, Response, Server, minutes_from_now};

const TABLE: &str = "Confidential";

fn server() -> Arc<Server> {
    let accounts = "mine:b3duZXI=;theirs:c3RyYW5nZXI=";
    let launch = Launch::new().env("TAVOLA_ACCOUNTS", accounts).arg("--inMemoryPersistence");
    Arc::new(launch.start())
}

fn client(server: &Arc<Server>, account: &str, credentials: Credentials) -> Client {
    let mut client = Client::with(server, credentials);
    (client.account, client.root) = (account.to_owned(), account.to_owned());
    client
}

fn owner(server: &Arc<Server>) -> Client {
    let key = AccountKey::from_bytes(b"owner");
    let owner = client(server, "mine", Credentials::Key(Scheme::SharedKey, key));
    owner.create_table(TABLE).expect(204);
    let entity = json!({"PartitionKey": "p", "RowKey": "r", "Text": "top secret"});
    owner.insert(TABLE, &entity).expect(204);
    owner
}

/// Every operation there is.
fn every_operation(client: &Client) -> Vec<Response> {
    let entity = json!({"PartitionKey": "p", "RowKey": "new"});
    let keys = ("p", "r");
    let get = |path: &str| client.get(path).send();
    let put = |path: &str| client.request("PUT", path).body("application/xml", "").send();
    vec![
        get("/Tables"),
        get(&format!("/Tables('{TABLE}')")),
        client.create_table("another"),
        client.drop_table(TABLE),
        get(&format!("/{TABLE}?comp=acl")),
        put(&format!("/{TABLE}?comp=acl")),
        client.query(TABLE, &[]).send(),
        client.query("missing", &[]).send(),
        client.query(TABLE, &[("$filter", "no filter")]).send(),
        client.entity(TABLE, keys),
        client.entity(TABLE, ("p", "missing")),
        client.insert(TABLE, &entity),
        client.insert(TABLE, &json!({"PartitionKey": "p", "RowKey": "r"})),
        client.put(TABLE, keys, &entity).send(),
        client.put(TABLE, keys, &entity).if_match("*").send(),
        client.merge(TABLE, keys, &entity).send(),
        client.remove(TABLE, keys, "*"),
        Batch::new().delete(client, TABLE, keys, "*").send(client).response,
        get("/?restype=service&comp=properties"),
        put("/?restype=service&comp=properties"),
        get("/?restype=service&comp=stats"),
        get("/"),
        get("/$metadata"),
        client.request("POST", "/$batch").body("nonsense", "nonsense").send(),
    ]
}

#[track_caller]
fn assert_untouched(owner: &Client) {
    let rows = values(&owner.query(TABLE, &[]).send().expect(200));
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0]["RowKey"].as_str(), rows[0]["Text"].as_str()),
        (Some("r"), Some("top secret"))
    );
    let tables = values(&owner.get("/Tables").send().expect(200));
    assert_eq!(tables.len(), 1);
}

/// The answer is the same whether what they ask for is there or not.
fn assert_learns_nothing(answers: &[Response], statuses: &[u16]) {
    let told = |answer: &Response| (answer.status, answer.code());
    let first = told(&answers[0]);
    for answer in answers {
        assert!(statuses.contains(&answer.status), "{answer:?}");
        assert_eq!(told(answer), first, "{answer:?}");
        assert!(!answer.text().contains("secret") && answer.header("etag").is_none(), "{answer:?}");
    }
}

#[test]
fn without_credentials_nothing_is_told_or_changed() {
    let server = server();
    let owner = owner(&server);
    for root in ["mine", "mine-secondary"] {
        let mut stranger = owner.anonymous();
        stranger.root = root.to_owned();
        assert_learns_nothing(&every_operation(&stranger), &[401]);
    }
    assert_untouched(&owner);
}

/// A key that is nobody's, and one that is another account's; in headers and in tokens.
#[test]
fn the_key_of_another_account_opens_nothing() {
    let server = server();
    let owner = owner(&server);
    for secret in [&b"nobody"[..], b"stranger"] {
        let key = AccountKey::from_bytes(secret);
        let tables = TableSasSpec::new(TABLE, Permissions::TABLE_ALL, minutes_from_now(9));
        let all =
            AccountSasSpec::new(Permissions::ACCOUNT_ALL, ResourceTypes::ALL, minutes_from_now(9));
        let mut credentials = vec![
            Credentials::Key(Scheme::SharedKey, key.clone()),
            Credentials::Key(Scheme::SharedKeyLite, key.clone()),
        ];
        for account in ["mine", "theirs"] {
            credentials.push(Credentials::Sas(all.sign(account, &key)));
            credentials.push(Credentials::Sas(tables.sign(account, &key)));
        }
        for credentials in credentials {
            let stranger = client(&server, "mine", credentials);
            assert_learns_nothing(&every_operation(&stranger), &[403]);
        }
        // The header names the account whose key it is, the path another.
        let mut stranger = client(&server, "theirs", Credentials::Key(Scheme::SharedKey, key));
        stranger.root = "mine".to_owned();
        assert_learns_nothing(&every_operation(&stranger), &[403]);
    }
    assert_untouched(&owner);
}

/// An account holder has their own tables, and no way to those of others, also not through the URLs inside a batch.
#[test]
fn account_holders_have_their_own_tables_only() {
    let server = server();
    let owner = owner(&server);
    let key = AccountKey::from_bytes(b"stranger");
    let other = client(&server, "theirs", Credentials::Key(Scheme::SharedKey, key));
    assert_eq!(values(&other.get("/Tables").send().expect(200)).len(), 0);
    other.query(TABLE, &[]).send().expect_error(404, "TableNotFound");
    other.drop_table(TABLE).expect_error(404, "ResourceNotFound");
    // The URLs inside are absolute and name the owner's account, which here is the name of a table: none, then one
    // that has no such keys.
    for refusal in [(404, "TableNotFound"), (400, "InvalidInput")] {
        let delete = Batch::new().delete(&owner, TABLE, ("p", "r"), "*");
        let put = Batch::new().put(&owner, TABLE, ("p", "r"), None, &json!({"Text": "other"}));
        for batch in [delete, put] {
            batch.send(&other).expect_failure(refusal.0, refusal.1, 0);
        }
        assert_untouched(&owner);
        // Again with a table of the same name, and one that is named like the account.
        other.create_table(TABLE);
        other.create_table("mine");
    }
    assert_eq!(values(&other.query(TABLE, &[]).send().expect(200)).len(), 0);
    assert_eq!(values(&other.query("mine", &[]).send().expect(200)).len(), 0);
    assert_untouched(&owner);
}

/// Whoever had a key has nothing when it is replaced, nor do the holders of tokens that it signed.
#[test]
fn a_key_that_is_replaced_opens_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let accounts = folder.path().join("accounts");
    std::fs::write(&accounts, "mine:b3duZXI=\n").expect("a file");
    let launch = Launch::new().args(["--accounts-file", "accounts"]);
    let server = Arc::new(Server::start_in(launch, folder));
    let owner = owner(&server);
    let old = AccountKey::from_bytes(b"owner");
    let spec = TableSasSpec::new(TABLE, Permissions::TABLE_ALL, minutes_from_now(9));
    let holder = owner.with_sas(spec.sign("mine", &old));
    holder.entity(TABLE, ("p", "r")).expect(200);
    std::fs::write(&accounts, "mine:bmV3IG93bmVy\n").expect("a file");
    server.restart_cleanly();
    owner.entity(TABLE, ("p", "r")).expect_error(403, "AuthenticationFailed");
    holder.entity(TABLE, ("p", "r")).expect_error(403, "AuthenticationFailed");
    let new = Credentials::Key(Scheme::SharedKey, AccountKey::from_bytes(b"new owner"));
    assert_untouched(&client(&server, "mine", new));
}

/// Strangers can find out which accounts there are, as they can of the live service by asking for its name.
#[test]
fn strangers_can_tell_which_accounts_there_are() {
    let server = server();
    let ask = |account| client(&server, account, Credentials::Nobody).get("/Tables").send();
    ask("mine").expect_error(401, "NoAuthenticationInformation");
    ask("nobody").expect_error(404, "ResourceNotFound");
}
