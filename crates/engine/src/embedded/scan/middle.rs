//! A key about half-way between two.

use bytes::Bytes;

/// Bytes behind what two keys have in common that the middle is calculated from.
const WINDOW: usize = size_of::<u64>();

/// A key behind `first` and not behind `last`, half-way by their bytes; `None` if they are too close. How many rows lie on
/// either side it does not know: keys that are numbers or random are spread evenly, others are not.
pub(crate) fn middle(first: &[u8], last: &[u8]) -> Option<Bytes> {
    let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let (low, high) = (window(first, common), window(last, common));
    let half = high.checked_sub(low)? / 2;
    if half == 0 {
        return None;
    }
    let mut key = last.get(..common)?.to_vec();
    key.extend_from_slice(&(low + half).to_be_bytes());
    Some(key.into())
}

fn window(key: &[u8], from: usize) -> u64 {
    let mut bytes = [0; WINDOW];
    for (byte, of_key) in bytes.iter_mut().zip(&key[from..]) {
        *byte = *of_key;
    }
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::random;

    #[test]
    fn digits_are_halved() {
        let middle = middle(b"p00000", b"p00999").expect("there is one");
        assert!((&b"p00400"[..]..b"p00600").contains(&&middle[..]), "{middle:?}");
    }

    #[test]
    fn there_is_nothing_between_neighbours() {
        assert_eq!(middle(b"a", b"a"), None);
        assert_eq!(middle(b"b", b"a"), None);
        assert_eq!(middle(b"a", b"a\0"), None);
        assert_eq!(middle(b"", b""), None);
    }

    #[test]
    fn it_lies_between() {
        let mut state = 1;
        let mut key = || -> Vec<u8> {
            let length = random(&mut state) % 20;
            (0..length).map(|_| random(&mut state) as u8 % 3).collect()
        };
        for _ in 0..10_000 {
            let (a, b) = (key(), key());
            let (first, last) = if a < b { (a, b) } else { (b, a) };
            if let Some(middle) = middle(&first, &last) {
                assert!(first[..] < middle[..] && middle[..] <= last[..], "{first:?} {last:?}");
            }
        }
    }
}
