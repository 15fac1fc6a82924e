//! The texts of a token as they were signed.
//!
//! A signature covers the decoded texts, not what they mean: `2020-01-01` and `2020-01-01T00:00Z`
//! are the same moment and different strings. So the texts are kept beside the parsed values until
//! the signature is checked. An absent field and an empty one are the same in every string to sign.

use std::borrow::Cow;
use std::fmt;

use super::{malformed, user_delegation};
use crate::error::Result;
use crate::service::Service;
use crate::uri::percent::push_encoded;

/// A field of a token, in the order in which tokens are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Version,
    Services,
    ResourceTypes,
    Table,
    Resource,
    Permissions,
    Start,
    Expiry,
    IpRange,
    Protocols,
    EncryptionScope,
    Identifier,
    StartPartitionKey,
    StartRowKey,
    EndPartitionKey,
    EndRowKey,
    CacheControl,
    ContentDisposition,
    ContentEncoding,
    ContentLanguage,
    ContentType,
    Signature,
}

use Field::*;

impl Field {
    pub(super) const ALL: [Self; 22] = [
        Version,
        Services,
        ResourceTypes,
        Table,
        Resource,
        Permissions,
        Start,
        Expiry,
        IpRange,
        Protocols,
        EncryptionScope,
        Identifier,
        StartPartitionKey,
        StartRowKey,
        EndPartitionKey,
        EndRowKey,
        CacheControl,
        ContentDisposition,
        ContentEncoding,
        ContentLanguage,
        ContentType,
        Signature,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Version => "sv",
            Services => "ss",
            ResourceTypes => "srt",
            Table => "tn",
            Resource => "sr",
            Permissions => "sp",
            Start => "st",
            Expiry => "se",
            IpRange => "sip",
            Protocols => "spr",
            EncryptionScope => "ses",
            Identifier => "si",
            StartPartitionKey => "spk",
            StartRowKey => "srk",
            EndPartitionKey => "epk",
            EndRowKey => "erk",
            CacheControl => "rscc",
            ContentDisposition => "rscd",
            ContentEncoding => "rsce",
            ContentLanguage => "rscl",
            ContentType => "rsct",
            Signature => "sig",
        }
    }

    /// The field of a parameter; `None` for one that means nothing in a token for this service. The names of parameters
    /// have no case but at the table service.
    fn of(service: Service, name: &str) -> Option<Self> {
        let has_capital = name.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = (has_capital && service != Service::Table).then(|| name.to_ascii_lowercase());
        let field = match lower.as_deref().unwrap_or(name) {
            "sv" => Version,
            "ss" => Services,
            "srt" => ResourceTypes,
            "sp" => Permissions,
            "st" => Start,
            "se" => Expiry,
            "sip" => IpRange,
            "spr" => Protocols,
            "ses" => EncryptionScope,
            "si" => Identifier,
            "sig" => Signature,
            "tn" => Table,
            "spk" => StartPartitionKey,
            "srk" => StartRowKey,
            "epk" => EndPartitionKey,
            "erk" => EndRowKey,
            "sr" => Resource,
            "rscc" => CacheControl,
            "rscd" => ContentDisposition,
            "rsce" => ContentEncoding,
            "rscl" => ContentLanguage,
            "rsct" => ContentType,
            _ => return None,
        };
        let is_of_service = match field {
            Table | StartPartitionKey | StartRowKey | EndPartitionKey | EndRowKey => {
                service == Service::Table
            }
            Resource | CacheControl | ContentDisposition | ContentEncoding | ContentLanguage
            | ContentType => service == Service::Blob,
            _ => true,
        };
        is_of_service.then_some(field)
    }
}

/// Decoded query values. A token with a repeated field is no token: only one of them can be signed.
#[derive(Clone, Default)]
pub(super) struct SasFields<'a> {
    values: [Option<Cow<'a, str>>; Field::ALL.len()],
    /// A field of a user-delegation signature was seen.
    pub user_delegation: bool,
    /// A field was seen more than once.
    pub repeated: bool,
}

/// The signature is a secret, and so is what it is made of.
impl fmt::Debug for SasFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SasFields(..)")
    }
}

impl<'a> SasFields<'a> {
    /// Takes the fields that a token for this service has; the rest of the query is passed over.
    pub(super) fn from_pairs<'n>(
        service: Service,
        pairs: impl IntoIterator<Item = (&'n str, Cow<'a, str>)>,
    ) -> Self {
        let mut fields = Self::default();
        for (name, value) in pairs {
            if let Some(field) = Field::of(service, name) {
                let seen = fields.values[field as usize].replace(value);
                fields.repeated |= seen.is_some();
            } else if user_delegation::is_field(name) {
                fields.user_delegation = true;
            }
        }
        fields
    }

    pub(super) fn into_owned(self) -> SasFields<'static> {
        SasFields {
            values: self.values.map(|value| value.map(|text| Cow::Owned(text.into_owned()))),
            user_delegation: self.user_delegation,
            repeated: self.repeated,
        }
    }

    pub(super) fn set(&mut self, field: Field, value: impl Into<Cow<'a, str>>) {
        self.values[field as usize] = Some(value.into());
    }

    /// The value as it was sent.
    pub(super) fn get(&self, field: Field) -> Option<&str> {
        self.values[field as usize].as_deref()
    }

    /// The value, with empty taken as absent.
    pub(super) fn present(&self, field: Field) -> Option<&str> {
        self.get(field).filter(|value| !value.is_empty())
    }

    /// The value, with absent taken as empty, as strings to sign do.
    pub(super) fn text(&self, field: Field) -> &str {
        self.get(field).unwrap_or_default()
    }

    /// Appends the values of several fields to a string to sign, each on a line after what is there.
    pub(super) fn push_lines<const N: usize>(&self, out: &mut String, fields: [Field; N]) {
        for field in fields {
            out.push('\n');
            out.push_str(self.text(field));
        }
    }

    /// What a field means, if it is present.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` when it is malformed.
    pub(super) fn parsed<T>(
        &self,
        field: Field,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.present(field) {
            None => Ok(None),
            Some(text) => match parse(text) {
                Some(value) => Ok(Some(value)),
                None => Err(malformed(format!("{} is malformed", field.name()))),
            },
        }
    }

    /// Tells whether a value could pass for several lines of a string to sign. No key, name or id
    /// has a newline.
    pub(super) fn has_newline(&self) -> bool {
        self.values.iter().flatten().any(|value| memchr::memchr(b'\n', value.as_bytes()).is_some())
    }

    /// The token as a query string, without `?`.
    pub(super) fn to_query(&self) -> String {
        let mut query = String::new();
        for field in Field::ALL {
            if let Some(value) = self.get(field) {
                if !query.is_empty() {
                    query.push('&');
                }
                query.push_str(field.name());
                query.push('=');
                push_encoded(value, &mut query);
            }
        }
        query
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::uri::QueryString;

    /// Splits and decodes a query string, as the server does before it looks for a token.
    pub(crate) fn decode(query: &str) -> Vec<(String, String)> {
        let query = QueryString::parse(query).unwrap();
        query.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    pub(crate) fn borrow(pairs: &[(String, String)]) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        pairs.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_str())))
    }

    #[test]
    fn a_repeated_field_is_noticed() {
        let repeated =
            |query: &str| SasFields::from_pairs(Service::Table, borrow(&decode(query))).repeated;
        assert!(repeated("sp=r&sig=a&sp=raud"));
        assert!(repeated("sig=a&sp=r&sig=a"));
        assert!(repeated("si=&sig=a&si=x"));
        assert!(!repeated("sp=r&sig=a&timeout=5&timeout=5"));
    }

    #[test]
    fn every_field_has_its_name_and_its_services() {
        for (index, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, index);
            assert!(Service::ALL.iter().any(|it| Field::of(*it, field.name()) == Some(field)));
        }
        let count = |service| {
            Field::ALL.iter().filter(|field| Field::of(service, field.name()).is_some()).count()
        };
        assert_eq!(Service::ALL.map(count), [17, 11, 16]);
    }

    #[test]
    fn names_have_no_case_but_at_the_table_service() {
        for (service, expected) in
            [(Service::Queue, Some("r")), (Service::Blob, Some("r")), (Service::Table, None)]
        {
            let pairs = decode("SP=r&Sig=x");
            let fields = SasFields::from_pairs(service, borrow(&pairs));
            assert_eq!(fields.get(Permissions), expected);
        }
        let pairs = decode("sp=r&SP=raup&sig=x");
        assert!(SasFields::from_pairs(Service::Queue, borrow(&pairs)).repeated);
    }

    #[test]
    fn values_are_percent_encoded() {
        let mut fields = SasFields::default();
        fields.set(StartRowKey, "a+b/\u{e9} &=");
        assert_eq!(fields.to_query(), "srk=a%2Bb%2F%C3%A9%20%26%3D");
        assert_eq!(decode(&fields.to_query())[0].1, "a+b/\u{e9} &=");
    }
}
