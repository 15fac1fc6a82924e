//! Which keys a filter can match, and what is left to ask of each row.
//!
//! Comparisons of PartitionKey and RowKey become boxes of keys, joined under `and`, `or` and `not` alike;
//! everything else counts as "any key". The boxes become spans. They always hold every match, and often nothing
//! else: then no row is looked into. Where joining boxes would cost more than [`PAIRS_MAX`] allows, the plan
//! settles for more keys than needed, never for fewer.

use super::expr::{Comparison, Expr, Literal};
use super::kind::QueryKind;
use super::parse::parse;
use super::spans::{Interval, KeyBox, Span, merge};
use crate::error::Result;
use crate::table::names::key_problem;
use crate::table::stored::Program;

/// Pairs of boxes that one plan may intersect, apart from a few per comparison: `and` multiplies what both
/// sides hold. 128 partition keys times 128 row keys fit.
const PAIRS_MAX: usize = 16 * 1024;
/// Pairs that each comparison of the filter may cost in addition, so that long lists of keys stay exact.
const PAIRS_PER_COMPARISON: usize = 4;

/// Bytes of two boxes that count as one pair: a pair of long keys costs the memory of many short ones.
const BYTES_PER_PAIR: usize = 512;

/// Where to look for the matches of a filter, and what to ask of the rows found there.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Sorted and disjoint; none if nothing can match.
    pub spans: Vec<Span>,
    pub kind: QueryKind,
    /// `None` if every row in the spans matches.
    pub residual: Option<Program>,
    /// The whole filter, unless it names one full key: an index may know its rows better than the spans do.
    pub filter: Option<Expr>,
}

impl Plan {
    /// Reads a `$filter` value and plans it.
    ///
    /// # Errors
    ///
    /// See [`parse`].
    pub fn read(text: &str) -> Result<Self> {
        Self::point(text).map_or_else(|| parse(text).map(Self::of), Ok)
    }

    fn of(filter: Expr) -> Self {
        let plan = Self::new(&filter);
        Self { filter: Some(filter), ..plan }
    }

    /// The plan of an expression, of which it keeps no copy.
    pub fn new(expr: &Expr) -> Self {
        Self::with_planner(Planner::new("PartitionKey", Some("RowKey"), expr), expr)
    }

    /// The plan of a filter for one full key, which many clients send for each entity they get, without the detour over
    /// an expression.
    fn point(text: &str) -> Option<Self> {
        let (partition, row) = point_keys(text)?;
        let are_keys = key_problem(partition).is_none() && key_problem(row).is_none();
        let span = are_keys.then(|| Span::point(partition, row))?;
        Some(Self { spans: vec![span], kind: QueryKind::Point, residual: None, filter: None })
    }

    /// A plan that intersects at most this many pairs of boxes.
    #[cfg(test)]
    pub(super) fn with_pairs(pairs_left: usize, expr: &Expr) -> Self {
        let planner = Planner { partition: "PartitionKey", row: Some("RowKey"), pairs_left };
        Self::with_planner(planner, expr)
    }

    fn with_planner(mut planner: Planner<'_>, expr: &Expr) -> Self {
        let terms = match expr {
            Expr::And(terms) => &terms[..],
            other => std::slice::from_ref(other),
        };
        let (key_terms, others): (Vec<_>, Vec<_>) =
            terms.iter().partition(|term| planner.is_about_keys(term));
        let keys = planner.all_of(&key_terms, false);
        let rest = planner.all_of(&others, false);
        let keys_said = keys.is_said_by_spans();
        let all_said = keys_said && rest.is_said_by_spans();
        let cover = planner.both(keys, rest, keys_said);

        let spans = merge(cover.boxes.iter().map(KeyBox::span).collect());
        let kind = spans.iter().map(Span::kind).max().unwrap_or(QueryKind::Point);
        let asked = || match (keys_said, &others[..]) {
            (true, [only]) => Program::new(only),
            (true, _) => Program::new(&Expr::And(others.iter().copied().cloned().collect())),
            (false, _) => Program::new(expr),
        };
        let said = spans.is_empty() || (all_said && cover.is_said_by_spans());
        let residual = (!said).then(asked);
        let (spans, kind, residual) = match residual.as_ref().and_then(Program::constant) {
            Some(true) => (spans, kind, None),
            Some(false) => (Vec::new(), QueryKind::Point, None),
            None => (spans, kind, residual),
        };
        Self { spans, kind, residual, filter: None }
    }

    /// Clips the spans to keys from `lower` on and before `upper_exclusive`. The kind stays what the filter
    /// made it.
    pub fn restrict(&mut self, lower: Option<&[u8]>, upper_exclusive: Option<&[u8]>) {
        for span in &mut self.spans {
            if let Some(lower) = lower.filter(|lower| **lower > *span.start) {
                span.start = lower.to_vec();
            }
            if let Some(upper) = upper_exclusive
                && span.end.as_deref().is_none_or(|end| upper < end)
            {
                span.end = Some(upper.to_vec());
            }
        }
        self.spans.retain(|span| !span.is_empty());
    }
}

/// The keys of `PartitionKey eq '...' and RowKey eq '...'`, each in parentheses or not, just as libraries write it.
fn point_keys(text: &str) -> Option<(&str, &str)> {
    let plain = ["PartitionKey eq '", "' and RowKey eq '", "'"];
    let in_parentheses = ["(PartitionKey eq '", "') and (RowKey eq '", "')"];
    [plain, in_parentheses].into_iter().find_map(|[start, middle, end]| {
        let keys = text.strip_prefix(start)?;
        let (partition, rest) = keys.split_at(memchr::memchr(b'\'', keys.as_bytes())?);
        let row = rest.strip_prefix(middle)?.strip_suffix(end)?;
        // A quote within a key is written twice, and behind one the filter may go on.
        memchr::memchr(b'\'', row.as_bytes()).is_none().then_some((partition, row))
    })
}

/// Boxes that hold every key that an expression can match.
pub(super) struct Cover {
    pub(super) boxes: Vec<KeyBox>,
    /// Whether every key in the boxes matches.
    exact: bool,
}

impl Cover {
    fn constant(value: bool) -> Self {
        Self { boxes: if value { vec![KeyBox::ALL] } else { Vec::new() }, exact: true }
    }

    fn is_all(&self) -> bool {
        self.boxes.first() == Some(&KeyBox::ALL)
    }

    fn is_said_by_spans(&self) -> bool {
        self.exact && self.boxes.iter().all(KeyBox::is_span)
    }

    fn longest_box_bytes(&self) -> usize {
        self.boxes.iter().map(KeyBox::bytes).max().unwrap_or(0)
    }

    /// The greater, the better: by the worst box, then by their number.
    fn selectivity(&self) -> (u8, std::cmp::Reverse<usize>) {
        let worst = self.boxes.iter().map(KeyBox::selectivity).min();
        (worst.unwrap_or(u8::MAX), std::cmp::Reverse(self.boxes.len()))
    }
}

/// Finds covers, for properties of these names.
pub(super) struct Planner<'a> {
    partition: &'a str,
    row: Option<&'a str>,
    pairs_left: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn new(partition: &'a str, row: Option<&'a str>, expr: &Expr) -> Self {
        let pairs_left = PAIRS_MAX + PAIRS_PER_COMPARISON * comparisons(expr);
        Self { partition, row, pairs_left }
    }

    /// The cover of the expression, or of its negation.
    pub(super) fn cover(&mut self, expr: &Expr, negated: bool) -> Cover {
        match expr {
            Expr::Constant(value) => Cover::constant(*value != negated),
            Expr::Compare(comparison) => self.comparison(comparison, negated),
            Expr::Not(inner) => self.cover(inner, !negated),
            Expr::And(terms) if !negated => self.all_of(&terms.iter().collect::<Vec<_>>(), negated),
            Expr::Or(terms) if negated => self.all_of(&terms.iter().collect::<Vec<_>>(), negated),
            Expr::And(terms) | Expr::Or(terms) => self.any_of(terms, negated),
        }
    }

    fn is_about_keys(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Constant(_) => true,
            Expr::Compare(comparison) => {
                comparison.property == self.partition || Some(&*comparison.property) == self.row
            }
            Expr::Not(inner) => self.is_about_keys(inner),
            Expr::And(terms) | Expr::Or(terms) => terms.iter().all(|term| self.is_about_keys(term)),
        }
    }

    fn comparison(&self, comparison: &Comparison, negated: bool) -> Cover {
        let of_partition = comparison.property == self.partition;
        if !of_partition && Some(&*comparison.property) != self.row {
            return Cover { boxes: vec![KeyBox::ALL], exact: false };
        }
        // Keys are never missing and always have an order, so that a negated operator is the opposite one.
        let operator = if negated { comparison.operator.negated() } else { comparison.operator };
        let Literal::String(text) = &comparison.literal else {
            return Cover::constant(comparison.operator.holds_on_mismatch() != negated);
        };
        let boxes = Interval::compared(operator, text).into_iter().map(|interval| {
            if of_partition {
                KeyBox { partition: interval, row: Interval::ALL }
            } else {
                KeyBox { partition: Interval::ALL, row: interval }
            }
        });
        Cover { boxes: boxes.collect(), exact: true }
    }

    fn any_of(&mut self, terms: &[Expr], negated: bool) -> Cover {
        let mut union = Cover::constant(false);
        for term in terms {
            let cover = self.cover(term, negated);
            union.exact &= cover.exact;
            if !union.is_all() {
                if cover.is_all() {
                    union.boxes.clear();
                }
                union.boxes.extend(cover.boxes);
            }
        }
        union
    }

    fn all_of(&mut self, terms: &[&Expr], negated: bool) -> Cover {
        let mut covers: Vec<_> = terms.iter().map(|term| self.cover(term, negated)).collect();
        // The shortest first: what they rule out need not be multiplied.
        covers.sort_by_key(|cover| cover.boxes.len());
        covers.into_iter().fold(Cover::constant(true), |a, b| self.both(a, b, false))
    }

    /// The intersection; where that is too dear, the more selective side, or the left one if it is to be kept.
    fn both(&mut self, a: Cover, b: Cover, keep_left: bool) -> Cover {
        let exact = a.exact && b.exact;
        if a.is_all() {
            return Cover { boxes: b.boxes, exact };
        }
        if b.is_all() {
            return Cover { boxes: a.boxes, exact };
        }
        let weight = 1 + (a.longest_box_bytes() + b.longest_box_bytes()) / BYTES_PER_PAIR;
        let pairs = a.boxes.len().saturating_mul(b.boxes.len()).saturating_mul(weight);
        let Some(left) = self.pairs_left.checked_sub(pairs) else {
            let kept = if keep_left || a.selectivity() >= b.selectivity() { a } else { b };
            return Cover { boxes: kept.boxes, exact: false };
        };
        self.pairs_left = left;
        let pairs = a.boxes.iter().flat_map(|x| b.boxes.iter().map(move |y| x.intersection(y)));
        let boxes: Vec<_> = pairs.flatten().collect();
        let exact = exact || boxes.is_empty();
        Cover { boxes, exact }
    }
}

fn comparisons(expr: &Expr) -> usize {
    match expr {
        Expr::Constant(_) => 0,
        Expr::Compare(_) => 1,
        Expr::Not(inner) => comparisons(inner),
        Expr::And(terms) | Expr::Or(terms) => terms.iter().map(comparisons).sum(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::*;
    use crate::table::filter::Scratch;
    use crate::table::names::KEY_UNITS_MAX;
    use crate::table::stored::key::push_entity_key;
    use crate::table::stored::{EntityRef, EntityWriter, Value};

    fn plan(filter: &str) -> Plan {
        Plan::new(&parse(filter).unwrap())
    }

    /// The plan in one line: kind, spans with `.` for the separator and `^` for what follows it, `?` if rows are
    /// looked into.
    fn shown(filter: &str) -> String {
        let plan = plan(filter);
        let bytes =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', ".").replace('\u{1}', "^");
        let spans: Vec<_> = plan
            .spans
            .iter()
            .map(|span| {
                let end = span.end.as_deref().map_or("end".to_owned(), bytes);
                format!("[{}, {end})", bytes(&span.start))
            })
            .collect();
        let residual = if plan.residual.is_some() { "?" } else { "" };
        format!("{}: {}{residual}", plan.kind, spans.join(" "))
    }

    #[test]
    fn key_comparisons_become_spans() {
        let cases = [
            ("", "table scan: [, end)"),
            ("true", "table scan: [, end)"),
            ("false", "point: "),
            ("not true", "point: "),
            ("PartitionKey eq 'a' and RowKey eq 'b'", "point: [a.b, a.b.)"),
            ("PartitionKey eq 'a' and RowKey eq ''", "point: [a., a..)"),
            ("PartitionKey eq '' and RowKey eq ''", "point: [., ..)"),
            ("PartitionKey eq ''", "partition scan: [., ^)"),
            ("PartitionKey eq 'a'", "partition scan: [a., a^)"),
            ("PartitionKey eq 'a' and RowKey ge ''", "partition scan: [a., a^)"),
            ("PartitionKey eq 'a' and RowKey gt 'b'", "range: [a.b., a^)"),
            ("PartitionKey eq 'a' and RowKey ge 'b'", "range: [a.b, a^)"),
            ("PartitionKey eq 'a' and RowKey lt 'b'", "range: [a., a.b)"),
            ("PartitionKey eq 'a' and RowKey le 'b'", "range: [a., a.b.)"),
            ("PartitionKey eq 'a' and RowKey ne 'b'", "range: [a., a.b) [a.b., a^)"),
            ("PartitionKey eq 'a' and RowKey ge 'b' and RowKey lt 'c'", "range: [a.b, a.c)"),
            (
                "PartitionKey eq 'a' and (RowKey le 'b' or RowKey gt 'b')",
                "partition scan: [a., a^)",
            ),
            ("PartitionKey gt 'a'", "table scan: [a^, end)"),
            ("PartitionKey ge 'a'", "table scan: [a., end)"),
            ("PartitionKey lt 'a'", "table scan: [, a)"),
            ("PartitionKey le 'a'", "table scan: [, a^)"),
            ("PartitionKey ne 'a'", "table scan: [, a) [a^, end)"),
            ("PartitionKey ge 'a' and PartitionKey lt 'b'", "table scan: [a., b)"),
            ("PartitionKey ge 'a' and PartitionKey le 'b'", "table scan: [a., b^)"),
            ("RowKey eq 'b'", "table scan: [.b, end)?"),
            ("PartitionKey ge 'a' and RowKey ge 'm'", "table scan: [a.m, end)?"),
            ("PartitionKey le 'a' and RowKey lt 'm'", "table scan: [, a.m)?"),
            ("PartitionKey lt 'a' and RowKey lt 'm'", "table scan: [, a)?"),
            ("PartitionKey eq 'a' or PartitionKey eq 'b'", "partition scan: [a., a^) [b., b^)"),
            (
                "PartitionKey eq 'b' and RowKey eq '2' or PartitionKey eq 'a' and RowKey eq '1'",
                "point: [a.1, a.1.) [b.2, b.2.)",
            ),
            (
                "(PartitionKey eq 'a' or PartitionKey eq 'b') and (RowKey eq '1' or RowKey eq '2')",
                "point: [a.1, a.1.) [a.2, a.2.) [b.1, b.1.) [b.2, b.2.)",
            ),
            (
                "PartitionKey eq 'a' and RowKey eq '1' or PartitionKey eq 'a' and RowKey gt '7'",
                "range: [a.1, a.1.) [a.7., a^)",
            ),
            ("PartitionKey eq 'a' or PartitionKey eq 'a'", "partition scan: [a., a^)"),
        ];
        for (filter, expected) in cases {
            assert_eq!(shown(filter), expected, "{filter}");
        }
    }

    proptest! {
        /// What is planned without an expression is what the expression would have come to.
        #[test]
        fn points_are_planned_as_expressions_would_be(
            keys in prop::collection::vec("[ a-c/()'\u{1}\u{e9}]{0,3}", 2),
            operators in prop::sample::select(vec![
                ("eq", "eq"), ("eq", "eq"), ("eq", "eq"), ("eq", "ge"), ("ne", "eq"),
            ]),
            names in prop::sample::select(vec![
                ("PartitionKey", "RowKey"), ("PartitionKey", "RowKey"), ("PartitionKey", "RowKey"),
                ("RowKey", "PartitionKey"), ("PartitionKey", "A"),
            ]),
            shape in prop::sample::select(vec![
                ["", " and ", ""], ["", " and ", ""], ["(", ") and (", ")"], ["(", " and ", ")"], ["", " or ", ""], ["(", ") and ", ""],
                ["", " and ", " "], ["", " and ", " and A eq 'b'"], ["(", ") and (", ") or (A eq 'b')"],
            ]),
        ) {
            let [start, middle, end] = shape;
            let filter = format!(
                "{start}{} {} '{}'{middle}{} {} '{}'{end}",
                names.0, operators.0, keys[0], names.1, operators.1, keys[1]
            );
            match (Plan::read(&filter), parse(&filter)) {
                (Ok(plan), Ok(expr)) => {
                    let planned = Plan::new(&expr);
                    prop_assert_eq!(&plan.spans, &planned.spans, "{}", filter);
                    prop_assert_eq!(plan.kind, planned.kind, "{}", filter);
                    let residuals = (plan.residual.is_some(), planned.residual.is_some());
                    prop_assert_eq!(residuals.0, residuals.1, "{}", filter);
                }
                (Err(error), Err(expected)) => {
                    prop_assert_eq!(error.message(), expected.message(), "{}", filter);
                }
                (plan, expr) => prop_assert!(false, "{}: {:?}, {:?}", filter, plan, expr),
            }
        }
    }

    #[test]
    fn points_are_recognised() {
        let keys = [
            ("PartitionKey eq 'a' and RowKey eq '1'", Some(("a", "1"))),
            ("(PartitionKey eq 'a') and (RowKey eq '1')", Some(("a", "1"))),
            ("PartitionKey eq '' and RowKey eq ''", Some(("", ""))),
            ("PartitionKey eq 'a''b' and RowKey eq '1'", None),
            ("PartitionKey eq 'a' and RowKey eq '1''2'", None),
            ("PartitionKey eq 'a' and RowKey eq '1' or A eq 'b'", None),
            ("PartitionKey eq 'a' and RowKey eq '", None),
        ];
        for (filter, expected) in keys {
            assert_eq!(point_keys(filter), expected, "{filter}");
        }
    }

    #[test]
    fn other_comparisons_are_asked_of_the_rows() {
        let cases = [
            ("A eq 1", "table scan: [, end)?"),
            ("PartitionKey eq 'a' and A eq 1", "partition scan: [a., a^)?"),
            ("PartitionKey eq 'a' or A eq 1", "table scan: [, end)?"),
            ("PartitionKey eq 'a' and not (A eq 1)", "partition scan: [a., a^)?"),
            ("PartitionKey eq 'a' and (A eq 1 or true)", "partition scan: [a., a^)"),
            ("PartitionKey eq 'a' and A eq 1 and false", "point: "),
            ("Timestamp ge datetime'2020-01-01'", "table scan: [, end)?"),
            ("Timestamp ne 5", "table scan: [, end)"),
            ("Timestamp gt 5", "point: "),
        ];
        for (filter, expected) in cases {
            assert_eq!(shown(filter), expected, "{filter}");
        }
    }

    #[test]
    fn not_is_pushed_down_to_the_keys() {
        let cases = [
            ("not (PartitionKey ne 'a')", "partition scan: [a., a^)"),
            ("not (PartitionKey lt 'a' or PartitionKey gt 'a')", "partition scan: [a., a^)"),
            ("not (not (PartitionKey eq 'a'))", "partition scan: [a., a^)"),
            ("not (PartitionKey ne 'a' or A eq 1)", "partition scan: [a., a^)?"),
            ("not (PartitionKey eq 'a' and A eq 1)", "table scan: [, end)?"),
            ("not (PartitionKey ge 'b')", "table scan: [, b)"),
        ];
        for (filter, expected) in cases {
            assert_eq!(shown(filter), expected, "{filter}");
        }
    }

    #[test]
    fn contradictions_look_nowhere() {
        for filter in [
            "PartitionKey eq 'a' and PartitionKey eq 'b'",
            "PartitionKey gt 'b' and PartitionKey lt 'a'",
            "PartitionKey gt 'a' and PartitionKey le 'a'",
            "PartitionKey lt ''",
            "PartitionKey eq 'a' and RowKey lt '' and A eq 1",
            "PartitionKey eq 5",
            "not (PartitionKey ne 5)",
            "RowKey ge guid'00000000-0000-0000-0000-000000000000'",
            "PartitionKey eq 'a\tb'",
            "PartitionKey eq 'a/b' and RowKey eq 'c'",
            "PartitionKey eq 'a' and (RowKey eq 'b?' or RowKey eq 'b\u{85}')",
        ] {
            assert_eq!(shown(filter), "point: ", "{filter}");
        }
    }

    #[test]
    fn a_literal_of_another_type_is_above_every_key() {
        for filter in ["PartitionKey ne 5", "RowKey lt 5L", "RowKey le true", "not (RowKey gt 1.5)"]
        {
            assert_eq!(shown(filter), "table scan: [, end)", "{filter}");
        }
    }

    #[test]
    fn a_literal_that_is_no_key_lies_just_above_what_it_continues() {
        let cases = [
            ("PartitionKey lt 'a\tb'", "table scan: [, a^)"),
            ("PartitionKey le 'a\0'", "table scan: [, a^)"),
            ("PartitionKey gt 'a\u{1}z'", "table scan: [a^, end)"),
            ("PartitionKey ge '\u{1f}'", "table scan: [^, end)"),
            ("PartitionKey ne 'a\n'", "table scan: [, end)"),
            ("PartitionKey eq 'p' and RowKey ge 'a\0'", "range: [p.a., p^)"),
        ];
        for (filter, expected) in cases {
            assert_eq!(shown(filter), expected, "{filter}");
        }
    }

    /// A page may end before a point, and then its key goes into a token, which has room for keys only.
    #[test]
    fn every_point_is_a_key() {
        let long = "k".repeat(KEY_UNITS_MAX);
        assert_eq!(plan(&format!("PartitionKey eq '{long}' and RowKey eq ''")).spans.len(), 1);
        assert_eq!(shown(&format!("PartitionKey eq '{long}k' and RowKey eq ''")), "point: ");
    }

    #[test]
    fn a_literal_longer_than_any_key_lies_just_above_what_it_continues() {
        let key = "k".repeat(KEY_UNITS_MAX);
        for (operator, expected) in [
            ("lt", format!("table scan: [, {key}^)")),
            ("le", format!("table scan: [, {key}^)")),
            ("gt", format!("table scan: [{key}^, end)")),
            ("ge", format!("table scan: [{key}^, end)")),
            ("ne", "table scan: [, end)".to_owned()),
        ] {
            assert_eq!(shown(&format!("PartitionKey {operator} '{key}more'")), expected);
        }
        // A pair of surrogates across the limit: no key holds both, but a key can be between its first half and it.
        let text = format!("{}\u{1F600}more", "k".repeat(KEY_UNITS_MAX - 1));
        let below = plan(&format!("PartitionKey lt '{text}'"));
        for (last, expected) in [("", true), ("k", true), ("\u{E000}", false)] {
            let mut key = Vec::new();
            let partition_key = format!("{}{last}", "k".repeat(KEY_UNITS_MAX - 1));
            push_entity_key(&mut key, &partition_key, "");
            assert_eq!(below.spans[0].contains(&key), expected, "{last}");
        }
    }

    /// 64 KiB of filter must not become hundreds of megabytes of boxes.
    #[test]
    fn long_keys_are_not_multiplied_without_bound() {
        let long = "k".repeat(15 * 1024);
        let any = |operator: &str| {
            let terms: Vec<_> =
                (0..130).map(|n| format!("RowKey {operator} '{}{n:03}'", "k".repeat(80))).collect();
            terms.join(" or ")
        };
        let filter = format!(
            "PartitionKey gt '{long}' and PartitionKey lt 'l{long}' and ({}) and ({})",
            any("ge"),
            any("le")
        );
        assert!(filter.len() < 64 * 1024, "{}", filter.len());
        let expr = parse(&filter).unwrap();
        let mut planner = Planner::new("PartitionKey", Some("RowKey"), &expr);
        let cover = planner.cover(&expr, false);
        let bytes: usize = cover.boxes.iter().map(KeyBox::bytes).sum();
        assert!(bytes < 8 * 1024 * 1024, "{bytes}");
    }

    #[test]
    fn a_product_that_is_too_large_becomes_a_wider_plan() {
        let any = |property: &str, count: usize| {
            let terms: Vec<_> = (0..count).map(|n| format!("{property} eq 'k{n:04}'")).collect();
            terms.join(" or ")
        };
        let small = format!("({}) and ({})", any("PartitionKey", 100), any("RowKey", 100));
        let exact = plan(&small);
        assert_eq!((exact.kind, exact.spans.len()), (QueryKind::Point, 10_000));
        assert!(exact.residual.is_none());
        let large = format!("({}) and ({})", any("RowKey", 1000), any("PartitionKey", 1000));
        let wide = plan(&large);
        assert_eq!((wide.kind, wide.spans.len()), (QueryKind::PartitionScan, 1000));
        assert!(wide.residual.is_some());
        let not_equal: Vec<_> = (0..5000).map(|n| format!("RowKey ne 'k{n}'")).collect();
        let many = plan(&format!("PartitionKey eq 'a' and {}", not_equal.join(" and ")));
        assert!(many.kind <= QueryKind::PartitionScan);
        assert!(many.residual.is_some());
    }

    #[test]
    fn a_wider_plan_keeps_the_spans_that_the_rows_are_not_asked_about() {
        // The right side is more selective, but its rows would have to be asked about their partition.
        let filter = "PartitionKey ge 'b' and \
                      (PartitionKey eq 'a' and A eq 1 or PartitionKey eq 'c' and A eq 1)";
        let plan = Plan::with_pairs(0, &parse(filter).unwrap());
        assert_eq!(plan.spans, [Span { start: b"b\0".to_vec(), end: None }]);
        assert!(plan.residual.is_some());
    }

    #[test]
    fn the_rows_are_not_asked_what_the_spans_say() {
        let plan = plan("PartitionKey eq 'a' and RowKey ge 'b' and A eq 1");
        let mut writer = EntityWriter::new();
        writer.push("A", Value::Int32(1));
        let entity = writer.finish();
        let mut key = Vec::new();
        push_entity_key(&mut key, "elsewhere", "a");
        let program = plan.residual.unwrap();
        let entity = EntityRef::parse(&entity).unwrap();
        assert_eq!(program.matches(&key, entity, &mut Scratch::default()), Ok(true));
    }

    #[test]
    fn sixty_kilobytes_of_row_keys_are_points() {
        let terms: Vec<_> = (0..1500)
            .map(|n| format!("RowKey eq 'grain-{n:08}-{:08x}-reminder'", n * 7919))
            .collect();
        let filter = format!("(PartitionKey eq 'service_0A1B' and ({}))", terms.join(" or "));
        assert!(filter.len() > 60 * 1024);
        let plan = plan(&filter);
        assert_eq!((plan.kind, plan.spans.len()), (QueryKind::Point, 1500));
        assert!(plan.residual.is_none());
        let mut key = Vec::new();
        push_entity_key(&mut key, "service_0A1B", "grain-00000003-00005ccd-reminder");
        assert_eq!(plan.spans.iter().filter(|span| span.contains(&key)).count(), 1);
    }

    #[test]
    fn ten_thousand_points_in_either_form() {
        let pairs: Vec<_> = (0..10_000)
            .map(|n| format!("(PartitionKey eq 'p{}' and RowKey eq 'r{n}')", n % 100))
            .collect();
        let plan = plan(&pairs.join(" or "));
        assert_eq!((plan.kind, plan.spans.len()), (QueryKind::Point, 10_000));
        assert!(plan.residual.is_none());
    }

    #[test]
    fn restricting_clips_the_spans_and_keeps_the_kind() {
        let key = |pk: &str, rk: &str| {
            let mut key = Vec::new();
            push_entity_key(&mut key, pk, rk);
            key
        };
        let whole = plan("PartitionKey eq 'a' or PartitionKey eq 'b' or PartitionKey eq 'c'");
        let mut clipped = whole.clone();
        clipped.restrict(Some(&key("b", "5")), Some(&key("c", "")));
        assert_eq!(clipped.spans, [Span { start: key("b", "5"), end: Some(b"b\x01".to_vec()) }]);
        assert_eq!(clipped.kind, QueryKind::PartitionScan);
        let mut same = whole.clone();
        same.restrict(None, None);
        assert_eq!(same.spans, whole.spans);
        let mut table = plan("");
        table.restrict(Some(b"b"), Some(b"d"));
        assert_eq!(table.spans, [Span { start: b"b".to_vec(), end: Some(b"d".to_vec()) }]);
        table.restrict(Some(b"x"), None);
        assert!(table.spans.is_empty());
    }
}
