//! The names of system tables among those that Query Tables lists, each at its place in the order of names.

use std::collections::VecDeque;

use super::SystemTable;
use crate::context::RequestContext;
use crate::error::Result;

/// System tables that are to be listed, in order.
#[derive(Debug, Default)]
pub(crate) struct ListedNames {
    left: VecDeque<&'static str>,
}

impl ListedNames {
    /// Those of the account that are not before `from`, which is in lower case.
    pub(crate) async fn from(context: &RequestContext<'_>, from: &str) -> Result<Self> {
        let mut left = VecDeque::new();
        for table in SystemTable::ALL {
            let is_behind = table.name().to_ascii_lowercase().as_str() < from;
            if !is_behind && table.is_listed(context.state, context.account.id).await? {
                left.push_back(table.name());
            }
        }
        Ok(Self { left })
    }

    /// The next one that stands before the stored table of this name. One whose name a user's table has is left out.
    pub(crate) fn next_before(&mut self, stored: &str) -> Option<&'static str> {
        let stored = stored.to_ascii_lowercase();
        let first = self.left.front()?.to_ascii_lowercase();
        if first == stored {
            self.left.pop_front();
            return None;
        }
        if first < stored { self.left.pop_front() } else { None }
    }

    /// The next one, behind all stored tables.
    pub(crate) fn next(&mut self) -> Option<&'static str> {
        self.left.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_at_their_place() {
        let mut names = ListedNames { left: ["TavolaIndexes", "TavolaTables"].into() };
        assert_eq!(names.next_before("Tables1"), None);
        assert_eq!(names.next_before("tavolaJ"), Some("TavolaIndexes"));
        assert_eq!(names.next_before("tavolaJ"), None);
        assert_eq!(names.next(), Some("TavolaTables"));
        assert_eq!(names.next(), None);
    }

    #[test]
    fn a_users_table_of_that_name_is_listed_alone() {
        let mut names = ListedNames { left: ["TavolaIndexes"].into() };
        assert_eq!(names.next_before("tavolaindexes"), None);
        assert_eq!(names.next(), None);
    }
}
