//! A folder that is put back as it was before: messages are as they were then, and nothing that was answered later counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::client::{Message, QueueClient};
use crate::server::upgrade::copy;
use crate::support::{Launch, Server};

const QUEUE: &str = "orders";
/// Long enough for what is done before it is put back, however slow the machine is.
const CLAIMED: Duration = Duration::from_secs(20);

fn stop(server: &Server) {
    server.ask_to_stop();
    assert!(server.wait().success(), "{}", server.log());
}

#[test]
fn a_folder_that_is_put_back_has_the_messages_of_then() {
    let server = Arc::new(Launch::new().start());
    let client = QueueClient::new(&server);
    client.request("PUT", format!("/{QUEUE}")).send().expect(201);
    for text in ["claimed", "waits"] {
        client.put_message(QUEUE, text, "");
    }
    let hidden = format!("?visibilitytimeout={}", CLAIMED.as_secs());
    let claimed = client.get_messages(QUEUE, &hidden).remove(0);
    let claimed_by = Instant::now() + CLAIMED + Duration::from_secs(1);
    stop(&server);
    let kept = tempfile::tempdir().expect("a folder");
    copy(&server.data_folder(), kept.path());

    server.start_again();
    let client = QueueClient::new(&server);
    let update = client.update(QUEUE, &claimed.id, &claimed.receipt, 600, Some("done so far"));
    let later_receipt = update.expect(204).header("x-ms-popreceipt").expect("one").to_owned();
    let later = client.put_message(QUEUE, "later", "");
    let waited = client.get_messages(QUEUE, "?visibilitytimeout=600").remove(0);
    client.remove(QUEUE, &waited.id, &waited.receipt).expect(204);
    stop(&server);

    std::fs::remove_dir_all(server.data_folder()).expect("to be removed");
    copy(kept.path(), &server.data_folder());
    server.start_again();
    let client = QueueClient::new(&server);
    for (id, receipt) in
        [(&claimed.id, &later_receipt), (&later.id, &later.receipt), (&waited.id, &waited.receipt)]
    {
        client.remove(QUEUE, id, receipt).expect_error(404, "MessageNotFound");
    }
    let peeked = client.peek(QUEUE, 32);
    assert_eq!(ids(&peeked).last(), Some(&&waited.id[..]), "it was not deleted then");
    let next = client.put_message(QUEUE, "next", "");
    assert!(next.id > later.id, "ids go on behind those that were given out");
    // What was claimed comes back when its time comes, and counts on.
    std::thread::sleep(claimed_by.saturating_duration_since(Instant::now()));
    let got = client.get_messages(QUEUE, "?numofmessages=32&visibilitytimeout=600");
    let again = got.iter().find(|message| message.id == claimed.id).expect("it is got again");
    assert_eq!((again.dequeue_count, again.text.as_deref()), (Some(2), Some("claimed")));
    assert_eq!(got.len(), 3);
    stop(&server);
}

fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &message.id[..]).collect()
}
