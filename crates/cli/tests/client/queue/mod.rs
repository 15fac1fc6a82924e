//! The client of queues against the server.

mod messages;
mod queues;
mod sas;
mod stopping;
mod stream;
mod worker;
mod worker_failures;

use tavola_client::queue::{QueueClient, ReceiveMessagesOptions};

/// The texts of all messages that can be received now, which then are hidden.
async fn received(queue: &QueueClient) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let options = ReceiveMessagesOptions { max_messages: Some(32), ..Default::default() };
        let messages = queue.receive_messages(Some(options)).await.unwrap();
        if messages.is_empty() {
            return texts;
        }
        texts.extend(messages.iter().map(|message| message.text().unwrap().into_owned()));
    }
}
