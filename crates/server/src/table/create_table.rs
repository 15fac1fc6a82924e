//! Create Table.

use http::StatusCode;
use tavola_wire::auth::sas::Access;
use tavola_wire::table::json::{TableFormat, read_table_name};
use tavola_wire::table::names::TableName;
use tavola_wire::table::negotiate::{MetadataLevel, Preference};

use super::errors::of_table;
use crate::context::RequestContext;
use crate::error::Result;
use crate::request::respond::{self, Reply};

pub(crate) async fn run(context: &RequestContext<'_>, body: &[u8]) -> Result<Reply> {
    context.identity.allows(Access::CreateTable)?;
    context.head.expect_json()?;
    let preference = context.head.preference();
    let level = match preference {
        Some(Preference::ReturnNoContent) => MetadataLevel::Minimal,
        _ => context.head.level()?,
    };
    let name = TableName::parse(read_table_name(body)?)?;
    let created = context.state.catalogue.create_table(context.account.id, &name, context.stamp());
    created.await.map_err(of_table)?;

    let base = context.head.base();
    let mut reply = match preference {
        Some(Preference::ReturnNoContent) => respond::no_content(),
        _ => {
            let format = TableFormat { level, base: &base, account: &context.account.name };
            respond::json(StatusCode::CREATED, level, format.element(name.as_str()))
        }
    };
    respond::set_location(&mut reply, &format!("{base}/Tables('{name}')"), preference);
    respond::set_preference_applied(&mut reply, preference);
    Ok(reply)
}
