//! Separated values, read from their files one by one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lsm_tree::coding::Decode;

use crate::embedded::files::archive::read_at;
use crate::embedded::files::blocks;
use crate::embedded::salvage::Loss;

/// Files that are kept open; rows that were written together have their values in the same ones.
const OPEN_FILES_MAX: usize = 64;

/// The value files of a tree.
pub(super) struct Values {
    folder: PathBuf,
    open: RefCell<HashMap<u64, File>>,
}

impl Values {
    pub(super) fn of(folder: &Path) -> Self {
        Self { folder: folder.into(), open: RefCell::default() }
    }

    /// The value of the row `key`, which says where it is.
    pub(super) fn read(&self, key: &[u8], place: &[u8]) -> Result<Bytes, Loss> {
        let lost = |file: &Path, detail: &str| Loss {
            keys: None,
            versions: Some(1),
            ..Loss::new(file, format!("{detail}, the value of row {}", key.escape_ascii()))
        };
        let Some((number, offset, bytes)) = parse_place(place) else {
            return Err(lost(&self.folder, "nobody knows where to find it"));
        };
        let path = self.folder.join(number.to_string());
        let len = blocks::VALUE_HEAD_BYTES as u64 + key.len() as u64 + u64::from(bytes);
        let stored = self.read_file(number, &path, offset, len);
        let stored = stored.map_err(|error| lost(&path, &format!("cannot be read: {error}")))?;
        let value = blocks::value_in(&stored, key);
        value
            .map(Bytes::copy_from_slice)
            .ok_or_else(|| lost(&path, &format!("damaged at byte {offset}")))
    }

    fn read_file(
        &self,
        number: u64,
        path: &Path,
        offset: u64,
        len: u64,
    ) -> std::io::Result<Vec<u8>> {
        let mut open = self.open.borrow_mut();
        if !open.contains_key(&number) {
            if open.len() >= OPEN_FILES_MAX {
                open.clear();
            }
            open.insert(number, File::open(path)?);
        }
        let file = open.get_mut(&number).expect("it was just opened");
        read_at(file, offset, len)
    }
}

/// File, offset and stored bytes.
fn parse_place(place: &[u8]) -> Option<(u64, u64, u32)> {
    let mut reader = place;
    let offset = read_varint(&mut reader)?;
    let file = read_varint(&mut reader)?;
    let bytes = u32::try_from(read_varint(&mut reader)?).ok()?;
    // What follows is the length of the value before compression, and there is none.
    lsm_tree::BlobIndirection::decode_from(&mut &*place).ok()?;
    Some((file, offset, bytes))
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        assert_eq!(parse_place(&[0xAC, 0x02, 7, 0x80, 0x01, 5]), Some((7, 300, 128)));
        assert_eq!(parse_place(&[0xAC]), None);
        assert_eq!(parse_place(&[]), None);
        assert_eq!(parse_place(&[0xFF; 30]), None);
    }
}
