//! What a path below the service root names: a table, an entity, the batch endpoint.
//!
//! The path is percent-decoded once and then scanned with an eye on quotes, since keys may hold
//! `)`, `,`, `=`, `(` and even `/`. A key with characters that no stored key can have is not
//! refused here: the service answers reads and writes differently, so the key carries its
//! [`UrlKeyProblem`] to where the verb is known.

use std::borrow::Cow;

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::table::names::{KeyProblem, TableName, key_problem};
use crate::uri::{percent, syntax_error};

/// A resource of the table service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourcePath<'a> {
    /// `/`
    ServiceRoot,
    /// `/Tables` and `/Tables()`
    Tables,
    /// `/Tables('name')`
    Table(TableName<'a>),
    /// `/name` and `/name()`
    TableEntities(TableName<'a>),
    /// `/name(PartitionKey='p',RowKey='r')`
    Entity { table: TableName<'a>, partition_key: UrlKey<'a>, row_key: UrlKey<'a> },
    /// `/name/anything`: nothing, but an insert goes to the table.
    BelowTable(TableName<'a>),
    /// `/name('key')`, `/name/Tables('name')`: no entity, which is said once the table is found ([`key_count_error`]).
    MismatchedKeys(TableName<'a>),
    /// `/$batch`
    Batch,
    /// `/$metadata`
    Metadata,
}

impl<'a> ResourcePath<'a> {
    /// Parses the raw path below the service root. The account is named in the text of one error.
    ///
    /// # Errors
    /// 400 `InvalidInput` when the path cannot be read or names a table by the wrong number of keys, and
    /// the errors of [`TableName::parse_addressed`].
    pub fn parse(raw_path: &'a str, account: &str) -> Result<Self> {
        match percent::decode_path(raw_path)? {
            Cow::Borrowed(path) => parse_decoded(path, account),
            Cow::Owned(path) => parse_decoded(&path, account).map(ResourcePath::into_owned),
        }
    }

    /// The table that the path names, if any.
    pub fn table(&self) -> Option<&TableName<'a>> {
        match self {
            Self::Table(table)
            | Self::TableEntities(table)
            | Self::BelowTable(table)
            | Self::MismatchedKeys(table)
            | Self::Entity { table, .. } => Some(table),
            Self::ServiceRoot | Self::Tables | Self::Batch | Self::Metadata => None,
        }
    }

    pub fn into_owned(self) -> ResourcePath<'static> {
        match self {
            Self::ServiceRoot => ResourcePath::ServiceRoot,
            Self::Tables => ResourcePath::Tables,
            Self::Table(table) => ResourcePath::Table(table.into_owned()),
            Self::TableEntities(table) => ResourcePath::TableEntities(table.into_owned()),
            Self::Entity { table, partition_key, row_key } => ResourcePath::Entity {
                table: table.into_owned(),
                partition_key: partition_key.into_owned(),
                row_key: row_key.into_owned(),
            },
            Self::BelowTable(table) => ResourcePath::BelowTable(table.into_owned()),
            Self::MismatchedKeys(table) => ResourcePath::MismatchedKeys(table.into_owned()),
            Self::Batch => ResourcePath::Batch,
            Self::Metadata => ResourcePath::Metadata,
        }
    }
}

/// A key as a URL gave it, decoded and with its quotes undoubled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlKey<'a> {
    text: Cow<'a, str>,
    problem: Option<UrlKeyProblem>,
}

impl<'a> UrlKey<'a> {
    fn new(text: Cow<'a, str>) -> Self {
        let problem = key_problem(&text).map(|problem| match problem {
            KeyProblem::TooLong => UrlKeyProblem::TooLong,
            KeyProblem::Forbidden('/' | '\\') => UrlKeyProblem::Separator,
            KeyProblem::Forbidden('\0'..='\x1f' | '\x7f') => UrlKeyProblem::Control,
            KeyProblem::Forbidden(_) => UrlKeyProblem::Forbidden,
        });
        Self { text, problem }
    }

    /// The key, if a stored entity can have it; else the answer for a request that reads.
    pub fn for_read(&self) -> Result<&str> {
        self.problem.map_or(Ok(&self.text), |problem| Err(problem.read_error()))
    }

    /// As [`for_read`](Self::for_read), where keys may be longer than those of entities: a row of an index that is read
    /// as a table has keys made of several.
    pub fn for_read_of_view(&self) -> Result<&str> {
        match self.problem {
            Some(UrlKeyProblem::TooLong) => Ok(&self.text),
            _ => self.for_read(),
        }
    }

    /// The key, if a stored entity can have it; else the answer for a request that writes.
    pub fn for_write(&self) -> Result<&str> {
        self.problem.map_or(Ok(&self.text), |problem| Err(problem.write_error()))
    }

    pub fn problem(&self) -> Option<UrlKeyProblem> {
        self.problem
    }

    pub fn into_owned(self) -> UrlKey<'static> {
        UrlKey { text: Cow::Owned(self.text.into_owned()), problem: self.problem }
    }
}

/// Why no stored entity can have a key that was read from a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlKeyProblem {
    /// `/` or `\`, however it was encoded.
    Separator,
    /// NUL and the other ASCII control characters, which the service's HTTP front end refuses.
    Control,
    /// `#`, `?` and the C1 controls.
    Forbidden,
    /// More than 512 UTF-16 units.
    TooLong,
}

impl UrlKeyProblem {
    pub(crate) fn read_error(self) -> StorageError {
        match self {
            Self::Separator | Self::Control => self.syntax_error(),
            Self::Forbidden | Self::TooLong => ErrorCode::ResourceNotFound.into(),
        }
    }

    pub(crate) fn write_error(self) -> StorageError {
        match self {
            Self::Separator | Self::Control => self.syntax_error(),
            Self::Forbidden => ErrorCode::OutOfRangeInput.into(),
            Self::TooLong => ErrorCode::PropertyValueTooLarge.into(),
        }
    }

    fn syntax_error(self) -> StorageError {
        match self {
            Self::Control => {
                StorageError::with_detail(ErrorCode::InvalidInput, "Bad Request - Invalid URL")
            }
            _ => syntax_error(),
        }
    }
}

fn parse_decoded<'a>(path: &'a str, account: &str) -> Result<ResourcePath<'a>> {
    let path = path.trim_start_matches('/');
    let name_end = memchr::memchr2(b'(', b'/', path.as_bytes()).unwrap_or(path.len());
    let (name, rest) = path.split_at(name_end);
    let (keys, rest) = Keys::parse(rest)?;
    match name {
        "" if keys == Keys::Absent && rest.is_empty() => Ok(ResourcePath::ServiceRoot),
        "" => Err(syntax_error()),
        "$batch" | "$metadata" if keys != Keys::Absent || !is_blank(rest) => Err(syntax_error()),
        "$batch" => Ok(ResourcePath::Batch),
        "$metadata" => Ok(ResourcePath::Metadata),
        "Tables" if !is_blank(rest) => Err(syntax_error()),
        "Tables" => match keys {
            Keys::Absent => Ok(ResourcePath::Tables),
            Keys::One("" | "TableName", name) => {
                TableName::parse_addressed(name).map(ResourcePath::Table)
            }
            _ => Err(key_count_error(account, name)),
        },
        _ => parse_entities(name, keys, rest),
    }
}

/// A path that starts with the name of a table.
fn parse_entities<'a>(name: &'a str, keys: Keys<'a>, rest: &'a str) -> Result<ResourcePath<'a>> {
    let table = TableName::parse_addressed(Cow::Borrowed(name))?;
    match keys {
        Keys::Absent if is_blank(rest) => Ok(ResourcePath::TableEntities(table)),
        Keys::Absent => {
            let mut rest = rest;
            while let Some(at) = rest.find('(') {
                let (keys, after) = Keys::parse(&rest[at..])?;
                if keys != Keys::Absent {
                    return Ok(ResourcePath::MismatchedKeys(table));
                }
                rest = after;
            }
            Ok(ResourcePath::BelowTable(table))
        }
        // What follows an entity is never ignored: `DELETE /t(...)/Property` must not delete the
        // entity.
        _ if !is_blank(rest) => Err(syntax_error()),
        Keys::Two("PartitionKey", partition_key, "RowKey", row_key)
        | Keys::Two("RowKey", row_key, "PartitionKey", partition_key) => Ok(ResourcePath::Entity {
            table,
            partition_key: UrlKey::new(partition_key),
            row_key: UrlKey::new(row_key),
        }),
        _ => Ok(ResourcePath::MismatchedKeys(table)),
    }
}

/// True for what may trail any path: nothing, or slashes.
fn is_blank(rest: &str) -> bool {
    rest.bytes().all(|byte| byte == b'/')
}

/// The error for a path with more or fewer keys than the resource has.
pub fn key_count_error(account: &str, resource: &str) -> StorageError {
    StorageError::with_detail(
        ErrorCode::InvalidInput,
        format!(
            "The number of keys specified in the URI does not match number of key properties for \
             the resource '{account}.{resource}'."
        ),
    )
}

/// The key predicate: name and value of each key, an empty name for a bare value.
#[derive(Debug, PartialEq, Eq)]
enum Keys<'a> {
    /// No parentheses, or nothing in them.
    Absent,
    One(&'a str, Cow<'a, str>),
    Two(&'a str, Cow<'a, str>, &'a str, Cow<'a, str>),
    More,
}

impl<'a> Keys<'a> {
    /// Reads a predicate if the text starts with one, and gives the text behind it.
    fn parse(text: &'a str) -> Result<(Self, &'a str)> {
        let Some(inner) = text.strip_prefix('(') else { return Ok((Self::Absent, text)) };
        let mut rest = skip_spaces(inner);
        let mut keys = Self::Absent;
        if let Some(rest) = rest.strip_prefix(')') {
            return Ok((keys, path_end(rest)?));
        }
        loop {
            let (name, value, after) = parse_key(rest)?;
            keys = match keys {
                Self::Absent => Self::One(name, value),
                Self::One(first, first_value) => Self::Two(first, first_value, name, value),
                Self::Two(..) | Self::More => Self::More,
            };
            let after = skip_spaces(after);
            if let Some(after) = after.strip_prefix(')') {
                return Ok((keys, path_end(after)?));
            }
            rest = skip_spaces(after.strip_prefix(',').ok_or_else(syntax_error)?);
        }
    }
}

/// Only the end of the path or another segment may follow a closing parenthesis.
fn path_end(rest: &str) -> Result<&str> {
    match rest.is_empty() || rest.starts_with('/') {
        true => Ok(rest),
        false => Err(syntax_error()),
    }
}

/// Reads `'value'` or `Name='value'`; gives name, value and what follows.
fn parse_key(text: &str) -> Result<(&str, Cow<'_, str>, &str)> {
    let quote = memchr::memchr(b'\'', text.as_bytes()).ok_or_else(syntax_error)?;
    let (name, quoted) = text.split_at(quote);
    let name = match name.trim_ascii_end() {
        "" => "",
        named => named.strip_suffix('=').ok_or_else(syntax_error)?.trim_ascii_end(),
    };
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(syntax_error());
    }
    let (value, rest) = parse_quoted(&quoted[1..])?;
    Ok((name, value, rest))
}

/// Reads up to the closing quote, undoubling the quotes inside.
fn parse_quoted(text: &str) -> Result<(Cow<'_, str>, &str)> {
    let bytes = text.as_bytes();
    let mut doubled = false;
    let mut from = 0;
    loop {
        let quote = memchr::memchr(b'\'', &bytes[from..]).ok_or_else(syntax_error)? + from;
        if bytes.get(quote + 1) != Some(&b'\'') {
            let value = &text[..quote];
            let value = if doubled { value.replace("''", "'").into() } else { value.into() };
            return Ok((value, &text[quote + 1..]));
        }
        doubled = true;
        from = quote + 2;
    }
}

fn skip_spaces(text: &str) -> &str {
    text.trim_start_matches(' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(raw: &str) -> Result<ResourcePath<'_>> {
        ResourcePath::parse(raw, "acct")
    }

    fn entity(raw: &str) -> (String, String, String) {
        match parse(raw) {
            Ok(ResourcePath::Entity { table, partition_key, row_key }) => (
                table.as_str().into(),
                partition_key.for_write().unwrap().into(),
                row_key.for_write().unwrap().into(),
            ),
            other => panic!("{raw}: {other:?}"),
        }
    }

    fn keys(raw: &str) -> (String, String) {
        let (_, partition_key, row_key) = entity(raw);
        (partition_key, row_key)
    }

    fn message(raw: &str) -> String {
        let error = parse(raw).unwrap_err();
        assert_eq!((error.code(), error.status()), (ErrorCode::InvalidInput, 400), "{raw}");
        error.message().to_owned()
    }

    fn name(text: &str) -> TableName<'_> {
        TableName::parse_addressed(Cow::Borrowed(text)).unwrap()
    }

    const SYNTAX: &str = "Bad Request - Error in query syntax.";

    #[test]
    fn resources_of_the_table() {
        // Wire reference 1.2.
        for (raw, expected) in [
            ("", ResourcePath::ServiceRoot),
            ("/", ResourcePath::ServiceRoot),
            ("/Tables", ResourcePath::Tables),
            ("/Tables()", ResourcePath::Tables),
            ("//Tables/", ResourcePath::Tables),
            ("/Tables('abc')", ResourcePath::Table(name("abc"))),
            ("/Tables(%27abc%27)", ResourcePath::Table(name("abc"))),
            ("/abc", ResourcePath::TableEntities(name("abc"))),
            ("/abc()", ResourcePath::TableEntities(name("abc"))),
            ("/abc%28%29", ResourcePath::TableEntities(name("abc"))),
            ("/abc( )", ResourcePath::TableEntities(name("abc"))),
            ("/$batch", ResourcePath::Batch),
            ("/%24batch", ResourcePath::Batch),
            ("/$metadata", ResourcePath::Metadata),
        ] {
            assert_eq!(parse(raw).unwrap(), expected, "{raw}");
        }
        let metrics = parse("/$MetricsHourPrimaryTransactionsTable()").unwrap();
        assert!(metrics.table().unwrap().is_system());
    }

    #[test]
    fn keys_of_every_client() {
        // What Python 12.7, JS 13.1 and azure-storage 2.10 send for the partition key "O'B r".
        let expected = ("t1x".into(), "O'B r".into(), "2".into());
        assert_eq!(entity("/t1x(PartitionKey='O%27%27B%20r',RowKey='2')"), expected);
        assert_eq!(entity("/t1x(PartitionKey='O''B%20r',RowKey='2')"), expected);
        assert_eq!(entity("/t1x(PartitionKey=%27O%27%27B%20r%27,RowKey=%272%27)"), expected);
    }

    #[test]
    fn key_predicates_are_read_with_an_eye_on_quotes() {
        // Wire reference 1.3.
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(keys("/abc(PartitionKey='',RowKey='')"), pair("", ""));
        assert_eq!(keys("/abc(PartitionKey='''',RowKey='''''')"), pair("'", "''"));
        assert_eq!(keys("/abc(PartitionKey='a),RowKey=(',RowKey='=,')"), pair("a),RowKey=(", "=,"));
        assert_eq!(keys("/abc(PartitionKey='%2520',RowKey='a+b')"), pair("%20", "a+b"));
        assert_eq!(keys("/abc(RowKey='r', PartitionKey='p')"), pair("p", "r"));
        assert_eq!(keys("/abc( PartitionKey = 'p' , RowKey = 'r' )/"), pair("p", "r"));
        assert_eq!(keys("/abc(PartitionKey='%C3%A9',RowKey='\u{e9}')"), pair("\u{e9}", "\u{e9}"));
    }

    #[test]
    fn a_wrong_number_of_keys_waits_for_the_table() {
        for raw in [
            "/abc('x')",
            "/abc(PartitionKey='x')",
            "/abc('x','y')",
            "/abc(PartitionKey='x',PartitionKey='y')",
            "/abc(PartitionKey='x',RowKey='y',Extra='z')",
            "/abc(partitionkey='x',rowkey='y')",
            // Recorded: DELETE /tableName/Tables('tableName').
            "/abc/Tables('abc')",
        ] {
            assert_eq!(parse(raw).unwrap(), ResourcePath::MismatchedKeys(name("abc")), "{raw}");
        }
        let text = "The number of keys specified in the URI does not match number of key \
                    properties for the resource 'acct.";
        assert_eq!(message("/Tables('a','b')"), format!("{text}Tables'."));
        assert_eq!(key_count_error("acct", "abc").message(), format!("{text}abc'."));
    }

    #[test]
    fn a_segment_after_a_table_is_nothing_and_after_an_entity_refused() {
        for raw in ["/abc/Tables", "/abc/Tables()", "/abc/$count", "/abc()/xyz", "/abc//xyz/"] {
            assert_eq!(parse(raw).unwrap(), ResourcePath::BelowTable(name("abc")), "{raw}");
        }
        for raw in ["/abc/", "/abc()/"] {
            assert_eq!(parse(raw).unwrap(), ResourcePath::TableEntities(name("abc")), "{raw}");
        }
        assert_eq!(message("/abc(PartitionKey='p',RowKey='r')/Name"), SYNTAX);
        assert_eq!(message("/Tables('abc')/Name"), SYNTAX);
    }

    #[test]
    fn broken_predicates_are_syntax_errors() {
        for raw in [
            "/abc(",
            "/abc('",
            "/abc('x'",
            "/abc(PartitionKey='x',RowKey='y'",
            "/abc(PartitionKey='x',RowKey='y')z",
            "/abc(PartitionKey='x';RowKey='y')",
            "/abc(PartitionKey=1,RowKey=2)",
            "/abc(PartitionKey'x',RowKey='y')",
            "/abc(PartitionKey='O'Brien',RowKey='y')",
            "/abc(,)",
            "/('x')",
            "/$batch/x",
            "/$batch()x",
            "/abc(PartitionKey='%',RowKey='y')",
        ] {
            assert_eq!(message(raw), SYNTAX, "{raw}");
        }
    }

    #[test]
    fn bad_table_names_keep_their_own_errors() {
        let code = |raw| parse(raw).unwrap_err().code();
        assert_eq!(code("/my-table"), ErrorCode::InvalidResourceName);
        assert_eq!(code("/ab(PartitionKey='p',RowKey='r')"), ErrorCode::OutOfRangeInput);
        assert_eq!(code("/tables"), ErrorCode::InvalidInput);
        assert_eq!(code("/Tables('1ab')"), ErrorCode::InvalidResourceName);
    }

    #[test]
    fn keys_that_nothing_can_have_are_answered_by_verb() {
        // Wire reference 1.3, rule 7.
        for (key, problem, read, write) in [
            ("a%2Fb", UrlKeyProblem::Separator, "InvalidInput", "InvalidInput"),
            ("a/b", UrlKeyProblem::Separator, "InvalidInput", "InvalidInput"),
            ("a%5Cb", UrlKeyProblem::Separator, "InvalidInput", "InvalidInput"),
            ("a%00", UrlKeyProblem::Control, "InvalidInput", "InvalidInput"),
            ("a%23", UrlKeyProblem::Forbidden, "ResourceNotFound", "OutOfRangeInput"),
            ("a%3F", UrlKeyProblem::Forbidden, "ResourceNotFound", "OutOfRangeInput"),
            ("a%C2%85", UrlKeyProblem::Forbidden, "ResourceNotFound", "OutOfRangeInput"),
            (&"x".repeat(513), UrlKeyProblem::TooLong, "ResourceNotFound", "PropertyValueTooLarge"),
        ] {
            let raw = format!("/abc(PartitionKey='{key}',RowKey='r')");
            let Ok(ResourcePath::Entity { partition_key, row_key, .. }) = parse(&raw) else {
                panic!("{raw}");
            };
            assert_eq!(partition_key.problem(), Some(problem), "{raw}");
            assert_eq!(partition_key.for_read().unwrap_err().code().as_str(), read, "{raw}");
            assert_eq!(partition_key.for_write().unwrap_err().code().as_str(), write, "{raw}");
            assert_eq!(row_key.for_read().unwrap(), "r");
            let is_only_long = problem == UrlKeyProblem::TooLong;
            assert_eq!(partition_key.for_read_of_view().is_ok(), is_only_long, "{raw}");
        }
        assert_eq!(UrlKeyProblem::Separator.read_error().message(), SYNTAX);
    }

    #[test]
    fn a_plain_path_borrows_everything() {
        let Ok(ResourcePath::Entity { partition_key, .. }) =
            parse("/abc(PartitionKey='p',RowKey='r')")
        else {
            panic!()
        };
        assert!(matches!(partition_key.text, Cow::Borrowed("p")));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(raw in any::<String>()) {
            let _ = parse(&raw);
        }

        #[test]
        fn parsing_never_panics_near_the_grammar(
            raw in "/(Tables|abc)[()',= a%27]{0,24}(PartitionKey|RowKey)?[()',= a%2F]{0,24}"
        ) {
            let _ = parse(&raw);
        }

        #[test]
        fn a_written_link_parses_back(
            pk in "[^/\\\\#?\\p{Cc}]{0,40}",
            rk in "[^/\\\\#?\\p{Cc}]{0,40}",
        ) {
            let mut link = b"/".to_vec();
            percent::write_entity_link("abc", &pk, &rk, &mut link);
            let link = String::from_utf8(link).unwrap();
            prop_assert_eq!(entity(&link), ("abc".to_owned(), pk, rk));
        }
    }
}
