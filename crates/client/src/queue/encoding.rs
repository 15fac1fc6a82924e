//! How the bytes of a program become the text of a message.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tavola_wire::queue::answers::is_message_text;

use crate::core::error::{Result, conversion};

/// How messages are written and read. The service stores texts; those who send and those who receive have to agree on what
/// they mean.
///
/// ```
/// # fn main() -> tavola_client::Result<()> {
/// use tavola_client::queue::{MessageEncoding, QueueClient};
///
/// let orders = QueueClient::from_connection_string("UseDevelopmentStorage=true", "orders", None)?;
/// // As Azure Functions and the older .NET libraries do.
/// let orders = orders.with_encoding(MessageEncoding::Base64);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageEncoding {
    /// The text as it is: up to 65,536 bytes of UTF-8, without control characters.
    #[default]
    Text,
    /// Any bytes, up to 49,152 of them, in base64.
    Base64,
}

impl MessageEncoding {
    /// The text to send.
    pub(super) fn encode(self, body: &[u8]) -> Result<Cow<'_, str>> {
        match self {
            Self::Base64 => Ok(STANDARD.encode(body).into()),
            Self::Text => match std::str::from_utf8(body) {
                Ok(text) if is_message_text(text) => Ok(text.into()),
                _ => Err(conversion(
                    "a message of this encoding is a text without control characters; \
                     send other bytes with MessageEncoding::Base64",
                )),
            },
        }
    }

    /// The bytes that were sent.
    pub(super) fn decode(self, text: &str) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Text => Ok(text.as_bytes().into()),
            Self::Base64 => match STANDARD.decode(text.trim()) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(conversion(format!("the message is no base64: {error}"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for (encoding, body) in [
            (MessageEncoding::Text, "größer\r\n < & > \u{1f600}".as_bytes()),
            (MessageEncoding::Text, b""),
            (MessageEncoding::Base64, b"\0\xff\x01"),
            (MessageEncoding::Base64, b""),
        ] {
            let text = encoding.encode(body).unwrap();
            assert_eq!(encoding.decode(&text).unwrap(), body);
        }
    }

    #[test]
    fn what_cannot_be_sent_or_read_is_an_error() {
        assert!(MessageEncoding::Text.encode(b"\xff").is_err());
        assert!(MessageEncoding::Text.encode(b"a\0b").is_err());
        assert!(MessageEncoding::Base64.decode("no base64!").is_err());
    }
}
