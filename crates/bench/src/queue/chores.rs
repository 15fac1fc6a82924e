//! Brings queues into the state that is to be measured: many messages put, claimed or deleted, from many connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};

use super::message;
use super::operations::{CLAIM_MAX, Claimed};
use crate::entity::Keys;
use crate::random::{Random, scramble};
use crate::request::Client;
use crate::target::Target;

/// Writes of many connections are made durable together: more of them are loaded sooner.
const CONNECTIONS: u64 = 128;

/// Something to be done with many messages.
pub enum Chore {
    /// Puts so many that are visible after so many seconds.
    Put {
        messages: u64,
        hidden_seconds: u64,
    },
    /// Claims so many and deletes them.
    Drain {
        messages: u64,
    },
    Delete(Vec<Claimed>),
}

/// A chore that connections share.
struct Shared {
    queue: String,
    chore: Chore,
    /// The next message of all.
    next: AtomicU64,
}

/// Does it all, or fails.
pub async fn carry_out(target: &Target, queue: &str, chore: Chore) -> anyhow::Result<()> {
    let shared = Arc::new(Shared { queue: queue.to_owned(), chore, next: AtomicU64::new(0) });
    let connections = CONNECTIONS.min(shared.messages());
    let workers: Vec<_> = (0..connections)
        .map(|_| tokio::spawn(Arc::clone(&shared).work(Client::new(target, Keys::default()))))
        .collect();
    for worker in workers {
        worker.await.context("a worker ended")??;
    }
    Ok(())
}

impl Shared {
    fn messages(&self) -> u64 {
        match &self.chore {
            Chore::Put { messages, .. } | Chore::Drain { messages } => *messages,
            Chore::Delete(claimed) => claimed.len() as u64,
        }
    }

    /// Takes the next piece of the chore: its first message, and how many there are.
    fn take(&self, messages_max: u64) -> Option<(u64, u64)> {
        let first = self.next.fetch_add(messages_max, Ordering::Relaxed);
        let left = self.messages().checked_sub(first).filter(|left| *left > 0)?;
        Some((first, left.min(messages_max)))
    }

    async fn work(self: Arc<Self>, mut client: Client) -> anyhow::Result<()> {
        let queue = &self.queue;
        match &self.chore {
            Chore::Put { hidden_seconds, .. } => {
                while let Some((number, _)) = self.take(1) {
                    let text = message::text(&mut Random::new(scramble(number)));
                    client.put_message(queue, text, *hidden_seconds).await?;
                }
            }
            Chore::Drain { .. } => {
                while let Some((_, mut left)) = self.take(CLAIM_MAX) {
                    while left > 0 {
                        let found = client.claim(queue, left).await?;
                        ensure!(found > 0, "{left} messages are left that cannot be claimed");
                        for claimed in client.claimed() {
                            client.delete_message(queue, &claimed).await?;
                        }
                        left -= found;
                    }
                }
            }
            Chore::Delete(claimed) => {
                while let Some((number, _)) = self.take(1) {
                    client.delete_message(queue, &claimed[number as usize]).await?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare;

    #[tokio::test]
    async fn a_chore_is_done_to_the_end() {
        let (listener, address) = bare::listen(0).await.unwrap();
        tokio::spawn(bare::serve(listener));
        let target = Target::new("bare", address).for_queues();
        for messages in [0, 1, 1000] {
            let put = Chore::Put { messages, hidden_seconds: 7 };
            carry_out(&target, "work", put).await.unwrap();
        }
        carry_out(&target, "work", Chore::Delete(Vec::new())).await.unwrap();
        carry_out(&target, "work", Chore::Drain { messages: 32 * 40 }).await.unwrap();
        // The bare server always has as many as the largest claim, or one.
        let idle = carry_out(&target, bare::IDLE_QUEUE, Chore::Drain { messages: 1 }).await;
        assert!(idle.unwrap_err().to_string().contains("cannot be claimed"));
    }

    #[test]
    fn pieces_cover_every_message_once() {
        let chore = Chore::Drain { messages: 70 };
        let shared = Shared { queue: String::new(), chore, next: AtomicU64::new(0) };
        let pieces: Vec<_> = std::iter::from_fn(|| shared.take(32)).collect();
        assert_eq!(pieces, [(0, 32), (32, 32), (64, 6)]);
    }
}
