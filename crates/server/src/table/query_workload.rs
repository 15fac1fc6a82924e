//! Counts pages of queries: for advice on indexes by their shape, and for the hottest partitions.

use std::borrow::Cow;

use tavola_wire::table::filter::{Expr, QueryKind, Span};
use tavola_wire::table::stored::key::read_entity_key;

use super::entity_page::FinishedPage;
use crate::context::RequestContext;
use crate::storage::catalogue::Table;
use crate::workload::PageFigures;
use crate::workload::hot_partitions::PartitionRequest;

/// How a page found its rows.
pub(super) struct QueryPage<'q> {
    /// None if the keys say all of it.
    pub filter: Option<&'q Expr>,
    pub spans: &'q [Span],
    pub kind: QueryKind,
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
    let Some(filter) = query.filter.filter(|_| query.kind != QueryKind::Point) else { return };
    let options = &context.head.query;
    let figures = PageFigures {
        // A page that an index has found is no scan.
        kind: if query.uses_index { query.kind.min(QueryKind::Range) } else { query.kind },
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
