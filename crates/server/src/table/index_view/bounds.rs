//! Which rows of an index a filter on the keys of its view can match.

use tavola_wire::table::filter::{Comparison, Expr, Literal, Operator};
use tavola_wire::table::index::value_line::after_prefix;
use tavola_wire::table::index::{IndexDefinition, place_of};

/// The first position, and the first behind the last; none is the end of the index.
pub(super) fn of_filter(definition: &IndexDefinition, filter: &Expr) -> (Vec<u8>, Option<Vec<u8>>) {
    let terms = match filter {
        Expr::And(terms) => &terms[..],
        other => std::slice::from_ref(other),
    };
    let compared = |name: &'static str, operators: &'static [Operator]| {
        terms.iter().find_map(move |term| match term {
            Expr::Compare(Comparison { property, operator, literal: Literal::String(text) })
                if property == name && operators.contains(operator) =>
            {
                Some(text.as_str())
            }
            _ => None,
        })
    };
    let bytes_max = usize::from(definition.part_bytes_max);
    let first = compared("PartitionKey", &[Operator::Eq]);
    let Some(mut prefix) = first.and_then(|text| place_of(text, bytes_max)) else {
        return (Vec::new(), None);
    };
    let is_composite = definition.keys.len() > 1;
    let second = match compared("RowKey", &[Operator::Eq]) {
        Some(text) => text.split_once('|').map(|(part, _)| part),
        None => compared("RowKey", &[Operator::Ge, Operator::Gt])
            .zip(compared("RowKey", &[Operator::Lt]))
            .and_then(|(lower, upper)| common_part(lower, upper)),
    };
    let second = second.filter(|_| is_composite).and_then(|text| place_of(text, bytes_max));
    prefix.extend(second.unwrap_or_default());
    let end = after_prefix(&prefix);
    (prefix, Some(end))
}

/// The part that all row keys between the two begin with: `Smith` of `Smith|` and `Smith}`, which is the next text after
/// everything that begins with the first.
fn common_part<'t>(lower: &'t str, upper: &str) -> Option<&'t str> {
    let (part, _) = lower.split_once('|')?;
    let behind = upper.strip_prefix(part)?;
    (behind == "}" || behind.starts_with('|')).then_some(part)
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::filter::parse;

    use super::*;

    fn bounds(keys: &str, filter: &str) -> (Vec<u8>, Option<Vec<u8>>) {
        let definition = IndexDefinition::parse(keys, "", "", false).unwrap();
        of_filter(&definition, &parse(filter).unwrap())
    }

    #[test]
    fn equality_and_prefixes_are_found_at_once() {
        let town = b"\x48X\0\0".to_vec();
        let both = b"\x48X\0\0\x48Smith\0\0".to_vec();
        let of = |prefix: &Vec<u8>| (prefix.clone(), Some(after_prefix(prefix)));
        assert_eq!(bounds("Town", "true"), (vec![], None));
        assert_eq!(bounds("Town", "PartitionKey ge 'X'"), (vec![], None));
        assert_eq!(bounds("Town", "PartitionKey eq 'X' and A eq 1"), of(&town));
        assert_eq!(bounds("Town", "PartitionKey eq 'X' and RowKey eq 'p|r'"), of(&town));
        let prefix = "PartitionKey eq 'X' and RowKey ge 'Smith|' and RowKey lt 'Smith}'";
        assert_eq!(bounds("Town,Name", prefix), of(&both));
        assert_eq!(bounds("Town,Name", "PartitionKey eq 'X' and RowKey eq 'Smith|p|r'"), of(&both));
        let wider = "PartitionKey eq 'X' and RowKey ge 'Smith|' and RowKey lt 'Smithz'";
        assert_eq!(bounds("Town,Name", wider), of(&town));
        let number = b"\x38\x80\0\0\x1e".to_vec();
        assert_eq!(bounds("Age", "PartitionKey eq '~i30'"), of(&number));
    }
}
