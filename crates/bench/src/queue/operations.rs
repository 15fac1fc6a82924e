//! The operations on queues that loads are made of. Each checks that it got what it asked for.

use memchr::memmem;

use super::message::{self, TEXT_BYTES};
use crate::request::{Client, Failure, XML};

/// Messages that one Get Messages may ask for.
pub const CLAIM_MAX: u64 = 32;
/// What is claimed or put out of sight does not come back while it is measured, and does not expire before it would.
pub const HIDDEN_SECONDS: u64 = 6 * 24 * 3600;

const MESSAGE: &[u8] = b"<QueueMessage>";
const ID: &[u8] = b"<MessageId>";
const RECEIPT: &[u8] = b"<PopReceipt>";

/// What it takes to delete a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    id: Box<str>,
    /// As it stands in a query.
    receipt: Box<str>,
}

impl Client {
    /// Makes a queue, if it is not there.
    pub async fn create_queue(&mut self, queue: &str) -> Result<(), Failure> {
        self.start(queue);
        match self.send("PUT", XML, "", "").await? {
            201 | 204 => Ok(()),
            status => Err(self.refused(status)),
        }
    }

    pub async fn clear_messages(&mut self, queue: &str) -> Result<(), Failure> {
        self.start_messages(queue);
        self.expect(204, "DELETE", XML, "", "").await
    }

    /// Puts a message that is visible after so many seconds.
    pub async fn put_message(
        &mut self,
        queue: &str,
        text: &[u8],
        hidden_seconds: u64,
    ) -> Result<(), Failure> {
        self.start_messages(queue);
        if hidden_seconds > 0 {
            self.option("visibilitytimeout", itoa::Buffer::new().format(hidden_seconds));
        }
        message::push_document(&mut self.body, text);
        self.expect(201, "POST", XML, XML, "").await?;
        match memmem::find(self.connection.body(), RECEIPT).is_some() {
            true => Ok(()),
            false => Err(Failure::Wrong("a message was put without a receipt".to_owned())),
        }
    }

    /// Gets up to so many messages and hides them; gives how many there were.
    pub async fn claim(&mut self, queue: &str, messages_max: u64) -> Result<u64, Failure> {
        self.start_messages(queue);
        if messages_max > 1 {
            self.option("numofmessages", itoa::Buffer::new().format(messages_max));
        }
        self.option("visibilitytimeout", itoa::Buffer::new().format(HIDDEN_SECONDS));
        self.expect(200, "GET", XML, "", "").await?;
        self.messages_in_body()
    }

    /// Looks at the first message.
    pub async fn peek(&mut self, queue: &str) -> Result<(), Failure> {
        self.start_messages(queue);
        self.option("peekonly", "true");
        self.expect(200, "GET", XML, "", "").await?;
        match self.messages_in_body()? {
            1 => Ok(()),
            found => Err(miscounted(found, 1)),
        }
    }

    /// Asks a queue for a message that has none.
    pub async fn poll_in_vain(&mut self, queue: &str) -> Result<(), Failure> {
        match self.claim(queue, 1).await? {
            0 => Ok(()),
            found => Err(miscounted(found, 0)),
        }
    }

    pub async fn delete_message(&mut self, queue: &str, message: &Claimed) -> Result<(), Failure> {
        self.start(&format!("{queue}/messages/{}", message.id));
        self.option("popreceipt", &message.receipt);
        self.expect(204, "DELETE", XML, "", "").await
    }

    /// The messages of the last answer.
    pub fn claimed(&self) -> Vec<Claimed> {
        let mut rest = self.connection.body();
        let mut claimed = Vec::new();
        while let Some((id, after)) = next_element(rest, ID)
            && let Some((receipt, after)) = next_element(after, RECEIPT)
        {
            claimed.push(Claimed { id: id.into(), receipt: encoded(receipt).into() });
            rest = after;
        }
        claimed
    }

    fn start_messages(&mut self, queue: &str) {
        self.start(queue);
        self.path.push_str("/messages");
    }

    /// How many messages an answer has, all of them with their texts.
    fn messages_in_body(&self) -> Result<u64, Failure> {
        let body = self.connection.body();
        let found = memmem::find_iter(body, MESSAGE).count();
        if body.len() < found * TEXT_BYTES {
            return Err(Failure::Wrong(format!("{found} messages in {} bytes", body.len())));
        }
        Ok(found as u64)
    }
}

pub fn miscounted(found: u64, expected: u64) -> Failure {
    Failure::Wrong(format!("{found} messages where {expected} were expected"))
}

/// The text of the first element of this kind, and what comes behind it.
fn next_element<'a>(document: &'a [u8], start: &[u8]) -> Option<(&'a str, &'a [u8])> {
    let from = memmem::find(document, start)? + start.len();
    let length = memchr::memchr(b'<', &document[from..])?;
    let (text, after) = document[from..].split_at(length);
    Some((std::str::from_utf8(text).ok()?, after))
}

/// Base64 as it stands in a query.
fn encoded(base64: &str) -> String {
    base64.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_one_after_the_other() {
        let document = b"<QueueMessage><MessageId>7</MessageId><PopReceipt>a+/=</PopReceipt>";
        let (id, rest) = next_element(document, ID).unwrap();
        assert_eq!((id, next_element(rest, RECEIPT).unwrap().0), ("7", "a+/="));
        assert_eq!(encoded("a+/="), "a%2B%2F%3D");
        assert!(next_element(rest, ID).is_none());
    }
}
