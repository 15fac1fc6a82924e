//! Account keys (wire-reference 10.1 to 10.4): both schemes, both dates, both keys, and every way to fail.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::Scheme;

use crate::support::{Client, Credentials, KEY, Launch, Response, now, shared_client};

fn key() -> AccountKey {
    AccountKey::from_base64(KEY).unwrap()
}

/// 10.1, 10.2: SharedKey and SharedKeyLite, with `x-ms-date` or the plain `Date` that Java sends.
#[test]
fn both_schemes_with_both_dates() {
    let client = shared_client();
    let table = client.new_table();
    let date = httpdate::fmt_http_date(now());
    for (number, scheme) in [Scheme::SharedKey, Scheme::SharedKeyLite].into_iter().enumerate() {
        let signed = client.as_other(Credentials::Key(scheme, key()));
        signed.query(&table, &[]).send().expect(200);
        signed.query(&table, &[]).header("Date", &date).send().expect(200);
        signed.get(format!("/{table}?comp=acl")).send().expect(200);
        signed.get("/?restype=service&comp=properties").send().expect(200);
        let entity = json!({"PartitionKey": "p", "RowKey": number.to_string()});
        let insert = signed.post(format!("/{table}"), &entity);
        insert.header("Content-MD5", "anything").send().expect(201);
        // x-ms-date is signed when both are there, whatever Date says.
        let both = signed.query(&table, &[]).header("x-ms-date", &date);
        both.header("Date", "Thu, 01 Jan 1970 00:00:00 GMT").send().expect(200);
    }
}

#[track_caller]
fn assert_not_authentic(response: Response) {
    let refused = response.expect_error(403, "AuthenticationFailed");
    // A wrong date is explained on a second line.
    let message = refused.message();
    assert_eq!(
        message.lines().next().unwrap_or_default(),
        "Server failed to authenticate the request. Make sure the value of Authorization header is \
         formed correctly including the signature."
    );
}

/// 10.4: wrong key, wrong account, wrong date, a signature of something else.
#[test]
fn what_is_not_authentic() {
    let client = shared_client();
    let table = client.new_table();
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        let wrong = client.as_other(Credentials::Key(scheme, AccountKey::from_bytes(b"wrong")));
        assert_not_authentic(wrong.query(&table, &[]).send());
        let mut other = client.as_other(Credentials::Key(scheme, key()));
        other.account = "otheraccount".to_owned();
        assert_not_authentic(other.query(&table, &[]).send());
    }
    for minutes in [-16, 16] {
        let offset = Duration::from_secs(60 * 16);
        let moment = if minutes < 0 { now() - offset } else { now() + offset };
        let date = httpdate::fmt_http_date(moment);
        assert_not_authentic(client.query(&table, &[]).header("x-ms-date", date).send());
    }
    let recent = httpdate::fmt_http_date(now() - Duration::from_secs(14 * 60));
    client.query(&table, &[]).header("x-ms-date", recent).send().expect(200);
    assert_not_authentic(client.query(&table, &[]).header("x-ms-date", "yesterday").send());

    let date = httpdate::fmt_http_date(now());
    let signature = key().sign("something else").to_base64();
    let forged = format!("SharedKey {}:{signature}", client.account);
    let dated = client.query(&table, &[]).header("x-ms-date", date);
    assert_not_authentic(dated.header("Authorization", &forged).send());
    assert_not_authentic(client.query(&table, &[]).header("Authorization", &forged).send());
}

/// 10.4: a header that cannot be read, and none.
#[test]
fn what_is_no_authorization() {
    let client = shared_client();
    let table = client.new_table();
    for header in ["nonsense", "SharedKey", "Basic dXNlcjpwYXNz", "SharedKey nocolon"] {
        let refused = client.query(&table, &[]).header("Authorization", header).send();
        let refused = refused.expect_error(400, "InvalidAuthenticationInfo");
        assert_eq!(
            refused.message(),
            "Authentication information is not given in the correct format. Check the value of \
             Authorization header."
        );
    }
    let nobody = client.anonymous().query(&table, &[]).send();
    let nobody = nobody.expect_error(401, "NoAuthenticationInformation");
    assert!(nobody.header("www-authenticate").is_some());
    // XML for XML operations, JSON for those who accept it (10.4).
    let xml = client.anonymous().get(format!("/{table}?comp=acl")).send();
    assert_eq!(xml.header("content-type"), Some("application/xml"));
    assert_eq!(xml.header("x-ms-error-code"), Some("NoAuthenticationInformation"));
}

/// The verb that is signed is the one on the wire, also when it is tunnelled.
#[test]
fn a_changed_request_is_not_authentic() {
    let client = shared_client();
    let table = client.new_table();
    let date = httpdate::fmt_http_date(now());
    let path = format!("/{}/{table}()", client.root);
    let sign = |verb: &str, content_type: &str| {
        tavola_wire::auth::shared_key::SignedRequest {
            verb,
            content_md5: "",
            content_type,
            date: &date,
            account: &client.account,
            raw_path: &path,
            comp: None,
        }
        .sign(Scheme::SharedKey, &key())
    };
    let get = |authorization: String| {
        let request = client.query(&table, &[]).header("x-ms-date", &date);
        request.header("Authorization", authorization).send()
    };
    get(sign("GET", "")).expect(200);
    assert_not_authentic(get(sign("POST", "")));
    assert_not_authentic(get(sign("GET", "application/json")));
}

/// 10.3 and 13: two keys per account, several accounts, each with its own tables.
#[test]
fn accounts_have_two_keys_and_their_own_tables() {
    let accounts = "first:a2V5MQ==:a2V5Mg==;second:a2V5Mw==";
    let server = Arc::new(Launch::new().env("AZURITE_ACCOUNTS", accounts).start());
    let owner = |account: &str, secret: &[u8]| {
        let key = AccountKey::from_bytes(secret);
        let mut client = Client::with(&server, Credentials::Key(Scheme::SharedKeyLite, key));
        client.account = account.to_owned();
        client.root = account.to_owned();
        client
    };
    owner("first", b"key1").create_table("shared").expect(204);
    owner("first", b"key2").create_table("shared").expect_error(409, "TableAlreadyExists");
    assert_not_authentic(owner("first", b"key3").create_table("other"));
    owner("second", b"key3").query("shared", &[]).send().expect_error(404, "TableNotFound");
    owner("second", b"key3").create_table("shared").expect(204);
    // The development account is replaced.
    assert_eq!(Client::new(&server).get("/Tables").send().status, 404);
}
