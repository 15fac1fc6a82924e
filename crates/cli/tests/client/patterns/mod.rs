//! The patterns of the guide, each against the server.

mod crash;
mod eventual;
mod guide;
mod index_entities;
mod indexes;
mod inter_partition;
mod keys;
mod lost_claim;
mod relations;
mod series;
mod shared_queue;

use futures::TryStreamExt;
use tavola_client::{DateTime, Entity, TableEntity};

use crate::support::TestTable;

/// Somebody of whom not everybody may know everything.
#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", columns)]
struct Patient {
    #[table(partition_key)]
    ward: String,
    #[table(row_key)]
    id: String,
    name: String,
    #[table(encrypt)]
    diagnosis: String,
}

fn moment(text: &str) -> DateTime {
    DateTime::parse_iso(text).unwrap()
}

async fn row_keys(table: &TestTable) -> Vec<String> {
    let found: Vec<_> = table.query_entities::<Entity>(None).try_collect().await.unwrap();
    found.iter().map(|stored| stored.row_key().to_owned()).collect()
}
