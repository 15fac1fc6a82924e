//! The versions in a table file, block by block, without those that are damaged.
//!
//! Where blocks lie is said by the index of the table. If that is damaged, the file is read from its start: blocks
//! follow each other, and behind a damaged one the next is looked for. What is found so counts only if its keys go on
//! where those before it ended, because a value may hold a copy of a block.

use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::block::decoder::ParsedItem;
use lsm_tree::table::{Block, DataBlock, IndexBlock};
use lsm_tree::{CompressionType, InternalValue, ValueType};

use crate::embedded::files::archive::{Archive, read_at};
use crate::embedded::files::blocks::{self, BLOCK_HEAD_BYTES, BlockHead};
use crate::embedded::files::cursor::Cursor;
use crate::embedded::salvage::{Content, Loss, Version};

/// A table that is being read.
pub(super) struct Table {
    path: PathBuf,
    /// Which folder its separated values are in.
    values: usize,
    file: Option<File>,
    blocks: VecDeque<Place>,
    ready: VecDeque<Version>,
    last_key: Bytes,
    /// Versions that it says it has, and those that were read.
    expected: Option<u64>,
    read: u64,
    packing: Packing,
    highest_seqno: Option<u64>,
    losses: Vec<Loss>,
}

/// Whether the blocks of a kind are packed, if the table says so.
type Packing = Option<bool>;

/// Where a block is.
struct Place {
    offset: u64,
    bytes: u64,
    /// The last key in it, if the index says so.
    last_key: Option<Bytes>,
}

impl Table {
    pub(super) fn open(path: &Path, values: usize) -> Self {
        let mut table = Self {
            path: path.into(),
            values,
            file: None,
            blocks: VecDeque::new(),
            ready: VecDeque::new(),
            last_key: Bytes::new(),
            expected: None,
            read: 0,
            packing: None,
            highest_seqno: None,
            losses: Vec::new(),
        };
        match File::open(path) {
            Ok(file) => table.file = Some(file),
            Err(error) => table.losses.push(Loss::new(path, format!("all its rows: {error}"))),
        }
        let archive = Archive::open(path).ok();
        let description = archive.as_ref().and_then(description);
        if let Some(description) = &description {
            table.expected = number(description, b"item_count");
            table.highest_seqno = number(description, b"seqno#max");
            table.packing = packing(description, b"compression#data");
        }
        let index_packing =
            description.as_ref().and_then(|description| packing(description, b"compression#index"));
        match archive.as_ref().and_then(|archive| indexed_blocks(archive, index_packing)) {
            Some(blocks) => table.blocks = blocks,
            None => table.find_blocks(),
        }
        table
    }

    /// Whether nothing of it is known to be lost: every block is sound. Reads it all.
    pub(super) fn is_whole(&self) -> bool {
        let is_sound = |archive: Archive| blocks::check_table(&archive).is_ok();
        self.losses.is_empty() && Archive::open(&self.path).is_ok_and(is_sound)
    }

    /// The highest sequence number in it, if it says so.
    pub(super) fn highest_seqno(&self) -> Option<u64> {
        self.highest_seqno
    }

    /// The next version, in order of keys, newer ones first; what is lost on the way is told at the end.
    pub(super) fn next(&mut self, losses: &mut Vec<Loss>) -> Option<Version> {
        while self.ready.is_empty() {
            let Some(place) = self.blocks.pop_front() else {
                self.finish(losses);
                return None;
            };
            self.read_block(&place);
        }
        self.ready.pop_front()
    }

    fn read_block(&mut self, place: &Place) {
        let found =
            self.file.as_mut().and_then(|file| versions_at(file, place, self.packing, self.values));
        // Only a block that was looked for can be out of order.
        let follows = |versions: &VecDeque<Version>| {
            place.last_key.is_some()
                || versions.front().is_some_and(|first| first.key >= self.last_key)
        };
        let Some(versions) = found.filter(follows) else {
            let keys = place.last_key.as_ref().map(|last| (self.last_key.to_vec(), last.to_vec()));
            let detail = format!("the block at byte {} is damaged", place.offset);
            self.losses.push(Loss { keys, ..Loss::new(&self.path, detail) });
            self.last_key = place.last_key.clone().unwrap_or_else(|| self.last_key.clone());
            return;
        };
        self.read += versions.len() as u64;
        if let Some(last) = versions.back() {
            self.last_key = last.key.clone();
        }
        self.ready = versions;
    }

    /// Tells what is lost, with a number if there is but one place for it.
    fn finish(&mut self, losses: &mut Vec<Loss>) {
        let missing = self.expected.map(|expected| expected.saturating_sub(self.read));
        if let ([only], Some(missing)) = (&mut self.losses[..], missing) {
            only.versions = Some(missing);
        } else if self.losses.is_empty() && missing.is_some_and(|missing| missing > 0) {
            let loss = Loss::new(&self.path, "some of its blocks were not found");
            self.losses.push(Loss { versions: missing, ..loss });
        }
        losses.append(&mut self.losses);
        self.expected = None;
    }

    /// Looks for blocks from the start of the file on.
    fn find_blocks(&mut self) {
        let Some(file) = &mut self.file else { return };
        let bytes = file.metadata().map_or(0, |meta| meta.len());
        let Ok(content) = read_at(file, 0, bytes) else {
            self.losses.push(Loss::new(&self.path, "all its rows: it cannot be read"));
            return;
        };
        let mut offset = 0;
        let mut damaged_from = None;
        while let Some(rest) = content.get(offset..).filter(|rest| rest.len() >= BLOCK_HEAD_BYTES) {
            let head = BlockHead::parse(rest);
            let len = head.as_ref().map(|head| BLOCK_HEAD_BYTES + head.data_len as usize);
            let Some((head, len)) = head.zip(len.filter(|len| *len <= rest.len())) else {
                damaged_from.get_or_insert(offset);
                offset += 1;
                continue;
            };
            if head.kind == u8::from(BlockType::Data) {
                let place = Place { offset: offset as u64, bytes: len as u64, last_key: None };
                self.blocks.push_back(place);
                self.note_damage(damaged_from.take());
            }
            // After the blocks with rows come others, and then the end.
            damaged_from = None;
            offset += len;
        }
        let has_found = !self.blocks.is_empty();
        self.note_damage(damaged_from.filter(|_| !has_found));
    }

    fn note_damage(&mut self, offset: Option<usize>) {
        if let Some(offset) = offset {
            self.losses.push(Loss::new(&self.path, format!("damaged from byte {offset} on")));
        }
    }
}

/// The versions of a block; `None` if it is damaged.
fn versions_at(
    file: &mut File,
    place: &Place,
    packing: Packing,
    values: usize,
) -> Option<VecDeque<Version>> {
    let block = block_at(file, place.offset, place.bytes, BlockType::Data, packing)?;
    let block = DataBlock::new(block);
    // lsm-tree's decoder panics on what it does not expect.
    let items = catch_unwind(AssertUnwindSafe(|| {
        block.iter().map(|item| item.materialize(&block.inner.data)).collect::<Vec<InternalValue>>()
    }));
    Some(items.ok()?.iter().map(|item| version_of(item, values)).collect())
}

fn version_of(item: &InternalValue, values: usize) -> Version {
    // Copied: a part of a block would hold the whole of it.
    let value = || Bytes::copy_from_slice(&item.value);
    let content = match item.key.value_type {
        ValueType::Value => Content::Value(value()),
        ValueType::Tombstone | ValueType::WeakTombstone => Content::Deleted,
        ValueType::Indirection => Content::Separate { folder: values, place: value() },
    };
    Version { key: Bytes::copy_from_slice(&item.key.user_key), seqno: item.key.seqno, content }
}

/// A block of this kind, unpacked; `None` if it is damaged, or another.
fn block_at(
    file: &mut File,
    offset: u64,
    bytes: u64,
    kind: BlockType,
    packing: Packing,
) -> Option<Block> {
    let stored = read_at(file, offset, bytes).ok()?;
    let head = BlockHead::parse(&stored).filter(|head| head.kind == u8::from(kind))?;
    blocks::is_sound(&head, &stored).then_some(())?;
    // Without a word of the table: a packed block is hardly ever as long as it was.
    let is_packed = packing.unwrap_or(head.data_len != head.plain_len);
    let compression = if is_packed { CompressionType::Lz4 } else { CompressionType::None };
    Block::from_reader(&mut &stored[..], compression).ok()
}

/// What a table says about itself.
fn description(archive: &Archive) -> Option<DataBlock> {
    let meta = archive.section("meta")?;
    let mut file = &archive.file;
    let stored = read_at(&mut file, meta.start, meta.len).ok()?;
    let head = BlockHead::parse(&stored).filter(|head| head.kind == u8::from(BlockType::Meta))?;
    blocks::is_sound(&head, &stored).then_some(())?;
    Block::from_reader(&mut &stored[..], CompressionType::None).ok().map(DataBlock::new)
}

fn number(description: &DataBlock, name: &[u8]) -> Option<u64> {
    Cursor::new(&property(description, name)?).u64()
}

fn packing(description: &DataBlock, name: &[u8]) -> Packing {
    Some(Cursor::new(&property(description, name)?).u8()? != 0)
}

fn property(description: &DataBlock, name: &[u8]) -> Option<Vec<u8>> {
    let read = || description.point_read(name, u64::MAX);
    Some(catch_unwind(AssertUnwindSafe(read)).ok()??.value.to_vec())
}

/// Where the blocks with rows are, if the whole index can be read.
fn indexed_blocks(archive: &Archive, packing: Packing) -> Option<VecDeque<Place>> {
    let mut file = archive.file.try_clone().ok()?;
    let top = archive.section("tli")?;
    let places = index_at(&mut file, top.start, top.len, packing)?;
    if archive.section("index").is_none() {
        return Some(places);
    }
    let mut all = VecDeque::new();
    for part in places {
        all.extend(index_at(&mut file, part.offset, part.bytes, packing)?);
    }
    Some(all)
}

fn index_at(file: &mut File, offset: u64, bytes: u64, packing: Packing) -> Option<VecDeque<Place>> {
    let index = IndexBlock::new(block_at(file, offset, bytes, BlockType::Index, packing)?);
    let handles = catch_unwind(AssertUnwindSafe(|| {
        let place = |handle: lsm_tree::table::KeyedBlockHandle| Place {
            offset: *handle.offset(),
            bytes: handle.size().into(),
            last_key: Some(Bytes::copy_from_slice(handle.end_key())),
        };
        index.iter().map(|item| place(item.materialize(index.as_slice()))).collect()
    }));
    handles.ok()
}
