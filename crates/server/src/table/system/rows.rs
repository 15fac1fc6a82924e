//! Rows that are made for one request: what a stored table has in the engine, in memory.
//!
//! There are few of them, so that all are made whatever is asked for, and a page looks at those in its spans.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use tavola_engine::Visitor;
use tavola_wire::Ticks;
use tavola_wire::table::filter::Span;
use tavola_wire::table::stored::{EntityWriter, set_timestamp};

use crate::storage::layout::{EntityKeys, TableId};
use crate::table::entity_page::Page;

/// No stored table has this id: ids begin with 1.
const KEYS: EntityKeys = EntityKeys::of(TableId(0));

/// Rows in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct SystemRows {
    by_key: BTreeMap<Bytes, Bytes>,
}

impl SystemRows {
    /// Adds a row; both keys must be legal. `changed` becomes its timestamp and its ETag.
    pub(crate) fn insert(
        &mut self,
        partition_key: &str,
        row_key: &str,
        changed: Ticks,
        entity: EntityWriter,
    ) {
        let mut entity = entity.finish();
        set_timestamp(&mut entity, changed);
        self.by_key.insert(KEYS.key(partition_key, row_key), entity.into());
    }

    /// The encoded entity with these keys.
    pub(crate) fn get(&self, partition_key: &str, row_key: &str) -> Option<&Bytes> {
        self.by_key.get(&KEYS.key(partition_key, row_key))
    }

    /// Shows the rows of the spans to the page until it is full.
    pub(crate) fn scan_spans(&self, spans: &[Span], mut page: Box<Page>) -> Box<Page> {
        for span in spans {
            let range = KEYS.range(&span.start, span.end.as_deref());
            if range.is_empty() {
                continue;
            }
            let range = (Bound::Included(range.start), Bound::Excluded(range.end));
            for (key, entity) in self.by_key.range(range) {
                if page.visit(key, entity).is_break() {
                    return page;
                }
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use tavola_wire::table::filter::Plan;
    use tavola_wire::table::json::EntityFormat;
    use tavola_wire::table::negotiate::MetadataLevel;
    use tavola_wire::table::stored::Value;
    use tavola_wire::table::stored::key::read_entity_key;

    use super::*;
    use crate::net::memory_budget::MemoryBudget;

    fn rows() -> SystemRows {
        let mut rows = SystemRows::default();
        for (partition, row) in [("b", "1"), ("a", "2"), ("a", "1"), ("c", "")] {
            let mut entity = EntityWriter::new();
            entity.push("Name", Value::String(&format!("{partition}{row}")));
            rows.insert(partition, row, Ticks::MIN_STORED, entity);
        }
        rows
    }

    /// The names on a page, and the keys of the next one.
    fn page(filter: &str, top: usize) -> (Vec<String>, Option<(String, String)>) {
        let plan = Plan::read(filter).unwrap();
        let format = EntityFormat::new(MetadataLevel::None, "", "", "t", None).unwrap();
        let memory = Arc::new(MemoryBudget::new(1 << 20)).reservation();
        let deadline = Instant::now() + Duration::from_secs(600);
        let page = Page::new(format, plan.residual, top, deadline, memory);
        let page = rows().scan_spans(&plan.spans, page).finish().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&page.body).unwrap();
        let names = json["value"].as_array().unwrap().iter();
        let names = names.map(|row| row["Name"].as_str().unwrap().to_owned()).collect();
        let next = page.next.as_deref().and_then(read_entity_key);
        (names, next.map(|(partition, row)| (partition.into_owned(), row.into_owned())))
    }

    #[test]
    fn a_page_holds_what_a_filter_asks_for_in_the_order_of_keys() {
        let names = |filter| page(filter, 1000).0;
        assert_eq!(names("PartitionKey ge ''"), ["a1", "a2", "b1", "c"]);
        assert_eq!(names("PartitionKey eq 'a'"), ["a1", "a2"]);
        assert_eq!(names("PartitionKey eq 'a' and RowKey eq '2'"), ["a2"]);
        assert_eq!(names("PartitionKey eq 'c' or Name eq 'a1'"), ["a1", "c"]);
        assert_eq!(names("RowKey eq '' and PartitionKey gt 'b'"), ["c"]);
        assert_eq!(names("PartitionKey eq 'd'"), [""; 0]);
    }

    #[test]
    fn a_full_page_says_where_the_next_one_begins() {
        let (names, next) = page("PartitionKey ge ''", 2);
        assert_eq!(names, ["a1", "a2"]);
        assert_eq!(next, Some(("b".to_owned(), "1".to_owned())));
    }
}
