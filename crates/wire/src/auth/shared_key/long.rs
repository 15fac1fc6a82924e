//! What a shared key signs of a request to blobs or queues: nearly all of its head.
//!
//! Eleven headers by name, every `x-ms-` header, the path, and every parameter of the query. Clients do not agree in
//! every detail of it, so a signature is compared with each reading that this request has: nearly always one.

use std::borrow::Cow;
use std::fmt;

use super::{Scheme, authorization, header_order, primary_paths, refused, wrong_key};
use crate::auth::STRING_TOLD_BYTES_MAX;
use crate::auth::key::{AccountKey, Signature};
use crate::error::{Result, StorageError};
use crate::refusal::RefusalReason;
use crate::uri::percent::{decode_path, decode_query};
use crate::uri::query::PARAMETERS_MAX;
use crate::uri::syntax_error;

/// The headers that are signed by their place, in lower case and in that order.
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
const CONTENT_LENGTH: usize = 2;
const CONTENT_MD5: usize = 3;
const CONTENT_TYPE: usize = 4;
const DATE: usize = 5;

/// The headers that are signed by their name.
const STORAGE_PREFIX: &str = "x-ms-";
/// Since this version no length signs as a length of zero does.
const EMPTY_LENGTH_VERSION: &str = "2015-02-21";

/// The head of a request to blobs or queues, as far as a shared key covers it.
#[derive(Clone)]
pub struct LongSignedRequest<'a> {
    verb: &'a str,
    account: &'a str,
    raw_path: &'a str,
    /// What [`PLACED`] names; empty for what was not sent.
    placed: [Cow<'a, str>; PLACED.len()],
    /// Names in lower case and values without blanks around them, in the order of the service.
    storage: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    parameters: Vec<Parameter<'a>>,
}

#[derive(Clone)]
struct Parameter<'a> {
    /// Decoded, in lower case.
    name: String,
    raw_value: &'a str,
}

/// How a client may have read what the rules leave open.
#[derive(Clone, Copy, Default)]
struct Reading {
    /// Headers sorted by bytes, as older clients do.
    ordinal: bool,
    /// A `+` in the query is a blank, as in forms.
    plus_is_blank: bool,
    /// Blanks inside of a header's value as they were sent, where the rules fold them to one.
    unfolded: bool,
}

/// A query may hold a secret.
impl fmt::Debug for LongSignedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongSignedRequest({} {}, ..)", self.verb, self.raw_path)
    }
}

impl<'a> LongSignedRequest<'a> {
    /// Takes the account's primary name, and the rest exactly as it was or will be sent: `headers` in any case and
    /// order, repeated ones each time.
    ///
    /// # Errors
    /// 400 `InvalidInput` for a query that cannot be decoded, 403 `AuthenticationFailed` for one that would pass for
    /// another in the string to sign.
    pub fn new<V: Into<Cow<'a, str>>>(
        verb: &'a str,
        account: &'a str,
        raw_path: &'a str,
        raw_query: &'a str,
        headers: impl IntoIterator<Item = (&'a str, V)>,
    ) -> Result<Self> {
        let mut placed: [Option<Cow<'a, str>>; PLACED.len()] = Default::default();
        let mut storage = Vec::new();
        for (name, value) in headers {
            let is_storage = |start: &str| start.eq_ignore_ascii_case(STORAGE_PREFIX);
            if name.get(..STORAGE_PREFIX.len()).is_some_and(is_storage) {
                storage.push((lower(name), trim(value.into())));
            } else if let Some(place) = PLACED.iter().position(|it| it.eq_ignore_ascii_case(name)) {
                add_value(&mut placed[place], value.into());
            }
        }
        let mut placed = placed.map(Option::unwrap_or_default);
        storage.sort_by(|(one, _), (other, _)| header_order::compare(one, other));
        let storage_value = |wanted: &str| {
            storage.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| &**value)
        };
        if !storage_value("x-ms-date").is_empty() {
            placed[DATE] = Cow::Borrowed("");
        }
        let version = storage_value("x-ms-version");
        let signs_zero = !version.is_empty() && version < EMPTY_LENGTH_VERSION;
        if placed[CONTENT_LENGTH] == "0" && !signs_zero {
            placed[CONTENT_LENGTH] = Cow::Borrowed("");
        }
        let parameters = parameters(raw_query)?;
        Ok(Self { verb, account, raw_path, placed, storage, parameters })
    }

    /// The string by the rules of the service, which is what a client signs.
    pub fn string_to_sign(&self, scheme: Scheme) -> String {
        self.string(scheme, self.raw_path, Reading::default())
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
        let is_signed = |raw_path: &str| {
            self.readings().any(|reading| {
                let string = self.string(scheme, raw_path, reading);
                AccountKey::any_signed(keys, &string, signature)
            })
        };
        let signed = is_signed(self.raw_path)
            || primary_paths(self.account, self.raw_path).any(|path| is_signed(&path));
        if signed { Ok(()) } else { Err(self.wrong_key(scheme)) }
    }

    /// With the string that a client has to sign, in the words of the live service. It is made of the request alone, and
    /// told only if there is no secret in it: an answer goes into logs more easily than a request.
    fn wrong_key(&self, scheme: Scheme) -> StorageError {
        let string = self.string_to_sign(scheme);
        if string.len() > STRING_TOLD_BYTES_MAX || self.has_secret() {
            return wrong_key();
        }
        wrong_key().authentication_detail(format!(
            "The MAC signature found in the HTTP request is not the same as any computed signature. Server used following \
             string to sign: '{string}'."
        ))
    }

    /// Whether there is a shared access signature in what is signed, be it in the URL of a source, or the key or token of
    /// a customer.
    fn has_secret(&self) -> bool {
        let has_signature = |value: &str| {
            let value = value.to_ascii_lowercase();
            value.contains("sig=") || value.contains("sig%3d")
        };
        let of_parameter = |parameter: &Parameter<'_>| {
            parameter.name == "sig" || has_signature(parameter.raw_value)
        };
        let of_header = |(name, value): &(Cow<'_, str>, Cow<'_, str>)| {
            name.ends_with("-key") || name.ends_with("-authorization") || has_signature(value)
        };
        self.parameters.iter().any(of_parameter) || self.storage.iter().any(of_header)
    }

    /// The readings of this request that differ, the service's own first.
    fn readings(&self) -> impl Iterator<Item = Reading> + use<> {
        let is_ordinal = self.storage.is_sorted_by(|(one, _), (other, _)| one <= other);
        let has_plus = self.parameters.iter().any(|parameter| parameter.raw_value.contains('+'));
        let is_folded = self.storage.iter().all(|(_, value)| fold(value) == **value);
        let choices = |differs: bool| if differs { &[false, true][..] } else { &[false] };
        choices(!is_ordinal).iter().flat_map(move |&ordinal| {
            choices(has_plus).iter().flat_map(move |&plus_is_blank| {
                choices(!is_folded).iter().map(move |&unfolded| Reading {
                    ordinal,
                    plus_is_blank,
                    unfolded,
                })
            })
        })
    }

    fn string(&self, scheme: Scheme, raw_path: &str, reading: Reading) -> String {
        let mut out = String::with_capacity(512);
        push_line(&mut out, self.verb);
        match scheme {
            Scheme::SharedKey => self.placed.iter().for_each(|value| push_line(&mut out, value)),
            Scheme::SharedKeyLite => {
                for place in [CONTENT_MD5, CONTENT_TYPE, DATE] {
                    push_line(&mut out, &self.placed[place]);
                }
            }
        }
        self.push_headers(&mut out, reading);
        out.push('/');
        out.push_str(self.account);
        out.push_str(if raw_path.is_empty() { "/" } else { raw_path });
        match scheme {
            Scheme::SharedKey => self.push_parameters(&mut out, reading),
            Scheme::SharedKeyLite => self.push_comp(&mut out, reading),
        }
        out
    }

    /// `name:value`, and the values of one name joined by commas.
    fn push_headers(&self, out: &mut String, reading: Reading) {
        let mut ordinal = Vec::new();
        let headers = if reading.ordinal {
            ordinal.extend_from_slice(&self.storage);
            ordinal.sort_by(|(one, _), (other, _)| one.cmp(other));
            &ordinal
        } else {
            &self.storage
        };
        for (index, (name, value)) in headers.iter().enumerate() {
            let is_repeated = |next: usize| headers.get(next).is_some_and(|(next, _)| next == name);
            if index > 0 && is_repeated(index - 1) {
                out.push(',');
            } else {
                out.push_str(name);
                out.push(':');
            }
            if reading.unfolded {
                out.push_str(value);
            } else {
                out.push_str(&fold(value));
            }
            if !is_repeated(index + 1) {
                out.push('\n');
            }
        }
    }

    /// `name:value` on a line of its own, the values of one name sorted and joined by commas.
    fn push_parameters(&self, out: &mut String, reading: Reading) {
        for same in self.parameters.chunk_by(|one, other| one.name == other.name) {
            let mut values: Vec<_> =
                same.iter().map(|parameter| reading.value(parameter)).collect();
            values.sort_unstable();
            out.push('\n');
            out.push_str(&same[0].name);
            out.push(':');
            for (index, value) in values.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(value);
            }
        }
    }

    /// Shared Key Lite signs no other parameter.
    fn push_comp(&self, out: &mut String, reading: Reading) {
        if let Some(comp) = self.parameters.iter().find(|parameter| parameter.name == "comp") {
            out.push_str("?comp=");
            out.push_str(&reading.value(comp));
        }
    }
}

impl Reading {
    fn value<'a>(self, parameter: &Parameter<'a>) -> Cow<'a, str> {
        let decode = if self.plus_is_blank { decode_query } else { decode_path };
        decode(parameter.raw_value).expect("it was decoded when the query was read")
    }
}

/// The parameters of a query, sorted by name; those of one name in the order in which they came.
fn parameters(raw_query: &str) -> Result<Vec<Parameter<'_>>> {
    let mut parameters = Vec::new();
    for raw in raw_query.split('&').filter(|raw| !raw.is_empty()) {
        if parameters.len() == PARAMETERS_MAX {
            return Err(syntax_error());
        }
        let (name, raw_value) = raw.split_once('=').unwrap_or((raw, ""));
        let name = decode_query(name)?.to_ascii_lowercase();
        if name.contains(['\n', ':']) || passes_for_several(&decode_path(raw_value)?) {
            return Err(refused(
                RefusalReason::MalformedCredentials,
                "a parameter would pass for several in the string to sign",
            ));
        }
        parameters.push(Parameter { name, raw_value });
    }
    parameters.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(parameters)
}

/// Whether a value has a line that would pass for another parameter. Other line feeds are signed as they are.
fn passes_for_several(value: &str) -> bool {
    value.split('\n').skip(1).any(|line| line.contains(':'))
}

/// A value that is not the first is joined by a comma, or it would not be signed.
fn add_value<'a>(values: &mut Option<Cow<'a, str>>, value: Cow<'a, str>) {
    match values {
        None => *values = Some(value),
        Some(values) => {
            let values = values.to_mut();
            values.push(',');
            values.push_str(&value);
        }
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn lower(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// Without the blanks around it.
fn trim(value: Cow<'_, str>) -> Cow<'_, str> {
    match value {
        Cow::Borrowed(value) => Cow::Borrowed(value.trim_matches(is_blank)),
        Cow::Owned(value) => Cow::Owned(value.trim_matches(is_blank).to_owned()),
    }
}

/// Every run of blanks as one blank.
fn fold(value: &str) -> Cow<'_, str> {
    let is_folded = |pair: &[u8]| !(is_blank(pair[0].into()) && is_blank(pair[1].into()));
    let is_plain = value.bytes().all(|byte| byte == b' ' || !is_blank(byte.into()));
    if is_plain && value.as_bytes().windows(2).all(is_folded) {
        return Cow::Borrowed(value);
    }
    let words: Vec<_> = value.split(is_blank).filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join(" "))
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
#[path = "long_tests.rs"]
mod tests;
