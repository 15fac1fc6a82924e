//! Pop receipts: proof of the last time that a message was put, got or updated.
//!
//! As on the live service (section 6.2), base64 of little-endian fields: `u32` kind, `u32` 3, `u32` 0, `u64` the
//! instant of the next visibility as a FILETIME and, after Update, `u32` the dequeue count. Together with the message's id
//! that is where the message is stored, so that a receipt which is out of date leads nowhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::ticks::Ticks;

const CONSTANTS: [u8; 8] = [3, 0, 0, 0, 0, 0, 0, 0];
const SHORT_BYTES: usize = 20;
const LONG_BYTES: usize = 24;

/// What a receipt says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopReceipt {
    pub next_visible: Ticks,
    pub made_by: MadeBy,
}

/// What made the receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeBy {
    PutOrGet,
    Update { dequeue_count: u32 },
}

impl PopReceipt {
    /// Reads a receipt as it was sent; `None` for one that was never issued.
    ///
    /// # Errors
    /// 400 `InvalidQueryParameterValue` for what is not base64.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let bytes = STANDARD.decode(text).map_err(|_| {
            StorageError::new(ErrorCode::InvalidQueryParameterValue)
                .element("QueryParameterName", "popreceipt")
                .element("QueryParameterValue", text.to_owned())
                .element("Reason", "Invalid pop receipt format")
        })?;
        Ok(Self::from_bytes(&bytes))
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first_chunk()?;
        let rest = rest.strip_prefix(&CONSTANTS)?;
        let (filetime, rest) = rest.split_first_chunk()?;
        let made_by = match (u32::from_le_bytes(*kind), rest) {
            (2, []) => MadeBy::PutOrGet,
            (3, rest) => {
                MadeBy::Update { dequeue_count: u32::from_le_bytes(rest.try_into().ok()?) }
            }
            _ => return None,
        };
        let filetime = i64::try_from(u64::from_le_bytes(*filetime)).ok()?;
        let next_visible = Ticks(filetime.checked_add(Ticks::MIN_STORED.0)?);
        (next_visible <= Ticks::MAX).then_some(Self { next_visible, made_by })
    }

    /// Appends the text.
    pub fn write(self, out: &mut String) {
        let filetime = (self.next_visible.0 - Ticks::MIN_STORED.0).max(0);
        let mut bytes = [0; LONG_BYTES];
        bytes[4..12].copy_from_slice(&CONSTANTS);
        bytes[12..20].copy_from_slice(&filetime.to_le_bytes());
        let length = match self.made_by {
            MadeBy::PutOrGet => {
                bytes[0] = 2;
                SHORT_BYTES
            }
            MadeBy::Update { dequeue_count } => {
                bytes[0] = 3;
                bytes[20..].copy_from_slice(&dequeue_count.to_le_bytes());
                LONG_BYTES
            }
        };
        STANDARD.encode_string(&bytes[..length], out);
    }
}

impl std::fmt::Display for PopReceipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::with_capacity(32);
        self.write(&mut text);
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Ticks {
        Ticks::parse_iso(text).unwrap()
    }

    /// The recorded ones of section 6.2, and those of section 12.
    #[test]
    fn receipts_are_those_of_the_live_service() {
        for (text, next_visible, made_by) in [
            ("AgAAAAMAAAAAAAAABbFNGEU81QE=", "2019-07-17T02:12:33.5452421Z", MadeBy::PutOrGet),
            (
                "AwAAAAMAAAAAAAAA1PdRGEU81QEBAAAA",
                "2019-07-17T02:12:33.5732692Z",
                MadeBy::Update { dequeue_count: 1 },
            ),
            ("AgAAAAMAAAAAAAAAB+eJBMJ13QE=", "2026-11-16T12:00:05.1234567Z", MadeBy::PutOrGet),
        ] {
            let receipt = PopReceipt { next_visible: at(next_visible), made_by };
            assert_eq!(receipt.to_string(), text);
            assert_eq!(PopReceipt::parse(text).unwrap(), Some(receipt));
        }
    }

    #[test]
    fn what_is_not_base64_is_told_with_its_value() {
        for text in ["invalid", "AgAAAAMAAAAAAAAABbFNGEU81QE=Random", "a b=", "AgAA\u{e9}"] {
            let error = PopReceipt::parse(text).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidQueryParameterValue);
            let elements: Vec<_> = error.elements().collect();
            assert_eq!(elements[1], ("QueryParameterValue", text));
            assert_eq!(elements[2], ("Reason", "Invalid pop receipt format"));
        }
    }

    #[test]
    fn what_was_never_issued_is_no_receipt() {
        for text in ["", "AAAA", "AgAAAAMAAAAAAAAABbFNGEU81QEBAAAA", "AwAAAAMAAAAAAAAA1PdRGEU81QE="]
        {
            assert_eq!(PopReceipt::parse(text).unwrap(), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn receipts_are_read_back(
            ticks in Ticks::MIN_STORED.0..=Ticks::MAX.0,
            dequeue_count in prop::option::of(any::<u32>()),
        ) {
            let made_by = dequeue_count
                .map_or(MadeBy::PutOrGet, |dequeue_count| MadeBy::Update { dequeue_count });
            let receipt = PopReceipt { next_visible: Ticks(ticks), made_by };
            prop_assert_eq!(PopReceipt::parse(&receipt.to_string()).unwrap(), Some(receipt));
        }

        #[test]
        fn any_text_and_any_bytes_are_handled(text: String, bytes: Vec<u8>) {
            let _ = PopReceipt::parse(&text);
            let _ = PopReceipt::parse(&STANDARD.encode(bytes));
        }
    }
}
