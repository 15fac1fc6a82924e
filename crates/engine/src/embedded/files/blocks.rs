//! What table files and value files of lsm-tree consist of, and whether it is what was written.
//!
//! All integers little-endian. A table is an archive of blocks: `data`, an index (`tli`, `index`), filters
//! (`filter`, `filter_tli`), and its description (`meta`). Each block carries its checksum, which lsm-tree checks
//! whenever it reads the block from disk. Two parts have none: `linked_blob_files`, which compaction reads to learn
//! what a dropped table no longer refers to, and `table_version`, which nobody reads.
//!
//! ```text
//! block  := "LSM" 03 kind:u8 xxh3_128(data):u128 data_len:u32 plain_len:u32 low_half(xxh3_128(before)):u32 data
//! value  := "BLOB" xxh3_128(key value):u128 seqno:u64 key_len:u16 plain_len:u32 value_len:u32 key value
//! linked := count:u32 { value_file:u64 values:u64 bytes:u64 stored_bytes:u64 }{count}
//! ```
//!
//! A value file is an archive of values (`data`) and a block that describes them (`meta`, after the word `META`).

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::embedded::files::archive::{Archive, Section};
use crate::embedded::files::cursor::Cursor;
use crate::embedded::options::OpenError;

const BLOCK_MAGIC: &[u8] = b"LSM\x03";
pub(crate) const BLOCK_HEAD_BYTES: usize = 33;
const VALUE_MAGIC: &[u8] = b"BLOB";
pub(crate) const VALUE_HEAD_BYTES: usize = 38;
const META_MAGIC: &[u8] = b"META";
const LINK_BYTES: usize = 32;

/// The parts of a table that consist of blocks.
const BLOCK_SECTIONS: [&str; 6] = ["data", "tli", "index", "filter", "filter_tli", "meta"];

/// Checks what lsm-tree reads of a table when it opens it, and the part that has no checksum of its own.
pub(crate) fn check_table_head(
    table: &Archive,
    value_files: &HashSet<u64>,
) -> Result<(), OpenError> {
    let Some(meta) = table.section("meta") else {
        return Err(OpenError::corrupt(&table.path, 0, "it does not describe itself"));
    };
    check_blocks(table, meta)?;
    let Some(linked) = table.section("linked_blob_files") else { return Ok(()) };
    let bytes = table.read(&linked.name)?;
    let is_sound = linked_value_files(&bytes)
        .is_some_and(|linked| linked.iter().all(|file| value_files.contains(file)));
    if is_sound {
        return Ok(());
    }
    Err(OpenError::corrupt(&table.path, linked.start, "its list of value files makes no sense"))
}

/// Checks what lsm-tree reads of a value file when it opens it.
pub(crate) fn check_value_file_head(file: &Archive) -> Result<(), OpenError> {
    let bytes = file.read("meta")?;
    let is_sound = bytes.strip_prefix(META_MAGIC).is_some_and(|block| {
        BlockHead::parse(block).is_some_and(|head| {
            let data = &block[BLOCK_HEAD_BYTES..];
            data.len() == head.data_len as usize && xxh3_128(data) == head.checksum
        })
    });
    if is_sound {
        return Ok(());
    }
    let offset = file.section("meta").map_or(0, |section| section.start);
    Err(OpenError::corrupt(&file.path, offset, "its description has another checksum"))
}

/// Checks every block of a table. Its parts without checksums are left to [`check_table_head`].
pub(crate) fn check_table(table: &Archive) -> Result<(), OpenError> {
    let of_blocks = |section: &&Section| BLOCK_SECTIONS.contains(&section.name.as_str());
    table.sections().iter().filter(of_blocks).try_for_each(|section| check_blocks(table, section))
}

/// Checks every value of a value file, and answers how many there are.
pub(crate) fn check_values(file: &Archive) -> Result<u64, OpenError> {
    let Some(section) = file.section("data") else {
        return Err(OpenError::corrupt(&file.path, 0, "it holds no values"));
    };
    let mut parts = Parts::of(file, section)?;
    let mut count = 0;
    while parts.left > 0 {
        let at = parts.offset;
        let head = parts.take(VALUE_HEAD_BYTES)?;
        let (checksum, key_len, value_len) =
            parse_value_head(&head).ok_or_else(|| parts.damaged(at, "no value begins here"))?;
        let mut hasher = Xxh3::new();
        hasher.update(&parts.take(usize::from(key_len))?);
        hasher.update(&parts.take(value_len as usize)?);
        if hasher.digest128() != checksum {
            return Err(parts.damaged(at, "a value has another checksum"));
        }
        count += 1;
    }
    Ok(count)
}

fn check_blocks(table: &Archive, section: &Section) -> Result<(), OpenError> {
    let mut parts = Parts::of(table, section)?;
    while parts.left > 0 {
        let at = parts.offset;
        let head = parts.take(BLOCK_HEAD_BYTES)?;
        let head = BlockHead::parse(&head)
            .ok_or_else(|| parts.damaged(at, "the head of a block has another checksum"))?;
        if xxh3_128(&parts.take(head.data_len as usize)?) != head.checksum {
            return Err(parts.damaged(at, "a block has another checksum"));
        }
    }
    Ok(())
}

/// What stands before a block.
pub(crate) struct BlockHead {
    pub(crate) kind: u8,
    checksum: u128,
    pub(crate) data_len: u32,
    /// How long the data is when it is unpacked.
    pub(crate) plain_len: u32,
}

/// Whether `block`, head and data, is what was written.
pub(crate) fn is_sound(head: &BlockHead, block: &[u8]) -> bool {
    let data = block.get(BLOCK_HEAD_BYTES..).unwrap_or_default();
    data.len() == head.data_len as usize && xxh3_128(data) == head.checksum
}

/// The value of the row `key` in the bytes that it is stored in; `None` if they are damaged, or another's.
pub(crate) fn value_in<'a>(stored: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = stored.split_at_checked(VALUE_HEAD_BYTES)?;
    let (checksum, key_len, value_len) = parse_value_head(head)?;
    let (stored_key, value) = rest.split_at_checked(usize::from(key_len))?;
    let is_sound = value.len() == value_len as usize && xxh3_128(rest) == checksum;
    (is_sound && stored_key == key).then_some(value)
}

impl BlockHead {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(BLOCK_MAGIC.len())? != BLOCK_MAGIC {
            return None;
        }
        let kind = cursor.u8()?;
        let (checksum, data_len, plain_len) = (cursor.u128()?, cursor.u32()?, cursor.u32()?);
        let expected = xxh3_128(&bytes[..cursor.offset]) & u128::from(u32::MAX);
        (u128::from(cursor.u32()?) == expected).then_some(Self {
            kind,
            checksum,
            data_len,
            plain_len,
        })
    }
}

fn parse_value_head(bytes: &[u8]) -> Option<(u128, u16, u32)> {
    let mut cursor = Cursor::new(bytes);
    if cursor.take(VALUE_MAGIC.len())? != VALUE_MAGIC {
        return None;
    }
    let (checksum, _seqno) = (cursor.u128()?, cursor.u64()?);
    let (key_len, _plain_len, value_len) = (cursor.u16()?, cursor.u32()?, cursor.u32()?);
    Some((checksum, key_len, value_len))
}

/// The value files that a table refers to.
fn linked_value_files(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.u32()? as usize;
    if bytes.len() != cursor.offset + count.checked_mul(LINK_BYTES)? {
        return None;
    }
    let mut files = Vec::with_capacity(count);
    for _ in 0..count {
        files.push(cursor.u64()?);
        cursor.skip(LINK_BYTES - size_of::<u64>())?;
    }
    Some(files)
}

/// Reads a section piece by piece and never beyond it.
struct Parts<'a> {
    archive: &'a Archive,
    reader: BufReader<&'a std::fs::File>,
    offset: u64,
    left: u64,
}

impl<'a> Parts<'a> {
    fn of(archive: &'a Archive, section: &Section) -> Result<Self, OpenError> {
        let mut file = &archive.file;
        file.seek(SeekFrom::Start(section.start))
            .map_err(|source| OpenError::Io { path: archive.path.clone(), source })?;
        let reader = BufReader::with_capacity(1 << 16, file);
        Ok(Self { archive, reader, offset: section.start, left: section.len })
    }

    fn take(&mut self, len: usize) -> Result<Vec<u8>, OpenError> {
        if len as u64 > self.left {
            return Err(self.damaged(self.offset, "a length leads beyond the end of its part"));
        }
        let mut bytes = vec![0; len];
        self.reader.read_exact(&mut bytes).map_err(|source: io::Error| OpenError::Io {
            path: self.archive.path.clone(),
            source,
        })?;
        self.offset += len as u64;
        self.left -= len as u64;
        Ok(bytes)
    }

    fn damaged(&self, offset: u64, detail: &str) -> OpenError {
        OpenError::corrupt(&self.archive.path, offset, detail)
    }
}
