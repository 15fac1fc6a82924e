//! Shared Key and Shared Key Lite, in the flavour of the table service.
//!
//! The table service signs less than its siblings: no canonicalized headers, and of the query
//! `comp` alone. The path is signed exactly as it stands on the request line, so callers must keep
//! the raw target. Which account an address means, and which keys it has, is decided elsewhere.

use std::borrow::Cow;
use std::fmt;
use std::time::UNIX_EPOCH;

use super::key::{AccountKey, Signature};
use crate::error::{ErrorCode, Result, StorageError};
use crate::ticks::Ticks;

/// How far a request's date may be from our clock, in both directions.
pub const DATE_WINDOW_TICKS: i64 = 15 * Ticks::PER_MINUTE;

/// What the `Authorization` header says.
#[derive(Clone)]
pub enum Authorization<'a> {
    SharedKey { scheme: Scheme, account: &'a str, signature: Signature },
    Bearer(&'a str),
}

/// A bearer token is its holder, so it is not printed.
impl fmt::Debug for Authorization<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedKey { scheme, account, .. } => write!(f, "{scheme:?}({account}, ..)"),
            Self::Bearer(_) => f.write_str("Bearer(..)"),
        }
    }
}

/// Which string the client signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    SharedKey,
    SharedKeyLite,
}

impl<'a> Authorization<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// 400 `InvalidAuthenticationInfo` for an unknown scheme or form, 403 `AuthenticationFailed`
    /// for a signature that is not the base64 of 32 bytes.
    pub fn parse(header: &'a str) -> Result<Self> {
        let malformed = || StorageError::new(ErrorCode::InvalidAuthenticationInfo);
        let (scheme, rest) = header.trim().split_once(' ').ok_or_else(malformed)?;
        let rest = rest.trim_start();
        if scheme.eq_ignore_ascii_case("Bearer") {
            let plain = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic());
            return if plain { Ok(Self::Bearer(rest)) } else { Err(malformed()) };
        }
        let scheme = if scheme.eq_ignore_ascii_case(Scheme::SharedKey.as_str()) {
            Scheme::SharedKey
        } else if scheme.eq_ignore_ascii_case(Scheme::SharedKeyLite.as_str()) {
            Scheme::SharedKeyLite
        } else {
            return Err(malformed());
        };
        let (account, signature) = rest.split_once(':').ok_or_else(malformed)?;
        if account.is_empty() || signature.is_empty() {
            return Err(malformed());
        }
        Ok(Self::SharedKey { scheme, account, signature: Signature::parse(signature)? })
    }
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SharedKey => "SharedKey",
            Self::SharedKeyLite => "SharedKeyLite",
        }
    }
}

/// The parts of a request that a shared key covers, each exactly as sent; an absent header is the
/// empty text.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The verb on the wire: `POST` for a tunnelled merge.
    pub verb: &'a str,
    pub content_md5: &'a str,
    pub content_type: &'a str,
    /// The value of `x-ms-date`, else of `Date`; see [`signed_date`].
    pub date: &'a str,
    /// The account's primary name.
    pub account: &'a str,
    /// The path as encoded on the request line, without the query.
    pub raw_path: &'a str,
    /// The decoded value of the query parameter `comp`.
    pub comp: Option<&'a str>,
}

impl SignedRequest<'_> {
    pub fn string_to_sign(&self, scheme: Scheme) -> String {
        let resource = canonicalized_resource(self.account, self.raw_path, self.comp);
        let Self { verb, content_md5, content_type, date, .. } = self;
        match scheme {
            Scheme::SharedKey => {
                [verb, content_md5, content_type, date, resource.as_str()].join("\n")
            }
            Scheme::SharedKeyLite => [date, resource.as_str()].join("\n"),
        }
    }

    /// Makes the value of the `Authorization` header.
    pub fn sign(&self, scheme: Scheme, key: &AccountKey) -> String {
        let signature = key.sign(&self.string_to_sign(scheme)).to_base64();
        format!("{} {}:{signature}", scheme.as_str(), self.account)
    }

    /// Checks the signature against the account's keys; that the header names this account is the
    /// caller's check.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed`.
    pub fn verify(&self, scheme: Scheme, signature: &Signature, keys: &[AccountKey]) -> Result<()> {
        let as_primary = |raw_path: String| {
            SignedRequest { raw_path: &raw_path, ..*self }.signed_by(scheme, signature, keys)
        };
        let signed = self.signed_by(scheme, signature, keys)
            || primary_paths(self.account, self.raw_path).any(as_primary);
        if signed { Ok(()) } else { Err(failed("the signature does not match the request")) }
    }

    fn signed_by(&self, scheme: Scheme, signature: &Signature, keys: &[AccountKey]) -> bool {
        AccountKey::any_signed(keys, &self.string_to_sign(scheme), signature)
    }
}

/// The resource in the string to sign: `/account` + raw path + `?comp=value`.
pub fn canonicalized_resource(account: &str, raw_path: &str, comp: Option<&str>) -> String {
    let raw_path = if raw_path.is_empty() { "/" } else { raw_path };
    match comp {
        Some(comp) => ["/", account, raw_path, "?comp=", comp].concat(),
        None => ["/", account, raw_path].concat(),
    }
}

/// The paths of the primary that a client may have signed, when the raw path addresses the
/// secondary in path style (`/account-secondary/...`).
///
/// Clients disagree on which of the two they sign, so both are accepted. Python puts
/// `/account-secondary` before the path that it signed, which names the account itself.
pub fn primary_paths(account: &str, raw_path: &str) -> impl Iterator<Item = String> {
    let rest = raw_path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(account))
        .and_then(|path| path.strip_prefix("-secondary"))
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let replaced = rest.map(|rest| ["/", account, rest].concat());
    let prefixed = rest.filter(|rest| {
        rest.strip_prefix('/')
            .and_then(|path| path.strip_prefix(account))
            .is_some_and(|path| path.starts_with('/'))
    });
    replaced.into_iter().chain(prefixed.map(str::to_owned))
}

/// The date that counts for signature and clock: `x-ms-date` wins over `Date`.
///
/// # Errors
/// 403 `AuthenticationFailed` when there is neither.
pub fn signed_date<'a>(x_ms_date: Option<&'a str>, date: Option<&'a str>) -> Result<&'a str> {
    x_ms_date
        .into_iter()
        .chain(date)
        .find(|text| !text.is_empty())
        .ok_or_else(|| failed("the request has neither x-ms-date nor Date"))
}

/// Checks that a request's date is within 15 minutes of now.
///
/// # Errors
/// 403 `AuthenticationFailed`, also when the text is no HTTP date.
pub fn check_date(text: &str, now: Ticks) -> Result<()> {
    let date = http_date(text).ok_or_else(|| failed("the date is no HTTP date"))?;
    if date.0.abs_diff(now.0) > DATE_WINDOW_TICKS.unsigned_abs() {
        return Err(failed(format!(
            "the date is outside the window of 15 minutes: date={date:?} now={now:?}"
        )));
    }
    Ok(())
}

fn http_date(text: &str) -> Option<Ticks> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Ticks::from_unix_nanos(i128::try_from(since.as_nanos()).ok()?))
}

fn failed(reason: impl Into<Cow<'static, str>>) -> StorageError {
    StorageError::new(ErrorCode::AuthenticationFailed).caused_by(reason.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::auth::key::tests::dev_key;

    const DATE: &str = "Thu, 03 Sep 2020 18:50:45 GMT";

    fn request() -> SignedRequest<'static> {
        SignedRequest {
            verb: "GET",
            content_md5: "",
            content_type: "",
            date: DATE,
            account: "devstoreaccount1",
            raw_path: "/devstoreaccount1/t()",
            comp: None,
        }
    }

    #[test]
    fn the_header_is_parsed() {
        let signature = dev_key().sign("x").to_base64();
        for (text, expected) in
            [("SharedKey", Scheme::SharedKey), ("SharedKeyLite", Scheme::SharedKeyLite)]
        {
            let header = format!("{text} acct:{signature}");
            let Authorization::SharedKey { scheme, account, signature: parsed } =
                Authorization::parse(&header).unwrap()
            else {
                panic!("{header}");
            };
            assert_eq!((scheme, account), (expected, "acct"));
            assert_eq!(parsed.to_base64(), signature);
        }
        assert!(matches!(
            Authorization::parse("Bearer ey.J0.x"),
            Ok(Authorization::Bearer("ey.J0.x"))
        ));
    }

    #[test]
    fn an_unreadable_header_is_a_bad_request() {
        for header in [
            "",
            "SharedKey",
            "SharedKey ",
            "SharedKey acct",
            "SharedKey acct:",
            "SharedKey :c2ln",
            "Basic YTpi",
            "SharedKeyFull a:c2ln",
            "Bearer",
            "Bearer a b",
        ] {
            let error = Authorization::parse(header).unwrap_err();
            assert_eq!(
                (error.code(), error.status()),
                (ErrorCode::InvalidAuthenticationInfo, 400),
                "{header}"
            );
        }
        let error = Authorization::parse("SharedKey acct:c2ln").unwrap_err();
        assert_eq!((error.code(), error.status()), (ErrorCode::AuthenticationFailed, 403));
    }

    #[test]
    fn the_resource_is_account_raw_path_and_comp() {
        // The examples of the reference, section 10.3.
        for (raw_path, comp, expected) in [
            ("/Tables", None, "/acct/Tables"),
            ("/t(PartitionKey='p',RowKey='r')", None, "/acct/t(PartitionKey='p',RowKey='r')"),
            ("/", Some("properties"), "/acct/?comp=properties"),
            ("", None, "/acct/"),
            ("/t", Some("acl"), "/acct/t?comp=acl"),
            ("/$batch", None, "/acct/$batch"),
            ("/Tables(%27t%27)", None, "/acct/Tables(%27t%27)"),
        ] {
            assert_eq!(canonicalized_resource("acct", raw_path, comp), expected);
        }
    }

    /// Authorization headers made by azure-data-tables 12.7.0
    /// (`SharedKeyCredentialPolicy.on_request`) for the emulator account; the same values come from
    /// Python's `hmac` over the strings of the reference, section 10.1.
    #[test]
    fn shared_key_as_the_python_sdk_signs() {
        let create = SignedRequest {
            verb: "POST",
            content_type: "application/json",
            raw_path: "/devstoreaccount1/Tables",
            ..request()
        };
        assert_eq!(
            create.string_to_sign(Scheme::SharedKey),
            "POST\n\napplication/json\nThu, 03 Sep 2020 18:50:45 GMT\n/devstoreaccount1/devstoreaccount1/Tables"
        );
        let set_acl = SignedRequest {
            verb: "PUT",
            content_type: "application/xml",
            raw_path: "/devstoreaccount1/t",
            comp: Some("acl"),
            ..request()
        };
        let properties =
            SignedRequest { raw_path: "/devstoreaccount1/", comp: Some("properties"), ..request() };
        for (request, signature) in [
            (create, "Nrrh/r1NkgrAXBmdfKeqi8Zi5NFWn7GbeJICU258WCY="),
            (set_acl, "fWrbnAYJ54hyIwSCd609QgakgUR7klf4WYCfFhBw7dE="),
            (properties, "mW7tgEHqJe8bDqi290NSa/Gr7cicrKxImBt1G8LLR/4="),
        ] {
            let header = request.sign(Scheme::SharedKey, &dev_key());
            assert_eq!(header, format!("SharedKey devstoreaccount1:{signature}"));
            let signature = Signature::parse(signature).unwrap();
            request.verify(Scheme::SharedKey, &signature, &[dev_key()]).unwrap();
        }
    }

    /// The header that azure-sdk-for-js expects in `sharedKeyCredential.spec.ts`. Its key is the
    /// text `accountKey`, of which Node decodes the first ten characters; re-computed with Python's
    /// `hmac`.
    #[test]
    fn shared_key_lite_as_the_javascript_sdk_signs() {
        let request = SignedRequest {
            account: "accountName",
            raw_path: "/tablename(PartitionKey='p1',RowKey='r1')",
            ..request()
        };
        assert_eq!(
            request.string_to_sign(Scheme::SharedKeyLite),
            "Thu, 03 Sep 2020 18:50:45 GMT\n/accountName/tablename(PartitionKey='p1',RowKey='r1')"
        );
        let key = AccountKey::from_base64("accountKew==").unwrap();
        assert_eq!(
            request.sign(Scheme::SharedKeyLite, &key),
            "SharedKeyLite accountName:mzKy4ZjXbTEueNQp2cxou+kKrfCnWpdau5I6kJIO58g="
        );
    }

    /// Computed with Python's `hmac` over the string of the reference, section 10.2: the path stays
    /// percent-encoded.
    #[test]
    fn shared_key_lite_signs_the_encoded_path() {
        let request = SignedRequest {
            raw_path: "/devstoreaccount1/t(PartitionKey='p',RowKey='r%20')",
            ..request()
        };
        assert_eq!(
            request.sign(Scheme::SharedKeyLite, &dev_key()),
            "SharedKeyLite devstoreaccount1:ekeJrNWLFy2KXCWgEfCG118GsJwnXCj1dOU58buOWwk="
        );
    }

    #[test]
    fn the_secondary_may_be_signed_under_either_name() {
        let sent = SignedRequest { raw_path: "/devstoreaccount1-secondary/t()", ..request() };
        for signed in [request(), sent] {
            for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
                let signature = dev_key().sign(&signed.string_to_sign(scheme));
                sent.verify(scheme, &signature, &[dev_key()]).unwrap();
            }
        }
        // The other way round is no secondary request, and stays refused.
        let signature = dev_key().sign(&sent.string_to_sign(Scheme::SharedKey));
        assert!(request().verify(Scheme::SharedKey, &signature, &[dev_key()]).is_err());
        let paths = |raw_path| primary_paths("a", raw_path).collect::<Vec<_>>();
        assert_eq!(paths("/a-secondary"), ["/a"]);
        assert_eq!(paths("/a-secondary/"), ["/a/"]);
        assert_eq!(paths("/a-secondary/a/"), ["/a/a/", "/a/"]);
        assert!(paths("/a-secondaryx/t").is_empty());
        assert!(paths("/a/t").is_empty());
    }

    #[test]
    fn both_keys_of_the_account_are_tried() {
        let second = AccountKey::from_bytes(b"second");
        let signature = second.sign(&request().string_to_sign(Scheme::SharedKey));
        request().verify(Scheme::SharedKey, &signature, &[dev_key(), second]).unwrap();
        let error = request().verify(Scheme::SharedKey, &signature, &[dev_key()]).unwrap_err();
        assert_eq!((error.code(), error.status()), (ErrorCode::AuthenticationFailed, 403));
        assert_eq!(error.message(), ErrorCode::AuthenticationFailed.message());
    }

    #[test]
    fn the_storage_date_wins() {
        assert_eq!(signed_date(Some("x"), Some("d")).unwrap(), "x");
        assert_eq!(signed_date(None, Some("d")).unwrap(), "d");
        assert_eq!(signed_date(Some(""), Some("d")).unwrap(), "d");
        let error = signed_date(None, None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::AuthenticationFailed);
    }

    #[test]
    fn the_window_is_fifteen_minutes_both_ways() {
        let date = Ticks::parse_iso("2020-09-03T18:50:45Z").unwrap();
        for offset in [0, DATE_WINDOW_TICKS, -DATE_WINDOW_TICKS] {
            check_date(DATE, Ticks(date.0 + offset)).unwrap();
        }
        for offset in [DATE_WINDOW_TICKS + 1, -DATE_WINDOW_TICKS - 1] {
            let error = check_date(DATE, Ticks(date.0 + offset)).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::AuthenticationFailed, 403));
        }
        for text in ["", "yesterday", "2020-09-03T18:50:45Z"] {
            assert!(check_date(text, date).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_part_is_refused(which in 0usize..6, text in "[a-z/]{1,8}") {
            let sent = request();
            let signature = dev_key().sign(&sent.string_to_sign(Scheme::SharedKey));
            let mut changed = sent;
            match which {
                0 => changed.verb = &text,
                1 => changed.content_md5 = &text,
                2 => changed.content_type = &text,
                3 => changed.date = &text,
                4 => changed.raw_path = &text,
                _ => changed.comp = Some(&text),
            }
            prop_assert!(changed.verify(Scheme::SharedKey, &signature, &[dev_key()]).is_err());
        }

        #[test]
        fn any_header_is_handled(header in any::<String>()) {
            let _ = Authorization::parse(&header);
            let _ = check_date(&header, Ticks::MIN);
        }
    }
}
