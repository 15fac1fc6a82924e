//! A filter as a tree: comparisons of one property with one literal, joined by `and`, `or` and `not`.
//!
//! Chains are flat: an `and` never holds an `and`, so that ten thousand terms are one node and the depth of a
//! tree is that of its meaning, not of its parentheses. Printing a tree gives a filter that parses to it.

use std::fmt;

use crate::table::stored::{EdmType, Value, push_guid};
use crate::ticks::Ticks;

/// A parsed filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Constant(bool),
    /// Also a bare property, which means `property eq true`.
    Compare(Comparison),
    Not(Box<Expr>),
    /// Two or more terms, none of them an `And`.
    And(Vec<Expr>),
    /// Two or more terms, none of them an `Or`.
    Or(Vec<Expr>),
}

impl Expr {
    /// What an empty filter means.
    pub const ALL: Expr = Expr::Constant(true);

    /// Calls `each` with every property that is compared, as often as it is.
    pub fn each_property<'e>(&'e self, each: &mut impl FnMut(&'e str)) {
        match self {
            Self::Constant(_) => {}
            Self::Compare(comparison) => each(&comparison.property),
            Self::Not(inner) => inner.each_property(each),
            Self::And(terms) | Self::Or(terms) => {
                terms.iter().for_each(|term| term.each_property(each));
            }
        }
    }

    /// The truth of the whole, given that of each comparison.
    pub fn evaluate(&self, holds: &impl Fn(&Comparison) -> bool) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Compare(comparison) => holds(comparison),
            Self::Not(inner) => !inner.evaluate(holds),
            Self::And(terms) => terms.iter().all(|term| term.evaluate(holds)),
            Self::Or(terms) => terms.iter().any(|term| term.evaluate(holds)),
        }
    }
}

/// `property operator literal`; a literal written on the left was turned round.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub property: String,
    pub operator: Operator,
    pub literal: Literal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

impl Operator {
    pub const ALL: [Operator; 6] = [Self::Eq, Self::Ne, Self::Gt, Self::Ge, Self::Lt, Self::Le];

    /// The operator as filters spell it.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Ge => "ge",
            Self::Lt => "lt",
            Self::Le => "le",
        }
    }

    pub(crate) fn from_keyword(word: &str) -> Option<Self> {
        Some(match word {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "gt" => Self::Gt,
            "ge" => Self::Ge,
            "lt" => Self::Lt,
            "le" => Self::Le,
            _ => return None,
        })
    }

    /// The operator as error texts spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Eq => "Equal",
            Self::Ne => "NotEqual",
            Self::Gt => "GreaterThan",
            Self::Ge => "GreaterThanOrEqual",
            Self::Lt => "LessThan",
            Self::Le => "LessThanOrEqual",
        }
    }

    /// The same relation with its sides exchanged: `'a' lt P` is `P gt 'a'`.
    pub(crate) fn flipped(self) -> Self {
        match self {
            Self::Eq | Self::Ne => self,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
        }
    }

    /// The relation that holds exactly when this one does not, between values that have an order.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
        }
    }

    /// Whether the operator holds for a stored value that stands so to the literal.
    ///
    /// `None` is a NaN: it differs from everything and is neither less nor greater, as IEEE 754 has it.
    pub(crate) fn holds(self, stored: Option<std::cmp::Ordering>) -> bool {
        match self {
            Self::Eq => stored.is_some_and(|order| order.is_eq()),
            Self::Ne => stored.is_none_or(|order| order.is_ne()),
            Self::Gt => stored.is_some_and(|order| order.is_gt()),
            Self::Ge => stored.is_some_and(|order| order.is_ge()),
            Self::Lt => stored.is_some_and(|order| order.is_lt()),
            Self::Le => stored.is_some_and(|order| order.is_le()),
        }
    }

    /// Whether the operator holds between values whose types do not compare: the stored one counts as less.
    pub(super) fn holds_on_mismatch(self) -> bool {
        self.holds(Some(std::cmp::Ordering::Less))
    }
}

/// A value as a filter writes it, and as an index gives one back.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    String(String),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    /// In a filter always finite: the grammar has no other.
    Double(f64),
    DateTime(Ticks),
    Guid([u8; 16]),
    Binary(Vec<u8>),
}

impl Literal {
    /// The literal as the value that a property would have.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            Self::String(text) => Value::String(text),
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Int32(value) => Value::Int32(*value),
            Self::Int64(value) => Value::Int64(*value),
            Self::Double(value) => Value::Double(*value),
            Self::DateTime(moment) => Value::DateTime(*moment),
            Self::Guid(guid) => Value::Guid(*guid),
            Self::Binary(bytes) => Value::Binary(bytes),
        }
    }

    pub fn edm_type(&self) -> EdmType {
        self.as_value().edm_type()
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Compare(comparison) => write!(f, "{comparison}"),
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::And(terms) => write_terms(f, terms, " and "),
            Self::Or(terms) => write_terms(f, terms, " or "),
        }
    }
}

fn write_terms(f: &mut fmt::Formatter<'_>, terms: &[Expr], separator: &str) -> fmt::Result {
    for (index, term) in terms.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        match term {
            Expr::And(_) | Expr::Or(_) => write!(f, "({term})")?,
            _ => write!(f, "{term}")?,
        }
    }
    Ok(())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.property, self.operator.keyword(), self.literal)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Int32(value) => write!(f, "{value}"),
            Self::Int64(value) => write!(f, "{value}L"),
            // The debug form always has a decimal point or an exponent, and reads back exactly.
            Self::Double(value) => write!(f, "{value:?}"),
            Self::DateTime(moment) => write!(f, "datetime'{}'", moment.to_iso()),
            Self::Guid(guid) => {
                let mut text = Vec::with_capacity(36);
                push_guid(&mut text, guid);
                write!(f, "guid'{}'", String::from_utf8_lossy(&text))
            }
            Self::Binary(bytes) => {
                f.write_str("X'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
        }
    }
}
