//! Compound key: several values in one key, which sorts as the values do.
//!
//! The service sorts by text. Numbers without padding, dates as people write them, and texts of different length beside
//! each other all sort wrongly; and `/ \ # ?` and control characters are not allowed in keys at all. A [`Compound`] key
//! encodes its parts so that none of this happens: the order of keys is the order of the tuples.
//!
//! **Use it** to store what belongs together under one partition and find it by a prefix: reviews of an employee by year, the
//! orders of a customer by date. **Do not use it** if other programs must read the keys and expect a format of their own.
//!
//! **Cost**: one entity as ever; a range query by [`Compound::prefix`] reads what it finds and nothing else.
//! **Half-done**: nothing; a key is a key.
//!
//! # The encoding
//! Parts are separated by a blank, which is less than every character that a part can have. Integers are decimal with
//! leading zeros, signed ones shifted by half of their range; moments are 19 digits of ticks; [`Inverted`] counts down. In
//! texts, a character that no key can have is written as its neighbour in the alphabet and a mark, so that it keeps its
//! place: `/` is `._`, and a full stop is `..`.
//!
//! ```
//! # fn main() -> azure_core::Result<()> {
//! use tavola_client::KeyField;
//! use tavola_client::patterns::compound_key::Compound;
//!
//! let review = Compound(("00123".to_owned(), 2012_u32));
//! assert_eq!(review.to_key()?, "00123 0000002012");
//! assert_eq!(Compound::<(String, u32)>::from_key("00123 0000002012".into())?, review);
//! // All reviews of this employee, and none of 001234's.
//! assert_eq!(Compound(("00123".to_owned(),)).prefix()?, "00123 ");
//! # Ok(())
//! # }
//! ```

use azure_core::Uuid;

use crate::entity::KeyField;
use crate::error::{Result, conversion};
use crate::value::DateTime;

/// Less than every character that a part can have.
const SEPARATOR: char = ' ';
/// Digits of the largest tick.
const TICK_DIGITS: usize = 19;

/// A key of several parts: a tuple of one to five.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::patterns::compound_key::Compound;
/// use tavola_client::{KeyField, TableEntity};
///
/// #[derive(TableEntity)]
/// struct Review {
///     #[table(partition_key)]
///     department: String,
///     /// The employee and the year.
///     #[table(row_key)]
///     key: Compound<(String, u32)>,
/// }
///
/// let key = Compound(("00123".to_owned(), 2012));
/// let review = Review { department: "Sales".into(), key };
/// assert_eq!(review.to_entity()?.row_key(), "00123 0000002012");
/// assert_eq!(Compound::<(String, u32)>::from_key("00123 0000002012".into())?, review.key);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Compound<T>(pub T);

/// A value whose order is turned round, so that the newest or largest comes first.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::KeyField;
/// use tavola_client::patterns::compound_key::{Compound, Inverted};
///
/// let (low, high) = (Compound((Inverted(1_u32),)).to_key()?, Compound((Inverted(2_u32),)).to_key()?);
/// assert!(high < low);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inverted<T>(pub T);

/// A part of a compound key.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use azure_core::Result;
/// use tavola_client::KeyField;
/// use tavola_client::patterns::compound_key::{Compound, KeyPart};
///
/// /// Sorts by weight, which the names would not.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Priority {
///     High,
///     Low,
/// }
///
/// impl KeyPart for Priority {
///     fn write_part(&self, key: &mut String) {
///         (*self as u16).write_part(key);
///     }
///
///     fn read_part(text: &str) -> Result<Self> {
///         Ok(if u16::read_part(text)? == 0 { Self::High } else { Self::Low })
///     }
/// }
///
/// let high = Compound((Priority::High, 7_u16)).to_key()?;
/// assert_eq!(high, "00000 00007");
/// assert!(high < Compound((Priority::Low, 1_u16)).to_key()?);
/// assert_eq!(Compound::<(Priority, u16)>::from_key(high)?.0.0, Priority::High);
/// # Ok(())
/// # }
/// ```
pub trait KeyPart: Sized {
    /// Appends the part.
    fn write_part(&self, key: &mut String);

    /// Reads the part back.
    ///
    /// # Errors
    /// A text that [`KeyPart::write_part`] does not write.
    fn read_part(text: &str) -> Result<Self>;
}

impl<T: Parts> Compound<T> {
    /// The start of all keys that begin with these parts and have more: for
    /// [`starts_with`](crate::Column::starts_with).
    ///
    /// ```
    /// use tavola_client::patterns::compound_key::Compound;
    /// use tavola_client::{Filter, QueryCost, ROW_KEY};
    ///
    /// // All reviews of this employee, and none of 001234's.
    /// let prefix = Compound(("00123".to_owned(),)).prefix().unwrap();
    /// let reviews = Filter::partition("Sales") & ROW_KEY.starts_with(&prefix);
    /// assert_eq!(reviews.cost(), QueryCost::RowRange);
    /// ```
    ///
    /// # Errors
    /// None today; as [`KeyField::to_key`].
    pub fn prefix(&self) -> Result<String> {
        Ok(format!("{}{SEPARATOR}", self.to_key()?))
    }
}

impl<T: Parts> KeyField for Compound<T> {
    fn to_key(&self) -> Result<String> {
        let mut key = String::new();
        self.0.push_all(&mut key);
        Ok(key)
    }

    fn from_key(key: String) -> Result<Self> {
        let mut parts = key.split(SEPARATOR);
        let value = T::read_all(&mut parts)?;
        match parts.next() {
            None => Ok(Self(value)),
            Some(_) => Err(malformed(&key)),
        }
    }
}

/// The tuples that are compound keys.
///
/// ```
/// use tavola_client::KeyField;
/// use tavola_client::patterns::compound_key::{Compound, Parts};
///
/// /// Any compound key, whatever its parts are.
/// fn show(key: Compound<impl Parts>) -> String {
///     key.to_key().unwrap()
/// }
///
/// assert_eq!(show(Compound((7_u16,))), "00007");
/// assert_eq!(show(Compound((7_u16, "a".to_owned()))), "00007 a");
/// ```
pub trait Parts: Sized {
    #[doc(hidden)]
    fn push_all(&self, key: &mut String);
    #[doc(hidden)]
    fn read_all<'k>(parts: &mut impl Iterator<Item = &'k str>) -> Result<Self>;
}

/// Declares the tuples.
macro_rules! tuples {
    ($($($part:ident)+;)+) => {
        $(impl<$($part: KeyPart),+> Parts for ($($part,)+) {
            fn push_all(&self, key: &mut String) {
                #[expect(non_snake_case, reason = "the names of the types are those of the values")]
                let ($($part,)+) = self;
                let mut is_first = true;
                $(
                    if !std::mem::take(&mut is_first) {
                        key.push(SEPARATOR);
                    }
                    $part.write_part(key);
                )+
            }

            fn read_all<'k>(parts: &mut impl Iterator<Item = &'k str>) -> Result<Self> {
                Ok(($($part::read_part(parts.next().ok_or_else(|| malformed("too few parts"))?)?,)+))
            }
        })+
    };
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
}

fn malformed(key: &str) -> azure_core::Error {
    conversion(format!("the key is not of this form: key={key}"))
}

/// Declares the integers: as an unsigned number of a fixed width, signed ones shifted by half of their range.
macro_rules! integers {
    ($($rust:ty, $unsigned:ty, $digits:literal, $shift:expr;)+) => {
        $(impl KeyPart for $rust {
            fn write_part(&self, key: &mut String) {
                let shifted = (*self as $unsigned) ^ $shift;
                key.push_str(&format!("{shifted:0width$}", width = $digits));
            }

            fn read_part(text: &str) -> Result<Self> {
                let shifted: $unsigned = read_digits(text, $digits)?;
                Ok((shifted ^ $shift) as $rust)
            }
        }

        impl KeyPart for Inverted<$rust> {
            fn write_part(&self, key: &mut String) {
                let shifted = <$unsigned>::MAX - ((self.0 as $unsigned) ^ $shift);
                key.push_str(&format!("{shifted:0width$}", width = $digits));
            }

            fn read_part(text: &str) -> Result<Self> {
                let shifted: $unsigned = read_digits(text, $digits)?;
                Ok(Inverted(((<$unsigned>::MAX - shifted) ^ $shift) as $rust))
            }
        })+
    };
}

integers! {
    u16, u16, 5, 0;
    u32, u32, 10, 0;
    u64, u64, 20, 0;
    i32, u32, 10, 1 << 31;
    i64, u64, 20, 1 << 63;
}

fn read_digits<T: std::str::FromStr>(text: &str, digits: usize) -> Result<T> {
    let is_whole = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().ok()).flatten().ok_or_else(|| malformed(text))
}

impl KeyPart for DateTime {
    fn write_part(&self, key: &mut String) {
        key.push_str(&format!("{:0TICK_DIGITS$}", self.0));
    }

    fn read_part(text: &str) -> Result<Self> {
        read_digits(text, TICK_DIGITS).map(tavola_wire::Ticks)
    }
}

impl KeyPart for Inverted<DateTime> {
    fn write_part(&self, key: &mut String) {
        key.push_str(&format!("{:0TICK_DIGITS$}", DateTime::MAX.0 - self.0.0));
    }

    fn read_part(text: &str) -> Result<Self> {
        let ticks: i64 = read_digits(text, TICK_DIGITS)?;
        Ok(Inverted(tavola_wire::Ticks(DateTime::MAX.0 - ticks)))
    }
}

impl KeyPart for Uuid {
    fn write_part(&self, key: &mut String) {
        key.push_str(&self.simple().to_string());
    }

    fn read_part(text: &str) -> Result<Self> {
        Uuid::try_parse(text).map_err(|_| malformed(text))
    }
}

impl KeyPart for String {
    fn write_part(&self, key: &mut String) {
        for character in self.chars() {
            push_escaped(character, key);
        }
    }

    fn read_part(text: &str) -> Result<Self> {
        let mut value = String::with_capacity(text.len());
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            value.push(read_escaped(character, &mut rest).ok_or_else(|| malformed(text))?);
        }
        // One value has one key: other ways to write it would be other entities.
        let mut written = String::with_capacity(text.len());
        value.write_part(&mut written);
        if written == text { Ok(value) } else { Err(malformed(text)) }
    }
}

/// Writes a character by itself, or by the neighbour below it and a mark. A neighbour is doubled, or marked lower, when it
/// stands for itself, so that the order is kept.
fn push_escaped(character: char, key: &mut String) {
    match character {
        '\0'..='!' => key.push_str(&format!("!{:02X}", u32::from(character))),
        '"' | '.' | '>' | '[' => key.extend([character, character]),
        '#' => key.push_str("\"_"),
        '/' => key.push_str("._"),
        '?' => key.push_str(">_"),
        '\\' => key.push_str("[_"),
        '~' => key.push_str("~0"),
        '\u{7f}'..='\u{9f}' => key.push_str(&format!("~1{:02X}", u32::from(character))),
        _ => key.push(character),
    }
}

fn read_escaped(character: char, rest: &mut std::str::Chars<'_>) -> Option<char> {
    match character {
        '!' => read_code(rest),
        '"' | '.' | '>' | '[' => match rest.next()? {
            '_' => char::from_u32(u32::from(character) + 1),
            _ => Some(character),
        },
        '~' => match rest.next()? {
            '0' => Some('~'),
            _ => read_code(rest),
        },
        _ => Some(character),
    }
}

fn read_code(rest: &mut std::str::Chars<'_>) -> Option<char> {
    let digits: String = rest.by_ref().take(2).collect();
    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tavola_wire::table::names::key_problem;
    use tavola_wire::table::stored::key::compare_text;

    use super::*;

    fn key<T: Parts>(parts: T) -> String {
        Compound(parts).to_key().unwrap()
    }

    #[test]
    fn keys_are_readable() {
        let moment = DateTime::parse_iso("2012-03-04").unwrap();
        assert_eq!(key(("Sales".to_owned(), 7_u32)), "Sales 0000000007");
        assert_eq!(key((moment,)), "0634664160000000000");
        assert_eq!(key((Inverted(moment),)).len(), 19);
        assert_eq!(key((-1_i32, 1_i32)), "2147483647 2147483649");
        assert_eq!(key(("a/b.c".to_owned(),)), "a._b..c");
    }

    #[test]
    fn what_is_no_key_of_the_kind_is_refused() {
        for text in ["", "7", "0000000007 1", "000000000x", "+000000007", "9999999999"] {
            assert!(Compound::<(u32,)>::from_key(text.into()).is_err(), "{text}");
        }
        for text in [".x", "!", "!0", "!41", "!0a", "~2", "~141", "."] {
            assert!(Compound::<(String,)>::from_key(text.into()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn keys_round_trip_and_are_legal(
            text in any::<String>(), number in any::<i64>(), small in any::<i32>(), id in any::<u128>(),
        ) {
            let parts = (text, number, Inverted(small), Uuid::from_u128(id));
            let stored = key(parts.clone());
            prop_assert!(!matches!(key_problem(&stored), Some(tavola_wire::table::names::KeyProblem::Forbidden(_))), "{}", stored);
            prop_assert_eq!(Compound::from_key(stored).unwrap(), Compound(parts));
        }

        /// Texts compare by UTF-16 code unit, as the service compares; numbers by their value.
        #[test]
        fn keys_sort_as_their_parts(
            a in ("[ -~\u{7f}-\u{a1}]{0,3}", any::<i32>()), b in ("[ -~\u{7f}-\u{a1}]{0,3}", any::<i32>()),
        ) {
            let expected = compare_text(&a.0, &b.0).then(a.1.cmp(&b.1));
            prop_assert_eq!(compare_text(&key(a.clone()), &key(b.clone())), expected);
            let inverted = compare_text(&a.0, &b.0).then(b.1.cmp(&a.1));
            let invert = |(text, number): (String, i32)| key((text, Inverted(number)));
            prop_assert_eq!(compare_text(&invert(a), &invert(b)), inverted);
        }

        #[test]
        fn moments_sort_by_time_and_against_it(a in 0..=DateTime::MAX.0, b in 0..=DateTime::MAX.0) {
            let (first, second) = (tavola_wire::Ticks(a), tavola_wire::Ticks(b));
            prop_assert_eq!(key((first,)).cmp(&key((second,))), a.cmp(&b));
            prop_assert_eq!(key((Inverted(first),)).cmp(&key((Inverted(second),))), b.cmp(&a));
        }
    }
}
