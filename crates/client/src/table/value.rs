//! Values of properties, and which Rust type is which EDM type.
//!
//! | Rust | EDM |
//! |---|---|
//! | `String`, `&str` | `Edm.String` |
//! | `bool` | `Edm.Boolean` |
//! | `i32`, `i16`, `i8`, `u16`, `u8` | `Edm.Int32` |
//! | `i64`, `u32`, `u64` | `Edm.Int64`; a `u64` above `i64::MAX` is an error when it is written |
//! | `f64`, `f32` | `Edm.Double` |
//! | [`DateTime`], `time::OffsetDateTime`, `SystemTime`; `chrono::DateTime<Utc>` and `jiff::Timestamp` with the cargo features of these names | `Edm.DateTime`, cut to 100 ns |
//! | [`Uuid`] | `Edm.Guid` |
//! | `Vec<u8>`, `Bytes` | `Edm.Binary` |
//! | `Option<T>` | that of `T`; absent for `None` |
//!
//! Writing is exact. The service has no unsigned numbers: a `u64` is stored as what it is up to `i64::MAX`, and what is greater is
//! refused before it is sent. Where such numbers occur (hashes, say), store a text of fixed length, or the bits as `i64` with `as`.
//! A negative number is no `u64` and an error when it is read as one. In filters a `u64` that cannot be stored is greater than
//! everything that is. Reading takes the same type, and a smaller number where a larger one is wanted, because that
//! loses nothing and tables outlive the types of their first writers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use azure_core::Uuid;
use azure_core::time::OffsetDateTime;
use bytes::Bytes;
use tavola_wire::table::stored::EdmType;

use crate::core::error::{Result, conversion};

/// A moment in 100 ns ticks since the year 1, exactly as the service keeps it.
///
/// ```
/// use tavola_client::DateTime;
///
/// let moment = DateTime::parse_iso("2026-11-15T12:00:00.1234567Z").unwrap();
/// assert_eq!(moment.to_iso(), "2026-11-15T12:00:00.1234567Z");
/// assert!(moment < DateTime::MAX);
/// ```
pub use tavola_wire::Ticks as DateTime;

/// The value of a property.
///
/// ```
/// use tavola_client::{EdmType, EdmValue, Entity};
///
/// let entity = Entity::new("Sales", "00010").with("Age", 34).with("Photo", vec![0xff, 0xd8]);
/// for (name, value) in entity.properties() {
///     match value {
///         EdmValue::Binary(bytes) => println!("{name}: {} bytes", bytes.len()),
///         value => println!("{name}: {value:?}, which is {}", value.edm_type().name()),
///     }
/// }
/// assert_eq!(EdmValue::from(34).edm_type(), EdmType::Int32);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the EDM types")]
pub enum EdmValue {
    String(String),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    DateTime(DateTime),
    Guid(Uuid),
    Binary(Vec<u8>),
}

impl EdmValue {
    /// The type of this value.
    pub fn edm_type(&self) -> EdmType {
        match self {
            Self::String(_) => EdmType::String,
            Self::Boolean(_) => EdmType::Boolean,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::Double(_) => EdmType::Double,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Guid(_) => EdmType::Guid,
            Self::Binary(_) => EdmType::Binary,
        }
    }

    /// The bytes that the service counts for this value against the 1 MiB of an entity.
    pub(crate) fn stored_bytes(&self) -> usize {
        match self {
            Self::String(text) => 4 + 2 * text.encode_utf16().count(),
            Self::Binary(bytes) => 4 + bytes.len(),
            Self::Boolean(_) => 1,
            Self::Int32(_) => 4,
            Self::Int64(_) | Self::Double(_) | Self::DateTime(_) => 8,
            Self::Guid(_) => 16,
        }
    }
}

/// A Rust type that is a property, exactly or as an option.
///
/// ```
/// use tavola_client::{EdmProperty, EdmValue};
///
/// # fn main() -> tavola_client::Result<()> {
/// assert_eq!(42.to_edm()?, Some(EdmValue::Int32(42)));
/// assert_eq!(42_i64.to_edm()?, Some(EdmValue::Int64(42)));
/// assert_eq!(None::<bool>.to_edm()?, None);
/// assert_eq!(i64::from_edm(Some(EdmValue::Int32(42)))?, 42);
/// assert!(i32::from_edm(Some(EdmValue::Int64(42))).is_err());
///
/// // There is no unsigned number in the service.
/// assert_eq!(42_u64.to_edm()?, Some(EdmValue::Int64(42)));
/// assert!(u64::MAX.to_edm().is_err());
/// assert!(u64::from_edm(Some(EdmValue::Int64(-1))).is_err());
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a property",
    label = "the service has no type for this",
    note = "mark the field with `#[table(json)]` to store any serde type as a text, or with `#[table(skip)]`"
)]
pub trait EdmProperty: Sized {
    /// The value to store; `None` leaves the property out.
    ///
    /// # Errors
    /// A value that no property can hold, such as a number above `i64::MAX`.
    fn to_edm(&self) -> Result<Option<EdmValue>>;

    /// Reads what was stored; `None` is a property that the entity does not have.
    ///
    /// # Errors
    /// A missing property, unless the type is an option, and a value of another type.
    fn from_edm(value: Option<EdmValue>) -> Result<Self>;
}

impl<T: EdmProperty> EdmProperty for Option<T> {
    fn to_edm(&self) -> Result<Option<EdmValue>> {
        self.as_ref().map_or(Ok(None), T::to_edm)
    }

    fn from_edm(value: Option<EdmValue>) -> Result<Self> {
        value.map(|value| T::from_edm(Some(value))).transpose()
    }
}

/// The whole value, of whatever type it is.
impl EdmProperty for EdmValue {
    fn to_edm(&self) -> Result<Option<EdmValue>> {
        Ok(Some(self.clone()))
    }

    fn from_edm(value: Option<EdmValue>) -> Result<Self> {
        value.ok_or_else(missing)
    }
}

/// Declares a property type: how to write it, and which stored values it takes.
macro_rules! property {
    ($rust:ty, $wanted:ident, |$it:ident| $write:expr, { $($pattern:pat => $read:expr),+ $(,)? }) => {
        impl From<$rust> for EdmValue {
            fn from($it: $rust) -> Self {
                EdmValue::$wanted($write)
            }
        }

        impl EdmProperty for $rust {
            fn to_edm(&self) -> Result<Option<EdmValue>> {
                Ok(Some(EdmValue::from(self.clone())))
            }

            fn from_edm(value: Option<EdmValue>) -> Result<Self> {
                #[allow(unreachable_patterns, reason = "a type may take every value of its kind")]
                match value {
                    $(Some($pattern) => $read,)+
                    Some(other) => Err(mismatch(EdmType::$wanted, &other)),
                    None => Err(missing()),
                }
            }
        }
    };
}

property!(String, String, |it| it, { EdmValue::String(text) => Ok(text) });
property!(bool, Boolean, |it| it, { EdmValue::Boolean(value) => Ok(value) });
property!(i32, Int32, |it| it, { EdmValue::Int32(value) => Ok(value) });
property!(i64, Int64, |it| it, {
    EdmValue::Int64(value) => Ok(value),
    EdmValue::Int32(value) => Ok(value.into()),
});
property!(f64, Double, |it| it, {
    EdmValue::Double(value) => Ok(value),
    EdmValue::Int32(value) => Ok(value.into()),
});
property!(f32, Double, |it| it.into(), {
    // The nearest `f32`, which is the one that was written if an `f32` was.
    EdmValue::Double(value) => Ok(value as f32),
});
property!(DateTime, DateTime, |it| it, { EdmValue::DateTime(moment) => Ok(moment) });
property!(OffsetDateTime, DateTime, |it| ticks_from_date_time(it), {
    EdmValue::DateTime(moment) => date_time_from_ticks(moment),
});
property!(SystemTime, DateTime, |it| ticks_from_system_time(it), {
    EdmValue::DateTime(moment) => system_time_from_ticks(moment),
});
#[cfg(feature = "chrono")]
property!(chrono::DateTime<chrono::Utc>, DateTime, |it| ticks_from_chrono(it), {
    EdmValue::DateTime(moment) => chrono_from_ticks(moment),
});
#[cfg(feature = "jiff")]
property!(jiff::Timestamp, DateTime, |it| DateTime::from_unix_nanos(it.as_nanosecond()), {
    EdmValue::DateTime(moment) => {
        jiff::Timestamp::from_nanosecond(i128::from(unix_ticks(moment)) * 100)
            .map_err(|error| conversion(error.to_string()))
    },
});
property!(Uuid, Guid, |it| it, { EdmValue::Guid(guid) => Ok(guid) });
property!(Vec<u8>, Binary, |it| it, { EdmValue::Binary(bytes) => Ok(bytes) });
property!(Bytes, Binary, |it| it.to_vec(), { EdmValue::Binary(bytes) => Ok(bytes.into()) });

/// Declares the smaller integers, which are stored in the next type of the service that holds them.
macro_rules! small_integer {
    ($($rust:ty => $wanted:ident),+) => {
        $(property!($rust, $wanted, |it| it.into(), {
            EdmValue::Int32(value) => <$rust>::try_from(value).map_err(|_| range(value)),
            EdmValue::Int64(value) => <$rust>::try_from(value).map_err(|_| range(value)),
        });)+
    };
}

small_integer!(i8 => Int32, i16 => Int32, u8 => Int32, u16 => Int32, u32 => Int64);

/// Without `From`, for not every number can be stored.
impl EdmProperty for u64 {
    fn to_edm(&self) -> Result<Option<EdmValue>> {
        let number = i64::try_from(*self).map_err(|_| range(*self))?;
        Ok(Some(EdmValue::Int64(number)))
    }

    fn from_edm(value: Option<EdmValue>) -> Result<Self> {
        let number = i64::from_edm(value)?;
        Self::try_from(number).map_err(|_| range(number))
    }
}

impl From<&str> for EdmValue {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<&String> for EdmValue {
    fn from(text: &String) -> Self {
        Self::String(text.clone())
    }
}

impl From<&[u8]> for EdmValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Binary(bytes.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for EdmValue {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Binary(bytes.to_vec())
    }
}

fn missing() -> azure_core::Error {
    conversion("the entity has no such property")
}

fn mismatch(wanted: EdmType, found: &EdmValue) -> azure_core::Error {
    conversion(format!("the property is {} and not {}", found.edm_type().name(), wanted.name()))
}

fn range(value: impl std::fmt::Display) -> azure_core::Error {
    conversion(format!("the property does not fit: value={value}"))
}

/// The moment in ticks; what is finer than 100 ns is cut off, and the range is that of the service.
pub(crate) fn ticks_from_date_time(moment: OffsetDateTime) -> DateTime {
    DateTime::from_unix_nanos(moment.unix_timestamp_nanos())
}

pub(crate) fn date_time_from_ticks(moment: DateTime) -> Result<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ticks(moment)) * 100)
        .map_err(|error| conversion(error.to_string()))
}

fn ticks_from_system_time(moment: SystemTime) -> DateTime {
    let nanoseconds = match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    };
    DateTime::from_unix_nanos(nanoseconds)
}

fn system_time_from_ticks(moment: DateTime) -> Result<SystemTime> {
    let ticks = unix_ticks(moment);
    let distance = Duration::new(
        ticks.unsigned_abs() / DateTime::PER_SECOND.unsigned_abs(),
        (ticks.unsigned_abs() % DateTime::PER_SECOND.unsigned_abs()) as u32 * 100,
    );
    let found = match ticks >= 0 {
        true => UNIX_EPOCH.checked_add(distance),
        false => UNIX_EPOCH.checked_sub(distance),
    };
    found.ok_or_else(|| conversion("the moment is outside of what the system can count"))
}

#[cfg(feature = "chrono")]
fn ticks_from_chrono(moment: chrono::DateTime<chrono::Utc>) -> DateTime {
    let seconds = i128::from(moment.timestamp()) * 1_000_000_000;
    DateTime::from_unix_nanos(seconds + i128::from(moment.timestamp_subsec_nanos()))
}

#[cfg(feature = "chrono")]
fn chrono_from_ticks(moment: DateTime) -> Result<chrono::DateTime<chrono::Utc>> {
    let ticks = unix_ticks(moment);
    let nanoseconds = ticks.rem_euclid(DateTime::PER_SECOND) as u32 * 100;
    chrono::DateTime::from_timestamp(ticks.div_euclid(DateTime::PER_SECOND), nanoseconds)
        .ok_or_else(|| conversion("the moment is outside of what chrono can count"))
}

fn unix_ticks(moment: DateTime) -> i64 {
    moment.0 - DateTime::from_unix_nanos(0).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "values are written where they are checked")]
    fn round_trip<T: EdmProperty + PartialEq + std::fmt::Debug>(value: T, edm: EdmType) {
        let stored = value.to_edm().unwrap().unwrap();
        assert_eq!(stored.edm_type(), edm);
        assert_eq!(T::from_edm(Some(stored)).unwrap(), value);
    }

    #[test]
    fn every_type_is_stored_as_its_own() {
        round_trip("text".to_owned(), EdmType::String);
        round_trip(true, EdmType::Boolean);
        round_trip(i32::MIN, EdmType::Int32);
        round_trip(i64::MIN, EdmType::Int64);
        round_trip(u32::MAX, EdmType::Int64);
        round_trip(i64::MAX as u64, EdmType::Int64);
        round_trip(0_u64, EdmType::Int64);
        round_trip(u8::MAX, EdmType::Int32);
        round_trip(0.1_f64, EdmType::Double);
        round_trip(0.1_f32, EdmType::Double);
        round_trip(Uuid::from_u128(7), EdmType::Guid);
        round_trip(vec![1_u8, 2], EdmType::Binary);
        round_trip(Bytes::from_static(b"ab"), EdmType::Binary);
        round_trip(DateTime::parse_iso("1601-01-01").unwrap(), EdmType::DateTime);
        round_trip(UNIX_EPOCH + Duration::new(5, 700), EdmType::DateTime);
        round_trip(UNIX_EPOCH - Duration::new(5, 700), EdmType::DateTime);
        round_trip(OffsetDateTime::from_unix_timestamp(-77).unwrap(), EdmType::DateTime);
        round_trip(Some(5_i32), EdmType::Int32);
    }

    /// Before and after 1970, to the tick.
    #[cfg(all(feature = "chrono", feature = "jiff"))]
    #[test]
    fn moments_of_every_crate_are_the_same() {
        for text in ["1601-01-01", "1969-12-31T23:59:59.9999999Z", "2026-11-17T22:50:47.1234567Z"] {
            let moment = DateTime::parse_iso(text).unwrap();
            let stored = || Some(EdmValue::DateTime(moment));
            let chrono = chrono::DateTime::<chrono::Utc>::from_edm(stored()).unwrap();
            let jiff = jiff::Timestamp::from_edm(stored()).unwrap();
            assert_eq!(chrono.to_edm().unwrap(), stored(), "{text}");
            assert_eq!(jiff.to_edm().unwrap(), stored(), "{text}");
            assert_eq!(chrono.timestamp(), jiff.as_nanosecond().div_euclid(1_000_000_000) as i64);
        }
    }

    #[test]
    fn what_would_lose_something_is_refused() {
        for (value, is_taken) in [
            (EdmValue::Int32(300), false),
            (EdmValue::Int64(200), true),
            (EdmValue::Double(1.0), false),
            (EdmValue::from("1"), false),
        ] {
            assert_eq!(u8::from_edm(Some(value.clone())).is_ok(), is_taken, "{value:?}");
        }
        assert!(i32::from_edm(Some(EdmValue::Int64(1))).is_err());
        assert!(i32::from_edm(None).is_err());
        for number in [i64::MAX as u64 + 1, u64::MAX] {
            let error = number.to_edm().unwrap_err().to_string();
            assert!(error.contains(&number.to_string()), "{error}");
            assert!(Some(number).to_edm().is_err());
        }
        assert!(u64::from_edm(Some(EdmValue::Int64(-1))).is_err());
        assert_eq!(u64::from_edm(Some(EdmValue::Int32(7))).unwrap(), 7);
        assert_eq!(Option::<i32>::from_edm(None).unwrap(), None);
    }

    #[test]
    fn finer_time_is_cut_to_ticks() {
        let fine = UNIX_EPOCH + Duration::new(1, 199);
        let stored = fine.to_edm().unwrap();
        assert_eq!(stored, Some((UNIX_EPOCH + Duration::new(1, 100)).into()));
    }
}
