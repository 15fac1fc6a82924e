//! The range of entities that a table token opens.
//!
//! Bounds are inclusive and compare by UTF-16 code unit, as keys sort. A row key bounds only the
//! rows of the partition it was given with: `spk=A&srk=5` opens the rest of `A` from `5` on, and
//! every later partition as a whole.

use std::cmp::Ordering;

use super::malformed;
use crate::error::Result;
use crate::table::stored::key::{SEPARATOR, compare_text, push_entity_key, push_ordered};

/// One end of a range; a row key cannot stand without its partition key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBound {
    pub partition_key: String,
    pub row_key: Option<String>,
}

/// The entities that a token may touch; without bounds, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRangeLimit {
    pub start: Option<KeyBound>,
    pub end: Option<KeyBound>,
}

impl KeyRangeLimit {
    /// Assembles the range from the values of `spk`, `srk`, `epk` and `erk`.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` for a row key without its partition key, and for a bound with a control
    /// character.
    pub fn new(
        start_partition_key: Option<&str>,
        start_row_key: Option<&str>,
        end_partition_key: Option<&str>,
        end_row_key: Option<&str>,
    ) -> Result<Self> {
        Ok(Self {
            start: KeyBound::new(start_partition_key, start_row_key)?,
            end: KeyBound::new(end_partition_key, end_row_key)?,
        })
    }

    pub(crate) fn is_unbounded(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let after_start = |bound: &KeyBound| bound.compare(partition_key, row_key).is_ge();
        let before_end = |bound: &KeyBound| bound.compare(partition_key, row_key).is_le();
        self.start.as_ref().is_none_or(after_start) && self.end.as_ref().is_none_or(before_end)
    }

    /// The range in the bytes of [`crate::table::stored::key`]: the first key in it and the first key after it, for scans.
    pub fn key_span(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let first = |bound: &KeyBound| {
            let mut key = Vec::new();
            let row_key = bound.row_key.as_deref().unwrap_or_default();
            push_entity_key(&mut key, &bound.partition_key, row_key);
            key
        };
        let after = |bound: &KeyBound| {
            let mut key = Vec::new();
            match &bound.row_key {
                // After this row.
                Some(row_key) => {
                    push_entity_key(&mut key, &bound.partition_key, row_key);
                    key.push(SEPARATOR);
                }
                // After all of this partition.
                None => {
                    push_ordered(&mut key, &bound.partition_key);
                    key.push(SEPARATOR + 1);
                }
            }
            key
        };
        (self.start.as_ref().map(first), self.end.as_ref().map(after))
    }

    pub(crate) fn start_partition_key(&self) -> Option<&str> {
        self.start.as_ref().map(|bound| bound.partition_key.as_str())
    }

    pub(crate) fn start_row_key(&self) -> Option<&str> {
        self.start.as_ref().and_then(|bound| bound.row_key.as_deref())
    }

    pub(crate) fn end_partition_key(&self) -> Option<&str> {
        self.end.as_ref().map(|bound| bound.partition_key.as_str())
    }

    pub(crate) fn end_row_key(&self) -> Option<&str> {
        self.end.as_ref().and_then(|bound| bound.row_key.as_deref())
    }
}

impl KeyBound {
    fn new(partition_key: Option<&str>, row_key: Option<&str>) -> Result<Option<Self>> {
        // No key has such a character, and the bytes of keys have no place for one: a scan of the range would not
        // be the range.
        let is_control = |character: char| character < ' ';
        if [partition_key, row_key].into_iter().flatten().any(|key| key.contains(is_control)) {
            return Err(malformed("a key bound has a control character"));
        }
        match (partition_key, row_key) {
            (Some(partition_key), row_key) => Ok(Some(Self {
                partition_key: partition_key.to_owned(),
                row_key: row_key.map(str::to_owned),
            })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(malformed("a row key bound has no partition key")),
        }
    }

    /// Where a key lies relative to this bound; without a row key the whole partition is on it.
    fn compare(&self, partition_key: &str, row_key: &str) -> Ordering {
        compare_text(partition_key, &self.partition_key).then_with(|| match &self.row_key {
            Some(bound) => compare_text(row_key, bound),
            None => Ordering::Equal,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;

    fn range(spk: &str, srk: &str, epk: &str, erk: &str) -> KeyRangeLimit {
        let some = |text| if text == "-" { None } else { Some(text) };
        KeyRangeLimit::new(some(spk), some(srk), some(epk), some(erk)).unwrap()
    }

    /// The table of the reference, section 10.5.
    #[test]
    fn bounds_are_inclusive_and_rows_belong_to_their_partition() {
        for (limit, key, inside) in [
            (range("-", "-", "-", "-"), ("", ""), true),
            (range("b", "-", "-", "-"), ("a", "z"), false),
            (range("b", "-", "-", "-"), ("b", ""), true),
            (range("-", "-", "b", "-"), ("b", "z"), true),
            (range("-", "-", "b", "-"), ("b\0", ""), false),
            (range("b", "5", "-", "-"), ("b", "4"), false),
            (range("b", "5", "-", "-"), ("b", "5"), true),
            (range("b", "5", "-", "-"), ("c", "1"), true),
            (range("-", "-", "b", "5"), ("b", "5"), true),
            (range("-", "-", "b", "5"), ("b", "6"), false),
            (range("-", "-", "b", "5"), ("a", "9"), true),
            (range("b", "5", "b", "5"), ("b", "5"), true),
            (range("b", "5", "b", "5"), ("b", "50"), false),
            (range("", "5", "-", "-"), ("", "4"), false),
            (range("-", "-", "", ""), ("", ""), true),
            (range("-", "-", "", ""), ("", "a"), false),
            // Ordinal, so upper case comes first; by code unit, so a surrogate pair sorts before
            // U+FFFD.
            (range("a", "-", "-", "-"), ("B", ""), false),
            (range("\u{FFFD}", "-", "-", "-"), ("\u{1F600}", ""), false),
        ] {
            assert_eq!(limit.contains(key.0, key.1), inside, "{limit:?} {key:?}");
        }
    }

    #[test]
    fn a_scan_of_the_range_is_the_range() {
        let keys = ["", " ", "a", "a ", "b", "b\u{FFFD}", "\u{1F600}", "\u{E000}"];
        let bounds = ["-", "", "a", "b", "\u{1F600}", "\u{E000}"];
        for spk in bounds {
            for epk in bounds {
                for (srk, erk) in [("-", "-"), ("", "a"), ("b", ""), ("\u{E000}", "\u{1F600}")] {
                    let of = |partition: &str, row: &'static str| {
                        if partition == "-" { "-" } else { row }
                    };
                    let limit = range(spk, of(spk, srk), epk, of(epk, erk));
                    let (lower, upper) = limit.key_span();
                    for (partition_key, row_key) in
                        keys.iter().flat_map(|pk| keys.map(|rk| (*pk, rk)))
                    {
                        let mut key = Vec::new();
                        push_entity_key(&mut key, partition_key, row_key);
                        let scanned = lower.as_ref().is_none_or(|lower| *lower <= key)
                            && upper.as_ref().is_none_or(|upper| key < *upper);
                        let expected = limit.contains(partition_key, row_key);
                        assert_eq!(scanned, expected, "{limit:?} {partition_key:?} {row_key:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_bound_with_a_control_character_is_refused() {
        for bound in ["\0", "a\u{1}b", "\u{1f}"] {
            for (pk, rk) in [(bound, ""), ("", bound)] {
                assert!(KeyRangeLimit::new(Some(pk), Some(rk), None, None).is_err(), "{bound:?}");
                assert!(KeyRangeLimit::new(None, None, Some(pk), Some(rk)).is_err(), "{bound:?}");
            }
        }
        range(" ", "\u{7f}", "\u{9f}", " ");
    }

    #[test]
    fn a_row_key_without_its_partition_key_is_refused() {
        for (srk, erk) in [(Some("1"), None), (None, Some("1"))] {
            let error = KeyRangeLimit::new(None, srk, None, erk).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::AuthenticationFailed, 403));
        }
    }

    #[test]
    fn the_bounds_can_be_read_back() {
        let limit = range("a", "1", "b", "-");
        assert_eq!(limit.start_partition_key(), Some("a"));
        assert_eq!(limit.start_row_key(), Some("1"));
        assert_eq!(limit.end_partition_key(), Some("b"));
        assert_eq!(limit.end_row_key(), None);
        assert!(!limit.is_unbounded());
        assert!(KeyRangeLimit::default().is_unbounded());
    }
}
