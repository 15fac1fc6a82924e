//! A change that depends on what is stored: read, change, write back if nobody else did meanwhile, or else again.

use super::entity::{Stored, TableEntity};
use super::options::{GetEntityOptions, UpdateMode};
use super::table_client::TableClient;
use crate::core::error::{ErrorExt, Result};
use crate::core::options::CallOptions;
use crate::core::races::Races;

impl TableClient {
    /// Reads an entity, lets the closure change it, and writes it back; if somebody else changed it in between, all over
    /// again with what they wrote, after a random pause. Gives the entity as it was written.
    ///
    /// The closure can be called several times. An error from it ends the attempt and nothing is written. The entity is
    /// replaced: a type of your own drops the properties that it does not know, [`Entity`](crate::Entity) keeps all.
    ///
    /// ```no_run
    /// # async fn run(counters: tavola_client::TableClient) -> tavola_client::Result<()> {
    /// use tavola_client::Entity;
    ///
    /// let counter = counters
    ///     .read_modify_write("visits", "2026-11-17", |counter: &mut Entity| {
    ///         let count: i64 = counter.get("Count")?;
    ///         counter.set("Count", count + 1);
    ///         Ok(())
    ///     }, None)
    ///     .await?;
    /// println!("visitor number {}", counter.get::<i64>("Count")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ResourceNotFound` when there is no such entity; an entity that others change all the time. An answer that was lost
    /// leaves open whether the change was made: the error then says
    /// [`may_have_been_applied`](ErrorExt::may_have_been_applied), and the change is not made a second time.
    pub async fn read_modify_write<T: TableEntity>(
        &self,
        partition_key: &str,
        row_key: &str,
        mut change: impl FnMut(&mut T) -> Result<()>,
        options: Option<CallOptions>,
    ) -> Result<Stored<T>> {
        let options = options.unwrap_or_default();
        let mut races = Races::default();
        loop {
            let read = GetEntityOptions {
                method_options: options.method_options.clone(),
                deadline: options.deadline,
                ..Default::default()
            };
            let mut stored = self.get_entity::<T>(partition_key, row_key, Some(read)).await?;
            change(&mut stored.value)?;
            let call = Some(options.clone());
            match self.update_entity(&stored.value, UpdateMode::Replace, &stored, call).await {
                Ok(written) => {
                    let request_id = written.request_id().map(Into::into);
                    let stored = Stored::new(stored.value, written.into_etag());
                    return Ok(stored.with_request_id(request_id));
                }
                // Its own first attempt, perhaps: doing it again could do it twice.
                Err(error) if error.may_have_been_applied() => return Err(error),
                Err(error) if error.is_precondition_failed() => races.lost().await?,
                Err(error) => return Err(error),
            }
        }
    }
}
