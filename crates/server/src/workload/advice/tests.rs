//! The examples of the Index Table pattern, and what must not be proposed.

use std::time::Duration;

use tavola_wire::table::filter::parse;

use super::*;
use crate::storage::layout::AccountId;
use crate::workload::shape::{self, Terms};

const NOW: Ticks = Ticks(Ticks::MIN_STORED.0 + 100 * 24 * 60 * Ticks::PER_MINUTE);
const TABLE: TableId = TableId(7);

/// A query that ran a hundred times over ten thousand customers.
fn customers(filter: &str, select: &[&str], returned: u64) -> ShapeRecord {
    let expr = parse(filter).unwrap();
    let select: BTreeSet<_> = select.iter().map(|name| (*name).to_owned()).collect();
    ShapeRecord {
        account: AccountId(1),
        table: TABLE,
        table_name: "Customers".to_owned(),
        text: shape::text(&expr, &select),
        terms: Terms::of(&expr),
        select,
        kind: QueryKind::TableScan,
        executions: 100,
        examined: 100 * 10_000,
        returned: 100 * returned,
        bytes: 100 * returned * 200,
        time: Duration::from_secs(1),
        largest_share: returned as f64 / 10_000.0,
        last_seen: NOW,
    }
}

fn index(name: &str, keys: &[&str]) -> DeclaredIndex {
    DeclaredIndex {
        table: TABLE,
        table_name: "Customers".to_owned(),
        name: name.to_owned(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        parts_needed: 1,
        is_whole: true,
        is_kept: false,
        used: NOW,
        is_readable: true,
    }
}

fn advice(shapes: &[ShapeRecord], declared: &[DeclaredIndex]) -> Vec<Advice> {
    advise(shapes, declared, |table| if table == TABLE { 1_000 } else { 0 }, NOW)
}

/// The indexes that are proposed: keys and included properties.
fn created(shapes: &[ShapeRecord], declared: &[DeclaredIndex]) -> Vec<(String, String)> {
    let advice = advice(shapes, declared).into_iter();
    advice.filter(|it| it.action == Action::Create).map(|it| (it.keys, it.include)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(keys, include)| ((*keys).to_owned(), (*include).to_owned())).collect()
}

#[test]
fn customers_by_town_and_by_last_name() {
    let shapes =
        [customers("Town eq 'Redmond'", &[], 100), customers("LastName eq 'Smith'", &[], 20)];
    assert_eq!(created(&shapes, &[]), pairs(&[("LastName", ""), ("Town", "")]));
    let town = &advice(&shapes[..1], &[])[0];
    assert_eq!((town.name.as_str(), town.table_name.as_str()), ("ByTown", "Customers"));
    assert_eq!((town.executions, town.examined, town.returned), (100, 1_000_000, 10_000));
    assert!((town.gain_seconds - 990_000.0 * EXAMINE_SECONDS).abs() < 1e-9);
    assert!((town.price_seconds - 1_000.0 * WRITE_SECONDS).abs() < 1e-9);
    assert_eq!(town.price_bytes, 10_000 * ROW_BYTES);
    assert_eq!((town.shapes.as_str(), town.note.as_str()), ("Town eq <String>", ""));
}

/// Every leading part of a composite key can be used alone.
#[test]
fn what_is_a_prefix_of_another_is_merged_into_it() {
    let shapes = [
        customers("Town eq 'Redmond' and LastName eq 'Smith'", &[], 5),
        customers("Town eq 'Redmond'", &[], 100),
    ];
    let found = advice(&shapes, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].name.as_str(), found[0].keys.as_str()),
        ("ByTownLastName", "Town,LastName")
    );
    assert_eq!(found[0].executions, 200);
    assert_eq!(found[0].shapes.lines().count(), 2);
}

#[test]
fn one_bound_comes_behind_the_values() {
    let shapes =
        [customers("Town eq 'Redmond' and Age gt 30 and Age lt 40 and Name ne 'x'", &[], 5)];
    assert_eq!(created(&shapes, &[]), pairs(&[("Town,Age", "")]));
    let bounds = [customers("PartitionKey ge 'm' and Age gt 30", &[], 5)];
    assert_eq!(created(&bounds, &[]), pairs(&[("Age", "")]));
}

#[test]
fn what_is_selected_is_included_if_it_is_little() {
    let small = customers("Town eq 'x' and Active ne true", &["Name", "Town", "RowKey"], 5);
    assert_eq!(created(std::slice::from_ref(&small), &[]), pairs(&[("Town", "Active,Name")]));
    let large = ShapeRecord { bytes: small.returned * 100_000, ..small.clone() };
    assert_eq!(created(&[large], &[]), pairs(&[("Town", "")]));
    let whole = customers("Town eq 'x'", &[], 5);
    assert_eq!(created(&[small, whole], &[]), pairs(&[("Town", "")]));
    let names: Vec<_> = (0..21).map(|number| format!("P{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(created(&[customers("Town eq 'x'", &names, 5)], &[]), pairs(&[("Town", "")]));
}

/// The guide's intra-partition index; an index over all partitions serves it too.
#[test]
fn a_query_within_a_partition_gets_a_local_index() {
    let local = ShapeRecord {
        kind: QueryKind::PartitionScan,
        ..customers("PartitionKey eq 'Sales' and Email eq 'x'", &[], 1)
    };
    assert_eq!(created(std::slice::from_ref(&local), &[]), pairs(&[("PartitionKey,Email", "")]));
    let global = customers("Email eq 'x'", &[], 1);
    assert_eq!(created(&[local, global], &[]), pairs(&[("Email", "")]));
}

#[test]
fn queries_that_no_index_helps_are_told_why() {
    let reason = |shape: ShapeRecord| {
        let found = advice(&[shape], &[]);
        assert_eq!((found.len(), found[0].action, found[0].gain_seconds), (1, Action::None, 0.0));
        found[0].note.clone()
    };
    assert!(reason(customers("Gender eq 'f'", &[], 5_000)).contains("50 %"));
    assert!(reason(customers("Town eq 'x'", &[], 500)).contains("one row of 20"));
    assert!(reason(customers("Active ne true", &[], 5)).contains("nothing to look for"));
    let branches = reason(customers("Town eq 'x' or Name eq 'y'", &[], 5));
    assert!(branches.contains("one for each branch"), "{branches}");
}

#[test]
fn cheap_queries_and_those_long_past_are_no_reason() {
    let shape = customers("Town eq 'x'", &[], 5);
    let point = ShapeRecord { kind: QueryKind::Range, ..shape.clone() };
    let few = ShapeRecord { examined: 1_000, returned: 5, ..shape.clone() };
    let past = ShapeRecord { last_seen: Ticks(NOW.0 - UNUSED_AFTER.0), ..shape };
    assert_eq!(advice(&[point, few, past], &[]), []);
}

/// 90 % of the rows have one value, and the queries ask for the others.
#[test]
fn skew_is_warned_of() {
    let shape = ShapeRecord { largest_share: 0.9, ..customers("Town eq 'x'", &[], 5) };
    assert!(advice(&[shape], &[])[0].note.contains("Skewed: for some values 90 %"));
}

#[test]
fn other_doubts_are_told() {
    let note = |shape: ShapeRecord| advice(&[shape], &[])[0].note.clone();
    let shape = customers("Timestamp ge datetime'2026-01-01T00:00:00Z'", &[], 5);
    assert!(note(shape).contains("Every write"));
    let few = ShapeRecord { executions: 3, ..customers("Town eq 'x'", &[], 5) };
    assert!(note(few).contains("Only 3 queries"));
    let cheap = ShapeRecord { examined: 4_000, returned: 5, ..customers("Town eq 'x'", &[], 5) };
    assert!(note(cheap).contains("cost more than it gained"));
}

#[test]
fn declared_indexes_are_not_proposed_again() {
    let shapes = [
        customers("Town eq 'Redmond' and LastName eq 'Smith'", &[], 5),
        customers("Town eq 'Redmond'", &[], 100),
    ];
    let both = index("ByTownAndName", &["Town", "LastName"]);
    assert_eq!(created(&shapes, std::slice::from_ref(&both)), []);
    // Without an entity that lacks a last name, or of some entities alone.
    let sparse = DeclaredIndex { parts_needed: 2, ..both.clone() };
    assert_eq!(created(&shapes, &[sparse]), pairs(&[("Town", "")]));
    let partial = DeclaredIndex { is_whole: false, ..both };
    assert_eq!(created(&shapes, &[partial]), pairs(&[("Town,LastName", "")]));
    let turned = index("ByNameAndTown", &["LastName", "Town"]);
    assert_eq!(created(&shapes, &[turned]), pairs(&[("Town", "")]));
    let short = advice(&shapes, &[index("ByTown", &["Town"])]);
    let created: Vec<_> = short.iter().filter(|it| it.action == Action::Create).collect();
    assert_eq!(created[0].keys, "Town,LastName");
    assert!(created[0].note.contains("all that ByTown does"), "{}", created[0].note);
    let served = short.iter().find(|it| it.action == Action::None).unwrap();
    assert_eq!(served.note, "The index ByTown serves it.");
}

#[test]
fn names_that_are_taken_get_a_number() {
    let found = advice(&[customers("Town eq 'x'", &[], 5)], &[index("bytown", &["Other"])]);
    assert_eq!(found[0].name, "ByTown2");
    let odd = advice(&[customers("_ eq 'x'", &[], 5)], &[]);
    assert_eq!(odd[0].name, "ByValue");
}

#[test]
fn unused_indexes_are_proposed_for_dropping() {
    let old = Ticks(NOW.0 - UNUSED_AFTER.0);
    let unused = DeclaredIndex { used: old, ..index("Unused", &["A", "B"]) };
    let unique = DeclaredIndex { is_kept: true, ..unused.clone() };
    let building = DeclaredIndex { is_readable: false, ..unused.clone() };
    let found = advice(&[], &[unused, unique, building, index("Used", &["C"])]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].action, found[0].name.as_str()), (Action::Drop, "Unused"));
    assert_eq!(found[0].keys, "A,B");
    assert!(found[0].note.contains("1000 writes"), "{}", found[0].note);
}
