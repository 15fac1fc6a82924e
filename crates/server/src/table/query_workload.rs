//! Counts pages of queries: for advice on indexes by their shape, and for the hottest partitions.

use std::borrow::Cow;

use tavola_wire::table::filter::{Expr, QueryKind, Span};
use tavola_wire::table::stored::key::read_entity_key;

use super::entity_page::FinishedPage;
use crate::context::RequestContext;
use crate::storage::catalogue::Table;
use crate::workload::PageFigures;
use crate::workload::hot_partitions::PartitionRequest;

/// Rows that a page examines in vain before it counts: looking one up by an index takes as long as scanning some.
const ROWS_IN_VAIN_MIN: u64 = 16;

/// How a page found its rows.
pub(super) struct QueryPage<'q> {
    /// None if the keys say all of it.
    pub filter: Option<&'q Expr>,
    pub spans: &'q [Span],
    pub kind: QueryKind,
    /// Whether indexes found it, and were not given up for a scan.
    pub uses_index: bool,
}

pub(super) fn note(
    context: &RequestContext<'_>,
    table: &Table,
    query: &QueryPage<'_>,
    page: &FinishedPage,
) {
    let (account, workload) = (context.account.id, &context.state.workload);
    if let Some(partition_key) = query.partition() {
        workload.hot_partitions.note(PartitionRequest {
            account,
            table: table.id,
            table_name: &table.name,
            partition_key: &partition_key,
            bytes: page.body.len(),
            writes: 0,
        });
    }
    let Some(filter) = query.filter.filter(|_| query.is_costly(page)) else { return };
    let options = &context.head.query;
    let figures = PageFigures {
        kind: query.kind,
        is_first: options.next_partition_key().is_none(),
        examined: page.examined,
        returned: page.returned as u64,
        bytes: page.body.len() as u64,
        time: context.started.elapsed(),
        at: context.state.clock.now(),
    };
    workload.shapes.note((account, table.id, &table.name), filter, options.select(), figures);
}

impl QueryPage<'_> {
    /// Whether an index could have found the page faster: not if one did, or if there was little to find it among.
    fn is_costly(&self, page: &FinishedPage) -> bool {
        let in_vain = page.examined.saturating_sub(page.returned as u64);
        !self.uses_index && self.kind >= QueryKind::PartitionScan && in_vain >= ROWS_IN_VAIN_MIN
    }

    /// The partition that it looks into, if it is one.
    fn partition(&self) -> Option<Cow<'_, str>> {
        match self.spans {
            [span] if self.kind != QueryKind::TableScan => {
                read_entity_key(&span.start).map(|(partition_key, _)| partition_key)
            }
            _ => None,
        }
    }
}
