//! Continuation tokens: where the next page starts, as text that every client carries back
//! unharmed.
//!
//! A token is `1!<length>!<base64>` over the UTF-8 of the next key to return. Clients join a pair
//! of tokens with a blank or a semicolon and stop at an empty one, so the alphabet has neither and
//! an empty key is `1!0!`. Tokens are not signed: they say no more than a filter could, and a
//! decoded key is checked like any other. Those for a place in an index that is read as a table are
//! of the same form over bytes; see [`ViewPosition`].

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::auth::AccountKey;
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::table::names::{KEY_UNITS_MAX, TableName, key_problem};

/// The headers that carry the next page's place.
pub const NEXT_PARTITION_KEY: &str = "x-ms-continuation-nextpartitionkey";
pub const NEXT_ROW_KEY: &str = "x-ms-continuation-nextrowkey";
pub const NEXT_TABLE_NAME: &str = "x-ms-continuation-nexttablename";

/// The version of the form; the service has no other.
const PREFIX: &str = "1!";
/// Three UTF-8 bytes per UTF-16 unit at most, four characters of base64 per three bytes.
pub(crate) const TOKEN_BASE64_MAX: usize = KEY_UNITS_MAX * 4;
/// A position in an index: four parts and an entity key, escaped, and what stands before it.
const POSITION_BASE64_MAX: usize = 16 * 1024;
/// First byte of the token of a position that everybody may read who has it.
const OPEN: u8 = 1;
/// First byte of one that its holder must not read.
const SEALED: u8 = 2;
/// What is sealed is filled up to a multiple of this: its length says nothing of the row.
const SEALED_BYTES_STEP: usize = 256;
/// The service puts a time behind a table name, divided by this character.
const TABLE_NAME_END: char = '\u{1}';

/// Base64 without the characters that need escaping in a URL; padding is `-`, written by hand.
const BASE64: GeneralPurpose = {
    let symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789*_";
    let config = GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone);
    match Alphabet::new(symbols) {
        Ok(alphabet) => GeneralPurpose::new(&alphabet, config),
        Err(_) => panic!("the alphabet has 64 different symbols"),
    }
};

/// The first entity of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityContinuation {
    pub partition_key: String,
    /// Absent when the page starts with the first entity of the partition.
    pub row_key: Option<String>,
}

impl EntityContinuation {
    /// Reads `NextPartitionKey` and `NextRowKey`. An empty value means absent, as some clients send
    /// it.
    ///
    /// # Errors
    /// 400 `InvalidInput` on a token that was not made here, and on a row key without a partition
    /// key.
    pub fn from_query(
        next_partition_key: Option<&str>,
        next_row_key: Option<&str>,
    ) -> Result<Option<Self>> {
        let present = |token: &&str| !token.is_empty();
        let partition_key = next_partition_key.filter(present).map(decode_key).transpose()?;
        let row_key = next_row_key.filter(present).map(decode_key).transpose()?;
        match (partition_key, row_key) {
            (Some(partition_key), row_key) => Ok(Some(Self { partition_key, row_key })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(undecodable()),
        }
    }
}

/// Reads `NextTableName`; an empty value means absent.
///
/// # Errors
/// 400 `InvalidInput` on a token that was not made here.
pub fn table_from_query(next_table_name: Option<&str>) -> Result<Option<TableName<'static>>> {
    let Some(token) = next_table_name.filter(|token| !token.is_empty()) else { return Ok(None) };
    let mut name = decode(token)?;
    if let Some(end) = name.find(TABLE_NAME_END) {
        name.truncate(end);
    }
    TableName::parse_addressed(name).map(Some).map_err(|error| undecodable().caused_by(error))
}

/// A place in an index that is read as a table, and which index it is a place in: another one has other places, though it
/// may be read under the same name.
///
/// For one who may see a part of the rows the token is sealed: the next row may be one that is not there for him.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewPosition {
    pub table: u64,
    pub index: u16,
    /// The key of a row behind the number of the index.
    pub row: Vec<u8>,
}

impl ViewPosition {
    /// Reads what [`Self::encode`] and, with keys, what [`Self::seal`] wrote from `NextPartitionKey`; an empty value means
    /// absent.
    ///
    /// # Errors
    /// 400 `InvalidInput` on a token that was not made here, or not for somebody with these rights.
    pub fn from_query(
        next_partition_key: Option<&str>,
        sealed_with: Option<&[AccountKey]>,
    ) -> Result<Option<Self>> {
        let token = next_partition_key.filter(|token| !token.is_empty());
        token.map(|token| Self::read(token, sealed_with).ok_or_else(undecodable)).transpose()
    }

    /// Whether a token has the form of one for a position; more than that is not known without the index.
    pub fn is_token(next_partition_key: Option<&str>) -> bool {
        let bytes = next_partition_key.and_then(|token| decode_bytes(token, POSITION_BASE64_MAX));
        matches!(bytes.as_deref(), Some([OPEN | SEALED, ..]))
    }

    /// The token.
    pub fn encode(&self) -> String {
        let bytes = self.bytes();
        assert!(bytes.len() <= POSITION_BASE64_MAX / 4 * 3, "a position has a few thousand bytes");
        encode_bytes(&bytes)
    }

    /// The token for somebody who must not read it.
    pub fn seal(&self, key: &AccountKey) -> String {
        let mut bytes = self.bytes();
        let padding = bytes.len().next_multiple_of(SEALED_BYTES_STEP) - bytes.len();
        bytes.resize(bytes.len() + padding, 0);
        bytes.push(u8::try_from(padding).expect("it is less than a step"));
        let sealed = [&[SEALED][..], &key.seal(&bytes)].concat();
        assert!(sealed.len() <= POSITION_BASE64_MAX / 4 * 3, "a position has a few thousand bytes");
        encode_bytes(&sealed)
    }

    fn bytes(&self) -> Vec<u8> {
        let (table, index) = (self.table.to_be_bytes(), self.index.to_be_bytes());
        [&[OPEN], &table[..], &index, &self.row].concat()
    }

    fn read(token: &str, sealed_with: Option<&[AccountKey]>) -> Option<Self> {
        let bytes = decode_bytes(token, POSITION_BASE64_MAX)?;
        let Some(keys) = sealed_with else { return Self::from_bytes(&bytes) };
        let sealed = bytes.strip_prefix(&[SEALED])?;
        let opened = keys.iter().find_map(|key| key.open(sealed))?;
        let (padding, padded) = opened.split_last()?;
        Self::from_bytes(&padded[..padded.len().checked_sub(usize::from(*padding))?])
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (table, rest) = bytes.strip_prefix(&[OPEN])?.split_first_chunk()?;
        let (index, row) = rest.split_first_chunk()?;
        let (table, index) = (u64::from_be_bytes(*table), u16::from_be_bytes(*index));
        Some(Self { table, index, row: row.to_vec() })
    }
}

/// The token for a partition key, a row key or a table name.
pub fn encode(key: &str) -> String {
    // IMPORTANT: the reader refuses longer keys, so writing one would end a client's paging
    // half-way.
    assert!(key.len() <= KEY_UNITS_MAX * 3, "a stored key has at most {KEY_UNITS_MAX} units");
    encode_bytes(key.as_bytes())
}

fn encode_bytes(key: &[u8]) -> String {
    let length = key.len().div_ceil(3) * 4;
    let mut token = String::with_capacity(PREFIX.len() + 5 + length);
    token.push_str(PREFIX);
    token.push_str(itoa::Buffer::new().format(length));
    token.push('!');
    let padded = token.len() + length;
    BASE64.encode_string(key, &mut token);
    token.extend(std::iter::repeat_n('-', padded - token.len()));
    token
}

fn decode_key(token: &str) -> Result<String> {
    let key = decode(token)?;
    match key_problem(&key) {
        None => Ok(key),
        Some(_) => Err(undecodable()),
    }
}

fn decode(token: &str) -> Result<String> {
    decode_text(token).ok_or_else(undecodable)
}

fn decode_text(token: &str) -> Option<String> {
    String::from_utf8(decode_bytes(token, TOKEN_BASE64_MAX)?).ok()
}

fn decode_bytes(token: &str, base64_max: usize) -> Option<Vec<u8>> {
    let (length, encoded) = token.strip_prefix(PREFIX)?.split_once('!')?;
    let is_canonical = encoded.len() <= base64_max
        && encoded.len().is_multiple_of(4)
        && length == itoa::Buffer::new().format(encoded.len());
    if !is_canonical {
        return None;
    }
    let unpadded = encoded.trim_end_matches('-');
    if encoded.len() - unpadded.len() > 2 {
        return None;
    }
    BASE64.decode(unpadded).ok()
}

fn undecodable() -> StorageError {
    ErrorCode::InvalidInput.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn recorded_tokens() {
        // Wire reference 7.
        for (key, token) in [
            ("pkc12a1338", "1!16!cGtjMTJhMTMzOA--"),
            ("rk801016e812345", "1!20!cms4MDEwMTZlODEyMzQ1"),
            ("", "1!0!"),
        ] {
            assert_eq!(encode(key), token);
            assert_eq!(decode(token).unwrap(), key);
        }
    }

    #[test]
    fn a_row_key_may_be_absent_but_not_alone() {
        let read = EntityContinuation::from_query;
        let (pk, rk) = (encode("p"), encode(""));
        assert_eq!(read(None, None).unwrap(), None);
        assert_eq!(read(Some(""), Some("")).unwrap(), None);
        let expected = EntityContinuation { partition_key: "p".into(), row_key: None };
        assert_eq!(read(Some(&pk), None).unwrap(), Some(expected));
        let expected = EntityContinuation { partition_key: "p".into(), row_key: Some("".into()) };
        assert_eq!(read(Some(&pk), Some(&rk)).unwrap(), Some(expected));
        assert_eq!(read(None, Some(&rk)).unwrap_err().code(), ErrorCode::InvalidInput);
    }

    #[test]
    fn table_tokens_may_carry_a_time() {
        let token = encode("mytable\u{1}01d61b9e0a3a6e4c");
        assert_eq!(table_from_query(Some(&token)).unwrap().unwrap().as_str(), "mytable");
        let token = encode("mytable");
        assert_eq!(table_from_query(Some(&token)).unwrap().unwrap().as_str(), "mytable");
        assert_eq!(table_from_query(None).unwrap(), None);
        assert!(table_from_query(Some(&encode("no table"))).is_err());
    }

    #[test]
    fn positions_come_back_and_sealed_ones_say_nothing() {
        let keys = ["one", "two"].map(|secret| AccountKey::from_bytes(secret.as_bytes()));
        let read = |token: &str, keys| ViewPosition::from_query(Some(token), keys);
        for length in [0, 1, 244, 245, 246, 3000] {
            let position = ViewPosition { table: 7, index: 3, row: vec![0xAB; length] };
            let open = position.encode();
            assert_eq!(read(&open, None).unwrap().as_ref(), Some(&position));
            let sealed = position.seal(&keys[1]);
            assert_eq!(read(&sealed, Some(&keys)).unwrap().as_ref(), Some(&position));
            let bytes = decode_bytes(&sealed, POSITION_BASE64_MAX).unwrap();
            assert!(!bytes.windows(2).any(|pair| pair == [0xAB, 0xAB]) || length > 2000);
            // None is read as the other, nor with another key.
            assert!(read(&open, Some(&keys)).is_err());
            assert!(read(&sealed, None).is_err());
            assert!(read(&sealed, Some(&keys[..1])).is_err());
            assert!([open, sealed].iter().all(|token| ViewPosition::is_token(Some(token))));
        }
        let of_length = |length| ViewPosition { table: 7, index: 3, row: vec![1; length] };
        assert_eq!(of_length(9).seal(&keys[0]).len(), of_length(90).seal(&keys[0]).len());
        assert_eq!(read("", None).unwrap(), None);
        for token in ["x", "1!0!", "1!4!AQAA", &encode("pk")] {
            assert!(read(token, None).is_err(), "{token}");
        }
        assert!(!ViewPosition::is_token(Some(&encode("pk"))));
    }

    #[test]
    fn foreign_tokens_are_refused() {
        let too_long = encode(&"x".repeat(600));
        let control = encode("a\u{0}b");
        for token in [
            "x",
            "1!",
            "1!4",
            "2!4!cGs-",
            "1!5!cGs-",
            "1!04!cGs-",
            "1!3!cGs",
            "1!4!cGs=",
            "1!4!----",
            "1!4!c---",
            "1!4!cGt-",
            "1!4!a b-",
            "1!4!__--",
            "cGs=",
            too_long.as_str(),
            control.as_str(),
        ] {
            let error = EntityContinuation::from_query(Some(token), None).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::InvalidInput, 400), "{token}");
        }
    }

    proptest! {
        #[test]
        fn keys_come_back(key in "[^/\\\\#?\\p{Cc}]{0,256}") {
            let token = encode(&key);
            let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"!*_-".contains(&byte);
            prop_assert!(token.bytes().all(is_safe));
            prop_assert_eq!(decode_key(&token).unwrap(), key);
        }

        #[test]
        fn decoding_never_panics(token in any::<String>(), encoded in "[A-Za-z0-9*_-]{0,64}") {
            let _ = decode_key(&token);
            let _ = table_from_query(Some(&token));
            let _ = ViewPosition::from_query(Some(&token), None);
            let _ = decode_key(&format!("1!{}!{encoded}", encoded.len()));
        }
    }
}
