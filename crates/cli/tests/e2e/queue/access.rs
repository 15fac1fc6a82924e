//! Who may do what: signatures of a queue and of the account, stored policies, and no credentials at all.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use tavola_wire::Service;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, QueueSasSpec, ResourceTypes, Services};
use tavola_wire::auth::shared_key::Scheme;

use super::client::{QueueClient, VERSION, document, key, shared_client};
use super::queues::{head_of_answer, replace};
use crate::server::bearer::{Issuer, claims, serve};
use crate::support::http::{self, Response, between};
use crate::support::{ACCOUNT, Credentials, encode, minutes_from_now};

fn with_token(client: &QueueClient, queue: &str, letters: &str) -> QueueClient {
    let permissions = Permissions::parse_queue(letters).expect("letters");
    let spec = QueueSasSpec::new(queue, permissions, minutes_from_now(30));
    client.with(Credentials::Sas(spec.sign(ACCOUNT, &key())))
}

fn with_account_token(client: &QueueClient, letters: &str, types: ResourceTypes) -> QueueClient {
    let permissions = Permissions::parse_account(letters).expect("letters");
    let mut spec = AccountSasSpec::new(permissions, types, minutes_from_now(30));
    spec.services = Services::of(Service::Queue);
    client.with(Credentials::Sas(spec.sign(ACCOUNT, &key())))
}

/// What the letters allow, one after the other.
fn attempts(client: &QueueClient, owner: &QueueClient, queue: &str) -> Vec<(&'static str, u16)> {
    let put = owner.put_message(queue, "text", "");
    let message = format!("/{queue}/messages/{}?popreceipt={}", put.id, encode(&put.receipt));
    let send = |method: &str, path: String| client.request(method, path).send().status;
    vec![
        ("peek", send("GET", format!("/{queue}/messages?peekonly=true"))),
        ("metadata", send("GET", format!("/{queue}?comp=metadata"))),
        ("put", client.put(queue, "more", "").status),
        ("update", send("PUT", format!("{message}&visibilitytimeout=0"))),
        ("get", send("GET", format!("/{queue}/messages?visibilitytimeout=1"))),
        ("delete", {
            let fresh = owner.put_message(queue, "text", "");
            let receipt = encode(&fresh.receipt);
            send("DELETE", format!("/{queue}/messages/{}?popreceipt={receipt}", fresh.id))
        }),
        ("set metadata", send("PUT", format!("/{queue}?comp=metadata"))),
        ("acl", send("GET", format!("/{queue}?comp=acl"))),
        ("clear", send("DELETE", format!("/{queue}/messages"))),
        ("list", send("GET", "/?comp=list".to_owned())),
        ("create", send("PUT", format!("/{queue}"))),
    ]
}

fn allowed(attempts: &[(&'static str, u16)]) -> Vec<&'static str> {
    for (what, status) in attempts {
        assert!(*status < 300 || *status == 403, "{what}: {status}");
    }
    attempts.iter().filter(|(_, status)| *status < 300).map(|(what, _)| *what).collect()
}

/// Section 7.4.
#[test]
fn a_token_of_a_queue_allows_what_its_letters_say() {
    let owner = shared_client();
    let queue = owner.new_queue();
    for (letters, expected) in [
        ("r", &["peek", "metadata"][..]),
        ("a", &["put"]),
        ("u", &["update"]),
        ("p", &["get", "delete"]),
        ("raup", &["peek", "metadata", "put", "update", "get", "delete"]),
    ] {
        let client = with_token(&owner, &queue, letters);
        assert_eq!(allowed(&attempts(&client, &owner, &queue)), expected, "{letters}");
        owner.delete(format!("/{queue}/messages")).expect(204);
    }
    let reader = with_token(&owner, &queue, "r");
    reader.put(&queue, "a", "").expect_error(403, "AuthorizationPermissionMismatch");
    let refused = reader.request("PUT", format!("/{queue}")).send();
    assert_eq!(refused.expect_error(403, "AuthorizationFailure").body.len(), 246);
    // Of another queue it says nothing, whether that exists or not.
    let other = owner.new_queue();
    let refused = reader.get(format!("/{other}/messages?peekonly=true"));
    let refused = refused.expect_error(403, "AuthenticationFailed");
    let signed = format!("\n/queue/{ACCOUNT}/{other}\n\n");
    let told = detail(&refused);
    assert!(told.starts_with("Signature did not match. String to sign used was r\n"), "{told}");
    assert!(told.contains(&signed), "{told}");
    let permissions = Permissions::parse_queue("r").expect("letters");
    let spec = QueueSasSpec::new(&queue, permissions, minutes_from_now(-1));
    let late = owner.with(Credentials::Sas(spec.sign(ACCOUNT, &key())));
    let refused = late.get(format!("/{queue}?comp=metadata"));
    let refused = refused.expect_error(403, "AuthenticationFailed");
    let start = "Signature not valid in the specified time frame: Expiry [";
    assert!(detail(&refused).starts_with(start), "{}", refused.text());
}

/// What a server answers to these bytes, below the head.
fn body_of_answer(client: &QueueClient, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(client.server().queue_address()).expect("a connection");
    stream.write_all(request).expect("to be sent");
    http::read(&mut BufReader::new(stream)).expect("an answer").text().to_owned()
}

/// What a refusal says of its cause.
#[track_caller]
fn detail(refused: &Response) -> &str {
    let (start, end) =
        ("</Message><AuthenticationErrorDetail>", "</AuthenticationErrorDetail></Error>");
    between(refused.text(), start, end).unwrap_or_else(|| panic!("no detail: {}", refused.text()))
}

/// The queue may be written with escapes, and is the same.
#[test]
fn a_token_of_a_queue_is_for_it_however_it_is_written() {
    let owner = shared_client();
    let queue = owner.new_queue();
    let escaped = queue.replacen("queue", "%71ue%75e", 1);
    let reader = with_token(&owner, &queue, "r");
    reader.get(format!("/{escaped}/messages?peekonly=true")).expect(200);
    let (before, after) = (queue.clone(), queue.replacen("queue", "Queue", 1));
    reader.get(format!("/{after}/messages?peekonly=true")).expect(403);
    reader.get(format!("/{before}%0A/messages?peekonly=true")).expect(403);
    let body = format!(
        "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>{}</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
        minutes_from_now(30).to_iso()
    );
    owner.request("PUT", format!("/{escaped}?comp=acl")).body(body).send().expect(204);
    let spec = QueueSasSpec::with_policy(&queue, "readers");
    let by_policy = owner.with(Credentials::Sas(spec.sign(ACCOUNT, &key())));
    by_policy.get(format!("/{escaped}/messages?peekonly=true")).expect(200);
}

/// Section 7.3.
#[test]
fn a_token_of_the_account_allows_what_letters_and_types_say() {
    let owner = shared_client();
    let queue = owner.new_queue();
    let all = with_account_token(&owner, "rwdlacup", ResourceTypes::ALL);
    let expected = [
        "peek",
        "metadata",
        "put",
        "update",
        "get",
        "delete",
        "set metadata",
        "clear",
        "list",
        "create",
    ];
    assert_eq!(allowed(&attempts(&all, &owner, &queue)), expected);
    let objects = ResourceTypes { service: false, container: false, object: true };
    let objects = with_account_token(&owner, "rwdlacup", objects);
    let expected = ["peek", "put", "update", "get", "delete", "clear"];
    assert_eq!(allowed(&attempts(&objects, &owner, &queue)), expected);
    let service = ResourceTypes { service: true, container: false, object: false };
    let service = with_account_token(&owner, "rl", service);
    assert_eq!(allowed(&attempts(&service, &owner, &queue)), ["list"]);
    service.get("/?restype=service&comp=properties").expect(200);
    let mut spec = AccountSasSpec::new(
        Permissions::parse_account("rl").expect("letters"),
        ResourceTypes::ALL,
        minutes_from_now(30),
    );
    spec.services = Services::of(Service::Table);
    let tables = owner.with(Credentials::Sas(spec.sign(ACCOUNT, &key())));
    tables.get("/?comp=list").expect_error(403, "AuthorizationServiceMismatch");
}

#[test]
fn a_token_may_refer_to_a_stored_policy() {
    let owner = shared_client();
    let queue = owner.new_queue();
    let spec = QueueSasSpec::with_policy(&queue, "readers");
    let client = owner.with(Credentials::Sas(spec.sign(ACCOUNT, &key())));
    let peek = |client: &QueueClient| client.get(format!("/{queue}/messages?peekonly=true"));
    peek(&client).expect_error(403, "AuthenticationFailed");
    let set = |permission: &str| -> Response {
        let expiry = minutes_from_now(30).to_iso();
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>{expiry}</Expiry><Permission>{permission}</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        owner.request("PUT", format!("/{queue}?comp=acl")).body(body).send().expect(204)
    };
    set("r");
    peek(&client).expect(200);
    client.put(&queue, "a", "").expect_error(403, "AuthorizationPermissionMismatch");
    set("a");
    peek(&client).expect_error(403, "AuthorizationPermissionMismatch");
    client.put(&queue, "a", "").expect(201);
    owner.request("PUT", format!("/{queue}?comp=acl")).send().expect(204);
    client.put(&queue, "a", "").expect_error(403, "AuthenticationFailed");
}

/// Section 8.2: older versions do not even say that they want to know who asks.
#[test]
fn those_without_credentials_are_told_by_version() {
    let owner = shared_client();
    let queue = owner.new_queue();
    let nobody = owner.with(Credentials::Nobody);
    let ask = |version: &str| {
        let request = nobody.request("GET", format!("/{queue}?comp=metadata"));
        request.header("x-ms-version", version).send()
    };
    let old = ask("2018-11-09").expect_error(404, "ResourceNotFound");
    assert_eq!(old.body.len(), 223);
    assert_eq!(old.header("www-authenticate"), None);
    assert_eq!(old.header("x-ms-version"), Some("2018-11-09"));
    ask("2025-01-05").expect_error(401, "NoAuthenticationInformation");
}

#[test]
fn signatures_cover_the_request() {
    let owner = shared_client();
    let queue = owner.new_queue();
    let lite = owner.with(Credentials::Key(Scheme::SharedKeyLite, key()));
    lite.get(format!("/{queue}?comp=metadata")).expect(200);
    lite.put(&queue, "a", "?messagettl=60").expect(201);
    let wrong = tavola_wire::auth::AccountKey::from_base64("AAAA").unwrap();
    let stranger = owner.with(Credentials::Key(Scheme::SharedKey, wrong));
    let refused = stranger.get(format!("/{queue}?comp=metadata"));
    let refused = refused.expect_error(403, "AuthenticationFailed");
    let told = detail(&refused);
    assert!(
        told.starts_with("The MAC signature found in the HTTP request is not the same as any "),
        "{told}"
    );
    let signed = between(told, "Server used following string to sign: 'GET\n", "'.");
    let end = format!("/{ACCOUNT}/{ACCOUNT}/{queue}\ncomp:metadata");
    assert!(signed.is_some_and(|signed| signed.ends_with(&end)), "{told}");
    let other = owner.request("GET", format!("/{queue}?comp=metadata")).into_bytes();
    let named = format!("SharedKey {ACCOUNT}:");
    let refused = body_of_answer(&owner, &replace(&other, named.as_bytes(), b"SharedKey other:"));
    let told = "<AuthenticationErrorDetail>The Authorization header names another account.<";
    assert!(refused.contains(told), "{refused}");
    let late = owner.request("GET", format!("/{queue}?comp=metadata"));
    let date = "Thu, 03 Sep 2020 18:50:45 GMT";
    let refused = late.header("x-ms-date", date).send().expect_error(403, "AuthenticationFailed");
    assert_eq!(detail(&refused), format!("Request date header too old: '{date}'"));
    // A line feed in a value is signed as it is, unless what follows it could pass for a parameter.
    owner.get("/?comp=list&prefix=a%0Ab").expect(200);
    // An empty type is signed as such, and anything is taken for XML.
    let request = owner.request("POST", format!("/{queue}/messages"));
    let request = request.header("Content-Type", "application/atom+xml;charset=\"utf-8\"");
    request.body(document("b")).send().expect(201);
}

/// What a refusal says of its cause may go into a log.
#[test]
fn no_refusal_repeats_a_signature() {
    let owner = shared_client();
    let queue = owner.new_queue();
    let wrong = tavola_wire::auth::AccountKey::from_base64("AAAA").unwrap();
    let token = QueueSasSpec::new(
        &queue,
        Permissions::parse_queue("r").expect("letters"),
        minutes_from_now(30),
    );
    let token = token.sign(ACCOUNT, &wrong);
    let signature = between(&format!("{token}&"), "sig=", "&").expect("a signature").to_owned();
    let decoded = signature.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
    let path = format!("/{queue}?comp=metadata");
    let stranger = owner.with(Credentials::Key(Scheme::SharedKey, wrong.clone()));
    let by_token = owner.with(Credentials::Sas(token.clone()));
    // In the query, where it is signed by the header; and in the URL of a source.
    let source = format!("https://acct.blob.example/c/b?{token}");
    for answer in [
        by_token.get(&path),
        stranger.get(format!("{path}&{token}")),
        stranger.request("GET", &path).header("x-ms-copy-source", source).send(),
    ] {
        let answer = answer.expect_error(403, "AuthenticationFailed");
        assert!(!answer.text().contains(&signature), "{}", answer.text());
        assert!(!answer.text().contains(&decoded), "{}", answer.text());
    }
    // That of the header itself.
    let date = httpdate::fmt_http_date(crate::support::now());
    let sent = stranger.request("GET", &path).header("x-ms-date", &*date).into_bytes();
    let sent = String::from_utf8(sent).unwrap();
    let signature = between(&sent, &format!("SharedKey {ACCOUNT}:"), "\r\n").expect("a header");
    let refused = stranger.request("GET", &path).header("x-ms-date", &*date).send();
    let refused = refused.expect_error(403, "AuthenticationFailed");
    assert!(!refused.text().contains(signature), "{}", refused.text());
    assert!(detail(&refused).contains(&date), "{}", refused.text());
}

/// Section 7.6: a role for queues says nothing of tables, and the other way round.
#[test]
fn roles_of_queues_are_for_queues() {
    let issuer = Issuer::new("one");
    let server = serve(&[&issuer], "allow-http = true");
    let owner = QueueClient::new(&server);
    let queue = owner.new_queue();
    let token = |role: &str| Credentials::Bearer(issuer.token(&claims(&[role])));
    let everything = [
        "peek",
        "metadata",
        "put",
        "update",
        "get",
        "delete",
        "set metadata",
        "clear",
        "list",
        "create",
    ];
    for (role, expected) in [
        ("Storage Queue Data Contributor", &everything[..]),
        ("Storage Queue Data Reader", &["peek", "metadata", "list"]),
        ("Storage Queue Data Message Sender", &["put"]),
        ("Storage Queue Data Message Processor", &["peek", "metadata", "get", "delete"]),
        ("Storage Table Data Contributor", &[]),
        ("Auditor", &["peek", "metadata"]),
    ] {
        let client = owner.with(token(role));
        assert_eq!(allowed(&attempts(&client, &owner, &queue)), expected, "{role}");
        owner.delete(format!("/{queue}/messages")).expect(204);
    }
    for (claim, value, expected) in [
        ("aud", "https://else.example", "Audience validation failed. Audience did not match."),
        ("iss", "https://evil.example/", "Issuer validation failed. Issuer did not match."),
    ] {
        let mut claims = claims(&["Storage Queue Data Reader"]);
        claims[claim] = value.into();
        let bearer = owner.with(Credentials::Bearer(issuer.token(&claims)));
        let refused = bearer.get("/?comp=list").expect_error(401, "InvalidAuthenticationInfo");
        assert_eq!(detail(&refused), expected);
    }
    // An audience is a URL, and one for the storage of an account is narrower than one for storage.
    for audience in [
        "https://storage.azure.com/",
        "https://devstoreaccount1.queue.core.windows.net",
        "https://devstoreaccount1.queue.core.windows.net/",
        "https://other.example/",
    ] {
        let mut claims = claims(&["Storage Queue Data Reader"]);
        claims["aud"] = audience.into();
        owner.with(Credentials::Bearer(issuer.token(&claims))).get("/?comp=list").expect(200);
    }
    let contributor = owner.with(token("Storage Queue Data Contributor"));
    let properties = "/?restype=service&comp=properties";
    contributor.get(properties).expect_error(403, "AuthorizationPermissionMismatch");
    let tables = crate::support::Client::with(&server, token("Storage Queue Data Contributor"));
    tables.get("/Tables").send().expect_error(403, "AuthorizationPermissionMismatch");
}

/// Section 2.3: a request without a version is answered as by the newest one.
#[test]
fn those_who_name_no_version_are_challenged() {
    let issuer = Issuer::new("one");
    let server = serve(&[&issuer], "allow-http = true");
    let owner = QueueClient::new(&server);
    let wrong = owner.with(Credentials::Bearer("not.a.token".to_owned()));
    for (client, code) in [
        (&wrong, "InvalidAuthenticationInfo"),
        (&owner.with(Credentials::Nobody), "NoAuthenticationInformation"),
    ] {
        let request = client.request("GET", "/?comp=list").into_bytes();
        let line = format!("x-ms-version: {VERSION}\r\n");
        let head = head_of_answer(client, &replace(&request, line.as_bytes(), b""));
        let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 401"), "{head}");
        assert!(head.contains(&format!("x-ms-error-code: {}\r\n", code.to_lowercase())), "{head}");
        let challenge = "www-authenticate: bearer authorization_uri=https://issuer.example/";
        assert!(head.contains(challenge), "{head}");
    }
    let older = wrong.request("GET", "/?comp=list").header("x-ms-version", "2018-11-09").send();
    older.expect_error(403, "AuthenticationFailed");
}
