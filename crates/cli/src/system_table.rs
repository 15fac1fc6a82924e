//! Reading the tables that the server itself keeps, and printing them.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use serde_json::{Map, Value as Json, json};
use tavola_client::{EdmValue, Entity, ErrorCode, ErrorExt};

use crate::connection::ConnectionOptions;

#[derive(Args, Debug)]
pub(crate) struct ReadOptions {
    #[command(flatten)]
    pub connection: ConnectionOptions,

    /// Only what is about this table
    #[arg(long, value_name = "TABLE")]
    pub table: Option<String>,

    /// Print JSON, one object a row, for other programs
    #[arg(long)]
    pub json: bool,
}

impl ReadOptions {
    /// The rows of a system table; their PartitionKey names the table that they are about.
    pub(crate) fn rows(&self, name: &str) -> anyhow::Result<Vec<Entity>> {
        let table = self.connection.tables()?.table_client(name)?;
        let mut rows = Vec::new();
        for entity in table.query_entities::<Entity>(None) {
            let entity = entity.map_err(|error| cannot_read(error, name))?;
            let is_meant = self
                .table
                .as_ref()
                .is_none_or(|table| table.eq_ignore_ascii_case(entity.partition_key()));
            if is_meant {
                rows.push(entity.value);
            }
        }
        Ok(rows)
    }
}

/// Why a system table cannot be read.
pub(crate) fn cannot_read(error: tavola_client::Error, name: &str) -> anyhow::Error {
    let why = match error.code() {
        Some(ErrorCode::TableNotFound) => {
            format!("the service has no table {name}: it is no Tavola, or an older one")
        }
        _ => format!("cannot read the table {name}"),
    };
    anyhow::Error::new(error).context(why)
}

/// Prints rows as JSON, one a line.
pub(crate) fn print_json(rows: &[Entity]) -> anyhow::Result<()> {
    let lines: Vec<_> = rows.iter().map(|row| to_json(row).to_string()).collect();
    print_lines(&lines)
}

pub(crate) fn print_lines(lines: &[String]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(stdout, "{line}")).context("cannot print")
}

/// Types are those of JSON: whoever reads this knows the properties.
fn to_json(row: &Entity) -> Json {
    let mut object = Map::new();
    object.insert("PartitionKey".into(), row.partition_key().into());
    object.insert("RowKey".into(), row.row_key().into());
    for (name, value) in row.properties() {
        let value = match value {
            EdmValue::String(text) => json!(text),
            EdmValue::Boolean(value) => json!(value),
            EdmValue::Int32(value) => json!(value),
            EdmValue::Int64(value) => json!(value),
            EdmValue::Double(value) => json!(value),
            EdmValue::DateTime(moment) => json!(moment.to_iso()),
            EdmValue::Guid(guid) => json!(guid.to_string()),
            EdmValue::Binary(bytes) => json!(bytes),
        };
        object.insert(name.to_owned(), value);
    }
    Json::Object(object)
}

/// A property that is a number of any type, or 0.
pub(crate) fn number(row: &Entity, name: &str) -> f64 {
    match row.value(name) {
        Some(EdmValue::Int32(value)) => f64::from(*value),
        Some(EdmValue::Int64(value)) => *value as f64,
        Some(EdmValue::Double(value)) => *value,
        _ => 0.0,
    }
}

/// A property that is a text, or nothing.
pub(crate) fn text<'a>(row: &'a Entity, name: &str) -> &'a str {
    match row.value(name) {
        Some(EdmValue::String(text)) => text,
        _ => "",
    }
}
