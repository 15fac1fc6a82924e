//! Query Tables: the catalogue, filtered by name, page by page.

use std::ops::ControlFlow;

use http::{HeaderName, StatusCode};
use tavola_engine::{KeyRange, Reader, Visitor};
use tavola_wire::table::continuation;
use tavola_wire::table::filter::TableFilter;
use tavola_wire::table::json::TableFormat;
use tavola_wire::uri::query::TOP_MAX;

use super::odata;
use super::system::ListedNames;
use crate::auth::permit::Permit;
use crate::context::RequestContext;
use crate::error::{Result, corrupt, engine_error};
use crate::request::reply::Reply;
use crate::request::respond;
use crate::storage::layout::{AccountId, Record, TableRecord, tables_of};

const NEXT_TABLE_NAME: HeaderName = HeaderName::from_static(continuation::NEXT_TABLE_NAME);

pub(crate) async fn run(context: &RequestContext<'_>, _permit: Permit<'_>) -> Result<Reply> {
    let query = &context.head.query;
    let level = odata::level(context.head)?;
    let filter = query.filter().map(TableFilter::parse).transpose()?;
    let top = query.top()?.unwrap_or(TOP_MAX);
    let from = continuation::table_from_query(query.next_table_name())?;
    let from = from.as_ref().map(|name| name.lower().into_owned()).unwrap_or_default();

    let listed = ListedNames::from(context, &from).await?;
    let page = Page { filter, top: usize::from(top), listed, ..Page::default() };
    let page = match top {
        0 => page,
        _ => {
            let range = range(context.account.id, &from, page.filter.as_ref());
            context.state.engine.scan(range, page).await.map_err(engine_error)?.with_listed()
        }
    };
    if page.malformed {
        return Err(corrupt("a catalogue row"));
    }

    let base = context.head.base();
    let format = TableFormat { level, base: &base, account: &context.account.name };
    let body = format.list(page.names.iter().map(String::as_str));
    let mut reply = odata::json(StatusCode::OK, level, body);
    if let Some(next) = &page.next {
        let token = respond::text(&continuation::encode(next));
        reply.headers_mut().insert(NEXT_TABLE_NAME, token);
    }
    Ok(reply)
}

/// The tables that are not before `from`, as far as the filter can match them.
fn range(account: AccountId, from: &str, filter: Option<&TableFilter>) -> KeyRange {
    let lower = filter.and_then(TableFilter::lower).unwrap_or_default();
    let mut range = tables_of(account, from.max(lower));
    if let Some(upper) = filter.and_then(TableFilter::upper_exclusive) {
        // A page may begin where there is no match any more.
        range.end = TableRecord::key(account, upper).max(range.start.clone());
    }
    range
}

/// One page of names.
#[derive(Default)]
struct Page {
    filter: Option<TableFilter>,
    top: usize,
    /// System tables that are yet to come.
    listed: ListedNames,
    names: Vec<String>,
    /// The first name of the next page.
    next: Option<String>,
    malformed: bool,
}

impl Page {
    /// With the system tables behind all others, as far as there is room.
    fn with_listed(mut self) -> Self {
        while self.next.is_none()
            && !self.malformed
            && let Some(name) = self.listed.next()
        {
            let _ = self.offer(name.to_owned());
        }
        self
    }

    /// Takes a name, leaves it out, or finds it to be the first of the next page.
    fn offer(&mut self, name: String) -> ControlFlow<()> {
        if self.filter.as_ref().is_some_and(|filter| !filter.matches(&name)) {
            return ControlFlow::Continue(());
        }
        if self.names.len() == self.top {
            self.next = Some(name);
            return ControlFlow::Break(());
        }
        self.names.push(name);
        ControlFlow::Continue(())
    }
}

impl Visitor for Page {
    fn visit(&mut self, _: &[u8], value: &[u8]) -> ControlFlow<()> {
        let Some(TableRecord { name, .. }) = TableRecord::decode(value) else {
            self.malformed = true;
            return ControlFlow::Break(());
        };
        while let Some(system) = self.listed.next_before(&name) {
            self.offer(system.to_owned())?;
        }
        self.offer(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bytes::Bytes;
    use proptest::prelude::*;
    use tavola_wire::Ticks;

    use super::*;
    use crate::storage::layout::TableId;

    const ACCOUNT: AccountId = AccountId(7);

    fn catalogue(names: &[String]) -> BTreeMap<Bytes, Bytes> {
        let record = |name: &String| TableRecord::new(TableId(1), Ticks(1), name.clone());
        let row = |name: &String| {
            (TableRecord::key(ACCOUNT, &name.to_lowercase()), record(name).encode())
        };
        let mut rows: BTreeMap<_, _> = names.iter().map(row).collect();
        // Of accounts before and after.
        for other in [6, 8] {
            rows.insert(TableRecord::key(AccountId(other), "abc"), record(&"abc".into()).encode());
        }
        rows
    }

    /// The names of a page, where the next one begins, and how many rows were looked at.
    fn page(
        rows: &BTreeMap<Bytes, Bytes>,
        range: KeyRange,
        filter: &TableFilter,
        top: usize,
    ) -> (Vec<String>, Option<String>, usize) {
        let mut page = Page { filter: Some(filter.clone()), top, ..Page::default() };
        let mut examined = 0;
        for (key, value) in rows.range(range.start..range.end) {
            examined += 1;
            if page.visit(key, value).is_break() {
                break;
            }
        }
        assert!(!page.malformed);
        (page.names, page.next, examined)
    }

    #[test]
    fn a_filter_by_name_reads_no_more_than_its_names() {
        let names: Vec<_> = (0..1000).map(|number| format!("Table{number:04}")).collect();
        let rows = catalogue(&names);
        for (text, found, most) in [
            ("TableName eq 'Table0500'", 1, 1),
            ("TableName eq 'table0500'", 1, 1),
            ("TableName ge 'Table05' and TableName lt 'Table06'", 100, 100),
            ("TableName ge 'TABLE0500' and TableName le 'table0509'", 10, 10),
            ("TableName ge 'table0990'", 10, 10),
            ("TableName eq 'other'", 0, 0),
            ("false", 0, 0),
            ("TableName gt 'T'", 1000, 1000),
        ] {
            let filter = TableFilter::parse(text).unwrap();
            let range = range(ACCOUNT, "", Some(&filter));
            let (names, next, examined) = page(&rows, range, &filter, 1000);
            assert_eq!((names.len(), next), (found, None), "{text}");
            assert!(examined <= most, "{text} examined {examined}");
        }
    }

    fn any_filter() -> impl Strategy<Value = String> {
        let comparison = (
            prop::sample::select(vec!["TableName", "TableName", "TableName", "Other"]),
            prop::sample::select(vec!["eq", "ne", "gt", "ge", "lt", "le"]),
            "[aAbBzZ09 _{\u{e9}]{0,4}",
        );
        let comparison =
            comparison.prop_map(|(name, operator, text)| format!("{name} {operator} '{text}'"));
        comparison.prop_recursive(3, 8, 2, |inner| {
            let pair = (inner.clone(), prop::sample::select(vec!["and", "or"]), inner.clone());
            prop_oneof![
                pair.prop_map(|(one, word, other)| format!("({one}) {word} ({other})")),
                inner.prop_map(|inner| format!("not ({inner})")),
            ]
        })
    }

    proptest! {
        #[test]
        fn pages_are_those_of_a_scan_of_all(
            names in prop::collection::vec("[aAbBzZ][aAbBzZ09]{2,3}", 0..30),
            text in any_filter(),
            from in "|[abz09]{1,4}",
            top in 1usize..5,
        ) {
            let mut seen = BTreeSet::new();
            let names: Vec<_> =
                names.into_iter().filter(|name| seen.insert(name.to_lowercase())).collect();
            let rows = catalogue(&names);
            let filter = TableFilter::parse(&text).unwrap();
            let (found, next, examined) = page(&rows, range(ACCOUNT, &from, Some(&filter)), &filter, top);
            let (all, all_next, all_examined) = page(&rows, range(ACCOUNT, &from, None), &filter, top);
            prop_assert_eq!((found, next), (all, all_next), "{}", text);
            prop_assert!(examined <= all_examined);
        }
    }
}
