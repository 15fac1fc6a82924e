//! How full the queues are, for the metrics.

use tavola_wire::Ticks;

use super::Queues;

/// How full the queues are, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    pub messages: u64,
    /// Of the queue that has most.
    pub messages_max: u64,
    /// Since when the message that has waited longest could have been got.
    pub oldest: Option<Ticks>,
}

impl Queues {
    pub(crate) fn depth(&self) -> Depth {
        let mut depth = Depth::default();
        for live in self.registry.all() {
            let messages = live.count().unwrap_or(0);
            depth.messages += messages;
            depth.messages_max = depth.messages_max.max(messages);
            let oldest = live.oldest().filter(|_| messages > 0);
            depth.oldest = [depth.oldest, oldest].into_iter().flatten().min();
        }
        depth
    }
}
