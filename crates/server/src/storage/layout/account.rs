//! Accounts: `A . 0 . name`, the account's id.

use bytes::{BufMut, Bytes};

use super::{AccountId, Family, Key, KeyError, prefix};

pub(super) fn encode_key(name: &str) -> Bytes {
    let mut key = prefix(Family::Account, 0, name.len());
    key.put_slice(name.as_bytes());
    key.freeze()
}

pub(super) fn decode_key(id: u64, rest: &[u8]) -> Result<Key<'_>, KeyError> {
    match std::str::from_utf8(rest) {
        Ok(name) if id == 0 => Ok(Key::Account { name }),
        _ => Err(KeyError("it is no name of an account")),
    }
}

/// The id, little-endian.
pub(crate) fn encode(id: AccountId) -> Bytes {
    Bytes::copy_from_slice(&id.0.to_le_bytes())
}

pub(crate) fn decode(stored: &[u8]) -> Option<AccountId> {
    stored.try_into().ok().map(u64::from_le_bytes).map(AccountId)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::layout::tests::assert_key_round_trips;

    proptest! {
        #[test]
        fn keys_and_ids_are_read_back(name: String, id: u64) {
            assert_key_round_trips(&Key::Account { name: &name });
            prop_assert_eq!(decode(&encode(AccountId(id))), Some(AccountId(id)));
        }
    }

    #[test]
    fn what_is_no_account_is_told() {
        let expected = Err(KeyError("it is no name of an account"));
        assert_eq!(decode_key(1, b"name"), expected);
        assert_eq!(decode_key(0, b"\xff"), expected);
        assert_eq!(decode(b"short"), None);
    }
}
