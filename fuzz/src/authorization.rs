//! The `Authorization` header and what shared keys sign: header, verb, Content-MD5, Content-Type, date, account,
//! raw path and `comp`, each on its line.

use tavola_wire::Ticks;
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::{
    Authorization, DATE_WINDOW_TICKS, Scheme, SignedRequest, check_date, primary_paths, signed_date,
};

use crate::input::{assert_refusal, lines};
use crate::model::hmac_base64;

const SECRET: &[u8] = b"the secret of the account";

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [header, verb, content_md5, content_type, date, account, raw_path, comp] = lines(text);
    self::header(header);
    self::date(date);
    let comp = Some(comp).filter(|comp| !comp.is_empty());
    let request = SignedRequest { verb, content_md5, content_type, date, account, raw_path, comp };
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        signature(&request, scheme, header);
    }
}

fn header(header: &str) {
    match Authorization::parse(header) {
        Ok(Authorization::Bearer(token)) => {
            assert!(!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        Ok(Authorization::SharedKey { scheme, account, signature }) => {
            let text = format!("{} {account}:{}", scheme.as_str(), signature.to_base64());
            let Ok(Authorization::SharedKey { scheme: again, account: same, .. }) =
                Authorization::parse(&text)
            else {
                panic!("{text:?}");
            };
            assert_eq!((again, same), (scheme, account));
        }
        Err(error) => assert_refusal(&error),
    }
}

/// A signature made from the rules of the reference is taken, and no other.
fn signature(request: &SignedRequest<'_>, scheme: Scheme, header: &str) {
    let path = if request.raw_path.is_empty() { "/" } else { request.raw_path };
    let comp = request.comp.map(|comp| format!("?comp={comp}")).unwrap_or_default();
    let resource = format!("/{}{path}{comp}", request.account);
    let SignedRequest { verb, content_md5, content_type, date, .. } = request;
    let expected = match scheme {
        Scheme::SharedKey => format!("{verb}\n{content_md5}\n{content_type}\n{date}\n{resource}"),
        Scheme::SharedKeyLite => format!("{date}\n{resource}"),
    };
    assert_eq!(request.string_to_sign(scheme), expected);
    let key = AccountKey::from_bytes(SECRET);
    let signed = request.sign(scheme, &key);
    let base64 = hmac_base64(SECRET, &expected);
    assert_eq!(signed, format!("{} {}:{base64}", scheme.as_str(), request.account));

    let keys = [AccountKey::from_bytes(b"another"), key];
    // The account comes from the address, where it is made of these.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_account = !request.account.is_empty() && request.account.bytes().all(is_name);
    if is_account {
        let Ok(Authorization::SharedKey { signature, account, .. }) = Authorization::parse(&signed)
        else {
            panic!("{signed:?}");
        };
        assert_eq!(account, request.account);
        request.verify(scheme, &signature, &keys).expect("our own signature");
        request.verify(scheme, &signature, &keys[..1]).expect_err("a signature of another key");
        let longer = format!("{}x", request.raw_path);
        let other = SignedRequest { raw_path: &longer, ..*request };
        other.verify(scheme, &signature, &keys).expect_err("a signature of another path");
    }
    // Nobody knows the key here, so what comes in the header is a forgery.
    if let Ok(Authorization::SharedKey { signature, .. }) = Authorization::parse(header) {
        let refused = request.verify(scheme, &signature, &keys).expect_err("a forgery");
        assert_eq!(refused.status(), 403);
    }
    for primary in primary_paths(request.account, request.raw_path) {
        assert!(primary.len() <= request.raw_path.len() && primary.starts_with('/'));
    }
}

/// A date is taken within fifteen minutes of now, whenever that is.
fn date(text: &str) {
    let noon = Ticks::parse_iso("2024-02-29T12:00:00Z").unwrap();
    for now in [Ticks::MIN, noon, Ticks::MAX] {
        if let Err(error) = check_date(text, now) {
            assert_eq!(error.status(), 403);
            continue;
        }
        let later = Ticks((now.0 + 2 * DATE_WINDOW_TICKS + 1).min(Ticks::MAX.0));
        assert!(later == Ticks::MAX || check_date(text, later).is_err(), "{text:?}");
    }
    match signed_date(Some(text), Some("x")) {
        Ok(date) => assert_eq!(date, if text.is_empty() { "x" } else { text }),
        Err(error) => panic!("{error}"),
    }
}
