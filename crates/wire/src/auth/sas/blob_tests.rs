//! The vectors of the reference for blobs (section 21.12), and the letters that operations need (section 4.5).

use super::super::fields::tests::{borrow, decode};
use super::super::{Addressed, Grant, RequestOrigin, SasToken};
use super::*;
use crate::auth::key::AccountKey;
use crate::auth::key::tests::dev_key;
use crate::ticks::Ticks;

const ACCOUNT: &str = "devstoreaccount1";
const HELLO: BlobAddress<'_> =
    BlobAddress { container: "c1", blob: Some("dir/hello.txt"), snapshot: None, version_id: None };
const SNAPSHOT: &str = "2026-11-16T11:59:59.1234567Z";
const FAILED: Option<ErrorCode> = Some(ErrorCode::AuthenticationFailed);

fn token<'a>(address: BlobAddress<'a>, pairs: &'a [(String, String)]) -> Result<SasToken<'a>> {
    Ok(SasToken::parse(Addressed::Blob(address), borrow(pairs))?.expect("there is a signature"))
}

fn grant(address: BlobAddress<'_>, query: &str) -> Result<Grant> {
    let pairs = decode(query);
    let now = Ticks::parse_iso("2026-11-16T12:00:00Z").unwrap();
    let origin = RequestOrigin { now, client: [10, 0, 0, 1].into(), https: true };
    token(address, &pairs)?.verify(ACCOUNT, &[dev_key()])?.grant(&origin, &[])
}

/// Signs fields as they are.
fn sign(address: BlobAddress<'_>, query: &str) -> String {
    let pairs = decode(query);
    let mut fields = SasFields::from_pairs(Service::Blob, borrow(&pairs));
    let version = SasVersion::parse(fields.text(Field::Version)).unwrap();
    let mut text = String::new();
    if let Ok(blob) = BlobSas::parse(&fields, address, version) {
        blob.push_string_to_sign(&mut text, &fields, ACCOUNT, version);
    }
    fields.set(Field::Signature, dev_key().sign(&text).to_base64());
    fields.to_query()
}

fn code<T>(result: Result<T>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

#[test]
fn vectors() {
    let snapshot = BlobAddress { snapshot: Some(SNAPSHOT), ..HELLO };
    let times = "st=2026-11-16T00:00:00Z&se=2026-11-17T00:00:00Z&spr=https,http";
    let read = |version: &str| format!("sv={version}&sr=b&sp=r&{times}");
    let rows = [
        (HELLO, read("2020-12-06"), "AuSOSf4wDUmjxIK5bq9MxclzeHSCMTgICBd92XXh/ag="),
        (HELLO, read("2018-11-09"), "euRKjvFw1irI6tjZe7q4fIzPRUOFL0WVUpCVdpwPCbI="),
        (HELLO, read("2015-04-05"), "c9lE7ZIimLizDJSNHUjUZ0oWxdrY/8DnHdqDaLATA6k="),
        (
            snapshot,
            "sv=2020-12-06&sr=bs&sp=r&se=2026-11-17T00:00:00Z".to_owned(),
            "aWJOphRYInKFDZJxhv5rRXgafq7QD/SrzPOWjo7JOpU=",
        ),
        (
            HELLO,
            "sv=2020-12-06&sr=b&sp=r&se=2026-11-17T00:00:00Z&rscd=attachment%3B+filename%3D%22a+b.txt%22&rsct=text/plain".to_owned(),
            "zJd70Po84a0BRED5QRyf92No5o6e5i4EMwdKYZcN7JI=",
        ),
        (
            HELLO,
            "sv=2020-12-06&ss=b&srt=sco&sp=rl&se=2026-11-17T00:00:00Z&spr=https,http".to_owned(),
            "AzVBxCcG2Ga+xEPNo+PRriGSS3kg2Y33oHotlr0xSSM=",
        ),
    ];
    for (address, fields, signature) in &rows {
        let query = format!("{fields}&sig={}", signature.replace('+', "%2B"));
        let granted = grant(*address, &query).unwrap();
        granted.allows(Access::Blob(BlobAccess::Blob(BlobOperation::Read))).unwrap();
    }
    // The container's token names a stored policy, and opens its blobs as well.
    let pairs =
        decode("sv=2020-12-06&sr=c&si=readers&sig=ZUBYhX5XTwSwEXkP7fYbbVH7sXzEH0HYEgw7nwVVur4=");
    for address in [HELLO, BlobAddress { blob: None, ..HELLO }] {
        let verified = token(address, &pairs).unwrap().verify(ACCOUNT, &[dev_key()]).unwrap();
        assert!(verified.has_policy());
        assert_eq!(verified.policy_table(), None);
    }
}

#[test]
fn strings_to_sign() {
    let string = |version: &str| {
        let all =
            "sp=P&st=S&se=E&si=I&sip=A&spr=R&sr=b&ses=X&rscc=1&rscd=2&rsce=3&rscl=4&rsct=5&tn=no";
        let pairs = decode(all);
        let mut fields = SasFields::from_pairs(Service::Blob, borrow(&pairs));
        fields.set(Field::Version, version.to_owned());
        let version = SasVersion::parse(version).unwrap();
        let mut text = String::new();
        let blob = BlobSas::parse(&fields, HELLO, version).unwrap();
        blob.push_string_to_sign(&mut text, &fields, "acct", version);
        text
    };
    let resource = "/acct/c1/dir/hello.txt";
    for (version, expected) in [
        (
            "2026-10-06",
            format!("P\nS\nE\n/blob{resource}\nI\nA\nR\n2026-10-06\nb\n\nX\n1\n2\n3\n4\n5"),
        ),
        (
            "2020-10-02",
            format!("P\nS\nE\n/blob{resource}\nI\nA\nR\n2020-10-02\nb\n\n1\n2\n3\n4\n5"),
        ),
        ("2018-03-28", format!("P\nS\nE\n/blob{resource}\nI\nA\nR\n2018-03-28\n1\n2\n3\n4\n5")),
        ("2015-02-21", format!("P\nS\nE\n/blob{resource}\nI\n2015-02-21\n1\n2\n3\n4\n5")),
        ("2013-08-15", format!("P\nS\nE\n{resource}\nI\n2013-08-15\n1\n2\n3\n4\n5")),
        ("2012-02-12", format!("P\nS\nE\n{resource}\nI\n2012-02-12")),
    ] {
        assert_eq!(string(version), expected);
    }
}

#[test]
fn a_token_is_for_what_it_was_signed_for() {
    let container = BlobAddress { blob: None, ..HELLO };
    let other_blob = BlobAddress { blob: Some("other"), ..HELLO };
    let other_container = BlobAddress { container: "c2", ..HELLO };
    let snapshot = BlobAddress { snapshot: Some(SNAPSHOT), ..HELLO };
    let version = BlobAddress { version_id: Some(SNAPSHOT), ..HELLO };
    let fields = |resource: &str| format!("sv=2020-12-06&sr={resource}&sp=r&se=2030-01-01");
    for (resource, signed, opens, refuses) in [
        ("c", HELLO, vec![HELLO, container, other_blob, snapshot], vec![other_container]),
        ("b", HELLO, vec![HELLO, snapshot], vec![container, other_blob, other_container]),
        ("bs", snapshot, vec![snapshot], vec![HELLO, container, version]),
        ("bv", version, vec![version], vec![HELLO, container, snapshot]),
    ] {
        let query = sign(signed, &fields(resource));
        for address in opens {
            assert_eq!(code(grant(address, &query)), None, "{resource} {address:?}");
        }
        for address in refuses {
            assert_eq!(code(grant(address, &query)), FAILED, "{resource} {address:?}");
        }
    }
}

#[test]
fn malformed_tokens_are_refused() {
    let fields = "sv=2020-12-06&sr=b&sp=r&se=2030-01-01";
    grant(HELLO, &sign(HELLO, fields)).unwrap();
    for wrong in [
        fields.replace("sr=b&", ""),
        fields.replace("sr=b", "sr=d"),
        fields.replace("sr=b", "sr=bi"),
        fields.replace("sr=b", "sr=b&ss=b&srt=o"),
        fields.replace("sp=r", "sp=u"),
        fields.replace("sp=r", "sp=r&rsct=a%0Ab"),
        fields.replace("2020-12-06", "2014-02-14&sip=10.0.0.1"),
        fields.replace("2020-12-06", "2011-08-18"),
    ] {
        assert_eq!(code(grant(HELLO, &sign(HELLO, &wrong))), FAILED, "{wrong}");
    }
    for (resource, version) in [("bs", "2018-03-28"), ("bv", "2018-11-09")] {
        let address = BlobAddress { snapshot: Some("s"), version_id: Some("v"), ..HELLO };
        let fields = format!("sv={version}&sr={resource}&sp=r&se=2030-01-01");
        assert_eq!(code(grant(address, &sign(address, &fields))), FAILED, "{resource}");
    }
    let newline = BlobAddress { blob: Some("a\nb"), ..HELLO };
    assert_eq!(code(grant(newline, &sign(newline, fields))), FAILED);
    for field in ["skoid", "sktid", "skt", "ske", "sks", "skv"] {
        let query = format!("{}&{field}=x", sign(HELLO, fields));
        assert_eq!(code(grant(HELLO, &query)), FAILED, "{query}");
    }
}

#[test]
fn no_signed_field_can_be_changed_dropped_or_added() {
    let fields = "sv=2020-12-06&sr=b&sp=r&st=2020-01-01&se=2030-01-01&sip=10.0.0.1&spr=https&ses=x&rscc=1&rscd=2&rsce=3&rscl=4&rsct=5";
    let query = sign(HELLO, fields);
    grant(HELLO, &query).unwrap();
    let pairs = decode(&query);
    for index in 0..pairs.len() {
        let print = |pairs: &[(String, String)]| {
            SasFields::from_pairs(Service::Blob, borrow(pairs)).to_query()
        };
        let mut changed = pairs.clone();
        changed[index].1.insert(0, '7');
        assert_eq!(code(grant(HELLO, &print(&changed))), FAILED, "{}", pairs[index].0);
        let mut dropped = pairs.clone();
        if dropped.remove(index).0 != "sig" {
            assert_eq!(code(grant(HELLO, &print(&dropped))), FAILED, "{}", pairs[index].0);
        }
    }
    let bare = sign(HELLO, "sv=2020-12-06&sr=b&sp=r&se=2030-01-01");
    for added in ["st", "si", "sip", "spr", "ses", "rscc", "rscd", "rsce", "rscl", "rsct"] {
        assert_eq!(code(grant(HELLO, &format!("{bare}&{added}=1"))), FAILED, "{added}");
    }
    let pairs = decode(&query);
    let forged = token(HELLO, &pairs).unwrap().verify(ACCOUNT, &[AccountKey::from_bytes(b"k")]);
    assert_eq!(code(forged), FAILED);
}

#[test]
fn headers_and_scope_count_where_they_are_signed() {
    let more = "sr=b&sp=r&se=2030-01-01&rscc=no-cache&rsct=&ses=scope";
    for (version, has_headers, has_scope) in
        [("2020-12-06", true, true), ("2019-02-02", true, false), ("2012-02-12", false, false)]
    {
        let granted = grant(HELLO, &sign(HELLO, &format!("sv={version}&{more}"))).unwrap();
        let Grant::Blob { resource, headers, encryption_scope, .. } = granted else { panic!() };
        assert_eq!(resource, BlobSasResource::Blob);
        let cache_control = Some("no-cache".to_owned()).filter(|_| has_headers);
        assert_eq!(headers, ResponseHeaders { cache_control, ..ResponseHeaders::default() });
        assert_eq!(encryption_scope.as_deref(), Some("scope").filter(|_| has_scope));
    }
}

/// Operation, letters of which one is needed, resource type of an account token, and whether the tokens of a container
/// and of a blob can do it.
#[test]
fn operations_and_their_letters() {
    use BlobOperation as Op;
    let blob = |operation, letters| (BlobAccess::Blob(operation), letters, "o", true, true);
    let rows = [
        (BlobAccess::ListContainers, "l", "s", false, false),
        (BlobAccess::CreateContainer, "cw", "c", false, false),
        (BlobAccess::GetContainer, "r", "c", false, false),
        (BlobAccess::WriteContainer, "w", "c", false, false),
        (BlobAccess::BreakContainerLease, "wd", "c", false, false),
        (BlobAccess::DeleteContainer, "d", "c", false, false),
        (BlobAccess::ContainerAcl, "", "", false, false),
        (BlobAccess::ListBlobs, "l", "c", true, false),
        (BlobAccess::FindBlobs, "f", "o", false, false),
        (BlobAccess::FindBlobsInContainer, "f", "c", true, false),
        blob(Op::Read, "r"),
        blob(Op::Create, "cw"),
        blob(Op::Write, "w"),
        blob(Op::Append, "aw"),
        blob(Op::BreakLease, "wd"),
        blob(Op::Delete, "d"),
        blob(Op::DeleteVersion, "x"),
        blob(Op::DeletePermanently, "y"),
        blob(Op::Tags, "t"),
        blob(Op::Immutability, "i"),
    ];
    let answer = |is_possible: bool, has_type: bool, has_letter: bool| match is_possible {
        false => Some(ErrorCode::AuthorizationFailure),
        true if !has_type => Some(ErrorCode::AuthorizationResourceTypeMismatch),
        true if !has_letter => Some(ErrorCode::AuthorizationPermissionMismatch),
        true => None,
    };
    for (access, letters, types, by_container, by_blob) in rows {
        for letter in "racwdxyltfi".chars() {
            let permissions = Permissions::parse_blob(&letter.to_string()).unwrap();
            let has_letter = letters.contains(letter);
            for one_type in ["s", "c", "o"] {
                let resource_types = ResourceTypes::parse(one_type).unwrap();
                let granted = Grant::Account { resource_types, permissions };
                let expected = answer(!types.is_empty(), types == one_type, has_letter);
                let allowed = code(granted.allows(Access::Blob(access)));
                assert_eq!(allowed, expected, "{access:?} {one_type} {letter}");
                assert_eq!(granted.may_overwrite(), letter == 'w');
            }
            for (resource, is_possible) in
                [(BlobSasResource::Container, by_container), (BlobSasResource::Blob, by_blob)]
            {
                let headers = ResponseHeaders::default();
                let granted =
                    Grant::Blob { resource, permissions, headers, encryption_scope: None };
                let expected = answer(is_possible, true, has_letter);
                let allowed = code(granted.allows(Access::Blob(access)));
                assert_eq!(allowed, expected, "{access:?} {resource:?} {letter}");
                granted.allows(Access::Blob(BlobAccess::AccountInformation)).unwrap();
                assert!(granted.allows(Access::GetServiceProperties).is_err());
            }
        }
    }
}
