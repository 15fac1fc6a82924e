//! `$filter` of `/Tables`: the one property there is `TableName`.
//!
//! Names compare without regard to case, as two tables may not differ by case alone. Both sides are folded to lower
//! case, which is also the order of the catalogue's keys: so a filter's bounds are bounds of those keys. Any other
//! property counts as missing.

use super::expr::{Comparison, Expr, Literal};
use super::parse::parse;
use super::plan::Planner;
use crate::error::Result;
use crate::table::stored::key::compare_text;

const TABLE_NAME: &str = "TableName";
/// Greater than every character of a table's name.
const AFTER_NAMES: char = '\x7f';

/// A parsed filter of tables.
#[derive(Clone, Debug)]
pub struct TableFilter {
    /// Its texts are in lower case.
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
        let mut expr = parse(text)?;
        fold(&mut expr);
        let (lower, upper_exclusive) = bounds(&expr);
        Ok(Self { expr, lower, upper_exclusive })
    }

    /// Whether a table of this name, in any case, matches.
    pub fn matches(&self, table_name: &str) -> bool {
        let folded = table_name.to_ascii_lowercase();
        self.expr.evaluate(&|comparison| holds(comparison, &folded))
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

/// Names have ASCII letters alone, so that folding others could only make texts equal which are not.
fn fold(expr: &mut Expr) {
    match expr {
        Expr::Constant(_) => {}
        Expr::Compare(Comparison { literal: Literal::String(text), .. }) => {
            text.make_ascii_lowercase();
        }
        Expr::Compare(_) => {}
        Expr::Not(inner) => fold(inner),
        Expr::And(terms) | Expr::Or(terms) => terms.iter_mut().for_each(fold),
    }
}

fn holds(comparison: &Comparison, folded_name: &str) -> bool {
    if comparison.property != TABLE_NAME {
        return false;
    }
    match &comparison.literal {
        Literal::String(text) => comparison.operator.holds(Some(compare_text(folded_name, text))),
        _ => comparison.operator.holds_on_mismatch(),
    }
}

/// Bounds on the lower-case name: the least start and the greatest end of the intervals that can match.
fn bounds(expr: &Expr) -> (Option<String>, Option<String>) {
    let cover = Planner::new(TABLE_NAME, None, expr).cover(expr, false);
    let names = || cover.boxes.iter().map(|key_box| &key_box.partition);
    let Some(start) = names().map(|interval| &interval.start[..]).min() else {
        return (None, Some(String::new()));
    };
    let (lower, _) = split_ascii(start);
    // `None` is no end, and so the greatest.
    let ends: Option<Vec<_>> = names().map(|interval| interval.end.as_deref()).collect();
    let upper = ends.and_then(|ends| ends.into_iter().max()).map(|end| match split_ascii(end) {
        (whole, true) => whole,
        (prefix, false) => format!("{prefix}{AFTER_NAMES}"),
    });
    (Some(lower).filter(|lower| !lower.is_empty()), upper)
}

/// The ASCII characters at the beginning, and whether these are all. No name has others, and they are greater.
fn split_ascii(bytes: &[u8]) -> (String, bool) {
    let plain = bytes.iter().take_while(|byte| byte.is_ascii());
    let text: String = plain.map(|byte| char::from(*byte)).collect();
    let is_whole = text.len() == bytes.len();
    (text, is_whole)
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
    fn names_compare_without_regard_to_case() {
        let names = ["Alpha", "alps", "beta", "Zeta"];
        assert_eq!(chosen("", &names), names);
        assert_eq!(chosen("TableName eq 'alpha'", &names), ["Alpha"]);
        assert_eq!(chosen("TableName eq 'ALPHA'", &names), ["Alpha"]);
        assert_eq!(chosen("TableName ne 'alpha'", &names), ["alps", "beta", "Zeta"]);
        assert_eq!(chosen("TableName ge 'AL' and TableName lt 'al{'", &names), ["Alpha", "alps"]);
        assert_eq!(chosen("TableName ge 'B'", &names), ["beta", "Zeta"]);
        assert_eq!(chosen("not (TableName ge 'b')", &names), ["Alpha", "alps"]);
        assert_eq!(chosen("'zeta' eq TableName or TableName eq 'beta'", &names), ["beta", "Zeta"]);
        assert_eq!(chosen("TableName ne 5", &names), names);
        assert_eq!(chosen("TableName gt 5", &names), [""; 0]);
        assert_eq!(chosen("Other ne 'x'", &names), [""; 0]);
        assert_eq!(chosen("not (Other eq 'x')", &names), names);
        // The Kelvin sign, which is no letter of a name.
        assert_eq!(chosen("TableName eq '\u{212a}eta'", &["keta"]), [""; 0]);
        assert!(TableFilter::parse("startswith(TableName,'a')").is_err());
    }

    #[test]
    fn bounds_are_those_of_the_comparisons_in_lower_case() {
        for (filter, lower, upper) in [
            ("", None, None),
            ("TableName eq 'Abc'", Some("abc"), Some("abc\0")),
            ("TableName ge 'Abc' and TableName lt 'ABD'", Some("abc"), Some("abd")),
            ("TableName ge 'aa' and TableName lt 'aa{'", Some("aa"), Some("aa{")),
            ("TableName ge 'abc' and TableName le 'abz'", Some("abc"), Some("abz\0")),
            ("TableName ge 'M'", Some("m"), None),
            ("TableName lt 'M'", None, Some("m")),
            ("TableName eq 'ab' or TableName eq 'Ac'", Some("ab"), Some("ac\0")),
            ("TableName eq 'ab c'", Some("ab c"), Some("ab c\0")),
            ("TableName ge 'ab\u{e9}' and TableName lt 'ac\u{e9}x'", Some("ab"), Some("ac\x7f")),
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
                ("(not )?", "TableName|Other", "eq|ne|gt|ge|lt|le", "[aAbBzZ{_\u{e9}\u{e000}]{0,3}", "and|or"), 1..5,
            ),
            names in prop::collection::vec("[aAbBzZ]{1,4}", 1..20),
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
