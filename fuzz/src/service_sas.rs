//! Tokens of queues and blobs: a query string, then the queue or container, the blob, the snapshot and the version that
//! the request addresses, each on its line. Without a blob it is read as the token of a queue too.

use std::borrow::Cow;

use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{
    Access, Addressed, BlobAccess, BlobAddress, BlobOperation, Grant, QueueAccess, RequestOrigin,
    SasToken,
};
use tavola_wire::uri::QueryString;
use tavola_wire::{ErrorCode, StorageError, Ticks};

use crate::input::lines;
use crate::model::hmac_base64;

const ACCOUNT: &str = "acct";
const SECRET: &[u8] = b"the secret of the account";

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [query, container, blob, snapshot, version_id] = lines(text);
    let Ok(query) = QueryString::parse(query) else { return };
    let pairs: Vec<(&str, &str)> = query.iter().collect();
    let present = |text| if str::is_empty(text) { None } else { Some(text) };
    let (blob, snapshot) = (present(blob), present(snapshot));
    let version_id = present(version_id);
    let address = BlobAddress { container, blob, snapshot, version_id };
    token_of(&pairs, &Addressed::Blob(address));
    if blob.is_none() {
        token_of(&pairs, &Addressed::Queue(container.into()));
    }
}

fn token_of(pairs: &[(&str, &str)], addressed: &Addressed<'_>) {
    let keys = [AccountKey::from_bytes(SECRET)];
    match token(addressed.clone(), pairs) {
        Ok(None) => assert!(!pairs.iter().any(|(name, _)| *name == "sig")),
        Ok(Some(token)) => assert_refused(&token.verify(ACCOUNT, &keys).unwrap_err()),
        Err(error) => assert_refused(&error),
    }
    let Some(string) = string_to_sign(pairs, addressed.clone()) else { return };
    let signature = hmac_base64(SECRET, &string);
    let mut signed = vec![("sig", signature.as_str())];
    signed.extend(pairs.iter().filter(|(name, _)| *name != "sig"));
    let token = match token(addressed.clone(), &signed) {
        Ok(token) => token.expect("there is a signature"),
        Err(error) => return assert_refused(&error),
    };
    let key = token.cache_key(ACCOUNT);
    let verified = token.verify(ACCOUNT, &keys).expect("a signature by the rules");
    let mut turned = signed.clone();
    turned.extend([("tn", "x"), ("timeout", "1")]);
    let again = self::token(addressed.clone(), &turned).expect("legal").expect("a signature");
    assert_eq!(again.cache_key(ACCOUNT), key);
    turned.push(("sig", "second"));
    assert_refused(&self::token(addressed.clone(), &turned).expect_err("a field twice"));

    let now = Ticks::parse_iso("2025-06-01").unwrap();
    let origin = RequestOrigin { now, client: [168, 1, 5, 65].into(), https: true };
    match verified.grant(&origin, &[]) {
        Ok(grant) => granted(&grant, text(pairs, "sp"), pairs, addressed),
        Err(error) => assert_eq!(error.status(), 403),
    }
}

fn token<'a>(
    addressed: Addressed<'a>,
    pairs: &[(&'a str, &'a str)],
) -> Result<Option<SasToken<'a>>, StorageError> {
    let pairs = pairs.iter().map(|(name, value)| (*name, Cow::Borrowed(*value)));
    SasToken::parse(addressed, pairs)
}

fn assert_refused(error: &StorageError) {
    assert_eq!((error.status(), error.code()), (403, ErrorCode::AuthenticationFailed));
}

fn find<'a>(pairs: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
}

fn text<'a>(pairs: &[(&'a str, &'a str)], name: &str) -> &'a str {
    find(pairs, name).unwrap_or_default()
}

fn is_account(pairs: &[(&str, &str)]) -> bool {
    find(pairs, "ss").is_some() || find(pairs, "srt").is_some()
}

/// The references for queues, section 7.4, and for blobs, section 4.3; `None` for what no version signs.
fn string_to_sign(pairs: &[(&str, &str)], addressed: Addressed<'_>) -> Option<String> {
    let version = Some(text(pairs, "sv")).filter(|version| version.len() == 10)?;
    let of = |names: &[&str]| names.iter().map(|name| text(pairs, name).to_owned()).collect();
    if is_account(pairs) {
        let mut lines: Vec<String> = vec![ACCOUNT.to_owned()];
        let names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"];
        lines.extend::<Vec<_>>(of(&names));
        if version >= "2020-12-06" {
            lines.push(text(pairs, "ses").to_owned());
        }
        lines.push(String::new());
        return Some(lines.join("\n"));
    }
    let (service, path, blob_lines): (_, _, Vec<String>) = match addressed {
        Addressed::Queue(queue) => ("/queue", queue.into_owned(), vec![]),
        Addressed::Blob(address) => {
            let resource = text(pairs, "sr");
            let path = match (resource, address.blob) {
                ("c", _) => address.container.to_owned(),
                (_, blob) => format!("{}/{}", address.container, blob?),
            };
            let time = match resource {
                "bs" => address.snapshot.unwrap_or_default(),
                "bv" => address.version_id.unwrap_or_default(),
                _ => "",
            };
            let mut lines = vec![];
            if version >= "2018-11-09" {
                lines.extend([resource.to_owned(), time.to_owned()]);
            }
            if version >= "2020-12-06" {
                lines.push(text(pairs, "ses").to_owned());
            }
            if version >= "2013-08-15" {
                lines.extend::<Vec<_>>(of(&["rscc", "rscd", "rsce", "rscl", "rsct"]));
            }
            ("/blob", path, lines)
        }
        Addressed::Table => unreachable!("the target sas reads those"),
    };
    let service = if version >= "2015-02-21" { service } else { "" };
    let mut lines: Vec<String> = of(&["sp", "st", "se"]);
    lines.extend([format!("{service}/{ACCOUNT}/{path}"), text(pairs, "si").to_owned()]);
    if version >= "2015-04-05" {
        lines.extend::<Vec<_>>(of(&["sip", "spr"]));
    }
    lines.push(version.to_owned());
    lines.extend(blob_lines);
    Some(lines.join("\n"))
}

/// What the letters say, and nothing more.
fn granted(grant: &Grant, letters: &str, pairs: &[(&str, &str)], addressed: &Addressed<'_>) {
    let has = |wanted: &str| wanted.chars().any(|letter| letters.contains(letter));
    let account = is_account(pairs);
    let of = |types: &str| !account || types.chars().any(|it| text(pairs, "srt").contains(it));
    let rows: Vec<(Access<'_>, bool)> = match addressed {
        Addressed::Queue(_) => {
            assert!(!account || text(pairs, "ss").contains('q'));
            let row = |access, types, wanted, service| {
                (Access::Queue(access), of(types) && has(wanted) && (account || service))
            };
            vec![
                row(QueueAccess::ListQueues, "s", "l", false),
                row(QueueAccess::CreateQueue, "c", "cw", false),
                row(QueueAccess::DeleteQueue, "c", "d", false),
                row(QueueAccess::GetMetadata, "c", "r", true),
                row(QueueAccess::SetMetadata, "c", "w", false),
                (Access::Queue(QueueAccess::Acl), false),
                row(QueueAccess::PutMessage, "o", "a", true),
                row(QueueAccess::GetMessages, "o", "p", true),
                row(QueueAccess::PeekMessages, "o", "r", true),
                row(QueueAccess::UpdateMessage, "oc", "u", true),
                row(QueueAccess::DeleteMessage, "oc", "p", true),
                row(QueueAccess::ClearMessages, "oc", "d", false),
            ]
        }
        Addressed::Blob(_) => {
            assert!(!account || text(pairs, "ss").contains('b'));
            let is_container = text(pairs, "sr") == "c";
            let row = |access, types, wanted, service| {
                (Access::Blob(access), of(types) && has(wanted) && (account || service))
            };
            vec![
                row(BlobAccess::ListContainers, "s", "l", false),
                row(BlobAccess::ListBlobs, "c", "l", is_container),
                row(BlobAccess::FindBlobsInContainer, "c", "f", is_container),
                row(BlobAccess::DeleteContainer, "c", "d", false),
                (Access::Blob(BlobAccess::ContainerAcl), false),
                row(BlobAccess::Blob(BlobOperation::Read), "o", "r", true),
                row(BlobAccess::Blob(BlobOperation::Create), "o", "cw", true),
                row(BlobAccess::Blob(BlobOperation::Append), "o", "aw", true),
                row(BlobAccess::Blob(BlobOperation::Delete), "o", "d", true),
                row(BlobAccess::Blob(BlobOperation::Tags), "o", "t", true),
            ]
        }
        Addressed::Table => unreachable!("the target sas reads those"),
    };
    for (access, allowed) in rows {
        assert_eq!(grant.allows(access).is_ok(), allowed, "{access:?} {letters:?}");
    }
    assert!(grant.key_range().is_none());
}
