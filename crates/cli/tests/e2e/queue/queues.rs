//! Queues themselves: create, delete, metadata, access policies, lists.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use tavola_wire::Service;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes, Services};

use super::client::{QueueClient, document, key, shared_client, unused_name};
use crate::support::http::{self, Response, between};
use crate::support::{ACCOUNT, Credentials, Launch, minutes_from_now};

fn create(client: &QueueClient, name: &str, metadata: &[(&str, &str)]) -> Response {
    let mut request = client.request("PUT", format!("/{name}"));
    for (name, value) in metadata {
        request = request.header(&format!("x-ms-meta-{name}"), *value);
    }
    request.send()
}

#[test]
fn a_queue_is_made_once() {
    let client = shared_client();
    let name = unused_name();
    let created = create(&client, &name, &[("Team", "billing")]).expect(201);
    assert_eq!(created.header("content-length"), Some("0"));
    assert_eq!(created.header("x-ms-version"), Some("2025-01-05"));
    let server = created.header("server").unwrap();
    assert!(server.starts_with("Windows-Azure-Queue/1.0"), "{server}");
    create(&client, &name, &[("team", "billing")]).expect(204);
    for metadata in [&[][..], &[("team", "other")], &[("team", "billing"), ("a", "b")]] {
        let refused = create(&client, &name, metadata).expect_error(409, "QueueAlreadyExists");
        assert_eq!(refused.header("x-ms-error-code"), Some("QueueAlreadyExists"));
        assert_eq!(refused.body.len(), 222);
        assert_eq!(refused.header("cache-control"), None);
    }
    client.delete(format!("/{name}")).expect(204);
    client.delete(format!("/{name}")).expect_error(404, "QueueNotFound");
    create(&client, &name, &[]).expect(201);
    create(&client, &name, &[]).expect(204);
}

/// Of many at once one is the first.
#[test]
fn one_of_many_creates_it() {
    let server = crate::support::shared();
    let name = unused_name();
    let statuses: Vec<_> = std::thread::scope(|scope| {
        let create = || create(&QueueClient::new(&server), &name, &[("a", "b")]).status;
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 7, "{statuses:?}");
}

/// Section 5.2.
#[test]
fn names_are_checked_before_anything_is_looked_for() {
    let client = shared_client();
    let long = "a".repeat(64);
    for name in ["ab", &long] {
        for method in ["PUT", "DELETE"] {
            client.request(method, format!("/{name}")).send().expect_error(400, "OutOfRangeInput");
        }
    }
    for name in ["a_b", "-ab", "ab-", "a--b", "Abc", "%E5%95%8A%E9%BD%84%E4%B8%82"] {
        let refused = client.get(format!("/{name}/messages"));
        let refused = refused.expect_error(400, "InvalidResourceName");
        let text = "The specifed resource name contains invalid characters.";
        assert!(refused.text().contains(text));
    }
}

#[test]
fn metadata_are_replaced_as_a_whole() {
    let client = shared_client();
    let name = client.new_queue();
    let path = format!("/{name}?comp=metadata");
    let set = client.request("PUT", &path).header("x-ms-meta-hello", "world");
    set.header("x-ms-meta-number", " 43 ").send().expect(204);
    for method in ["GET", "HEAD"] {
        let metadata = client.request(method, &path).send().expect(200);
        assert_eq!(metadata.header("x-ms-meta-hello"), Some("world"));
        assert_eq!(metadata.header("x-ms-meta-number"), Some("43"));
        assert_eq!(metadata.header("x-ms-approximate-messages-count"), Some("0"));
        assert_eq!(metadata.header("cache-control"), Some("no-cache"));
        assert_eq!(metadata.header("content-length"), Some("0"));
    }
    // A client sends this one by mistake.
    client.request("PUT", &path).header("x-ms-meta", "{'a': 'b'}").send().expect(204);
    assert_eq!(client.get(&path).expect(200).header("x-ms-meta-hello"), None);
    for (header, code) in [
        ("x-ms-meta-invalid-meta", "InvalidMetadata"),
        ("x-ms-meta-12345", "InvalidMetadata"),
        ("x-ms-meta-", "EmptyMetadataKey"),
    ] {
        client.request("PUT", &path).header(header, "x").send().expect_error(400, code);
    }
    let large = client.request("PUT", &path).header("x-ms-meta-a", "v".repeat(8192));
    large.send().expect_error(400, "MetadataTooLarge");
    let missing = format!("/{}?comp=metadata", unused_name());
    client.get(&missing).expect_error(404, "QueueNotFound");
    client.request("PUT", &missing).send().expect_error(404, "QueueNotFound");
    let head = client.request("HEAD", &missing).send().expect(404);
    assert_eq!(head.header("x-ms-error-code"), Some("QueueNotFound"));
}

/// 8 KiB are what they may take, in however many headers.
#[test]
fn metadata_may_be_thousands_of_headers() {
    let client = shared_client();
    let queue = client.new_queue();
    let path = format!("/{queue}?comp=metadata");
    let set = |count: usize| {
        let names = (0..count).map(|number| format!("x-ms-meta-a{number:03X}"));
        names.fold(client.request("PUT", &path), |set, name| set.header(&name, "")).send()
    };
    set(2048).expect(204);
    let answer = client.get(&path).expect(200);
    let names = metadata_names(&answer);
    assert_eq!((names.len(), names[255]), (2048, "x-ms-meta-a0FF"));
    set(2049).expect_error(400, "MetadataTooLarge");
    assert_eq!(set(5000).status, 431);
}

/// The names of the metadata that an answer has, as they were written.
fn metadata_names(answer: &Response) -> Vec<&str> {
    let names = answer.headers.iter().map(|(name, _)| name.as_str());
    names.filter(|name| name.to_ascii_lowercase().starts_with("x-ms-meta-")).collect()
}

/// Section 5.3.
#[test]
fn names_of_metadata_keep_their_case() {
    let server = std::sync::Arc::new(Launch::new().start());
    let client = QueueClient::new(&server);
    let (queue, path) = ("cased", "/cased?comp=metadata");
    let pairs = [("MyName", "1"), ("plain", "2"), ("UPPER_case", "3")];
    create(&client, queue, &pairs).expect(201);
    let written = ["x-ms-meta-MyName", "x-ms-meta-plain", "x-ms-meta-UPPER_case"];
    for method in ["GET", "HEAD"] {
        let answer = client.request(method, path).send().expect(200);
        assert_eq!(metadata_names(&answer), written);
        assert!(answer.headers.iter().any(|(name, _)| name == "x-ms-version"), "{answer:?}");
    }
    let listed =
        "<Metadata><MyName>1</MyName><plain>2</plain><UPPER_case>3</UPPER_case></Metadata>";
    let list = client.get("/?comp=list&include=metadata").expect(200);
    assert!(list.text().contains(listed), "{}", list.text());
    // The same in another case is the same, and changes nothing.
    create(&client, queue, &[("MYNAME", "1"), ("Plain", "2"), ("upper_case", "3")]).expect(204);
    server.crash_and_restart();
    let client = QueueClient::new(&server);
    assert_eq!(metadata_names(&client.get(path).expect(200)), written);
    // What begins the name has no case of its own.
    let set = client.request("PUT", path).header("X-MS-META-myName", "4");
    set.send().expect(204);
    let answer = client.get(path).expect(200);
    assert_eq!(metadata_names(&answer), ["x-ms-meta-myName"]);
    assert_eq!(answer.header("x-ms-meta-myname"), Some("4"));
}

/// What a server answers to these bytes, up to the end of the head.
pub(super) fn head_of_answer(client: &QueueClient, request: &[u8]) -> Vec<u8> {
    let mut stream = BufReader::new(TcpStream::connect(client.server().queue_address()).unwrap());
    stream.get_mut().write_all(request).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_until(b'\n', &mut head).unwrap(), 0, "an answer");
    }
    head
}

pub(super) fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|part| part == from).expect("to be there");
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

/// Section 5.3: bytes are kept. Clients sign the text of a value, and send it as UTF-8 or as Latin-1.
#[test]
fn values_of_metadata_need_not_be_ascii() {
    let owner = shared_client();
    let queue = owner.new_queue();
    let path = format!("/{queue}?comp=metadata");
    let permissions = Permissions::parse_account("rwdlacup").expect("letters");
    let mut spec = AccountSasSpec::new(permissions, ResourceTypes::ALL, minutes_from_now(30));
    spec.services = Services::of(Service::Queue);
    let holder = owner.with(Credentials::Sas(spec.sign(ACCOUNT, &key())));
    for client in [&owner, &holder] {
        for sent in ["caf\u{e9}".as_bytes(), b"caf\xe9"] {
            let set = client.request("PUT", &path).header("x-ms-meta-place", "caf\u{e9}");
            let set = set.header("x-ms-meta-plain", "tea").into_bytes();
            let set = head_of_answer(client, &replace(&set, "caf\u{e9}".as_bytes(), sent));
            assert!(set.starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(&set));
            let got = head_of_answer(client, &client.request("GET", &path).into_bytes());
            for line in [&[b"x-ms-meta-place: ", sent].concat()[..], b"x-ms-meta-plain: tea"] {
                assert!(got.windows(line.len()).any(|part| part == line), "{got:?}");
            }
        }
    }
    let list = owner.get(format!("/?comp=list&include=metadata&prefix={queue}")).expect(200);
    assert!(list.text().contains("<place>caf\u{e9}</place>"), "{}", list.text());
}

/// Requests that are sent without waiting for answers, with a body in chunks between them that looks like one.
#[test]
fn each_request_has_its_own_names() {
    let client = shared_client();
    let names = ["First", "fIRST", "first", "FIRST"];
    let queues: Vec<_> = names.iter().map(|_| client.new_queue()).collect();
    let mut bytes = Vec::new();
    for (queue, name) in queues.iter().zip(names) {
        let path = format!("/{queue}?comp=metadata");
        let header = format!("x-ms-meta-{name}");
        bytes.extend(client.request("PUT", &path).header(&header, name).into_bytes());
        let text = document("PUT / HTTP/1.1\r\nx-ms-meta-FiRsT: x\r\n\r\n");
        let put = client.request("POST", format!("/{queue}/messages"));
        bytes.extend(put.header("Transfer-Encoding", "chunked").into_bytes());
        bytes.extend(format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len()).into_bytes());
        bytes.extend(client.request("GET", &path).into_bytes());
    }
    let stream = TcpStream::connect(client.server().queue_address()).unwrap();
    let mut stream = BufReader::new(stream);
    stream.get_mut().write_all(&bytes).unwrap();
    for name in names {
        for status in [204, 201] {
            http::read(&mut stream).unwrap().expect(status);
        }
        let answer = http::read(&mut stream).unwrap().expect(200);
        assert_eq!(metadata_names(&answer), [format!("x-ms-meta-{name}")]);
        assert_eq!(answer.header("x-ms-meta-first"), Some(name));
    }
}

#[test]
fn access_policies_are_kept_as_they_were_set() {
    let client = shared_client();
    let name = client.new_queue();
    let path = format!("/{name}?comp=acl");
    let empty = client.get(&path).expect(200);
    assert!(empty.text().ends_with("?><SignedIdentifiers />"));
    assert_eq!(empty.header("cache-control"), Some("no-cache"));
    let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Start>2026-11-16T11:00:00Z</Start><Expiry>2026-11-17T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    client.request("PUT", &path).body(body).send().expect(204);
    let stored = client.get(&path).expect(200);
    let padded =
        body.replace("11:00:00Z", "11:00:00.0000000Z").replace("T00:00:00Z", "T00:00:00.0000000Z");
    assert_eq!(stored.text(), format!("\u{feff}{padded}"));
    client.request("HEAD", &path).send().expect(200);
    let wrong = body.replace("<Permission>r<", "<Permission>rwdl<");
    let refused = client.request("PUT", &path).body(wrong).send();
    let refused = refused.expect_error(400, "InvalidXmlDocument");
    let end = "<LineNumber>0</LineNumber><LinePosition>0</LinePosition><Reason /></Error>";
    assert!(refused.text().ends_with(end), "{}", refused.text());
    for broken in [body.replace("<Id>", "<Id a='b'c='d'>"), body.replace("<Id>", "<Id>]]>")] {
        let refused = client.request("PUT", &path).body(broken).send();
        let refused = refused.expect_error(400, "InvalidXmlDocument");
        let reason = "<Reason>Error parsing Xml content</Reason></Error>";
        assert!(refused.text().ends_with(reason), "{}", refused.text());
    }
    // An id may have a carriage return, which only a reference keeps.
    let broken_line = body.replace("readers", "read&#13;ers");
    client.request("PUT", &path).body(broken_line).send().expect(204);
    assert!(client.get(&path).text().contains("<Id>read&#xD;ers</Id>"));
    client.request("PUT", &path).send().expect(204);
    assert!(client.get(&path).text().ends_with("<SignedIdentifiers />"));
    let missing = format!("/{}?comp=acl", unused_name());
    client.get(&missing).expect_error(404, "QueueNotFound");
    client.request("PUT", &missing).send().expect_error(404, "QueueNotFound");
}

fn names(page: &Response) -> Vec<String> {
    let parts = page.text().split("<Name>").skip(1);
    parts.map(|part| part.split_once("</Name>").unwrap().0.to_owned()).collect()
}

#[test]
fn lists_go_by_name_page_by_page() {
    let server = std::sync::Arc::new(Launch::new().start());
    let client = QueueClient::new(&server);
    let empty = client.get("/?comp=list").expect(200);
    assert!(empty.text().ends_with("<Queues /><NextMarker /></EnumerationResults>"));
    assert_eq!(empty.header("cache-control"), Some("no-cache"));
    for number in [3, 1, 0, 2] {
        create(&client, &format!("listqueue{number}"), &[("foo", "<&>"), ("Bar", "")]).expect(201);
    }
    create(&client, "other", &[]).expect(201);
    let first = client.get("/?comp=list&prefix=listqueue&maxresults=3").expect(200);
    assert_eq!(names(&first), ["listqueue0", "listqueue1", "listqueue2"]);
    let text = first.text();
    let endpoint = format!("http://{}/{ACCOUNT}/", server.queue_address());
    assert!(text.contains(&format!("<EnumerationResults ServiceEndpoint=\"{endpoint}\">")));
    assert!(text.contains("<Prefix>listqueue</Prefix><MaxResults>3</MaxResults><Queues>"));
    let marker = between(text, "<NextMarker>", "</NextMarker>").unwrap();
    assert_eq!(marker, format!("/{ACCOUNT}/listqueue3"));
    // The marker is good although its queue is gone.
    client.delete("/listqueue3").expect(204);
    let rest = client.get(format!("/?comp=list&marker={marker}&include=metadata")).expect(200);
    assert_eq!(names(&rest), ["other"]);
    assert!(rest.text().contains(&format!("<Marker>{marker}</Marker><Queues>")));
    assert!(rest.text().contains("<Name>other</Name><Metadata /></Queue>"));
    let all = client.get("?comp=list&include=metadata&prefix=").expect(200);
    assert_eq!(names(&all).len(), 4);
    assert!(all.text().contains("<Prefix /><Queues>"), "{}", all.text());
    assert!(all.text().contains("<foo>&lt;&amp;&gt;</foo>"), "{}", all.text());
    client.get("/?comp=list&marker=garbage").expect_error(400, "OutOfRangeInput");
    let refused = client.get("/?comp=list&maxresults=0");
    let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
    assert!(refused.text().contains("<MinimumAllowed>1</MinimumAllowed>"));
    client.get("/?comp=list&include=deleted").expect_error(400, "InvalidQueryParameterValue");
    // Lists, metadata and policies are there after a crash.
    server.crash_and_restart();
    assert_eq!(names(&QueueClient::new(&server).get("/?comp=list").expect(200)).len(), 4);
}
