//! `$select`: the properties that a query returns, in the order they were asked for.
//!
//! Names are not checked against anything: one that an entity lacks comes back as null.

use crate::error::Result;
use crate::error_code::ErrorCode;
use crate::name_list::NameList;

/// Names of one `$select`, duplicates not counted.
pub const SELECT_NAMES_MAX: usize = 255;

/// A parsed `$select`.
#[derive(Clone, Debug)]
pub struct Select {
    raw: String,
    is_all: bool,
    names: NameList<String>,
}

impl Select {
    /// Reads a `$select` value, percent-decoded; `None` if it names nothing.
    ///
    /// # Errors
    ///
    /// 400 `InvalidInput` above [`SELECT_NAMES_MAX`] names.
    pub fn parse(raw: &str) -> Result<Option<Self>> {
        let mut names = NameList::default();
        for name in raw.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if names.position(name.as_bytes()).is_some() {
                continue;
            }
            if names.len() == SELECT_NAMES_MAX {
                return Err(ErrorCode::InvalidInput.into());
            }
            names.insert(name.to_owned());
        }
        if names.is_empty() {
            return Ok(None);
        }
        let is_all = names.position(b"*").is_some();
        Ok(Some(Self { raw: raw.to_owned(), is_all, names }))
    }

    /// The value as it was sent, for `odata.metadata`.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether `*` is among the names, so that entities are returned whole.
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// Each name once, in the order they were asked for.
    pub fn names(&self) -> &[String] {
        self.names.names()
    }

    /// Where the name stands in [`Select::names`].
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        self.names.position(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_and_in_order() {
        let select = Select::parse("B, a ,,RowKey,B,\ta").unwrap().unwrap();
        assert_eq!(select.names(), ["B", "a", "RowKey"]);
        assert_eq!(select.raw(), "B, a ,,RowKey,B,\ta");
        assert!(!select.is_all());
        assert_eq!(select.position(b"RowKey"), Some(2));
        assert_eq!(select.position(b"A"), None);
    }

    #[test]
    fn nothing_selected_is_no_projection() {
        for raw in ["", "  ", ",", " , "] {
            assert!(Select::parse(raw).unwrap().is_none(), "{raw:?}");
        }
    }

    #[test]
    fn a_star_selects_all() {
        assert!(Select::parse("*").unwrap().unwrap().is_all());
        assert!(Select::parse("A, *").unwrap().unwrap().is_all());
    }

    #[test]
    fn the_number_of_names_is_limited() {
        let names =
            |count: usize| (0..count).map(|n| format!("P{n}")).collect::<Vec<_>>().join(",");
        let select = Select::parse(&names(255)).unwrap().unwrap();
        assert_eq!(select.names().len(), 255);
        assert_eq!(select.position(b"P254"), Some(254));
        assert_eq!(select.position(b"P255"), None);
        let doubled = format!("{},{}", names(255), names(255));
        assert!(Select::parse(&doubled).is_ok());
        let error = Select::parse(&names(256)).unwrap_err();
        assert_eq!((error.status(), error.code()), (400, ErrorCode::InvalidInput));
    }
}
