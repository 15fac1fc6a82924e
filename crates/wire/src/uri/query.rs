//! The query string: decoded once, then asked by name.
//!
//! The first value of a repeated name wins and unknown names are ignored, as the service does; only
//! OData options that would change the result and are not served are refused, by
//! [`QueryString::refuse_unserved_options`]. `$filter` and the SAS fields are handed on as text:
//! their grammars live elsewhere.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::{percent, syntax_error};
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// Parameters in one query string; a query with every known option and a SAS has fewer than thirty.
pub const PARAMETERS_MAX: usize = 64;
/// Room for those of a usual request, so that the list is made once.
const PARAMETERS_USUAL: usize = 12;
/// The largest `$top`, which is also the most entities or tables in a page.
pub const TOP_MAX: u16 = 1000;
/// The longest time that a request may ask for; a longer `timeout` means this one.
pub const TIMEOUT_SECONDS_MAX: u64 = 30;

/// OData options that the service does not implement (wire reference 6.1).
const UNSERVED_OPTIONS: [&str; 5] = ["$orderby", "$skip", "$expand", "$inlinecount", "$skiptoken"];

/// The decoded parameters of a request, in the order in which they came.
#[derive(Clone, Default)]
pub struct QueryString<'a> {
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// The names alone: a value may be a signature.
impl fmt::Debug for QueryString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

impl<'a> QueryString<'a> {
    /// Decodes what follows the `?` of a URL.
    ///
    /// # Errors
    /// 400 `InvalidInput` on broken percent-encoding or more than [`PARAMETERS_MAX`] parameters.
    pub fn parse(raw: &'a str) -> Result<Self> {
        if raw.is_empty() {
            return Ok(Self::default());
        }
        let mut parameters = Vec::with_capacity(PARAMETERS_USUAL);
        let mut start = 0;
        for at in memchr::memchr_iter(b'&', raw.as_bytes()).chain([raw.len()]) {
            let parameter = &raw[start..at];
            if !parameter.is_empty() {
                if parameters.len() == PARAMETERS_MAX {
                    return Err(syntax_error());
                }
                parameters.push(split(parameter)?);
            }
            start = at + 1;
        }
        Ok(Self { parameters })
    }

    /// The parameters of the one and then those of the other.
    ///
    /// # Errors
    /// 400 `InvalidInput` if they are more than [`PARAMETERS_MAX`].
    pub fn joined(one: &'a QueryString<'_>, other: &'a QueryString<'_>) -> Result<Self> {
        if one.parameters.len() + other.parameters.len() > PARAMETERS_MAX {
            return Err(syntax_error());
        }
        let both = one.iter().chain(other.iter());
        let parameters = both.map(|(name, value)| (name.into(), value.into())).collect();
        Ok(Self { parameters })
    }

    pub fn into_owned(self) -> QueryString<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let parameters = self.parameters.into_iter();
        QueryString { parameters: parameters.map(|(n, v)| (owned(n), owned(v))).collect() }
    }

    /// Every parameter, decoded.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// The first value of a name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| value)
    }

    /// The first value of a name in any case of letters, as queues and blobs read their parameters.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The text of `$filter`; an empty or blank one means none.
    pub fn filter(&self) -> Option<&str> {
        self.value("$filter").filter(|filter| !filter.trim_ascii().is_empty())
    }

    /// The list of `$select` as it was sent. An empty list projects nothing away, but it is still
    /// echoed in `odata.metadata`, hence `Some("")`.
    pub fn select(&self) -> Option<&str> {
        self.value("$select")
    }

    /// The page size that the client asks for; zero is legal and means an empty page.
    ///
    /// # Errors
    /// 400 `InvalidInput` when it is not a number in `0..=`[`TOP_MAX`].
    pub fn top(&self) -> Result<Option<u16>> {
        let Some(text) = self.value("$top") else { return Ok(None) };
        match unsigned(text.trim_ascii()) {
            Some(top) if top <= u64::from(TOP_MAX) => Ok(u16::try_from(top).ok()),
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }

    /// The text of `$format`, for [`crate::table::negotiate`].
    pub fn format(&self) -> Option<&str> {
        self.value("$format").filter(|format| !format.is_empty())
    }

    /// How long the client lets the operation take, at most [`TIMEOUT_SECONDS_MAX`].
    ///
    /// # Errors
    /// 400 `InvalidQueryParameterValue` when it is not a number, `OutOfRangeQueryParameterValue`
    /// when it is zero.
    pub fn timeout(&self) -> Result<Option<Duration>> {
        let Some(text) = self.value("timeout") else { return Ok(None) };
        match unsigned(text) {
            None => Err(ErrorCode::InvalidQueryParameterValue.into()),
            Some(0) => Err(ErrorCode::OutOfRangeQueryParameterValue.into()),
            Some(seconds) => Ok(Some(Duration::from_secs(seconds.min(TIMEOUT_SECONDS_MAX)))),
        }
    }

    /// The token of `NextPartitionKey`, for [`crate::table::continuation`].
    pub fn next_partition_key(&self) -> Option<&str> {
        self.value("NextPartitionKey")
    }

    /// The token of `NextRowKey`, for [`crate::table::continuation`].
    pub fn next_row_key(&self) -> Option<&str> {
        self.value("NextRowKey")
    }

    /// The token of `NextTableName`, for [`crate::table::continuation`].
    pub fn next_table_name(&self) -> Option<&str> {
        self.value("NextTableName")
    }

    pub fn comp(&self) -> Option<&str> {
        self.value("comp")
    }

    pub fn restype(&self) -> Option<&str> {
        self.value("restype")
    }

    pub fn api_version(&self) -> Option<&str> {
        self.value("api-version")
    }

    /// Refuses options whose silent omission would give a wrong result.
    ///
    /// # Errors
    /// 501 `NotImplemented`.
    pub fn refuse_unserved_options(&self) -> Result<()> {
        match self.iter().any(|(name, _)| UNSERVED_OPTIONS.contains(&name)) {
            true => Err(StorageError::new(ErrorCode::NotImplemented)),
            false => Ok(()),
        }
    }
}

/// Name and value of one parameter.
fn split(parameter: &str) -> Result<(Cow<'_, str>, Cow<'_, str>)> {
    let (name, value) = match parameter.bytes().position(|byte| byte == b'=') {
        Some(at) => (&parameter[..at], &parameter[at + 1..]),
        None => (parameter, ""),
    };
    Ok((percent::decode_query(name)?, percent::decode_query(value)?))
}

/// Digits only: `str::parse` would let a leading `+` through. More digits than a `u64` holds
/// saturate.
fn unsigned(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(raw: &str) -> QueryString<'_> {
        QueryString::parse(raw).unwrap()
    }

    #[test]
    fn names_may_be_encoded_and_the_first_value_wins() {
        // Wire reference 1.4.
        let parsed = query("%24filter=PartitionKey+eq+%27003%27&$top=3&%24top=9&comp=acl&x");
        assert_eq!(parsed.filter(), Some("PartitionKey eq '003'"));
        assert_eq!(parsed.top().unwrap(), Some(3));
        assert_eq!(parsed.comp(), Some("acl"));
        assert_eq!(parsed.value("x"), Some(""));
        assert_eq!(parsed.restype(), None);
        assert_eq!(parsed.iter().count(), 5);
    }

    #[test]
    fn storage_explorer_sends_empty_options() {
        let parsed = query("$select=&$filter=&$top=100");
        assert_eq!(parsed.filter(), None);
        assert_eq!(parsed.select(), Some(""));
        assert_eq!(parsed.top().unwrap(), Some(100));
    }

    #[test]
    fn top_has_the_limits_of_the_service() {
        // Wire reference 5.
        assert_eq!(query("").top().unwrap(), None);
        assert_eq!(query("$top=0").top().unwrap(), Some(0));
        assert_eq!(query("$top=1000").top().unwrap(), Some(1000));
        for raw in ["1001", "-1", "", "x", "1.5", "+1", "99999999999999999999999"] {
            let raw = format!("$top={}", raw.replace('+', "%2B"));
            let error = query(&raw).top().unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidInput, "{raw}");
            assert_eq!(error.message(), "One of the request inputs is not valid.");
        }
    }

    #[test]
    fn timeout_is_capped() {
        assert_eq!(query("timeout=5").timeout().unwrap(), Some(Duration::from_secs(5)));
        assert_eq!(query("timeout=90").timeout().unwrap(), Some(Duration::from_secs(30)));
        assert_eq!(
            query("timeout=x").timeout().unwrap_err().code(),
            ErrorCode::InvalidQueryParameterValue
        );
        assert_eq!(
            query("timeout=0").timeout().unwrap_err().code(),
            ErrorCode::OutOfRangeQueryParameterValue
        );
    }

    #[test]
    fn sas_fields_are_decoded_once() {
        let parsed = query("sv=2019-02-02&tn=MyTable&sig=a%2Bb%3D&sig=second&spk=%2525&si=p+1");
        assert_eq!(parsed.value("sv"), Some("2019-02-02"));
        assert_eq!(parsed.value("sig"), Some("a+b="));
        assert_eq!(parsed.value("spk"), Some("%25"));
        assert_eq!(parsed.value("si"), Some("p 1"));
        assert_eq!(parsed.value("ses"), None);
    }

    #[test]
    fn unserved_options_are_not_implemented() {
        assert!(query("$filter=a&unknown=1&$other=2").refuse_unserved_options().is_ok());
        let error = query("%24orderby=a").refuse_unserved_options().unwrap_err();
        assert_eq!((error.code(), error.status()), (ErrorCode::NotImplemented, 501));
    }

    #[test]
    fn the_number_of_parameters_is_bounded() {
        assert_eq!(query(&"a=1&".repeat(PARAMETERS_MAX)).iter().count(), PARAMETERS_MAX);
        assert!(QueryString::parse(&"a=1&".repeat(PARAMETERS_MAX + 1)).is_err());
        assert_eq!(query(&"&".repeat(5000)).iter().count(), 0);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(raw in any::<String>()) {
            if let Ok(parsed) = QueryString::parse(&raw) {
                let _ = (parsed.filter(), parsed.select());
                let _ = (parsed.top(), parsed.timeout());
            }
        }
    }
}
