//! lsm-tree's container format: sections one after the other, then a table of contents, then a trailer.
//!
//! Tables, value files and manifests are such archives. lsm-tree trusts a table of contents before it has checked
//! it (a flipped length makes it ask for gigabytes), so the engine looks first. All integers little-endian:
//!
//! ```text
//! archive := section*  toc  "SFA!" 01 00 xxh3_128(toc):u128 toc_start:u64 toc_len:u64
//! toc     := "TOC!" count:u32 { start:u64 len:u64 name_len:u16 name }{count}
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::embedded::files::cursor::Cursor;
use crate::embedded::options::OpenError;

const TRAILER_BYTES: u64 = 38;
const TRAILER_MAGIC: &[u8] = b"SFA!\x01\x00";
const TOC_MAGIC: &[u8] = b"TOC!";

/// Far more than any table of contents has; they have about ten entries.
const TOC_BYTES_MAX: u64 = 1 << 20;

/// An archive whose table of contents is what was written.
pub(crate) struct Archive {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    sections: Vec<Section>,
}

/// A part of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Archive {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |source: io::Error| OpenError::Io { path: path.into(), source };
        let damaged = |offset, detail: &str| OpenError::corrupt(path, offset, detail);
        let mut file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let Some(trailer_start) = len.checked_sub(TRAILER_BYTES) else {
            return Err(damaged(0, "it is too short to be whole"));
        };
        let trailer = read_at(&mut file, trailer_start, TRAILER_BYTES).map_err(failed)?;
        let (toc_checksum, toc_start, toc_len) = parse_trailer(&trailer)
            .ok_or_else(|| damaged(trailer_start, "its end is not whole"))?;
        let is_before_trailer = toc_start.checked_add(toc_len) == Some(trailer_start);
        if !is_before_trailer || toc_len > TOC_BYTES_MAX {
            return Err(damaged(trailer_start, "its end does not name its contents"));
        }
        let toc = read_at(&mut file, toc_start, toc_len).map_err(failed)?;
        if xxh3_128(&toc) != toc_checksum {
            return Err(damaged(toc_start, "its table of contents has another checksum"));
        }
        let sections = parse_toc(&toc, toc_start)
            .ok_or_else(|| damaged(toc_start, "its table of contents makes no sense"))?;
        Ok(Self { path: path.into(), file, sections })
    }

    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The bytes of a section that there must be.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, OpenError> {
        let Some(section) = self.section(name) else {
            return Err(OpenError::corrupt(&self.path, 0, format!("it has no part {name:?}")));
        };
        read_at(&mut &self.file, section.start, section.len)
            .map_err(|source| OpenError::Io { path: self.path.clone(), source })
    }
}

fn parse_trailer(bytes: &[u8]) -> Option<(u128, u64, u64)> {
    let mut cursor = Cursor::new(bytes);
    if cursor.take(TRAILER_MAGIC.len())? != TRAILER_MAGIC {
        return None;
    }
    Some((cursor.u128()?, cursor.u64()?, cursor.u64()?))
}

/// The sections, which must follow each other from the start of the file to `end`.
fn parse_toc(bytes: &[u8], end: u64) -> Option<Vec<Section>> {
    let mut cursor = Cursor::new(bytes);
    if cursor.take(TOC_MAGIC.len())? != TOC_MAGIC {
        return None;
    }
    let count = cursor.u32()?;
    let mut sections = Vec::new();
    let mut next = 0_u64;
    for _ in 0..count {
        let (start, len, name_len) = (cursor.u64()?, cursor.u64()?, cursor.u16()?);
        let name = std::str::from_utf8(cursor.take(usize::from(name_len))?).ok()?;
        if start != next {
            return None;
        }
        next = start.checked_add(len)?;
        sections.push(Section { name: name.to_owned(), start, len });
    }
    (cursor.is_at_end() && next == end).then_some(sections)
}

/// Reads exactly `len` bytes. The caller knows that the file is long enough.
pub(crate) fn read_at(file: &mut (impl Read + Seek), start: u64, len: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
