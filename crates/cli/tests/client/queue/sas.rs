//! Signatures of queues that the client makes and uses.

use tavola_client::queue::{QueueClient, QueueSasSpec, QueueServiceClient};
use tavola_client::{
    AccessPolicy, AccountSasSpec, DateTime, ErrorExt, Permissions, ResourceTypes, SasCredential,
    SignedIdentifier, StatusCode,
};

use super::received;
use crate::support::{Defect, TestQueue};

fn expiry() -> DateTime {
    DateTime::parse_iso("2040-01-01").unwrap()
}

fn with_sas(queue: &TestQueue, token: &str) -> QueueClient {
    let endpoint = queue.account.queues().endpoint().to_string();
    QueueClient::new(&endpoint, queue.name(), SasCredential::new(token), None).unwrap()
}

fn is_denied<T: std::fmt::Debug>(result: tavola_client::Result<T>) -> bool {
    let error = result.unwrap_err();
    error.service_error().unwrap().status() == StatusCode::Forbidden
}

#[tokio::test]
async fn a_queue_signature_opens_what_it_says() {
    let queue = TestQueue::create().await;
    let token = |permissions| {
        queue.sas(&QueueSasSpec::new("any", permissions, expiry())).expect("the account's key")
    };
    let sender = with_sas(&queue, &token(Permissions::ADD));
    sender.send_message("from a sender", None).await.unwrap();
    assert!(is_denied(sender.receive_messages(None).await));
    assert!(is_denied(sender.peek_messages(None).await));
    let worker = with_sas(&queue, &token(Permissions::PROCESS | Permissions::UPDATE));
    assert!(is_denied(worker.send_message("x", None).await));
    assert_eq!(received(&worker).await, ["from a sender"]);
    assert!(is_denied(worker.clear_messages(None).await));
    assert!(worker.sas(&QueueSasSpec::new("q", Permissions::ADD, expiry())).is_err());

    // As a URL, with the queue in it.
    let endpoint = queue.account.queues().endpoint().to_string();
    let url = format!("{}/{}?{}", endpoint, queue.name(), token(Permissions::ADD));
    let sender = QueueClient::from_sas_url(&url, None).unwrap();
    assert_eq!(sender.name(), queue.name());
    sender.send_message("again", None).await.unwrap();
    queue.delete().await;
}

#[tokio::test]
async fn an_account_signature_opens_queues() {
    let queue = TestQueue::create().await;
    let service = queue.account.queues();
    let permissions = Permissions::READ | Permissions::LIST;
    let spec = AccountSasSpec::new(permissions, ResourceTypes::ALL, expiry());
    let url = format!("{}?{}", service.endpoint(), service.sas(&spec).unwrap());
    let reader = QueueServiceClient::from_sas_url(&url, None).unwrap();
    let reader = reader.queue_client(queue.name()).unwrap();
    assert!(reader.peek_messages(None).await.unwrap().is_empty());
    assert_eq!(reader.get_properties(None).await.unwrap().approximate_message_count, 0);
    assert!(is_denied(reader.send_message("x", None).await));
    queue.delete().await;
}

#[tokio::test]
async fn a_signature_by_policy_ends_with_the_policy() {
    let queue = TestQueue::create().await;
    let policy = SignedIdentifier {
        id: "senders".into(),
        access_policy: Some(AccessPolicy {
            start: queue.account.has(Defect::PolicyStart).then_some(DateTime::MIN_STORED),
            expiry: Some(expiry()),
            permission: Some(Permissions::ADD),
        }),
    };
    queue.set_access_policies(std::slice::from_ref(&policy), None).await.unwrap();
    let stored = queue.get_access_policies(None).await.unwrap();
    assert_eq!(stored, [policy]);
    let token = queue.sas(&QueueSasSpec::with_policy("any", "senders")).unwrap();
    let sender = with_sas(&queue, &token);
    // Azure takes up to 30 seconds to follow a policy; what runs here follows at once.
    if queue.account.is_local() {
        sender.send_message("x", None).await.unwrap();
        queue.set_access_policies(&[], None).await.unwrap();
        assert!(queue.get_access_policies(None).await.unwrap().is_empty());
        assert!(is_denied(sender.send_message("y", None).await));
    }
    queue.delete().await;
}
