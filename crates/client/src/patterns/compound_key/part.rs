//! The values that are parts of compound keys, and how each is written.

use azure_core::Uuid;

use super::text::{KeyStyle, malformed};
use crate::error::refused;
use crate::{DateTime, Result};

/// Digits of the largest tick.
pub(crate) const TICK_DIGITS: usize = 19;
/// Before a negative number: less than every digit.
const NEGATIVE: char = '!';
/// Digits that `u64` always holds.
const PADDED_DIGITS_MAX: usize = 19;

/// A part of a compound key.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use azure_core::Result;
/// use tavola_client::KeyField;
/// use tavola_client::patterns::compound_key::{Compound, KeyPart, KeyStyle};
///
/// /// Sorts by weight, which the names would not.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Priority {
///     High,
///     Low,
/// }
///
/// impl KeyPart for Priority {
///     fn write_part(&self, key: &mut String, style: KeyStyle) -> Result<()> {
///         (*self as u16).write_part(key, style)
///     }
///
///     fn read_part(text: &str, style: KeyStyle) -> Result<Self> {
///         Ok(if u16::read_part(text, style)? == 0 { Self::High } else { Self::Low })
///     }
/// }
///
/// let high = Compound::new((Priority::High, 7_u16)).to_key()?;
/// assert_eq!(high, "00000_00007");
/// assert!(high < Compound::new((Priority::Low, 1_u16)).to_key()?);
/// assert_eq!(<Compound<(Priority, u16)>>::from_key(high)?.0.0, Priority::High);
/// # Ok(())
/// # }
/// ```
pub trait KeyPart: Sized {
    /// Appends the part.
    ///
    /// # Errors
    /// A value that this part cannot hold.
    fn write_part(&self, key: &mut String, style: KeyStyle) -> Result<()>;

    /// Reads the part back.
    ///
    /// # Errors
    /// A text that [`KeyPart::write_part`] does not write.
    fn read_part(text: &str, style: KeyStyle) -> Result<Self>;
}

/// A number of as many digits as the key is to have: `Padded::<6>(123)` is `000123`.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::KeyField;
/// use tavola_client::patterns::compound_key::{Compound, Padded};
///
/// let review = Compound::new((Padded::<6>(123), Padded::<4>(2012)));
/// assert_eq!(review.to_key()?, "000123_2012");
/// assert!(Compound::new((Padded::<4>(12_345),)).to_key().is_err(), "five digits");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Padded<const DIGITS: usize>(pub u64);

/// A value in descending order, so that the newest or largest comes first.
///
/// ```
/// # fn main() -> azure_core::Result<()> {
/// use tavola_client::KeyField;
/// use tavola_client::patterns::compound_key::{Compound, Inverted};
///
/// let key = |number: u32| Compound::new((Inverted(number),)).to_key();
/// assert!(key(2)? < key(1)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inverted<T>(pub T);

impl KeyPart for String {
    fn write_part(&self, key: &mut String, style: KeyStyle) -> Result<()> {
        style.push_text(self, key);
        Ok(())
    }

    fn read_part(text: &str, style: KeyStyle) -> Result<Self> {
        style.read_text(text)
    }
}

impl<const DIGITS: usize> KeyPart for Padded<DIGITS> {
    fn write_part(&self, key: &mut String, _: KeyStyle) -> Result<()> {
        const { assert!(DIGITS >= 1 && DIGITS <= PADDED_DIGITS_MAX, "from 1 to 19 digits") };
        push_integer(self.0.into(), DIGITS, key)
    }

    fn read_part(text: &str, _: KeyStyle) -> Result<Self> {
        let number = read_integer(text, DIGITS)?;
        u64::try_from(number).map(Self).map_err(|_| malformed(text))
    }
}

/// Declares the integers: decimal with leading zeros.
macro_rules! integers {
    ($($rust:ty, $digits:literal, $inverted_digits:literal;)+) => {
        $(impl KeyPart for $rust {
            fn write_part(&self, key: &mut String, _: KeyStyle) -> Result<()> {
                push_integer((*self).into(), $digits, key)
            }

            fn read_part(text: &str, _: KeyStyle) -> Result<Self> {
                <$rust>::try_from(read_integer(text, $digits)?).map_err(|_| malformed(text))
            }
        }

        impl KeyPart for Inverted<$rust> {
            fn write_part(&self, key: &mut String, _: KeyStyle) -> Result<()> {
                push_integer(i128::from(<$rust>::MAX) - i128::from(self.0), $inverted_digits, key)
            }

            fn read_part(text: &str, _: KeyStyle) -> Result<Self> {
                let number = i128::from(<$rust>::MAX) - read_integer(text, $inverted_digits)?;
                <$rust>::try_from(number).map(Inverted).map_err(|_| malformed(text))
            }
        })+
    };
}

integers! {
    u16, 5, 5;
    u32, 10, 10;
    u64, 20, 20;
    i32, 10, 10;
    i64, 19, 20;
}

/// Appends an integer with leading zeros. A negative one is a mark and its distance from the first number that is too
/// long, so that -2 comes before -1 and both before 0.
pub(crate) fn push_integer(number: i128, digits: usize, key: &mut String) -> Result<()> {
    let end = 10_i128.pow(u32::try_from(digits).unwrap_or(u32::MAX).min(30));
    if number >= end || number < -end {
        return Err(refused(format!("the number has more than {digits} digits: number={number}")));
    }
    if number < 0 {
        key.push(NEGATIVE);
        // The least number leaves nothing, which is as many zeros.
        key.push_str(&format!("{:0digits$}", end + number));
    } else {
        key.push_str(&format!("{number:0digits$}"));
    }
    Ok(())
}

fn read_integer(text: &str, digits: usize) -> Result<i128> {
    let unsigned = text.strip_prefix(NEGATIVE).unwrap_or(text);
    let is_whole = unsigned.len() == digits && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let number: i128 =
        is_whole.then(|| unsigned.parse().ok()).flatten().ok_or_else(|| malformed(text))?;
    let end = 10_i128.pow(u32::try_from(digits).unwrap_or(u32::MAX).min(30));
    Ok(if unsigned.len() < text.len() { number - end } else { number })
}

impl KeyPart for DateTime {
    fn write_part(&self, key: &mut String, _: KeyStyle) -> Result<()> {
        push_integer(self.0.into(), TICK_DIGITS, key)
    }

    fn read_part(text: &str, _: KeyStyle) -> Result<Self> {
        read_ticks(text)
    }
}

impl KeyPart for Inverted<DateTime> {
    fn write_part(&self, key: &mut String, _: KeyStyle) -> Result<()> {
        push_integer((DateTime::MAX.0 - self.0.0).into(), TICK_DIGITS, key)
    }

    fn read_part(text: &str, _: KeyStyle) -> Result<Self> {
        Ok(Inverted(tavola_wire::Ticks(DateTime::MAX.0 - read_ticks(text)?.0)))
    }
}

fn read_ticks(text: &str) -> Result<DateTime> {
    let ticks = i64::try_from(read_integer(text, TICK_DIGITS)?).map_err(|_| malformed(text))?;
    Ok(tavola_wire::Ticks(ticks))
}

impl KeyPart for Uuid {
    fn write_part(&self, key: &mut String, _: KeyStyle) -> Result<()> {
        key.push_str(&self.simple().to_string());
        Ok(())
    }

    fn read_part(text: &str, _: KeyStyle) -> Result<Self> {
        Uuid::try_parse(text).map_err(|_| malformed(text))
    }
}
