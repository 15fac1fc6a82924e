//! The values that an index is made of.

use azure_core::time::OffsetDateTime;
use bytes::Bytes;

use crate::error::refused;
use crate::patterns::compound_key::{KeyStyle, TICK_DIGITS, push_integer};
use crate::{Column, DateTime, EdmType, EdmValue, Entity, Result, Uuid};

/// Digits of the largest integer: the same for both types, so that a number is found whichever it was stored as.
const INTEGER_DIGITS: usize = 19;
/// Letters of a day in ISO 8601.
const DAY_LEN: usize = 10;

/// A property in the key of an index.
///
/// A name alone takes values of every type. A [`Column`] says which type the property has: then a value of another type is
/// an error when it is saved, instead of an entry that nobody finds.
///
/// ```
/// use tavola_client::patterns::index::{Index, Part};
/// use tavola_client::{Column, DateTime};
///
/// const HIRED: Column<DateTime> = Column::new("Hired");
///
/// // `badge_000077`, the day of a moment, and the newest first.
/// let by_badge = Index::unique("badge_", Part::new("Badge").digits(6));
/// let by_day = Index::many("hired_", Part::from(HIRED).day());
/// let newest = Index::many("newest_", Part::from(HIRED).descending());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    property: String,
    declared: Option<EdmType>,
    format: Format,
    is_descending: bool,
    /// Between the items of a list.
    list_separator: Option<char>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Plain,
    Digits(usize),
    Day,
}

impl Part {
    /// The values of a property, of whatever type they are.
    pub fn new(property: impl Into<String>) -> Self {
        Self {
            property: property.into(),
            declared: None,
            format: Format::Plain,
            is_descending: false,
            list_separator: None,
        }
    }

    /// Writes integers with that many digits instead of 19.
    #[must_use]
    pub fn digits(mut self, digits: usize) -> Self {
        self.format = Format::Digits(digits);
        self
    }

    /// Writes the day of a moment (`2012-08-22`, in UTC) instead of its ticks. All moments of a day are one value then.
    #[must_use]
    pub fn day(mut self) -> Self {
        self.format = Format::Day;
        self
    }

    /// Sorts integers and moments from the largest to the least.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.is_descending = true;
        self
    }

    /// Takes a text for a list, with this character between its items: an entry for each of them.
    ///
    /// ```
    /// use tavola_client::patterns::index::{Index, Part};
    ///
    /// // A film is found by each of its actors, and the list of them is in the copy.
    /// let by_actor = Index::many("actor_", Part::new("Actors").each(',')).partial(["Actors"]);
    /// ```
    #[must_use]
    pub fn each(mut self, separator: char) -> Self {
        self.list_separator = Some(separator);
        self
    }

    pub(super) fn is_descending(&self) -> bool {
        self.is_descending
    }

    pub(super) fn is_list(&self) -> bool {
        self.list_separator.is_some()
    }

    /// The values that an entity has for this part.
    pub(super) fn values(&self, entity: &Entity) -> Result<Vec<EdmValue>> {
        match (entity.value(&self.property), self.list_separator) {
            (None, _) => Ok(Vec::new()),
            (Some(value), None) => Ok(vec![value.clone()]),
            (Some(EdmValue::String(list)), Some(separator)) => {
                let mut items: Vec<_> = list.split(separator).map(str::trim).collect();
                items.retain(|item| !item.is_empty());
                items.sort_unstable();
                items.dedup();
                Ok(items.into_iter().map(EdmValue::from).collect())
            }
            (Some(value), Some(_)) => Err(self.mismatch(value)),
        }
    }

    pub(super) fn property(&self) -> &str {
        &self.property
    }

    /// Tells a definition that no value could be written with.
    pub(super) fn check(&self) -> Result<()> {
        use EdmType::{DateTime, Int32, Int64, String};
        let is = |types: &[EdmType]| self.declared.is_none_or(|declared| types.contains(&declared));
        let has_format = match self.format {
            Format::Plain => true,
            Format::Digits(digits) => (1..=INTEGER_DIGITS).contains(&digits) && is(&[Int32, Int64]),
            Format::Day => is(&[DateTime]),
        };
        let has_order = match (self.is_descending, self.format) {
            (false, _) => true,
            (true, Format::Day) => false,
            (true, _) => is(&[Int32, Int64, DateTime]),
        };
        let is_plain = self.format == Format::Plain && !self.is_descending;
        let has_items = !self.is_list() || is_plain && is(&[String]);
        match has_format && has_order && has_items {
            true => Ok(()),
            false => Err(refused(format!("no value can be written like this: {self:?}"))),
        }
    }

    /// Whether keys of this value can be the start of keys of another.
    pub(super) fn has_fixed_width(&self, value: &EdmValue) -> bool {
        !matches!(value, EdmValue::String(_) | EdmValue::Binary(_))
    }

    /// Appends a value.
    pub(super) fn write(&self, value: &EdmValue, style: KeyStyle, key: &mut String) -> Result<()> {
        let value = self.widened(value)?;
        match (self.format, &value) {
            (Format::Day, EdmValue::DateTime(moment)) if !self.is_descending => {
                let iso = moment.to_iso();
                style.push_text(&iso[..DAY_LEN.min(iso.len())], key);
                Ok(())
            }
            (Format::Digits(digits), value) => {
                push_integer(self.directed(self.integer(value)?), digits, key)
            }
            (Format::Plain, EdmValue::DateTime(moment)) => {
                let ticks = match self.is_descending {
                    true => DateTime::MAX.0 - moment.0,
                    false => moment.0,
                };
                push_integer(ticks.into(), TICK_DIGITS, key)
            }
            (Format::Plain, value @ (EdmValue::Int32(_) | EdmValue::Int64(_))) => {
                push_integer(self.directed(self.integer(value)?), INTEGER_DIGITS, key)
            }
            (Format::Plain, value) if !self.is_descending => {
                style.push_text(&plain_text(value), key);
                Ok(())
            }
            (_, value) => Err(self.mismatch(value)),
        }
    }

    /// The value as the type that the part has: a smaller number stands for a larger one.
    fn widened(&self, value: &EdmValue) -> Result<EdmValue> {
        match (self.declared, value) {
            (None, _) => Ok(value.clone()),
            (Some(declared), _) if declared == value.edm_type() => Ok(value.clone()),
            (Some(EdmType::Int64 | EdmType::Int32), EdmValue::Int32(_) | EdmValue::Int64(_)) => {
                Ok(value.clone())
            }
            (Some(EdmType::Double), EdmValue::Int32(number)) => {
                Ok(EdmValue::Double((*number).into()))
            }
            _ => Err(self.mismatch(value)),
        }
    }

    fn integer(&self, value: &EdmValue) -> Result<i128> {
        match value {
            EdmValue::Int32(number) => Ok((*number).into()),
            EdmValue::Int64(number) => Ok((*number).into()),
            other => Err(self.mismatch(other)),
        }
    }

    fn directed(&self, number: i128) -> i128 {
        // -1 - x reverses the order and keeps the range.
        if self.is_descending { -1 - number } else { number }
    }

    fn mismatch(&self, value: &EdmValue) -> azure_core::Error {
        refused(format!(
            "the index is not made for {}: property={}",
            value.edm_type().name(),
            self.property
        ))
    }
}

/// Texts that sort as the values do.
fn plain_text(value: &EdmValue) -> String {
    match value {
        EdmValue::String(text) => text.clone(),
        EdmValue::Boolean(value) => value.to_string(),
        EdmValue::Guid(guid) => guid.to_string(),
        EdmValue::Binary(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        EdmValue::Double(number) => {
            // Zero is one value, whatever its sign. The bits of positive numbers sort as they do, those of negative ones
            // the other way.
            let bits = (number + 0.0).to_bits();
            let sign = 1 << 63;
            format!("{:016x}", if bits & sign == 0 { bits | sign } else { !bits })
        }
        EdmValue::Int32(_) | EdmValue::Int64(_) | EdmValue::DateTime(_) => {
            unreachable!("numbers have digits")
        }
    }
}

impl From<&str> for Part {
    fn from(property: &str) -> Self {
        Self::new(property)
    }
}

impl<T: KeyValue> From<Column<T>> for Part {
    fn from(column: Column<T>) -> Self {
        Self { declared: Some(T::EDM_TYPE), ..Self::new(column.name()) }
    }
}

/// The properties that an index is made of: a name, a [`Column`], a [`Part`], or several in an array.
///
/// ```
/// use tavola_client::Column;
/// use tavola_client::patterns::index::{Index, Part, Parts};
///
/// let one: Parts = "Email".into();
/// let several: Parts = ["Town", "LastName"].into();
/// let typed: Parts = [Column::<String>::new("Town").into(), Part::new("Zip").digits(5)].into();
/// let by_address = Index::many("address_", typed);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Parts(pub(super) Vec<Part>);

impl From<&str> for Parts {
    fn from(property: &str) -> Self {
        Self(vec![property.into()])
    }
}

impl From<Part> for Parts {
    fn from(part: Part) -> Self {
        Self(vec![part])
    }
}

impl<T: KeyValue> From<Column<T>> for Parts {
    fn from(column: Column<T>) -> Self {
        Self(vec![column.into()])
    }
}

impl<P: Into<Part>, const N: usize> From<[P; N]> for Parts {
    fn from(parts: [P; N]) -> Self {
        Self(parts.into_iter().map(Into::into).collect())
    }
}

/// A Rust type that can be a part of an index.
///
/// ```
/// use tavola_client::EdmType;
/// use tavola_client::patterns::index::KeyValue;
///
/// assert_eq!(<Option<String> as KeyValue>::EDM_TYPE, EdmType::String, "what may be missing, too");
/// ```
///
/// A column of another type does not compile:
///
/// ```compile_fail
/// use tavola_client::Column;
/// use tavola_client::patterns::index::Index;
///
/// let by_tags = Index::many("tags_", Column::<Vec<String>>::new("Tags"));
/// ```
pub trait KeyValue {
    /// The type that the property has.
    ///
    /// ```
    /// use tavola_client::EdmType;
    /// use tavola_client::patterns::index::KeyValue;
    ///
    /// assert_eq!(u32::EDM_TYPE, EdmType::Int64);
    /// ```
    const EDM_TYPE: EdmType;
}

impl<T: KeyValue> KeyValue for Option<T> {
    const EDM_TYPE: EdmType = T::EDM_TYPE;
}

/// The values that an index is asked for: one for each part, or for the first parts; several are a tuple.
///
/// ```
/// use tavola_client::EdmValue;
/// use tavola_client::patterns::index::IndexValue;
///
/// let name: IndexValue = "Jones".into();
/// let town_and_name: IndexValue = ("Redmond", "Smith").into();
/// assert_eq!(name, IndexValue::from(EdmValue::from("Jones")));
/// assert_ne!(name, town_and_name);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IndexValue(pub(super) Vec<EdmValue>);

/// Declares the types of single values.
macro_rules! values {
    ($($rust:ty => $edm:ident),+ $(,)?) => {
        $(impl From<$rust> for IndexValue {
            fn from(value: $rust) -> Self {
                Self(vec![value.into()])
            }
        }

        impl KeyValue for $rust {
            const EDM_TYPE: EdmType = EdmType::$edm;
        })+
    };
}

values! {
    String => String, bool => Boolean, Uuid => Guid, Vec<u8> => Binary, Bytes => Binary,
    i8 => Int32, i16 => Int32, i32 => Int32, u8 => Int32, u16 => Int32, i64 => Int64, u32 => Int64,
    f64 => Double, f32 => Double,
    DateTime => DateTime, OffsetDateTime => DateTime, std::time::SystemTime => DateTime,
}

impl From<EdmValue> for IndexValue {
    fn from(value: EdmValue) -> Self {
        Self(vec![value])
    }
}

impl From<&str> for IndexValue {
    fn from(text: &str) -> Self {
        Self(vec![text.into()])
    }
}

impl From<&String> for IndexValue {
    fn from(text: &String) -> Self {
        Self(vec![text.into()])
    }
}

/// Declares the tuples.
macro_rules! tuples {
    ($($($name:ident)+;)+) => {
        $(impl<$($name: Into<EdmValue>),+> From<($($name,)+)> for IndexValue {
            fn from(values: ($($name,)+)) -> Self {
                #[expect(non_snake_case, reason = "the names of the types are those of the values")]
                let ($($name,)+) = values;
                Self(vec![$($name.into()),+])
            }
        })+
    };
}

tuples! {
    A B;
    A B C;
    A B C D;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(part: &Part, value: impl Into<EdmValue>) -> String {
        let mut key = String::new();
        part.write(&value.into(), KeyStyle::WHOLE, &mut key).unwrap();
        key
    }

    #[test]
    fn descending_turns_the_order_round() {
        let part = Part::new("A").descending();
        for pair in [-5, -1, 0, 1, 5].windows(2) {
            assert!(key(&part, pair[0]) > key(&part, pair[1]), "{pair:?}");
        }
        let moment = |text: &str| DateTime::parse_iso(text).unwrap();
        assert!(key(&part, moment("2012-08-22")) > key(&part, moment("2012-08-23")));
        assert!(key(&part, i64::MIN) > key(&part, i64::MAX));
    }

    proptest! {
        #[test]
        fn numbers_sort_as_numbers(a in any::<i64>(), b in any::<i64>()) {
            let part = Part::new("A");
            prop_assert_eq!(key(&part, a).cmp(&key(&part, b)), a.cmp(&b));
        }

        #[test]
        fn doubles_sort_as_doubles(a in any::<f64>(), b in any::<f64>()) {
            let (part, expected) = (Part::new("A"), a.partial_cmp(&b));
            if let Some(expected) = expected {
                prop_assert_eq!(key(&part, a).cmp(&key(&part, b)), expected);
            }
        }

        #[test]
        fn bytes_sort_as_bytes(a in any::<Vec<u8>>(), b in any::<Vec<u8>>()) {
            let part = Part::new("A");
            prop_assert_eq!(key(&part, a.clone()).cmp(&key(&part, b.clone())), a.cmp(&b));
        }
    }
}
