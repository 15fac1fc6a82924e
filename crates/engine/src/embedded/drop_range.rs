//! Dropping a range: the rows go, and so does their space while the process runs.
//!
//! 1. Every row gets a tombstone, in chunks through the committer, so that other requests go on in between. From
//!    here on the rows are gone durably.
//! 2. Tables that lie wholly in the range are deleted as files. A big range loses most of its space here at no
//!    cost. Some of those tables may have held the tombstones of rows in tables that stay, so step 1 is repeated
//!    for what has come to light again. It must come first nevertheless: a journal that is still kept may hold
//!    rows of a deleted table, and replays them after a crash, but then it replays their tombstones too.
//! 3. What lies mixed with other rows goes with compaction. Ordinary compaction may take long to get there, so if
//!    tombstones have become a good part of all entries, all tables are rewritten once. Not beyond a size:
//!    writers would be held up, and in a large store step 2 has done most of the work.
//!
//! Steps 2 and 3 depend on nothing but the tables, so a repetition after a crash takes up where it was.
//! `docs/adr/0002-dropping-ranges.md` tells what else was considered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::embedded::commit::committer::Message;
use crate::embedded::commit::job::Pending;
use crate::embedded::shared::Shared;
use crate::embedded::store::compaction::{REWRITE_BYTES_MAX, TOMBSTONE_SHARE_MAX};
use crate::{Decision, Error, KeyRange, Result, Transition, WriteSet, successor};

/// Rows deleted in one transition: about a millisecond for the requests behind it.
const CHUNK_ROWS: usize = 1000;

/// Rows from which on a drop cares for the space at once. The garbage of smaller ones is left to ordinary
/// compaction, so that creating and dropping small tables all day does not rewrite the store all day.
const RECLAIM_ROWS_MIN: usize = 10_000;

/// Dead separated values from which on tables are rewritten a second time to be rid of them.
const STALE_VALUE_BYTES_MAX: u64 = 1024 * 1024;

/// How often a drop looks whether its tombstones are flushed. fjall has no notification for it.
const FLUSH_POLL: Duration = Duration::from_millis(10);

/// Deletes the rows of `range`, blocking the calling thread meanwhile.
pub(crate) fn drop_range(shared: &Shared, range: &KeyRange) -> Result<()> {
    let rows = delete_rows(shared, range)?;
    if rows < RECLAIM_ROWS_MIN && shared.store.tombstone_share() < TOMBSTONE_SHARE_MAX {
        return Ok(());
    }
    flush(shared)?;
    drop_tables(shared, range)?;
    // ORDER: readers, and so the second look, get to see the tables without the dropped ones only from here on.
    housekeep(shared)?;
    if delete_rows(shared, range)? > 0 {
        flush(shared)?;
    }
    // Tables that lay wholly in the range took their tombstones along; their separated values are files of their own.
    let worthwhile = shared.store.tombstone_share() >= TOMBSTONE_SHARE_MAX
        || shared.store.stale_value_bytes() >= STALE_VALUE_BYTES_MAX;
    if worthwhile && shared.store.table_bytes() <= REWRITE_BYTES_MAX && rewrite(shared)? {
        // fjall learns which files of separated values are dead when it drops rows, and deletes them at the next
        // compaction.
        if shared.store.stale_value_bytes() >= STALE_VALUE_BYTES_MAX {
            rewrite(shared)?;
        }
    }
    housekeep(shared)
}

fn drop_tables(shared: &Shared, range: &KeyRange) -> Result<()> {
    let _permit = shared.space.compaction_permit();
    shared.store.drop_tables(range)
}

/// Rewrites all tables, unless there is no room for it; ordinary compaction gets there later.
fn rewrite(shared: &Shared) -> Result<bool> {
    let permit = shared.space.compaction_permit();
    let bytes = shared.store.rewrite_bytes()? + shared.store.unflushed_bytes();
    if !permit.claim(bytes) {
        return Ok(false);
    }
    match shared.store.rewrite() {
        Ok(()) => Ok(true),
        Err(Error::Full) => {
            tracing::warn!(bytes, "there was no room to rewrite what lies mixed with dropped rows");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Writes a tombstone for every row of `range` and returns their number.
fn delete_rows(shared: &Shared, range: &KeyRange) -> Result<usize> {
    let mut range = range.clone();
    let mut rows = 0;
    loop {
        if shared.closing.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        // Each chunk reads a state of its own: one long snapshot would keep everything on disk.
        let keys = shared.store.keys(&range, CHUNK_ROWS)?;
        let Some(last) = keys.last() else { return Ok(rows) };
        rows += keys.len();
        // On from there, not from the start, which is a field of tombstones by now.
        range.start = successor(last).into();
        let (reply, answer) = oneshot::channel();
        send(shared, Message::Job(Box::new(Pending::new(Delete { keys }, reply))))?;
        answer.blocking_recv().map_err(|_| shared.unanswered())??;
    }
}

/// Waits until everything deleted is in tables, where it can be dropped and compacted.
fn flush(shared: &Shared) -> Result<()> {
    shared.store.start_flush()?;
    while !shared.store.is_flushed()? {
        if shared.closing.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        std::thread::sleep(FLUSH_POLL);
    }
    Ok(())
}

/// Has the committer publish the tables as they are now and let go of the files that nobody reads any more.
fn housekeep(shared: &Shared) -> Result<()> {
    let (done, is_done) = oneshot::channel();
    send(shared, Message::Housekeep(done))?;
    is_done.blocking_recv().map_err(|_| shared.unanswered())
}

/// Queues a message, waiting for a place: a drop is nobody's request and must not take places from those.
fn send(shared: &Shared, message: Message) -> Result<()> {
    let queue = shared.queue.as_ref().expect("the queue exists until drop");
    if matches!(message, Message::Job(_)) {
        shared.stats.queue_depth.fetch_add(1, Ordering::Relaxed);
    }
    queue.send(message).map_err(|_| shared.closed())
}

struct Delete {
    keys: Vec<Bytes>,
}

impl Transition for Delete {
    type Verdict = ();

    /// Reads nothing: a row is deleted whatever it holds.
    fn keys(&self) -> &[Bytes] {
        &[]
    }

    fn frees_space(&self) -> bool {
        true
    }

    fn apply(&mut self, _values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        for key in &self.keys {
            writes.delete(key.clone());
        }
        Decision::Commit(())
    }
}
