//! Properties with their Rust type, for filters that the compiler checks.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::{Filter, Operator};
use crate::table::value::{DateTime, EdmProperty, EdmValue};

/// The partition key.
///
/// ```
/// use tavola_client::{PARTITION_KEY, ROW_KEY};
///
/// let wanted = PARTITION_KEY.eq("Sales") & ROW_KEY.lt("B");
/// assert_eq!(wanted.to_string(), "PartitionKey eq 'Sales' and RowKey lt 'B'");
/// ```
pub const PARTITION_KEY: Column<String> = Column::new("PartitionKey");
/// The row key.
pub const ROW_KEY: Column<String> = Column::new("RowKey");
/// The moment of the last change. No index: a filter by it alone reads the whole table.
///
/// ```
/// use tavola_client::{DateTime, PARTITION_KEY, TIMESTAMP};
///
/// let since = DateTime::parse_iso("2026-11-15").unwrap();
/// let changed = PARTITION_KEY.eq("Sales") & TIMESTAMP.ge(since);
/// assert!(changed.to_string().ends_with("Timestamp ge datetime'2026-11-15T00:00:00Z'"));
/// ```
pub const TIMESTAMP: Column<DateTime> = Column::new("Timestamp");

/// A property and its Rust type.
///
/// ```
/// use tavola_client::Column;
///
/// const AGE: Column<i32> = Column::new("Age");
/// assert_eq!((AGE.ge(18) & AGE.lt(65)).to_string(), "Age ge 18 and Age lt 65");
/// assert_eq!((AGE.gt(17) | AGE.eq(3)).to_string(), "Age gt 17 or Age eq 3");
/// assert_eq!((AGE.le(64) & AGE.ne(3)).to_string(), "Age le 64 and Age ne 3");
/// assert_eq!(AGE.name(), "Age");
/// ```
///
/// A value of another type does not compile:
///
/// ```compile_fail
/// use tavola_client::Column;
///
/// Column::<i32>::new("Age").eq("34");
/// ```
#[derive(Debug)]
pub struct Column<T> {
    name: Cow<'static, str>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), kind: PhantomData }
    }
}

impl<T> Column<T> {
    /// A property by its name; in a constant, a bad name does not compile.
    ///
    /// # Panics
    /// A name with other characters than letters, digits and `_`.
    pub const fn new(name: &'static str) -> Self {
        assert_name(name);
        Self { name: Cow::Borrowed(name), kind: PhantomData }
    }

    /// The name of the property.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Declares the comparisons.
macro_rules! comparisons {
    ($($(#[$attribute:meta])* $method:ident => $operator:ident),+ $(,)?) => {
        impl<T: EdmProperty> Column<T> {
            $($(#[$attribute])*
            pub fn $method(&self, value: impl Into<T>) -> Filter {
                let name = self.name.clone().into_owned();
                match value.into().to_edm() {
                    Ok(Some(value)) => Filter::compare_value(name, Operator::$operator, value),
                    // An absent value equals nothing; the service has no word for it.
                    Ok(None) => !Filter::ALL,
                    Err(_) => compare_beyond(name, Operator::$operator),
                }
            })+
        }
    };
}

comparisons! {
    /// The property is this value.
    eq => Eq,
    /// The property is there and not this value.
    ne => Ne,
    /// The property is greater than this value.
    gt => Gt,
    /// The property is this value or greater.
    ge => Ge,
    /// The property is less than this value.
    lt => Lt,
    /// The property is this value or less.
    le => Le,
}

/// The comparison with a number that is greater than all that can be stored: with every number, or with none.
fn compare_beyond(name: String, operator: Operator) -> Filter {
    match operator {
        Operator::Eq | Operator::Gt | Operator::Ge => !Filter::ALL,
        Operator::Ne | Operator::Lt | Operator::Le => {
            Filter::compare_value(name, Operator::Ge, EdmValue::Int64(i64::MIN))
        }
    }
}

impl Column<String> {
    /// The texts that start so.
    ///
    /// ```
    /// use tavola_client::ROW_KEY;
    ///
    /// assert_eq!(ROW_KEY.starts_with("EMP_").to_string(), "RowKey ge 'EMP_' and RowKey lt 'EMP`'");
    /// ```
    pub fn starts_with(&self, prefix: &str) -> Filter {
        Filter::prefix(&self.name, prefix)
    }

    /// The texts from the first to before the second.
    ///
    /// ```
    /// use tavola_client::ROW_KEY;
    ///
    /// assert_eq!(ROW_KEY.between("B", "D").to_string(), "RowKey ge 'B' and RowKey lt 'D'");
    /// ```
    pub fn between(&self, start: &str, end_exclusive: &str) -> Filter {
        self.ge(start) & self.lt(end_exclusive)
    }
}

/// Filters have no way to quote names, so a name must be a plain word. Names beyond ASCII are left to the service.
pub(super) const fn assert_name(name: &str) {
    let bytes = name.as_bytes();
    assert!(
        !bytes.is_empty() && !bytes[0].is_ascii_digit(),
        "this is a name that no property can have"
    );
    let mut index = 0;
    while index < bytes.len() {
        let byte = bytes[index];
        let is_plain = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        assert!(is_plain, "this is a name that no property can have");
        index += 1;
    }
}
