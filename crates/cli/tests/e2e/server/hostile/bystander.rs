//! Somebody who has nothing to do with it, and whose every request has to succeed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use serde_json::json;

use crate::support::{Client, Server};

pub(super) struct Bystander {
    stop: Arc<AtomicBool>,
    rounds: Receiver<()>,
    thread: Option<JoinHandle<usize>>,
}

impl Bystander {
    /// Begins to write and to read, and has done so once when this returns.
    pub(super) fn start(server: &Arc<Server>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (round, rounds) = sync_channel(1);
        let (server, stopped) = (server.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let client = Client::new(&server);
            let table = client.new_table();
            let mut count = 0;
            while !stopped.load(Ordering::Relaxed) {
                let row = format!("{count:06}");
                client.insert(&table, &json!({"PartitionKey": "p", "RowKey": row})).expect(204);
                client.entity(&table, ("p", &row)).expect(200);
                client.query(&table, &[("$top", "10")]).send().expect(200);
                count += 1;
                let _ = round.try_send(());
            }
            count
        });
        let bystander = Self { stop, rounds, thread: Some(thread) };
        bystander.wait_for_a_round();
        bystander
    }

    /// Stops after a round that began now or later; every request must have been answered as it should.
    #[track_caller]
    pub(super) fn finish(mut self) {
        for _ in 0..2 {
            self.wait_for_a_round();
        }
        self.stop.store(true, Ordering::Relaxed);
        let rounds = self.thread.take().map(|thread| thread.join().expect("it was served"));
        assert!(rounds > Some(1));
    }

    /// An error means that the thread has failed, which joining it tells.
    fn wait_for_a_round(&self) {
        let _ = self.rounds.recv();
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
