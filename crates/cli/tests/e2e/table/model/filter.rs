//! Random filters, written as text and evaluated by the rules of wire-reference 6.3.

use std::cmp::Ordering;

use super::store::{NAMES, Property, Row, TEXTS, small};
use super::{PARTITIONS, ROWS};
use crate::support::Random;

pub(super) enum Filter {
    Compare(String, Operator, Literal),
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
    Not(Box<Filter>),
}

#[derive(Clone, Copy)]
pub(super) enum Operator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

const OPERATORS: [(Operator, &str); 6] = [
    (Operator::Eq, "eq"),
    (Operator::Ne, "ne"),
    (Operator::Lt, "lt"),
    (Operator::Le, "le"),
    (Operator::Gt, "gt"),
    (Operator::Ge, "ge"),
];

pub(super) enum Literal {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Text(String),
    Boolean(bool),
}

impl Filter {
    pub(super) fn random(random: &mut Random, depth: usize) -> Self {
        let inner = |random: &mut Random| Box::new(Self::random(random, depth - 1));
        match random.below(if depth == 0 { 4 } else { 8 }) {
            0 => Self::key(random, "PartitionKey", &PARTITIONS),
            1 => Self::key(random, "RowKey", &ROWS),
            2 | 3 => {
                let name = (*random.pick(&NAMES)).to_owned();
                let (operator, _) = *random.pick(&OPERATORS);
                Self::Compare(name, operator, Literal::random(random))
            }
            4 | 5 => Self::And(inner(random), inner(random)),
            6 => Self::Or(inner(random), inner(random)),
            _ => Self::Not(inner(random)),
        }
    }

    /// Keys are asked for equality more often than not, as clients do.
    fn key(random: &mut Random, name: &str, keys: &[&str]) -> Self {
        let operator = if random.one_in(2) { Operator::Eq } else { random.pick(&OPERATORS).0 };
        Self::Compare(name.to_owned(), operator, Literal::Text((*random.pick(keys)).to_owned()))
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Compare(name, operator, literal) => {
                format!("{name} {} {}", operator.text(), literal.text())
            }
            Self::And(left, right) => format!("({}) and ({})", left.text(), right.text()),
            Self::Or(left, right) => format!("({}) or ({})", left.text(), right.text()),
            Self::Not(inner) => format!("not ({})", inner.text()),
        }
    }

    pub(super) fn matches(&self, partition: &str, row: &str, stored: &Row) -> bool {
        let matches = |filter: &Self| filter.matches(partition, row, stored);
        match self {
            Self::And(left, right) => matches(left) && matches(right),
            Self::Or(left, right) => matches(left) || matches(right),
            Self::Not(inner) => !matches(inner),
            Self::Compare(name, operator, literal) => {
                let key;
                let property = match name.as_str() {
                    "PartitionKey" => {
                        key = Property::Text(partition.to_owned());
                        Some(&key)
                    }
                    "RowKey" => {
                        key = Property::Text(row.to_owned());
                        Some(&key)
                    }
                    name => stored.properties.0.get(name),
                };
                property.is_some_and(|property| operator.holds(compare(property, literal)))
            }
        }
    }
}

impl Operator {
    fn text(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
        }
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::Le => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Ge => ordering.is_ge(),
        }
    }
}

/// A literal widens to the property's type; any other mismatch makes the property the lesser.
fn compare(property: &Property, literal: &Literal) -> Ordering {
    let real = |left: f64, right: f64| left.partial_cmp(&right).expect("no NaN here");
    match (property, literal) {
        (Property::Int32(left), Literal::Int32(right)) => left.cmp(right),
        (Property::Int64(left), Literal::Int32(right)) => left.cmp(&i64::from(*right)),
        (Property::Int64(left), Literal::Int64(right)) => left.cmp(right),
        (Property::Double(left), Literal::Int32(right)) => real(*left, f64::from(*right)),
        (Property::Double(left), Literal::Int64(right)) => real(*left, *right as f64),
        (Property::Double(left), Literal::Double(right)) => real(*left, *right),
        (Property::Text(left), Literal::Text(right)) => {
            left.encode_utf16().cmp(right.encode_utf16())
        }
        (Property::Boolean(left), Literal::Boolean(right)) => left.cmp(right),
        _ => Ordering::Less,
    }
}

impl Literal {
    fn random(random: &mut Random) -> Self {
        match random.below(5) {
            0 => Self::Int32(small(random)),
            1 => Self::Int64(i64::from(small(random))),
            2 => Self::Double(f64::from(small(random)) / 2.0),
            3 => Self::Text((*random.pick(&TEXTS)).to_owned()),
            _ => Self::Boolean(random.one_in(2)),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Int32(number) => number.to_string(),
            Self::Int64(number) => format!("{number}L"),
            Self::Double(number) => format!("{number:?}"),
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Self::Boolean(value) => value.to_string(),
        }
    }
}
