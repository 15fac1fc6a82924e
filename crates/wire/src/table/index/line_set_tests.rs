use proptest::prelude::*;

use super::*;
use crate::table::filter::{Expr, Program, Scratch, parse};
use crate::table::index::tests_support::{comparison, entity, value};
use crate::table::index::value_line::push_missing;
use crate::table::stored::EntityRef;

const MAX: usize = 8;

/// The place of property `A` of an entity.
fn place(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match EntityRef::parse(bytes).unwrap().properties().next() {
        Some(property) => drop(push_value(&mut out, property.unwrap().value().unwrap(), MAX)),
        None => push_missing(&mut out),
    }
    out
}

fn holds(expr: &Expr, bytes: &[u8]) -> bool {
    let entity = EntityRef::parse(bytes).unwrap();
    Program::new(expr).matches(b"p\0r", entity, &mut Scratch::default()).unwrap()
}

fn set(filter: &str) -> LineSet {
    match parse(filter).unwrap() {
        Expr::Compare(comparison) => LineSet::compared(&comparison, false, MAX),
        Expr::Not(inner) => match *inner {
            Expr::Compare(comparison) => LineSet::compared(&comparison, true, MAX),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn equality_is_one_point_for_each_type_that_compares() {
    for (filter, points) in [("A eq 30", 3), ("A eq 30L", 2), ("A eq 30.0", 1), ("A eq 'x'", 1)] {
        let set = set(filter);
        assert!(set.is_points(), "{filter}");
        assert_eq!(set.intervals().len(), points, "{filter}");
    }
    assert!(!set("A lt 30").is_points());
    assert!(!set("A ne 30").contains_missing() && set("not (A eq 30)").contains_missing());
    assert!(set("A eq 'open'").is_subset_of(&set("A ne 'done'")));
    assert!(!set("A ne 'done'").is_subset_of(&set("A eq 'open'")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Exact but for values that were cut: those may be in the set, and must be if the comparison holds.
    #[test]
    fn a_set_holds_what_the_comparison_does(
        bytes in entity(&["A"]), comparison in comparison(&["A"]), negated: bool,
    ) {
        let expr = Expr::Compare(comparison.clone());
        let expr = if negated { Expr::Not(Box::new(expr)) } else { expr };
        let (set, place) = (LineSet::compared(&comparison, negated, MAX), place(&bytes));
        let truth = holds(&expr, &bytes);
        let mut cut = Vec::new();
        let is_whole = push_value(&mut cut, comparison.literal.as_value(), MAX);
        prop_assert!(set.contains(&place) || !truth, "{} of {:x?}", expr, place);
        if is_whole || cut != place {
            prop_assert_eq!(set.contains(&place), truth, "{} of {:x?}", expr, place);
        }
        let certain = LineSet::certain(&comparison, MAX);
        prop_assert!(negated || !certain.contains(&place) || truth);
        // A key that begins with the place is where the place is.
        for behind in [&b"\0"[..], b"\xFF\xFF"] {
            prop_assert_eq!(set.contains(&[&place[..], behind].concat()), set.contains(&place));
        }
    }

    #[test]
    fn sets_are_an_algebra(
        a in comparison(&["A"]), b in comparison(&["A"]), negated: bool, value in value(),
    ) {
        let (x, y) = (LineSet::compared(&a, false, MAX), LineSet::compared(&b, negated, MAX));
        let mut place = Vec::new();
        push_value(&mut place, value.as_value(), MAX);
        for place in [place, vec![Tag::Missing as u8]] {
            let (in_x, in_y) = (x.contains(&place), y.contains(&place));
            prop_assert_eq!(x.intersection(&y).contains(&place), in_x && in_y);
            prop_assert_eq!(x.union(&y).contains(&place), in_x || in_y);
            prop_assert_eq!(x.complement().contains(&place), !in_x);
            prop_assert!(!x.is_subset_of(&y) || !in_x || in_y);
        }
        prop_assert!(x.intersection(&y).is_subset_of(&x) && x.is_subset_of(&x.union(&y)));
        for set in [x.intersection(&y), x.union(&y), y.complement()] {
            prop_assert!(set.intervals().windows(2).all(|pair| pair[0].end <= pair[1].start));
            prop_assert!(set.intervals().iter().all(|one| one.start < one.end));
        }
    }
}
