//! Changes as requests: alone, and as parts of a transaction.

use super::store::Change;
use crate::support::client::{Request, entity_path};
use crate::support::{Batch, Client};

impl Change {
    /// The request that makes this change, without an echo.
    pub(crate) fn request<'a>(
        &self,
        client: &'a Client,
        table: &str,
        keys: (&str, &str),
    ) -> Request<'a> {
        let request = match self {
            Self::Insert(properties) => {
                let entity = properties.to_entity(keys.0, keys.1);
                client.post(format!("/{table}"), &entity).header("Prefer", "return-no-content")
            }
            Self::Replace(_, properties) => client.put(table, keys, &properties.to_json()),
            Self::Merge(_, properties) => client.merge(table, keys, &properties.to_json()),
            Self::Delete(_) => client.delete(entity_path(table, keys.0, keys.1)),
        };
        match self.if_match() {
            Some(etag) => request.if_match(&etag),
            None => request,
        }
    }

    /// The batch with this change as its last operation.
    pub(crate) fn add_to(
        &self,
        batch: Batch,
        client: &Client,
        table: &str,
        keys: (&str, &str),
    ) -> Batch {
        let etag = self.if_match();
        match self {
            Self::Insert(properties) => {
                batch.insert(client, table, &properties.to_entity(keys.0, keys.1))
            }
            Self::Replace(_, properties) => {
                batch.put(client, table, keys, etag.as_deref(), &properties.to_json())
            }
            Self::Merge(_, properties) => {
                batch.merge(client, table, keys, etag.as_deref(), &properties.to_json())
            }
            Self::Delete(_) => batch.delete(client, table, keys, &etag.expect("a condition")),
        }
    }
}
