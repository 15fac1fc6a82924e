//! Indexes: places of values on the line, definitions, and which rows of an index a filter needs. As bytes the input is
//! read as a place; as lines it is the keys of a definition, what it includes, its filter, the filter of a query and, if
//! there is a fifth, a unique index.

use std::cmp::Ordering;

use tavola_wire::table::filter::{Comparison, Expr, Literal, parse};
use tavola_wire::table::index::value_line::{
    Decoded, after_prefix, decode, push_value, split_value,
};
use tavola_wire::table::index::{
    FILTER_COMPARISONS_MAX, INCLUDED_NAMES_MAX, Include, IndexDefinition, LineSet, PARTS_MAX,
    RANGES_MAX, RowMaker, RowRef, RowScratch, origin_keys, place_of,
};
use tavola_wire::table::stored::EntityRef;

use crate::filter::{comparisons, rows};
use crate::input::lines;
use crate::model::{Row, compares, order};

/// Bytes of a value that parts keep: as declared, and so few that values are cut.
const PART_BYTES: [u16; 2] = [512, 3];
/// Values that are compared with each other.
const VALUES_MAX: usize = 24;

pub fn run(data: &[u8]) {
    place(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [keys, include, index_filter, filter, unique] = lines(text);
    view_texts(keys);
    let definition = match IndexDefinition::parse(keys, include, index_filter, !unique.is_empty()) {
        Ok(definition) => definition,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    texts(&definition);
    let Ok(expr) = parse(filter) else { return };
    let mut compared = comparisons(&expr);
    compared.extend(definition.filter.iter().flat_map(comparisons));
    let mut rows = rows(&compared);
    for row in &mut rows {
        add_parts(&definition, row);
    }
    values(&compared, &rows);
    for part_bytes_max in PART_BYTES {
        let definition = IndexDefinition { part_bytes_max, ..definition.clone() };
        access(&definition, &expr, &rows);
    }
}

/// Whatever bytes there are: a value and what stands behind it, or none.
fn place(bytes: &[u8]) {
    let Some((own, rest)) = split_value(bytes) else { return };
    assert_eq!([own, rest].concat(), bytes);
    assert!(decode(bytes).is_none() || rest.is_empty());
    let after = after_prefix(own);
    assert!(*own < *after && *bytes < *after, "{own:?}");
    // Of doubles, the negative zero and other forms of NaN are never written.
    let is_written = |value: &Literal| match value {
        Literal::Double(number) => *number != 0.0 && !number.is_nan(),
        _ => true,
    };
    match decode(own) {
        Some(Decoded::Value(value)) if is_written(&value) => {
            assert_eq!(placed(&value, own.len()), own, "{value:?}");
        }
        Some(Decoded::Cut(_, content)) => assert!(content.len() < own.len()),
        Some(Decoded::Value(_) | Decoded::Missing) | None => {}
    }
}

fn placed(value: &Literal, bytes_max: usize) -> Vec<u8> {
    let mut place = Vec::new();
    push_value(&mut place, value.as_value(), bytes_max);
    place
}

/// Texts of keys that views have: what a stranger asks for.
fn view_texts(text: &str) {
    if let Some(place) = place_of(text, 512) {
        let (own, rest) = split_value(&place).expect("a place");
        assert!(rest.is_empty() && decode(own).is_some(), "{text}");
    }
    let _ = origin_keys(text);
}

/// A definition is within its limits, and its texts declare the same again.
fn texts(definition: &IndexDefinition) {
    assert!((1..=PARTS_MAX).contains(&definition.keys.len()));
    if let Include::Names(names) = &definition.include {
        assert!((1..=INCLUDED_NAMES_MAX).contains(&names.len()));
    }
    assert!(definition.filter_terms().count() <= FILTER_COMPARISONS_MAX);
    let texts = [definition.keys_text(), definition.include_text(), definition.filter_text()];
    let [keys, include, filter] = &texts;
    let again = IndexDefinition::parse(keys, include, filter, definition.unique);
    let again = again.expect("our own texts");
    assert_eq!([again.keys_text(), again.include_text(), again.filter_text()], texts);
    assert_eq!(again.filter, definition.filter);
}

/// Gives a row values for the parts of the index that the filters do not name; some rows stay without.
fn add_parts(definition: &IndexDefinition, row: &mut Row) {
    for (at, part) in definition.keys.iter().enumerate() {
        let is_named = row.properties.iter().any(|(name, _)| *name == part.property);
        let is_system = ["PartitionKey", "RowKey", "Timestamp"].contains(&part.property.as_str());
        if !is_named && !is_system && !(row.row_key.len() + at).is_multiple_of(3) {
            let value = Literal::String(row.partition_key.clone());
            row.properties.push((part.property.clone(), value));
        }
    }
}

/// Values are read back from their places, and the places sort as the values do; a comparison is a set of them.
fn values(compared: &[&Comparison], rows: &[Row]) {
    let stored = rows.iter().flat_map(|row| row.properties.iter().map(|(_, value)| value));
    let values: Vec<_> = stored.take(VALUES_MAX).collect();
    for value in &values {
        let place = placed(value, usize::MAX >> 1);
        let read = decode(&place).expect("our own place");
        let is_number = |number: f64| !number.is_nan();
        match (value, read) {
            (Literal::Double(number), Decoded::Value(Literal::Double(read))) => {
                assert!(*number == read || !is_number(*number) && !is_number(read));
            }
            (value, read) => assert_eq!(read, Decoded::Value((*value).clone())),
        }
        for other in values.iter().filter(|other| other.edm_type() == value.edm_type()) {
            // A NaN has no order, and a place behind all numbers.
            let by_place = place.cmp(&placed(other, usize::MAX >> 1));
            let expected = order(value, other).unwrap_or(by_place);
            assert_eq!(by_place, expected, "{value:?} {other:?}");
        }
        for comparison in compared.iter().take(VALUES_MAX) {
            holds(comparison, value, &place);
        }
    }
}

/// A set of places holds those of the values for which the comparison holds, and no others unless they are cut.
fn holds(comparison: &Comparison, value: &Literal, place: &[u8]) {
    let matches = compares(value, comparison.operator, &comparison.literal);
    let is_cut = |literal: &Literal, bytes_max: usize| {
        !push_value(&mut Vec::new(), literal.as_value(), bytes_max)
    };
    for bytes_max in PART_BYTES.map(usize::from) {
        let cut;
        let place = match is_cut(value, bytes_max) {
            true => {
                cut = placed(value, bytes_max);
                &cut[..]
            }
            false => place,
        };
        let is_exact = !is_cut(value, bytes_max) || !is_cut(&comparison.literal, bytes_max);
        for negated in [false, true] {
            let found = LineSet::compared(comparison, negated, bytes_max).contains(place);
            let expected = matches != negated;
            assert!(found || !expected, "{comparison} {value:?} {bytes_max}");
            assert!(!is_exact || found == expected, "{comparison} {value:?} {bytes_max}");
        }
        let certain = LineSet::certain(comparison, bytes_max).contains(place);
        assert!(!certain || matches, "{comparison} {value:?} {bytes_max}");
    }
}

/// Every row that matches has a row in the index, in one of the ranges, and is found through it.
fn access(definition: &IndexDefinition, expr: &Expr, rows: &[Row]) {
    let Ok(access) = definition.access(expr) else { return };
    assert!(access.ranges.len() <= RANGES_MAX);
    assert!(access.ranges.iter().all(|range| range.start < range.end));
    let maker = RowMaker::new([definition]);
    for row in rows {
        let (key, entity) = (row.key(), row.entity());
        let entity = EntityRef::parse(&entity).expect("our own entity");
        let mut is_found = false;
        let look = |_: usize, found: tavola_wire::table::index::IndexRow<'_>| {
            let index_key = found.parts_and_suffix;
            let read = RowRef::read(definition, index_key, found.value).expect("our own row");
            assert_eq!(*read.entity_key, *key, "{definition:?} {row:?}");
            let (_, view_row_key) = read.view_keys(definition).expect("our own row");
            let origin = (row.partition_key.clone(), row.row_key.clone());
            assert_eq!(origin_keys(&view_row_key), Some(origin));
            let holding = access.ranges.iter().filter(|range| {
                range.start.as_slice().cmp(index_key) != Ordering::Greater
                    && index_key < range.end.as_slice()
            });
            let holding = holding.count();
            assert!(holding <= 1, "ranges overlap: {definition:?} {expr}");
            is_found = holding == 1 && access.allows(&read);
        };
        maker.rows(&key, entity, &mut RowScratch::default(), look).expect("our own entity");
        assert!(is_found || !row.matches(expr), "{expr} with {definition:?} misses {row:?}");
    }
}
