//! Receipts: which work, which are not found, and which are none. Section 6.3.

use super::client::shared_client;
use super::messages::eventually;

#[test]
fn a_receipt_of_put_works_until_the_message_is_moved() {
    let client = shared_client();
    let queue = client.new_queue();
    let put = client.put_message(&queue, "text", "");
    assert_eq!(put.receipt.len(), 28);
    let updated = client.update(&queue, &put.id, &put.receipt, 0, None).expect(204);
    let receipt = updated.header("x-ms-popreceipt").expect("a receipt").to_owned();
    assert_eq!(receipt.len(), 32, "of the kind of Update");
    assert!(updated.header("x-ms-time-next-visible").unwrap().ends_with(" GMT"));
    client.update(&queue, &put.id, &put.receipt, 0, None).expect_error(404, "MessageNotFound");
    let got = client.get_messages(&queue, "").remove(0);
    assert_eq!((got.text.as_deref(), got.dequeue_count), (Some("text"), Some(1)));
    client.remove(&queue, &put.id, &receipt).expect_error(404, "MessageNotFound");
    client.remove(&queue, &put.id, &got.receipt).expect(204);
}

#[test]
fn update_changes_text_and_moment_and_nothing_else() {
    let client = shared_client();
    let queue = client.new_queue();
    client.put(&queue, "first", "").expect(201);
    let got = client.get_messages(&queue, "").remove(0);
    let mut receipt = got.receipt.clone();
    for text in [Some("second"), None, Some(""), Some(&*"long".repeat(1000)), Some("short"), None] {
        let updated = client.update(&queue, &got.id, &receipt, 0, text).expect(204);
        receipt = updated.header("x-ms-popreceipt").unwrap().to_owned();
        let peeked = client.peek(&queue, 1).remove(0);
        assert_eq!(
            (&peeked.id, &peeked.inserted, &peeked.expires),
            (&got.id, &got.inserted, &got.expires)
        );
        assert_eq!(peeked.dequeue_count, Some(1));
        if let Some(text) = text {
            assert_eq!(peeked.text.as_deref(), Some(text));
        }
    }
    assert_eq!(client.peek(&queue, 1)[0].text.as_deref(), Some("short"));
    // Beyond its expiry is accepted, and the expiry stays.
    let brief = client.put_message(&queue, "brief", "?messagettl=60");
    client.update(&queue, &brief.id, &brief.receipt, 600, None).expect(204);
}

#[test]
fn a_receipt_outlives_its_invisibility() {
    let client = shared_client();
    let queue = client.new_queue();
    client.put(&queue, "text", "").expect(201);
    let got = client.get_messages(&queue, "?visibilitytimeout=1").remove(0);
    eventually("it is visible again", || !client.peek(&queue, 1).is_empty());
    client.remove(&queue, &got.id, &got.receipt).expect(204);
}

#[test]
fn what_is_no_receipt_is_told_and_what_was_never_issued_is_not_found() {
    let client = shared_client();
    let queue = client.new_queue();
    let one = client.put_message(&queue, "one", "");
    let other = client.put_message(&queue, "other", "");
    // Even when the id does not exist either.
    for id in [one.id.as_str(), "nothing"] {
        for receipt in ["invalid", "AgAAAAMAAAAAAAAABbFNGEU81QE=Random", "a b"] {
            let refused = client.remove(&queue, id, receipt);
            let refused = refused.expect_error(400, "InvalidQueryParameterValue");
            let extra = format!(
                "<QueryParameterName>popreceipt</QueryParameterName><QueryParameterValue>{receipt}</QueryParameterValue><Reason>Invalid pop receipt format</Reason>"
            );
            assert!(refused.text().contains(&extra), "{}", refused.text());
            client.update(&queue, id, receipt, 0, None).expect(400);
        }
    }
    for (id, receipt) in [
        (one.id.as_str(), other.receipt.as_str()),
        (&one.id, "AgAAAAMAAAAAAAAABbFNGEU81QE="),
        (&one.id, "AAAA"),
        ("nothing", &one.receipt),
        (&one.id.to_uppercase(), &one.receipt),
    ] {
        client.remove(&queue, id, receipt).expect_error(404, "MessageNotFound");
        client.update(&queue, id, receipt, 0, None).expect_error(404, "MessageNotFound");
    }
    let without = client.delete(format!("/{queue}/messages/{}", one.id));
    let without = without.expect_error(400, "MissingRequiredQueryParameter");
    assert!(without.text().contains("<QueryParameterName>popreceipt</QueryParameterName>"));
    assert_eq!(client.peek(&queue, 32).len(), 2);
}

/// Trap 4: another queue of the same name.
#[test]
fn receipts_do_not_outlive_their_queue() {
    let client = shared_client();
    let queue = client.new_queue();
    let put = client.put_message(&queue, "text", "");
    client.delete(format!("/{queue}")).expect(204);
    client.remove(&queue, &put.id, &put.receipt).expect_error(404, "QueueNotFound");
    client.request("PUT", format!("/{queue}")).send().expect(201);
    client.remove(&queue, &put.id, &put.receipt).expect_error(404, "MessageNotFound");
    assert!(client.get_messages(&queue, "?numofmessages=32").is_empty());
}

/// A server that was killed has claims and receipts as they were.
#[test]
fn claims_and_receipts_are_there_after_a_crash() {
    let server = std::sync::Arc::new(crate::support::Launch::new().start());
    let client = super::client::QueueClient::new(&server);
    let queue = client.new_queue();
    for number in 0..10 {
        client.put(&queue, &number.to_string(), "").expect(201);
    }
    let claimed = client.get_messages(&queue, "?numofmessages=4&visibilitytimeout=600");
    client.remove(&queue, &claimed[0].id, &claimed[0].receipt).expect(204);
    let updated = client.update(&queue, &claimed[1].id, &claimed[1].receipt, 600, Some("u"));
    let receipt = updated.expect(204).header("x-ms-popreceipt").unwrap().to_owned();
    server.crash_and_restart();
    let client = super::client::QueueClient::new(&server);
    assert_eq!(client.count(&queue), 9);
    assert_eq!(client.get_messages(&queue, "?numofmessages=32&visibilitytimeout=600").len(), 6);
    client.remove(&queue, &claimed[0].id, &claimed[0].receipt).expect(404);
    client.remove(&queue, &claimed[1].id, &claimed[1].receipt).expect(404);
    client.remove(&queue, &claimed[1].id, &receipt).expect(204);
    client.remove(&queue, &claimed[2].id, &claimed[2].receipt).expect(204);
    // And an orderly stop leaves everything, too.
    server.restart_cleanly();
    let client = super::client::QueueClient::new(&server);
    client.remove(&queue, &claimed[3].id, &claimed[3].receipt).expect(204);
    assert_eq!(client.count(&queue), 6);
}
