//! Shared Key and Shared Key Lite: the `Authorization` header and the strings that are signed with an account's key.
//!
//! Tables sign little, in a form of their own ([`SignedRequest`]); blobs and queues share the long form
//! ([`LongSignedRequest`]). In both the path is signed exactly as it stands on the request line, so callers must keep
//! the raw target. Which account an address means, and which keys it has, is decided elsewhere.

mod date;
mod header_order;
mod long;
mod table;

pub(super) use date::http_date_text;
pub use date::{DATE_WINDOW_TICKS, check_date, signed_date};
pub use long::LongSignedRequest;
pub use table::SignedRequest;

use std::borrow::Cow;
use std::fmt;

use super::key::Signature;
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;

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

/// The value of the `Authorization` header.
fn authorization(scheme: Scheme, account: &str, signature: &Signature) -> String {
    format!("{} {account}:{}", scheme.as_str(), signature.to_base64())
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

/// The refusal of a signature. Said to strangers too, so it says nothing but what they sent.
fn wrong_key() -> StorageError {
    StorageError::new(ErrorCode::AuthenticationFailed)
        .caused_by("the signature does not match the request")
        .refused_for(RefusalReason::WrongKey)
}

/// The refusal of what can be told before the signature is looked at: it is what the client sent.
fn refused(reason: RefusalReason, text: impl Into<Cow<'static, str>>) -> StorageError {
    StorageError::new(ErrorCode::AuthenticationFailed).explained_by(text.into()).refused_for(reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::auth::key::tests::dev_key;

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

    proptest! {
        #[test]
        fn any_header_is_handled(header in any::<String>()) {
            let _ = Authorization::parse(&header);
        }
    }
}
