//! Which indexes serve a query, and in which way.

use tavola_wire::table::filter::{Expr, QueryKind, Span};
use tavola_wire::table::json::EntityFormat;

use super::candidate::{Candidate, Candidates, Hint, Wanted};
use super::explain::IndexUse;
use crate::storage::catalogue::Table;

/// Unordered ranges that are tried: each that is too wide costs up to half of what a scan does.
const SORTED_MAX: usize = 2;

/// A query whose filter is asked about rows.
pub(crate) struct IndexQuery<'q> {
    pub filter: &'q Expr,
    /// Sorted; what a continuation token and a signature leave of the plan's.
    pub spans: &'q [Span],
    pub kind: QueryKind,
    /// Entities that the page may hold.
    pub top: usize,
    pub hint: Hint<'q>,
    /// Whether a signature grants a range of keys. Then nothing may depend on rows outside the spans: which way the page is
    /// filled shows in what it says of rows and in its token.
    pub is_restricted: bool,
}

/// The indexes that are to serve the query.
///
/// # Errors
/// There are none; why those that might have are not used.
pub(crate) fn choose(
    table: &Table,
    query: &IndexQuery<'_>,
    format: &EntityFormat,
) -> Result<Choice, IndexUse> {
    let Candidates { mut whole, mut branches, not_used } = match query.hint {
        Hint::None => Candidates::default(),
        // A full key is found at once.
        Hint::Any if query.kind == QueryKind::Point => Candidates::default(),
        hint => {
            let IndexQuery { filter, kind, is_restricted, .. } = *query;
            let wanted = Wanted { filter, kind, format, hint, is_restricted };
            Candidates::find(&table.schema, wanted)
        }
    };
    if query.is_restricted {
        // How long an unordered range is depends on rows outside the spans.
        whole.retain(|it| it.access.is_ordered());
        if !is_ordered(&branches) {
            branches.clear();
        }
    }
    let mut best = whole.into_iter();
    let used = IndexUse { not_used, ..IndexUse::default() };
    let way = match best.next() {
        None if branches.is_empty() => return Err(used),
        None if is_ordered(&branches) => Way::Ordered(branches, None),
        Some(first) if first.access.is_ordered() => {
            let second = best.find(|it| it.access.is_ordered() && it.narrows(&first));
            Way::Ordered(vec![first], second)
        }
        first => {
            let whole = first.into_iter().chain(best).take(SORTED_MAX).map(|it| vec![it]);
            let mut sorted: Vec<_> = whole.collect();
            if !is_ordered(&branches) {
                let branches = std::mem::take(&mut branches);
                // The ranges of one index for all branches are those that it is tried with anyway.
                let is_tried = |it: &Candidate| sorted.iter().any(|all| all[0].is_same_index(it));
                if sorted.len() < SORTED_MAX && !branches.iter().all(is_tried) {
                    sorted.push(branches);
                }
            }
            Way::Sorted(sorted, branches)
        }
    };
    Ok(Choice { way, used })
}

/// Whether the rows of all of them can be merged.
fn is_ordered(candidates: &[Candidate]) -> bool {
    candidates.iter().all(|it| it.access.is_ordered())
}

/// Which indexes are to be used, and how.
pub(crate) struct Choice {
    pub(super) way: Way,
    /// Why others are not.
    pub(super) used: IndexUse,
}

pub(super) enum Way {
    /// The rows of all of them, merged, and perhaps only those that another index has too.
    Ordered(Vec<Candidate>, Option<Candidate>),
    /// The first of them whose range is not too wide, or whose ranges together are not; if all are, the rows of the others,
    /// merged.
    Sorted(Vec<Vec<Candidate>>, Vec<Candidate>),
}
