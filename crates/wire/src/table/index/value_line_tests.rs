use proptest::prelude::*;

use super::*;
use crate::table::index::tests_support::value;
use crate::table::stored::key::compare_text;

const MAX: usize = 8;

fn place(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    push_value(&mut out, value, MAX);
    out
}

#[test]
fn an_end_sorts_before_everything_that_may_follow() {
    let texts = ["a", "a\0", "a\0b", "aa", "aaaaaaaa", "aaaaaaaa\0", "aaaaaaaaa", "aaaaaaab", "b"];
    let places: Vec<_> = texts.iter().map(|text| place(Value::String(text))).collect();
    assert!(places.is_sorted());
    // Cut at eight bytes: both went on.
    assert_eq!(places[5], places[6]);
    for pair in places.windows(2).filter(|pair| pair[0] != pair[1]) {
        assert!([&pair[0][..], b"\xFF\xFF"].concat() < [&pair[1][..], b"\0"].concat());
    }
}

#[test]
fn doubles_sort_as_numbers_and_both_zeros_are_one() {
    let numbers = [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, 0.0, 5e-324, 1.0, f64::INFINITY];
    assert!(numbers.map(|number| place(Value::Double(number))).is_sorted_by(|a, b| a < b));
    assert_eq!(place(Value::Double(-0.0)), place(Value::Double(0.0)));
    assert!(place(Value::Double(f64::INFINITY)) < place(Value::Double(f64::NAN)));
}

#[test]
fn what_is_no_value_is_told() {
    for bytes in [&b""[..], b"\x01", b"\x38\0\0\0", b"\x48abc", b"\x48a\0", b"\x48a\0\x01", b"\x18"]
    {
        assert_eq!(split_value(bytes), None, "{bytes:?}");
    }
    for bytes in [&b"\x18\x02"[..], b"\x05\0", b"\x48a\0\0b", b"\x48\xEE\x80\x80\0\0"] {
        assert_eq!(decode(bytes), None, "{bytes:?}");
    }
}

#[test]
fn the_next_prefix_carries() {
    assert_eq!(after_prefix(b"a\x01"), b"a\x02");
    assert_eq!(after_prefix(b"a\xFF\xFF"), b"b");
}

proptest! {
    #[test]
    fn values_are_read_back(value in value(), behind in prop::collection::vec(any::<u8>(), 0..4)) {
        let mut bytes = place(value.as_value());
        let length = bytes.len();
        bytes.extend_from_slice(&behind);
        let (own, rest) = split_value(&bytes).unwrap();
        prop_assert_eq!(own.len(), length);
        prop_assert_eq!(rest, &behind[..]);
        match (decode(own).unwrap(), &value) {
            (Decoded::Cut(EdmType::String, read), Literal::String(text)) => {
                let mut ordered = Vec::new();
                push_ordered(&mut ordered, text);
                prop_assert!(ordered.starts_with(&read) && read.len() == MAX && ordered.len() > MAX);
            }
            (Decoded::Cut(EdmType::Binary, read), Literal::Binary(bytes)) => {
                prop_assert!(bytes.starts_with(&read) && read.len() == MAX && bytes.len() > MAX);
            }
            (Decoded::Value(Literal::Double(read)), Literal::Double(value)) if value.is_nan() => {
                prop_assert!(read.is_nan());
            }
            (Decoded::Value(read), value) => prop_assert_eq!(&read, value),
            (read, _) => prop_assert!(false, "{:?} became {:?}", value, read),
        }
    }

    #[test]
    fn texts_sort_as_the_service_does(a in "[ab\0\u{e000}\u{10000}]{0,6}", b in "[ab\0\u{e000}\u{10000}]{0,6}") {
        let cut = |text: &str| {
            let mut ordered = Vec::new();
            push_ordered(&mut ordered, text);
            ordered.len() > MAX
        };
        prop_assume!(!cut(&a) && !cut(&b));
        let order = place(Value::String(&a)).cmp(&place(Value::String(&b)));
        prop_assert_eq!(order, compare_text(&a, &b));
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        if let Some((own, _)) = split_value(&bytes) {
            let _ = decode(own);
        }
        let _ = decode(&bytes);
    }
}
