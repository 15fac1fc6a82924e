//! The stored access policies of a table or a queue: the body of Get and Set Table ACL, and of Get and Set Queue ACL.

use super::document::{
    self, Children, DECLARATION, Element, invalid, write_close, write_leaf, write_open,
};
use super::reader::BYTE_ORDER_MARK;
use crate::auth::policy::{AccessPolicy, SignedIdentifier};
use crate::auth::sas::Permissions;
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::ticks::Ticks;

/// Policies per table.
pub const IDENTIFIERS_MAX: usize = 5;
/// Characters in the id of a policy, counted in UTF-16 as the service does.
pub(crate) const ID_UTF16_UNITS_MAX: usize = 64;

/// The letters of the service whose policies they are.
#[derive(Clone, Copy)]
enum Letters {
    Table,
    Queue,
}

impl Letters {
    fn parse(self, text: &str) -> Option<Permissions> {
        match self {
            Self::Table => Permissions::parse_table(text),
            Self::Queue => Permissions::parse_queue(text),
        }
    }

    fn text(self, permission: Permissions) -> String {
        match self {
            Self::Table => permission.table_text(),
            Self::Queue => permission.queue_text(),
        }
    }
}

/// Reads the body of Set Table ACL; an empty body clears all policies.
///
/// # Errors
/// 400 `InvalidXmlDocument` for the document, the number of identifiers and their ids; 400
/// `InvalidXmlNodeValue` for times and permissions.
pub fn parse(body: &[u8]) -> Result<Vec<SignedIdentifier>> {
    parse_with(Letters::Table, body)
}

/// Reads the body of Set Queue ACL; an empty body clears all policies.
///
/// # Errors
/// 400 `InvalidXmlDocument`.
pub fn parse_queue(body: &[u8]) -> Result<Vec<SignedIdentifier>> {
    parse_with(Letters::Queue, body).map_err(|error| match error.code() {
        // Recorded for letters of other services.
        ErrorCode::InvalidXmlNodeValue => invalid("a time or a permission is malformed"),
        _ => error,
    })
}

/// Writes the body of Get Table ACL.
pub fn write(identifiers: &[SignedIdentifier]) -> String {
    write_with(Letters::Table, identifiers)
}

/// Writes the body of Get Queue ACL.
pub fn write_queue(identifiers: &[SignedIdentifier]) -> String {
    write_with(Letters::Queue, identifiers)
}

fn parse_with(letters: Letters, body: &[u8]) -> Result<Vec<SignedIdentifier>> {
    let blank = body.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(body);
    if blank.iter().all(|byte| b" \t\r\n".contains(byte)) {
        return Ok(Vec::new());
    }
    let root = document::parse(body)?;
    if root.name != "SignedIdentifiers" {
        return Err(invalid("the root is not SignedIdentifiers"));
    }
    // Refuses text in place of identifiers.
    Children::of(&root)?;
    if root.children.len() > IDENTIFIERS_MAX {
        return Err(invalid("there are more than 5 identifiers"));
    }
    let mut identifiers: Vec<SignedIdentifier> = Vec::with_capacity(root.children.len());
    for child in &root.children {
        let identifier = parse_identifier(letters, child)?;
        if identifiers.iter().any(|other| other.id == identifier.id) {
            return Err(invalid("an id is repeated"));
        }
        identifiers.push(identifier);
    }
    Ok(identifiers)
}

fn write_with(letters: Letters, identifiers: &[SignedIdentifier]) -> String {
    let mut out = [BYTE_ORDER_MARK, DECLARATION].concat();
    if identifiers.is_empty() {
        out.push_str("<SignedIdentifiers />");
        return out;
    }
    write_open(&mut out, "SignedIdentifiers");
    for identifier in identifiers {
        write_open(&mut out, "SignedIdentifier");
        write_leaf(&mut out, "Id", &identifier.id);
        if let Some(policy) = &identifier.access_policy {
            write_policy(letters, &mut out, policy);
        }
        write_close(&mut out, "SignedIdentifier");
    }
    write_close(&mut out, "SignedIdentifiers");
    out
}

fn parse_identifier(letters: Letters, element: &Element) -> Result<SignedIdentifier> {
    if element.name != "SignedIdentifier" {
        return Err(invalid(format!("element is not known: name={}", element.name)));
    }
    let mut children = Children::of(element)?;
    let id = children.required("Id")?.leaf_text()?;
    if id.is_empty() || id.encode_utf16().count() > ID_UTF16_UNITS_MAX {
        return Err(invalid("an id has no character or more than 64"));
    }
    let policy = children.optional("AccessPolicy")?;
    let policy = policy.map(|policy| parse_policy(letters, policy)).transpose()?;
    children.finish()?;
    Ok(SignedIdentifier {
        id: id.to_owned(),
        access_policy: policy.filter(|policy| *policy != AccessPolicy::default()),
    })
}

fn parse_policy(letters: Letters, element: &Element) -> Result<AccessPolicy> {
    let mut children = Children::of(element)?;
    let policy = AccessPolicy {
        start: parse_value(children.optional("Start")?, Ticks::parse_iso)?,
        expiry: parse_value(children.optional("Expiry")?, Ticks::parse_iso)?,
        permission: parse_value(children.optional("Permission")?, |text| letters.parse(text))?,
    };
    children.finish()?;
    Ok(policy)
}

/// An element that is empty says as little as one that is absent.
fn parse_value<T>(
    element: Option<&Element>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(element) = element else {
        return Ok(None);
    };
    let text = element.leaf_text()?.trim();
    if text.is_empty() {
        return Ok(None);
    }
    parse(text).map(Some).ok_or_else(|| {
        StorageError::new(ErrorCode::InvalidXmlNodeValue)
            .caused_by(format!("element has a malformed value: name={}", element.name))
    })
}

fn write_policy(letters: Letters, out: &mut String, policy: &AccessPolicy) {
    write_open(out, "AccessPolicy");
    if let Some(start) = policy.start {
        write_leaf(out, "Start", &start.to_iso_padded());
    }
    if let Some(expiry) = policy.expiry {
        write_leaf(out, "Expiry", &expiry.to_iso_padded());
    }
    if let Some(permission) = policy.permission {
        write_leaf(out, "Permission", &letters.text(permission));
    }
    write_close(out, "AccessPolicy");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::document::tests::assert_invalid;
    use super::*;

    /// Bodies of recorded answers, in the reference, section 3.5.
    const NONE: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers />";
    const ONE: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2011-10-11T00:00:00.0000000Z</Start><Expiry>2011-10-12T00:00:00.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";

    fn testid() -> SignedIdentifier {
        SignedIdentifier {
            id: "testid".into(),
            access_policy: Some(AccessPolicy {
                start: Ticks::parse_iso("2011-10-11"),
                expiry: Ticks::parse_iso("2011-10-12"),
                permission: Some(Permissions::READ),
            }),
        }
    }

    fn document(identifiers: &str) -> String {
        format!("<SignedIdentifiers>{identifiers}</SignedIdentifiers>")
    }

    fn identifier(id: &str) -> String {
        format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>")
    }

    #[test]
    fn recorded_bodies() {
        assert_eq!(write(&[]), NONE);
        assert_eq!(write(&[testid()]), ONE);
        assert_eq!(parse(NONE.as_bytes()).unwrap(), []);
        assert_eq!(parse(ONE.as_bytes()).unwrap(), [testid()]);
    }

    #[test]
    fn dates_come_in_several_forms() {
        for (start, expiry) in [
            ("2011-10-11", "2011-10-12"),
            ("2011-10-11T00:00Z", "2011-10-12T00:00:00Z"),
            ("2011-10-11T00:00:00.0000000Z", "2011-10-12T00:00:00.0Z"),
        ] {
            let body = document(&format!(
                "<SignedIdentifier><Id>testid</Id><AccessPolicy><Start>{start}</Start><Expiry>{expiry}</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>"
            ));
            assert_eq!(parse(body.as_bytes()).unwrap(), [testid()]);
        }
    }

    #[test]
    fn an_empty_body_clears() {
        for body in [
            "",
            "\u{feff}",
            " \r\n",
            "<SignedIdentifiers/>",
            "<SignedIdentifiers> </SignedIdentifiers>",
        ] {
            assert_eq!(parse(body.as_bytes()).unwrap(), [], "{body}");
        }
    }

    /// Recorded: an id without a policy comes back as the id alone.
    #[test]
    fn an_identifier_without_policy() {
        for policy in [
            "",
            "<AccessPolicy />",
            "<AccessPolicy></AccessPolicy>",
            "<AccessPolicy><Start/><Expiry></Expiry><Permission /></AccessPolicy>",
        ] {
            let body =
                document(&format!("<SignedIdentifier><Id>empty</Id>{policy}</SignedIdentifier>"));
            let parsed = parse(body.as_bytes()).unwrap();
            assert_eq!(parsed, [SignedIdentifier { id: "empty".into(), access_policy: None }]);
            assert!(write(&parsed).ends_with(
                "<SignedIdentifiers><SignedIdentifier><Id>empty</Id></SignedIdentifier></SignedIdentifiers>"
            ));
        }
    }

    #[test]
    fn limits() {
        let count = |count: usize| {
            document(&(0..count).map(|n| identifier(&n.to_string())).collect::<String>())
        };
        assert_eq!(parse(count(5).as_bytes()).unwrap().len(), 5);
        assert_invalid(parse(count(6).as_bytes()), "six identifiers");

        // A character outside of the BMP counts as two.
        for (id, fits) in [
            ("i".repeat(64), true),
            ("i".repeat(65), false),
            ("\u{1F600}".repeat(32), true),
            ("\u{1F600}".repeat(33), false),
            (String::new(), false),
        ] {
            let result = parse(document(&identifier(&id)).as_bytes());
            if fits {
                assert_eq!(result.unwrap()[0].id, id);
            } else {
                assert_invalid(result, &id);
            }
        }
    }

    #[test]
    fn other_documents_are_refused() {
        for body in [
            "<Other/>",
            "<SignedIdentifiers>x</SignedIdentifiers>",
            "<SignedIdentifiers><Other/></SignedIdentifiers>",
            "<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>",
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><Id>b</Id></SignedIdentifier></SignedIdentifiers>",
            "<SignedIdentifiers><SignedIdentifier><Id>a</Id><Other/></SignedIdentifier></SignedIdentifiers>",
            "<SignedIdentifiers><SignedIdentifier><Id><b/></Id></SignedIdentifier></SignedIdentifiers>",
            "\u{c}",
            "\u{feff}\u{feff}",
            "&#32;<SignedIdentifiers/>",
            "<SignedIdentifiers a='b'c='d'/>",
            "<?xml version='1.0' encoding='utf-16'?><SignedIdentifiers/>",
            &document(&identifier("a").repeat(2)),
        ] {
            assert_invalid(parse(body.as_bytes()), body);
        }
    }

    #[test]
    fn malformed_values_are_named_as_such() {
        for value in [
            "<Start>yesterday</Start>",
            "<Expiry>2020-13-01</Expiry>",
            "<Permission>x</Permission>",
        ] {
            let body = document(&format!(
                "<SignedIdentifier><Id>a</Id><AccessPolicy>{value}</AccessPolicy></SignedIdentifier>"
            ));
            let error = parse(body.as_bytes()).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::InvalidXmlNodeValue, 400));
        }
    }

    proptest! {
        #[test]
        fn round_trip(
            ids in proptest::collection::hash_set("[ -~\u{e9}\u{1F600}]{1,30}", 0..=5),
            start in proptest::option::of(0..=Ticks::MAX.0),
            expiry in proptest::option::of(0..=Ticks::MAX.0),
            bits in proptest::option::of(1u8..16),
        ) {
            let policy = AccessPolicy {
                start: start.map(Ticks),
                expiry: expiry.map(Ticks),
                permission: bits.map(Permissions::of_bits),
            };
            let policy = Some(policy).filter(|policy| *policy != AccessPolicy::default());
            let identifiers: Vec<_> = ids
                .into_iter()
                .map(|id| SignedIdentifier { id, access_policy: policy.clone() })
                .collect();
            prop_assert_eq!(parse(write(&identifiers).as_bytes()).unwrap(), identifiers);
        }
    }
}
