//! `$filter`: text to tree, tree to plan and program, asked about rows that a slow reading of the same tree
//! answers for. The first line is the filter; a lower and an upper partition key may follow.

use std::collections::BTreeSet;

use tavola_wire::table::continuation::{EntityContinuation, encode};
use tavola_wire::table::filter::{
    Comparison, Expr, Literal, Plan, Program, Scratch, Span, TableFilter, parse,
};
use tavola_wire::table::names::key_problem;
use tavola_wire::table::stored::EntityRef;
use tavola_wire::table::stored::key::{push_entity_key, read_entity_key};
use tavola_wire::{ErrorCode, Ticks};

use crate::input::lines;
use crate::model::Row;

/// Comparisons from which rows are made, so that long filters do not make the fuzzer slow.
const COMPARISONS_MAX: usize = 6;
/// Rows that a filter is asked about.
const ROWS_MAX: usize = 160;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [filter, lower, upper] = lines(text);
    let expr = match parse(filter) {
        Ok(expr) => expr,
        Err(error) => {
            let known = [ErrorCode::InvalidInput, ErrorCode::NotImplemented];
            assert!(known.contains(&error.code()), "{error}");
            assert!(TableFilter::parse(filter).is_err());
            assert!(Plan::read(filter).is_err());
            return;
        }
    };
    let printed = expr.to_string();
    assert_eq!(parse(&printed).expect("our own filter"), expr, "{printed}");
    let comparisons = comparisons(&expr);
    let rows = rows(&comparisons);
    program(&expr, &rows);
    plan(filter, &expr, &rows, [lower, upper]);
    tables(filter, &expr, &comparisons);
}

fn program(expr: &Expr, rows: &[Row]) {
    let program = Program::new(expr);
    let mut scratch = Scratch::default();
    for row in rows {
        let entity = row.entity();
        let entity = EntityRef::parse(&entity).unwrap();
        let found = program.matches(&row.key(), entity, &mut scratch).unwrap();
        assert_eq!(found, row.matches(expr), "{expr} {row:?}");
        if let Some(constant) = program.constant() {
            assert_eq!(constant, found);
        }
    }
}

/// The spans hold every match; with what is left to ask, nothing else.
fn plan(filter: &str, expr: &Expr, rows: &[Row], bounds: [&str; 2]) {
    let mut plan = Plan::read(filter).expect("a filter");
    assert_eq!(plan.spans, Plan::new(expr).spans, "{filter}");
    spans(&plan.spans);
    let mut scratch = Scratch::default();
    for row in rows {
        assert_eq!(is_found(&plan, row, &mut scratch), row.matches(expr), "{expr} {row:?}");
    }
    if bounds.iter().any(|key| key_problem(key).is_some()) {
        return;
    }
    let [lower, upper] = bounds.map(|partition_key| {
        let mut key = Vec::new();
        push_entity_key(&mut key, partition_key, "");
        key
    });
    plan.restrict(Some(&lower), Some(&upper));
    spans(&plan.spans);
    for row in rows {
        let key = row.key();
        let expected = row.matches(expr) && lower <= key && key < upper;
        assert_eq!(is_found(&plan, row, &mut scratch), expected, "{expr} {row:?}");
    }
}

fn is_found(plan: &Plan, row: &Row, scratch: &mut Scratch) -> bool {
    let (key, entity) = (row.key(), row.entity());
    let spans = plan.spans.iter().filter(|span| span.contains(&key)).count();
    assert!(spans <= 1, "a row is found once");
    let entity = EntityRef::parse(&entity).unwrap();
    let asked = plan.residual.as_ref();
    spans == 1 && asked.is_none_or(|residual| residual.matches(&key, entity, scratch).unwrap())
}

/// Spans are scanned in order, and a page that ends before a point has a token for it.
fn spans(spans: &[Span]) {
    for span in spans {
        assert!(!span.is_empty(), "{span:?}");
        let Some(point) = span.as_point() else { continue };
        let (partition_key, row_key) = read_entity_key(point).expect("a point is a key");
        let tokens = [encode(&partition_key), encode(&row_key)];
        let read = EntityContinuation::from_query(Some(&tokens[0]), Some(&tokens[1]));
        assert!(read.is_ok(), "no page can start at {partition_key:?} {row_key:?}");
    }
    for pair in spans.windows(2) {
        let end = pair[0].end.as_ref().expect("only the last reaches to the end");
        assert!(*end < pair[1].start, "{pair:?}");
    }
}

fn tables(text: &str, expr: &Expr, comparisons: &[&Comparison]) {
    let filter = TableFilter::parse(text).expect("parsed before");
    let mut names: BTreeSet<_> = ["abc", "Abc", "mno", "Zzz9"].map(str::to_owned).into();
    for comparison in comparisons {
        let Literal::String(text) = &comparison.literal else { continue };
        let name: String = text.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        names.insert(format!("{name}a"));
        names.insert(name.to_ascii_uppercase());
        names.insert(name);
    }
    for name in names {
        // To a table filter there is one property, and no case.
        let folded = name.to_ascii_lowercase();
        let properties = vec![("TableName".to_owned(), Literal::String(folded.clone()))];
        let matches = evaluate(expr, &properties);
        assert_eq!(filter.matches(&name), matches, "{expr} {name}");
        let is_within = filter.lower().is_none_or(|lower| lower <= folded.as_str())
            && filter.upper_exclusive().is_none_or(|upper| folded.as_str() < upper);
        assert!(is_within || !matches, "{expr} {name}");
    }
}

/// The model of a row without system properties, for texts in lower case.
fn evaluate(expr: &Expr, properties: &[(String, Literal)]) -> bool {
    expr.evaluate(&|comparison| {
        let is_system = ["PartitionKey", "RowKey", "Timestamp"].contains(&&*comparison.property);
        let row = Row {
            partition_key: String::new(),
            row_key: String::new(),
            timestamp: Ticks::MIN_STORED,
            properties: properties.to_vec(),
        };
        let mut comparison = comparison.clone();
        if let Literal::String(text) = &mut comparison.literal {
            *text = text.to_ascii_lowercase();
        }
        !is_system && row.matches(&Expr::Compare(comparison))
    })
}

pub(crate) fn comparisons(expr: &Expr) -> Vec<&Comparison> {
    let mut found = Vec::new();
    let mut left = vec![expr];
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Constant(_) => {}
            Expr::Compare(comparison) => found.push(comparison),
            Expr::Not(inner) => left.push(inner),
            Expr::And(terms) | Expr::Or(terms) => left.extend(terms.iter().rev()),
        }
    }
    found
}

/// Rows around the literals of a filter: each value that it names, what comes just before and after, and the same
/// in another type.
pub(crate) fn rows(comparisons: &[&Comparison]) -> Vec<Row> {
    let mut keys: BTreeSet<_> = ["", "a", "p", "\u{e000}", "\u{1f600}"].map(str::to_owned).into();
    let mut values = vec![Literal::Int32(1), Literal::Double(f64::NAN), Literal::Boolean(true)];
    let mut moments = vec![Ticks::MIN_STORED];
    for comparison in comparisons.iter().take(COMPARISONS_MAX) {
        values.extend(neighbours(&comparison.literal));
        match &comparison.literal {
            Literal::String(text) => keys.extend(key_neighbours(text)),
            Literal::DateTime(moment) => moments.push(*moment),
            _ => {}
        }
    }
    let names: BTreeSet<_> = comparisons.iter().map(|it| &it.property).take(ROWS_MAX).collect();
    let mut rows = Vec::new();
    for (index, partition_key) in keys.iter().enumerate() {
        for (offset, row_key) in keys.iter().enumerate() {
            let at = index * keys.len() + offset;
            let value = |offset: usize| values[(at + offset) % values.len()].clone();
            // Every fourth property is missing.
            let named = names.iter().enumerate().filter(|(offset, _)| (at + offset) % 4 != 3);
            let properties = named.map(|(offset, name)| (name.to_string(), value(offset)));
            rows.push(Row {
                partition_key: partition_key.clone(),
                row_key: row_key.clone(),
                timestamp: moments[at % moments.len()],
                properties: properties.filter(|(name, _)| !is_system(name)).collect(),
            });
        }
    }
    rows.truncate(ROWS_MAX);
    rows
}

fn is_system(name: &str) -> bool {
    ["PartitionKey", "RowKey", "Timestamp"].contains(&name)
}

fn key_neighbours(text: &str) -> Vec<String> {
    let mut shorter = text.to_owned();
    shorter.pop();
    let near = [text.to_owned(), format!("{text} "), format!("{text}\u{ffff}"), shorter];
    near.into_iter().filter(|key| key_problem(key).is_none()).collect()
}

fn neighbours(literal: &Literal) -> Vec<Literal> {
    let mut near = vec![literal.clone()];
    match literal {
        Literal::String(text) => near.push(Literal::String(format!("{text}\0"))),
        Literal::Boolean(value) => near.push(Literal::Boolean(!value)),
        Literal::Int32(value) => {
            near.push(Literal::Int32(value.saturating_sub(1)));
            near.push(Literal::Int64(i64::from(*value) + 1));
            near.push(Literal::Double(f64::from(*value)));
        }
        Literal::Int64(value) => {
            near.push(Literal::Int64(value.saturating_add(1)));
            near.push(Literal::Double(*value as f64));
        }
        Literal::Double(value) => {
            near.push(Literal::Double(value.next_up()));
            near.push(Literal::Int64(*value as i64));
        }
        Literal::DateTime(moment) => {
            near.push(Literal::DateTime(Ticks((moment.0 + 1).min(Ticks::MAX.0))));
        }
        Literal::Guid(guid) => near.push(Literal::Guid(guid.map(|byte| byte ^ 1))),
        Literal::Binary(bytes) => {
            near.push(Literal::Binary([&bytes[..], &[0]].concat()));
        }
    }
    near
}
