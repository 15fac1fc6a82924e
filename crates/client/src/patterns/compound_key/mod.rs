//! Compound key: several values in one key, separated so that it can be read back and found by its first parts.
//!
//! The guide's example is `000123_2012`: the reviews of an employee lie side by side, one for each year, in the partition
//! of the employee. The service sorts by text, so numbers are padded; and `/ \ # ?` and control characters are not allowed
//! in keys at all, so a [`Compound`] key writes them otherwise.
//!
//! **Use it** to store what belongs together under one partition and find it by a prefix: reviews of an employee by year, the
//! orders of a customer by date. **Do not use it** for values that change: a key cannot.
//!
//! **Cost**: one entity as ever; a range query by [`Compound::prefix`] reads what it finds and nothing else.
//! **Half-done**: nothing; a key is a key.
//!
//! # The encoding
//! Texts stand as they are, but for what a key cannot hold and for the separator where another part follows: `/` is `.~1`.
//! Integers are decimal with leading zeros, as many digits as their type needs or as [`Padded`] says; moments are 19 digits
//! of ticks, as in the guide's log tail; [`Inverted`] counts down; GUIDs are 32 hexadecimal digits.
//!
//! Keys of parts of fixed width sort as their tuples do, whatever the separator. Texts of different length do with a blank
//! as separator, `Compound<T, ' '>`, which is less than every other character; with `_`, `Jones Smith` comes before `Jones`.
//!
//! ```
//! # fn main() -> azure_core::Result<()> {
//! use tavola_client::KeyField;
//! use tavola_client::patterns::compound_key::{Compound, Padded};
//!
//! type ReviewKey = Compound<(String, Padded<4>)>;
//!
//! let review = Compound::new(("000123".to_owned(), Padded(2012)));
//! assert_eq!(review.to_key()?, "000123_2012");
//! assert_eq!(ReviewKey::from_key("000123_2012".into())?, review);
//! // All reviews of this employee, and none of 0001234's.
//! assert_eq!(Compound::new(("000123".to_owned(),)).prefix()?, "000123_");
//! # Ok(())
//! # }
//! ```

mod part;
mod text;

use crate::{KeyField, Result};

pub use part::{Inverted, KeyPart, Padded};
pub(crate) use part::{TICK_DIGITS, push_integer};
pub use text::KeyStyle;
pub(crate) use text::check_separator;
use text::{is_separator, malformed};

/// A key of several parts, a tuple of one to five, with a separator between them.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::patterns::compound_key::{Compound, Padded};
/// use tavola_client::{KeyField, TableEntity};
///
/// #[derive(TableEntity)]
/// struct Review {
///     #[table(partition_key)]
///     department: String,
///     /// The employee and the year.
///     #[table(row_key)]
///     key: Compound<(Padded<6>, Padded<4>)>,
/// }
///
/// let key = Compound::new((Padded(123), Padded(2012)));
/// let review = Review { department: "Sales".into(), key };
/// assert_eq!(review.to_entity()?.row_key(), "000123_2012");
///
/// // Another separator is part of the type.
/// let key: Compound<(String, u16), ' '> = Compound(("Jones".into(), 7));
/// assert_eq!(key.to_key()?, "Jones 00007");
/// # Ok(())
/// # }
/// ```
///
/// A separator that parts are written with does not compile:
///
/// ```compile_fail
/// use tavola_client::KeyField;
/// use tavola_client::patterns::compound_key::Compound;
///
/// let key: Compound<(u16, u16), '7'> = Compound((1, 2));
/// key.to_key();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Compound<T, const SEPARATOR: char = '_'>(pub T);

impl<T> Compound<T> {
    /// A key whose parts are separated by `_`, as in the guide.
    pub fn new(parts: T) -> Self {
        Self(parts)
    }
}

impl<T: Parts, const SEPARATOR: char> Compound<T, SEPARATOR> {
    /// The start of all keys that begin with these parts and have more: for
    /// [`starts_with`](crate::Column::starts_with).
    ///
    /// ```
    /// use tavola_client::patterns::compound_key::{Compound, Padded};
    /// use tavola_client::{Filter, QueryCost, ROW_KEY};
    ///
    /// // All reviews of this employee.
    /// let prefix = Compound::new((Padded::<6>(123),)).prefix().unwrap();
    /// let reviews = Filter::partition("Sales") & ROW_KEY.starts_with(&prefix);
    /// assert_eq!(reviews.cost(), QueryCost::RowRange);
    /// ```
    ///
    /// # Errors
    /// A value that its part cannot hold.
    pub fn prefix(&self) -> Result<String> {
        self.write(KeyStyle::before(SEPARATOR)).map(|key| format!("{key}{SEPARATOR}"))
    }

    fn write(&self, last: KeyStyle) -> Result<String> {
        const { assert!(is_separator(SEPARATOR), "this character cannot separate parts") };
        let mut key = String::new();
        self.0.write_all(&mut key, SEPARATOR, last)?;
        Ok(key)
    }
}

impl<T: Parts, const SEPARATOR: char> KeyField for Compound<T, SEPARATOR> {
    fn to_key(&self) -> Result<String> {
        self.write(KeyStyle::WHOLE)
    }

    fn from_key(key: String) -> Result<Self> {
        T::read_all(&mut key.splitn(T::COUNT, SEPARATOR), SEPARATOR).map(Self)
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
/// assert_eq!(show(Compound::new((7_u16,))), "00007");
/// assert_eq!(show(Compound::new((7_u16, "a".to_owned()))), "00007_a");
/// ```
pub trait Parts: Sized {
    #[doc(hidden)]
    const COUNT: usize;
    #[doc(hidden)]
    fn write_all(&self, key: &mut String, separator: char, last: KeyStyle) -> Result<()>;
    #[doc(hidden)]
    fn read_all<'k>(texts: &mut impl Iterator<Item = &'k str>, separator: char) -> Result<Self>;
}

/// Declares the tuples: the parts that another follows, and the last one.
macro_rules! tuples {
    ($($count:literal: $($part:ident)* | $last:ident;)+) => {
        $(impl<$($part: KeyPart,)* $last: KeyPart> Parts for ($($part,)* $last,) {
            const COUNT: usize = $count;

            #[allow(unused_variables, reason = "a single part has no separator")]
            fn write_all(&self, key: &mut String, separator: char, last: KeyStyle) -> Result<()> {
                #[expect(non_snake_case, reason = "the names of the types are those of the values")]
                let ($($part,)* $last,) = self;
                $(
                    $part.write_part(key, KeyStyle::before(separator))?;
                    key.push(separator);
                )*
                $last.write_part(key, last)
            }

            #[allow(unused_variables, reason = "a single part has no separator")]
            fn read_all<'k>(
                texts: &mut impl Iterator<Item = &'k str>,
                separator: char,
            ) -> Result<Self> {
                let mut next = || texts.next().ok_or_else(|| malformed("too few parts"));
                Ok((
                    $($part::read_part(next()?, KeyStyle::before(separator))?,)*
                    $last::read_part(next()?, KeyStyle::WHOLE)?,
                ))
            }
        })+
    };
}

tuples! {
    1: | A;
    2: A | B;
    3: A B | C;
    4: A B C | D;
    5: A B C D | E;
}

#[cfg(test)]
mod tests {
    use azure_core::Uuid;
    use proptest::prelude::*;
    use tavola_wire::table::names::{KeyProblem, key_problem};
    use tavola_wire::table::stored::key::compare_text;

    use super::*;
    use crate::DateTime;

    fn key<T: Parts>(parts: T) -> String {
        Compound::new(parts).to_key().unwrap()
    }

    #[test]
    fn keys_are_readable() {
        let moment = DateTime::parse_iso("2012-03-04").unwrap();
        assert_eq!(key(("Sales".to_owned(), 7_u32)), "Sales_0000000007");
        assert_eq!(
            key(("empid".to_owned(), Padded::<6>(123), Padded::<4>(2012))),
            "empid_000123_2012"
        );
        assert_eq!(key((moment,)), "0634664160000000000");
        assert_eq!(key((Inverted(moment),)).len(), 19);
        assert_eq!(key((-1_i32, 1_i32)), "!9999999999_0000000001");
        assert_eq!(key(("a/b.c".to_owned(),)), "a.~1b.c");
    }

    #[test]
    fn a_separator_is_plain_where_nothing_follows() {
        let parts = ("a_b".to_owned(), "c_d".to_owned());
        assert_eq!(key(parts.clone()), "a^~1b_c_d");
        assert_eq!(<Compound<(String, String)>>::from_key("a^~1b_c_d".into()).unwrap().0, parts);
        let prefix = Compound::new(("a_b".to_owned(),)).prefix().unwrap();
        assert!(key(parts).starts_with(&prefix), "{prefix}");
    }

    #[test]
    fn what_is_no_key_of_the_kind_is_refused() {
        for text in
            ["", "7", "0000000007_1", "000000000x", "+000000007", "9999999999", "!9999999999"]
        {
            assert!(<Compound<(u32,)>>::from_key(text.into()).is_err(), "{text}");
        }
        for text in ["", "a", "a_1", "a_00001_", "a_00001_2"] {
            assert!(<Compound<(String, u16)>>::from_key(text.into()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn keys_round_trip_and_are_legal(
            text in any::<String>(), number in any::<i64>(), small in any::<i32>(), id in any::<u128>(),
        ) {
            let parts = (text, number, Inverted(small), Uuid::from_u128(id));
            let stored = key(parts.clone());
            prop_assert!(!matches!(key_problem(&stored), Some(KeyProblem::Forbidden(_))), "{}", stored);
            prop_assert_eq!(Compound::from_key(stored).unwrap(), Compound::new(parts));
        }

        /// With a blank, texts of different length do too: by UTF-16 code unit, as the service compares.
        #[test]
        fn keys_sort_as_their_parts(
            a in ("[\u{0}-~\u{7f}-\u{a1}]{0,3}", any::<i32>()), b in ("[\u{0}-~\u{7f}-\u{a1}]{0,3}", any::<i32>()),
        ) {
            fn key<T: Parts>(parts: T) -> String {
                Compound::<T, ' '>(parts).to_key().unwrap()
            }
            let expected = compare_text(&a.0, &b.0).then(a.1.cmp(&b.1));
            prop_assert_eq!(compare_text(&key(a.clone()), &key(b.clone())), expected);
            let inverted = compare_text(&a.0, &b.0).then(b.1.cmp(&a.1));
            let invert = |(text, number): (String, i32)| key((text, Inverted(number)));
            prop_assert_eq!(compare_text(&invert(a), &invert(b)), inverted);
        }

        #[test]
        fn numbers_sort_with_any_separator(a in any::<(i32, i64)>(), b in any::<(i32, i64)>()) {
            prop_assert_eq!(key(a).cmp(&key(b)), a.cmp(&b));
        }

        #[test]
        fn moments_sort_by_time_and_against_it(a in 0..=DateTime::MAX.0, b in 0..=DateTime::MAX.0) {
            let (first, second) = (tavola_wire::Ticks(a), tavola_wire::Ticks(b));
            prop_assert_eq!(key((first,)).cmp(&key((second,))), a.cmp(&b));
            prop_assert_eq!(key((Inverted(first),)).cmp(&key((Inverted(second),))), b.cmp(&a));
        }
    }
}
