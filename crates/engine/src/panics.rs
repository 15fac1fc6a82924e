//! What a panic said.

use std::any::Any;

/// The message of a panic that was caught.
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn the_message_is_told_however_it_was_made() {
        let message = |panicking: fn()| {
            let payload = catch_unwind(panicking).expect_err("a panic");
            panic_message(&*payload).to_owned()
        };
        assert_eq!(message(|| panic!("a text")), "a text");
        assert_eq!(message(|| panic!("number {}", 7)), "number 7");
        assert_eq!(message(|| std::panic::panic_any(7)), "no message");
    }
}
