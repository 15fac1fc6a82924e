//! Random values, entities and filters for the tests of this folder.

use proptest::prelude::*;

use crate::table::filter::{Comparison, Expr, Literal, Operator};
use crate::table::stored::{EntityWriter, set_timestamp};
use crate::ticks::Ticks;

/// Few different values, so that they meet; texts around the cut of eight bytes.
pub(super) fn value() -> impl Strategy<Value = Literal> {
    prop_oneof![
        "[ab\0\u{ff21}]{0,3}".prop_map(Literal::String),
        "aaaaaa[ab\0\u{10000}]{0,4}".prop_map(Literal::String),
        any::<bool>().prop_map(Literal::Boolean),
        prop_oneof![-2..3i32, any::<i32>()].prop_map(Literal::Int32),
        prop_oneof![-2..3i64, any::<i64>(), Just(9_007_199_254_740_993)].prop_map(Literal::Int64),
        prop_oneof![
            (-2..3i32).prop_map(f64::from),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(9_007_199_254_740_992.0),
            any::<f64>(),
        ]
        .prop_map(Literal::Double),
        (1..4i64).prop_map(|number| Literal::DateTime(Ticks(600_000_000_000_000_000 + number))),
        (0..3u8).prop_map(|byte| Literal::Guid([byte; 16])),
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..11)
            .prop_map(Literal::Binary),
    ]
}

pub(super) fn comparison(names: &'static [&'static str]) -> impl Strategy<Value = Comparison> {
    let parts = (prop::sample::select(names), prop::sample::select(&Operator::ALL[..]), value());
    parts.prop_map(|(name, operator, value)| Comparison {
        property: name.to_owned(),
        operator,
        literal: finite(value),
    })
}

/// As the grammar can write it: it has no infinities, and no NaN.
fn finite(value: Literal) -> Literal {
    match value {
        Literal::Double(value) if !value.is_finite() => Literal::Double(0.5),
        value => value,
    }
}

/// Expressions as the parser makes them: no `and` within an `and`.
pub(super) fn expression(names: &'static [&'static str]) -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        12 => comparison(names).prop_map(Expr::Compare),
        1 => any::<bool>().prop_map(Expr::Constant),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::And),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::Or),
            inner.prop_map(|inner| Expr::Not(Box::new(inner))),
        ]
    })
}

/// An entity that has each of the properties or lacks it.
pub(super) fn entity(names: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let values = prop::collection::vec(prop::option::weighted(0.8, value()), names.len());
    values.prop_map(|values| {
        let mut writer = EntityWriter::new();
        for (name, value) in names.iter().zip(&values) {
            if let Some(value) = value {
                writer.push(name, value.as_value());
            }
        }
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, Ticks(600_000_000_000_000_002));
        bytes
    })
}
