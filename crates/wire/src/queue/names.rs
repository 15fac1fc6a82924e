//! Names of queues: lower-case letters, digits and single dashes. A wrong name is an error, never folded.

use std::borrow::Cow;
use std::fmt;

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// Characters of a name.
pub const NAME_CHARS_MIN: usize = 3;
pub const NAME_CHARS_MAX: usize = 63;

const WRONG_LENGTH: &str =
    "The specified resource name length is not within the permissible limits.";

/// A legal name of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName<'a>(Cow<'a, str>);

impl<'a> QueueName<'a> {
    /// # Errors
    /// 400 `OutOfRangeInput` for the length, 400 `InvalidResourceName` for anything else.
    pub fn parse(name: impl Into<Cow<'a, str>>) -> Result<Self> {
        let name = name.into();
        let length = name.chars().count();
        if !(NAME_CHARS_MIN..=NAME_CHARS_MAX).contains(&length) {
            return Err(StorageError::with_detail(ErrorCode::OutOfRangeInput, WRONG_LENGTH));
        }
        let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = name.as_bytes();
        let is_legal = bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
            && bytes.first().is_some_and(is_plain)
            && bytes.last().is_some_and(is_plain)
            && !name.contains("--");
        if is_legal { Ok(Self(name)) } else { Err(ErrorCode::InvalidResourceName.into()) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_owned(self) -> QueueName<'static> {
        QueueName(Cow::Owned(self.0.into_owned()))
    }
}

impl fmt::Display for QueueName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(name: &str) -> Option<ErrorCode> {
        QueueName::parse(name).err().map(|error| error.code())
    }

    /// Section 5.2.
    #[test]
    fn the_length_is_looked_at_first() {
        for name in ["abc", "a-b", "0-0", "orders2", &"a".repeat(63)] {
            assert_eq!(code(name), None, "{name}");
        }
        for name in ["", "ab", "A", "a_", &"a".repeat(64), &"-".repeat(64)] {
            assert_eq!(code(name), Some(ErrorCode::OutOfRangeInput), "{name}");
        }
        let wrong =
            ["a_b", "-ab", "ab-", "a--b", "Abc", "{queueName}", "啊齄丂狛狜", "a b", "$logs"];
        for name in wrong {
            assert_eq!(code(name), Some(ErrorCode::InvalidResourceName), "{name}");
        }
        let error = QueueName::parse("ab").unwrap_err();
        assert_eq!(error.message(), WRONG_LENGTH);
    }

    proptest! {
        #[test]
        fn any_text_is_handled(name: String) {
            let _ = QueueName::parse(name);
        }

        #[test]
        fn legal_names_are_kept(name in "[a-z0-9](-?[a-z0-9]){2,30}") {
            let parsed = QueueName::parse(name.as_str()).unwrap();
            prop_assert_eq!(parsed.as_str(), name.as_str());
        }
    }
}
