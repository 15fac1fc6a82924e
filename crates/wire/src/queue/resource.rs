//! The path of a request, taken apart: the service, a queue, its messages, or one message.

use std::borrow::Cow;

use super::names::QueueName;
use crate::error::Result;
use crate::error_code::ErrorCode;
use crate::uri::percent;

/// What a path addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourcePath<'a> {
    Service,
    Queue(QueueName<'a>),
    /// `/q/messages`
    Messages(QueueName<'a>),
    /// `/q/messages/ID`. The id is whatever the client wrote: what is none simply does not exist.
    Message(QueueName<'a>, Cow<'a, str>),
}

impl<'a> ResourcePath<'a> {
    /// Reads the raw path below the service root: empty, or with its leading slash. A slash at the end means nothing
    /// behind a queue; behind `messages` it begins an id, which is empty: whoever lost it must not clear the queue.
    ///
    /// # Errors
    /// 400 for a name that is not legal, 400 `InvalidUri` for a path that addresses nothing.
    pub fn parse(raw_path: &'a str) -> Result<Self> {
        let path = raw_path.strip_prefix('/').unwrap_or(raw_path);
        if matches!(path, "" | "/") {
            return Ok(Self::Service);
        }
        let mut segments = path.split('/').map(percent::decode_path);
        let mut next = || segments.next().transpose();
        let name = QueueName::parse(next()?.unwrap_or_default())?;
        let (messages, id, more) = (next()?, next()?, next()?);
        match (messages.as_deref(), id, more) {
            (None, ..) | (Some(""), None, _) => Ok(Self::Queue(name)),
            (Some("messages"), None, _) => Ok(Self::Messages(name)),
            (Some("messages"), Some(id), None) => Ok(Self::Message(name, id)),
            _ => Err(ErrorCode::InvalidUri.into()),
        }
    }

    /// The queue that a signature has to be for; empty at the root. What is no legal name is as it was sent: with escapes
    /// undone it could have line feeds, which would blur what is signed.
    pub fn signed_queue(raw_path: &str) -> Cow<'_, str> {
        let path = raw_path.strip_prefix('/').unwrap_or(raw_path);
        let raw = path.split('/').next().unwrap_or_default();
        let decoded = percent::decode_path(raw).ok();
        let name = decoded.filter(|decoded| QueueName::parse(decoded.as_ref()).is_ok());
        name.unwrap_or(Cow::Borrowed(raw))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> QueueName<'_> {
        QueueName::parse(text).unwrap()
    }

    #[test]
    fn paths_are_taken_apart() {
        let parse = |path| ResourcePath::parse(path).unwrap();
        for root in ["", "/", "//"] {
            assert_eq!(parse(root), ResourcePath::Service);
        }
        for queue in ["/orders", "/orders/", "/o%72ders"] {
            assert_eq!(parse(queue), ResourcePath::Queue(name("orders")));
        }
        assert_eq!(parse("/orders/messages"), ResourcePath::Messages(name("orders")));
        let message = ResourcePath::Message(name("orders"), "a b".into());
        assert_eq!(parse("/orders/messages/a%20b"), message);
        let nameless = ResourcePath::Message(name("orders"), "".into());
        assert_eq!(parse("/orders/messages/"), nameless);
        for (path, queue) in [
            ("/orders/messages", "orders"),
            ("/o%72ders/messages", "orders"),
            ("", ""),
            ("/Orders", "Orders"),
            ("/orders%0Areaders", "orders%0Areaders"),
            ("/orders%2Fx", "orders%2Fx"),
            ("/orders%zz", "orders%zz"),
        ] {
            assert_eq!(ResourcePath::signed_queue(path), queue, "{path}");
        }
    }

    #[test]
    fn paths_to_nothing_are_refused() {
        let code = |path| ResourcePath::parse(path).unwrap_err().code();
        for path in [
            "/orders/Messages",
            "/orders/other",
            "/orders/messages/a/b",
            "/orders/messages/a/",
            "/orders/messages//",
            "/orders//a",
            "/orders//",
        ] {
            assert_eq!(code(path), ErrorCode::InvalidUri, "{path}");
        }
        assert_eq!(code("/Orders/messages"), ErrorCode::InvalidResourceName);
        assert_eq!(code("/ab/messages"), ErrorCode::OutOfRangeInput);
        assert_eq!(code("/a%zz"), ErrorCode::InvalidInput);
    }

    proptest! {
        #[test]
        fn any_path_is_handled(path: String) {
            let _ = ResourcePath::parse(&path);
            let _ = ResourcePath::signed_queue(&path);
        }
    }
}
