//! Get Entity: one row by its two keys.

use http::StatusCode;
use tavola_wire::ErrorCode;
use tavola_wire::table::json::EntityFormat;
use tavola_wire::table::negotiate::MetadataLevel;
use tavola_wire::table::stored::EntityRef;

use super::any_table::AnyTable;
use super::odata;
use super::operation::EntityAddress;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, corrupt};
use crate::request::reply::Reply;

pub(crate) async fn run(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    address: &EntityAddress<'_>,
) -> Result<Reply> {
    let level = odata::level(context.head)?;
    let select = context.head.query.select();
    let (body, etag) = read(context, permit, address, level, select).await?;
    let mut reply = odata::json(StatusCode::OK, level, body);
    odata::set_etag(&mut reply, etag);
    Ok(reply)
}

/// The entity as JSON and its timestamp; also the query of a batch.
pub(crate) async fn read(
    context: &RequestContext<'_>,
    permit: Permit<'_>,
    address: &EntityAddress<'_>,
    level: MetadataLevel,
    select: Option<&str>,
) -> Result<(Vec<u8>, tavola_wire::Ticks)> {
    let table_name = address.table.as_str();
    let table = AnyTable::find(context, permit, &address.table).await?;
    let (partition_key, row_key) = match table {
        AnyTable::View(_) => {
            (address.partition_key.for_read_of_view()?, address.row_key.for_read_of_view()?)
        }
        _ => (address.partition_key.for_read()?, address.row_key.for_read()?),
    };
    permit.check_key(partition_key, row_key)?;
    let stored = table.get(context, partition_key, row_key).await?;
    let stored = stored.ok_or(ErrorCode::ResourceNotFound)?;
    let entity = EntityRef::parse(&stored).map_err(corrupt)?;
    let account = &context.account.name;
    let base = odata::metadata_base(context.head, level);
    let format = EntityFormat::new(level, &base, account, table_name, select)?;
    let mut body = Vec::with_capacity(512 + 2 * stored.len());
    format.push_element(&mut body, partition_key, row_key, entity).map_err(corrupt)?;
    Ok((body, entity.timestamp()))
}
