//! Create Table.

use http::StatusCode;
use tavola_wire::ErrorCode;
use tavola_wire::table::json::{TableFormat, read_table_name};
use tavola_wire::table::names::TableName;
use tavola_wire::table::negotiate::{MetadataLevel, Preference};

use super::errors::of_table;
use super::odata;
use super::system::SystemTable;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::reply::Reply;

pub(crate) async fn run(
    context: &RequestContext<'_>,
    _permit: Permit<'_>,
    body: &[u8],
) -> Result<Reply> {
    odata::expect_json(context.head)?;
    let preference = odata::preference(context.head);
    let level = match preference {
        Some(Preference::ReturnNoContent) => MetadataLevel::Minimal,
        _ => odata::level(context.head)?,
    };
    let name = TableName::parse(read_table_name(body)?)?;
    if SystemTable::named(&name).is_some() {
        return Err(ErrorCode::TableAlreadyExists.into());
    }
    let created = context.state.catalogue.create_table(context.account.id, &name, context.stamp());
    created.await.map_err(of_table)?;

    let base = context.head.base();
    let mut reply = match preference {
        Some(Preference::ReturnNoContent) => odata::no_content(),
        _ => {
            let format = TableFormat { level, base: &base, account: &context.account.name };
            odata::json(StatusCode::CREATED, level, format.element(name.as_str()))
        }
    };
    odata::set_location(&mut reply, &format!("{base}/Tables('{name}')"), preference);
    odata::set_preference_applied(&mut reply, preference);
    Ok(reply)
}
