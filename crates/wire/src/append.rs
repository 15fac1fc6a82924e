//! Appending to a buffer what is written for every row.

/// Appends the start of a short text: a copy of a fixed size, and what is too much cut off. That costs a fraction of a
/// copy of any size.
#[inline]
pub(crate) fn push_start<const N: usize>(out: &mut Vec<u8>, text: &[u8; N], length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(text);
    out.truncate(end);
}
