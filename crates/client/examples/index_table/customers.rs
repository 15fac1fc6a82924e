//! The customers, apart from where it prints to.

use std::io::Write;

use futures::TryStreamExt;
use tavola_client::{
    Entity, ErrorCode, ErrorExt, Filter, IndexClient, IndexSpec, Operation, QueryOptions, Result,
    TableClient, TableEntity, TableServiceClient, UpdateMode, filter,
};

const TOWNS: [&str; 20] = [
    "Atlanta", "Austin", "Boston", "Chicago", "Dallas", "Denver", "Houston", "Miami", "New York",
    "Oakland", "Omaha", "Phoenix", "Portland", "Raleigh", "Redmond", "Reno", "Seattle", "Tampa",
    "Tucson", "Tulsa",
];
const LAST_NAMES: [&str; 10] = [
    "Brown", "Clarke", "Green", "Howard", "Jones", "Norton", "Robinson", "Smith", "Thomas",
    "Wright",
];
const CUSTOMERS: usize = 1000;
const SHARDS: u32 = 16;

/// The key is the customer's id, in a shard that a hash of the id picks: good for writing, and no help for any question
/// but "who is customer 17".
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Customer {
    #[table(partition_key)]
    shard: String,
    #[table(row_key)]
    id: String,
    last_name: String,
    town: String,
    notes: String,
}

impl Customer {
    fn new(number: usize) -> Self {
        let id = format!("{number:04}");
        Self {
            shard: format!("shard-{:02}", hash(&id) % SHARDS),
            id,
            last_name: LAST_NAMES[number / TOWNS.len() % LAST_NAMES.len()].into(),
            town: TOWNS[number % TOWNS.len()].into(),
            notes: "what few ask for".into(),
        }
    }
}

/// FNV-1a: the same on every machine.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Fills a table, asks, declares an index, asks again, and deletes the table.
///
/// # Errors
/// A connection string that does not add up, and those of the service.
pub(super) async fn run(connection: Option<&str>, name: &str, out: &mut impl Write) -> Result<()> {
    let connection = connection.unwrap_or("UseDevelopmentStorage=true");
    let service = TableServiceClient::from_connection_string(connection, None)?;
    let table = service.table_client(name)?;
    table.create_if_not_exists(None).await?;
    let customers = (0..CUSTOMERS)
        .map(|number| Operation::upsert(&Customer::new(number), UpdateMode::Replace))
        .collect::<Result<Vec<_>>>()?;
    let written = table.bulk(customers, None).await.progress.done;
    writeln!(out, "{written} customers in {SHARDS} shards")?;
    let shop = Shop { table, indexes: service.indexes() };
    shop.by_town(out).await?;
    shop.by_last_name(out).await?;
    shop.by_town_and_last_name(out).await?;
    shop.in_hashed_shards(out).await?;
    shop.table.delete(None).await.map(drop)
}

struct Shop {
    table: TableClient,
    indexes: IndexClient,
}

impl Shop {
    /// The three strategies of the pattern are three forms of what the index includes.
    async fn by_town(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\nCustomers by town")?;
        let redmond = || QueryOptions::from(filter!(Town == "Redmond"));
        self.drop_index("ByTown").await?;
        self.ask(out, "without an index", redmond()).await?;
        self.declare(out, "ByTown", &IndexSpec::on("Town")).await?;
        self.ask(out, "references, each looked up", redmond()).await?;
        let copies = IndexSpec::on("Town").include("*");
        self.declare(out, "ByTown", &copies).await?;
        self.ask(out, "copies of everything", redmond()).await?;
        let some = IndexSpec::on("Town").include("LastName");
        self.declare(out, "ByTown", &some).await?;
        let names = Some(vec!["LastName".into()]);
        let last_names = QueryOptions { select: names, ..redmond() };
        self.ask(out, "copies of what is asked for often", last_names).await?;
        self.ask(out, "and the rest looked up", redmond()).await
    }

    async fn by_last_name(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\nCustomers by last name")?;
        self.declare(out, "ByLastName", &IndexSpec::on("LastName")).await?;
        self.ask(out, "one name", filter!(LastName == "Smith").into()).await?;
        let prefix = filter!(LastName.starts_with("Ro"));
        self.ask(out, "names that begin with Ro", prefix.into()).await
    }

    /// The pattern concatenates the two; here they stay two properties, and the first serves alone as well.
    async fn by_town_and_last_name(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\nCustomers by town and last name")?;
        self.drop_index("ByTown").await?;
        self.drop_index("ByLastName").await?;
        self.declare(out, "ByTownAndName", &IndexSpec::on("Town,LastName")).await?;
        let both = filter!(Town == "Redmond" && LastName == "Smith");
        self.ask(out, "both", both.into()).await?;
        self.ask(out, "the first alone", filter!(Town == "Redmond").into()).await?;
        self.ask(out, "the second alone", filter!(LastName == "Smith").into()).await
    }

    /// The index names the shard of each customer, so that nobody calculates a hash.
    async fn in_hashed_shards(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "\nCustomers in hashed shards")?;
        let wanted = filter!(Town == "Boston" && LastName == "Howard");
        let found = self.customers(wanted.clone().into()).await?;
        for customer in &found {
            writeln!(out, "  customer {} is in {}", customer.id, customer.shard)?;
        }
        self.ask(out, "found without a hash", wanted.into()).await?;
        let Some(Customer { shard, id, .. }) = found.first() else { return Ok(()) };
        self.ask(out, "one of them by its keys", Filter::key(shard, id).into()).await
    }

    /// Runs a query, and prints what it found and what that cost.
    async fn ask(&self, out: &mut impl Write, what: &str, options: QueryOptions) -> Result<()> {
        let explanation = self.table.explain_query(options.clone()).await?;
        let found = self.table.query_entities::<Entity>(options);
        let found = found.try_collect::<Vec<_>>().await?.len();
        writeln!(out, "  {what}: {found} found; {explanation}")?;
        Ok(())
    }

    async fn customers(&self, options: QueryOptions) -> Result<Vec<Customer>> {
        let found = self.table.query_entities::<Customer>(options);
        found.map_ok(|customer| customer.value).try_collect().await
    }

    async fn declare(&self, out: &mut impl Write, name: &str, spec: &IndexSpec) -> Result<()> {
        match self.indexes.declare(self.table.name(), name, spec, None).await {
            Ok(_) => {}
            Err(error) if error.code() == Some(ErrorCode::TableNotFound) => {
                writeln!(out, "  (this service keeps no indexes)")?;
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.indexes.wait_until_readable(self.table.name(), name, None).await.map(drop)
    }

    /// One that a run before may have left, or that is in the way of what is shown next.
    async fn drop_index(&self, name: &str) -> Result<()> {
        match self.indexes.drop_index(self.table.name(), name, None).await {
            Err(error)
                if matches!(
                    error.code(),
                    Some(ErrorCode::ResourceNotFound | ErrorCode::TableNotFound)
                ) =>
            {
                Ok(())
            }
            done => done,
        }
    }
}
