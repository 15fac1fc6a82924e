//! The order of headers in a string to sign: that of words, not of bytes.
//!
//! The service sorts names as .NET sorts words, and current clients imitate it. Punctuation stands before digits, digits
//! before letters, and a dash or an apostrophe counts only where nothing else differs: `x-ms-meta-a_` comes before
//! `x-ms-meta-a1`, which in bytes it does not. Older clients sort by bytes, so verifiers try both.

use std::cmp::Ordering;

/// Where a name ends, it weighs more than nothing and less than anything.
const END: u16 = 1;

/// Compares two names in the order of the service.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    letters(one)
        .cmp(letters(other))
        .then_with(|| dashes(one).cmp(dashes(other)))
        // Names that HTTP does not know.
        .then_with(|| one.cmp(other))
}

fn letters(name: &str) -> impl Iterator<Item = u16> {
    name.bytes().map(weight).filter(|weight| *weight != 0).chain([END])
}

fn dashes(name: &str) -> impl Iterator<Item = u16> {
    name.bytes().map(dash_weight).chain([END])
}

/// What a character weighs at first sight; nothing for those that count later or never.
fn weight(byte: u8) -> u16 {
    const DIGITS: [u16; 10] =
        [0xd03, 0xd1a, 0xd1c, 0xd1e, 0xd20, 0xd22, 0xd24, 0xd26, 0xd28, 0xd2a];
    const LETTERS: [u16; 26] = [
        0xe02, 0xe09, 0xe0a, 0xe1a, 0xe21, 0xe23, 0xe25, 0xe2c, 0xe32, 0xe35, 0xe36, 0xe48, 0xe51,
        0xe70, 0xe7c, 0xe7e, 0xe89, 0xe8a, 0xe91, 0xe99, 0xe9f, 0xea2, 0xea4, 0xea6, 0xea7, 0xea9,
    ];
    match byte {
        b'0'..=b'9' => DIGITS[usize::from(byte - b'0')],
        b'a'..=b'z' => LETTERS[usize::from(byte - b'a')],
        b'A'..=b'Z' => LETTERS[usize::from(byte - b'A')],
        b'!' => 0x71c,
        b'#' => 0x71f,
        b'$' => 0x721,
        b'%' => 0x723,
        b'&' => 0x725,
        b'*' => 0x72d,
        b'.' => 0x733,
        b'^' => 0x743,
        b'_' => 0x744,
        b'`' => 0x748,
        b'|' => 0x74c,
        b'~' => 0x750,
        b'+' => 0x803,
        _ => 0,
    }
}

/// What a character weighs where two names have the same letters. One that weighs nothing sorts first, so the name
/// whose dash stands later does.
fn dash_weight(byte: u8) -> u16 {
    match byte {
        b'\'' => 0x8012,
        b'-' => 0x8212,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_sort_as_the_service_sorts_them() {
        let sorted = [
            "x-ms-blob-type",
            "x-ms-date",
            "x-ms-meta",
            "x-ms-meta-!",
            "x-ms-meta-_",
            "x-ms-meta-0",
            "x-ms-meta-a",
            "x-ms-meta-a_",
            "x-ms-meta-a0",
            "x-ms-meta-a1",
            "x-ms-meta-aa",
            "x-ms-meta-ab",
            "x-ms-meta-a-b",
            "x-ms-meta-a-bc",
            "x-ms-meta-b",
            "x-ms-range",
            "x-ms-version",
        ];
        let mut shuffled = sorted;
        shuffled.reverse();
        shuffled.sort_by(|one, other| compare(one, other));
        assert_eq!(shuffled, sorted);
    }

    /// The comparison of the Python and JavaScript clients, character by character in two passes.
    fn as_clients_do(one: &[u8], other: &[u8]) -> Ordering {
        for (last, weight) in [(false, weight as fn(u8) -> u16), (true, dash_weight)] {
            let (mut i, mut j) = (0, 0);
            loop {
                if last && i != j {
                    return j.cmp(&i);
                }
                let left = one.get(i).map_or(END, |byte| weight(*byte));
                let right = other.get(j).map_or(END, |byte| weight(*byte));
                match (left, right) {
                    (END, END) => break,
                    _ if left == right => (i, j) = (i + 1, j + 1),
                    (0, _) => i += 1,
                    (_, 0) => j += 1,
                    _ => return left.cmp(&right),
                }
            }
        }
        Ordering::Equal
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_clients(one in "[-'_!+.a-c01]{0,6}", other in "[-'_!+.a-c01]{0,6}") {
            let expected = as_clients_do(one.as_bytes(), other.as_bytes());
            prop_assert_eq!(compare(&one, &other), expected);
            prop_assert_eq!(expected == Ordering::Equal, one == other);
        }
    }
}
