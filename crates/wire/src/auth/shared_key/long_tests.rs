//! The vectors of the references for queues (section 12) and blobs (section 21), and what a verifier must refuse.

use proptest::prelude::*;

use super::super::Authorization;
use super::*;
use crate::auth::key::tests::dev_key;
use crate::error_code::ErrorCode;

const ACCOUNT: &str = "devstoreaccount1";
const X_MS_DATE: (&str, &str) = ("x-ms-date", "Mon, 16 Nov 2026 12:00:00 GMT");

type Headers<'a> = &'a [(&'a str, &'a str)];

fn request<'a>(verb: &'a str, target: &'a str, headers: Headers<'a>) -> LongSignedRequest<'a> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    LongSignedRequest::new(verb, ACCOUNT, path, query, headers.iter().copied()).unwrap()
}

/// As the server reads it of headers that are not UTF-8.
#[test]
fn values_that_had_to_be_decoded_are_signed_like_others() {
    let text = " caf\u{e9} ";
    let read = |value: Cow<'static, str>| {
        let headers = [("x-ms-meta-a", value.clone()), ("Content-Type", value)];
        LongSignedRequest::new("PUT", ACCOUNT, "/q", "", headers).unwrap()
    };
    let string = read(text.into()).string_to_sign(Scheme::SharedKey);
    assert!(string.contains("x-ms-meta-a:caf\u{e9}\n"), "{string}");
    assert_eq!(read(text.to_owned().into()).string_to_sign(Scheme::SharedKey), string);
}

fn signature_of(header: &str) -> Signature {
    match Authorization::parse(header) {
        Ok(Authorization::SharedKey { signature, .. }) => signature,
        _ => panic!("{header}"),
    }
}

fn is_verified(request: &LongSignedRequest<'_>, scheme: Scheme, base64: &str) -> bool {
    let signature = Signature::parse(base64).unwrap();
    request.verify(scheme, &signature, &[AccountKey::from_bytes(b"other"), dev_key()]).is_ok()
}

#[track_caller]
fn assert_signed(request: &LongSignedRequest<'_>, scheme: Scheme, base64: &str) {
    let expected = format!("{} {ACCOUNT}:{base64}", scheme.as_str());
    assert_eq!(request.sign(scheme, &dev_key()), expected, "{}", request.string_to_sign(scheme));
    assert!(is_verified(request, scheme, base64));
}

/// A request of the reference for queues: verb, target, headers beside date and version, signature.
fn queue<'a>(verb: &'a str, target: &'a str, more: Headers<'a>) -> LongSignedRequest<'a> {
    let headers = [X_MS_DATE, ("x-ms-version", "2025-01-05")].into_iter();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = headers.chain(more.iter().copied());
    LongSignedRequest::new(verb, ACCOUNT, path, query, headers).unwrap()
}

#[test]
fn queue_vectors() {
    let create = queue(
        "PUT",
        "/devstoreaccount1/orders",
        &[("x-ms-meta-Team", "billing"), ("Content-Length", "0")],
    );
    assert_eq!(
        create.string_to_sign(Scheme::SharedKey),
        "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Mon, 16 Nov 2026 12:00:00 GMT\nx-ms-meta-team:billing\nx-ms-version:2025-01-05\n/devstoreaccount1/devstoreaccount1/orders"
    );
    assert_signed(&create, Scheme::SharedKey, "BQQ/vTrmq49Wn6gO7Xgi7Wp4+wBLN/UZb1v9fJfIYHE=");
    assert_eq!(
        create.string_to_sign(Scheme::SharedKeyLite),
        "PUT\n\n\n\nx-ms-date:Mon, 16 Nov 2026 12:00:00 GMT\nx-ms-meta-team:billing\nx-ms-version:2025-01-05\n/devstoreaccount1/devstoreaccount1/orders"
    );
    assert_signed(&create, Scheme::SharedKeyLite, "PW5FD4248iHZaEuZ9uHlqcQlmtBqe2Cf+edsjoxI1+E=");

    const XML: (&str, &str) = ("Content-Type", "application/xml");
    const EMPTY: (&str, &str) = ("Content-Length", "0");
    const ID: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    let message = |rest: &str| format!("/devstoreaccount1/orders/messages/{ID}?{rest}");
    let rows: [(&str, &str, Headers<'_>, &str); 15] = [
        (
            "PUT",
            "/devstoreaccount1/orders",
            &[EMPTY],
            "sCekISg4Hzu0IbRw2rZORWMWoTO87ZxMufrIbbp2fHI=",
        ),
        (
            "POST",
            "/devstoreaccount1/orders/messages?messagettl=3600&visibilitytimeout=5",
            &[XML, ("Content-Length", "113")],
            "5dogDUI9n2gyb2mo8UcxAA8uleSPHsjUPaaU5bFDcsc=",
        ),
        (
            "GET",
            "/devstoreaccount1/orders/messages?peekonly=true",
            &[],
            "Acb7W9RYUWXSicEuZPhIjkkBWP44dcLWOcg489g0x7k=",
        ),
        (
            "GET",
            "/devstoreaccount1/orders/messages?numofmessages=2&visibilitytimeout=30",
            &[],
            "JoEnW5k+vK8WapBht6nMZN/32QfiutLlhv3mhPj//Io=",
        ),
        (
            "PUT",
            &message("popreceipt=AgAAAAMAAAAAAAAAh3pmGcJ13QE%3D&visibilitytimeout=40"),
            &[EMPTY],
            "deqX/R8eAZAz2gwnT3aIC4H33+by5BRBnCAURYYY3rI=",
        ),
        (
            "DELETE",
            &message("popreceipt=AgAAAAMAAAAAAAAAh3pmGcJ13QE%3D"),
            &[],
            "lb9CGfFt/DpT2mKUAh65j1e+rzBOpasuZ4HGTvHNM9g=",
        ),
        (
            "DELETE",
            &message("popreceipt=invalid"),
            &[],
            "JPk5ghmBAnAJe1QJPLbF49Xhq8+fBl1gEPEjjZfOz0s=",
        ),
        (
            "DELETE",
            &message("popreceipt=AwAAAAMAAAAAAAAAsfOfMcJ13QEBAAAA"),
            &[],
            "fCVasOaja2VkiouJlE1haSvgivgahGpP+Q7ZF6zH25o=",
        ),
        (
            "GET",
            "/devstoreaccount1/orders/messages?numofmessages=33",
            &[],
            "6RUzZJL50pOG5fOeqqt+jPkKBd6Or8gbhnGaZ+pwdGE=",
        ),
        (
            "GET",
            "/devstoreaccount1/orders?comp=metadata",
            &[],
            "q6lUYnBDj7PIGZepYd027esEgX/wg0EuiKo5IDZOU6Y=",
        ),
        (
            "GET",
            "/devstoreaccount1/?comp=list&prefix=or&include=metadata&maxresults=1",
            &[],
            "axq1Az03Sf0Ke6AZJCGj/bS5m43B2Fjl4x5JU6rOCKI=",
        ),
        (
            "GET",
            "/devstoreaccount1?comp=list&prefix=or&include=metadata&maxresults=1",
            &[],
            "TYeBgX4qX7oLpjBV5ZjurKQd7hWcdKUVx62maF6dCcM=",
        ),
        // Host style.
        ("GET", "/?comp=list", &[], "dmIZ6HcLJ8ieYKzL7JnZPjyZjxNJZiq4OJEDxEI4rL4="),
        (
            "PUT",
            "/devstoreaccount1/orders?comp=acl",
            &[XML, ("Content-Length", "257")],
            "YVtSBERzgbBb4zs+YtVs7piYi3QHtXyYZR73Xm6jRAY=",
        ),
        (
            "DELETE",
            "/devstoreaccount1/orders/messages",
            &[],
            "m9kXvYQcCygM4Dtg2dUh/rADGg5wz820W3A6Ak5ynGo=",
        ),
    ];
    for (verb, target, headers, signature) in rows {
        assert_signed(&queue(verb, target, headers), Scheme::SharedKey, signature);
    }
    let metadata = queue("GET", "/devstoreaccount1/orders?comp=metadata", &[]);
    assert_signed(&metadata, Scheme::SharedKeyLite, "0HE5w4kvMMaAhe9mb5GM3db6YE+lZ2D4Z+Upmn6ICzw=");
}

fn blob<'a>(verb: &'a str, target: &'a str, more: Headers<'a>) -> LongSignedRequest<'a> {
    let headers = [X_MS_DATE, ("x-ms-version", "2021-08-06")].into_iter();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = headers.chain(more.iter().copied());
    LongSignedRequest::new(verb, ACCOUNT, path, query, headers).unwrap()
}

#[test]
fn blob_vectors() {
    const BINARY: (&str, &str) = ("Content-Type", "application/octet-stream");
    const HELLO: &str = "/devstoreaccount1/c1/dir/hello.txt";
    let rows: [(&str, &str, Headers<'_>, &str); 12] = [
        (
            "PUT",
            "/devstoreaccount1/c1?restype=container",
            &[("Content-Length", "0")],
            "lNQ6zankNlc+XzGBqlBQp33w4s2jIE3/7jCCkqszgOU=",
        ),
        (
            "PUT",
            HELLO,
            &[
                ("x-ms-blob-type", "BlockBlob"),
                ("If-None-Match", "*"),
                ("Content-Type", "text/plain"),
                ("Content-Length", "11"),
            ],
            "lZvENji4JrzKoe1Ug9HvfoQjyORrrz32tD8k1yTQAfA=",
        ),
        (
            "GET",
            HELLO,
            &[("x-ms-range", "bytes=0-4")],
            "wn4bQCoOA/ZzRoqezGEOL+YJ6MeuRujX0MVa67/Zu+s=",
        ),
        ("GET", HELLO, &[("Range", "bytes=6-")], "D/6fj0TN/HhtLv/v+DWzJW1vxd6Y5wktge3skKlvnJY="),
        (
            "HEAD",
            "/devstoreaccount1/c1/missing",
            &[],
            "7+/dSYOOD26CZkWXyfph8ppuY8GHyYiFvUFRYJF6c4o=",
        ),
        (
            "PUT",
            "/devstoreaccount1/c1/b2?comp=block&blockid=QUFBQQ%3D%3D",
            &[BINARY, ("Content-Length", "6")],
            "nEpccVpdBq9Ybau0MGPh9ECSvKNRNVBNr/Vv7YTEhAs=",
        ),
        (
            "PUT",
            "/devstoreaccount1/c1/b2?comp=blocklist",
            &[("Content-Type", "application/xml"), ("Content-Length", "112")],
            "lXKIKa9zMcj/462NunttbKrdlDx0MI22s+5WV+LRNfs=",
        ),
        (
            "GET",
            "/devstoreaccount1/c1?restype=container&comp=list&prefix=dir%2F&delimiter=%2F&include=metadata,snapshots",
            &[],
            "qpogw+trzt4iUgL8XZe51matT2wdYi6N9Nvp/tHqP0M=",
        ),
        (
            "PUT",
            "/devstoreaccount1/c1/log?comp=appendblock",
            &[("x-ms-blob-condition-appendpos", "0"), BINARY, ("Content-Length", "7")],
            "lK4t32qCL0VMC0UEHhW6g4JqPgKKINzFqXnGO7Wl80c=",
        ),
        (
            "PUT",
            "/devstoreaccount1/c1/disk?comp=page",
            &[
                ("x-ms-page-write", "update"),
                ("x-ms-range", "bytes=0-511"),
                BINARY,
                ("Content-Length", "512"),
            ],
            "VKxwI0qsDi1qpPXlri1vzVXc+aiInnvpRInjeQRt/ug=",
        ),
        (
            "PUT",
            "/devstoreaccount1/c1/dir/hello.txt?comp=lease",
            &[
                ("x-ms-lease-action", "acquire"),
                ("x-ms-lease-duration", "15"),
                ("x-ms-proposed-lease-id", "00000000-1111-2222-3333-444444444444"),
                ("Content-Length", "0"),
            ],
            "M7XjZWcfcADdprBkq6BfH4wtNC8Nr9rlau0N9P1FPds=",
        ),
        (
            "GET",
            "/devstoreaccount1/c1/a%20b/%C3%A4%27%281%29%2B%25.txt",
            &[],
            "fBBMQRebTlAAvhHn1XJxjsNGBBPpS+F61rayb0ry6+E=",
        ),
    ];
    for (verb, target, headers, signature) in rows {
        assert_signed(&blob(verb, target, headers), Scheme::SharedKey, signature);
    }
    let list = blob("GET", "/devstoreaccount1/c1?comp=list&restype=container", &[]);
    assert_signed(&list, Scheme::SharedKeyLite, "WSc0qYp8YcOKghOpZUsVFeURN3Hm8D4uAUEVbwp+ELo=");
    // A request inside of a batch has no version.
    let inner = request(
        "DELETE",
        "/devstoreaccount1/c1/x?",
        &[
            X_MS_DATE,
            ("x-ms-client-request-id", "a0a28ec6-e1dd-11f1-b761-02fc00000001"),
            ("Content-Length", "0"),
        ],
    );
    assert_signed(&inner, Scheme::SharedKey, "nt/CPijZhe2v610aA797kyaZgiyDbLwJLAY4nIlLkgY=");
}

#[test]
fn headers_may_be_sorted_as_words_or_as_bytes() {
    let put = blob(
        "PUT",
        "/devstoreaccount1/c1/m",
        &[
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-meta-a1", "1"),
            ("x-ms-meta-a_", "2"),
            ("Content-Type", "application/octet-stream"),
            ("Content-Length", "0"),
        ],
    );
    assert_signed(&put, Scheme::SharedKey, "1qopl6Z3kj29jP189LKVOXYY2BBh6B7dlFWLOpWzzHE=");
    assert!(is_verified(&put, Scheme::SharedKey, "ArqOVap3eH5SSrOv3wS0K/B0Rlo/jC+LEt77hTjGjEU="));
    assert_eq!(put.readings().count(), 2);
}

#[test]
fn a_plus_may_be_a_blank_and_blanks_may_be_folded() {
    let headers = [("x-ms-date", "d"), ("x-ms-meta-a", "x \t y")];
    let sent = request("GET", "/a/q?prefix=a+b", &headers);
    assert_eq!(sent.readings().count(), 4);
    assert!(
        sent.string_to_sign(Scheme::SharedKey)
            .ends_with("x-ms-meta-a:x y\n/devstoreaccount1/a/q\nprefix:a+b")
    );
    for prefix in ["a+b", "a b"] {
        for value in ["x y", "x \t y"] {
            let string = format!(
                "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:d\nx-ms-meta-a:{value}\n/{ACCOUNT}/a/q\nprefix:{prefix}"
            );
            let signature = dev_key().sign(&string).to_base64();
            assert!(is_verified(&sent, Scheme::SharedKey, &signature), "{string}");
        }
    }
    // Where nothing is left open, there is one reading.
    assert_eq!(queue("GET", "/a/q?prefix=a%2Bb", &[("x-ms-meta-a", "x y")]).readings().count(), 1);
}

#[test]
fn each_header_has_its_place() {
    let headers = [
        ("Range", "12"),
        ("If-Unmodified-Since", "11"),
        ("If-None-Match", "10"),
        ("IF-MATCH", "9"),
        ("if-modified-since", "8"),
        ("Date", "7"),
        ("Content-Type", "6"),
        ("Content-MD5", "5"),
        ("Content-Length", "4"),
        ("Content-Language", "3"),
        ("Content-Encoding", "2"),
        ("Host", "unsigned"),
        ("X-MS-Version", " 2020-01-01 "),
        ("x-ms-", ""),
    ];
    let sent = request("1", "/p", &headers);
    assert_eq!(
        sent.string_to_sign(Scheme::SharedKey),
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nx-ms-:\nx-ms-version:2020-01-01\n/devstoreaccount1/p"
    );
    assert_eq!(
        sent.string_to_sign(Scheme::SharedKeyLite),
        "1\n5\n6\n7\nx-ms-:\nx-ms-version:2020-01-01\n/devstoreaccount1/p"
    );
}

#[test]
fn repeated_names_are_joined() {
    let headers =
        [("x-ms-meta-a", "2"), ("date", "d"), ("X-Ms-Meta-A", "1"), ("Range", "a"), ("range", "b")];
    let sent = request("GET", "/p?B=2&a=%2C&b=1&B=3&x", &headers);
    assert_eq!(
        sent.string_to_sign(Scheme::SharedKey),
        "GET\n\n\n\n\n\nd\n\n\n\n\na,b\nx-ms-meta-a:2,1\n/devstoreaccount1/p\na:,\nb:1,2,3\nx:"
    );
}

#[test]
fn the_length_of_nothing_is_empty_since_2015() {
    for (version, line) in [("2015-02-21", ""), ("2014-02-14", "0"), ("", ""), ("2026-10-06", "")] {
        let headers = [("Content-Length", "0"), ("x-ms-version", version)];
        let string = request("PUT", "/p", &headers).string_to_sign(Scheme::SharedKey);
        assert_eq!(string.split('\n').nth(3), Some(line), "{version}");
    }
}

/// An empty `x-ms-date` is no date: then it is `Date` that counts, and so it must be signed.
#[test]
fn the_date_that_counts_is_signed() {
    for (x_ms_date, line) in [("x", ""), ("", "d"), (" ", "d")] {
        let headers = [("Date", "d"), ("x-ms-date", x_ms_date)];
        let string = request("GET", "/p", &headers).string_to_sign(Scheme::SharedKey);
        assert_eq!(string.split('\n').nth(6), Some(line), "{x_ms_date:?}");
    }
}

#[test]
fn the_secondary_may_be_signed_under_either_name() {
    let sent = queue("GET", "/devstoreaccount1-secondary/?comp=list", &[]);
    for path in ["/devstoreaccount1-secondary/?comp=list", "/devstoreaccount1/?comp=list"] {
        let header = queue("GET", path, &[]).sign(Scheme::SharedKey, &dev_key());
        sent.verify(Scheme::SharedKey, &signature_of(&header), &[dev_key()]).unwrap();
    }
    let header = sent.sign(Scheme::SharedKey, &dev_key());
    let primary = queue("GET", "/devstoreaccount1/?comp=list", &[]);
    assert!(primary.verify(Scheme::SharedKey, &signature_of(&header), &[dev_key()]).is_err());
}

#[test]
fn a_query_that_cannot_be_signed_is_refused() {
    const NONE: [(&str, &str); 0] = [];
    let code = |query: &str| {
        LongSignedRequest::new("GET", ACCOUNT, "/p", query, NONE)
            .map_err(|error| error.code())
            .err()
    };
    for query in ["a=x%0Ab:y", "a=x%0A%0Ay:", "a%3Ab=c", "a%0A=b", "%0a"] {
        assert_eq!(code(query), Some(ErrorCode::AuthenticationFailed), "{query}");
    }
    for query in ["a=%", "%f=1", "a=%FF"] {
        assert_eq!(code(query), Some(ErrorCode::InvalidInput), "{query}");
    }
    assert_eq!(code(&"a=1&".repeat(PARAMETERS_MAX)), None);
    assert_eq!(code(&"a=1&".repeat(PARAMETERS_MAX + 1)), Some(ErrorCode::InvalidInput));
}

/// The documentation: a line feed may be in a value if the form of the string is not changed by it.
#[test]
fn a_line_feed_in_a_value_is_signed_as_it_is() {
    let sent = queue("GET", "/devstoreaccount1/?prefix=a%0Ab&comp=list&marker=x:y%0A", &[]);
    let string = sent.string_to_sign(Scheme::SharedKey);
    assert!(string.ends_with("\ncomp:list\nmarker:x:y\n\nprefix:a\nb"), "{string}");
    let header = sent.sign(Scheme::SharedKey, &dev_key());
    sent.verify(Scheme::SharedKey, &signature_of(&header), &[dev_key()]).unwrap();
}

#[test]
fn a_wrong_signature_is_told_what_is_signed() {
    let told = |target: &str, header| {
        let headers = [header];
        let request = queue("GET", target, &headers);
        let wrong = AccountKey::from_bytes(b"other").sign("anything");
        let refused = request.verify(Scheme::SharedKey, &wrong, &[dev_key()]).unwrap_err();
        assert_eq!(refused.message(), ErrorCode::AuthenticationFailed.message());
        let elements: Vec<_> = refused.elements().collect();
        let text = match elements[..] {
            [("AuthenticationErrorDetail", text)] => Some(text.to_owned()),
            [] => None,
            _ => panic!("{elements:?}"),
        };
        assert!(!text.as_ref().is_some_and(|text| text.contains(&wrong.to_base64())));
        text
    };
    let plain = ("x-ms-meta-a", "b");
    let string = queue("GET", "/q?comp=acl", &[plain]).string_to_sign(Scheme::SharedKey);
    let text = told("/q?comp=acl", plain).expect("a text");
    assert!(text.ends_with(&format!("string to sign: '{string}'.")), "{text}");
    for (target, header) in [
        ("/q?sv=2025-01-05&SIG=abc", plain),
        ("/q?comp=%3Fsig%3Dabc", plain),
        ("/q", ("x-ms-copy-source", "https://acct/c/b?sp=r&sig=abc")),
        ("/q", ("x-ms-encryption-key", "abc")),
        ("/q", ("x-ms-copy-source-authorization", "Bearer abc")),
        ("/q", ("x-ms-meta-a", &"b".repeat(STRING_TOLD_BYTES_MAX))),
    ] {
        assert_eq!(told(target, header), None, "{target} {}", header.0);
    }
}

#[test]
fn a_query_is_not_printed() {
    let printed = format!("{:?}", request("GET", "/p?sig=secret", &[]));
    assert_eq!(printed, "LongSignedRequest(GET /p, ..)");
}

#[derive(Clone, Debug)]
struct Sent {
    verb: String,
    path: String,
    parameters: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl Sent {
    fn query(&self) -> String {
        let mut query = String::new();
        for (name, value) in &self.parameters {
            query.push_str(name);
            query.push('=');
            crate::uri::percent::push_encoded(value, &mut query);
            query.push('&');
        }
        query
    }

    fn verify(&self, scheme: Scheme, signature: &Signature) -> bool {
        let query = self.query();
        let headers = self.headers.iter().map(|(name, value)| (&**name, &**value));
        let request = LongSignedRequest::new(&self.verb, ACCOUNT, &self.path, &query, headers);
        request.unwrap().verify(scheme, signature, &[dev_key()]).is_ok()
    }
}

prop_compose! {
    fn any_sent()(
        verb in "GET|PUT|DELETE",
        path in "(/[a-z%0-9]{1,5}){1,3}",
        parameters in prop::collection::btree_map("[a-z]{1,4}", "[ -+\\--~\u{e9}]{1,6}", 0..4),
        metadata in prop::collection::btree_map("x-ms-meta-[a-c_0-2-]{1,3}", "[!-~]( [!-~]){0,3}", 0..4),
        placed in prop::collection::btree_map(prop::sample::select(PLACED.to_vec()), "[1-9a-z]{1,5}", 0..11),
    ) -> Sent {
        let placed = placed.into_iter().map(|(name, value)| (name.to_owned(), value));
        let date = ("x-ms-date".to_owned(), X_MS_DATE.1.to_owned());
        let headers = metadata.into_iter().chain(placed).chain([date]).collect();
        Sent { verb, path, parameters: parameters.into_iter().collect(), headers }
    }
}

proptest! {
    #[test]
    fn what_the_client_signs_is_taken_in_any_order(sent in any_sent(), shift in 0usize..8) {
        for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
            let query = sent.query();
            let headers = sent.headers.iter().map(|(name, value)| (&**name, &**value));
            let request = LongSignedRequest::new(&sent.verb, ACCOUNT, &sent.path, &query, headers).unwrap();
            let signature = signature_of(&request.sign(scheme, &dev_key()));
            let mut moved = sent.clone();
            let (parameters, headers) = (moved.parameters.len().max(1), moved.headers.len());
            moved.parameters.rotate_left(shift % parameters);
            moved.headers.rotate_left(shift % headers);
            moved.headers.iter_mut().for_each(|(name, _)| *name = name.to_ascii_uppercase());
            prop_assert!(moved.verify(scheme, &signature));
        }
    }

    /// Every part that Shared Key signs, changed, dropped or added.
    #[test]
    fn a_changed_part_is_refused(sent in any_sent(), at in 0usize..8) {
        let query = sent.query();
        let headers = sent.headers.iter().map(|(name, value)| (&**name, &**value));
        let request = LongSignedRequest::new(&sent.verb, ACCOUNT, &sent.path, &query, headers).unwrap();
        let signature = signature_of(&request.sign(Scheme::SharedKey, &dev_key()));
        let is_taken = |change: &dyn Fn(&mut Sent)| {
            let mut changed = sent.clone();
            change(&mut changed);
            changed.verify(Scheme::SharedKey, &signature)
        };
        prop_assert!(sent.verify(Scheme::SharedKey, &signature));
        let flip = |text: &mut String| {
            let mut bytes = std::mem::take(text).into_bytes();
            let at = at % bytes.len();
            bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
            *text = String::from_utf8_lossy(&bytes).into_owned();
        };
        prop_assert!(!is_taken(&|sent| flip(&mut sent.verb)));
        prop_assert!(!is_taken(&|sent| flip(&mut sent.path)));
        prop_assert!(!is_taken(&|sent| sent.path.push('/')));
        let has_date = |name: &str| name == "date";
        for index in 0..sent.headers.len() {
            // The date that does not count is not signed either.
            if has_date(&sent.headers[index].0) {
                continue;
            }
            prop_assert!(!is_taken(&|sent| flip(&mut sent.headers[index].1)));
            prop_assert!(!is_taken(&|sent| drop(sent.headers.remove(index))));
            let again = (sent.headers[index].0.clone(), "more".to_owned());
            prop_assert!(!is_taken(&|sent| sent.headers.push(again.clone())));
        }
        for index in 0..sent.parameters.len() {
            prop_assert!(!is_taken(&|sent| flip(&mut sent.parameters[index].1)));
            prop_assert!(!is_taken(&|sent| drop(sent.parameters.remove(index))));
        }
        prop_assert!(!is_taken(&|sent| sent.parameters.push(("more".into(), "1".into()))));
        prop_assert!(!is_taken(&|sent| sent.headers.push(("x-ms-more".into(), "1".into()))));
    }

    #[test]
    fn any_request_is_handled(
        verb in any::<String>(), path in any::<String>(), query in any::<String>(),
        headers in prop::collection::vec((any::<String>(), any::<String>()), 0..5),
    ) {
        let headers = headers.iter().map(|(name, value)| (&**name, &**value));
        if let Ok(request) = LongSignedRequest::new(&verb, ACCOUNT, &path, &query, headers) {
            let signature = signature_of(&request.sign(Scheme::SharedKey, &dev_key()));
            prop_assert!(request.verify(Scheme::SharedKey, &signature, &[dev_key()]).is_ok());
        }
    }
}
