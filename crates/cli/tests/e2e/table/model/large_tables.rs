//! Tables of some thousands of entities, in which ranges are too wide, many entities share a value, look-ups are compared
//! with a scan, and pages end amid all of it. Every query is asked in every way, by the owner and by holders of a key range.

use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{KeyRangeLimit, Permissions, TableSasSpec};
use tavola_wire::table::continuation::EntityContinuation;

use super::filter::Filter;
use super::indexes::NAMES;
use super::store::{Keys, Properties, Property, key};
use super::{PARTITIONS, Session};
use crate::support::client::{Request, next_tokens, values};
use crate::support::{Batch, Client, KEY, Launch, Random, minutes_from_now};

const TABLE: &str = "alpha";
const ENTITIES: usize = 3000;
const QUERIES: usize = 40;
const CHANGES_BETWEEN: usize = 10;
/// Pages of all sizes, and not so many that one query takes thousands of requests.
const TOPS: [&str; 4] = ["97", "400", "1000", "1000"];

#[test]
fn random_queries_of_large_tables() {
    let first = Random::seed_or(5);
    let launch = Launch::new().arg("--inMemoryPersistence");
    Session::new(launch, first).with_indexes().query_large_table();
}

impl Session {
    fn query_large_table(mut self) {
        self.create_table(TABLE);
        self.fill();
        for _ in 0..QUERIES {
            self.change_indexes(TABLE);
            for _ in 0..CHANGES_BETWEEN {
                self.change_of_large_table();
            }
            let filter = Filter::random(&mut self.random, 2);
            self.compare_with_model(&filter, None);
            let range = self.random_range();
            self.compare_with_model(&filter, Some(&range));
        }
        self.verify_indexes();
    }

    fn fill(&mut self) {
        for batch in 0..ENTITIES / 100 {
            let partition = PARTITIONS[batch % PARTITIONS.len()];
            let rows: Vec<_> = (batch * 100..(batch + 1) * 100).map(row_key).collect();
            let all: Vec<_> = rows.iter().map(|_| random_properties(&mut self.random)).collect();
            let request = rows.iter().zip(&all).fold(Batch::new(), |batch, (row, properties)| {
                batch.insert(&self.client, TABLE, &properties.to_entity(partition, row))
            });
            let parts = request.send(&self.client).expect_done(rows.len()).to_vec();
            let stored = self.store.rows_mut(TABLE).expect("the table");
            for ((row, properties), part) in rows.iter().zip(all).zip(parts) {
                let change = super::Change::Insert(properties);
                change.apply(stored, partition, row, part.header("etag"));
            }
        }
    }

    fn change_of_large_table(&mut self) {
        let row = self.random.below(ENTITIES);
        let partition = PARTITIONS[row / 100 % PARTITIONS.len()];
        self.change_of(TABLE, partition, &row_key(row));
    }

    /// From the key of one entity to that of another.
    fn random_range(&mut self) -> KeyRangeLimit {
        let rows = self.store.rows(TABLE).expect("the table");
        let mut pick = || rows.keys().nth(self.random.below(rows.len())).expect("a row");
        let (one, other) = (pick(), pick());
        let (start, end): (&Keys, &Keys) = (one.min(other), one.max(other));
        let part = |key: &'_ super::store::Key| Some(key.as_str().to_owned());
        let bounds = [part(&start.0), part(&start.1), part(&end.0), part(&end.1)];
        let [from, from_row, to, to_row] = bounds.each_ref().map(Option::as_deref);
        KeyRangeLimit::new(from, from_row, to, to_row).expect("a range")
    }

    /// Asks without an index, with any, and with each; every answer is that of the model.
    fn compare_with_model(&mut self, filter: &Filter, range: Option<&KeyRangeLimit>) {
        let rows = self.store.rows(TABLE).expect("the table");
        let is_granted = |keys: &Keys| {
            range.is_none_or(|range| range.contains(keys.0.as_str(), keys.1.as_str()))
        };
        let matching = rows.iter().filter(|(keys, row)| {
            is_granted(keys) && filter.matches(keys.0.as_str(), keys.1.as_str(), row)
        });
        let expected: Vec<(Keys, &str)> =
            matching.map(|(keys, row)| (keys.clone(), row.etag.as_str())).collect();
        let reader = range.map(|range| reader(&self.client, range));
        let client = reader.as_ref().unwrap_or(&self.client);
        let (text, top) = (filter.text(), *self.random.pick(&TOPS));
        for hint in [None, Some("none")].into_iter().chain(NAMES.map(Some)) {
            let found = found(client, &text, top, hint, range);
            let found: Vec<_> = found.iter().map(|(keys, etag)| (keys.clone(), &**etag)).collect();
            assert_eq!(found, expected, "{text} with index {hint:?}, $top={top}, {range:?}");
        }
    }
}

/// Half of the entities share a value.
fn random_properties(random: &mut Random) -> Properties {
    let mut properties = Properties::random(random);
    if random.one_in(2) {
        properties.0.insert("A".to_owned(), Property::Int32(1));
    }
    properties
}

fn row_key(number: usize) -> String {
    format!("{number:04}")
}

fn reader(client: &Client, range: &KeyRangeLimit) -> Client {
    let read = Permissions::parse_table("r").expect("letters");
    let spec = TableSasSpec {
        range: range.clone(),
        ..TableSasSpec::new(TABLE, read, minutes_from_now(60))
    };
    client.with_sas(spec.sign(&client.account, &AccountKey::from_base64(KEY).expect("a key")))
}

/// The entities of all pages by key and ETag. No token names a key outside the range.
fn found(
    client: &Client,
    filter: &str,
    top: &str,
    hint: Option<&str>,
    range: Option<&KeyRangeLimit>,
) -> Vec<(Keys, String)> {
    let options = [("$filter", filter), ("$top", top)];
    let pages = client.pages(TABLE, &options, |request: Request<'_>| match hint {
        Some(hint) => request.header("x-tavola-index", hint).send(),
        None => request.send(),
    });
    for (partition, row) in pages.iter().filter_map(next_tokens) {
        let token = EntityContinuation::from_query(Some(&partition), Some(&row));
        let token = token.expect("a token").expect("it is one");
        let row = token.row_key.as_deref().unwrap_or_default();
        assert!(range.is_none_or(|range| range.contains(&token.partition_key, row)), "{filter}");
    }
    let text =
        |entity: &serde_json::Value, name: &str| entity[name].as_str().expect("a text").to_owned();
    let entities = pages.iter().flat_map(values);
    let read = entities.map(|entity| {
        let keys = key(&text(&entity, "PartitionKey"), &text(&entity, "RowKey"));
        (keys, text(&entity, "odata.etag"))
    });
    read.collect()
}
