//! What is measured of queues: one kind of operation at a time, over and over.

use std::sync::Arc;

use super::backlog::Backlog;
use super::message;
use super::operations::{CLAIM_MAX, miscounted};
use crate::entity::Keys;
use crate::measure::Job;
use crate::random::Random;
use crate::request::{Client, Failure};
use crate::target::Target;

/// One kind of operation, in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueWorkload {
    /// New messages, one a request
    Enqueue,
    /// Gets a message and deletes it: two requests
    ClaimDelete,
    /// Gets 32 messages
    ClaimMany,
    /// Looks at the first message
    Peek,
    /// Asks for a message where none is visible
    PollEmpty,
}

/// What the connections of a workload share.
#[derive(Debug)]
pub struct QueueWork {
    pub workload: QueueWorkload,
    pub backlog: Arc<Backlog>,
    /// A queue with nothing to be got.
    pub idle: String,
}

impl QueueWorkload {
    pub const ALL: [Self; 5] =
        [Self::Enqueue, Self::ClaimDelete, Self::ClaimMany, Self::Peek, Self::PollEmpty];

    pub fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::ClaimDelete => "claim-delete",
            Self::ClaimMany => "claim-32",
            Self::Peek => "peek",
            Self::PollEmpty => "poll-empty",
        }
    }

    pub fn writes(self) -> bool {
        matches!(self, Self::Enqueue | Self::ClaimDelete | Self::ClaimMany)
    }

    /// Messages that one operation claims.
    fn claims(self) -> u64 {
        match self {
            Self::ClaimDelete => 1,
            Self::ClaimMany => CLAIM_MAX,
            Self::Enqueue | Self::Peek | Self::PollEmpty => 0,
        }
    }
}

impl Job for QueueWork {
    fn client(&self, target: &Target) -> Client {
        Client::new(target, Keys::default())
    }

    fn begin(&self) -> bool {
        match self.workload.claims() {
            0 => true,
            messages => self.backlog.reserve(messages),
        }
    }

    async fn perform(
        &self,
        client: &mut Client,
        random: &mut Random,
        _is_bare: bool,
    ) -> Result<u64, Failure> {
        let (queue, messages) = (&self.backlog.queue, self.workload.claims());
        match self.workload {
            QueueWorkload::Enqueue => {
                client.put_message(queue, message::text(random), 0).await?;
                self.backlog.add(1);
                Ok(1)
            }
            QueueWorkload::ClaimDelete => {
                let found = client.claim(queue, messages).await?;
                let claimed = client.claimed().pop().ok_or_else(|| miscounted(found, messages))?;
                client.delete_message(queue, &claimed).await?;
                Ok(1)
            }
            QueueWorkload::ClaimMany => {
                let found = client.claim(queue, messages).await?;
                if found == 0 || found > messages {
                    return Err(miscounted(found, messages));
                }
                // A server may give fewer than were asked for; the others still wait.
                self.backlog.add(messages - found);
                if self.backlog.remembers_claims() {
                    self.backlog.remember(client.claimed());
                }
                Ok(found)
            }
            QueueWorkload::Peek => client.peek(queue).await.map(|()| 1),
            QueueWorkload::PollEmpty => client.poll_in_vain(&self.idle).await.map(|()| 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bare;
    use crate::measure::Contender;

    /// The bare server is to be asked for the same and to answer the same, or it would be no measure.
    #[tokio::test]
    async fn the_bare_server_answers_every_workload() {
        let (listener, address) = bare::listen(0).await.unwrap();
        tokio::spawn(bare::serve(listener));
        let contender = Contender::bare(Target::new("bare", address).for_queues(), None);
        for workload in QueueWorkload::ALL {
            let (backlog, idle) = (Arc::new(Backlog::endless("work")), bare::IDLE_QUEUE.to_owned());
            let work = Arc::new(QueueWork { workload, backlog, idle });
            let tally = contender.measure(&work, 2, Duration::from_millis(30), 1).await;
            assert!(tally.failures.is_empty(), "{workload:?}: {:?}", tally.failures);
            let operations = tally.latency.count();
            let each = if workload == QueueWorkload::ClaimMany { CLAIM_MAX } else { 1 };
            assert!(operations > 0 && tally.entities == each * operations, "{workload:?}");
        }
    }

    #[tokio::test]
    async fn claims_stop_when_there_is_no_more_to_claim() {
        let (listener, address) = bare::listen(0).await.unwrap();
        tokio::spawn(bare::serve(listener));
        let contender = Contender::bare(Target::new("bare", address).for_queues(), None);
        let backlog = Arc::new(Backlog::new("work", 10, true));
        backlog.add(10 + 5 * CLAIM_MAX);
        let workload = QueueWorkload::ClaimMany;
        let work = QueueWork { workload, backlog: backlog.clone(), idle: String::new() };
        let tally = contender.measure(&Arc::new(work), 3, Duration::from_secs(60), 1).await;
        assert_eq!((tally.latency.count(), tally.entities), (5, 5 * CLAIM_MAX));
        assert_eq!(backlog.waiting(), 10);
        assert_eq!(backlog.take_claimed().len() as u64, 5 * CLAIM_MAX);
    }
}
