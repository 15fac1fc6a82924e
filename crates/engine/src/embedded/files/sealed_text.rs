//! Small files of lines that tell whether they are whole: a title, the lines, and the checksum of all that.

use xxhash_rust::xxh3::xxh3_64;

/// The text of a file with these lines, none of which holds a line break.
pub(crate) fn seal(title: &str, lines: &[String]) -> String {
    let mut text = title.to_owned();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    let checksum = xxh3_64(text.as_bytes());
    format!("{text}{checksum:016x}\n")
}

/// The lines of a file with this title; `None` if it is not whole, or another.
pub(crate) fn open(bytes: &[u8], title: &str) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (_, checksum) = text.rsplit_once('\n')?;
    let body = &text[..text.len() - checksum.len()];
    if format!("{:016x}", xxh3_64(body.as_bytes())) != checksum {
        return None;
    }
    Some(body.strip_prefix(title)?.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_and_nothing_else_does() {
        let lines = ["first".to_owned(), "second".to_owned()];
        let text = seal("title:\n", &lines);
        assert_eq!(open(text.as_bytes(), "title:\n").as_deref(), Some(&lines[..]));
        assert_eq!(open(seal("title:\n", &[]).as_bytes(), "title:\n"), Some(Vec::new()));
        assert_eq!(open(text.as_bytes(), "other:\n"), None);
        for cut in 0..text.len() {
            assert_eq!(open(&text.as_bytes()[..cut], "title:\n"), None, "{cut}");
        }
        for byte in 0..text.len() {
            let mut flipped = text.clone().into_bytes();
            flipped[byte] ^= 1;
            assert_eq!(open(&flipped, "title:\n"), None, "{byte}");
        }
    }
}
