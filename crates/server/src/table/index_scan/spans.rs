//! The spans of entity keys that a query is about: sorted, and what a signature does not grant is in none.

use tavola_engine::successor;
use tavola_wire::table::filter::Span;

/// Whether a key is in one of the spans.
pub(super) fn is_in(spans: &[Span], key: &[u8]) -> bool {
    let behind = spans.partition_point(|span| *span.start <= *key);
    behind.checked_sub(1).is_some_and(|at| spans[at].contains(key))
}

/// The first key of the spans from this one on; `None` if they have none.
pub(super) fn first_from<'k>(spans: &'k [Span], key: &'k [u8]) -> Option<&'k [u8]> {
    if is_in(spans, key) {
        return Some(key);
    }
    let next = spans.get(spans.partition_point(|span| *span.start <= *key))?;
    Some(&next.start)
}

/// The spans up to a key and no further.
pub(super) fn up_to(spans: &[Span], last: &[u8]) -> Vec<Span> {
    let before = spans.iter().take_while(|span| *span.start <= *last);
    let mut spans: Vec<_> = before.cloned().collect();
    if let Some(span) = spans.last_mut() {
        let end = successor(last);
        span.end = Some(match span.end.take() {
            Some(before) => before.min(end),
            None => end,
        });
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_hold_keys() {
        let span = |start: &[u8], end: Option<&[u8]>| Span {
            start: start.to_vec(),
            end: end.map(<[u8]>::to_vec),
        };
        let spans = [span(b"b", Some(b"c")), span(b"e", Some(b"f"))];
        let keys = ["a", "b", "bb", "c", "d", "e", "f"];
        let held = keys.map(|key| is_in(&spans, key.as_bytes()));
        assert_eq!(held, [false, true, true, false, false, true, false]);
        let first = keys.map(|key| first_from(&spans, key.as_bytes()));
        let expected = ["b", "b", "bb", "e", "e", "e"].map(|key| Some(key.as_bytes()));
        assert_eq!((&first[..6], first[6]), (&expected[..], None));
    }

    #[test]
    fn spans_end_behind_a_key() {
        let span = |start: &str, end: Option<&str>| Span {
            start: start.into(),
            end: end.map(|end| end.as_bytes().to_vec()),
        };
        let spans = [span("b", Some("d")), span("e", Some("f")), span("g", None)];
        let shown = |last: &str| up_to(&spans, last.as_bytes());
        assert_eq!(shown("a"), []);
        assert_eq!(shown("c"), [span("b", Some("c\0"))]);
        assert_eq!(shown("dd"), [span("b", Some("d"))]);
        assert_eq!(shown("e"), [spans[0].clone(), span("e", Some("e\0"))]);
        assert_eq!(shown("x"), [&spans[..2], &[span("g", Some("x\0"))]].concat());
    }
}
