//! Shared access signatures (wire-reference 10.5): what a token opens, and nothing beside it.

use std::sync::Arc;

use serde_json::{Value, json};
use tavola_wire::Ticks;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{
    AccountSasSpec, IpRange, KeyRangeLimit, Permissions, Protocols, ResourceTypes, TableSasSpec,
};

use crate::support::client::{entity_path, unused_name};
use crate::support::{
    Batch, Client, Credentials, KEY, Launch, Response, minutes_from_now, shared_client,
};

fn key() -> AccountKey {
    AccountKey::from_base64(KEY).unwrap()
}

fn soon() -> Ticks {
    minutes_from_now(10)
}

fn account_token(client: &Client, types: &str, permissions: &str) -> Client {
    let permissions = Permissions::parse_account(permissions).expect("letters");
    let types = ResourceTypes::parse(types).expect("types");
    let spec = AccountSasSpec::new(permissions, types, soon());
    client.with_sas(spec.sign(&client.account, &key()))
}

fn table_spec(table: &str, permissions: &str) -> TableSasSpec {
    TableSasSpec::new(table, Permissions::parse_table(permissions).expect("letters"), soon())
}

fn table_token(client: &Client, spec: &TableSasSpec) -> Client {
    client.with_sas(spec.sign(&client.account, &key()))
}

/// Every operation on a row, with the permissions that it needs.
fn row_operations(table: &str) -> Vec<(&'static str, Vec<char>, Operation)> {
    let table = table.to_owned();
    let entity = || json!({"PartitionKey": "p", "RowKey": unused_name()});
    let named = |run: fn(&Client, &str, &Value) -> Response| {
        let (table, entity) = (table.clone(), entity());
        Box::new(move |client: &Client| run(client, &table, &entity)) as Operation
    };
    vec![
        ("get", vec!['r'], named(|client, table, _| client.entity(table, ("p", "kept")))),
        ("query", vec!['r'], named(|client, table, _| client.query(table, &[]).send())),
        ("insert", vec!['a'], named(|client, table, entity| client.insert(table, entity))),
        (
            "update",
            vec!['u'],
            named(|client, table, _| {
                client.put(table, ("p", "kept"), &json!({})).if_match("*").send()
            }),
        ),
        (
            "merge",
            vec!['u'],
            named(|client, table, _| {
                client.merge(table, ("p", "kept"), &json!({})).if_match("*").send()
            }),
        ),
        (
            "insert or replace",
            vec!['a', 'u'],
            named(|client, table, _| client.put(table, ("p", "kept"), &json!({})).send()),
        ),
        (
            "insert or merge",
            vec!['a', 'u'],
            named(|client, table, _| client.merge(table, ("p", "kept"), &json!({})).send()),
        ),
        ("delete", vec!['d'], named(|client, table, _| client.remove(table, ("p", "gone"), "*"))),
    ]
}

type Operation = Box<dyn Fn(&Client) -> Response>;

fn table_with_rows(client: &Client) -> String {
    let table = client.new_table();
    restore(client, &table);
    table
}

fn restore(client: &Client, table: &str) {
    for row in ["kept", "gone"] {
        client.put(table, ("p", row), &json!({})).send().expect(204);
    }
}

/// 10.5, both tables of permissions: with them it works, without any one of them it does not.
#[test]
fn permissions_of_row_operations() {
    let client = shared_client();
    let table = table_with_rows(&client);
    for (name, needed, operation) in row_operations(&table) {
        let letters: String = needed.iter().collect();
        let by_table = table_token(&client, &table_spec(&table, &letters));
        let by_account = account_token(&client, "o", &letters);
        for token in [&by_table, &by_account] {
            restore(&client, &table);
            let answer = operation(token);
            let repeated = name == "insert" && answer.status == 409;
            assert!(answer.status < 300 || repeated, "{name} {}", answer.text());
        }
        for missing in needed {
            let letters: String = "raud".chars().filter(|letter| *letter != missing).collect();
            for token in [
                table_token(&client, &table_spec(&table, &letters)),
                account_token(&client, "sco", &letters),
            ] {
                let refused = operation(&token);
                let refused = refused.expect_error(403, "AuthorizationPermissionMismatch");
                assert_eq!(
                    refused.message(),
                    "This request is not authorized to perform this operation using this permission."
                );
            }
        }
        let wrong_type = operation(&account_token(&client, "sc", "rwdlacu"));
        wrong_type.expect_error(403, "AuthorizationResourceTypeMismatch");
    }
}

/// 10.5: tables and service with an account token; access policies with none.
#[test]
fn account_tokens_for_tables_and_service() {
    let client = shared_client();
    let all = "rwdlacu";
    let properties = "/?restype=service&comp=properties";
    account_token(&client, "c", "l").get("/Tables").send().expect(200);
    account_token(&client, "s", "r").get(properties).send().expect(200);
    for letter in ["c", "w"] {
        account_token(&client, "c", letter).create_table(&unused_name()).expect(204);
    }
    let table = client.new_table();
    account_token(&client, "c", "d").drop_table(&table).expect(204);

    let mismatch = "AuthorizationResourceTypeMismatch";
    account_token(&client, "so", all).get("/Tables").send().expect_error(403, mismatch);
    account_token(&client, "so", all).create_table("abc").expect_error(403, mismatch);
    account_token(&client, "co", all).get(properties).send().expect_error(403, mismatch);
    let mismatch = "AuthorizationPermissionMismatch";
    account_token(&client, "sco", "rwdacu").get("/Tables").send().expect_error(403, mismatch);
    account_token(&client, "sco", "rdlau").create_table("abc").expect_error(403, mismatch);

    let table = client.new_table();
    let acl = format!("/{table}?comp=acl");
    let everything = account_token(&client, "sco", all);
    everything.get(&acl).send().expect_error(403, "AuthorizationFailure");
    let table_all = table_token(&client, &table_spec(&table, "raud"));
    table_all.get(&acl).send().expect_error(403, "AuthorizationFailure");
    table_all.get("/Tables").send().expect_error(403, "AuthorizationFailure");
    table_all.drop_table(&table).expect_error(403, "AuthorizationFailure");
}

/// 10.5: a token is for its table, in any case of the name, and for no other.
#[test]
fn a_table_token_is_for_one_table() {
    let client = shared_client();
    let (table, other) = (table_with_rows(&client), table_with_rows(&client));
    let token = table_token(&client, &table_spec(&table, "r"));
    token.entity(&table.to_lowercase(), ("p", "kept")).expect(200);
    token.entity(&other, ("p", "kept")).expect(403);
    let upper = table_token(&client, &table_spec(&table.to_uppercase(), "r"));
    upper.entity(&table, ("p", "kept")).expect(200);
}

#[track_caller]
fn assert_refused(client: &Client, table: &str) {
    client.entity(table, ("p", "kept")).expect_error(403, "AuthenticationFailed");
}

/// 10.5: expired, not yet valid, changed, made with another key.
#[test]
fn tokens_that_are_not_valid() {
    let client = shared_client();
    let table = table_with_rows(&client);
    let expired = TableSasSpec { expiry: Some(minutes_from_now(-1)), ..table_spec(&table, "r") };
    assert_refused(&table_token(&client, &expired), &table);
    let early = TableSasSpec { start: Some(minutes_from_now(30)), ..table_spec(&table, "r") };
    assert_refused(&table_token(&client, &early), &table);
    let begun = TableSasSpec { start: Some(minutes_from_now(-1)), ..table_spec(&table, "r") };
    table_token(&client, &begun).entity(&table, ("p", "kept")).expect(200);

    let token = table_spec(&table, "r").sign(&client.account, &key());
    assert_refused(&client.with_sas(token.replace("sp=r", "sp=raud")), &table);
    assert_refused(&client.with_sas(token.replace("sig=", "sig=A")), &table);
    let forged = table_spec(&table, "r").sign(&client.account, &AccountKey::from_bytes(b"other"));
    assert_refused(&client.with_sas(forged), &table);
    let endless = TableSasSpec { expiry: None, ..table_spec(&table, "r") };
    assert_refused(&table_token(&client, &endless), &table);
    let powerless = TableSasSpec { permissions: None, ..table_spec(&table, "r") };
    assert_refused(&table_token(&client, &powerless), &table);
}

/// 10.5: source address and protocol.
#[test]
fn tokens_for_an_address_or_a_protocol() {
    let client = shared_client();
    let table = table_with_rows(&client);
    let from = |range: &str| TableSasSpec {
        ip_range: Some(IpRange::parse(range).expect("a range")),
        ..table_spec(&table, "r")
    };
    for range in ["127.0.0.1", "127.0.0.0-127.0.0.9"] {
        table_token(&client, &from(range)).entity(&table, ("p", "kept")).expect(200);
    }
    for range in ["10.0.0.1", "127.0.0.2-127.0.0.9"] {
        let refused = table_token(&client, &from(range)).entity(&table, ("p", "kept"));
        refused.expect_error(403, "AuthorizationSourceIPMismatch");
    }
    let by = |protocols| TableSasSpec { protocols: Some(protocols), ..table_spec(&table, "r") };
    let https = table_token(&client, &by(Protocols::HttpsOnly)).entity(&table, ("p", "kept"));
    https.expect_error(403, "AuthorizationProtocolMismatch");
    let both = Protocols::parse("https,http").expect("protocols");
    table_token(&client, &by(both)).entity(&table, ("p", "kept")).expect(200);
}

/// 10.5: a token of another service.
#[test]
fn a_token_of_another_service() {
    let client = shared_client();
    let table = table_with_rows(&client);
    let expiry = crate::support::encode(&soon().whole_seconds().to_iso());
    let plain = soon().whole_seconds().to_iso();
    let text = format!("{}\nr\nb\no\n\n{plain}\n\n\n2019-02-02\n", client.account);
    let signature = crate::support::encode(&key().sign(&text).to_base64());
    let token = format!("sv=2019-02-02&ss=b&srt=o&sp=r&se={expiry}&sig={signature}");
    let refused = client.with_sas(token).entity(&table, ("p", "kept"));
    refused.expect_error(403, "AuthorizationServiceMismatch");
}

const KEYS: [(&str, &str); 9] = [
    ("a", "1"),
    ("a", "5"),
    ("a", "9"),
    ("b", "1"),
    ("b", "5"),
    ("b", "9"),
    ("c", "1"),
    ("c", "5"),
    ("c", "9"),
];

fn ranged_table(client: &Client) -> String {
    let table = client.new_table();
    for (partition, row) in KEYS {
        client.insert(&table, &json!({"PartitionKey": partition, "RowKey": row})).expect(204);
    }
    table
}

fn ranges() -> Vec<(KeyRangeLimit, Vec<&'static str>)> {
    let limit = |spk, srk, epk, erk| KeyRangeLimit::new(spk, srk, epk, erk).expect("a range");
    vec![
        (limit(Some("b"), None, None, None), vec!["b1", "b5", "b9", "c1", "c5", "c9"]),
        (limit(None, None, Some("b"), None), vec!["a1", "a5", "a9", "b1", "b5", "b9"]),
        (limit(Some("b"), None, Some("b"), None), vec!["b1", "b5", "b9"]),
        (limit(Some("a"), Some("5"), Some("b"), Some("5")), vec!["a5", "a9", "b1", "b5"]),
        (limit(Some("b"), Some("5"), Some("b"), Some("5")), vec!["b5"]),
    ]
}

/// 10.5: queries return what is in the range and say nothing of the rest; point reads outside find nothing.
#[test]
fn key_ranges_in_reads() {
    let client = shared_client();
    let table = ranged_table(&client);
    for (range, inside) in ranges() {
        let token =
            table_token(&client, &TableSasSpec { range: range.clone(), ..table_spec(&table, "r") });
        let found: Vec<_> = token
            .matches(&table, "")
            .iter()
            .map(|entity| {
                format!("{}{}", entity["PartitionKey"], entity["RowKey"]).replace('"', "")
            })
            .collect();
        assert_eq!(found, inside, "{range:?}");
        for (partition, row) in KEYS {
            let allowed = inside.contains(&format!("{partition}{row}").as_str());
            let answer = token.entity(&table, (partition, row));
            let filter = format!("PartitionKey eq '{partition}' and RowKey eq '{row}'");
            match allowed {
                true => answer.expect(200),
                false => answer.expect_error(404, "ResourceNotFound"),
            };
            assert_eq!(token.rows(&table, &filter).len(), usize::from(allowed), "{filter}");
        }
    }
}

/// 10.5: a token of continuation does not lead out of the range.
#[test]
fn key_ranges_in_pages() {
    let client = shared_client();
    let table = ranged_table(&client);
    let range = KeyRangeLimit::new(Some("b"), None, Some("b"), None).unwrap();
    let token = table_token(&client, &TableSasSpec { range, ..table_spec(&table, "r") });
    let page = token.query(&table, &[("$top", "3")]).send().expect(200);
    assert_eq!(page.header("x-ms-continuation-NextPartitionKey"), None);
    // `a` and then `c`, in the form of section 7.
    for (forged, expected) in [("1!4!YQ--", 3), ("1!4!Yw--", 0)] {
        let options = [("NextPartitionKey", forged), ("NextRowKey", "1!0!")];
        let page = token.query(&table, &options).send().expect(200);
        assert_eq!(crate::support::client::values(&page).len(), expected, "{forged}");
    }
}

/// 10.5: writes outside of the range are refused, alone and inside batches, and change nothing.
#[test]
fn key_ranges_in_writes() {
    let client = shared_client();
    let table = ranged_table(&client);
    let range = KeyRangeLimit::new(Some("b"), Some("5"), Some("b"), None).unwrap();
    let token = table_token(&client, &TableSasSpec { range, ..table_spec(&table, "raud") });
    let entity = |partition: &str, row: &str| json!({"PartitionKey": partition, "RowKey": row});
    token.insert(&table, &entity("b", "6")).expect(204);
    token.put(&table, ("b", "6"), &json!({"A": 1})).send().expect(204);
    token.remove(&table, ("b", "6"), "*").expect(204);
    for (partition, row) in [("a", "7"), ("b", "4"), ("c", "7")] {
        let keys = (partition, row);
        for refused in [
            token.insert(&table, &entity(partition, row)),
            token.put(&table, keys, &json!({})).send(),
            token.merge(&table, keys, &json!({})).send(),
            token.put(&table, keys, &json!({})).if_match("*").send(),
            token.remove(&table, keys, "*"),
        ] {
            let refused = refused.expect_error(403, "AuthorizationFailure");
            assert_eq!(
                refused.message(),
                "This request is not authorized to perform this operation."
            );
        }
    }
    let batch = Batch::new().insert(&token, &table, &entity("b", "6")).insert(
        &token,
        &table,
        &entity("b", "4"),
    );
    batch.send(&token).expect_failure(403, "AuthorizationFailure", 1);
    let batch = Batch::new().insert(&token, &table, &entity("b", "6")).insert(
        &token,
        &table,
        &entity("b", "7"),
    );
    batch.send(&token).expect_done(2);
    assert_eq!(client.rows(&table, "PartitionKey eq 'b'"), ["1", "5", "6", "7", "9"]);
    assert_eq!(client.rows(&table, "PartitionKey ne 'b'").len(), 6);
}

/// 10.5: a batch asks for each of its operations.
#[test]
fn permissions_in_batches() {
    let client = shared_client();
    let table = table_with_rows(&client);
    for token in [table_token(&client, &table_spec(&table, "a")), account_token(&client, "o", "a")]
    {
        let insert = || {
            let entity = json!({"PartitionKey": "p", "RowKey": unused_name()});
            Batch::new().insert(&token, &table, &entity)
        };
        insert().send(&token).expect_done(1);
        let code = "AuthorizationPermissionMismatch";
        let delete = insert().delete(&token, &table, ("p", "kept"), "*");
        delete.send(&token).expect_failure(403, code, 1);
        let upsert = insert().put(&token, &table, ("p", "kept"), None, &json!({}));
        upsert.send(&token).expect_failure(403, code, 1);
        let merge = insert().merge(&token, &table, ("p", "kept"), Some("*"), &json!({}));
        merge.send(&token).expect_failure(403, code, 1);
        let read = format!(
            "--batch_b\r\nContent-Type: application/http\r\n\r\nGET {}{} HTTP/1.1\r\n\r\n\r\n--batch_b--\r\n",
            token.base(),
            entity_path(&table, "p", "kept")
        );
        let request = token.request("POST", "/$batch");
        let reply = request.body("multipart/mixed; boundary=batch_b", read).send();
        crate::support::BatchReply::read(reply).expect_failure(403, code, 0);
    }
    let other = client.new_table();
    let token = table_token(&client, &table_spec(&table, "a"));
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    let reply = Batch::new().insert(&token, &other, &entity).send(&token);
    assert_eq!(reply.parts[0].status, 403);
}

fn set_policies(client: &Client, table: &str, policies: &[(&str, &str, i64)]) {
    let one = |(id, permissions, minutes): &(&str, &str, i64)| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy><Expiry>{}</Expiry>\
             <Permission>{permissions}</Permission></AccessPolicy></SignedIdentifier>",
            minutes_from_now(*minutes).to_iso()
        )
    };
    let all: String = policies.iter().map(one).collect();
    let document = format!("<SignedIdentifiers>{all}</SignedIdentifiers>");
    let path = format!("/{table}?comp=acl");
    client.request("PUT", path).body("application/xml", document).send().expect(204);
}

/// 10.5: a stored policy gives a token its power, changes it and takes it away, at once and for good.
#[test]
fn stored_policies_grant_and_revoke() {
    let server = Arc::new(Launch::new().start());
    let client = Client::new(&server);
    let table = table_with_rows(&client);
    let token = table_token(&client, &TableSasSpec::with_policy(&table, "mine"));
    let read = || token.entity(&table, ("p", "kept"));
    let insert = || token.insert(&table, &json!({"PartitionKey": "p", "RowKey": unused_name()}));
    read().expect_error(403, "AuthenticationFailed");
    set_policies(&client, &table, &[("other", "raud", 10), ("mine", "r", 10)]);
    read().expect(200);
    insert().expect_error(403, "AuthorizationPermissionMismatch");
    server.crash_and_restart();
    read().expect(200);
    set_policies(&client, &table, &[("mine", "a", 10)]);
    insert().expect(204);
    read().expect_error(403, "AuthorizationPermissionMismatch");
    set_policies(&client, &table, &[("mine", "ra", -10)]);
    read().expect_error(403, "AuthenticationFailed");
    set_policies(&client, &table, &[("other", "r", 10)]);
    read().expect_error(403, "AuthenticationFailed");
    server.restart_cleanly();
    read().expect_error(403, "AuthenticationFailed");
    // A table dropped and made anew has no policies.
    set_policies(&client, &table, &[("mine", "r", 10)]);
    client.drop_table(&table).expect(204);
    client.create_table(&table).expect(204);
    read().expect_error(403, "AuthenticationFailed");
}

/// 10.5: what one request of a connection has proved is worth nothing for the next one that says something else.
#[test]
fn every_request_of_a_connection_proves_itself() {
    let accounts = format!("one:{KEY};two:{KEY}");
    let launch = Launch::new().env("TAVOLA_ACCOUNTS", accounts).arg("--inMemoryPersistence");
    let mut client = Client::new(&Arc::new(launch.start()));
    let table = "Same";
    for account in ["two", "one"] {
        (client.account, client.root) = (account.to_owned(), account.to_owned());
        client.create_table(table).expect(204);
        restore(&client, table);
    }
    let good = table_spec(table, "r").sign(&client.account, &key());
    let mut token = client.with_sas(good.clone());
    let read = |token: &Client| token.entity(table, ("p", "kept"));
    let (start, signature) = good.split_once("sig=").expect("a signature");
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let forged = format!("{start}sig={other}{}", &signature[1..]);
    let wider = good.replace("sp=r&", "sp=d&");
    assert!(wider != good && wider.len() == good.len());
    for bad in [forged, wider, start.to_owned()] {
        token.credentials = Credentials::Sas(good.clone());
        read(&token).expect(200);
        read(&token).expect(200);
        token.credentials = Credentials::Sas(bad.clone());
        assert!(read(&token).status >= 400, "{bad}");
        assert!(token.remove(table, ("p", "kept"), "*").status >= 400, "{bad}");
    }
    // The account stands in the path, and has the same key; the signature is for one of them.
    token.credentials = Credentials::Sas(good.clone());
    read(&token).expect(200);
    token.root = "two".to_owned();
    read(&token).expect_error(403, "AuthenticationFailed");
    token.root = "one".to_owned();
    read(&token).expect(200);
    // The same signature beside options, which differ.
    token.query(table, &[("$filter", "RowKey eq 'kept'")]).send().expect(200);
    assert_eq!(token.rows(table, "RowKey eq 'none'"), [""; 0]);
    let soon = Ticks(minutes_from_now(0).0 + 20_000_000);
    let permissions = Permissions::parse_table("r").expect("letters");
    let short = TableSasSpec::new(table, permissions, soon).sign(&client.account, &key());
    token.credentials = Credentials::Sas(short);
    let first = read(&token).status;
    while minutes_from_now(0) <= soon {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(matches!(first, 200 | 403), "expired before it was first used, or not");
    read(&token).expect_error(403, "AuthenticationFailed");
}

/// 10.5: a field stands in the token or in the policy.
#[test]
fn a_policy_is_completed_by_the_token() {
    let client = shared_client();
    let table = table_with_rows(&client);
    let path = format!("/{table}?comp=acl");
    let document = "<SignedIdentifiers><SignedIdentifier><Id>half</Id><AccessPolicy>\
        <Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    client.request("PUT", path).body("application/xml", document).send().expect(204);
    let policy = TableSasSpec::with_policy(&table, "half");
    assert_refused(&table_token(&client, &policy), &table);
    let completed = TableSasSpec { expiry: Some(soon()), ..policy.clone() };
    table_token(&client, &completed).entity(&table, ("p", "kept")).expect(200);
    let twice = TableSasSpec { permissions: Some(Permissions::READ), ..completed };
    let doubled = table_token(&client, &twice).entity(&table, ("p", "kept"));
    assert!([400, 403].contains(&doubled.status), "{}", doubled.status);
}

/// 10.3 and 10.5: tokens made with the second key of an account.
#[test]
fn a_token_of_the_second_key() {
    let accounts = "acct:a2V5MQ==:a2V5Mg==";
    let server = Arc::new(Launch::new().env("AZURITE_ACCOUNTS", accounts).start());
    let scheme = tavola_wire::auth::shared_key::Scheme::SharedKey;
    let owner = Credentials::Key(scheme, AccountKey::from_bytes(b"key1"));
    let mut client = Client::with(&server, owner);
    client.account = "acct".to_owned();
    client.root = "acct".to_owned();
    let table = table_with_rows(&client);
    let token = table_spec(&table, "r").sign("acct", &AccountKey::from_bytes(b"key2"));
    client.with_sas(token).entity(&table, ("p", "kept")).expect(200);
}

/// 10.5: the string to sign changed with the versions, and each is understood.
#[test]
fn tokens_of_all_versions() {
    use tavola_wire::auth::sas::SasVersion;
    let client = shared_client();
    let table = table_with_rows(&client);
    for version in ["2015-04-05", "2017-04-17", "2019-02-02", "2020-12-06", "2024-11-04"] {
        let version = SasVersion::parse(version).expect("a version");
        let spec = AccountSasSpec {
            version,
            ..AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, soon())
        };
        let token = client.with_sas(spec.sign(&client.account, &key()));
        token.entity(&table, ("p", "kept")).expect(200);
    }
    for version in ["2013-08-15", "2015-02-21", "2015-04-05", "2020-12-06"] {
        let version = SasVersion::parse(version).expect("a version");
        let spec = TableSasSpec { version, ..table_spec(&table, "r") };
        table_token(&client, &spec).entity(&table, ("p", "kept")).expect(200);
    }
}

/// 10.5: in the query of a batch, what is out of range is not there.
#[test]
fn key_ranges_in_the_query_of_a_batch() {
    let client = shared_client();
    let table = ranged_table(&client);
    let range = KeyRangeLimit::new(Some("b"), None, Some("b"), None).unwrap();
    let token = table_token(&client, &TableSasSpec { range, ..table_spec(&table, "r") });
    let read = |partition: &str| {
        let body = format!(
            "--batch_b\r\nContent-Type: application/http\r\n\r\nGET {}{} HTTP/1.1\r\n\r\n\r\n--batch_b--\r\n",
            token.base(),
            entity_path(&table, partition, "1")
        );
        let request = token.request("POST", "/$batch");
        crate::support::BatchReply::read(
            request.body("multipart/mixed; boundary=batch_b", body).send(),
        )
    };
    read("b").expect_done(1);
    read("a").expect_failure(404, "ResourceNotFound", 0);
}

/// 2.1, 2.2 and 10.5: without `x-ms-version`, the version of the token serves the request and is told.
#[test]
fn the_version_of_a_token_serves_the_request() {
    use crate::support::http;
    use tavola_wire::auth::sas::SasVersion;
    let client = shared_client();
    let spec = AccountSasSpec {
        version: SasVersion::ENCRYPTION_SCOPE,
        ..AccountSasSpec::new(Permissions::LIST, ResourceTypes::ALL, soon())
    };
    let target = format!("/{}/Tables?{}", client.root, spec.sign(&client.account, &key()));
    let address = client.server().address();
    let mut stream = std::io::BufReader::new(std::net::TcpStream::connect(address).unwrap());
    let headers = [("Host".to_owned(), address.to_string())];
    http::write(stream.get_mut(), "GET", &target, &headers, b"").unwrap();
    let answer = http::read(&mut stream).unwrap().expect(200);
    assert_eq!(answer.header("x-ms-version"), Some("2020-12-06"));
}
