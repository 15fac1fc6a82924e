//! A copy that can be taken back: what was under its keys before is there again afterwards.

use crate::patterns::{Races, Row, is_conflict};
use crate::{Entity, Etag, Result, Stored, TableClient, UpdateMode};

/// A copy that was written.
pub(super) struct Written {
    etag: Etag,
    keys: (String, String),
    /// What it replaced, as the service has it: encrypted stays encrypted.
    before: Option<Stored<Entity>>,
}

/// Writes a copy over whatever there is; `None` if the same is there already. That may be an older record, so that it is
/// nobody's to take back.
pub(super) async fn write_copy(table: &TableClient, copy: &Row) -> Result<Option<Written>> {
    let mut races = Races::default();
    let (partition, row) = (copy.partition_key(), copy.row_key());
    loop {
        let sealed = table.without_encryption();
        let before = sealed.get_entity_if_exists::<Entity>(partition, row, None).await?;
        let written = match &before {
            None => table.insert_entity(copy, None).await,
            Some(before) => {
                let read = table.get_entity_if_exists::<Entity>(partition, row, None).await?;
                if read.is_some_and(|read| copy.is_same(&read)) {
                    return Ok(None);
                }
                table.update_entity(copy, UpdateMode::Replace, before, None).await
            }
        };
        match written {
            Ok(written) => {
                let keys = (partition.to_owned(), row.to_owned());
                return Ok(Some(Written { etag: written.etag().clone(), keys, before }));
            }
            Err(error) if is_conflict(&error) => races.lost().await?,
            Err(error) => return Err(error),
        }
    }
}

/// Puts back what the copy replaced. If somebody wrote there since, that stays.
pub(super) async fn take_back(table: &TableClient, written: Option<Written>) -> Result<()> {
    let Some(Written { etag, keys: (partition, row), before }) = written else { return Ok(()) };
    let sealed = table.without_encryption();
    let done = match before {
        None => sealed.delete_entity_if_exists(&partition, &row, &etag, None).await.map(|_| ()),
        Some(before) => {
            let restored = sealed.update_entity(&before.value, UpdateMode::Replace, &etag, None);
            restored.await.map(|_| ())
        }
    };
    match done {
        Err(error) if !is_conflict(&error) => Err(error),
        _ => Ok(()),
    }
}
