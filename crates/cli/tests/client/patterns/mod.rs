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
use tavola_client::{DateTime, Entity};

use crate::support::TestTable;

fn moment(text: &str) -> DateTime {
    DateTime::parse_iso(text).unwrap()
}

async fn row_keys(table: &TestTable) -> Vec<String> {
    let found: Vec<_> = table.query_entities::<Entity>(None).try_collect().await.unwrap();
    found.iter().map(|stored| stored.row_key().to_owned()).collect()
}
