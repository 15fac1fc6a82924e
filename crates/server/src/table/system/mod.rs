//! Tables of the server's own: reserved names whose rows are made for each request that asks for them.
//!
//! Any client reads them as it reads every other table: the same plan, the same page and the same JSON. Most are
//! read-only. One that takes writes has an arm in [`SystemTable::commit`].
//!
//! A user's table of such a name, from before the name was reserved, comes first and keeps working.

mod advice;
mod hot_partitions;
mod indexes;
mod listing;
mod rows;

use tavola_wire::ErrorCode;
use tavola_wire::table::index::INDEXES_TABLE;
use tavola_wire::table::names::TableName;

use super::change_set::Refused;
use super::entity_change::{Applied, EntityChange};
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, storage_failure};
use crate::state::ServerState;
use crate::storage;
use crate::storage::layout::AccountId;

pub(crate) use listing::ListedNames;
pub(crate) use rows::SystemRows;

/// A table of the server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemTable {
    /// Indexes to declare, and how far the server is with them.
    Indexes,
    /// Indexes that the queries so far would have gained by.
    Advice,
    /// The partitions that are asked for most.
    HotPartitions,
    /// Settings of tables. There are none yet.
    Tables,
}

impl SystemTable {
    pub(crate) const ALL: [Self; 4] =
        [Self::Advice, Self::HotPartitions, Self::Indexes, Self::Tables];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Indexes => INDEXES_TABLE,
            Self::Advice => "TavolaAdvice",
            Self::HotPartitions => "TavolaHotPartitions",
            Self::Tables => "TavolaTables",
        }
    }

    /// The table of that name, in any case of letters.
    pub(crate) fn named(name: &TableName<'_>) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name().eq_ignore_ascii_case(name.as_str()))
    }

    /// Refuses those who must not see its rows, beyond what is asked for every table.
    ///
    /// # Errors
    /// 403 `AuthorizationFailure`.
    pub(crate) fn check_permit(self, permit: Permit<'_>) -> Result<()> {
        match self {
            // The partition keys of every table: whoever may read one table must not learn those of the others.
            Self::HotPartitions if !permit.is_of_owner() => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// Its rows as they are now, for this account.
    pub(crate) async fn rows(self, context: &RequestContext<'_>) -> Result<SystemRows> {
        match self {
            Self::Advice => advice::rows(context).await,
            Self::HotPartitions => Ok(hot_partitions::rows(context)),
            Self::Indexes => indexes::rows(context).await,
            Self::Tables => Ok(SystemRows::default()),
        }
    }

    /// Makes all changes of its rows, or none.
    pub(crate) async fn commit(
        self,
        context: &RequestContext<'_>,
        changes: Vec<EntityChange>,
    ) -> Result<Vec<Applied>, Refused> {
        match self {
            Self::Indexes => indexes::commit(context, changes).await,
            Self::Advice | Self::HotPartitions | Self::Tables => {
                Err(Refused { index: 0, error: ErrorCode::InsufficientAccountPermissions.into() })
            }
        }
    }

    /// Whether Query Tables lists it: only while it holds something that a user wrote, so that a new account lists
    /// nothing.
    pub(crate) async fn is_listed(self, state: &ServerState, account: AccountId) -> Result<bool> {
        match self {
            Self::Indexes => Ok(indexes::is_listed(state.catalogue.indexes(), account)),
            Self::Tables | Self::Advice | Self::HotPartitions => Ok(false),
        }
    }
}

/// Warns of users' tables that have a reserved name from before.
pub(crate) async fn warn_of_shadowed_names(state: &ServerState) -> Result<()> {
    for account in state.auth.accounts.all() {
        for table in SystemTable::ALL {
            let name = TableName::parse(table.name())?;
            match state.catalogue.find(account.id, &name).await {
                Ok(_) => tracing::warn!(
                    account = account.name,
                    table = table.name(),
                    "a table of this account has a name that is reserved now: it keeps working, \
                     and what the server keeps under this name cannot be reached"
                ),
                Err(storage::Error::NotFound) => {}
                Err(error) => return Err(storage_failure(error)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_reserved_in_any_case_of_letters() {
        let named = |name: &'static str| SystemTable::named(&TableName::parse(name).unwrap());
        assert_eq!(named("tavolaindexes"), Some(SystemTable::Indexes));
        assert_eq!(named("TAVOLAADVICE"), Some(SystemTable::Advice));
        assert_eq!(named("TavolaHotPartitions"), Some(SystemTable::HotPartitions));
        assert_eq!(named("TavolaTables"), Some(SystemTable::Tables));
        assert_eq!(named("TavolaOther"), None);
        assert!(SystemTable::ALL.is_sorted_by_key(|table| table.name().to_ascii_lowercase()));
    }
}
