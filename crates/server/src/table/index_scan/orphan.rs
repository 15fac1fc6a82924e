//! An index row that points to nothing: never seen, and no reason to refuse an answer that is right without it.

use crate::context::RequestContext;
use crate::storage::catalogue::Table;

/// Has the builder look at the row, and take the index out of use if it finds the same. The query goes on without it.
pub(crate) fn report_orphan(
    context: &RequestContext<'_>,
    table: &Table,
    index: u16,
    entity_key: &[u8],
) {
    context.state.metrics.indexes.orphans.inc();
    let indexes = context.state.catalogue.indexes();
    let name = table.name.to_ascii_lowercase();
    if indexes.add_orphan(context.account.id, &name, index, entity_key) {
        tracing::error!(table = table.name, index, "a query found an index row without its entity");
    }
}
