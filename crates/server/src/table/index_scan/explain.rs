//! What a query says about the indexes that it used, and those that it did not.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use tavola_wire::explain::{self, How, Reason};

use crate::request::respond;

const INDEX: HeaderName = HeaderName::from_static(explain::INDEX);
const INDEX_USE: HeaderName = HeaderName::from_static(explain::INDEX_USE);
const INDEX_ENTRIES: HeaderName = HeaderName::from_static(explain::INDEX_ENTRIES);
const INDEX_NOT_USED: HeaderName = HeaderName::from_static(explain::INDEX_NOT_USED);

/// How indexes served a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexUse {
    /// Those that found rows.
    pub names: Vec<String>,
    pub how: Option<How>,
    pub is_covering: bool,
    pub is_partial: bool,
    /// Index rows that were passed.
    pub entries: u64,
    /// Whether it was begun with indexes, and a scan then did more of the page than they.
    pub is_given_up: bool,
    /// Those that might have.
    pub not_used: Vec<(String, Reason)>,
}

impl IndexUse {
    /// Whether an index found rows of the page.
    pub(crate) fn is_used(&self) -> bool {
        self.how.is_some()
    }

    /// Whether the page was found sooner than without indexes, as far as that can be told.
    pub(crate) fn is_useful(&self) -> bool {
        self.is_used() && !self.is_given_up
    }

    /// Why the others are not used, in one line.
    pub(crate) fn reasons(&self) -> String {
        let reasons = self.not_used.iter().map(|(name, why)| format!("{name}={}", why.name()));
        reasons.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn set_headers(&self, headers: &mut HeaderMap) {
        if self.is_used() {
            headers.insert(INDEX, respond::text(&self.names.join(",")));
            headers.insert(INDEX_USE, respond::text(&self.to_string()));
            headers.insert(INDEX_ENTRIES, HeaderValue::from(self.entries));
        }
        if !self.not_used.is_empty() {
            headers.insert(INDEX_NOT_USED, respond::text(&self.reasons()));
        }
    }
}

impl fmt::Display for IndexUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.how.map_or("none", How::name))?;
        if self.is_covering {
            f.write_str(" covering")?;
        }
        if self.is_partial {
            f.write_str(" partial")?;
        }
        Ok(())
    }
}
