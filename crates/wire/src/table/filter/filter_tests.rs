//! Filters against a model: a slow evaluator written from the reference alone, over rows that were never encoded.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Comparison, Expr, Literal, Operator, Plan, Program, Scratch, parse};
use crate::table::stored::key::push_entity_key;
use crate::table::stored::{EntityRef, EntityWriter, set_timestamp};
use crate::ticks::Ticks;

#[derive(Clone, Debug)]
struct Row {
    partition_key: String,
    row_key: String,
    timestamp: i64,
    properties: Vec<(String, Literal)>,
}

impl Row {
    fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        push_entity_key(&mut key, &self.partition_key, &self.row_key);
        key
    }

    fn entity(&self) -> Vec<u8> {
        let mut writer = EntityWriter::new();
        for (name, value) in &self.properties {
            writer.push(name, value.as_value());
        }
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, Ticks(self.timestamp));
        bytes
    }

    fn value(&self, property: &str) -> Option<Literal> {
        match property {
            "PartitionKey" => Some(Literal::String(self.partition_key.clone())),
            "RowKey" => Some(Literal::String(self.row_key.clone())),
            "Timestamp" => Some(Literal::DateTime(Ticks(self.timestamp))),
            name => self.properties.iter().find(|it| it.0 == name).map(|it| it.1.clone()),
        }
    }
}

fn model(expr: &Expr, row: &Row) -> bool {
    match expr {
        Expr::Constant(value) => *value,
        Expr::Not(inner) => !model(inner, row),
        Expr::And(terms) => !terms.iter().any(|term| !model(term, row)),
        Expr::Or(terms) => terms.iter().any(|term| model(term, row)),
        Expr::Compare(Comparison { property, operator, literal }) => {
            let Some(stored) = row.value(property) else { return false };
            let order = model_order(&stored, literal);
            match operator {
                Operator::Eq => order == Ordering::Equal,
                Operator::Ne => order != Ordering::Equal,
                Operator::Gt => order == Ordering::Greater,
                Operator::Ge => order != Ordering::Less,
                Operator::Lt => order == Ordering::Less,
                Operator::Le => order != Ordering::Greater,
            }
        }
    }
}

fn model_order(stored: &Literal, literal: &Literal) -> Ordering {
    let number = |literal: &Literal| match literal {
        Literal::Int32(value) => Some((1, f64::from(*value))),
        Literal::Int64(value) => Some((2, *value as f64)),
        Literal::Double(value) => Some((3, *value)),
        _ => None,
    };
    if let (Some((stored_width, a)), Some((literal_width, b))) = (number(stored), number(literal)) {
        return if literal_width > stored_width { Ordering::Less } else { a.total_cmp(&b) };
    }
    match (stored, literal) {
        (Literal::String(a), Literal::String(b)) => {
            a.encode_utf16().collect::<Vec<_>>().cmp(&b.encode_utf16().collect())
        }
        (Literal::Boolean(a), Literal::Boolean(b)) => a.cmp(b),
        (Literal::DateTime(a), Literal::DateTime(b)) => a.0.cmp(&b.0),
        (Literal::Guid(a), Literal::Guid(b)) => a.cmp(b),
        (Literal::Binary(a), Literal::Binary(b)) => a.cmp(b),
        _ => Ordering::Less,
    }
}

/// Few and close values, so that random comparisons meet.
fn value() -> impl Strategy<Value = Literal> {
    prop_oneof![
        4 => key_text().prop_map(Literal::String),
        1 => any::<bool>().prop_map(Literal::Boolean),
        2 => (-2..3i32).prop_map(Literal::Int32),
        2 => (-2..3i64).prop_map(Literal::Int64),
        2 => (-4..5i32).prop_map(|half| Literal::Double(f64::from(half) / 2.0 + 0.0)),
        1 => (0..3i64).prop_map(|ticks| Literal::DateTime(Ticks(ticks))),
        1 => (0..3u8).prop_map(|byte| Literal::Guid([byte; 16])),
        1 => prop::collection::vec(0..3u8, 0..3).prop_map(Literal::Binary),
    ]
}

fn key_text() -> impl Strategy<Value = String> {
    "[ab !\u{E000}\u{1F600}]{0,2}"
}

/// What a filter may compare with: also texts that are no keys.
fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        6 => value(),
        1 => "[ab]{0,1}[\u{0}\u{1}\t\u{1f}'][ab]{0,1}".prop_map(Literal::String),
    ]
}

fn comparison() -> impl Strategy<Value = Expr> {
    let property = prop_oneof![
        4 => Just("PartitionKey"),
        4 => Just("RowKey"),
        1 => Just("Timestamp"),
        3 => Just("A"),
        2 => Just("B"),
    ];
    let operator = prop::sample::select(&Operator::ALL[..]);
    let literal = prop_oneof![1 => literal(), 2 => key_text().prop_map(Literal::String)];
    (property, operator, literal).prop_map(|(property, operator, literal)| {
        Expr::Compare(Comparison { property: property.to_owned(), operator, literal })
    })
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![12 => comparison(), 1 => any::<bool>().prop_map(Expr::Constant)];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let terms = || prop::collection::vec(inner.clone(), 2..6);
        prop_oneof![
            inner.clone().prop_map(|it| Expr::Not(Box::new(it))),
            terms().prop_map(|terms| Expr::And(flat(terms, true))),
            terms().prop_map(|terms| Expr::Or(flat(terms, false))),
        ]
    })
}

fn flat(terms: Vec<Expr>, and: bool) -> Vec<Expr> {
    let parts = terms.into_iter().map(|term| match term {
        Expr::And(terms) if and => terms,
        Expr::Or(terms) if !and => terms,
        other => vec![other],
    });
    parts.flatten().collect()
}

fn row() -> impl Strategy<Value = Row> {
    let properties = (prop::option::of(value()), prop::option::of(value()));
    (key_text(), key_text(), 0..3i64, properties).prop_map(
        |(partition_key, row_key, timestamp, (a, b))| {
            let named = [("C", Some(Literal::Int32(0))), ("B", b), ("A", a)];
            let properties =
                named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Row { partition_key, row_key, timestamp, properties: properties.collect() }
        },
    )
}

fn check(expr: &Expr, plan: &Plan, rows: &[Row]) -> Result<(), TestCaseError> {
    for pair in plan.spans.windows(2) {
        prop_assert!(pair[0].end.as_ref().is_some_and(|end| *end < pair[1].start));
    }
    prop_assert!(plan.spans.iter().all(|span| !span.is_empty()));
    let program = Program::new(expr);
    let mut scratch = Scratch::default();
    for row in rows {
        let (key, entity) = (row.key(), row.entity());
        let entity = EntityRef::parse(&entity).unwrap();
        let expected = model(expr, row);
        prop_assert_eq!(program.matches(&key, entity, &mut scratch), Ok(expected));
        let found = plan.spans.iter().any(|span| span.contains(&key));
        let planned = found
            && plan
                .residual
                .as_ref()
                .is_none_or(|program| program.matches(&key, entity, &mut scratch).unwrap());
        prop_assert_eq!(planned, expected, "{} on {:?}: {:?}", expr, row, plan);
    }
    Ok(())
}

proptest! {
    #[test]
    fn plans_choose_what_the_model_chooses(
        expr in expr(), rows in prop::collection::vec(row(), 1..40),
    ) {
        check(&expr, &Plan::new(&expr), &rows)?;
    }

    #[test]
    fn long_chains_choose_what_the_model_chooses(
        terms in prop::collection::vec(comparison(), 2..60),
        and in any::<bool>(),
        rows in prop::collection::vec(row(), 1..40),
    ) {
        let expr = if and { Expr::And(terms) } else { Expr::Or(terms) };
        check(&expr, &Plan::new(&expr), &rows)?;
    }

    #[test]
    fn plans_on_a_small_budget_choose_the_same(
        expr in expr(), pairs in 0..20usize, rows in prop::collection::vec(row(), 1..40),
    ) {
        check(&expr, &Plan::with_pairs(pairs, &expr), &rows)?;
    }

    #[test]
    fn a_printed_filter_parses_to_itself(expr in expr()) {
        prop_assert_eq!(parse(&expr.to_string()).unwrap(), expr);
    }

    #[test]
    fn printed_numbers_parse_to_themselves(double in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, long: i64, int: i32) {
        for literal in [Literal::Double(double), Literal::Int64(long), Literal::Int32(int)] {
            let expr = Expr::Compare(Comparison { property: "P".to_owned(), operator: Operator::Le, literal });
            prop_assert_eq!(parse(&expr.to_string()).unwrap(), expr);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,60}") {
        let _ = parse(&text).map(|expr| Plan::new(&expr));
    }

    #[test]
    fn arbitrary_tokens_never_panic(
        tokens in prop::collection::vec(prop::sample::select(&[
            "(", ")", "not", "and", "or", "eq", "lt", "A", "PartitionKey", "RowKey", "'a'", "''", "'", "5", "-1.5",
            "1e", "5L", "X'0", "guid''", "datetime'2020-01-01'", "true", "null", "add", "\u{e9}", "\0", ",", "f(",
        ][..]), 0..30),
        blank in prop::sample::select(&["", " ", "\t"][..]),
    ) {
        if let Ok(expr) = parse(&tokens.join(blank)) {
            Plan::new(&expr);
            prop_assert_eq!(parse(&expr.to_string()).unwrap(), expr);
        }
    }
}
