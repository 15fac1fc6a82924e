//! Update, Merge and Delete Entity, and the upserts that updates are without a condition.

use http::header::{IF_MATCH, IF_NONE_MATCH};
use tavola_wire::verb::Verb;
use tavola_wire::{ErrorCode, StorageError};

use super::any_table::AnyTable;
use super::entity_change::{ChangeKind, Condition, EntityChange};
use super::odata;
use super::operation::EntityAddress;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(crate) async fn run(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    verb: Verb,
    address: &EntityAddress<'_>,
    body: &[u8],
) -> Result<Reply> {
    let head = context.head;
    let if_match = head.condition(&IF_MATCH)?;
    if !context.state.settings.loose {
        refuse_if_none_match(head.condition(&IF_NONE_MATCH)?, if_match)?;
    }
    let condition = Condition::from_header(if_match)?;
    odata::expect_json(head)?;
    let table = AnyTable::find(context, permit, &address.table).await?;
    let change = EntityChange::at(verb, address, condition, body)?;
    permit.check_key(&change.partition_key, &change.row_key)?;
    let is_delete = matches!(change.kind, ChangeKind::Delete(_));
    let applied = table.commit(context, vec![change]).await;
    let applied = applied.map_err(|refused| refused.error)?;
    let mut reply = odata::no_content();
    if let Some(applied) = applied.first().filter(|_| !is_delete) {
        odata::set_etag(&mut reply, applied.timestamp);
    }
    Ok(reply)
}

/// Writes are conditional on what must match, never on what must not.
pub(crate) fn refuse_if_none_match(
    if_none_match: Option<&str>,
    if_match: Option<&str>,
) -> Result<()> {
    let message = match (if_none_match, if_match) {
        (None, _) => return Ok(()),
        (Some(_), Some(_)) => {
            "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. \
             Please specify either one of the headers or none of them."
        }
        (Some(_), None) => "If-None-Match HTTP header cannot be specified for this operation.",
    };
    Err(StorageError::with_detail(ErrorCode::InvalidInput, message))
}
