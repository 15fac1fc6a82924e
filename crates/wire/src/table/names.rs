//! Names of tables and the two keys of an entity: what is legal, and the service's answer to what
//! is not.
//!
//! Property names follow other rules and live with the entity codec.

use std::borrow::Cow;
use std::fmt;

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// The shortest name of a table.
pub(crate) const TABLE_NAME_LEN_MIN: usize = 3;
/// The longest name of a table.
pub(crate) const TABLE_NAME_LEN_MAX: usize = 63;
/// UTF-16 units in a partition key or a row key (1 KiB).
pub const KEY_UNITS_MAX: usize = 512;

/// A legal table name. It keeps the case in which it was written; the table is found by
/// [`TableName::lower`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName<'a>(Cow<'a, str>);

impl<'a> TableName<'a> {
    /// Checks the name of a table that is to be created.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for its length, `InvalidResourceName` for its characters,
    /// `InvalidInput` for the reserved name `tables`.
    pub fn parse(name: impl Into<Cow<'a, str>>) -> Result<Self> {
        let name = name.into();
        check_table_name(&name)?;
        Ok(Self(name))
    }

    /// Checks a name by which a table is addressed: those that can be created and the system tables
    /// (`$...`).
    ///
    /// # Errors
    /// As [`TableName::parse`].
    pub fn parse_addressed(name: impl Into<Cow<'a, str>>) -> Result<Self> {
        let name = name.into();
        check_table_name(name.strip_prefix('$').unwrap_or(&name))?;
        Ok(Self(name))
    }

    /// True for `$MetricsHourPrimaryTransactionsTable` and its like, which can be read but not
    /// created.
    pub fn is_system(&self) -> bool {
        self.0.starts_with('$')
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that tells tables apart, since case does not.
    pub fn lower(&self) -> Cow<'_, str> {
        match self.0.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(self.0.to_ascii_lowercase()),
            false => Cow::Borrowed(&self.0),
        }
    }

    /// True if both names mean the same table.
    pub fn is_same_table(&self, other: &TableName<'_>) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    pub fn into_owned(self) -> TableName<'static> {
        TableName(Cow::Owned(self.0.into_owned()))
    }
}

impl fmt::Display for TableName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check_table_name(name: &str) -> Result<()> {
    if name.len() < TABLE_NAME_LEN_MIN || name.chars().nth(TABLE_NAME_LEN_MAX).is_some() {
        return Err(StorageError::with_detail(
            ErrorCode::OutOfRangeInput,
            "The specified resource name length is not within the permissible limits.",
        ));
    }
    let is_legal = name.as_bytes()[0].is_ascii_alphabetic()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_legal {
        return Err(ErrorCode::InvalidResourceName.into());
    }
    if name.eq_ignore_ascii_case("tables") {
        return Err(ErrorCode::InvalidInput.into());
    }
    Ok(())
}

/// One of the two properties that identify an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyName {
    PartitionKey,
    RowKey,
}

impl KeyName {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PartitionKey => "PartitionKey",
            Self::RowKey => "RowKey",
        }
    }
}

/// Why a text cannot be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyProblem {
    TooLong,
    Forbidden(char),
}

/// What keeps a text from being a key, if anything does. An empty text is a key.
pub fn key_problem(key: &str) -> Option<KeyProblem> {
    // A text never has more UTF-16 units than UTF-8 bytes.
    if key.len() > KEY_UNITS_MAX && key.encode_utf16().nth(KEY_UNITS_MAX).is_some() {
        return Some(KeyProblem::TooLong);
    }
    if key.bytes().all(is_plain) {
        return None;
    }
    key.chars().find(|&character| is_forbidden(character)).map(KeyProblem::Forbidden)
}

/// What most keys are made of, none of which is forbidden.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b' ')
}

fn is_forbidden(character: char) -> bool {
    matches!(character, '/' | '\\' | '#' | '?' | '\0'..='\x1f' | '\x7f'..='\u{9f}')
}

/// Checks a key that came in the body of a request.
///
/// # Errors
/// 400 `PropertyValueTooLarge` for its length, `OutOfRangeInput` naming key and value for its
/// characters.
pub fn check_key(name: KeyName, value: &str) -> Result<()> {
    match key_problem(value) {
        None => Ok(()),
        Some(KeyProblem::TooLong) => Err(ErrorCode::PropertyValueTooLarge.into()),
        Some(KeyProblem::Forbidden(_)) => Err(StorageError::with_detail(
            ErrorCode::OutOfRangeInput,
            format!("The '{}' parameter of value '{value}' is out of range.", name.as_str()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(name: &str) -> (ErrorCode, String) {
        let error = TableName::parse(name).unwrap_err();
        (error.code(), error.message().to_owned())
    }

    #[test]
    fn table_names_have_the_errors_of_the_service() {
        // Wire reference 5; the misspelling is on the wire.
        let invalid = "The specifed resource name contains invalid characters.";
        for name in ["1table", "my_table", "my-table", "$logs", "abc ", "\u{554a}\u{9f44}\u{4e02}"]
        {
            assert_eq!(refusal(name), (ErrorCode::InvalidResourceName, invalid.into()), "{name}");
        }
        let length = "The specified resource name length is not within the permissible limits.";
        for name in ["", "a", "ab", &"a".repeat(64)] {
            assert_eq!(refusal(name), (ErrorCode::OutOfRangeInput, length.into()), "{name}");
        }
        for name in ["tables", "Tables", "TABLES"] {
            let text = "One of the request inputs is not valid.";
            assert_eq!(refusal(name), (ErrorCode::InvalidInput, text.into()), "{name}");
        }
    }

    #[test]
    fn a_table_name_keeps_its_case() {
        let name = TableName::parse("MyTable").unwrap();
        assert_eq!(name.as_str(), "MyTable");
        assert_eq!(name.lower(), "mytable");
        assert!(name.is_same_table(&TableName::parse("mytablE").unwrap()));
        assert!(matches!(TableName::parse("abc").unwrap().lower(), Cow::Borrowed("abc")));
        assert!(TableName::parse("a".repeat(63)).is_ok());
    }

    #[test]
    fn system_tables_can_be_addressed_but_not_created() {
        let name = "$MetricsHourPrimaryTransactionsTable";
        assert!(TableName::parse(name).is_err());
        assert!(TableName::parse_addressed(name).unwrap().is_system());
        assert!(!TableName::parse_addressed("abc").unwrap().is_system());
        for name in ["$", "$a", "$$abc", "$a-b", "$tables"] {
            assert!(TableName::parse_addressed(name).is_err(), "{name}");
        }
    }

    #[test]
    fn keys_are_bounded_in_utf16_units() {
        assert_eq!(key_problem(""), None);
        assert_eq!(key_problem(&"\u{20ac}".repeat(512)), None);
        assert_eq!(key_problem(&"\u{20ac}".repeat(513)), Some(KeyProblem::TooLong));
        assert_eq!(key_problem(&"\u{1f600}".repeat(256)), None);
        assert_eq!(key_problem(&"\u{1f600}".repeat(257)), Some(KeyProblem::TooLong));
        let error = check_key(KeyName::RowKey, &"x".repeat(513)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PropertyValueTooLarge);
    }

    #[test]
    fn forbidden_characters_are_named_with_the_key() {
        let error = check_key(KeyName::PartitionKey, "a/b").unwrap_err();
        assert_eq!(error.code(), ErrorCode::OutOfRangeInput);
        assert_eq!(error.message(), "The 'PartitionKey' parameter of value 'a/b' is out of range.");
        for character in ['\\', '#', '?', '\0', '\t', '\x1f', '\x7f', '\u{80}', '\u{9f}'] {
            let key = format!("k{character}");
            assert_eq!(key_problem(&key), Some(KeyProblem::Forbidden(character)), "{key:?}");
        }
        assert!(check_key(KeyName::RowKey, "% \u{a0}'\"&+=").is_ok());
    }

    proptest! {
        #[test]
        fn checks_never_panic(text in any::<String>()) {
            let _ = TableName::parse(text.as_str());
            let _ = TableName::parse_addressed(text.as_str());
            let _ = check_key(KeyName::RowKey, &text);
        }

        #[test]
        fn the_pattern_of_the_documentation_is_accepted(name in "[A-Za-z][A-Za-z0-9]{2,62}") {
            prop_assume!(!name.eq_ignore_ascii_case("tables"));
            prop_assert!(TableName::parse(name).is_ok());
        }
    }
}
