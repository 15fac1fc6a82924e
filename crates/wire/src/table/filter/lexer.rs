//! The tokens of a filter, with their places for error texts.
//!
//! Literals are complete here: a token of type literal holds its value, and what is malformed is refused where
//! it stands. Blanks separate tokens and mean nothing else, so that none is needed next to a parenthesis.

use super::expr::Literal;
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::table::stored::{EdmType, parse_guid};
use crate::ticks::Ticks;

#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A keyword, a property or the name of a function: the parser knows which.
    Word(&'a str),
    Literal(Literal),
    Null,
    Open,
    Close,
    End,
}

/// A token and the byte after it.
#[derive(Debug)]
pub(super) struct Spanned<'a> {
    pub(super) token: Token<'a>,
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn next(&mut self) -> Result<Spanned<'a>> {
        self.skip_while(char::is_whitespace);
        let start = self.at;
        let token = match self.rest().chars().next() {
            None => Token::End,
            Some('(') => self.single(Token::Open),
            Some(')') => self.single(Token::Close),
            Some('\'') => Token::Literal(Literal::String(self.quoted()?)),
            Some('0'..='9') => Token::Literal(self.number(start)?),
            Some('-') if self.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit) => {
                self.at += 1;
                Token::Literal(self.number(start)?)
            }
            Some(first) if is_word_part(first) => self.word(start)?,
            Some(other) => return Err(self.syntax_error(start + other.len_utf8())),
        };
        Ok(Spanned { token, end: self.at })
    }

    /// "Syntax error at position N": N counts the characters up to the end of the offending token.
    pub(super) fn syntax_error(&self, end: usize) -> StorageError {
        let position = self.text[..end].chars().count();
        let detail = format!("Syntax error at position {position} in '{}'.", self.text);
        StorageError::with_detail(ErrorCode::InvalidInput, detail)
    }

    fn unrecognized(&self, edm_type: EdmType, start: usize) -> StorageError {
        let position = self.text[..start].chars().count();
        let literal = &self.text[start..self.at];
        StorageError::with_detail(
            ErrorCode::InvalidInput,
            format!(
                "Unrecognized '{}' literal '{literal}' at '{position}' in '{}'.",
                edm_type.name(),
                self.text
            ),
        )
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn single(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        // Most filters are ASCII, where a byte is a character.
        let is_wanted = |byte: &u8| byte.is_ascii() && wanted(char::from(*byte));
        while self.text.as_bytes().get(self.at).is_some_and(is_wanted) {
            self.at += 1;
        }
        let rest = self.rest();
        if rest.chars().next().is_some_and(|next| !next.is_ascii()) {
            self.at += rest.find(|character| !wanted(character)).unwrap_or(rest.len());
        }
    }

    /// Reads `'...'` from the opening quote on; a doubled quote stands for one.
    fn quoted(&mut self) -> Result<String> {
        let mut content = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let Some(quote) = memchr::memchr(b'\'', rest.as_bytes()) else {
                return Err(self.syntax_error(self.text.len()));
            };
            content.push_str(&rest[..quote]);
            self.at += quote + 1;
            if !self.rest().starts_with('\'') {
                return Ok(content);
            }
            content.push('\'');
            self.at += 1;
        }
    }

    fn word(&mut self, start: usize) -> Result<Token<'a>> {
        self.skip_while(is_word_part);
        let word = &self.text[start..self.at];
        let quoted = self.rest().starts_with('\'');
        Ok(match word {
            "true" => Token::Literal(Literal::Boolean(true)),
            "false" => Token::Literal(Literal::Boolean(false)),
            "null" => Token::Null,
            "datetime" if quoted => {
                let moment = Ticks::parse_iso(&self.quoted()?).map(Literal::DateTime);
                Token::Literal(moment.ok_or_else(|| self.unrecognized(EdmType::DateTime, start))?)
            }
            "guid" if quoted => {
                let guid = parse_guid(&self.quoted()?).map(Literal::Guid);
                Token::Literal(guid.ok_or_else(|| self.unrecognized(EdmType::Guid, start))?)
            }
            "X" | "x" | "binary" if quoted => {
                let bytes = parse_hex(&self.quoted()?).map(Literal::Binary);
                Token::Literal(bytes.ok_or_else(|| self.unrecognized(EdmType::Binary, start))?)
            }
            word => Token::Word(word),
        })
    }

    /// Reads a number whose digits begin here; `start` is where its sign stands, if it has one.
    fn number(&mut self, start: usize) -> Result<Literal> {
        self.skip_digits();
        let fraction = self.skip_if_digits_follow(&["."]);
        let exponent = self.skip_if_digits_follow(&["e+", "e-", "e", "E+", "E-", "E"]);
        let digits = &self.text[start..self.at];
        let suffix = self.rest().chars().next().filter(|next| is_word_part(*next));
        if let Some('L' | 'l' | 'D' | 'd') = suffix {
            self.at += 1;
        }
        if let Some(stray) =
            self.rest().chars().next().filter(|next| is_word_part(*next) || *next == '.')
        {
            return Err(self.syntax_error(self.at + stray.len_utf8()));
        }
        let real = fraction || exponent;
        let (value, edm_type) = match suffix {
            Some('L' | 'l') => (digits.parse().ok().map(Literal::Int64), EdmType::Int64),
            None if !real => (digits.parse().ok().map(Literal::Int32), EdmType::Int32),
            _ => {
                let double = digits.parse().ok().filter(|value: &f64| value.is_finite());
                (double.map(Literal::Double), EdmType::Double)
            }
        };
        value.ok_or_else(|| self.unrecognized(edm_type, start))
    }

    fn skip_digits(&mut self) {
        self.skip_while(|character| character.is_ascii_digit());
    }

    /// Skips one of the prefixes and the digits after it; without digits, nothing.
    fn skip_if_digits_follow(&mut self, prefixes: &[&str]) -> bool {
        let digits = prefixes.iter().find_map(|prefix| {
            let rest = self.rest().strip_prefix(prefix)?;
            rest.starts_with(|next: char| next.is_ascii_digit()).then_some(prefix.len())
        });
        let Some(prefix) = digits else { return false };
        self.at += prefix;
        self.skip_digits();
        true
    }
}

/// Whatever a property's name may hold, so that every stored property can be named.
fn is_word_part(character: char) -> bool {
    match character {
        '_' => true,
        character if character.is_ascii() => character.is_ascii_alphanumeric(),
        character => !character.is_whitespace() && !character.is_control(),
    }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    odd.is_empty().then_some(())?;
    pairs.iter().map(|[high, low]| u8::try_from(nibble(*high)? << 4 | nibble(*low)?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Result<Literal> {
        match Lexer::new(text).next()?.token {
            Token::Literal(literal) => Ok(literal),
            other => panic!("{text} is {other:?}"),
        }
    }

    #[test]
    fn literals_have_the_types_of_the_grammar() {
        let moment = |text| Literal::DateTime(Ticks::parse_iso(text).unwrap());
        let cases = [
            ("'it''s'", Literal::String("it's".to_owned())),
            ("''", Literal::String(String::new())),
            ("''''", Literal::String("'".to_owned())),
            ("'a b \u{1F600}'", Literal::String("a b \u{1F600}".to_owned())),
            ("0", Literal::Int32(0)),
            ("-2147483648", Literal::Int32(i32::MIN)),
            ("2147483647", Literal::Int32(i32::MAX)),
            ("007", Literal::Int32(7)),
            ("5L", Literal::Int64(5)),
            ("-9223372036854775808l", Literal::Int64(i64::MIN)),
            ("5D", Literal::Double(5.0)),
            ("5.25d", Literal::Double(5.25)),
            ("10.1", Literal::Double(10.1)),
            ("-0.5", Literal::Double(-0.5)),
            ("1e+20", Literal::Double(1e20)),
            ("1E-7", Literal::Double(1e-7)),
            ("-1.5e3", Literal::Double(-1500.0)),
            ("true", Literal::Boolean(true)),
            ("false", Literal::Boolean(false)),
            ("datetime'2021-01-01T00:00:00.000000Z'", moment("2021-01-01")),
            ("datetime'2021-01-01T01:00:00+01:00'", moment("2021-01-01")),
            ("guid'0000000A-0000-0000-0000-00000000000b'", {
                let mut guid = [0; 16];
                (guid[3], guid[15]) = (10, 11);
                Literal::Guid(guid)
            }),
            ("X'0aFF'", Literal::Binary(vec![10, 255])),
            ("x''", Literal::Binary(Vec::new())),
            ("binary'00'", Literal::Binary(vec![0])),
        ];
        for (text, expected) in cases {
            assert_eq!(literal(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn malformed_literals_are_named() {
        let cases = [
            (
                "5454161346626",
                "Unrecognized 'Edm.Int32' literal '5454161346626' at '0' in '5454161346626'.",
            ),
            (
                "9223372036854775808L",
                "Unrecognized 'Edm.Int64' literal '9223372036854775808L' at '0' in '9223372036854775808L'.",
            ),
            ("1.5L", "Unrecognized 'Edm.Int64' literal '1.5L' at '0' in '1.5L'."),
            ("1e999", "Unrecognized 'Edm.Double' literal '1e999' at '0' in '1e999'."),
            (
                "datetime'x'",
                "Unrecognized 'Edm.DateTime' literal 'datetime'x'' at '0' in 'datetime'x''.",
            ),
            ("guid'1'", "Unrecognized 'Edm.Guid' literal 'guid'1'' at '0' in 'guid'1''."),
            ("X'abc'", "Unrecognized 'Edm.Binary' literal 'X'abc'' at '0' in 'X'abc''."),
            ("X'zz'", "Unrecognized 'Edm.Binary' literal 'X'zz'' at '0' in 'X'zz''."),
            ("'open", "Syntax error at position 5 in ''open'."),
            ("X'0", "Syntax error at position 3 in 'X'0'."),
            ("5abc", "Syntax error at position 2 in '5abc'."),
            ("5.", "Syntax error at position 2 in '5.'."),
            ("5Lx", "Syntax error at position 3 in '5Lx'."),
            ("-a", "Syntax error at position 1 in '-a'."),
            ("  \u{e9}=", "Syntax error at position 4 in '  \u{e9}='."),
        ];
        for (text, message) in cases {
            let mut lexer = Lexer::new(text);
            let error = loop {
                match lexer.next() {
                    Ok(Spanned { token: Token::End, .. }) => panic!("{text} has no error"),
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(error.code(), ErrorCode::InvalidInput, "{text}");
            assert_eq!(error.message(), message, "{text}");
        }
    }
}
