//! Why a caller was refused: in the log, in the metrics, and in the answer where it gives nothing away.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tavola_wire::Ticks;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{
    AccountSasSpec, IpRange, KeyRangeLimit, Permissions, Protocols, ResourceTypes, TableSasSpec,
};
use tavola_wire::auth::shared_key::Scheme;

use super::admin::{metrics, wait_for_log};
use crate::support::{
    ACCOUNT, Batch, Client, Credentials, KEY, Launch, Response, Server, minutes_from_now, now,
};

struct World {
    server: Arc<Server>,
    owner: Client,
    table: String,
    key: AccountKey,
}

impl World {
    fn new(launch: Launch) -> Self {
        let server = Arc::new(launch.arg("--admin-port").arg("0").start());
        let owner = Client::new(&server);
        let table = owner.new_table();
        Self { server, owner, table, key: AccountKey::from_base64(KEY).unwrap() }
    }

    fn table_sas(&self, change: impl FnOnce(&mut TableSasSpec)) -> Client {
        let mut spec =
            TableSasSpec::new(self.table.as_str(), Permissions::READ, minutes_from_now(10));
        change(&mut spec);
        self.owner.with_sas(spec.sign(ACCOUNT, &self.key))
    }

    fn query(&self, client: &Client) -> Response {
        client.query(&self.table, &[]).send()
    }

    /// The line of the log and the count of this reason.
    #[track_caller]
    fn expect(&self, reason: &str, account: &str) -> String {
        let log = wait_for_log(&self.server, &format!("reason=\"{reason}\""));
        let line = log.lines().find(|line| line.contains(&format!("reason=\"{reason}\"")));
        let line = line.expect("a line").to_owned();
        assert!(line.contains("INFO") && line.contains("request refused"), "{line}");
        assert!(line.contains(&format!("account=\"{account}\"")), "{line}");
        assert!(line.contains("peer=127.0.0.1:"), "{line}");
        assert!(!line.contains("sig=") && !log.contains(KEY), "{line}");
        let counted = format!("tavola_refusals_total{{service=\"table\",reason=\"{reason}\"}} 1\n");
        let metrics = metrics(&self.server);
        assert!(metrics.contains(&counted), "{counted} in {metrics}");
        line
    }
}

#[test]
fn wrong_keys_and_wrong_accounts_are_told_apart() {
    let world = World::new(Launch::new());
    let wrong = Credentials::Key(Scheme::SharedKey, AccountKey::from_bytes(b"other"));
    let refused = world.query(&world.owner.as_other(wrong.clone()));
    let refused = refused.expect_error(403, "AuthenticationFailed");
    assert!(refused.message().lines().count() == 1, "a stranger learns nothing: {refused:?}");
    let line = world.expect("wrong_key", ACCOUNT);
    assert!(line.contains("operation=\"Unrecognized\""), "{line}");

    // A wrong account in the address is an empty list to some clients, and no more.
    let mut lost = Client::new(&world.server);
    lost.root = "nosuchaccount".to_owned();
    world.query(&lost).expect_error(404, "ResourceNotFound");
    world.expect("unknown_account", "nosuchaccount");

    let mut other = Client::new(&world.server);
    other.account = "nosuchaccount".to_owned();
    world.query(&other).expect_error(403, "AuthenticationFailed");
    let line = world.expect("account_mismatch", ACCOUNT);
    assert!(line.contains("nosuchaccount"), "{line}");

    world.query(&world.owner.anonymous()).expect_error(401, "NoAuthenticationInformation");
    world.expect("no_credentials", ACCOUNT);
    let header = world.owner.get("/Tables").header("Authorization", "Basic YTpi").send();
    header.expect_error(400, "InvalidAuthenticationInfo");
    world.expect("malformed_credentials", ACCOUNT);
}

#[test]
fn times_are_told_to_whoever_got_them_wrong() {
    let world = World::new(Launch::new());
    let late = world.table_sas(|spec| spec.expiry = Some(minutes_from_now(-1)));
    let message = world.query(&late).expect_error(403, "AuthenticationFailed").message();
    assert!(message.contains("\nSignature not valid in the specified time frame: Expiry ["));
    assert!(message.contains("] - Current ["), "{message}");
    world.expect("expired", ACCOUNT);

    let early = world.table_sas(|spec| spec.start = Some(minutes_from_now(5)));
    let message = world.query(&early).expect_error(403, "AuthenticationFailed").message();
    assert!(message.contains("time frame: Start ["), "{message}");
    world.expect("not_yet_valid", ACCOUNT);

    for (seconds, word) in [(-3600, "old"), (3600, "new")] {
        let shift = Duration::from_secs(i64::unsigned_abs(seconds));
        let date = if seconds < 0 { now() - shift } else { now() + shift };
        let skewed = world.owner.get("/Tables").header("x-ms-date", httpdate::fmt_http_date(date));
        let message = skewed.send().expect_error(403, "AuthenticationFailed").message();
        assert!(message.contains(&format!("Request date header too {word}: '")), "{message}");
    }
    let log = wait_for_log(&world.server, "too new");
    assert!(log.contains("reason=\"clock_skew\""), "{log}");
}

#[test]
fn tokens_say_which_of_their_limits_was_met() {
    let world = World::new(Launch::new());
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    let reader = world.table_sas(|_| ());
    reader.insert(&world.table, &entity).expect_error(403, "AuthorizationPermissionMismatch");
    let line = world.expect("permission", ACCOUNT);
    assert!(line.contains("operation=\"InsertEntity\""), "{line}");

    let range = KeyRangeLimit::new(Some("q"), None, Some("q"), None).unwrap();
    let narrow = world.table_sas(|spec| {
        spec.permissions = Some(Permissions::ADD);
        spec.range = range;
    });
    narrow.insert(&world.table, &entity).expect_error(403, "AuthorizationFailure");
    world.expect("key_range", ACCOUNT);

    let secure = world.table_sas(|spec| spec.protocols = Some(Protocols::HttpsOnly));
    world.query(&secure).expect_error(403, "AuthorizationProtocolMismatch");
    world.expect("protocol", ACCOUNT);

    let elsewhere = world.table_sas(|spec| spec.ip_range = IpRange::parse("10.0.0.1"));
    world.query(&elsewhere).expect_error(403, "AuthorizationSourceIPMismatch");
    world.expect("address", ACCOUNT);

    let policy = TableSasSpec::with_policy(world.table.as_str(), "nosuch");
    let policy = world.owner.with_sas(policy.sign(ACCOUNT, &world.key));
    let message = world.query(&policy).expect_error(403, "AuthenticationFailed").message();
    assert!(message.contains("si names no stored access policy"), "{message}");
    world.expect("policy", ACCOUNT);

    let other = TableSasSpec::new("Other", Permissions::READ, minutes_from_now(10));
    let other = world.owner.with_sas(other.sign(ACCOUNT, &world.key));
    world.query(&other).expect_error(403, "AuthenticationFailed");
    world.expect("other_resource", ACCOUNT);

    let types = ResourceTypes { object: false, ..ResourceTypes::ALL };
    let account = AccountSasSpec::new(Permissions::ACCOUNT_ALL, types, minutes_from_now(10));
    let account = world.owner.with_sas(account.sign(ACCOUNT, &world.key));
    world.query(&account).expect_error(403, "AuthorizationResourceTypeMismatch");
    world.expect("resource_type", ACCOUNT);
    let acl = account.get(format!("/{}?comp=acl", world.table)).send();
    acl.expect_error(403, "AuthorizationFailure");
    world.expect("owner_only", ACCOUNT);

    let bearer = world.owner.as_other(Credentials::Bearer("a.b.c".into()));
    assert!(matches!(world.query(&bearer).status, 401 | 403));
    world.expect("bearer_not_configured", ACCOUNT);
}

/// A stranger cannot fill the log, and everything is counted.
#[test]
fn many_refusals_are_few_lines() {
    let world = World::new(Launch::new());
    let stranger = world.owner.anonymous();
    for _ in 0..200 {
        world.query(&stranger).expect(401);
    }
    let lines = world.server.log().matches("reason=\"no_credentials\"").count();
    assert!((1..=20).contains(&lines), "{lines}");
    let counted = "tavola_refusals_total{service=\"table\",reason=\"no_credentials\"} 200\n";
    assert!(metrics(&world.server).contains(counted));
}

/// The reply to a batch is 202 whatever came of it; counted and logged is what came of it.
#[test]
fn a_failed_batch_counts_as_what_it_was() {
    let world = World::new(Launch::new().args(["--access-log", "access.log"]));
    let (owner, table) = (&world.owner, world.table.as_str());
    let row = |row: &str| json!({"PartitionKey": "p", "RowKey": row});
    owner.insert(table, &row("2")).expect(204);
    let batch = Batch::new().insert(owner, table, &row("1")).insert(owner, table, &row("2"));
    batch.send(owner).response.expect(202);
    let reader = world.table_sas(|_| ());
    Batch::new().insert(&reader, table, &row("3")).send(&reader).response.expect(202);
    let metrics = metrics(&world.server);
    for line in [
        "tavola_requests_total{service=\"table\",operation=\"Batch\",class=\"4xx\"} 2\n",
        "tavola_requests_total{service=\"table\",operation=\"Batch\",class=\"2xx\"} 0\n",
        "tavola_errors_total{service=\"table\",code=\"EntityAlreadyExists\"} 1\n",
        "tavola_errors_total{service=\"table\",code=\"AuthorizationPermissionMismatch\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    let line = world.expect("permission", ACCOUNT);
    assert!(line.contains("part=0") && line.contains("operation=\"Batch\""), "{line}");
    let log = super::admin::wait_for_file(&world.server, "access.log", "part=1");
    let line = log.lines().find(|line| line.contains("part=1")).expect("a line");
    assert!(line.contains("status=409 code=EntityAlreadyExists"), "{line}");
}

/// What a signer's clock is ahead of ours is not refused, up to a minute.
#[test]
fn a_little_skew_is_no_refusal() {
    let world = World::new(Launch::new());
    let start = Ticks(minutes_from_now(0).0 + Ticks::PER_MINUTE / 2);
    world.query(&world.table_sas(|spec| spec.start = Some(start))).expect(200);
    assert!(!world.server.log().contains("request refused"));
}
