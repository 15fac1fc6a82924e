//! Batches by token: each operation needs its own permission, and one without it undoes all.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::world::{TABLES, disguised_name, disguised_path, entity};
use super::{Holder, Session, table_name, text};
use crate::support::client::MINIMAL;
use crate::support::{Batch, BatchReply, Client, Response};
use crate::table::sas_model::generate::{PARTITIONS, ROWS};
use crate::table::sas_model::grant::{Action, Key, Operation, Refusal};

const MULTIPART: &str = "multipart/mixed; boundary=batch_b";
/// Operations on two tables or two partitions.
const TWO_GROUPS: Refusal = (400, "CommandsInBatchActOnDifferentPartitions");

struct Change {
    table: String,
    action: Action,
    key: Key,
    entity: Value,
}

impl Session {
    pub(super) fn batch(&mut self, holder: &Holder<'_>, key: &Key) {
        let named = holder.token.get("tn").unwrap_or(TABLES[0]);
        let table = TABLES.iter().find(|name| name.eq_ignore_ascii_case(named));
        let table = (*table.unwrap_or(&TABLES[1])).to_owned();
        if self.random.one_in(4) {
            self.batched_get(holder, &table, key);
        } else {
            self.changeset(holder, &table, &key.0);
        }
    }

    fn batched_get(&mut self, holder: &Holder<'_>, table: &str, key: &Key) {
        let get =
            Operation::Entity { table: table.to_owned(), action: Action::Get, key: key.clone() };
        let refused = holder.refusals(&get);
        let client = holder.client(self.random.one_in(4));
        let url = format!("{}{}", client.base(), disguised_path(&mut self.random, table, key));
        let body = format!(
            "--batch_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             GET {url} HTTP/1.1\r\nAccept: {MINIMAL}\r\n\r\n\r\n--batch_b--\r\n"
        );
        let answer = self.send(holder, &client, body);
        if self.note_refusal(&answer, &refused, false) {
            return;
        }
        match self.world.row(table, key) {
            Some(row) => assert!(answer.expect(200).text().contains(&row.secret)),
            None => {
                answer.expect_error(404, "ResourceNotFound");
            }
        }
        self.check_unchanged();
    }

    fn changeset(&mut self, holder: &Holder<'_>, table: &str, partition: &str) {
        let count = 1 + self.random.below(4);
        let first = self.random.below(ROWS.len());
        let mut changes: Vec<_> = (0..count)
            .map(|index| {
                let row = ROWS[(first + index) % ROWS.len()].to_owned();
                let all = [
                    Action::Insert,
                    Action::Update,
                    Action::Upsert,
                    Action::Upsert,
                    Action::Delete,
                ];
                let action = *self.random.pick(&all);
                let key = (partition.to_owned(), row);
                Change { table: table.to_owned(), action, key, entity: entity(&mut self.random) }
            })
            .collect();
        let is_mixed = count > 1 && self.random.one_in(4);
        if is_mixed {
            self.smuggle(&mut changes);
        }
        let mut refused: BTreeSet<Refusal> = BTreeSet::new();
        for Change { table, action, key, .. } in &changes {
            let operation =
                Operation::Entity { table: table.clone(), action: *action, key: key.clone() };
            refused.extend(holder.refusals(&operation));
        }
        if is_mixed {
            refused.insert(TWO_GROUPS);
        }
        let secondary = self.random.one_in(10);
        let client = holder.client(secondary);
        let body = self.body(&client, &changes);
        let answer = self.send(holder, &client, body);
        if self.note_refusal(&answer, &refused, secondary) {
            return;
        }
        self.check_changes(&answer, &changes);
    }

    /// Lets the last change be of another table or another partition.
    fn smuggle(&mut self, changes: &mut [Change]) {
        let last = changes.last_mut().expect("a change");
        if self.random.one_in(2) {
            last.table = if last.table == TABLES[0] { TABLES[1] } else { TABLES[0] }.to_owned();
        } else {
            let others: Vec<_> = PARTITIONS.iter().filter(|other| **other != last.key.0).collect();
            last.key.0 = (**self.random.pick(&others)).to_owned();
        }
    }

    fn body(&mut self, client: &Client, changes: &[Change]) -> String {
        let mut batch = Batch::new();
        for Change { table, action, key, entity } in changes {
            let random = &mut self.random;
            let mut path = disguised_path(random, table, key);
            let mut body = Some(entity.clone());
            let (mut verb, mut headers) = match action {
                Action::Insert => {
                    path = format!("/{}", disguised_name(random, table));
                    let mut whole = entity.clone();
                    (whole["PartitionKey"], whole["RowKey"]) = (json!(key.0), json!(key.1));
                    body = Some(whole);
                    ("POST", "Prefer: return-no-content\r\n".to_owned())
                }
                Action::Delete => {
                    body = None;
                    ("DELETE", "If-Match: *\r\n".to_owned())
                }
                Action::Update => {
                    (*random.pick(&["PUT", "PATCH", "MERGE"]), "If-Match: *\r\n".to_owned())
                }
                _ => (*random.pick(&["PUT", "PATCH", "MERGE"]), String::new()),
            };
            if verb != "POST" && random.one_in(4) {
                headers.push_str(&format!("X-HTTP-Method: {verb}\r\n"));
                verb = "POST";
            }
            if random.one_in(5) {
                // Credentials inside count for nothing, good ones or bad ones.
                headers.push_str(&format!(
                    "Authorization: SharedKey acct:{}\r\n",
                    "A".repeat(43) + "="
                ));
                path.push_str("?sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2099-01-01&sig=AAAA");
            }
            batch = batch.operation(client, verb, &path, &headers, body.as_ref());
        }
        batch.body()
    }

    /// Sends, and takes the refusal out of a batch that failed.
    fn send(&mut self, holder: &Holder<'_>, client: &Client, body: String) -> Response {
        let request = holder.request(&mut self.random, client, "POST", "/$batch");
        let answer = request.body(MULTIPART, body).send();
        self.scan(holder, &answer);
        let mut reply = BatchReply::read(answer);
        match reply.parts.len() {
            1 => reply.parts.remove(0),
            _ => reply.response,
        }
    }

    /// All changes are made in order, or none.
    fn check_changes(&mut self, answer: &Response, changes: &[Change]) {
        let before = self.world.secrets();
        let mut after = before.clone();
        for Change { table, action, key, entity } in changes {
            let stored = (table_name(table), key.clone());
            let exists = before.contains_key(&stored);
            match action {
                Action::Insert if exists => {
                    assert_eq!(answer.code().as_deref(), Some("EntityAlreadyExists"), "{answer:?}");
                    return self.check_unchanged();
                }
                Action::Update | Action::Delete if !exists => {
                    assert_eq!(answer.code().as_deref(), Some("ResourceNotFound"), "{answer:?}");
                    return self.check_unchanged();
                }
                Action::Delete => drop(after.remove(&stored)),
                _ => drop(after.insert(stored, text(entity, "Secret"))),
            }
        }
        let status = if changes.len() == 1 { 204 } else { 202 };
        assert_eq!(answer.status, status, "{answer:?}");
        self.check_changed(&after);
    }
}
