//! What shared keys sign of requests to blobs and queues: verb, account, raw path and raw query, each on its line, and
//! after them the headers, a name and a value on each line.

use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::{Authorization, LongSignedRequest, Scheme};

use crate::input::{assert_refusal, lines};
use crate::model::{decode_slowly, hmac_base64};

const SECRET: &[u8] = b"the secret of the account";
const PLACED: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [verb, account, path, query, headers] = lines(text);
    let headers: Vec<_> = headers.lines().filter_map(|line| line.split_once(':')).collect();
    let sent = Sent { verb, account, path, query, headers: &headers };
    let request = match sent.request() {
        Ok(request) => request,
        Err(error) => return assert_refusal(&error),
    };
    let keys = [AccountKey::from_bytes(b"another"), AccountKey::from_bytes(SECRET)];
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        let string = request.string_to_sign(scheme);
        let signature = hmac_base64(SECRET, &string);
        let header = format!("{} acct:{signature}", scheme.as_str());
        assert!(request.sign(scheme, &keys[1]).ends_with(&format!(":{signature}")));
        let Ok(Authorization::SharedKey { signature, .. }) = Authorization::parse(&header) else {
            panic!("{header:?}");
        };
        request.verify(scheme, &signature, &keys).expect("our own signature");
        request.verify(scheme, &signature, &keys[..1]).expect_err("a signature of another key");
        sent.assert_string(scheme, &string);
        let longer = format!("{path}x");
        let other = Sent { path: &longer, ..sent };
        if let Ok(other) = other.request() {
            other.verify(scheme, &signature, &keys).expect_err("a signature of another path");
        }
        let longer = format!("{query}&tavola=1");
        let other = Sent { query: &longer, ..sent };
        if let (Ok(other), Scheme::SharedKey) = (other.request(), scheme) {
            other.verify(scheme, &signature, &keys).expect_err("a parameter that was not signed");
        }
    }
}

#[derive(Clone, Copy)]
struct Sent<'a> {
    verb: &'a str,
    account: &'a str,
    path: &'a str,
    query: &'a str,
    headers: &'a [(&'a str, &'a str)],
}

impl<'a> Sent<'a> {
    fn request(&self) -> tavola_wire::error::Result<LongSignedRequest<'a>> {
        let Self { verb, account, path, query, headers } = *self;
        LongSignedRequest::new(verb, account, path, query, headers.iter().copied())
    }

    /// The string from its description, but for the order of headers: their lines are compared as a set.
    fn assert_string(&self, scheme: Scheme, string: &str) {
        let lines = |name: &str| {
            let named = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
            named.map(|(_, value)| *value).collect::<Vec<_>>()
        };
        let storage = |name: &str| lines(name).first().map_or("", |value| trimmed(value));
        let mut placed: Vec<_> = PLACED.iter().map(|name| lines(name).join(",")).collect();
        let old = !storage("x-ms-version").is_empty() && storage("x-ms-version") < "2015-02-21";
        if placed[2] == "0" && !old {
            placed[2].clear();
        }
        if !storage("x-ms-date").is_empty() {
            placed[5].clear();
        }
        let mut start = format!("{}\n", self.verb);
        let places = if scheme == Scheme::SharedKey { (0..11).collect() } else { vec![3, 4, 5] };
        places.into_iter().for_each(|place: usize| start.push_str(&format!("{}\n", placed[place])));
        let rest = string.strip_prefix(&start).expect("the headers by their place");
        let path = if self.path.is_empty() { "/" } else { self.path };
        let end = format!("/{}{path}{}", self.account, self.parameters(scheme));
        let headers = rest.strip_suffix(&end).expect("the resource");
        let mut found: Vec<_> = headers.split_terminator('\n').map(str::to_owned).collect();
        found.sort_unstable();
        assert_eq!(found, self.storage_lines());
    }

    fn storage_lines(&self) -> Vec<String> {
        let lower = |name: &str| name.to_ascii_lowercase();
        let mut names: Vec<_> = self.headers.iter().map(|(name, _)| lower(name)).collect();
        names.retain(|name| name.starts_with("x-ms-"));
        names.sort_unstable();
        names.dedup();
        let line = |name: String| {
            let values = self.headers.iter().filter(|(other, _)| lower(other) == name);
            let folded = values.map(|(_, value)| {
                value
                    .split([' ', '\t', '\r'])
                    .filter(|word| !word.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            format!("{name}:{}", folded.collect::<Vec<_>>().join(","))
        };
        let mut lines: Vec<_> = names.into_iter().map(line).collect();
        lines.sort_unstable();
        lines
    }

    fn parameters(&self, scheme: Scheme) -> String {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for raw in self.query.split('&').filter(|raw| !raw.is_empty()) {
            let (name, value) = raw.split_once('=').unwrap_or((raw, ""));
            let name = decode_slowly(name.as_bytes(), true).expect("it was read");
            let value = decode_slowly(value.as_bytes(), false).expect("it was read");
            let is_one = !value.split('\n').skip(1).any(|line| line.contains(':'));
            assert!(!name.contains(['\n', ':']) && is_one);
            pairs.push((name.to_ascii_lowercase(), value));
        }
        if scheme == Scheme::SharedKeyLite {
            let comp = pairs.iter().find(|(name, _)| name == "comp");
            return comp.map(|(_, value)| format!("?comp={value}")).unwrap_or_default();
        }
        pairs.sort();
        let mut out = String::new();
        let mut before: Option<String> = None;
        for (name, value) in pairs {
            match before.as_ref() == Some(&name) {
                true => out.push_str(&format!(",{value}")),
                false => out.push_str(&format!("\n{name}:{value}")),
            }
            before = Some(name);
        }
        out
    }
}

fn trimmed(value: &str) -> &str {
    value.trim_matches([' ', '\t', '\r', '\n'])
}
