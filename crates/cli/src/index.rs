//! `tavola index`: indexes of a running service.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tavola_client::{EdmValue, ErrorCode, ErrorExt, IndexClient, IndexInfo, IndexSpec};
use tokio::time::timeout;

use crate::connection::ConnectionOptions;
use crate::system_table::{print_json, print_lines, text};
use crate::text_table::{Cell, TextTable};

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
    /// Does something with the indexes of its account.
    fn run<T>(
        &self,
        work: impl AsyncFnOnce(IndexClient) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        run_on(&self.connection, work)
    }

    /// Why nothing can be done with it.
    fn refused(&self, error: tavola_client::Error) -> anyhow::Error {
        match error.code() {
            Some(ErrorCode::ResourceNotFound) => {
                let missing = format!("there is no index {} of {}", self.name, self.table);
                anyhow::Error::new(error).context(missing)
            }
            _ => error.into(),
        }
    }
}

fn run_on<T>(
    connection: &ConnectionOptions,
    work: impl AsyncFnOnce(IndexClient) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    connection.tables()?.run(|service| work(service.indexes()))?
}

fn create(options: &CreateOptions) -> anyhow::Result<()> {
    let (index, limit) = (&options.index, Duration::from_secs(options.timeout));
    let spec = IndexSpec::on(&*options.keys)
        .include(&*options.include)
        .filter(&*options.filter)
        .browse_as(&*options.browse_as);
    let spec = if options.unique { spec.unique() } else { spec };
    index.run(async |indexes: IndexClient| {
        let declared = indexes.declare(&index.table, &index.name, &spec, None).await;
        declared.context("the index is not declared")?;
        if !options.wait {
            return Ok(());
        }
        match timeout(limit, indexes.wait_until_readable(&index.table, &index.name, None)).await {
            Ok(built) => built.map(drop).map_err(|error| index.refused(error)),
            Err(_) => {
                bail!("the index is still being built; `tavola index show` tells how far it is")
            }
        }
    })
}

fn list(options: &ListOptions) -> anyhow::Result<()> {
    let found = run_on(&options.connection, async |indexes: IndexClient| {
        let found = indexes.list(options.table.as_deref(), None).await;
        found.context("cannot read the table TavolaIndexes")
    })?;
    if options.json {
        let rows: Vec<_> = found.into_iter().map(|index| index.entity).collect();
        return print_json(&rows);
    }
    let mut table = TextTable::new(&[
        "TABLE", "INDEX", "KEYS", "INCLUDE", "UNIQUE", "STATE", "ENTRIES", "USES",
    ]);
    for IndexInfo { table: of, name, spec, entries, uses, entity, .. } in &found {
        table.push(vec![
            Cell::text(of),
            Cell::text(name),
            Cell::text(&*spec.keys),
            Cell::text(&*spec.include),
            Cell::text(if spec.unique { "yes" } else { "" }),
            Cell::text(text(entity, "State")),
            Cell::number(entries.to_string()),
            Cell::number(uses.to_string()),
        ]);
    }
    print_lines(&table.lines())
}

fn show(index: &NamedIndex) -> anyhow::Result<()> {
    let found = index.run(async |indexes: IndexClient| {
        let found = indexes.get(&index.table, &index.name, None).await;
        found.map_err(|error| index.refused(error))
    })?;
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
    let lines: Vec<_> = found.entity.properties().map(line).collect();
    print_lines(&lines)
}

fn drop_index(index: &NamedIndex) -> anyhow::Result<()> {
    index.run(async |indexes: IndexClient| {
        let dropped = indexes.drop_index(&index.table, &index.name, None).await;
        dropped.map_err(|error| index.refused(error).context("the index is not dropped"))
    })
}

fn verify(options: &VerifyOptions) -> anyhow::Result<()> {
    let (index, limit) = (&options.index, Duration::from_secs(options.timeout));
    let words = index.run(async |indexes: IndexClient| {
        match timeout(limit, indexes.verify(&index.table, &index.name, None)).await {
            Ok(verified) => verified.map_err(|error| index.refused(error)),
            Err(_) => bail!("it is still running; see the property Verify of the index"),
        }
    })?;
    print_lines(&[words])
}
