//! `$filter` of `/Tables`: the one property there is `TableName`.
//!
//! Names compare ordinally in the spelling that the table was created with, although two tables may not differ
//! by case alone and are listed without regard to it. The bounds are for that list: they are folded to lower
//! case. Any other property counts as missing.

use super::expr::{Comparison, Expr, Literal};
use super::parse::parse;
use super::plan::Planner;
use crate::error::Result;
use crate::table::stored::key::{SEPARATOR, compare_text};

const TABLE_NAME: &str = "TableName";

/// A parsed filter of tables.
#[derive(Clone, Debug)]
pub struct TableFilter {
    expr: Expr,
    lower: Option<String>,
    upper_exclusive: Option<String>,
}

impl TableFilter {
    /// Reads a `$filter` value, percent-decoded. Empty or blank text matches everything.
    ///
    /// # Errors
    ///
    /// Those of [`parse`].
    pub fn parse(text: &str) -> Result<Self> {
        let expr = parse(text)?;
        let (lower, upper_exclusive) = bounds(&expr);
        Ok(Self { expr, lower, upper_exclusive })
    }

    /// Whether a table of this name, as it was created, matches.
    pub fn matches(&self, table_name: &str) -> bool {
        self.expr.evaluate(&|comparison| holds(comparison, table_name))
    }

    /// No table matches whose name, in lower case, is less.
    pub fn lower(&self) -> Option<&str> {
        self.lower.as_deref()
    }

    /// No table matches whose name, in lower case, is equal or greater.
    pub fn upper_exclusive(&self) -> Option<&str> {
        self.upper_exclusive.as_deref()
    }
}

fn holds(comparison: &Comparison, table_name: &str) -> bool {
    if comparison.property != TABLE_NAME {
        return false;
    }
    match &comparison.literal {
        Literal::String(text) => comparison.operator.holds(Some(compare_text(table_name, text))),
        _ => comparison.operator.holds_on_mismatch(),
    }
}

/// Bounds on the lower-case name, from the longest prefix that all matching names share. Nothing more can be
/// said: `TableName ge 'M'` also matches `a`.
fn bounds(expr: &Expr) -> (Option<String>, Option<String>) {
    let cover = Planner::new(TABLE_NAME, None, expr).cover(expr, false);
    let names = || cover.boxes.iter().map(|key_box| &key_box.partition);
    let Some(start) = names().map(|interval| &interval.start[..]).min() else {
        return (None, Some(String::new()));
    };
    // `None` is no end, and so the greatest.
    let ends: Option<Vec<_>> = names().map(|interval| interval.end.as_deref()).collect();
    let Some(end) = ends.and_then(|ends| ends.into_iter().max()) else {
        return (None, None);
    };
    let prefix = shared_prefix(start, end);
    let plain = prefix.iter().take_while(|byte| byte.is_ascii_alphanumeric());
    let mut lower: String = plain.map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    let Some(last) = lower.pop() else {
        return (None, None);
    };
    let whole = prefix == start && end.strip_suffix(&[SEPARATOR]) == Some(start);
    let is_point = whole && lower.len() + 1 == start.len();
    let next = if is_point { format!("{last}\0") } else { char::from(last as u8 + 1).to_string() };
    let upper = format!("{lower}{next}");
    lower.push(last);
    (Some(lower), Some(upper))
}

/// The longest prefix of every string from `start` to before `end`.
fn shared_prefix<'a>(start: &'a [u8], end: &[u8]) -> &'a [u8] {
    // From `abc` to before `abd`, everything begins with `abc`.
    if let Some((last, before)) = end.split_last()
        && start.starts_with(before)
        && start.get(before.len()).is_some_and(|byte| byte.checked_add(1) == Some(*last))
    {
        return &start[..end.len()];
    }
    let common = start.iter().zip(end).take_while(|(a, b)| a == b).count();
    &start[..common]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chosen<'a>(filter: &str, names: &[&'a str]) -> Vec<&'a str> {
        let filter = TableFilter::parse(filter).unwrap();
        names.iter().copied().filter(|name| filter.matches(name)).collect()
    }

    #[test]
    fn names_compare_in_the_spelling_of_their_creation() {
        let names = ["Alpha", "alps", "beta", "Zeta"];
        assert_eq!(chosen("", &names), names);
        assert_eq!(chosen("TableName eq 'alpha'", &names), [""; 0]);
        assert_eq!(chosen("TableName eq 'Alpha'", &names), ["Alpha"]);
        assert_eq!(chosen("TableName ge 'al' and TableName lt 'am'", &names), ["alps"]);
        assert_eq!(chosen("TableName ge 'a'", &names), ["alps", "beta"]);
        assert_eq!(chosen("not (TableName ge 'a')", &names), ["Alpha", "Zeta"]);
        assert_eq!(chosen("'Zeta' eq TableName or TableName eq 'beta'", &names), ["beta", "Zeta"]);
        assert_eq!(chosen("TableName ne 5", &names), names);
        assert_eq!(chosen("TableName gt 5", &names), [""; 0]);
        assert_eq!(chosen("Other ne 'x'", &names), [""; 0]);
        assert_eq!(chosen("not (Other eq 'x')", &names), names);
        assert!(TableFilter::parse("startswith(TableName,'a')").is_err());
    }

    #[test]
    fn bounds_are_those_of_the_shared_prefix() {
        for (filter, lower, upper) in [
            ("", None, None),
            ("TableName eq 'Abc'", Some("abc"), Some("abc\0")),
            ("TableName ge 'Abc' and TableName lt 'Abd'", Some("abc"), Some("abd")),
            ("TableName ge 'abc' and TableName lt 'abc{'", Some("abc"), Some("abd")),
            ("TableName ge 'abc' and TableName le 'abz'", Some("ab"), Some("ac")),
            ("TableName ge 'M'", None, None),
            ("TableName lt 'M'", None, None),
            ("TableName eq 'ab' or TableName eq 'Ab'", None, None),
            ("TableName eq 'aba' or TableName eq 'abb'", Some("ab"), Some("ac")),
            ("TableName eq '$Metrics'", None, None),
            ("TableName eq 'ab c'", Some("ab"), Some("ac")),
            ("false", None, Some("")),
        ] {
            let parsed = TableFilter::parse(filter).unwrap();
            assert_eq!((parsed.lower(), parsed.upper_exclusive()), (lower, upper), "{filter}");
        }
    }

    proptest! {
        #[test]
        fn bounds_never_exclude_a_match(
            comparisons in prop::collection::vec(
                ("(not )?", "TableName|Other", "eq|ne|gt|ge|lt|le", "[aAbB]{0,3}", "and|or"), 1..5,
            ),
            names in prop::collection::vec("[aAbB]{1,4}", 1..20),
        ) {
            let text = comparisons.iter().enumerate().fold(String::new(), |text, (index, it)| {
                let joined = if index == 0 { "" } else { &it.4 };
                format!("{text} {joined} {}{} {} '{}'", it.0, it.1, it.2, it.3)
            });
            let filter = TableFilter::parse(&text).unwrap();
            for name in names.iter().filter(|name| filter.matches(name)) {
                let folded = name.to_ascii_lowercase();
                prop_assert!(filter.lower().is_none_or(|lower| lower <= folded.as_str()));
                prop_assert!(filter.upper_exclusive().is_none_or(|upper| folded.as_str() < upper));
            }
        }
    }
}
