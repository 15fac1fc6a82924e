//! A queue on a disk that is nearly full: it can be emptied. Linux only.

use std::sync::Arc;

use super::client::{Message, QueueClient};
use crate::server::disk::{MB, SmallDisk, wait_until};

/// No message is put, but workers get messages, keep them hidden, and delete them, until there is room again.
#[test]
fn a_queue_can_be_worked_off_on_a_nearly_full_disk() {
    let Some(disk) = SmallDisk::of(200) else { return };
    std::fs::write(disk.ballast(), vec![1; 110 * MB]).unwrap();
    let server = Arc::new(disk.launch().args(["--disk-reserve-mb", "60"]).start());
    let client = QueueClient::new(&server);
    let queue = client.new_queue();
    let text = "x".repeat(60_000);
    let refused = (0..10_000).map(|_| client.put(&queue, &text, "")).find(|it| it.status != 201);
    refused.expect("one that is refused").expect_error(503, "ServerBusy");
    let put = client.count(&queue);
    assert!(put > 10, "{put}");

    let got = client.get_messages(&queue, "?visibilitytimeout=600").remove(0);
    assert_eq!(got.text.as_deref(), Some(&*text));
    let update = |text| client.update(&queue, &got.id, &got.receipt, 600, text);
    update(Some("other")).expect_error(503, "ServerBusy");
    let updated = update(None).expect(204);
    let receipt = updated.header("x-ms-popreceipt").expect("a receipt");
    client.remove(&queue, &got.id, receipt).expect(204);

    for left in (0..put - 1).rev() {
        let Message { id, receipt, .. } = client.get_messages(&queue, "").remove(0);
        client.remove(&queue, &id, &receipt).expect(204);
        assert_eq!(client.count(&queue), left);
    }
    std::fs::remove_file(disk.ballast()).unwrap();
    wait_until(&server, || client.put(&queue, &text, "").status == 201);
    server.crash_and_restart();
    let client = QueueClient::new(&server);
    assert_eq!(client.get_messages(&queue, "?numofmessages=32").len(), 1);
}
