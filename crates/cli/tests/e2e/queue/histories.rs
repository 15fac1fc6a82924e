//! Many clients at once, over the wire: what each was told must fit together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::QueueClient;
use crate::support::{Random, shared};

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 5;
const MESSAGES: usize = 60;
/// Nothing is asserted about time: this is when a test gives up.
const GIVE_UP: Duration = Duration::from_secs(120);

/// What is known of a message: how often it was got, and whether somebody has it.
#[derive(Default)]
struct Seen {
    got: u32,
    is_claimed: bool,
}

#[test]
fn consumers_share_messages_and_lose_none() {
    let server = shared();
    let client = QueueClient::new(&server);
    let queue = client.new_queue();
    let (put, gone) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
    let seen: Mutex<BTreeMap<String, Seen>> = Mutex::default();
    let is_put = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let (server, queue, put) = (&server, &queue, &put);
                scope.spawn(move || {
                    let client = QueueClient::new(server);
                    for number in 0..MESSAGES {
                        let text = format!("{producer}/{number} ").repeat(1 + number % 90);
                        let message = client.put_message(queue, &text, "");
                        put.lock().unwrap().insert(message.id);
                    }
                })
            })
            .collect();
        for consumer in 0..CONSUMERS {
            let (server, queue, gone, seen, is_put) = (&server, &queue, &gone, &seen, &is_put);
            scope.spawn(move || {
                let client = QueueClient::new(server);
                let mut random = Random::new(consumer as u64 + 1);
                let begun = Instant::now();
                loop {
                    // Another consumer may have failed, and then nobody brings it to an end.
                    assert!(begun.elapsed() < GIVE_UP, "{} are gone", gone.lock().unwrap().len());
                    let was_put = is_put.load(Ordering::SeqCst);
                    let count = 1 + random.below(32);
                    let query = format!("?numofmessages={count}&visibilitytimeout=3600");
                    let got = client.get_messages(queue, &query);
                    for message in &got {
                        let mut seen = seen.lock().unwrap();
                        let seen = seen.entry(message.id.clone()).or_default();
                        assert!(!seen.is_claimed, "{} was claimed twice", message.id);
                        seen.is_claimed = true;
                        seen.got += 1;
                        assert_eq!(message.dequeue_count, Some(seen.got));
                    }
                    for message in &got {
                        seen.lock().unwrap().get_mut(&message.id).unwrap().is_claimed = false;
                        if random.one_in(4) {
                            let back = client.update(queue, &message.id, &message.receipt, 0, None);
                            back.expect(204);
                            client.remove(queue, &message.id, &message.receipt).expect(404);
                        } else {
                            client.remove(queue, &message.id, &message.receipt).expect(204);
                            assert!(gone.lock().unwrap().insert(message.id.clone()));
                        }
                    }
                    if was_put && gone.lock().unwrap().len() == PRODUCERS * MESSAGES {
                        break;
                    }
                }
            });
        }
        for producer in producers {
            producer.join().unwrap();
        }
        is_put.store(true, Ordering::SeqCst);
    });
    assert_eq!(*put.lock().unwrap(), *gone.lock().unwrap());
    assert_eq!(client.count(&queue), 0);
    assert!(client.peek(&queue, 32).is_empty());
}
