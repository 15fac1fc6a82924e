//! The same sequences with indexes that come and go: every query must answer the same bytes in the same order, whichever
//! way its rows are found.

use serde_json::json;

use super::filter::Filter;
use super::{Session, TABLES, unique, views};
use crate::support::{Client, Random};
use crate::table::indexes::{INDEXES, verify, wait_for};

pub(super) const NAMES: [&str; 6] = ["ByA", "ByB", "ByAB", "ByCA", "Local", TURNED];
/// Always of two parts in another order than the entities have them, without copies.
const TURNED: &str = "Turned";
/// Parts in other orders than the entities have their properties, too.
const KEYS: [&str; 10] = [
    "A",
    "B",
    "A?",
    "A,B",
    "B?,A",
    "C,A!",
    "PartitionKey,A",
    "B?,PartitionKey",
    "RowKey,C",
    "Timestamp",
];
const INCLUDES: [&str; 3] = ["", "*", "B,C"];
const FILTERS: [&str; 4] = ["", "", "A ge 0", "B ne 'a' and C lt 5"];
/// Indexes of a table that may have copies of everything.
const COPIES_MAX: usize = 3;
const LEVELS: [&str; 3] = ["nometadata", "minimalmetadata", "fullmetadata"];
const SELECTS: [&str; 7] =
    ["", "PartitionKey,RowKey", "A", "B,A", "A,C", "C,Timestamp", "RowKey,D"];

/// Filters of one property, which many entities match.
const HALVES: [&str; 4] = ["A ge 0", "B ge 0", "A lt 5", "B ge ''"];

impl Session {
    /// Declares, replaces or drops an index, and does not wait for it.
    pub(super) fn change_indexes(&mut self, table: &str) {
        let name = *self.random.pick(&NAMES);
        if self.random.one_in(3) {
            let answer = self.client.remove(INDEXES, (table, name), "*");
            match self.indexes.remove(&(table.to_owned(), name)) {
                Some(_) => drop(answer.expect(204)),
                None => drop(answer.expect(404)),
            }
            return;
        }
        let (keys, include) = (*self.random.pick(&KEYS), *self.random.pick(&INCLUDES));
        let filter = *self.random.pick(&FILTERS);
        let (keys, include, filter) =
            if name == TURNED { ("B?,A", "", "") } else { (keys, include, filter) };
        let definition = json!({"Keys": keys, "Include": include, "Filter": filter});
        let answer = self.client.put(INDEXES, (table, name), &definition).send();
        if self.store.rows(table).is_none() {
            answer.expect_error(404, "TableNotFound");
        } else if include == "*" && self.copies_beside(table, name) == COPIES_MAX {
            answer.expect_error(400, "InvalidInput");
        } else {
            answer.expect(204);
            self.indexes.insert((table.to_owned(), name), include == "*");
        }
    }

    /// Other indexes of the table that have copies of everything.
    fn copies_beside(&self, table: &str, name: &str) -> usize {
        let others = self.indexes.iter().filter(|((of, other), _)| of == table && *other != name);
        others.filter(|(_, has_copies)| **has_copies).count()
    }

    /// Asks the query in every way there is, and holds the answers against each other.
    pub(super) fn compare_paths(&mut self, table: &str, filter: &Filter) {
        let filter = filter.text();
        let (level, select) = (*self.random.pick(&LEVELS), *self.random.pick(&SELECTS));
        self.compare_paths_of(table, &filter, level, select);
        // Of two properties an index may have both, and not their order.
        let filter = *self.random.pick(&HALVES);
        self.compare_paths_of(table, filter, "nometadata", "B,A");
    }

    fn compare_paths_of(&mut self, table: &str, filter: &str, level: &str, select: &str) {
        let top = self.random.pick(&["1", "7", "1000"]).to_string();
        let mut options = vec![("$filter", filter), ("$top", &top)];
        if !select.is_empty() {
            options.push(("$select", select));
        }
        let mut ask = |hint: Option<&str>| {
            let random = hint.is_none().then_some(&mut self.random);
            rows_as_text(&self.client, table, &options, level, hint, random)
        };
        let expected = ask(Some("none"));
        let what = |hint: &str| format!("{filter} with index {hint}, $select={select}, {level}");
        assert_eq!(ask(None), expected, "{}", what("any"));
        for name in NAMES {
            assert_eq!(ask(Some(name)), expected, "{}", what(name));
        }
    }

    /// After everything: each index holds what the entities say.
    pub(super) fn verify_indexes(&self) {
        for table in TABLES {
            for name in NAMES.into_iter().chain([unique::NAME, views::NAME]) {
                if self.client.entity(INDEXES, (table, name)).status == 200 {
                    wait_for(&self.client, table, name, "Readable");
                    let verdict = verify(&self.client, table, name);
                    assert!(verdict.starts_with("sound"), "{table} {name}: {verdict}");
                }
            }
        }
    }
}

/// The entities of all pages, as they stand in the bodies. With a source of chance the way is chosen anew for each page.
fn rows_as_text(
    client: &Client,
    table: &str,
    options: &[(&str, &str)],
    level: &str,
    hint: Option<&str>,
    mut random: Option<&mut Random>,
) -> String {
    let pages = client.pages(table, options, |request| {
        let request = request.accept(&format!("application/json;odata={level}"));
        let chosen = random.as_deref_mut().filter(|_| hint.is_none());
        let chosen = chosen.and_then(|random| random.one_in(2).then(|| *random.pick(&NAMES)));
        let hint = chosen.or(hint);
        let request = match hint {
            Some(hint) => request.header("x-tavola-index", hint),
            None => request,
        };
        request.send()
    });
    let lists = pages.iter().map(|page| {
        let list = page.text();
        let start = list.find("\"value\":[").expect("a list") + "\"value\":[".len();
        list[start..].strip_suffix("]}").expect("its end")
    });
    lists.filter(|list| !list.is_empty()).collect::<Vec<_>>().join(",")
}
