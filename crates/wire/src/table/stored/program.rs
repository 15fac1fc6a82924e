//! A filter compiled to run on encoded entities.
//!
//! A row is read in one forward pass that notes where the wanted properties stand, then the tree is evaluated
//! with short circuit. Nothing is decoded but the values that a comparison looks at, and nothing is allocated
//! per row: the notes live in a [`Scratch`] that the caller keeps from row to row.
//!
//! The typing is the service's. A property that the entity lacks fails every comparison, `ne` too. A literal
//! widens to the type of the property (Int32 to Int64 to Double), a property never widens, and between types
//! that do not compare the stored value counts as less than the literal. NaN follows IEEE 754: it differs from
//! every number and is neither less nor greater.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::entity::{EntityRef, MalformedEntity};
use super::key::{SEPARATOR, compare_utf8};
use super::value::EdmType;
use crate::name_list::NameList;
use crate::table::filter::{Literal, Operator};
use crate::ticks::Ticks;

/// A filter ready to be asked about rows.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) root: Node,
    /// The properties that the filter names, apart from the keys and the timestamp.
    pub(crate) names: NameList<Box<[u8]>>,
    pub(crate) reads_keys: bool,
}

/// Where the wanted properties of the current row stand. Make one per scan.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    cells: Vec<Option<Cell>>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    edm_type: EdmType,
    start: usize,
    end: usize,
}

impl Program {
    /// The answer, if it is the same for every row.
    pub fn constant(&self) -> Option<bool> {
        match self.root {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the row matches. `key` is the entity key as [`super::key::push_entity_key`] writes it.
    ///
    /// # Errors
    ///
    /// The entity is not one that a writer wrote. Only the part that the filter reads is checked.
    pub fn matches(
        &self,
        key: &[u8],
        entity: EntityRef<'_>,
        scratch: &mut Scratch,
    ) -> Result<bool, MalformedEntity> {
        if !self.names.is_empty() {
            self.collect(entity, scratch)?;
        }
        let separator = if self.reads_keys { memchr::memchr(SEPARATOR, key) } else { None };
        let (partition_key, row_key) = match separator {
            Some(at) => (&key[..at], &key[at + 1..]),
            None => (key, &[][..]),
        };
        Ok(self.root.holds(&Row { partition_key, row_key, entity, cells: &scratch.cells }))
    }

    fn collect(&self, entity: EntityRef<'_>, scratch: &mut Scratch) -> Result<(), MalformedEntity> {
        scratch.cells.clear();
        scratch.cells.resize(self.names.len(), None);
        let base = entity.as_bytes().as_ptr().addr();
        let mut missing = self.names.len();
        for property in entity.properties() {
            let property = property?;
            let Some(slot) = self.names.position(property.name) else { continue };
            let start = property.payload.as_ptr().addr() - base;
            let end = start + property.payload.len();
            scratch.cells[slot] = Some(Cell { edm_type: property.edm_type, start, end });
            missing -= 1;
            // Names are unique, so there is nothing left to find.
            if missing == 0 {
                break;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(bool),
    Property { slot: usize, operator: Operator, literal: Literal },
    Key { part: KeyPart, operator: Operator, ordered: Box<[u8]> },
    Timestamp { operator: Operator, moment: Ticks },
    In(Membership),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

/// `P eq 'a' or P eq 'b' or ...`, or `P ne 'a' and P ne 'b' and ...` when `negated`.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub source: Source,
    /// Of every literal. Only types whose literals equal nothing but the same bytes of the same type.
    pub edm_type: EdmType,
    pub payloads: HashSet<Box<[u8]>>,
    pub negated: bool,
}

/// Where a property of a row is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Key(KeyPart),
    Timestamp,
    Slot(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyPart {
    Partition,
    Row,
}

struct Row<'a> {
    partition_key: &'a [u8],
    row_key: &'a [u8],
    entity: EntityRef<'a>,
    cells: &'a [Option<Cell>],
}

impl<'a> Row<'a> {
    fn key(&self, part: KeyPart) -> &'a [u8] {
        match part {
            KeyPart::Partition => self.partition_key,
            KeyPart::Row => self.row_key,
        }
    }

    fn cell(&self, slot: usize) -> Option<(EdmType, &'a [u8])> {
        let cell = self.cells[slot]?;
        Some((cell.edm_type, &self.entity.as_bytes()[cell.start..cell.end]))
    }
}

impl Node {
    fn holds(&self, row: &Row<'_>) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Property { slot, operator, literal } => row
                .cell(*slot)
                .is_some_and(|(edm_type, payload)| test(edm_type, payload, *operator, literal)),
            Self::Key { part, operator, ordered } => {
                operator.holds(Some(row.key(*part).cmp(ordered)))
            }
            Self::Timestamp { operator, moment } => {
                operator.holds(Some(row.entity.timestamp().cmp(moment)))
            }
            Self::In(membership) => membership.holds(row),
            Self::Not(inner) => !inner.holds(row),
            Self::And(terms) => terms.iter().all(|term| term.holds(row)),
            Self::Or(terms) => terms.iter().any(|term| term.holds(row)),
        }
    }
}

impl Membership {
    fn holds(&self, row: &Row<'_>) -> bool {
        let stored = match self.source {
            Source::Key(part) => Some((EdmType::String, row.key(part))),
            Source::Slot(slot) => row.cell(slot),
            Source::Timestamp => unreachable!("a timestamp is never looked up in a set"),
        };
        stored.is_some_and(|(edm_type, payload)| {
            let contained = edm_type == self.edm_type && self.payloads.contains(payload);
            contained != self.negated
        })
    }
}

/// Compares the payload of a stored property with a literal.
fn test(edm_type: EdmType, payload: &[u8], operator: Operator, literal: &Literal) -> bool {
    match (literal, edm_type, operator) {
        (Literal::String(text), EdmType::String, Operator::Eq) => payload == text.as_bytes(),
        (Literal::String(text), EdmType::String, Operator::Ne) => payload != text.as_bytes(),
        _ => operator.holds(order(edm_type, payload, literal)),
    }
}

/// How a stored property stands to a literal; `None` for a NaN.
fn order(edm_type: EdmType, payload: &[u8], literal: &Literal) -> Option<Ordering> {
    Some(match (literal, edm_type) {
        (Literal::String(text), EdmType::String) => compare_utf8(payload, text.as_bytes()),
        (Literal::Boolean(value), EdmType::Boolean) => (payload != [0]).cmp(value),
        (Literal::Int32(value), EdmType::Int32) => {
            i32::from_le_bytes(payload.try_into().expect("an Int32 has four bytes")).cmp(value)
        }
        (Literal::Int32(value), EdmType::Int64) => long(payload).cmp(&i64::from(*value)),
        (Literal::Int64(value), EdmType::Int64) => long(payload).cmp(value),
        (Literal::Int32(value), EdmType::Double) => {
            return double(payload).partial_cmp(&f64::from(*value));
        }
        (Literal::Int64(value), EdmType::Double) => {
            return double(payload).partial_cmp(&(*value as f64));
        }
        (Literal::Double(value), EdmType::Double) => return double(payload).partial_cmp(value),
        (Literal::DateTime(moment), EdmType::DateTime) => long(payload).cmp(&moment.0),
        (Literal::Guid(guid), EdmType::Guid) => payload.cmp(guid),
        (Literal::Binary(bytes), EdmType::Binary) => payload.cmp(bytes),
        _ => Ordering::Less,
    })
}

fn long(payload: &[u8]) -> i64 {
    i64::from_le_bytes(payload.try_into().expect("the type has eight bytes"))
}

fn double(payload: &[u8]) -> f64 {
    f64::from_bits(long(payload).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::filter::parse;
    use crate::table::stored::key::push_entity_key;
    use crate::table::stored::{EntityWriter, Value, set_timestamp};

    fn row(properties: &[(&str, Value<'_>)]) -> Vec<u8> {
        let mut writer = EntityWriter::new();
        for (name, value) in properties {
            writer.push(name, *value);
        }
        let mut bytes = writer.finish();
        set_timestamp(&mut bytes, Ticks::parse_iso("2021-01-06T01:01:30.9296707Z").unwrap());
        bytes
    }

    fn matches(filter: &str, bytes: &[u8]) -> bool {
        let mut key = Vec::new();
        push_entity_key(&mut key, "part", "row");
        let program = Program::new(&parse(filter).unwrap());
        let entity = EntityRef::parse(bytes).unwrap();
        program.matches(&key, entity, &mut Scratch::default()).unwrap()
    }

    const GUID: [u8; 16] = [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    /// For each stored type a value, and per kind of literal the texts that are below, equal and above it, or
    /// none if the types do not compare.
    #[test]
    fn every_type_against_every_literal_and_operator() {
        let moment = Ticks::parse_iso("2020-06-01").unwrap();
        let ints = Some(["2", "3", "4"]);
        let longs = Some(["2L", "3L", "4L"]);
        let doubles = Some(["2.5", "3.0", "3.5D"]);
        let strings = Some(["'a'", "'b'", "'ba'"]);
        let dates = Some([
            "datetime'2020-05-31T23:59:59.9999999Z'",
            "datetime'2020-06-01T02:00:00+02:00'",
            "datetime'2020-06-01T00:00:00.0000001'",
        ]);
        let guids = Some([
            "guid'07ffffff-ffff-ffff-ffff-ffffffffffff'",
            "guid'08000000-0000-0000-0000-000000000000'",
            "guid'08000000-0000-0000-0000-000000000001'",
        ]);
        let binaries = Some(["X'07ff'", "X'08'", "X'0800'"]);
        // Columns: string, boolean, int32, int64, double, datetime, guid, binary.
        let table = [
            (Value::String("b"), [strings, None, None, None, None, None, None, None]),
            (Value::Int32(3), [None, None, ints, None, None, None, None, None]),
            (Value::Int64(3), [None, None, ints, longs, None, None, None, None]),
            (Value::Double(3.0), [None, None, ints, longs, doubles, None, None, None]),
            (Value::DateTime(moment), [None, None, None, None, None, dates, None, None]),
            (Value::Guid(GUID), [None, None, None, None, None, None, guids, None]),
            (Value::Binary(&[8]), [None, None, None, None, None, None, None, binaries]),
            (
                Value::Boolean(false),
                [None, Some(["", "false", "true"]), None, None, None, None, None, None],
            ),
            (
                Value::Boolean(true),
                [None, Some(["false", "true", ""]), None, None, None, None, None, None],
            ),
        ];
        let any_literals =
            [strings, Some(["false", "true", ""]), ints, longs, doubles, dates, guids, binaries];
        // The truth of eq, ne, gt, ge, lt, le for a stored value that is above, equal to, below the literal.
        let truths = [
            [false, true, true, true, false, false],
            [true, false, false, true, false, true],
            [false, true, false, false, true, true],
        ];
        for (value, columns) in table {
            let bytes = row(&[("P", value)]);
            for (column, literals) in columns.iter().enumerate() {
                let mismatch = literals.is_none();
                for (index, literal) in
                    literals.or(any_literals[column]).unwrap().iter().enumerate()
                {
                    if literal.is_empty() {
                        continue;
                    }
                    let truth = truths[if mismatch { 2 } else { index }];
                    for (operator, expected) in Operator::ALL.iter().zip(truth) {
                        let filter = format!("P {} {literal}", operator.keyword());
                        assert_eq!(matches(&filter, &bytes), expected, "{value:?}: {filter}");
                        let flipped = format!("{literal} {} P", operator.flipped().keyword());
                        assert_eq!(matches(&flipped, &bytes), expected, "{value:?}: {flipped}");
                        let negated = format!("not (P {} {literal})", operator.keyword());
                        assert_eq!(matches(&negated, &bytes), !expected, "{value:?}: {negated}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_missing_property_fails_every_comparison() {
        let bytes = row(&[("p", Value::Int32(1))]);
        for operator in Operator::ALL {
            for literal in ["''", "true", "1", "1L", "1.0", "datetime'2020-01-01'", "X''"] {
                let filter = format!("P {} {literal}", operator.keyword());
                assert!(!matches(&filter, &bytes), "{filter}");
                assert!(matches(&format!("not ({filter})"), &bytes), "{filter}");
            }
        }
        assert!(!matches("P", &bytes));
        assert!(matches("not P", &bytes));
        let set = "P ne 'a' and P ne 'b' and P ne 'c' and P ne 'd'";
        assert!(!matches(set, &bytes));
        assert!(matches(&format!("not ({set})"), &bytes));
    }

    #[test]
    fn a_bare_property_is_true_only_when_it_is() {
        assert!(matches("P", &row(&[("P", Value::Boolean(true))])));
        for value in [Value::Boolean(false), Value::Int32(1), Value::String("true")] {
            assert!(!matches("P", &row(&[("P", value)])), "{value:?}");
        }
    }

    #[test]
    fn what_was_seen_on_the_live_service() {
        // Double and DateTime against the empty string; a Guid against its text.
        for value in [Value::Double(1.0), Value::DateTime(Ticks::MAX)] {
            let bytes = row(&[("foo", value)]);
            assert!(matches("foo lt ''", &bytes));
            assert!(!matches("foo gt ''", &bytes));
            assert!(matches("foo ne ''", &bytes));
        }
        let bytes = row(&[("G", Value::Guid(GUID))]);
        assert!(!matches("G eq '08000000-0000-0000-0000-000000000000'", &bytes));
        // Prefix search.
        assert!(matches("Name ge 'A' and Name lt 'B'", &row(&[("Name", Value::String("Anna"))])));
    }

    #[test]
    fn text_compares_by_utf16_units() {
        let bytes = row(&[("P", Value::String("\u{1F600}"))]);
        assert!(matches("P lt '\u{E000}'", &bytes));
        assert!(matches("P gt '\u{D7FF}'", &bytes));
        let bytes = row(&[("P", Value::String("b"))]);
        assert!(matches("P gt 'B'", &bytes));
        assert!(!matches("P eq 'B'", &bytes));
    }

    #[test]
    fn nan_differs_from_every_number_and_has_no_order() {
        let bytes = row(&[("P", Value::Double(f64::NAN))]);
        for (filter, expected) in [
            ("P eq 1.0", false),
            ("P ne 1.0", true),
            ("P lt 1", false),
            ("P le 1L", false),
            ("P gt 1.0", false),
            ("P ge 1.0", false),
            ("P lt 'x'", true),
        ] {
            assert_eq!(matches(filter, &bytes), expected, "{filter}");
        }
        assert!(matches("P eq 0", &row(&[("P", Value::Double(-0.0))])));
        assert!(matches("P gt 1e+300", &row(&[("P", Value::Double(f64::INFINITY))])));
    }

    #[test]
    fn system_properties_are_read_from_their_places() {
        let bytes = row(&[]);
        for (filter, expected) in [
            ("PartitionKey eq 'part' and RowKey eq 'row'", true),
            ("PartitionKey gt 'par' and RowKey lt 'row'", false),
            ("PartitionKey eq 5 or RowKey gt 5L or RowKey ge true", false),
            ("PartitionKey ne 5 and RowKey lt 5L and RowKey le true", true),
            ("Timestamp eq datetime'2021-01-06T01:01:30.9296707Z'", true),
            ("Timestamp gt datetime'2021-01-06T01:01:30.9296706Z'", true),
            ("Timestamp lt datetime'2021-01-06'", false),
            ("Timestamp lt '2020'", true),
            ("Timestamp ge 5", false),
        ] {
            assert_eq!(matches(filter, &bytes), expected, "{filter}");
        }
    }

    #[test]
    fn long_chains_of_equalities_are_looked_up() {
        let texts = |property: &str, operator: &str, separator: &str| {
            let terms: Vec<_> =
                (0..1000).map(|n| format!("{property} {operator} 'v{n}'")).collect();
            terms.join(separator)
        };
        let any = Program::new(&parse(&texts("P", "eq", " or ")).unwrap());
        assert!(matches!(any.root, Node::In(_)));
        let some = row(&[("P", Value::String("v7"))]);
        let other = row(&[("P", Value::String("w"))]);
        let binary = row(&[("P", Value::Binary(b"v7"))]);
        for (bytes, expected) in [(&some, true), (&other, false), (&binary, false)] {
            assert_eq!(matches(&texts("P", "eq", " or "), bytes), expected);
            assert_eq!(matches(&texts("P", "ne", " and "), bytes), !expected);
            let mixed = format!("{} or P eq 5 or Q", texts("P", "eq", " or "));
            assert_eq!(matches(&mixed, bytes), expected);
        }
        let keys = format!("{} or RowKey eq 'row'", texts("RowKey", "eq", " or "));
        assert!(matches(&keys, &some));
        assert!(!matches(&texts("RowKey", "eq", " or "), &some));
    }

    #[test]
    fn many_names_are_found_too() {
        let names: Vec<_> = (0..100).map(|n| format!("P{n}")).collect();
        let properties: Vec<_> =
            names.iter().map(|name| (name.as_str(), Value::Int32(1))).collect();
        let filter: Vec<_> = names.iter().map(|name| format!("{name} eq 1")).collect();
        let filter = filter.join(" and ");
        assert!(matches(&filter, &row(&properties)));
        assert!(!matches(&filter, &row(&properties[1..])));
    }

    #[test]
    fn a_scratch_forgets_the_row_before() {
        let program = Program::new(&parse("A eq 1 and B eq 2").unwrap());
        let mut scratch = Scratch::default();
        let both = row(&[("B", Value::Int32(2)), ("A", Value::Int32(1))]);
        let one = row(&[("A", Value::Int32(1))]);
        for (bytes, expected) in [(&both, true), (&one, false), (&both, true)] {
            let entity = EntityRef::parse(bytes).unwrap();
            assert_eq!(program.matches(b"p\0r", entity, &mut scratch), Ok(expected));
        }
    }

    #[test]
    fn a_malformed_entity_is_an_error() {
        let bytes = row(&[("A", Value::Int32(1)), ("B", Value::Int32(2))]);
        let cut = EntityRef::parse(&bytes[..bytes.len() - 1]).unwrap();
        let program = Program::new(&parse("B eq 2").unwrap());
        assert!(program.matches(b"p\0r", cut, &mut Scratch::default()).is_err());
    }
}
