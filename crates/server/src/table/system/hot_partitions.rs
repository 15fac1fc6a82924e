//! `TavolaHotPartitions`: one row for each of the partitions that are asked for most.
//!
//! PartitionKey is the table, RowKey the partition key, so that one partition can be asked for by its keys.

use std::time::Instant;

use tavola_wire::table::stored::{EntityWriter, Value};

use super::SystemRows;
use crate::context::RequestContext;

pub(super) fn rows(context: &RequestContext<'_>) -> SystemRows {
    let hot_partitions = &context.state.workload.hot_partitions;
    let hottest = hot_partitions.hottest(context.account.id, Instant::now());
    let (mut rows, now) = (SystemRows::default(), context.state.clock.now());
    for (partition, rank) in hottest.iter().zip(1..) {
        let mut entity = EntityWriter::new();
        entity.push("Rank", Value::Int32(rank));
        entity.push("RequestsPerSecond", Value::Double(partition.requests_per_second));
        entity.push("Share", Value::Double(partition.share));
        entity.push("Error", Value::Double(partition.error));
        entity.push("BytesPerSecond", Value::Double(partition.bytes_per_second));
        rows.insert(&partition.table_name, &partition.partition_key, now, entity);
    }
    rows
}
