//! The shape of a query: its filter with every literal replaced by the type, and what an index could make of it.
//!
//! Nothing of a literal is kept. Terms of a chain are sorted and equal ones joined, so that a list of keys has the same
//! shape whatever its length and order.

use std::collections::BTreeSet;

use tavola_wire::table::filter::{Comparison, Expr, Operator};
use tavola_wire::table::stored::EdmType;

/// Bytes of a shape that are shown. The rest is left out; shapes are told apart by the whole.
const SHOWN_BYTES_MAX: usize = 1024;

/// Bytes of names that are kept of a shape: one that has more is served by no index.
const NAMES_BYTES_MAX: usize = 4096;

/// What is compared in a filter, as far as all of it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Properties that are compared by `eq`, also with one of several values.
    pub equals: BTreeSet<String>,
    /// Those with a bound: `lt`, `le`, `gt`, `ge`.
    pub bounds: BTreeSet<String>,
    /// Those that are compared in any other way.
    pub others: BTreeSet<String>,
}

/// The filter without its literals, and the selected properties.
pub(crate) fn text(expr: &Expr, select: &BTreeSet<String>) -> String {
    let mut text = filter_text(expr);
    if !select.is_empty() {
        text.push_str(" select ");
        text.push_str(&select.iter().map(String::as_str).collect::<Vec<_>>().join(","));
    }
    text
}

/// The text, cut to what is shown.
pub(crate) fn shown(mut text: String) -> String {
    if text.len() > SHOWN_BYTES_MAX {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// The filter without its literals.
pub(super) fn filter_text(expr: &Expr) -> String {
    match expr {
        Expr::Constant(value) => value.to_string(),
        Expr::Compare(Comparison { property, operator, literal }) => {
            format!("{property} {} {}", operator.keyword(), type_name(literal.edm_type()))
        }
        Expr::Not(inner) => format!("not ({})", filter_text(inner)),
        Expr::And(terms) => chain(terms, " and "),
        Expr::Or(terms) => chain(terms, " or "),
    }
}

fn chain(terms: &[Expr], word: &str) -> String {
    let texts: BTreeSet<_> = terms
        .iter()
        .map(|term| match term {
            Expr::And(_) | Expr::Or(_) => format!("({})", filter_text(term)),
            _ => filter_text(term),
        })
        .collect();
    texts.into_iter().collect::<Vec<_>>().join(word)
}

fn type_name(edm_type: EdmType) -> String {
    format!("<{}>", edm_type.name().trim_start_matches("Edm."))
}

impl Terms {
    pub(crate) fn of(expr: &Expr) -> Self {
        let mut terms = Self::default();
        match expr {
            Expr::And(conjuncts) => conjuncts.iter().for_each(|term| terms.add(term)),
            other => terms.add(other),
        }
        // One value is more than a bound.
        terms.bounds.retain(|name| !terms.equals.contains(name));
        if is_small(terms.equals.iter().chain(&terms.bounds).chain(&terms.others)) {
            terms
        } else {
            Self::default()
        }
    }

    fn add(&mut self, expr: &Expr) {
        match expr {
            Expr::Compare(Comparison { property, operator, .. }) => {
                let kind = match operator {
                    Operator::Eq => &mut self.equals,
                    Operator::Ne => &mut self.others,
                    Operator::Gt | Operator::Ge | Operator::Lt | Operator::Le => &mut self.bounds,
                };
                keep(kind, property);
            }
            Expr::Or(terms) => match one_property(terms) {
                Some(property) => keep(&mut self.equals, property),
                None => self.add_others(expr),
            },
            _ => self.add_others(expr),
        }
    }

    fn add_others(&mut self, expr: &Expr) {
        match expr {
            Expr::Constant(_) => {}
            Expr::Compare(comparison) => keep(&mut self.others, &comparison.property),
            Expr::Not(inner) => self.add_others(inner),
            Expr::And(terms) | Expr::Or(terms) => {
                terms.iter().for_each(|term| self.add_others(term));
            }
        }
    }
}

fn keep(names: &mut BTreeSet<String>, name: &str) {
    if !names.contains(name) {
        names.insert(name.to_owned());
    }
}

/// Whether the names may be kept.
pub(crate) fn is_small<'a>(names: impl Iterator<Item = &'a String>) -> bool {
    names.map(String::len).sum::<usize>() <= NAMES_BYTES_MAX
}

/// The one property that all terms compare by `eq`.
fn one_property(terms: &[Expr]) -> Option<&str> {
    let mut properties = terms.iter().map(|term| match term {
        Expr::Compare(Comparison { property, operator: Operator::Eq, .. }) => Some(property),
        _ => None,
    });
    let first = properties.next()??;
    properties.all(|other| other == Some(first)).then_some(first.as_str())
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::filter::parse;

    use super::*;

    fn shape(filter: &str, select: &[&str]) -> String {
        text(&parse(filter).unwrap(), &names(select))
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn literals_are_replaced_by_their_types() {
        let filter = "S eq 'secret' and B eq true and I gt 4711 and L le 4711L and D lt 47.11 and \
                      T ge datetime'2026-11-16T00:00:00Z' and X ne X'4711' and \
                      G eq guid'00112233-4455-6677-8899-aabbccddeeff' and not (Active)";
        let shape = shape(filter, &[]);
        assert_eq!(
            shape,
            "B eq <Boolean> and D lt <Double> and G eq <Guid> and I gt <Int32> and L le <Int64> and \
             S eq <String> and T ge <DateTime> and X ne <Binary> and not (Active eq <Boolean>)"
        );
        for literal in ["secret", "47", "2026", "0011", "true"] {
            assert!(!shape.contains(literal), "{literal}");
        }
    }

    #[test]
    fn order_and_length_of_lists_do_not_matter() {
        assert_eq!(shape("A eq 1 and B eq 'x'", &[]), shape("B eq 'y' and A eq 2", &[]));
        let list = "Town eq 'a' or Town eq 'b'";
        assert_eq!(shape(list, &[]), shape(&format!("{list} or Town eq 'c'"), &[]));
        assert_eq!(
            shape("(A eq 1 or B eq 2) and C eq 3", &[]),
            "(A eq <Int32> or B eq <Int32>) and C eq <Int32>"
        );
        assert_eq!(shape("A eq 1", &["Z", "B"]), "A eq <Int32> select B,Z");
        assert_ne!(shape("A eq 1", &[]), shape("A eq 1L", &[]));
    }

    #[test]
    fn long_shapes_are_cut_where_they_are_shown() {
        let filter: Vec<_> = (0..200).map(|n| format!("Property{n} ge {n}")).collect();
        let text = shown(shape(&filter.join(" and "), &[]));
        assert!(text.len() <= SHOWN_BYTES_MAX + 4 && text.ends_with(" ..."));
        assert_eq!(shown("short".to_owned()), "short");
    }

    #[test]
    fn terms_say_what_an_index_could_use() {
        for (filter, equals, bounds, others) in [
            ("Town eq 'x'", &["Town"][..], &[][..], &[][..]),
            ("Town eq 'x' or Town eq 'y'", &["Town"], &[], &[]),
            ("Town eq 'x' or Name eq 'y'", &[], &[], &["Town", "Name"]),
            ("Town eq 'x' and Age gt 30 and Age lt 40", &["Town"], &["Age"], &[]),
            ("Age eq 30 and Age lt 40", &["Age"], &[], &[]),
            ("not (Age eq 30) and Active ne true", &[], &[], &["Age", "Active"]),
            ("true", &[], &[], &[]),
        ] {
            let terms = Terms::of(&parse(filter).unwrap());
            let expected =
                Terms { equals: names(equals), bounds: names(bounds), others: names(others) };
            assert_eq!(terms, expected, "{filter}");
        }
        let long = format!("{} eq 1 and Town eq 'x'", "N".repeat(NAMES_BYTES_MAX));
        assert_eq!(Terms::of(&parse(&long).unwrap()), Terms::default());
    }
}
