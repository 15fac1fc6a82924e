//! Insert Entity: a new row, echoed unless the client prefers silence.

use http::StatusCode;
use tavola_wire::ErrorCode;
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::names::TableName;
use tavola_wire::table::negotiate::{MetadataLevel, Preference};
use tavola_wire::table::stored::EntityRef;
use tavola_wire::uri::percent::write_entity_link;

use super::any_table::AnyTable;
use super::entity_change::{Applied, EntityChange};
use super::odata;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, corrupt};
use crate::request::reply::Reply;

pub(crate) async fn run(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    name: &TableName<'_>,
    body: &[u8],
) -> Result<Reply> {
    odata::expect_json(context.head)?;
    let preference = odata::preference(context.head);
    let level = match preference {
        Some(Preference::ReturnNoContent) => MetadataLevel::Minimal,
        _ => odata::level(context.head)?,
    };
    let table = AnyTable::find(context, permit, name).await?;
    let change = EntityChange::insert(body)?;
    let (partition_key, row_key) = (change.partition_key.clone(), change.row_key.clone());
    permit.check_key(&partition_key, &row_key)?;
    let applied = table.commit(context, vec![change]).await;
    let applied = applied.map_err(|refused| refused.error)?.pop();
    let applied = applied.ok_or(ErrorCode::InternalError)?;

    let mut reply = match preference {
        Some(Preference::ReturnNoContent) => odata::no_content(),
        _ => {
            let echo = echo(context, name, &partition_key, &row_key, &applied, level)?;
            odata::json(StatusCode::CREATED, level, echo)
        }
    };
    let url = location(&context.head.base(), name, &partition_key, &row_key);
    odata::set_location(&mut reply, &url, preference);
    odata::set_preference_applied(&mut reply, preference);
    odata::set_etag(&mut reply, applied.timestamp);
    Ok(reply)
}

/// The stored entity as JSON.
pub(crate) fn echo(
    context: &RequestContext<'_>,
    table: &TableName<'_>,
    partition_key: &str,
    row_key: &str,
    applied: &Applied,
    level: MetadataLevel,
) -> Result<Vec<u8>> {
    let stored = applied.entity.as_ref().ok_or(ErrorCode::InternalError)?;
    let entity = EntityRef::parse(stored).map_err(corrupt)?;
    let (base, account) = (odata::metadata_base(context.head, level), &context.account.name);
    let format = EntityFormat::new(level, &base, account, table.as_str(), None)?;
    let mut body = Vec::with_capacity(512 + 2 * stored.len());
    format.push_element(&mut body, partition_key, row_key, entity).map_err(corrupt)?;
    Ok(body)
}

/// The URL of an entity.
pub(crate) fn location(
    base: &str,
    table: &TableName<'_>,
    partition_key: &str,
    row_key: &str,
) -> String {
    let mut url = Vec::with_capacity(base.len() + 64);
    url.extend_from_slice(base.as_bytes());
    url.push(b'/');
    write_entity_link(table.as_str(), partition_key, row_key, &mut url);
    String::from_utf8(url).expect("keys are percent-encoded")
}
