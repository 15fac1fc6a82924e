use proptest::prelude::*;

use super::*;
use crate::table::filter::{Program, Scratch, parse};
use crate::table::index::tests_support::{comparison, entity, expression};
use crate::table::index::{RowMaker, RowScratch};
use crate::table::stored::EntityRef;

fn access(keys: &str, index_filter: &str, filter: &str) -> Result<Access, NotUsable> {
    let definition = IndexDefinition::parse(keys, "", index_filter, false).unwrap();
    definition.access(&parse(filter).unwrap())
}

/// The access in a line: how many ranges, whether they are ordered, how many leading points.
fn shown(keys: &str, index_filter: &str, filter: &str) -> String {
    match access(keys, index_filter, filter) {
        Ok(access) => {
            let order = if access.is_ordered() { "ordered" } else { "sorted" };
            format!("{} {order} {}", access.ranges.len(), access.leading_points)
        }
        Err(why) => format!("{why:?}"),
    }
}

#[test]
fn filters_become_ranges() {
    let cases = [
        ("Town", "Town eq 'X'", "1 ordered 1"),
        ("Town", "Town eq 'X' and Age gt 30", "1 ordered 1"),
        ("Town", "Town eq 'X' or Town eq 'Y'", "2 ordered 1"),
        ("Town", "Age eq 30", "Unrelated"),
        ("Town", "Town eq 'X' or Age eq 3", "Unrelated"),
        ("Town", "not (Town eq 'X')", "SkipMissing"),
        ("Town?", "not (Town eq 'X')", "2 sorted 0"),
        ("Town", "Town ne 'X'", "2 sorted 0"),
        ("Age", "Age eq 30", "3 ordered 1"),
        ("Age", "Age eq 30 and Age gt 31", "0 ordered 1"),
        ("Town,LastName", "Town eq 'X'", "1 sorted 1"),
        ("Town,LastName!", "Town eq 'X'", "SkipMissing"),
        ("Town,LastName", "Town eq 'X' and LastName eq 'Y'", "1 ordered 2"),
        ("Town,LastName", "LastName eq 'Y'", "Unrelated"),
        ("Name", "Name ge 'An' and Name lt 'Ao'", "1 sorted 0"),
        ("PartitionKey,Email", "PartitionKey eq 'p' and Email eq 'e'", "1 ordered 2"),
        ("PartitionKey,Email", "Email eq 'e'", "Unrelated"),
        ("Town,Age", "(Town eq 'X' or Town eq 'Y') and (Age eq 1L or Age eq 2L)", "8 ordered 2"),
        ("Town", "false", "0 ordered 1"),
        ("Town", "true", "Unrelated"),
    ];
    for (keys, filter, expected) in cases {
        assert_eq!(shown(keys, "", filter), expected, "{keys}: {filter}");
    }
    let many: Vec<_> = (0..=RANGES_MAX).map(|number| format!("Town eq '{number}'")).collect();
    assert_eq!(shown("Town", "", &many.join(" or ")), "TooManyRanges");
    // Too many for all parts, and not for the first ones.
    let some = |name: &str, count: usize| {
        let terms: Vec<_> = (0..count).map(|number| format!("{name} eq '{number}'")).collect();
        format!("({})", terms.join(" or "))
    };
    let both = format!("{} and {}", some("Town", 17), some("LastName", 17));
    assert_eq!(shown("Town,LastName", "", &both), "17 sorted 1");
    assert_eq!(shown("Town,LastName,Name", "", &format!("{both} and Name eq 'n'")), "17 sorted 1");
    let fewer = format!("{} and {}", some("Town", 16), some("LastName", 16));
    assert_eq!(shown("Town,LastName", "", &fewer), "256 ordered 2");
}

#[test]
fn accesses_know_how_wide_they_are() {
    use Width::*;
    let cases = [
        ("Town", "Town eq 'X'", Points, 1),
        ("Town", "Town eq 'X' or Town eq 'Y'", Points, 2),
        ("Age", "Age eq 30", Points, 1),
        ("Age", "Age ge 30 and Age lt 40", TwoSided, 1),
        ("Age", "Age ge 30L and Age lt 40L", TwoSided, 1),
        ("Name", "Name ge 'An' and Name lt 'Ao'", TwoSided, 1),
        ("Age", "Age ge 30", OneSided, 1),
        ("Name", "Name gt 'a'", OneSided, 1),
        ("Name", "Name lt 'a'", OneSided, 1),
        ("Name", "Name ne 'a'", AllButPlaces, 2),
        ("Age?", "not (Age eq 3)", AllButPlaces, 2),
        ("Town,Age", "Town eq 'X' and Age gt 3 and Age lt 5", TwoSided, 1),
        ("Town,Name", "Town eq 'X'", AllButPlaces, 1),
        ("Age", "Age eq 3 or Age gt 5 and Age lt 9", TwoSided, 2),
    ];
    for (keys, filter, width, intervals) in cases {
        let access = access(keys, "", filter).unwrap();
        assert_eq!((access.width, access.intervals), (width, intervals), "{keys}: {filter}");
    }
}

#[test]
fn a_partial_index_serves_filters_that_imply_it() {
    let cases = [
        ("Status eq 'open'", "Town eq 'X' and Status eq 'open'", "1 ordered 1"),
        ("Status ne 'done'", "Town eq 'X' and Status eq 'open'", "1 ordered 1"),
        ("Status eq 'open'", "Town eq 'X'", "Partial"),
        ("Status eq 'open'", "Town eq 'X' and (Status eq 'open' or Age eq 1)", "Partial"),
        ("Age ge 18", "Town eq 'X' and Age ge 21", "1 ordered 1"),
        ("Age ge 18", "Town eq 'X' and Age ge 17", "Partial"),
        ("Age ge 18", "Town eq 'X' and not (Age lt 18)", "Partial"),
    ];
    for (index_filter, filter, expected) in cases {
        assert_eq!(shown("Town", index_filter, filter), expected, "{index_filter}: {filter}");
    }
}

const NAMES: &[&str] = &["A", "B", "C"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The one thing that answers rest on: an entity that matches has a row, and it lies in the ranges.
    #[test]
    fn no_match_is_left_out(
        bytes in entity(NAMES),
        filter in expression(NAMES),
        term in comparison(NAMES),
        keys in prop::sample::select(vec!["A", "A?", "A,B", "A,B!", "B?,A,C", "PartitionKey,A"]),
        partial: bool,
        unique: bool,
    ) {
        let mut definition = IndexDefinition::parse(keys, "", "", unique).unwrap();
        definition.part_bytes_max = 8;
        definition.filter = partial.then_some(Expr::Compare(term));
        let entity = EntityRef::parse(&bytes).unwrap();
        let program = Program::new(&filter);
        let is_match = program.matches(b"p\0r", entity, &mut Scratch::default()).unwrap();
        let Ok(access) = definition.access(&filter) else { return Ok(()) };
        let mut is_found = false;
        let mut is_row = false;
        RowMaker::new([&definition]).rows(b"p\0r", entity, &mut RowScratch::default(), |_, row| {
            is_row = true;
            let key = row.parts_and_suffix;
            let holding: Vec<_> =
                access.ranges.iter().filter(|it| *it.start <= *key && *key < *it.end).collect();
            assert!(holding.len() <= 1, "ranges overlap");
            let read = RowRef::read(&definition, key, row.value).unwrap();
            is_found = !holding.is_empty() && access.allows(&read);
            if let Some(beginning) = holding.first().and_then(|range| range.ordered.as_ref()) {
                let suffix = &key[holding[0].start.len()..];
                if unique {
                    assert!(suffix.is_empty(), "several rows of a unique index in a range with an order");
                } else {
                    assert_eq!([&beginning[..], suffix].concat(), *read.entity_key);
                }
            }
        }).unwrap();
        prop_assert!(!is_match || is_found, "{} with {} (row: {})", filter, keys, is_row);
    }
}
