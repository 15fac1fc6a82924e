//! Durability of queues: what was acknowledged holds after `kill -9`, again and again on one folder.
//!
//! Each worker has messages of its own, which nobody else gets because each has a queue, and knows of every one what it
//! was told last. The request that was under way at the kill may have been done or not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::client::{Message, QueueClient, document, messages};
use crate::support::{Launch, Random, Server, encode};

const ROUNDS: &str = "TAVOLA_CRASH_ROUNDS";
const ROUNDS_IN_SHORT: usize = 4;
const WORKERS: usize = 6;

/// What a worker knows of its queue.
struct Worker {
    queue: String,
    random: Random,
    /// Text by the number of the message, which its text begins with.
    stored: BTreeMap<String, Known>,
    next: usize,
    /// The texts that the request under way would add or take away, if it was done.
    in_doubt: Vec<String>,
}

#[derive(Clone, Debug)]
struct Known {
    id: String,
    receipt: String,
    dequeue_count: u32,
    /// Whether the last request for it was not answered.
    is_in_doubt: bool,
}

#[test]
fn acknowledged_messages_survive_kill() {
    let rounds = std::env::var(ROUNDS).map(|text| text.parse().expect("a number of rounds"));
    let mut random = Random::new(Random::seed_or(11));
    let server = Arc::new(Launch::new().start());
    let mut workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let queue = format!("crash-{number}");
            QueueClient::new(&server).request("PUT", format!("/{queue}")).send().expect(201);
            Worker::new(queue, random.next())
        })
        .collect();
    for _ in 0..rounds.unwrap_or(ROUNDS_IN_SHORT) {
        let acknowledged = AtomicUsize::new(0);
        let moment = 200 + random.below(600);
        std::thread::scope(|scope| {
            for worker in &mut workers {
                let (server, acknowledged) = (&server, &acknowledged);
                scope.spawn(move || worker.run(server, acknowledged));
            }
            while acknowledged.load(Ordering::Relaxed) < moment {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            server.kill();
        });
        server.start_again();
        for worker in &mut workers {
            worker.check(&QueueClient::new(&server));
        }
    }
    server.ask_to_stop();
    assert!(server.wait().success(), "{}", server.log());
    let check = Launch::new().args(["check", "tavola-data"]).command(server.folder()).output();
    let check = check.expect("it runs");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

impl Worker {
    fn new(queue: String, seed: u64) -> Self {
        let random = Random::new(seed);
        Self { queue, random, stored: BTreeMap::new(), next: 0, in_doubt: Vec::new() }
    }

    /// Works until the server is gone.
    fn run(&mut self, server: &Arc<Server>, acknowledged: &AtomicUsize) {
        let client = QueueClient::new(server);
        while self.step(&client).is_ok() {
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn step(&mut self, client: &QueueClient) -> std::io::Result<()> {
        match self.random.below(10) {
            0..=4 => self.put(client),
            5 | 6 => self.get(client),
            7 => self.update(client),
            _ => self.delete(client),
        }
    }

    fn put(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let number = format!("{:08}", self.next);
        self.next += 1;
        let text = number.repeat(1 + self.random.below(80));
        self.in_doubt = vec![number.clone()];
        let path = format!("/{}/messages", self.queue);
        let put = client.request("POST", path).body(document(&text)).try_send()?.expect(201);
        let message = messages(&put).remove(0);
        self.know(number, &message, 0);
        Ok(())
    }

    fn get(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let count = 1 + self.random.below(8);
        let path = format!("/{}/messages?numofmessages={count}&visibilitytimeout=3600", self.queue);
        self.in_doubt = self.stored.keys().cloned().collect();
        let got = client.request("GET", path).try_send()?.expect(200);
        for message in messages(&got) {
            let number = message.text.as_deref().unwrap()[..8].to_owned();
            let before = self.stored[&number].dequeue_count;
            assert_eq!(message.dequeue_count, Some(before + 1), "{number}");
            self.know(number, &message, before + 1);
        }
        self.in_doubt.clear();
        Ok(())
    }

    fn update(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let Some((number, known)) = self.pick() else { return Ok(()) };
        self.in_doubt = vec![number.clone()];
        let receipt = encode(&known.receipt);
        let hidden = if self.random.one_in(2) { 0 } else { 3600 };
        let path = format!(
            "/{}/messages/{}?popreceipt={receipt}&visibilitytimeout={hidden}",
            self.queue, known.id
        );
        let updated = client.request("PUT", path).try_send()?.expect(204);
        let known = self.stored.get_mut(&number).unwrap();
        known.receipt = updated.header("x-ms-popreceipt").unwrap().to_owned();
        self.in_doubt.clear();
        Ok(())
    }

    fn delete(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let Some((number, known)) = self.pick() else { return Ok(()) };
        self.in_doubt = vec![number.clone()];
        let receipt = encode(&known.receipt);
        let path = format!("/{}/messages/{}?popreceipt={receipt}", self.queue, known.id);
        client.request("DELETE", path).try_send()?.expect(204);
        self.stored.remove(&number);
        self.in_doubt.clear();
        Ok(())
    }

    fn know(&mut self, number: String, message: &Message, dequeue_count: u32) {
        let (id, receipt) = (message.id.clone(), message.receipt.clone());
        self.stored.insert(number, Known { id, receipt, dequeue_count, is_in_doubt: false });
        self.in_doubt.clear();
    }

    fn pick(&mut self) -> Option<(String, Known)> {
        let sure: Vec<_> = self.stored.iter().filter(|(_, known)| !known.is_in_doubt).collect();
        if sure.is_empty() {
            return None;
        }
        let (number, known) = sure[self.random.below(sure.len())];
        Some((number.clone(), known.clone()))
    }

    /// Takes what is visible away, then what is not, with the receipts that are known. Nothing may be left, nothing missing,
    /// apart from what the last request was about.
    fn check(&mut self, client: &QueueClient) {
        let in_doubt = std::mem::take(&mut self.in_doubt);
        let path = format!("/{}/messages?numofmessages=32&visibilitytimeout=3600", self.queue);
        loop {
            let got = messages(&client.get(&path).expect(200));
            if got.is_empty() {
                break;
            }
            for message in got {
                let text = message.text.as_deref().unwrap();
                let number = text[..8].to_owned();
                assert_eq!(text, number.repeat(text.len() / 8), "torn");
                let is_known = self.stored.contains_key(&number) || in_doubt.contains(&number);
                assert!(is_known, "{number} came back");
                let count = message.dequeue_count.unwrap();
                self.know(number, &message, count);
            }
        }
        // A claim that nobody heard of has hidden what it got, and its receipt is not known.
        for (number, known) in std::mem::take(&mut self.stored) {
            let deleted = client.remove(&self.queue, &known.id, &known.receipt).status;
            let is_allowed = deleted == 204 || deleted == 404 && in_doubt.contains(&number);
            assert!(is_allowed, "{number} is lost: {deleted}, {known:?}");
        }
        let left = client.count(&self.queue);
        assert!(left <= in_doubt.len() as u64, "{left} left of {}", in_doubt.len());
        client.delete(format!("/{}/messages", self.queue)).expect(204);
        assert_eq!(client.count(&self.queue), 0);
    }
}
