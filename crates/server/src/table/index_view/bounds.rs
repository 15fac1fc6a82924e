//! Which rows of an index a filter on the keys of its view can match.

use tavola_wire::table::filter::{Comparison, Expr, Literal, Operator};
use tavola_wire::table::index::value_line::{after_prefix, push_value};
use tavola_wire::table::index::{IndexDefinition, place_of, read_escaped};
use tavola_wire::table::stored::Value;
use tavola_wire::table::stored::key::push_entity_key;

/// Ends a part of a row key.
const PART_END: char = '|';

/// The terms that all have to hold.
pub(super) fn terms(filter: &Expr) -> &[Expr] {
    match filter {
        Expr::And(terms) => terms,
        other => std::slice::from_ref(other),
    }
}

/// The two keys, if the filter says both.
pub(super) fn point(filter: &Expr) -> Option<(&str, &str)> {
    let equal = |name| compared(filter, name, &[Operator::Eq]);
    equal("PartitionKey").zip(equal("RowKey"))
}

/// The first position, and the first behind the last; none is the end of the index.
pub(super) fn of_filter(definition: &IndexDefinition, filter: &Expr) -> (Vec<u8>, Option<Vec<u8>>) {
    let bytes_max = usize::from(definition.part_bytes_max);
    let first = compared(filter, "PartitionKey", &[Operator::Eq]);
    let Some(mut prefix) = first.and_then(|text| place_of(text, bytes_max)) else {
        return (Vec::new(), None);
    };
    let lower = compared(filter, "RowKey", &[Operator::Ge, Operator::Gt]);
    if let Some((lower, upper)) = lower.zip(compared(filter, "RowKey", &[Operator::Lt])) {
        push_row_keys(&mut prefix, definition, &common_prefix(lower, upper));
    }
    let end = after_prefix(&prefix);
    (prefix, Some(end))
}

/// The text that a key is compared with.
fn compared<'f>(filter: &'f Expr, name: &str, operators: &[Operator]) -> Option<&'f str> {
    terms(filter).iter().find_map(|term| match term {
        Expr::Compare(Comparison { property, operator, literal: Literal::String(text) })
            if property == name && operators.contains(operator) =>
        {
            Some(text.as_str())
        }
        _ => None,
    })
}

/// What all texts between the two begin with: `Smith|` of `Smith|` and `Smith}`, which is the next text after everything
/// that begins with the first.
fn common_prefix(lower: &str, upper: &str) -> String {
    let is_same = |(a, b): &(char, char)| a == b;
    let mut prefix: String =
        lower.chars().zip(upper.chars()).take_while(is_same).map(|(a, _)| a).collect();
    let mut of_lower = lower[prefix.len()..].chars();
    let mut of_upper = upper[prefix.len()..].chars();
    if let (Some(last), Some(next), None) = (of_lower.next(), of_upper.next(), of_upper.next())
        && u32::from(last) + 1 == u32::from(next)
        // Those above are ordered by halves.
        && u32::from(next) < 0xD800
    {
        prefix.push(last);
    }
    prefix
}

/// Goes on with what the rows have whose row keys begin with a text, as far as the texts of the parts tell it.
fn push_row_keys(prefix: &mut Vec<u8>, definition: &IndexDefinition, text: &str) {
    let bytes_max = usize::from(definition.part_bytes_max);
    let mut parts = text.split(PART_END);
    let begun = parts.next_back().unwrap_or_default();
    let mut further = definition.keys.len() - 1;
    for part in parts {
        if further == 0 {
            // A unique row has its entity's key elsewhere, and one that begins with the partition key a part of it.
            if !definition.unique && !definition.is_local() {
                prefix.extend(entity_partition(part).unwrap_or_default());
            }
            return;
        }
        let Some(place) = place_of(part, bytes_max) else { return };
        prefix.extend(place);
        further -= 1;
    }
    // What has a mark is a number, say, or a character that is yet to come.
    if further > 0 && !begun.is_empty() && !begun.contains('~') {
        let mut place = Vec::new();
        push_value(&mut place, Value::String(begun), usize::MAX / 2);
        // Without its end.
        place.truncate(place.len() - 2);
        if place.len() <= bytes_max {
            prefix.extend(place);
        }
    }
}

/// What the keys of the entities in a partition begin with.
fn entity_partition(text: &str) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    push_entity_key(&mut key, &read_escaped(text)?, "");
    Some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tavola_wire::table::filter::parse;
    use tavola_wire::table::stored::key::compare_text;

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
        let prefix = "PartitionKey eq 'X' and RowKey ge 'Smith|' and RowKey lt 'Smith}'";
        assert_eq!(bounds("Town,Name", prefix), of(&both));
        let wider = "PartitionKey eq 'X' and RowKey ge 'Smith|' and RowKey lt 'Sz'";
        assert_eq!(bounds("Town,Name", wider), of(&b"\x48X\0\0\x48S".to_vec()));
        let open = "PartitionKey eq 'X' and RowKey ge 'Smith|'";
        assert_eq!(bounds("Town,Name", open), of(&town));
        let number = b"\x38\x80\0\0\x1e".to_vec();
        assert_eq!(bounds("Age", "PartitionKey eq '~i30'"), of(&number));
    }
    #[test]
    fn what_row_keys_begin_with_is_found_at_once() {
        let behind_town = |keys: &str, lower: &str, upper: &str| {
            let filter =
                format!("PartitionKey eq 'X' and RowKey ge '{lower}' and RowKey lt '{upper}'");
            bounds(keys, &filter).0.split_off(4)
        };
        assert_eq!(behind_town("Town", "p|", "p}"), b"p\0");
        assert_eq!(behind_town("Town", "p~7C|5", "p~7C|6"), b"p|\0");
        assert_eq!(behind_town("Town", "p", "q"), b"");
        assert_eq!(behind_town("Town,Name", "Smi", "Smj"), b"\x48Smi");
        assert_eq!(behind_town("Town,Name", "Smith|p|", "Smith|p}"), b"\x48Smith\0\0p\0");
        assert_eq!(behind_town("Town,Name", "Smith|a", "Smith|zz"), b"\x48Smith\0\0");
        assert_eq!(behind_town("Town,Age,Name", "~i30|Sm", "~i30|Sn").last(), Some(&b'm'));
        assert_eq!(behind_town("Town,Age", "~i3", "~i4"), b"");
        assert_eq!(behind_town("Town,Name", "~7", "~8"), b"");
        assert_eq!(behind_town("PartitionKey", "X|", "X}"), b"");
        let unique = IndexDefinition::parse("Town", "", "", true).unwrap();
        let prefix = parse("PartitionKey eq 'X' and RowKey ge 'p|' and RowKey lt 'p}'").unwrap();
        assert_eq!(of_filter(&unique, &prefix).0, b"\x48X\0\0");
    }

    #[test]
    fn both_keys_are_a_point() {
        let found = |filter: &str| {
            let filter = parse(filter).unwrap();
            point(&filter).map(|(partition, row)| format!("{partition} {row}"))
        };
        let both = "A eq 1 and RowKey eq 'Smith|p|r' and PartitionKey eq 'X'";
        assert_eq!(found(both).as_deref(), Some("X Smith|p|r"));
        assert_eq!(found("PartitionKey eq 'X'"), None);
        assert_eq!(found("PartitionKey eq 'X' or RowKey eq 'r'"), None);
    }

    proptest! {
        #[test]
        fn nothing_between_two_texts_begins_otherwise(
            lower in "[a-c|~\u{D7FF}\u{E000}]{0,3}", upper in "[a-c|~\u{D7FF}\u{E000}]{0,3}",
            text in "[a-c|~\u{D7FF}\u{E000}\u{10000}]{0,4}",
        ) {
            let is_between =
                compare_text(&lower, &text).is_le() && compare_text(&text, &upper).is_lt();
            prop_assert!(!is_between || text.starts_with(&common_prefix(&lower, &upper)));
        }
    }
}
