//! The indexes of a table that can find the rows of a filter, and which of them is taken.
//!
//! There is no cost model: a unique index whose parts are all compared for equality comes first, then more leading parts
//! that are, then rows that are in the order of entity keys, then what is between two values before what is on one side of
//! one, and that before what `ne` leaves, then rows that need no look-up, then partial indexes, then fewer intervals,
//! then fewer rows for a value, then fewer ranges. What this does not foresee is noticed while the rows are read.

use std::cmp::Reverse;
use std::sync::Arc;

use tavola_wire::explain::{NO_INDEX, Reason};
use tavola_wire::table::filter::{Expr, QueryKind};
use tavola_wire::table::index::{Access, Include, IndexDefinition, NotUsable, RANGES_MAX};
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::negotiate::MetadataLevel;

use crate::storage::index::{Index, IndexState, Schema};

/// An index that a filter can use.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    schema: Arc<Schema>,
    /// Which of the schema's indexes it is.
    place: usize,
    pub access: Arc<Access>,
    pub coverage: Coverage,
    /// How many rows it is likely to find, to the power of two.
    size: u32,
}

/// What of an answer an index row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Coverage {
    /// Only where the entity is.
    Keys,
    /// Everything, in its key: one property at most, for the key does not know their order.
    Parts,
    /// Everything, in a copy.
    Copy,
}

/// What of a query decides about indexes.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'q> {
    pub filter: &'q Expr,
    /// What the spans of the query are.
    pub kind: QueryKind,
    pub format: &'q EntityFormat,
    pub hint: Hint<'q>,
    /// Whether nothing may depend on rows outside the spans.
    pub is_restricted: bool,
}

/// Which index the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint<'q> {
    Any,
    None,
    Named(&'q str),
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// The best of those that serve the whole filter first.
    pub whole: Vec<Candidate>,
    /// One for each branch of an `or`, unless the best of those that serve the whole filter is in the order of entity keys. All
    /// of these are, or else each is the best of its branch.
    pub branches: Vec<Candidate>,
    pub not_used: Vec<(String, Reason)>,
}

impl<'q> Hint<'q> {
    pub(crate) fn from_header(value: Option<&'q str>) -> Self {
        match value.map(str::trim) {
            None | Some("") => Self::Any,
            Some(name) if name.eq_ignore_ascii_case(NO_INDEX) => Self::None,
            Some(name) => Self::Named(name),
        }
    }

    pub(super) fn is_forced(self) -> bool {
        matches!(self, Self::Named(_))
    }

    fn allows(self, index: &Index) -> bool {
        match self {
            Self::Any => true,
            Self::None => false,
            Self::Named(name) => index.name.eq_ignore_ascii_case(name),
        }
    }
}

impl Candidates {
    pub(super) fn find(schema: &Arc<Schema>, wanted: Wanted<'_>) -> Self {
        let mut found = Self::default();
        let mentioned = mentioned(schema, wanted.filter);
        for &place in &mentioned {
            match candidate(schema, place, wanted.filter, wanted) {
                Ok(candidate) => found.whole.push(candidate),
                Err(Some(reason)) => {
                    found.not_used.push((schema.indexes()[place].name.clone(), reason));
                }
                Err(None) => {}
            }
        }
        found.whole.sort_by(|a, b| {
            a.rank().cmp(&b.rank()).then_with(|| a.index().name.cmp(&b.index().name))
        });
        let has_ordered = found.whole.first().is_some_and(|best| best.access.is_ordered());
        if !mentioned.is_empty() && !has_ordered && !wanted.hint.is_forced() {
            found.branches = branches(schema, wanted).unwrap_or_default();
        }
        found
    }
}

impl Candidate {
    pub(super) fn index(&self) -> &Index {
        &self.schema.indexes()[self.place]
    }

    pub(super) fn is_same_index(&self, other: &Self) -> bool {
        self.place == other.place
    }

    pub(super) fn is_covering(&self) -> bool {
        self.coverage != Coverage::Keys
    }

    pub(super) fn is_partial(&self) -> bool {
        self.index().definition.filter.is_some()
    }

    /// Whether it may leave out entities that the other one finds by `eq`, so that both have less in common. One that has no
    /// further property has nothing to say, however long it is; nor is there anything to leave out of a single row.
    pub(super) fn narrows(&self, other: &Self) -> bool {
        let (own, others) = (&self.index().definition, &other.index().definition);
        // The spans say everything about the partition key.
        let is_known = |name: &str| {
            name == "PartitionKey" || others.keys.iter().any(|part| part.property == name)
        };
        let has_further_part = own.keys.iter().any(|part| !is_known(&part.property));
        let has_further_filter = own.filter.is_some() && own.filter != others.filter;
        !others.unique && (has_further_part || has_further_filter)
    }

    /// The less, the better.
    fn rank(&self) -> impl Ord + use<> {
        let access = &self.access;
        let definition = &self.index().definition;
        // It has one row at most for each range.
        let is_unique = definition.unique && access.leading_points == definition.keys.len();
        let points = (Reverse(is_unique), Reverse(access.leading_points));
        let order = (points, Reverse(access.is_ordered()));
        let ranges = (access.intervals, self.size, access.ranges.len());
        let rows = (Reverse(self.is_covering()), Reverse(self.is_partial()));
        (order, access.width, rows, ranges)
    }
}

/// The indexes whose first part the filter compares: no other can serve it. Asked first, because most indexes of a table have
/// nothing to do with a query, and the closer look is for each of them as dear as planning the query is.
fn mentioned(schema: &Schema, filter: &Expr) -> Vec<usize> {
    let mut names: Vec<&str> = Vec::new();
    filter.each_property(&mut |name| {
        // A long list compares one property over and over.
        if names.last() != Some(&name) {
            names.push(name);
        }
    });
    names.sort_unstable();
    let is_mentioned = |index: &Index| {
        let first = index.definition.keys.first();
        first.is_some_and(|part| names.binary_search(&&*part.property).is_ok())
    };
    let indexes = schema.indexes().iter().enumerate();
    indexes.filter(|(_, index)| is_mentioned(index)).map(|(place, _)| place).collect()
}

/// The index as a candidate, or why it is none; not even a reason if it has nothing to do with the filter.
fn candidate(
    schema: &Arc<Schema>,
    place: usize,
    filter: &Expr,
    wanted: Wanted<'_>,
) -> Result<Candidate, Option<Reason>> {
    let index = &schema.indexes()[place];
    // What is to go has no name any more.
    if !index.state.is_named() {
        return Err(None);
    }
    let access = index.definition.access(filter).map_err(|why| match why {
        NotUsable::Unrelated => None,
        NotUsable::SkipMissing => Some(Reason::SkipMissing),
        NotUsable::Partial => Some(Reason::Partial),
        NotUsable::TooManyRanges => Some(Reason::TooManyStreams),
    })?;
    match index.state {
        IndexState::Readable => {}
        state if state.has_failed() => return Err(Some(Reason::Failed)),
        _ => return Err(Some(Reason::Building)),
    }
    if !wanted.hint.allows(index) {
        return Err(Some(Reason::Hint));
    }
    if !wanted.hint.is_forced() && !leaves_out(&index.definition, &access, wanted.kind) {
        return Err(None);
    }
    let coverage = coverage(&index.definition, wanted);
    let size = if wanted.is_restricted { 0 } else { size(index, &access) };
    Ok(Candidate { schema: schema.clone(), place, access: Arc::new(access), coverage, size })
}

/// Whether the index may leave out entities that are in the spans.
fn leaves_out(definition: &IndexDefinition, access: &Access, kind: QueryKind) -> bool {
    let is_in_spans = |place: usize| match &*definition.keys[place].property {
        "PartitionKey" => true,
        // Within one partition.
        "RowKey" => kind < QueryKind::TableScan,
        _ => false,
    };
    definition.filter.is_some() || access.compares_beside(is_in_spans)
}

/// The build has counted how many values the first part has.
fn size(index: &Index, access: &Access) -> u32 {
    let statistics = &index.statistics;
    let of_a_value = statistics.entries_of_a_value().filter(|_| access.leading_points > 0);
    of_a_value.unwrap_or_else(|| statistics.entries()).checked_ilog2().unwrap_or_default()
}

/// An access for each branch of the first `or` that has one; of an `or` whose branches all are in order if there is one.
fn branches(schema: &Arc<Schema>, wanted: Wanted<'_>) -> Option<Vec<Candidate>> {
    let terms = match wanted.filter {
        Expr::And(terms) => &terms[..],
        other => std::slice::from_ref(other),
    };
    let of_term = |term: &Expr| match term {
        // Each has a range at least, or nothing to find.
        Expr::Or(branches) if branches.len() <= RANGES_MAX => {
            branches.iter().map(|it| of_branch(schema, it, wanted)).collect()
        }
        _ => None,
    };
    let found: Vec<Vec<Vec<Candidate>>> = terms.iter().filter_map(of_term).collect();
    let best_of = |is_eligible: &dyn Fn(&Candidate) -> bool| {
        found.iter().find_map(|branches| {
            let best = branches.iter().map(|all| all.iter().find(|it| is_eligible(it)).cloned());
            let best: Option<Vec<_>> = best.collect();
            let ranges = |it: &Candidate| it.access.ranges.len();
            best.filter(|best| best.iter().map(ranges).sum::<usize>() <= RANGES_MAX)
        })
    };
    best_of(&|it| it.access.is_ordered()).or_else(|| best_of(&|_| true))
}

/// What serves a branch best, and what does in order, if that is another; `None` if nothing does.
fn of_branch(schema: &Arc<Schema>, branch: &Expr, wanted: Wanted<'_>) -> Option<Vec<Candidate>> {
    let places = mentioned(schema, branch).into_iter();
    let mut all: Vec<_> =
        places.filter_map(|place| candidate(schema, place, branch, wanted).ok()).collect();
    all.sort_by_key(Candidate::rank);
    let mut all = all.into_iter();
    let best = all.next()?;
    let ordered = (!best.access.is_ordered()).then(|| all.find(|it| it.access.is_ordered()));
    Some(std::iter::once(best).chain(ordered.flatten()).collect())
}

fn coverage(definition: &IndexDefinition, wanted: Wanted<'_>) -> Coverage {
    let covers_all = |covers: &dyn Fn(&str) -> bool| {
        let mut asked = true;
        wanted.filter.each_property(&mut |name| asked &= covers(name));
        let selected = wanted.format.selected();
        asked && selected.is_some_and(|names| names.iter().all(|name| covers(name)))
    };
    let is_in_key = |name: &str| {
        let is_part = || definition.keys.iter().any(|part| part.property == name);
        matches!(name, "PartitionKey" | "RowKey") || (name != "Timestamp" && is_part())
    };
    match &definition.include {
        Include::All => Coverage::Copy,
        Include::Names(_) if covers_all(&|name| definition.covers(name)) => Coverage::Copy,
        // The ETag that other levels show is made of the timestamp, which the key has not. It does not say either in which
        // order the entity has its properties.
        Include::Nothing
            if wanted.format.level() == MetadataLevel::None
                && shown_properties(wanted.format) <= 1
                && covers_all(&is_in_key) =>
        {
            Coverage::Parts
        }
        Include::Names(_) | Include::Nothing => Coverage::Keys,
    }
}

/// Properties that a `$select` names beside the two keys, which stand in front of all others.
fn shown_properties(format: &EntityFormat) -> usize {
    let names = format.selected().unwrap_or_default();
    names.iter().filter(|name| !matches!(name.as_str(), "PartitionKey" | "RowKey")).count()
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::filter::parse;

    use super::super::tests_support::{candidates, found, schema, schema_of};
    use super::*;

    /// The names of what serves a filter, the best first.
    fn ranked(indexes: &[(&str, &str)], filter: &str) -> Vec<String> {
        let schema = schema(indexes);
        let found = candidates(&schema, filter, None);
        found.iter().map(|it| it.index().name.clone()).collect()
    }

    #[test]
    fn what_is_narrow_comes_first() {
        let both = [("LastName", ""), ("Score", "")];
        let between = "Score ge 100 and Score lt 110";
        for other in ["LastName gt 'a'", "LastName ne 'a'"] {
            let found = ranked(&both, &format!("{other} and {between}"));
            assert_eq!(found, ["Score", "LastName"], "{other}");
        }
        assert_eq!(ranked(&both, "LastName ne 'a' and Score gt 3")[0], "Score");
        assert_eq!(ranked(&both, &format!("LastName eq 'a' and {between}"))[0], "LastName");
        assert_eq!(ranked(&[("A", ""), ("B", "*")], "A gt 1 and B gt 1"), ["B", "A"]);
        assert_eq!(ranked(&[("A", ""), ("B", "")], "A eq 1 and B eq 'x'"), ["B", "A"]);
    }

    #[test]
    fn only_indexes_whose_first_part_is_compared_are_looked_at() {
        let schema =
            schema(&[("Town,Age", ""), ("Age", ""), ("PartitionKey,Town", ""), ("Zip", "")]);
        for (filter, places) in [
            ("Town eq 'X'", &[0][..]),
            ("Age gt 3 and (Town eq 'X' or Town eq 'Y')", &[0, 1]),
            ("PartitionKey eq 'p' and not (Age lt 3)", &[1, 2]),
            ("Name eq 'X' and RowKey gt 'r'", &[]),
        ] {
            assert_eq!(mentioned(&schema, &parse(filter).unwrap()), places, "{filter}");
        }
    }

    /// An index that says no more than the keys do is longer than what they say.
    #[test]
    fn an_index_leaves_out_what_the_spans_do_not() {
        let both = [("PartitionKey,Email", ""), ("RowKey,Email", "*")];
        let partition = "PartitionKey eq 'p'";
        for filter in [
            &format!("{partition} and Age eq 5"),
            &format!("{partition} and RowKey gt 'r' and Age eq 5"),
            &format!("{partition} and (Email eq 'e' or Age eq 5)"),
            "PartitionKey gt 'p' and Age eq 5",
        ] {
            assert_eq!(ranked(&both, filter), [""; 0], "{filter}");
        }
        let mail = ranked(&both, &format!("{partition} and Email eq 'e'"));
        assert_eq!(mail, ["PartitionKey,Email"]);
        // Rows of all partitions are not within one span.
        assert_eq!(ranked(&both, "RowKey eq 'r' and Age eq 5"), ["RowKey,Email"]);
    }

    #[test]
    fn a_unique_index_comes_first() {
        let definitions = [("Town,Name,Age", false), ("Email", true), ("Town", true)];
        let definitions = definitions.map(|(keys, unique)| {
            IndexDefinition::parse(keys, "", "", unique).expect("a definition")
        });
        let schema = schema_of(&definitions);
        let first = |filter: &str| candidates(&schema, filter, None)[0].index().name.clone();
        let town = "Town eq 'X' and Name eq 'Y' and Age gt 3";
        assert_eq!(first(&format!("{town} and Email eq 'e'")), "Email");
        // Of these it has more than one row.
        assert_eq!(first(&format!("{town} and Email gt 'e'")), "Town");
        assert_eq!(first("Town gt 'X' and Email ge 'e' and Email lt 'f'"), "Email");
    }

    #[test]
    fn branches_are_found_beside_what_is_in_no_order() {
        let schema = schema(&[("Email", ""), ("Phone", ""), ("Score", "")]);
        let branches = |filter: &str| {
            let found = found(&schema, filter, None).branches;
            found.iter().map(|it| it.index().name.clone()).collect::<Vec<_>>().join(" ")
        };
        let either = "(Email eq 'e' or Phone eq 'p')";
        assert_eq!(branches(&format!("{either} and Score gt 5")), "Email Phone");
        assert_eq!(branches(&format!("{either} and Score eq 5")), "");
        assert_eq!(branches("Score gt 5"), "");
        // Those in order before others, wherever they stand; each branch has to have one.
        let wide = "(Email gt 'e' or Score lt 5)";
        assert_eq!(branches(wide), "Email Score");
        assert_eq!(branches(&format!("{wide} and {either}")), "Email Phone");
        assert_eq!(branches("Email gt 'e' or Score lt 5 or Town eq 'X'"), "");
    }

    #[test]
    fn rows_of_keys_alone_answer_one_property() {
        let schema = schema(&[("Town,Age", ""), ("Town", "Age,Name")]);
        let covering = |select: &str| {
            let found = candidates(&schema, "Town eq 'X'", Some(select));
            let mut names: Vec<_> =
                found.iter().filter(|it| it.is_covering()).map(|it| &*it.index().name).collect();
            names.sort_unstable();
            names.join(" ")
        };
        assert_eq!(covering("PartitionKey,RowKey"), "Town Town,Age");
        assert_eq!(covering("RowKey,Age"), "Town Town,Age");
        assert_eq!(covering("Town,Age"), "Town");
        assert_eq!(covering("Town,Name"), "Town");
        assert_eq!(covering("Timestamp"), "Town");
    }

    #[test]
    fn what_has_the_same_parts_leaves_nothing_out() {
        let definitions = [
            ("Town,Name", "", false),
            ("Town", "", false),
            ("Town", "State eq 'open'", false),
            ("PartitionKey,Town", "", false),
            ("Age", "", false),
            ("Email", "", true),
        ];
        let definitions = definitions.map(|(keys, filter, unique)| {
            IndexDefinition::parse(keys, "", filter, unique).expect("a definition")
        });
        let schema = schema_of(&definitions);
        let candidates = (0..definitions.len()).map(|place| Candidate {
            schema: schema.clone(),
            place,
            access: Arc::new(definitions[place].access(&parse("false").unwrap()).unwrap()),
            coverage: Coverage::Keys,
            size: 0,
        });
        let all: Vec<_> = candidates.collect();
        let [both, town, open, local, age, email] = &all[..] else { panic!("{all:?}") };
        for other in [town, local] {
            assert!(!other.narrows(both) && !other.narrows(town) && !other.narrows(local));
        }
        assert!(open.narrows(both) && open.narrows(town) && !town.narrows(open));
        assert!(both.narrows(town) && age.narrows(both) && both.narrows(age));
        assert!(!age.narrows(email));
    }
}
