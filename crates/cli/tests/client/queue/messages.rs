//! Messages: sent, received, looked at, changed, deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};
use serde_json::json;
use tavola_client::queue::{
    MessageEncoding, MessageUpdate, PeekMessagesOptions, QueueClient, ReceiveMessagesOptions,
    SendMessageOptions, TimeToLive,
};
use tavola_client::{DateTime, ErrorCode, ErrorExt, StatusCode};

use super::received;
use crate::support::{Defect, TestQueue};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_message_goes_its_way() {
    let queue = TestQueue::create().await;
    let sent = queue.send_message("first", None).await.unwrap();
    assert_eq!(sent.status(), StatusCode::Created);
    assert!(sent.expires_at > sent.inserted_at);
    queue.send_message("second", None).await.unwrap();

    let options = PeekMessagesOptions { max_messages: Some(32), ..Default::default() };
    let seen = queue.peek_messages(Some(options)).await.unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].id.as_str(), seen[0].dequeue_count), (&*sent.receipt.message_id, 0));
    assert_eq!((seen[0].inserted_at, seen[0].expires_at), (sent.inserted_at, sent.expires_at));

    let options = ReceiveMessagesOptions { visibility_timeout: Some(HOUR), ..Default::default() };
    let mut first = queue.receive_messages(Some(options)).await.unwrap();
    assert_eq!(first.len(), 1, "one unless asked for more");
    let mut first = first.remove(0);
    assert_eq!((first.text().unwrap().as_ref(), first.dequeue_count), ("first", 1));
    assert!(first.next_visible_at > first.inserted_at);
    // The one that was received is hidden.
    assert_eq!(queue.peek_messages(None).await.unwrap()[0].text().unwrap(), "second");

    let stale = first.receipt.clone();
    let update = MessageUpdate::visible_after(Duration::ZERO).with_body("changed");
    queue.update_message(&mut first.receipt, update, None).await.unwrap();
    assert_ne!(first.receipt.pop_receipt, stale.pop_receipt);
    let error = queue.delete_message(&stale, None).await.unwrap_err();
    if !queue.account.has(Defect::StaleReceiptCode) {
        assert_eq!(error.service_error().unwrap().code(), "MessageNotFound");
    }
    assert!(!queue.delete_message_if_exists(&stale, None).await.unwrap());
    assert_eq!(received(&queue).await, ["second", "changed"]);
    queue.delete().await;
}

#[tokio::test]
async fn the_latest_receipt_deletes() {
    let queue = TestQueue::create().await;
    let mut sent = queue.send_message("x", None).await.unwrap();
    // The sender has a receipt, too. The text stays.
    let update = MessageUpdate::visible_after(Duration::ZERO);
    let updated = queue.update_message(&mut sent.receipt, update, None).await.unwrap();
    assert_eq!(updated.status(), StatusCode::NoContent);
    assert_eq!(queue.peek_messages(None).await.unwrap()[0].raw_text(), "x");
    assert!(queue.delete_message_if_exists(&sent.receipt, None).await.unwrap());
    assert!(!queue.delete_message_if_exists(&sent.receipt, None).await.unwrap());
    assert!(queue.peek_messages(None).await.unwrap().is_empty());
    // An id that got lost would mean all messages.
    queue.send_message("y", None).await.unwrap();
    sent.receipt.message_id.clear();
    assert!(queue.delete_message(&sent.receipt, None).await.is_err());
    assert_eq!(queue.get_properties(None).await.unwrap().approximate_message_count, 1);
    queue.delete().await;
}

#[tokio::test]
async fn texts_come_back_as_they_were() {
    let queue = TestQueue::create().await;
    let texts = [
        "",
        " ",
        " two  blanks ",
        "line\nline\r\nline\r\tend",
        "<a href=\"x\">&amp; 'b' ]]></a>",
        "größer \u{1f600} \u{fffd} \u{e000}",
        "+ %2B / = ?",
    ];
    for text in texts {
        queue.send_message(text, None).await.unwrap();
    }
    assert_eq!(received(&queue).await, texts);
    let error = queue.send_message("a\u{0}", None).await.unwrap_err();
    assert!(error.service_error().is_none(), "refused before it is sent: {error}");
    let error = queue.send_message("x".repeat(65_537), None).await.unwrap_err();
    assert_eq!(error.service_error().unwrap().status(), StatusCode::PayloadTooLarge);
    queue.send_message("x".repeat(65_536), None).await.unwrap();
    queue.delete().await;
}

#[tokio::test]
async fn bytes_and_types_travel_encoded() {
    let queue = TestQueue::create().await;
    let binary = queue.clone().with_encoding(MessageEncoding::Base64);
    let bytes: Vec<u8> = (0..=255).collect();
    binary.send_message(&bytes, None).await.unwrap();
    let order = json!({ "id": 17, "lines": ["a", "b"] });
    binary.send_json(&order, None).await.unwrap();
    queue.send_message("no base64!", None).await.unwrap();
    let options = ReceiveMessagesOptions { max_messages: Some(32), ..Default::default() };
    let messages = binary.receive_messages(Some(options)).await.unwrap();
    assert_eq!(messages[0].bytes().unwrap(), bytes);
    assert!(messages[0].text().is_err() && messages[0].json::<String>().is_err());
    assert_eq!(messages[1].json::<serde_json::Value>().unwrap(), order);
    // One that somebody else sent does not spoil the others.
    assert!(messages[2].bytes().is_err());
    assert_eq!(messages[2].raw_text(), "no base64!");
    queue.delete().await;
}

#[tokio::test]
async fn times_are_the_senders_choice() {
    let queue = TestQueue::create().await;
    let hidden = SendMessageOptions {
        visibility_timeout: Some(HOUR),
        time_to_live: Some(TimeToLive::For(2 * HOUR)),
        ..Default::default()
    };
    let sent = queue.send_message("later", Some(hidden)).await.unwrap();
    assert!(sent.next_visible_at > sent.inserted_at && sent.next_visible_at < sent.expires_at);
    let kept = SendMessageOptions { time_to_live: Some(TimeToLive::Forever), ..Default::default() };
    let forever = queue.send_message("now", Some(kept)).await.unwrap();
    assert_eq!(forever.expires_at, DateTime::parse_iso("9999-12-31T23:59:59Z").unwrap());
    assert_eq!(received(&queue).await, ["now"]);
    assert_eq!(queue.get_properties(None).await.unwrap().approximate_message_count, 2);
    // Parts of a second are a whole one, and not none.
    let short = ReceiveMessagesOptions {
        visibility_timeout: Some(Duration::from_millis(10)),
        ..Default::default()
    };
    assert!(queue.receive_messages(Some(short)).await.unwrap().is_empty());
    let wrong = SendMessageOptions {
        visibility_timeout: Some(HOUR),
        time_to_live: Some(TimeToLive::For(HOUR)),
        ..Default::default()
    };
    let error = queue.send_message("x", Some(wrong)).await.unwrap_err();
    assert_eq!(error.service_error().unwrap().code(), "InvalidQueryParameterValue");
    queue.clear_messages(None).await.unwrap();
    assert_eq!(queue.get_properties(None).await.unwrap().approximate_message_count, 0);
    queue.delete().await;
}

/// Loses the first answer, after the service has given it.
#[derive(Debug, Default)]
struct Lossy(AtomicBool);

#[async_trait]
impl Policy for Lossy {
    async fn send(
        &self,
        context: &Context,
        request: &mut Request,
        next: &[Arc<dyn Policy>],
    ) -> PolicyResult {
        let answer = next[0].send(context, request, &next[1..]).await;
        match self.0.swap(true, Ordering::SeqCst) {
            true => answer,
            false => Err(azure_core::Error::with_message(ErrorKind::Io, "the answer was lost")),
        }
    }
}

/// Each attempt is signed anew, and what is done twice is as the docs say.
#[tokio::test]
async fn a_lost_answer_is_asked_for_again() {
    let queue = TestQueue::create().await;
    let lossy = || {
        QueueClient::builder(queue.name())
            .connection_string(queue.account.connection_string())
            .policy(Arc::new(Lossy::default()))
            .build()
            .unwrap()
    };
    lossy().send_message("twice", None).await.unwrap();
    let options = PeekMessagesOptions { max_messages: Some(32), ..Default::default() };
    assert_eq!(lossy().peek_messages(Some(options)).await.unwrap().len(), 2);
    // The messages of the lost answer are hidden until their time is over.
    let message = lossy().receive_messages(None).await.unwrap().remove(0);
    assert!(queue.receive_messages(None).await.unwrap().is_empty());
    let error = lossy().delete_message(&message.receipt, None).await.unwrap_err();
    assert!(error.is_not_found() && error.may_have_been_applied());
    assert_eq!(queue.get_properties(None).await.unwrap().approximate_message_count, 1);
    queue.delete().await;
}

/// The service says what the limits are, and nothing panics before it is asked.
#[tokio::test]
async fn what_is_too_long_is_told() {
    let queue = TestQueue::create().await;
    let for_ever = Some(Duration::MAX);
    let options = SendMessageOptions { visibility_timeout: for_ever, ..Default::default() };
    let sent = queue.send_message("x", Some(options)).await.map(drop);
    let options = ReceiveMessagesOptions { visibility_timeout: for_ever, ..Default::default() };
    let received = queue.receive_messages(Some(options)).await.map(drop);
    let mut receipt = queue.send_message("x", None).await.unwrap().receipt;
    let update = MessageUpdate::visible_after(Duration::MAX);
    let updated = queue.update_message(&mut receipt, update, None).await.map(drop);
    for result in [sent, received, updated] {
        assert_eq!(result.unwrap_err().code(), Some(ErrorCode::OutOfRangeQueryParameterValue));
    }
    let time_to_live = Some(TimeToLive::For(Duration::MAX));
    let options = SendMessageOptions { time_to_live, deadline: for_ever, ..Default::default() };
    let sent = queue.send_message("x", Some(options)).await.unwrap();
    assert!(sent.expires_at > DateTime::parse_iso("2090-01-01").unwrap());
    queue.delete().await;
}
