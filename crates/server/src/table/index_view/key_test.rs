//! What the keys of a view's row say by themselves, before its entity is fetched: whether a signature grants it, and whether
//! the filter can still match.

use tavola_wire::auth::sas::KeyRangeLimit;
use tavola_wire::table::filter::{Expr, Program, Scratch};
use tavola_wire::table::stored::key::push_entity_key;
use tavola_wire::table::stored::{EntityRef, EntityWriter};

use super::bounds::terms;
use crate::error::{Result, corrupt};

/// A test of keys alone.
pub(super) struct KeyTest<'q> {
    range: Option<&'q KeyRangeLimit>,
    /// The terms of the filter that compare nothing but keys.
    program: Option<Program>,
    no_entity: Vec<u8>,
    key: Vec<u8>,
    scratch: Scratch,
}

impl<'q> KeyTest<'q> {
    pub(super) fn new(filter: &Expr, range: Option<&'q KeyRangeLimit>) -> Self {
        let of_keys: Vec<_> =
            terms(filter).iter().filter(|term| is_of_keys(term)).cloned().collect();
        let program = (!of_keys.is_empty()).then(|| Program::new(&Expr::And(of_keys)));
        let no_entity = EntityWriter::new().finish();
        Self { range, program, no_entity, key: Vec::new(), scratch: Scratch::default() }
    }

    /// Whether the row is to be looked at.
    pub(super) fn passes(&mut self, partition_key: &str, row_key: &str) -> Result<bool> {
        if self.range.is_some_and(|range| !range.contains(partition_key, row_key)) {
            return Ok(false);
        }
        let Some(program) = &self.program else { return Ok(true) };
        self.key.clear();
        push_entity_key(&mut self.key, partition_key, row_key);
        let entity = EntityRef::parse(&self.no_entity).map_err(corrupt)?;
        program.matches(&self.key, entity, &mut self.scratch).map_err(corrupt)
    }
}

fn is_of_keys(term: &Expr) -> bool {
    let mut is_of_keys = true;
    term.each_property(&mut |name| is_of_keys &= matches!(name, "PartitionKey" | "RowKey"));
    is_of_keys
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::filter::parse;

    use super::*;

    #[test]
    fn terms_that_compare_other_properties_are_left_to_the_entity() {
        let range = KeyRangeLimit::new(Some("a"), None, Some("b"), None).unwrap();
        let passes = |filter: &str, range, partition_key: &str| {
            KeyTest::new(&parse(filter).unwrap(), range).passes(partition_key, "r").unwrap()
        };
        for (filter, key, expected) in [
            ("true", "c", true),
            ("PartitionKey eq 'a'", "a", true),
            ("PartitionKey eq 'a'", "b", false),
            ("PartitionKey ge 'b' and A eq 1", "a", false),
            ("PartitionKey ge 'b' and A eq 1", "b", true),
            ("PartitionKey eq 'a' or A eq 1", "b", true),
            ("A eq 1 and not (RowKey eq 'r' or PartitionKey eq 'x')", "b", false),
        ] {
            assert_eq!(passes(filter, None, key), expected, "{filter} {key}");
        }
        assert!(passes("true", Some(&range), "b"));
        assert!(!passes("true", Some(&range), "c"));
    }
}
