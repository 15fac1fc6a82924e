//! Filters that cannot be malformed.
//!
//! Three ways lead to a [`Filter`]: the [`filter!`](crate::filter!) macro, which reads like Rust; typed
//! [`Column`]s; and [`Filter::parse`] for texts from elsewhere. Values are escaped, and property names are checked when
//! the program is compiled or the column is made.
//!
//! ```
//! use tavola_client::{Column, Filter, PARTITION_KEY, ROW_KEY, filter};
//!
//! let name = "O'Brien";
//! let by_macro = filter!(PartitionKey == "Sales" && RowKey >= "B" && RowKey < "C" && Name == name);
//! let by_column = PARTITION_KEY.eq("Sales")
//!     & ROW_KEY.ge("B")
//!     & ROW_KEY.lt("C")
//!     & Column::<String>::new("Name").eq(name);
//! let text = "PartitionKey eq 'Sales' and RowKey ge 'B' and RowKey lt 'C' and Name eq 'O''Brien'";
//! assert_eq!(by_macro, by_column);
//! assert_eq!(by_macro.to_string(), text);
//! assert_eq!(Filter::parse(text).unwrap(), by_macro);
//! ```

mod column;
mod cost;
mod prefix;

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};

use tavola_wire::table::filter::{self, Comparison, Expr, Literal};

use crate::core::error::{Result, conversion};
use crate::table::value::EdmValue;

pub use column::{Column, PARTITION_KEY, ROW_KEY, TIMESTAMP};
pub use cost::{QueryCost, ScanWarning};
pub use prefix::prefix_end;
#[doc(hidden)]
pub use tavola_wire::table::filter::Operator;

/// Which entities a query finds.
///
/// ```
/// use tavola_client::{Filter, ROW_KEY, filter};
///
/// let b_to_c = Filter::partition("Sales").and(ROW_KEY.between("B", "C"));
/// let jens = Filter::key("Sales", "00010");
/// let either = jens.or(b_to_c.clone());
/// assert_eq!(
///     either.to_string(),
///     "(PartitionKey eq 'Sales' and RowKey eq '00010') \
///      or (PartitionKey eq 'Sales' and RowKey ge 'B' and RowKey lt 'C')"
/// );
/// // Operators do the same, and `!` is there too.
/// assert_eq!(filter!(PartitionKey == "Sales") & !filter!(Active), filter!(PartitionKey == "Sales" && !Active));
/// // Everything, to start from when conditions are added one by one.
/// assert_eq!(Filter::ALL.and(b_to_c.clone()), b_to_c);
/// assert_eq!(Filter::parse(&b_to_c.to_string()).unwrap(), b_to_c);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Expr);

impl Filter {
    /// Everything.
    pub const ALL: Filter = Filter(Expr::ALL);

    /// Reads a filter in the service's own language.
    ///
    /// # Errors
    /// A text that the service would not take.
    pub fn parse(text: &str) -> Result<Self> {
        filter::parse(text).map(Self).map_err(|error| conversion(error.message().to_owned()))
    }

    /// One entity.
    pub fn key(partition_key: &str, row_key: &str) -> Self {
        PARTITION_KEY.eq(partition_key) & ROW_KEY.eq(row_key)
    }

    /// One partition.
    pub fn partition(partition_key: &str) -> Self {
        PARTITION_KEY.eq(partition_key)
    }

    /// Both this and the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self & other
    }

    /// This or the other, or both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self | other
    }

    /// Compares a property with a value; what the macro expands to.
    ///
    /// # Panics
    /// A name that no property can have, which the macro does not let through.
    #[doc(hidden)]
    pub fn compare(property: &str, operator: Operator, value: impl Into<EdmValue>) -> Self {
        column::assert_name(property);
        Self::compare_value(property.to_owned(), operator, value.into())
    }

    /// The texts that start with the prefix; what the macro's `starts_with` expands to.
    #[doc(hidden)]
    pub fn prefix(property: &str, prefix: impl AsRef<str>) -> Self {
        column::assert_name(property);
        let prefix = prefix.as_ref();
        let from = Self::compare(property, Operator::Ge, prefix);
        match prefix_end(prefix) {
            Some(end) => from & Self::compare(property, Operator::Lt, end),
            None => from,
        }
    }

    fn compare_value(property: String, operator: Operator, value: EdmValue) -> Self {
        let literal = match value {
            EdmValue::String(text) => Literal::String(text),
            EdmValue::Boolean(value) => Literal::Boolean(value),
            EdmValue::Int32(value) => Literal::Int32(value),
            EdmValue::Int64(value) => Literal::Int64(value),
            EdmValue::Double(value) if !value.is_finite() => {
                return Self::compare_unbounded(&property, operator, value);
            }
            EdmValue::Double(value) => Literal::Double(value),
            EdmValue::DateTime(moment) => Literal::DateTime(moment),
            EdmValue::Guid(guid) => Literal::Guid(*guid.as_bytes()),
            EdmValue::Binary(bytes) => Literal::Binary(bytes),
        };
        Self(Expr::Compare(Comparison { property, operator, literal }))
    }

    /// The language has no words for infinity and NaN, so these comparisons are told with the largest numbers.
    fn compare_unbounded(property: &str, operator: Operator, value: f64) -> Self {
        let beyond = |operator, bound: f64| {
            Self::compare_value(property.to_owned(), operator, EdmValue::Double(bound))
        };
        let (inner, outer, bound) = match value > 0.0 {
            true => (Operator::Le, Operator::Gt, f64::MAX),
            false => (Operator::Ge, Operator::Lt, f64::MIN),
        };
        let present = || beyond(inner, bound) | beyond(outer, bound);
        match operator {
            // Nothing is equal to NaN or has an order with it.
            Operator::Ne if value.is_nan() => present(),
            _ if value.is_nan() => Self(Expr::Constant(false)),
            Operator::Eq => beyond(outer, bound),
            Operator::Ne => beyond(inner, bound),
            Operator::Lt if value > 0.0 => beyond(inner, bound),
            Operator::Gt if value < 0.0 => beyond(inner, bound),
            Operator::Ge if value > 0.0 => beyond(outer, bound),
            Operator::Le if value < 0.0 => beyond(outer, bound),
            Operator::Le | Operator::Ge => present(),
            Operator::Lt | Operator::Gt => Self(Expr::Constant(false)),
        }
    }

    pub(crate) fn expr(&self) -> &Expr {
        &self.0
    }
}

/// The filter in the service's language, as it goes over the wire.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl BitAnd for Filter {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        if self == Self::ALL {
            return other;
        }
        let mut terms = Vec::new();
        for side in [self.0, other.0] {
            match side {
                Expr::And(inner) => terms.extend(inner),
                Expr::Constant(true) => {}
                side => terms.push(side),
            }
        }
        if terms.len() == 1 { Self(terms.remove(0)) } else { Self(Expr::And(terms)) }
    }
}

impl BitOr for Filter {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        let mut terms = Vec::new();
        for side in [self.0, other.0] {
            match side {
                Expr::Or(inner) => terms.extend(inner),
                side => terms.push(side),
            }
        }
        Self(Expr::Or(terms))
    }
}

impl Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self(Expr::Not(Box::new(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use azure_core::Uuid;
    use proptest::prelude::*;

    use super::*;
    use crate::filter;
    use crate::table::value::DateTime;

    #[test]
    fn every_type_has_its_literal() {
        let since = DateTime::parse_iso("2020-02-29T12:00:00Z").unwrap();
        let id = Uuid::from_u128(1);
        let bytes = vec![0x0a, 0xff];
        for (filter, text) in [
            (filter!(A == "it's"), "A eq 'it''s'"),
            (filter!(A != 5), "A ne 5"),
            (filter!(A > 5_i64), "A gt 5L"),
            (filter!(A >= -0.5), "A ge -0.5"),
            (filter!(A == true), "A eq true"),
            (filter!(A < since), "A lt datetime'2020-02-29T12:00:00Z'"),
            (filter!(A == id), "A eq guid'00000000-0000-0000-0000-000000000001'"),
            (filter!(A == bytes), "A eq X'0aff'"),
            (filter!(Active), "Active eq true"),
            (filter!(!Active), "not (Active eq true)"),
            (filter!(A == 1 || B == 2 && C == 3), "A eq 1 or (B eq 2 and C eq 3)"),
            (filter!((A == 1 || B == 2) && C == 3), "(A eq 1 or B eq 2) and C eq 3"),
            (filter!(A == 1 + 2), "A eq 3"),
            (filter!("a" <= A), "A ge 'a'"),
            (filter!(RowKey.starts_with("Az")), "RowKey ge 'Az' and RowKey lt 'A{'"),
        ] {
            assert_eq!(filter.to_string(), text);
            assert_eq!(Filter::parse(text).unwrap(), filter, "{text}");
        }
    }

    #[test]
    fn all_disappears_in_a_conjunction() {
        assert_eq!(Filter::ALL & filter!(A == 1), filter!(A == 1));
        assert_eq!(filter!(A == 1) & Filter::ALL, filter!(A == 1));
        assert_eq!(Filter::ALL & Filter::ALL, Filter::ALL);
    }

    #[test]
    fn infinity_and_nan_are_told_with_numbers() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for (filter, text) in [
            (filter!(A == inf), "A gt 1.7976931348623157e308"),
            (filter!(A < inf), "A le 1.7976931348623157e308"),
            (filter!(A > inf), "false"),
            (filter!(A == nan), "false"),
            (filter!(A <= -inf), "A lt -1.7976931348623157e308"),
        ] {
            assert_eq!(filter.to_string(), text);
            assert!(Filter::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    #[should_panic(expected = "no property can have")]
    fn a_name_cannot_smuggle_a_filter() {
        let _ = Filter::compare("A eq 1 or B", Operator::Eq, 1);
    }

    proptest! {
        #[test]
        fn any_text_is_escaped(text in any::<String>()) {
            let filter = filter!(A == text.as_str());
            prop_assert_eq!(Filter::parse(&filter.to_string()).unwrap(), filter);
        }

        #[test]
        fn any_number_reads_back(number in proptest::num::f64::NORMAL) {
            let filter = filter!(A >= number);
            prop_assert_eq!(Filter::parse(&filter.to_string()).unwrap(), filter);
        }
    }
}
