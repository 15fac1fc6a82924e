//! What an index is declared as, and the texts that declare it.
//!
//! `Keys` is a list of properties, each with an optional type and an optional sign: `Town,Age:Int32?,Name!`. `!` leaves
//! entities without the property out of the index, `?` keeps them. Without a sign the first part leaves them out and the
//! others keep them. `Include` is empty, `*`, or a list of properties. `Filter` is a `$filter` of comparisons joined by
//! `and`.

use crate::error::StorageError;
use crate::table::filter::{Comparison, Expr, parse};
use crate::table::stored::{EdmType, check_name};

/// Parts of one index: its keys stay short.
pub const PARTS_MAX: usize = 4;
/// Bytes that a row keeps of each part.
pub const PART_BYTES_MAX: u16 = 512;
/// Properties that an index row may have copies of, unless it has all.
pub const INCLUDED_NAMES_MAX: usize = 20;
/// Comparisons of a partial index: they are asked on every write.
pub const FILTER_COMPARISONS_MAX: usize = 8;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    pub keys: Vec<Part>,
    pub include: Include,
    /// Comparisons joined by `and`.
    pub filter: Option<Expr>,
    pub unique: bool,
    /// Bytes that a row keeps of each part.
    pub part_bytes_max: u16,
}

/// One part of the key of an index row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub property: String,
    pub missing: Missing,
    /// An assertion, not a condition: values of other types are indexed all the same.
    pub declared_type: Option<EdmType>,
}

/// Whether entities without a property are in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Skip,
    Keep,
}

/// Which properties an index row has copies of, beside the entity's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Include {
    Nothing,
    All,
    Names(Vec<String>),
}

/// Why a text declares no index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    #[error("Keys must name one to {PARTS_MAX} properties.")]
    PartCount,
    #[error("'{0}' is not the name of a property.")]
    Name(String),
    #[error("'{0}' is named twice.")]
    Twice(String),
    #[error(
        "'{0}' is not a type; types are String, Boolean, Int32, Int64, Double, DateTime, Guid and Binary."
    )]
    Type(String),
    #[error("'{0}' is part of every index row and need not be included.")]
    SystemProperty(String),
    #[error("Include may name at most {INCLUDED_NAMES_MAX} properties.")]
    IncludedCount,
    #[error("Filter cannot be read: {0}")]
    Filter(String),
    #[error(
        "Filter must be at most {FILTER_COMPARISONS_MAX} comparisons joined by 'and', none of Timestamp."
    )]
    FilterForm,
}

impl IndexDefinition {
    /// Reads the texts of a declaration.
    ///
    /// # Errors
    /// The first thing that is wrong with them.
    pub fn parse(
        keys: &str,
        include: &str,
        filter: &str,
        unique: bool,
    ) -> Result<Self, DefinitionError> {
        Ok(Self {
            keys: parse_keys(keys)?,
            include: parse_include(include)?,
            filter: parse_filter(filter)?,
            unique,
            part_bytes_max: PART_BYTES_MAX,
        })
    }

    /// `Keys` as [`IndexDefinition::parse`] reads it, in one form for one meaning.
    pub fn keys_text(&self) -> String {
        let parts = self.keys.iter().enumerate().map(|(place, part)| part.text(place));
        parts.collect::<Vec<_>>().join(",")
    }

    /// `Include` likewise.
    pub fn include_text(&self) -> String {
        match &self.include {
            Include::Nothing => String::new(),
            Include::All => "*".to_owned(),
            Include::Names(names) => names.join(","),
        }
    }

    /// `Filter` likewise.
    pub fn filter_text(&self) -> String {
        self.filter.as_ref().map_or_else(String::new, Expr::to_string)
    }

    /// The comparisons that all entities in the index fulfil.
    pub fn filter_terms(&self) -> impl Iterator<Item = &Comparison> {
        let terms = match &self.filter {
            Some(Expr::And(terms)) => &terms[..],
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        terms.iter().filter_map(|term| match term {
            Expr::Compare(comparison) => Some(comparison),
            _ => None,
        })
    }

    /// Whether an index row has everything that the named property of its entity is.
    pub fn covers(&self, property: &str) -> bool {
        if is_key(property) {
            return true;
        }
        let is_part = || self.keys.iter().any(|part| part.property == property);
        match &self.include {
            Include::Nothing => false,
            Include::All => true,
            Include::Names(names) => {
                property == "Timestamp" || is_part() || names.iter().any(|name| name == property)
            }
        }
    }

    /// Whether the keys of rows begin with the partition key.
    pub fn is_local(&self) -> bool {
        self.keys.first().is_some_and(|part| part.property == "PartitionKey")
    }
}

impl Part {
    /// Whether entities without the property have rows all the same, or there are no such entities.
    pub fn keeps_missing(&self) -> bool {
        self.missing == Missing::Keep || is_system(&self.property)
    }

    fn text(&self, place: usize) -> String {
        let name = self.property.as_str();
        let edm_type = self.declared_type.map_or("", |edm_type| short_name(edm_type));
        let colon = if edm_type.is_empty() { "" } else { ":" };
        let sign = match self.missing {
            missing if missing == default_missing(name, place) => "",
            Missing::Skip => "!",
            Missing::Keep => "?",
        };
        format!("{name}{colon}{edm_type}{sign}")
    }
}

/// Properties that every entity has.
pub(super) fn is_system(property: &str) -> bool {
    is_key(property) || property == "Timestamp"
}

pub(super) fn is_key(property: &str) -> bool {
    property == "PartitionKey" || property == "RowKey"
}

fn default_missing(property: &str, place: usize) -> Missing {
    if place == 0 && !is_system(property) { Missing::Skip } else { Missing::Keep }
}

fn short_name(edm_type: EdmType) -> &'static str {
    edm_type.name().strip_prefix("Edm.").unwrap_or(edm_type.name())
}

fn parse_keys(text: &str) -> Result<Vec<Part>, DefinitionError> {
    let mut parts: Vec<Part> = Vec::new();
    for (place, part) in text.split(',').enumerate() {
        if place == PARTS_MAX || text.trim().is_empty() {
            return Err(DefinitionError::PartCount);
        }
        let part = parse_part(part.trim(), place)?;
        if parts.iter().any(|known| known.property == part.property) {
            return Err(DefinitionError::Twice(part.property));
        }
        parts.push(part);
    }
    Ok(parts)
}

fn parse_part(text: &str, place: usize) -> Result<Part, DefinitionError> {
    let (text, sign) = match text.strip_suffix('!') {
        Some(text) => (text, Some(Missing::Skip)),
        None => match text.strip_suffix('?') {
            Some(text) => (text, Some(Missing::Keep)),
            None => (text, None),
        },
    };
    let (name, edm_type) = match text.split_once(':') {
        Some((name, edm_type)) => (name, Some(parse_type(edm_type)?)),
        None => (text, None),
    };
    let default = default_missing(name, place);
    // A sign says nothing where the property is never missing.
    let missing = sign.filter(|_| !is_system(name)).unwrap_or(default);
    Ok(Part { property: property_name(name)?, missing, declared_type: edm_type })
}

fn parse_type(text: &str) -> Result<EdmType, DefinitionError> {
    let is_named = |edm_type: &EdmType| text == short_name(*edm_type) || text == edm_type.name();
    let found = EdmType::ALL.into_iter().find(is_named);
    found.ok_or_else(|| DefinitionError::Type(text.to_owned()))
}

fn parse_include(text: &str) -> Result<Include, DefinitionError> {
    match text.trim() {
        "" => return Ok(Include::Nothing),
        "*" => return Ok(Include::All),
        _ => {}
    }
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',') {
        let name = property_name(name.trim())?;
        if is_system(&name) {
            return Err(DefinitionError::SystemProperty(name));
        }
        if names.contains(&name) {
            return Err(DefinitionError::Twice(name));
        }
        if names.len() == INCLUDED_NAMES_MAX {
            return Err(DefinitionError::IncludedCount);
        }
        names.push(name);
    }
    Ok(Include::Names(names))
}

fn parse_filter(text: &str) -> Result<Option<Expr>, DefinitionError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let wrong = |error: StorageError| DefinitionError::Filter(error.message().to_owned());
    let expr = parse(text).map_err(wrong)?;
    let terms = match &expr {
        Expr::And(terms) => &terms[..],
        one => std::slice::from_ref(one),
    };
    let is_allowed = |term: &Expr| matches!(term, Expr::Compare(comparison) if comparison.property != "Timestamp");
    if terms.len() > FILTER_COMPARISONS_MAX || !terms.iter().all(is_allowed) {
        return Err(DefinitionError::FilterForm);
    }
    Ok(Some(expr))
}

fn property_name(name: &str) -> Result<String, DefinitionError> {
    check_name(name).map_err(|_| DefinitionError::Name(name.to_owned()))?;
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Result<String, DefinitionError> {
        IndexDefinition::parse(text, "", "", false).map(|definition| definition.keys_text())
    }

    #[test]
    fn texts_have_one_form_for_one_meaning() {
        let cases = [
            ("Town", "Town"),
            (" Town , LastName ", "Town,LastName"),
            ("Town!,LastName?", "Town,LastName"),
            ("Town?,LastName!", "Town?,LastName!"),
            ("Age:Int32", "Age:Int32"),
            ("Age:Edm.Int32?", "Age:Int32?"),
            ("PartitionKey!,Email", "PartitionKey,Email"),
            ("Timestamp?", "Timestamp"),
        ];
        for (text, expected) in cases {
            assert_eq!(keys(text).as_deref(), Ok(expected), "{text}");
            assert_eq!(keys(expected).as_deref(), Ok(expected), "{text}");
        }
        let read = |include: &str| IndexDefinition::parse("A", include, "", false).unwrap();
        for (text, expected) in [("", ""), (" * ", "*"), ("b, a", "b,a")] {
            assert_eq!(read(text).include_text(), expected);
        }
        let filter = "Status eq 'open' and Age ge 18";
        let read = IndexDefinition::parse("A", "", filter, true).unwrap();
        assert_eq!(read.filter_text(), filter);
        assert_eq!(read.filter_terms().count(), 2);
        assert!(read.unique);
    }

    #[test]
    fn what_declares_no_index_is_told() {
        let error = |keys: &str, include: &str, filter: &str| {
            IndexDefinition::parse(keys, include, filter, false).unwrap_err()
        };
        assert_eq!(error("", "", ""), DefinitionError::PartCount);
        assert_eq!(error("a,b,c,d,e", "", ""), DefinitionError::PartCount);
        assert_eq!(error("a,,b", "", ""), DefinitionError::Name(String::new()));
        assert_eq!(error("a b", "", ""), DefinitionError::Name("a b".into()));
        assert_eq!(error("a,a!", "", ""), DefinitionError::Twice("a".into()));
        assert_eq!(error("a:Int", "", ""), DefinitionError::Type("Int".into()));
        assert_eq!(error("a", "b,b", ""), DefinitionError::Twice("b".into()));
        assert_eq!(error("a", "RowKey", ""), DefinitionError::SystemProperty("RowKey".into()));
        let many: Vec<_> = (0..=INCLUDED_NAMES_MAX).map(|number| format!("n{number}")).collect();
        assert_eq!(error("a", &many.join(","), ""), DefinitionError::IncludedCount);
        assert!(matches!(error("a", "", "b eq"), DefinitionError::Filter(_)));
        for filter in ["a eq 1 or b eq 2", "not (a eq 1)", "Timestamp gt datetime'2020-01-01'"] {
            assert_eq!(error("a", "", filter), DefinitionError::FilterForm, "{filter}");
        }
        let nine = ["a ne 1"; FILTER_COMPARISONS_MAX + 1].join(" and ");
        assert_eq!(error("a", "", &nine), DefinitionError::FilterForm);
    }

    #[test]
    fn rows_cover_their_keys_and_copies() {
        let covers = |include: &str, property: &str| {
            IndexDefinition::parse("Town", include, "", false).unwrap().covers(property)
        };
        for include in ["", "*", "Name"] {
            assert!(covers(include, "RowKey"));
        }
        assert!(!covers("", "Town") && covers("Name", "Town") && covers("*", "Town"));
        assert!(!covers("", "Timestamp") && covers("Name", "Timestamp"));
        assert!(!covers("Name", "Age") && covers("*", "Age"));
    }
}
