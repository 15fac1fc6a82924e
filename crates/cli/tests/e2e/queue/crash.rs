//! Durability of queues: what was acknowledged holds after `kill -9`, again and again on one folder.
//!
//! Each worker has messages of its own, which nobody else gets because each has a queue, and knows of every one what it
//! was told last. The request that was under way at the kill may have been done or not, and nothing in between.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::client::{Message, QueueClient, document, messages};
use crate::support::http::Response;
use crate::support::{Launch, Random, Server, encode};

const ROUNDS: &str = "TAVOLA_CRASH_ROUNDS";
const ROUNDS_IN_SHORT: usize = 6;
const WORKERS: usize = 6;
/// Receipts that are good no more, of which a worker keeps the latest.
const STALE_MAX: usize = 16;

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    kills_while_starting: usize,
    acknowledged: usize,
    /// Requests under way at a kill that turned out to have been done, and not.
    done_unheard: usize,
    undone_unheard: usize,
    messages_checked: usize,
}

/// What a worker knows of its queue.
struct Worker {
    queue: String,
    random: Random,
    /// By the number of the message, which its text begins with.
    stored: BTreeMap<String, Known>,
    next: usize,
    stale: VecDeque<(String, String)>,
    under_way: UnderWay,
}

#[derive(Clone, Debug)]
struct Known {
    id: String,
    receipt: String,
    dequeue_count: u32,
    is_hidden: bool,
}

/// The request that was not answered.
#[derive(Clone, Debug, PartialEq)]
enum UnderWay {
    Nothing,
    Put(String),
    /// Of up to so many messages.
    Get(usize),
    /// A change of this message.
    Change(String),
    /// All messages are taken away, or the queue with them.
    Clear,
}

#[test]
fn acknowledged_messages_survive_kill() {
    let rounds = std::env::var(ROUNDS).map(|text| text.parse().expect("a number of rounds"));
    let rounds = rounds.unwrap_or(ROUNDS_IN_SHORT);
    let seed = Random::seed_or(11);
    tell(&format!("queues: seed {seed} (repeat with TAVOLA_TEST_SEED={seed})"));
    let (start, mut random, mut tally) = (Instant::now(), Random::new(seed), Tally::default());
    let server = Arc::new(Launch::new().start());
    let mut workers: Vec<_> =
        (0..WORKERS).map(|number| Worker::new(&server, number, random.next())).collect();
    for round in 1..=rounds {
        tally.acknowledged += work_until_killed(&server, &mut workers, 200 + random.below(600));
        tally.kills += 1;
        while random.one_in(2) {
            server.start_and_kill_after(Duration::from_micros(random.below(60_000) as u64));
            tally.kills_while_starting += 1;
        }
        server.start_again();
        for worker in &mut workers {
            worker.check(&QueueClient::new(&server), &mut tally);
        }
        tell(&format!("queues: round {round} of {rounds}, {tally:?}"));
    }
    server.ask_to_stop();
    assert!(server.wait().success(), "{}", server.log());
    let check = Launch::new().args(["check", "tavola-data"]).command(server.folder()).output();
    let check = check.expect("it runs");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let seconds = start.elapsed().as_secs_f64();
    tell(&format!("queues: seed {seed}, {rounds} rounds, {seconds:.1} seconds, {tally:?}"));
}

/// Answers how many requests were acknowledged: `moment` or a few more.
fn work_until_killed(server: &Arc<Server>, workers: &mut [Worker], moment: usize) -> usize {
    let acknowledged = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in workers {
            let acknowledged = &acknowledged;
            scope.spawn(move || worker.run(server, acknowledged));
        }
        while acknowledged.load(Ordering::Relaxed) < moment {
            std::thread::sleep(Duration::from_micros(200));
        }
        server.kill();
    });
    acknowledged.into_inner()
}

impl Worker {
    fn new(server: &Arc<Server>, number: usize, seed: u64) -> Self {
        let queue = format!("crash-{number}");
        QueueClient::new(server).request("PUT", format!("/{queue}")).send().expect(201);
        Self {
            queue,
            random: Random::new(seed),
            stored: BTreeMap::new(),
            next: 0,
            stale: VecDeque::new(),
            under_way: UnderWay::Nothing,
        }
    }

    /// Works until the server is gone.
    fn run(&mut self, server: &Arc<Server>, acknowledged: &AtomicUsize) {
        let client = QueueClient::new(server);
        while self.step(&client).is_ok() {
            self.under_way = UnderWay::Nothing;
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn step(&mut self, client: &QueueClient) -> std::io::Result<()> {
        match self.random.below(40) {
            0..=19 => self.put(client),
            20..=26 => self.get(client),
            27..=31 => self.update(client),
            32..=38 => self.delete(client),
            _ => self.take_all_away(client),
        }
    }

    fn put(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let number = format!("{:08}", self.next);
        self.next += 1;
        let text = number.repeat(1 + self.random.below(80));
        self.under_way = UnderWay::Put(number.clone());
        let path = format!("/{}/messages", self.queue);
        let put = client.request("POST", path).body(document(&text)).try_send()?.expect(201);
        let message = messages(&put).remove(0);
        self.know(number, &message, 0, false);
        Ok(())
    }

    fn get(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let count = 1 + self.random.below(8);
        self.under_way = UnderWay::Get(count);
        let path = format!("/{}/messages?numofmessages={count}&visibilitytimeout=3600", self.queue);
        let got = client.request("GET", path).try_send()?.expect(200);
        for message in messages(&got) {
            let number = message.text.as_deref().unwrap()[..8].to_owned();
            self.know_got(number, &message);
        }
        Ok(())
    }

    fn update(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let Some((number, known)) = self.pick() else { return Ok(()) };
        self.under_way = UnderWay::Change(number.clone());
        let is_hidden = self.random.one_in(2);
        let updated = self.send_update(client, &known, is_hidden)?.expect(204);
        self.know_updated(&number, &updated, is_hidden);
        Ok(())
    }

    fn send_update(
        &self,
        client: &QueueClient,
        known: &Known,
        is_hidden: bool,
    ) -> std::io::Result<Response> {
        let (receipt, seconds) = (encode(&known.receipt), if is_hidden { 3600 } else { 0 });
        let path = format!(
            "/{}/messages/{}?popreceipt={receipt}&visibilitytimeout={seconds}",
            self.queue, known.id
        );
        client.request("PUT", path).try_send()
    }

    fn delete(&mut self, client: &QueueClient) -> std::io::Result<()> {
        let Some((number, known)) = self.pick() else { return Ok(()) };
        self.under_way = UnderWay::Change(number.clone());
        let receipt = encode(&known.receipt);
        let path = format!("/{}/messages/{}?popreceipt={receipt}", self.queue, known.id);
        client.request("DELETE", path).try_send()?.expect(204);
        self.forget(&number);
        Ok(())
    }

    /// Clears the queue, or deletes it and makes it anew.
    fn take_all_away(&mut self, client: &QueueClient) -> std::io::Result<()> {
        self.under_way = UnderWay::Clear;
        if self.random.one_in(2) {
            let path = format!("/{}/messages", self.queue);
            client.request("DELETE", path).try_send()?.expect(204);
        } else {
            let path = format!("/{}", self.queue);
            client.request("DELETE", &path).try_send()?.expect(204);
            client.request("PUT", &path).try_send()?.expect(201);
        }
        self.forget_all();
        Ok(())
    }

    fn know(&mut self, number: String, message: &Message, dequeue_count: u32, is_hidden: bool) {
        let (id, receipt) = (message.id.clone(), message.receipt.clone());
        let known = Known { id, receipt, dequeue_count, is_hidden };
        if let Some(before) = self.stored.insert(number, known) {
            self.outdate(before);
        }
    }

    /// Nobody gets a message that another has, and each claim counts.
    fn know_got(&mut self, number: String, message: &Message) {
        let before = self.stored.get(&number).unwrap_or_else(|| panic!("{number} came back"));
        assert!(!before.is_hidden, "{number} was handed out twice, {before:?}");
        let count = before.dequeue_count + 1;
        assert_eq!(message.dequeue_count, Some(count), "{number}");
        self.know(number, message, count, true);
    }

    fn know_updated(&mut self, number: &str, updated: &Response, is_hidden: bool) {
        let receipt = updated.header("x-ms-popreceipt").expect("a receipt").to_owned();
        let before = self.stored[number].clone();
        self.stored.insert(number.to_owned(), Known { receipt, is_hidden, ..before.clone() });
        self.outdate(before);
    }

    fn forget(&mut self, number: &str) {
        if let Some(before) = self.stored.remove(number) {
            self.outdate(before);
        }
    }

    fn forget_all(&mut self) {
        for known in std::mem::take(&mut self.stored).into_values() {
            self.outdate(known);
        }
    }

    fn outdate(&mut self, known: Known) {
        self.stale.push_back((known.id, known.receipt));
        while self.stale.len() > STALE_MAX {
            self.stale.pop_front();
        }
    }

    fn pick(&mut self) -> Option<(String, Known)> {
        if self.stored.is_empty() {
            return None;
        }
        let at = self.random.below(self.stored.len());
        self.stored.iter().nth(at).map(|(number, known)| (number.clone(), known.clone()))
    }

    /// Nothing may be missing, nothing back and nothing torn, apart from what the last request was about, and that is done or
    /// not. Each message is deleted or kept for the next round, with the receipt that is known.
    fn check(&mut self, client: &QueueClient, tally: &mut Tally) {
        let under_way = std::mem::replace(&mut self.under_way, UnderWay::Nothing);
        let made = client.request("PUT", format!("/{}", self.queue)).send().status;
        let was_deleted = made == 201;
        assert!(
            made == 204 || was_deleted && under_way == UnderWay::Clear,
            "{made}, {under_way:?}"
        );
        for (id, receipt) in &self.stale {
            client.remove(&self.queue, id, receipt).expect_error(404, "MessageNotFound");
        }
        let found = self.get_all(client, &under_way);
        let known = self.stored.len();
        tally.messages_checked += known;
        let lost = self.delete_or_keep(client);
        let unseen = client.count(&self.queue) - self.stored.len() as u64;
        let is_done = match &under_way {
            UnderWay::Nothing => {
                assert_eq!((lost.len(), unseen), (0, 0), "{lost:?}");
                return;
            }
            UnderWay::Put(number) => {
                assert_eq!((lost.len(), unseen), (0, 0), "{lost:?}");
                found.contains(number)
            }
            // Nobody has the receipts of what it has hidden.
            UnderWay::Get(count) => {
                assert!(lost.len() <= *count && unseen == lost.len() as u64, "{lost:?}, {unseen}");
                !lost.is_empty()
            }
            UnderWay::Change(number) => {
                assert!(lost.iter().all(|it| it == number), "{lost:?}, not {number}");
                assert!(unseen <= lost.len() as u64, "{unseen}");
                !lost.is_empty() || found.contains(number)
            }
            UnderWay::Clear => {
                assert!(lost.is_empty() && !was_deleted || lost.len() == known, "{lost:?}");
                assert_eq!(unseen, 0);
                !lost.is_empty()
            }
        };
        tally.done_unheard += usize::from(is_done);
        tally.undone_unheard += usize::from(!is_done);
        if unseen > 0 {
            client.delete(format!("/{}/messages", self.queue)).expect(204);
            self.forget_all();
        }
    }

    /// Gets what is visible: answers the numbers that nobody knew to be visible.
    fn get_all(&mut self, client: &QueueClient, under_way: &UnderWay) -> Vec<String> {
        let path = format!("/{}/messages?numofmessages=32&visibilitytimeout=3600", self.queue);
        let mut found = Vec::new();
        loop {
            let got = messages(&client.get(&path).expect(200));
            if got.is_empty() {
                return found;
            }
            for message in got {
                let text = message.text.as_deref().unwrap();
                let number = text[..8].to_owned();
                assert_eq!(text, number.repeat(text.len() / 8), "torn");
                let is_in_doubt = match under_way {
                    UnderWay::Put(it) => *it == number,
                    UnderWay::Change(it) => *it == number && self.stored[&number].is_hidden,
                    _ => false,
                };
                if is_in_doubt {
                    let count = self.stored.get(&number).map_or(0, |before| before.dequeue_count);
                    assert_eq!(message.dequeue_count, Some(count + 1), "{number}");
                    found.push(number.clone());
                    self.know(number, &message, count + 1, true);
                } else {
                    self.know_got(number, &message);
                }
            }
        }
    }

    /// Answers the numbers of those whose receipt is not good.
    fn delete_or_keep(&mut self, client: &QueueClient) -> Vec<String> {
        let mut lost = Vec::new();
        for (number, known) in self.stored.clone() {
            let is_kept = self.random.one_in(2);
            let reply = match is_kept {
                true => self.send_update(client, &known, true).expect("an answer"),
                false => client.remove(&self.queue, &known.id, &known.receipt),
            };
            match reply.status {
                204 if is_kept => self.know_updated(&number, &reply, true),
                204 => self.forget(&number),
                _ => {
                    reply.expect_error(404, "MessageNotFound");
                    self.stored.remove(&number);
                    lost.push(number);
                }
            }
        }
        lost
    }
}

#[expect(clippy::print_stdout, reason = "a long run shows how it goes, a failed one its seed")]
fn tell(line: &str) {
    println!("{line}");
}
