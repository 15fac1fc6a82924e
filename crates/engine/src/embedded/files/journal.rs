//! Checks fjall's journals before fjall reads them.
//!
//! A power cut can tear the batch that was being written: some of its sectors are on disk and some are not.
//! Nobody was told that this batch is durable, so it must vanish and the service must start. fjall gets that right
//! only sometimes: a torn batch that still parses fails its checksum and stops the start, and an unreadable entry
//! *anywhere* silently cuts off the rest of the journal, acknowledged batches included. So:
//!
//! - damage in the newest journal with no whole batch after it is a torn tail: cut it off and warn;
//! - any other damage has hit acknowledged rows: report it and do not start.
//!
//! The two are told apart by the group's promise to start a batch only when the one before it is synced.
//! A bit that rots in the very last batch looks like a torn tail; no journal can tell these apart. After an orderly
//! stop there is no torn tail, and [`clean`](crate::embedded::files::clean_mark) can tell.
//!
//! The format is that of fjall 3 (`journal/entry.rs`): all integers little-endian,
//!
//! ```text
//! batch := 01 count:u32 seqno:u64  entry{count}  03 xxh3(entries):u64 "FJL" 03
//! entry := 02 value_type:u8 compression:u8 keyspace:u64 key_len:u16 value_len:u32 stored_len:u32 key value
//!        | 04 keyspace:u64
//! ```
//!
//! followed by zeros up to the preallocated size.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::embedded::files::cursor::Cursor;
use crate::embedded::options::OpenError;

const TAG_START: u8 = 1;
const TAG_ITEM: u8 = 2;
const TAG_END: u8 = 3;
const TAG_CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";

/// Sequence numbers are also taken by flushes and compactions, some in a second. What is further apart than this
/// was not counted.
const SEQNO_GAP_MAX: u64 = 1 << 40;

/// Not reached by counting.
const SEQNO_MAX: u64 = 1 << 62;

/// Checks every journal in fjall's folder `store`; does nothing if there is none yet.
pub(crate) fn check(store: &Path) -> Result<(), OpenError> {
    let journals = list(store).map_err(|source| OpenError::Io { path: store.into(), source })?;
    let mut seqno = None;
    for (index, path) in journals.iter().enumerate() {
        let failed = |source: io::Error| OpenError::Io { path: path.clone(), source };
        // Read whole: a journal is rotated at 64 MB, so this is a short-lived hundred megabytes at worst.
        let found = inspect(&fs::read(path).map_err(failed)?, seqno);
        seqno = found.seqno;
        let Some(damage) = found.damage else { continue };
        let is_newest = index + 1 == journals.len();
        if !(is_newest && damage.is_torn_tail) {
            return Err(OpenError::corrupt(path, found.bytes, damage.detail));
        }
        tracing::warn!(
            file = %path.display(),
            offset = found.bytes,
            "cutting off a torn batch that was never acknowledged"
        );
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        file.set_len(found.bytes).map_err(failed)?;
        file.sync_all().map_err(failed)?;
    }
    Ok(())
}

/// The journals in `store`, oldest first.
pub(crate) fn list(store: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(store) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut journals = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A name that is no number is left to fjall, which refuses it.
        if let Some(id) = id_of(&path) {
            journals.push((id, path));
        }
    }
    journals.sort_unstable();
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

/// The name of the journal with this number.
pub(crate) fn name_of(id: u64) -> String {
    format!("{id}.jnl")
}

/// The number of a journal; `None` if this is none.
pub(crate) fn id_of(path: &Path) -> Option<u64> {
    let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
    path.file_stem().filter(|_| is_journal).and_then(|stem| stem.to_str()?.parse().ok())
}

/// What a journal holds up to its end, or up to the first damage.
#[derive(Debug, Default)]
pub(crate) struct Inspected {
    pub(crate) batches: u64,
    pub(crate) entries: u64,
    /// Where the whole batches end.
    pub(crate) bytes: u64,
    /// The sequence number of the last batch, of this journal or one before it.
    pub(crate) seqno: Option<u64>,
    pub(crate) damage: Option<Damage>,
}

#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) detail: &'static str,
    /// Whether a power cut can have left it, if this is the newest journal.
    pub(crate) is_torn_tail: bool,
}

/// Walks through a journal; `seqno` is that of the last batch of the journal before it.
pub(crate) fn inspect(bytes: &[u8], seqno: Option<u64>) -> Inspected {
    let mut found = Inspected { seqno, ..Inspected::default() };
    let bytes = content(bytes);
    let mut offset = 0;
    while let Some(batch) = batch_at(bytes, offset) {
        // No checksum covers the number, but each is a little above the one before it. A number that keeps that
        // order keeps every row in its place.
        if !follows(batch.seqno, found.seqno) {
            let detail = "a batch of acknowledged rows is out of order";
            found.damage = Some(Damage { detail, is_torn_tail: false });
            return found;
        }
        offset += batch.len;
        found.batches += 1;
        found.entries += u64::from(batch.count);
        found.bytes = offset as u64;
        found.seqno = Some(batch.seqno);
    }
    if offset < bytes.len() {
        // The sequence must go on: a value may contain a copy of a journal.
        let is_later = |batch: Batch| follows(batch.seqno, found.seqno);
        let is_followed_by_whole_batch = (offset + 1..bytes.len())
            .filter(|&start| bytes[start] == TAG_START)
            .any(|start| batch_at(bytes, start).is_some_and(is_later));
        found.damage = Some(Damage {
            detail: "a batch of acknowledged rows cannot be read",
            is_torn_tail: !is_followed_by_whole_batch,
        });
    }
    found
}

fn follows(seqno: u64, last: Option<u64>) -> bool {
    match last {
        Some(last) => seqno > last && seqno - last < SEQNO_GAP_MAX,
        None => seqno < SEQNO_MAX,
    }
}

/// What was written to a journal: the bytes up to the last that is not zero. No batch ends with a zero. Looks chunk by
/// chunk, because there may be 64 MiB of zeros at every start.
pub(crate) fn content(journal: &[u8]) -> &[u8] {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut end = journal.len();
    while end > 0 {
        let start = (end - 1) / ZEROS.len() * ZEROS.len();
        let chunk = &journal[start..end];
        if *chunk != ZEROS[..chunk.len()] {
            let last = chunk.iter().rposition(|byte| *byte != 0);
            return &journal[..start + last.map_or(0, |last| last + 1)];
        }
        end = start;
    }
    &[]
}

struct Batch {
    len: usize,
    count: u32,
    seqno: u64,
}

/// The whole, undamaged batch at `offset`, if there is one.
fn batch_at(bytes: &[u8], offset: usize) -> Option<Batch> {
    let mut cursor = Cursor::at(bytes, offset);
    if cursor.u8()? != TAG_START {
        return None;
    }
    let count = cursor.u32()?;
    let seqno = cursor.u64()?;
    let entries_start = cursor.offset;
    for _ in 0..count {
        match cursor.u8()? {
            TAG_ITEM => {
                item(&mut cursor)?;
            }
            TAG_CLEAR => cursor.skip(size_of::<u64>())?,
            _ => return None,
        }
    }
    let entries = &bytes[entries_start..cursor.offset];
    let is_whole = cursor.u8()? == TAG_END
        && cursor.u64()? == xxhash_rust::xxh3::xxh3_64(entries)
        && cursor.take(TRAILER.len())? == TRAILER;
    is_whole.then_some(Batch { len: cursor.offset - offset, count, seqno })
}

/// An entry of a batch.
pub(crate) struct Entry<'a> {
    pub(crate) keyspace: u64,
    pub(crate) key: &'a [u8],
    /// As it is stored; the engine has journals written without compression.
    pub(crate) value: &'a [u8],
    pub(crate) is_deletion: bool,
}

fn item<'a>(cursor: &mut Cursor<'a>) -> Option<Entry<'a>> {
    let value_type = cursor.u8()?;
    let compression = cursor.u8()?;
    if value_type > 4 || compression > 1 {
        return None;
    }
    let keyspace = cursor.u64()?;
    let key_len = cursor.u16()?;
    cursor.skip(size_of::<u32>())?;
    let stored_len = cursor.u32()?;
    let key = cursor.take(usize::from(key_len))?;
    let value = cursor.take(usize::try_from(stored_len).ok()?)?;
    Some(Entry { keyspace, key, value, is_deletion: matches!(value_type, 1 | 2) })
}

/// The entries of the whole batch at `offset`.
fn entries_at(bytes: &[u8], offset: usize, count: u32) -> Vec<Entry<'_>> {
    let mut cursor = Cursor::at(bytes, offset + 1 + size_of::<u32>() + size_of::<u64>());
    let entry = |_| match cursor.u8()? {
        TAG_ITEM => item(&mut cursor),
        _ => {
            cursor.skip(size_of::<u64>())?;
            None
        }
    };
    (0..count).filter_map(entry).collect()
}

/// What a damaged journal consists of.
pub(crate) enum Part<'a> {
    Batch {
        seqno: u64,
        entries: Vec<Entry<'a>>,
    },
    /// Where no batch can be read, and the number of the next that can.
    Damage {
        offset: usize,
        next: Option<u64>,
    },
}

/// All batches that can be read, and where there are others; `seqno` is that of the last batch, before and after.
pub(crate) fn parts<'a>(bytes: &'a [u8], seqno: &mut Option<u64>) -> Vec<Part<'a>> {
    let bytes = content(bytes);
    let mut parts = Vec::new();
    let mut offset = 0;
    while offset < bytes.len() {
        let later =
            |at: &usize| batch_at(bytes, *at).is_some_and(|batch| follows(batch.seqno, *seqno));
        let starts = (offset..bytes.len()).filter(|&start| bytes[start] == TAG_START);
        let next = starts.into_iter().find(later);
        if next != Some(offset) {
            let next = next.and_then(|at| batch_at(bytes, at));
            parts.push(Part::Damage { offset, next: next.map(|batch| batch.seqno) });
        }
        let Some((start, batch)) = next.and_then(|at| Some((at, batch_at(bytes, at)?))) else {
            break;
        };
        let entries = entries_at(bytes, start, batch.count);
        parts.push(Part::Batch { seqno: batch.seqno, entries });
        *seqno = Some(batch.seqno);
        offset = start + batch.len;
    }
    parts
}

/// Keys and values.
#[cfg(test)]
type Entries<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The whole batches of a journal: where each ends, and its keys and values.
#[cfg(test)]
pub(crate) fn batches(bytes: &[u8]) -> Vec<(usize, Entries<'_>)> {
    let mut found = Vec::new();
    let mut offset = 0;
    while let Some(batch) = batch_at(bytes, offset) {
        let entries = entries_at(bytes, offset, batch.count);
        offset += batch.len;
        found.push((offset, entries.iter().map(|entry| (entry.key, entry.value)).collect()));
    }
    found
}
