//! Queries by token: only rows in its range come back, whatever is asked for.

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::world::{Row, disguised_name};
use super::{Holder, Session, table_name, text};
use crate::support::Response;
use crate::support::client::{encode, values};
use crate::table::sas_model::generate::{PARTITIONS, ROWS};
use crate::table::sas_model::grant::{Key, Operation, compare, shows};

/// More pages than any query here has.
const PAGES_MAX: usize = 100;

type Predicate = Box<dyn Fn(&Key, &Row) -> bool>;

impl Session {
    pub(super) fn query(&mut self, holder: &Holder<'_>, operation: &Operation, table: &str) {
        let refused = holder.refusals(operation);
        let (filter, matches) = self.filter();
        let from = self.random.one_in(3).then(|| self.forged());
        let mut options = Vec::new();
        if !filter.is_empty() {
            options.push(("$filter", filter));
        }
        if self.random.one_in(2) {
            let lists = [
                "",
                "*",
                "Secret",
                "PartitionKey,RowKey",
                "Secret,Missing",
                "RowKey,PartitionKey,Number",
            ];
            options.push(("$select", (*self.random.pick(&lists)).to_owned()));
        }
        if self.random.one_in(2) {
            options.push(("$top", (1 + self.random.below(4)).to_string()));
        }
        let secondary = self.random.one_in(6);
        let client = holder.client(secondary);
        let rows: Vec<_> =
            self.world.rows.iter().filter(|((name, _), _)| *name == table_name(table)).collect();
        let shown: Vec<_> = rows
            .into_iter()
            .filter(|((_, key), _)| shows(holder.token, key))
            .map(|((_, key), row)| (key.clone(), row.clone()))
            .collect();
        let mut expected: Vec<_> = shown
            .iter()
            .filter(|(key, row)| matches(key, row))
            .filter(|(key, _)| from.as_ref().is_none_or(|from| order(key, &from.0).is_ge()))
            .collect();
        expected.sort_by(|(one, _), (other, _)| order(one, other));
        let expected: Vec<_> = expected.into_iter().map(|(_, row)| row.secret.clone()).collect();

        let mut found = Vec::new();
        let mut next = from.map(|(_, tokens)| tokens);
        for page in 0.. {
            assert!(page < PAGES_MAX, "the pages have no end");
            let mut path = format!("/{}()", disguised_name(&mut self.random, table));
            for (name, value) in options.iter().chain(next.iter().flatten()) {
                path.push(if path.contains('?') { '&' } else { '?' });
                path.push_str(&format!("{name}={}", encode(value)));
            }
            let request = holder.request(&mut self.random, &client, "GET", &path);
            let answer = request.header("x-tavola-explain", "true").send();
            self.scan(holder, &answer);
            if page == 0 && self.note_refusal(&answer, &refused, false) {
                return;
            }
            let answer = answer.expect(200);
            let examined = answer.header("x-tavola-rows-examined").expect("an explanation");
            assert!(
                examined.parse::<usize>().unwrap() <= shown.len(),
                "rows out of range are counted"
            );
            found.extend(values(&answer).iter().map(|entity| secret(entity, &shown)));
            next = continuation(&answer);
            let Some(tokens) = &next else { break };
            let key = (decode(&tokens[0].1), decode(&tokens[1].1));
            assert!(shows(holder.token, &key), "the token of the next page tells {key:?}");
        }
        assert_eq!(found, expected, "{options:?}");
        self.check_unchanged();
    }

    /// A filter as text and as what it means; most ask for more than a token shows.
    fn filter(&mut self) -> (String, Predicate) {
        let partition = (*self.random.pick(&PARTITIONS)).to_owned();
        let row = (*self.random.pick(&ROWS)).to_owned();
        let (p, r) = (partition.replace('\'', "''"), row.clone());
        match self.random.below(9) {
            0 => (format!("PartitionKey eq '{p}'"), Box::new(move |key, _| key.0 == partition)),
            1 => (
                format!("PartitionKey eq '{p}' and RowKey eq '{r}'"),
                Box::new(move |key, _| key.0 == partition && key.1 == row),
            ),
            2 => (
                format!("PartitionKey ge '{p}'"),
                Box::new(move |key, _| compare(&key.0, &partition).is_ge()),
            ),
            3 => (
                format!("RowKey lt '{r}' or PartitionKey gt '{p}'"),
                Box::new(move |key, _| {
                    compare(&key.1, &row).is_lt() || compare(&key.0, &partition).is_gt()
                }),
            ),
            4 => {
                (format!("not (PartitionKey eq '{p}')"), Box::new(move |key, _| key.0 != partition))
            }
            5 => ("Number ge 3".to_owned(), Box::new(|_, row| row.number >= 3)),
            6 => (
                format!(
                    "(PartitionKey eq 'a' and RowKey ge '{r}') or (PartitionKey eq 'b' and RowKey eq '{r}')"
                ),
                Box::new(move |key, _| {
                    key.0 == "a" && compare(&key.1, &row).is_ge() || key.0 == "b" && key.1 == row
                }),
            ),
            7 => ("Secret ge '' or PartitionKey ge ''".to_owned(), Box::new(|_, _| true)),
            _ => (String::new(), Box::new(|_, _| true)),
        }
    }

    /// Continuation tokens made by hand, and the key where they begin.
    fn forged(&mut self) -> (Key, [(&'static str, String); 2]) {
        let partition = (*self.random.pick(&PARTITIONS)).to_owned();
        let row = (*self.random.pick(&ROWS)).to_owned();
        let tokens = [("NextPartitionKey", token(&partition)), ("NextRowKey", token(&row))];
        ((partition, row), tokens)
    }
}

fn order(one: &Key, other: &Key) -> Ordering {
    compare(&one.0, &other.0).then(compare(&one.1, &other.1))
}

/// The secret of an entity that may have been projected; none if the row is not among these.
fn secret(entity: &Value, shown: &[(Key, Row)]) -> String {
    if entity["Secret"].is_string() {
        return text(entity, "Secret");
    }
    let key = (text(entity, "PartitionKey"), text(entity, "RowKey"));
    let row = shown.iter().find(|(other, _)| *other == key);
    row.map_or_else(|| format!("{key:?} is out of range"), |(_, row)| row.secret.clone())
}

fn continuation(answer: &Response) -> Option<[(&'static str, String); 2]> {
    let partition = answer.header("x-ms-continuation-NextPartitionKey")?.to_owned();
    let row = answer.header("x-ms-continuation-NextRowKey").expect("a row key").to_owned();
    Some([("NextPartitionKey", partition), ("NextRowKey", row)])
}

/// Section 7: `1!<length>!<base64>`.
fn token(key: &str) -> String {
    let text = STANDARD.encode(key).replace('=', "-").replace('/', "_").replace('+', "*");
    format!("1!{}!{text}", text.len())
}

fn decode(token: &str) -> String {
    let text = token.rsplit('!').next().expect("a token");
    let text = text.replace('-', "=").replace('_', "/").replace('*', "+");
    String::from_utf8(STANDARD.decode(text).expect("base64")).expect("a key")
}
