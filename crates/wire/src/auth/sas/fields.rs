//! The texts of a token as they were signed, and the strings that are signed.
//!
//! A signature covers the decoded texts, not what they mean: `2020-01-01` and `2020-01-01T00:00Z`
//! are the same moment and different strings. So the texts are kept beside the parsed values until
//! the signature is checked. An absent field and an empty one are the same in every string to sign.

use std::borrow::Cow;
use std::fmt;

use super::values::SasVersion;
use crate::uri::percent::push_encoded;

/// Decoded query values; the first of a repeated field counts.
#[derive(Clone, Default)]
pub(super) struct SasFields<'a> {
    pub version: Option<Cow<'a, str>>,
    pub services: Option<Cow<'a, str>>,
    pub resource_types: Option<Cow<'a, str>>,
    pub permissions: Option<Cow<'a, str>>,
    pub start: Option<Cow<'a, str>>,
    pub expiry: Option<Cow<'a, str>>,
    pub ip_range: Option<Cow<'a, str>>,
    pub protocols: Option<Cow<'a, str>>,
    pub encryption_scope: Option<Cow<'a, str>>,
    pub identifier: Option<Cow<'a, str>>,
    pub table: Option<Cow<'a, str>>,
    pub start_partition_key: Option<Cow<'a, str>>,
    pub start_row_key: Option<Cow<'a, str>>,
    pub end_partition_key: Option<Cow<'a, str>>,
    pub end_row_key: Option<Cow<'a, str>>,
    pub signature: Option<Cow<'a, str>>,
    /// A field of a user-delegation signature was seen.
    pub user_delegation: bool,
}

/// The signature is a secret, and so is what it is made of.
impl fmt::Debug for SasFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SasFields(..)")
    }
}

impl<'a> SasFields<'a> {
    pub(super) fn from_pairs<'n>(pairs: impl IntoIterator<Item = (&'n str, Cow<'a, str>)>) -> Self {
        let mut fields = Self::default();
        for (name, value) in pairs {
            if matches!(name, "skoid" | "sktid" | "skt" | "ske" | "sks" | "skv") {
                fields.user_delegation = true;
            } else if let Some(field) = fields.field_mut(name) {
                field.get_or_insert(value);
            }
        }
        fields
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut Option<Cow<'a, str>>> {
        Some(match name {
            "sv" => &mut self.version,
            "ss" => &mut self.services,
            "srt" => &mut self.resource_types,
            "sp" => &mut self.permissions,
            "st" => &mut self.start,
            "se" => &mut self.expiry,
            "sip" => &mut self.ip_range,
            "spr" => &mut self.protocols,
            "ses" => &mut self.encryption_scope,
            "si" => &mut self.identifier,
            "tn" => &mut self.table,
            "spk" => &mut self.start_partition_key,
            "srk" => &mut self.start_row_key,
            "epk" => &mut self.end_partition_key,
            "erk" => &mut self.end_row_key,
            "sig" => &mut self.signature,
            _ => return None,
        })
    }

    /// Tells whether a value could pass for several lines of a string to sign. No key, name or id
    /// has a newline.
    pub(super) fn has_newline(&self) -> bool {
        self.named().iter().any(|(_, value)| text(value).contains('\n'))
    }

    /// The string of an account token; every line ends with a newline, the last one too.
    pub(super) fn account_string(&self, account: &str, version: SasVersion) -> String {
        let mut lines = vec![
            account,
            text(&self.permissions),
            text(&self.services),
            text(&self.resource_types),
            text(&self.start),
            text(&self.expiry),
            text(&self.ip_range),
            text(&self.protocols),
            text(&self.version),
        ];
        if version >= SasVersion::ENCRYPTION_SCOPE {
            lines.push(text(&self.encryption_scope));
        }
        lines.push("");
        lines.join("\n")
    }

    /// The string of a table token; the last line has no newline.
    pub(super) fn table_string(&self, account: &str, version: SasVersion) -> String {
        // Table names are ASCII letters and digits, so ASCII folding is all of it.
        let table = text(&self.table).to_ascii_lowercase();
        let service = if version >= SasVersion::SERVICE_IN_RESOURCE { "/table" } else { "" };
        let resource = format!("{service}/{account}/{table}");
        let mut lines = vec![
            text(&self.permissions),
            text(&self.start),
            text(&self.expiry),
            &resource,
            text(&self.identifier),
        ];
        if version >= SasVersion::ADDRESS_AND_PROTOCOL {
            lines.extend([text(&self.ip_range), text(&self.protocols)]);
        }
        lines.extend([
            text(&self.version),
            text(&self.start_partition_key),
            text(&self.start_row_key),
            text(&self.end_partition_key),
            text(&self.end_row_key),
        ]);
        lines.join("\n")
    }

    /// The token as a query string, without `?`.
    pub(super) fn to_query(&self) -> String {
        let mut query = String::new();
        for (name, value) in self.named() {
            if let Some(value) = value {
                if !query.is_empty() {
                    query.push('&');
                }
                query.push_str(name);
                query.push('=');
                push_encoded(value, &mut query);
            }
        }
        query
    }

    fn named(&self) -> [(&'static str, &Option<Cow<'a, str>>); 16] {
        [
            ("sv", &self.version),
            ("ss", &self.services),
            ("srt", &self.resource_types),
            ("tn", &self.table),
            ("sp", &self.permissions),
            ("st", &self.start),
            ("se", &self.expiry),
            ("sip", &self.ip_range),
            ("spr", &self.protocols),
            ("ses", &self.encryption_scope),
            ("si", &self.identifier),
            ("spk", &self.start_partition_key),
            ("srk", &self.start_row_key),
            ("epk", &self.end_partition_key),
            ("erk", &self.end_row_key),
            ("sig", &self.signature),
        ]
    }
}

/// The value, with empty taken as absent.
pub(super) fn present<'f>(field: &'f Option<Cow<'_, str>>) -> Option<&'f str> {
    field.as_deref().filter(|value| !value.is_empty())
}

fn text<'f>(field: &'f Option<Cow<'_, str>>) -> &'f str {
    field.as_deref().unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Splits and decodes a query string, as the server does before it looks for a token.
    pub(crate) fn decode(query: &str) -> Vec<(String, String)> {
        let decode = |text: &str| {
            let mut bytes = Vec::new();
            let mut rest = text.bytes();
            while let Some(byte) = rest.next() {
                if byte == b'%' {
                    let hex = [rest.next().unwrap(), rest.next().unwrap()];
                    let hex = std::str::from_utf8(&hex).unwrap();
                    bytes.push(u8::from_str_radix(hex, 16).unwrap());
                } else {
                    bytes.push(byte);
                }
            }
            String::from_utf8(bytes).unwrap()
        };
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
        pairs.map(|(name, value)| (decode(name), decode(value))).collect()
    }

    pub(crate) fn borrow(pairs: &[(String, String)]) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        pairs.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_str())))
    }

    #[test]
    fn the_first_of_a_repeated_field_counts() {
        let pairs = decode("sp=r&sp=raud&sig=a&sig=b&timeout=5");
        let fields = SasFields::from_pairs(borrow(&pairs));
        assert_eq!(fields.permissions.as_deref(), Some("r"));
        assert_eq!(fields.signature.as_deref(), Some("a"));
    }

    #[test]
    fn values_are_percent_encoded() {
        let fields =
            SasFields { start_row_key: Some("a+b/\u{e9} &=".into()), ..Default::default() };
        assert_eq!(fields.to_query(), "srk=a%2Bb%2F%C3%A9%20%26%3D");
        assert_eq!(decode(&fields.to_query())[0].1, "a+b/\u{e9} &=");
    }
}
