//! `tavola index`: indexes of a running service, through its table `TavolaIndexes`.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tavola_client::blocking::TableClient;
use tavola_client::{
    EdmValue, Entity, ErrorCode, ErrorExt, IfMatch, IndexSpec, TableServiceClient, UpdateMode,
};

use crate::connection::ConnectionOptions;
use crate::system_table::{cannot_read, number, print_json, print_lines, text};
use crate::text_table::{Cell, TextTable};

/// The table that indexes are declared in.
const TABLE: &str = "TavolaIndexes";

/// How often a build or a verification is asked for.
const ASK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Args, Debug)]
pub(crate) struct IndexOptions {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Debug, Subcommand)]
enum IndexCommand {
    /// Declare an index, or replace the whole definition of one
    Create(CreateOptions),
    /// The indexes of the account, or of a table
    List(ListOptions),
    /// Everything about an index
    Show(NamedIndex),
    /// Drop an index
    Drop(NamedIndex),
    /// Compare an index with the entities of its table
    Verify(VerifyOptions),
}

#[derive(Args, Debug)]
struct NamedIndex {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// The table
    table: String,
    /// The index
    name: String,
}

#[derive(Args, Debug)]
struct CreateOptions {
    #[command(flatten)]
    index: NamedIndex,
    /// The properties in order: `Town,LastName`; `Name!` leaves out entities without it, `Name?` keeps them,
    /// `Age:Int32` says which type to expect
    #[arg(long)]
    keys: String,
    /// Properties that the index has copies of, or `*` for all
    #[arg(long, default_value = "", hide_default_value = true)]
    include: String,
    /// Only entities that match, for example `Status eq 'open'`
    #[arg(long, default_value = "", hide_default_value = true)]
    filter: String,
    /// No two entities may have the same values
    #[arg(long)]
    unique: bool,
    /// A name under which the index can be read as a table
    #[arg(long, value_name = "TABLE", default_value = "", hide_default_value = true)]
    browse_as: String,
    /// Return when the index can be used
    #[arg(long)]
    wait: bool,
    /// Give up waiting after this many seconds; the index is built all the same
    #[arg(long, default_value_t = 3600, value_name = "SECONDS", requires = "wait")]
    timeout: u64,
}

#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// Only those of this table
    table: Option<String>,
    /// Print JSON, one object an index
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct VerifyOptions {
    #[command(flatten)]
    index: NamedIndex,
    /// Give up waiting after this many seconds
    #[arg(long, default_value_t = 3600, value_name = "SECONDS")]
    timeout: u64,
}

pub(crate) fn run(options: &IndexOptions) -> anyhow::Result<()> {
    match &options.command {
        IndexCommand::Create(options) => create(options),
        IndexCommand::List(options) => list(options),
        IndexCommand::Show(index) => show(index),
        IndexCommand::Drop(index) => drop_index(index),
        IndexCommand::Verify(options) => verify(options),
    }
}

impl NamedIndex {
    fn client(&self) -> anyhow::Result<TableClient> {
        client(&self.connection)
    }

    /// The index. The name of its table may be written in any letters, as for tables.
    fn get(&self, client: &TableClient) -> anyhow::Result<Entity> {
        match client.get_entity::<Entity>(&self.table, &self.name, None) {
            Ok(entity) => return Ok(entity.value),
            Err(error) if error.code() == Some(ErrorCode::ResourceNotFound) => {}
            Err(error) => return Err(cannot_read(error, TABLE)),
        }
        for entity in client.query_entities::<Entity>(None) {
            let entity = entity.map_err(|error| cannot_read(error, TABLE))?.value;
            if self.table.eq_ignore_ascii_case(entity.partition_key())
                && self.name == entity.row_key()
            {
                return Ok(entity);
            }
        }
        bail!("there is no index {} of {}", self.name, self.table)
    }
}

fn client(connection: &ConnectionOptions) -> anyhow::Result<TableClient> {
    Ok(connection.tables()?.table_client(TABLE)?)
}

fn create(options: &CreateOptions) -> anyhow::Result<()> {
    let NamedIndex { connection, table, name } = &options.index;
    let spec = IndexSpec::on(&*options.keys)
        .include(&*options.include)
        .filter(&*options.filter)
        .browse_as(&*options.browse_as);
    let spec = if options.unique { spec.unique() } else { spec };
    let declare = |service: TableServiceClient| async move {
        service.indexes()?.declare(table, name, &spec, None).await
    };
    let client = options.index.client()?;
    match connection.tables()?.run(declare)? {
        Ok(()) => {}
        // Either table may be meant.
        Err(error) if error.code() == Some(ErrorCode::TableNotFound) && has_indexes(&client) => {
            bail!("there is no table {table}")
        }
        Err(error) => return Err(cannot_read(error, TABLE).context("the index is not declared")),
    }
    let until = Instant::now() + Duration::from_secs(options.timeout);
    wait(&options.index, &client, until, options.wait)
}

/// Whether the service has the table that indexes are declared in.
fn has_indexes(client: &TableClient) -> bool {
    client.query_entities::<Entity>(None).next().is_none_or(|first| first.is_ok())
}

/// Waits until the index can be used, or only sees to it that the service has taken it for one.
fn wait(
    index: &NamedIndex,
    client: &TableClient,
    until: Instant,
    is_built: bool,
) -> anyhow::Result<()> {
    loop {
        let entity = index.get(client)?;
        match text(&entity, "State") {
            "Readable" => return Ok(()),
            "Failed" => bail!(
                "the index cannot be built: {} {}",
                text(&entity, "Error"),
                text(&entity, "Note")
            ),
            "" => bail!(
                "the service says nothing of the index: {TABLE} is a plain table there, and nothing is built"
            ),
            _ if !is_built => return Ok(()),
            _ if Instant::now() >= until => {
                bail!("the index is still being built; `tavola index show` tells how far it is")
            }
            _ => std::thread::sleep(ASK_AGAIN),
        }
    }
}

fn list(options: &ListOptions) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for entity in client(&options.connection)?.query_entities::<Entity>(None) {
        let entity = entity.map_err(|error| cannot_read(error, TABLE))?.value;
        let table = options.table.as_ref();
        if table.is_none_or(|table| table.eq_ignore_ascii_case(entity.partition_key())) {
            rows.push(entity);
        }
    }
    if options.json {
        return print_json(&rows);
    }
    let mut table = TextTable::new(&[
        "TABLE", "INDEX", "KEYS", "INCLUDE", "UNIQUE", "STATE", "ENTRIES", "USES",
    ]);
    for row in &rows {
        let is_unique = row.value("Unique") == Some(&EdmValue::Boolean(true));
        table.push(vec![
            Cell::text(row.partition_key()),
            Cell::text(row.row_key()),
            Cell::text(text(row, "Keys")),
            Cell::text(text(row, "Include")),
            Cell::text(if is_unique { "yes" } else { "" }),
            Cell::text(text(row, "State")),
            Cell::number(number(row, "Entries").to_string()),
            Cell::number(number(row, "Uses").to_string()),
        ]);
    }
    print_lines(&table.lines())
}

fn show(index: &NamedIndex) -> anyhow::Result<()> {
    let entity = index.get(&index.client()?)?;
    let line = |(name, value): (&str, &EdmValue)| {
        let value = match value {
            EdmValue::String(text) => text.to_string(),
            EdmValue::Boolean(value) => value.to_string(),
            EdmValue::Int32(value) => value.to_string(),
            EdmValue::Int64(value) => value.to_string(),
            EdmValue::Double(value) => format!("{value:.4}"),
            EdmValue::DateTime(moment) => moment.to_iso(),
            EdmValue::Guid(guid) => guid.to_string(),
            EdmValue::Binary(bytes) => format!("{} bytes", bytes.len()),
        };
        format!("{name:<14}{value}")
    };
    let lines: Vec<_> = entity.properties().map(line).collect();
    print_lines(&lines)
}

fn drop_index(index: &NamedIndex) -> anyhow::Result<()> {
    let client = index.client()?;
    let found = index.get(&client)?;
    let dropped = client.delete_entity(found.partition_key(), &index.name, IfMatch::Any, None);
    match dropped {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(ErrorCode::ResourceNotFound) => {
            bail!("there is no index {} of {}", index.name, index.table)
        }
        Err(error) => Err(error).context("the index is not dropped"),
    }
}

fn verify(options: &VerifyOptions) -> anyhow::Result<()> {
    let (index, client) = (&options.index, options.index.client()?);
    let found = index.get(&client)?;
    if text(&found, "State") == "Failed" {
        bail!("index {} of {} has failed: {}", index.name, index.table, text(&found, "Error"));
    }
    let mut entity = Entity::new(found.partition_key(), &index.name);
    entity.set("Verify", true);
    client
        .update_entity(&entity, UpdateMode::Merge, IfMatch::Any, None)
        .context("cannot ask for a verification")?;
    let asked = Instant::now();
    loop {
        let entity = index.get(&client)?;
        let words = text(&entity, "Verify");
        if words != "running" {
            return print_lines(&[outcome(index, words)?.to_owned()]);
        }
        if asked.elapsed() >= Duration::from_secs(options.timeout) {
            bail!("it is still running; see the property Verify of the index");
        }
        std::thread::sleep(ASK_AGAIN);
    }
}

/// What a verification has come to, as the index says it.
fn outcome<'w>(index: &NamedIndex, words: &'w str) -> anyhow::Result<&'w str> {
    match words {
        "" => bail!(
            "index {} of {} is not verified: it was declared anew, or the server was started again, before \
             the end; ask once more",
            index.name,
            index.table
        ),
        words if words.starts_with("sound") => Ok(words),
        words => bail!("index {} of {}: {words}", index.name, index.table),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        index: NamedIndex,
    }

    #[test]
    fn every_outcome_of_a_verification_says_something() {
        let index = Line::parse_from(["index", "People", "ByTown"]).index;
        assert_eq!(outcome(&index, "sound: 3 entries").unwrap(), "sound: 3 entries");
        let told = |words| outcome(&index, words).unwrap_err().to_string();
        assert_eq!(told("not readable yet"), "index ByTown of People: not readable yet");
        assert!(told("").contains("declared anew"));
    }
}
