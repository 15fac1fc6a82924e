//! A connection that pages through the archive, and goes on after the crash where it was.
//!
//! Rows are added to the archive meanwhile and never removed: a walk shows every row that was there when it began
//! exactly once, in order, and none that was never written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::round::Round;
use crate::support::client::values;
use crate::support::{Client, Random, Response, Server};

/// What the partition keys of the archive begin with.
pub(super) const ARCHIVE: &str = "archive";
const FILTER: &str = "PartitionKey ge 'archive' and PartitionKey lt 'archivf'";
/// A walk has about as many pages, or twice as many.
const PAGES: usize = 12;
const PAGE_ROWS_MAX: usize = 1000;
/// Without a pause, reading would take most of the time that the round is for.
const PAUSE: Duration = Duration::from_millis(5);

/// PartitionKey and RowKey.
pub(super) type RowName = (String, String);

pub(super) struct Pager {
    table: &'static str,
    random: Random,
    /// The walk under way.
    walk: Option<Walk>,
    /// A walk that waits after its first page until the server has been killed and started again.
    kept: Option<Walk>,
}

/// A walk from page to page.
struct Walk {
    page_rows: usize,
    /// The rows that it must show.
    expected: Arc<BTreeSet<RowName>>,
    found: Vec<RowName>,
    next: Option<(String, String)>,
}

impl Pager {
    pub(super) fn new(table: &'static str, seed: u64) -> Self {
        Self { table, random: Random::new(seed), walk: None, kept: None }
    }

    pub(super) fn keep_a_token(&mut self, client: &Client, archived: &Arc<BTreeSet<RowName>>) {
        let mut walk = self.begin(archived);
        walk.turn_page(client, self.table).expect("the server runs");
        self.kept = Some(walk);
    }

    pub(super) fn run(
        &mut self,
        server: &Arc<Server>,
        round: &Round,
        archived: &Arc<BTreeSet<RowName>>,
    ) {
        let client = Client::new(server).without_resending();
        round.work(|| {
            std::thread::sleep(PAUSE);
            let mut walk = self.walk.take().unwrap_or_else(|| self.begin(archived));
            let turned = walk.turn_page(&client, self.table);
            if turned.is_ok() && walk.next.is_none() {
                walk.check();
            } else if walk.next.is_some() {
                self.walk = Some(walk);
            }
            turned
        });
    }

    /// Goes to the end of the walks that the crash interrupted; answers how many there were.
    pub(super) fn finish(&mut self, client: &Client, archived: &BTreeSet<RowName>) -> usize {
        let walks = [self.kept.take(), self.walk.take()];
        let mut interrupted = 0;
        for mut walk in walks.into_iter().flatten().filter(|walk| walk.next.is_some()) {
            while walk.next.is_some() {
                walk.turn_page(client, self.table).expect("the server runs");
            }
            walk.check();
            let unknown = walk.found.iter().find(|row| !archived.contains(row));
            assert_eq!(unknown, None, "a row that nobody wrote");
            interrupted += 1;
        }
        interrupted
    }

    fn begin(&mut self, archived: &Arc<BTreeSet<RowName>>) -> Walk {
        let page_rows = 1 + self.random.below(archived.len() / PAGES + 1);
        Walk {
            page_rows: page_rows.min(PAGE_ROWS_MAX),
            expected: Arc::clone(archived),
            found: Vec::new(),
            next: None,
        }
    }
}

impl Walk {
    fn turn_page(&mut self, client: &Client, table: &str) -> std::io::Result<()> {
        let top = self.page_rows.to_string();
        let mut options =
            vec![("$filter", FILTER), ("$top", &top), ("$select", "PartitionKey,RowKey")];
        if let Some((partition, row)) = &self.next {
            options.push(("NextPartitionKey", partition));
            options.push(("NextRowKey", row));
        }
        let page = client.query(table, &options).try_send()?.expect(200);
        self.found.extend(values(&page).iter().map(|entity| {
            let text = |name: &str| entity[name].as_str().expect("a key").to_owned();
            (text("PartitionKey"), text("RowKey"))
        }));
        self.next = token(&page);
        Ok(())
    }

    fn check(&self) {
        assert!(self.found.is_sorted_by(|row, next| row < next), "a row came twice or too late");
        let found: BTreeSet<_> = self.found.iter().collect();
        let missing = self.expected.iter().find(|row| !found.contains(row));
        assert_eq!(missing, None, "the pages together miss a row");
    }
}

fn token(page: &Response) -> Option<(String, String)> {
    let token = |name| page.header(name).map(str::to_owned);
    token("x-ms-continuation-NextPartitionKey").zip(token("x-ms-continuation-NextRowKey"))
}
