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
//! The two are told apart by the committer's promise to start a batch only when the one before it is synced.
//! A bit that rots in the very last batch looks like a torn tail; no journal can tell these apart.
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

use super::options::OpenError;

const TAG_START: u8 = 1;
const TAG_ITEM: u8 = 2;
const TAG_END: u8 = 3;
const TAG_CLEAR: u8 = 4;
const TRAILER: &[u8] = b"FJL\x03";

/// Checks every journal in fjall's folder `store`; does nothing if there is none yet.
pub(super) fn check(store: &Path) -> Result<(), OpenError> {
    let journals = list(store).map_err(|source| OpenError::Io { path: store.into(), source })?;
    for (index, path) in journals.iter().enumerate() {
        let failed = |source: io::Error| OpenError::Io { path: path.clone(), source };
        // Read whole: a journal is rotated at 64 MB, so this is a short-lived hundred megabytes at worst.
        let bytes = fs::read(path).map_err(failed)?;
        let Some(damage) = first_damage(&bytes) else { continue };
        let is_newest = index + 1 == journals.len();
        if !is_newest || damage.is_followed_by_whole_batch {
            return Err(OpenError::Corrupt {
                file: path.clone(),
                offset: damage.offset as u64,
                detail: "a batch of acknowledged rows cannot be read".into(),
            });
        }
        tracing::warn!(
            file = %path.display(),
            offset = damage.offset,
            "cutting off a torn batch that was never acknowledged"
        );
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        file.set_len(damage.offset as u64).map_err(failed)?;
        file.sync_all().map_err(failed)?;
    }
    Ok(())
}

/// The journals in `store`, oldest first.
fn list(store: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(store) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut journals = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jnl");
        let id = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        // A name that is no number is left to fjall, which refuses it.
        if let (true, Some(id)) = (is_journal, id) {
            journals.push((id, path));
        }
    }
    journals.sort_unstable();
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

/// Where the first unreadable batch of a journal begins.
struct Damage {
    offset: usize,
    is_followed_by_whole_batch: bool,
}

fn first_damage(bytes: &[u8]) -> Option<Damage> {
    let mut offset = 0;
    let mut seqno_last = None;
    while let Some(batch) = batch_at(bytes, offset) {
        offset += batch.len;
        seqno_last = Some(batch.seqno);
    }
    if is_zero(&bytes[offset..]) {
        return None;
    }
    // The sequence must go on: a value may contain a copy of a journal.
    let is_later = |batch: Batch| seqno_last.is_none_or(|last| batch.seqno > last);
    let is_followed_by_whole_batch = (offset + 1..bytes.len())
        .filter(|&start| bytes[start] == TAG_START)
        .any(|start| batch_at(bytes, start).is_some_and(is_later));
    Some(Damage { offset, is_followed_by_whole_batch })
}

/// Compares chunk by chunk, because there may be 64 MiB of it at every start.
fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

struct Batch {
    len: usize,
    seqno: u64,
}

/// The whole, undamaged batch at `offset`, if there is one.
fn batch_at(bytes: &[u8], offset: usize) -> Option<Batch> {
    let mut cursor = Cursor { bytes, offset };
    if cursor.u8()? != TAG_START {
        return None;
    }
    let count = cursor.u32()?;
    let seqno = cursor.u64()?;
    let entries_start = cursor.offset;
    for _ in 0..count {
        match cursor.u8()? {
            TAG_ITEM => cursor.item()?,
            TAG_CLEAR => cursor.skip(size_of::<u64>())?,
            _ => return None,
        }
    }
    let entries = &bytes[entries_start..cursor.offset];
    let is_whole = cursor.u8()? == TAG_END
        && cursor.u64()? == xxhash_rust::xxh3::xxh3_64(entries)
        && cursor.take(TRAILER.len())? == TRAILER;
    is_whole.then_some(Batch { len: cursor.offset - offset, seqno })
}

struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    fn item(&mut self) -> Option<()> {
        let value_type = self.u8()?;
        let compression = self.u8()?;
        if value_type > 4 || compression > 1 {
            return None;
        }
        self.skip(size_of::<u64>())?;
        let key_len = self.u16()?;
        self.skip(size_of::<u32>())?;
        let stored_len = self.u32()?;
        self.skip(usize::from(key_len))?;
        self.skip(usize::try_from(stored_len).ok()?)
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.offset..self.offset.checked_add(len)?)?;
        self.offset += len;
        Some(taken)
    }

    fn skip(&mut self, len: usize) -> Option<()> {
        self.take(len).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
