//! What a shared key signs of a request to tables.
//!
//! The table service signs less than its siblings: no canonicalized headers, and of the query `comp` alone.

use super::{Scheme, authorization, primary_paths, wrong_key};
use crate::auth::key::{AccountKey, Signature};
use crate::error::Result;

/// The parts of a request that a shared key covers, each exactly as sent; an absent header is the
/// empty text.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The verb on the wire: `POST` for a tunnelled merge.
    pub verb: &'a str,
    pub content_md5: &'a str,
    pub content_type: &'a str,
    /// The value of `x-ms-date`, else of `Date`; see [`signed_date`](super::signed_date).
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
        authorization(scheme, self.account, &key.sign(&self.string_to_sign(scheme)))
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
        if signed { Ok(()) } else { Err(wrong_key()) }
    }

    fn signed_by(&self, scheme: Scheme, signature: &Signature, keys: &[AccountKey]) -> bool {
        AccountKey::any_signed(keys, &self.string_to_sign(scheme), signature)
    }
}

/// The resource in the string to sign: `/account` + raw path + `?comp=value`.
pub(super) fn canonicalized_resource(account: &str, raw_path: &str, comp: Option<&str>) -> String {
    let raw_path = if raw_path.is_empty() { "/" } else { raw_path };
    match comp {
        Some(comp) => ["/", account, raw_path, "?comp=", comp].concat(),
        None => ["/", account, raw_path].concat(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::auth::key::tests::dev_key;
    use crate::error_code::ErrorCode;

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
    }
}
