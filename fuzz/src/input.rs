//! Bytes taken apart into what a reader wants.

use tavola_wire::StorageError;

/// The input as lines, so that the corpora can be read and written by hand; what is missing is empty.
pub fn lines<const COUNT: usize>(text: &str) -> [&str; COUNT] {
    let mut lines = text.splitn(COUNT, '\n');
    std::array::from_fn(|_| lines.next().unwrap_or_default())
}

/// What a request may be answered with when its bytes are bad: an error of the client's, or 501.
pub fn assert_refusal(error: &StorageError) {
    let status = error.status();
    assert!((400..500).contains(&status) || status == 501, "{status} {error}");
    assert!(!error.message().is_empty(), "{error:?}");
}
