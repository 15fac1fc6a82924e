//! The features in use: `O . 0 . features`, the names of what is stored that not every version knows.
//!
//! It is there from format 2 on. A version that does not know one of the names must not serve the rows: it would not keep
//! an index up to date, or not sweep what belongs to a queue.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Family, Key, KeyError, prefix};

const VERSION: u8 = 1;
const NAME: &[u8] = b"features";

pub(super) fn encode_key() -> Bytes {
    let mut key = prefix(Family::Store, 0, NAME.len());
    key.put_slice(NAME);
    key.freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'static>, KeyError> {
    if id == 0 && rest == NAME {
        Ok(Key::Features)
    } else {
        Err(KeyError("there is no such row of the whole store"))
    }
}

/// `version u8`, then for each name `length u8 . name`.
pub(crate) fn encode<'a>(names: impl IntoIterator<Item = &'a str>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(VERSION);
    for name in names {
        out.put_u8(u8::try_from(name.len()).expect("a feature has a short name"));
        out.put_slice(name.as_bytes());
    }
    out.freeze()
}

/// Reads back what [`encode`] wrote; `None` if the bytes cannot have come from it.
pub(crate) fn decode(stored: &[u8]) -> Option<Vec<&str>> {
    let (&VERSION, mut rest) = stored.split_first()? else { return None };
    let mut names = Vec::new();
    while let Some((length, more)) = rest.split_first() {
        let (name, more) = more.split_at_checked(usize::from(*length))?;
        names.push(std::str::from_utf8(name).ok()?);
        rest = more;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn names_are_read_back(names in prop::collection::vec("[a-z]{0,9}", 0..5)) {
            let stored = encode(names.iter().map(String::as_str));
            prop_assert_eq!(decode(&stored).unwrap(), names);
        }
    }

    #[test]
    fn the_bytes_are_those_of_format_2() {
        assert_key_round_trips(&Key::Features);
        assert_eq!(&encode_key()[..], b"O\0\0\0\0\0\0\0\0features");
        assert_eq!(&encode(["index", "queue"])[..], b"\x01\x05index\x05queue");
        assert_eq!(decode(b""), None);
        assert_eq!(decode(b"\x02\x05index"), None);
        assert_eq!(decode(b"\x01\x05inde"), None);
        assert!(decode_key(1, NAME).is_err());
        assert!(decode_key(0, b"leases").is_err());
    }
}
