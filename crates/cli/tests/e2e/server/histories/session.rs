//! One client of an episode: sends, hears, and records both.

use serde_json::{Value, json};

use super::kills::Kills;
use super::recorder::{Heard, IfMatch, Recorder, SeenRow, Sent, SentChange, SentKind};
use super::rows::{Refusal, Row};
use crate::support::client::{entity_path, values};
use crate::support::{Batch, Client, Response};

const PARTITION: &str = "p";

/// How rows are read.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    /// The whole partition by one query.
    Partition,
    /// Rows named in a filter, each of which becomes a look-up of its own.
    Named,
}

pub(super) struct Session<'a> {
    pub number: usize,
    client: Client,
    table: &'a str,
    rows: usize,
    kills: &'a Kills,
    recorder: &'a Recorder,
    /// The ETags that this client knows, which may be outdated.
    etags: Vec<Option<String>>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        number: usize,
        table: &'a str,
        rows: usize,
        kills: &'a Kills,
        recorder: &'a Recorder,
    ) -> Self {
        let client = Client::new(&kills.server).without_resending();
        Self { number, client, table, rows, kills, recorder, etags: vec![None; rows] }
    }

    /// The ETag of a row that this client has seen last.
    pub(super) fn etag(&self, row: usize) -> Option<String> {
        self.etags[row].clone()
    }

    pub(super) fn get(&mut self, row: usize) -> Heard {
        let path = entity_path(self.table, PARTITION, &row_key(row));
        self.exchange(Sent::Read(vec![row]), |client, _| {
            let answer = client.get(&path).try_send()?;
            if answer.status == 404 {
                answer.expect_error(404, "ResourceNotFound");
                return Ok(Heard::Found(vec![None]));
            }
            let answer = answer.expect(200);
            let entity = answer.json();
            assert_eq!(entity["odata.etag"].as_str(), Some(answer.etag().as_str()));
            Ok(Heard::Found(vec![Some(seen(&entity))]))
        })
    }

    /// Reads rows by one query, which shows one state.
    pub(super) fn query(&mut self, rows: &[usize], reading: Reading) -> Heard {
        let names = rows.iter().map(|row| format!("RowKey eq '{}'", row_key(*row)));
        let filter = match reading {
            Reading::Partition => format!("PartitionKey eq '{PARTITION}'"),
            Reading::Named => {
                let names: Vec<_> = names.collect();
                format!("PartitionKey eq '{PARTITION}' and ({})", names.join(" or "))
            }
        };
        let table = self.table;
        self.exchange(Sent::Read(rows.to_owned()), |client, _| {
            let page = client.query(table, &[("$filter", &filter)]).try_send()?.expect(200);
            let entities = values(&page);
            let of = |row: &usize| {
                let key = row_key(*row);
                entities.iter().find(|entity| entity["RowKey"] == key.as_str()).map(seen)
            };
            Ok(Heard::Found(rows.iter().map(of).collect()))
        })
    }

    pub(super) fn query_all(&mut self) -> Heard {
        let rows: Vec<_> = (0..self.rows).collect();
        self.query(&rows, Reading::Partition)
    }

    /// Makes one change by a request of its own.
    pub(super) fn write(&mut self, change: &SentChange) -> Heard {
        let table = self.table;
        let sent = Sent::Write(self.recorder.number(), vec![change.clone()]);
        self.exchange(sent, |client, number| {
            let keys = row_key(change.row);
            let (keys, entity) = ((PARTITION, keys.as_str()), entity(change, number));
            let request = match change.kind {
                SentKind::Insert => client.post(format!("/{table}"), &entity),
                SentKind::Replace(_) => client.put(table, keys, &entity),
                SentKind::Merge(_) => client.merge(table, keys, &entity),
                SentKind::Delete(_) => client.delete(entity_path(table, keys.0, keys.1)),
            };
            let request = match if_match(&change.kind) {
                Some(etag) => request.if_match(etag),
                None => request,
            };
            let answer = request.header("Prefer", "return-no-content").try_send()?;
            if answer.status == 204 {
                return Ok(Heard::Done(vec![answer.header("etag").map(str::to_owned)]));
            }
            Ok(Heard::Refused(0, refusal(&answer)))
        })
    }

    /// Makes all changes by a transaction.
    pub(super) fn transact(&mut self, changes: &[SentChange]) -> Heard {
        let table = self.table;
        let sent = Sent::Write(self.recorder.number(), changes.to_owned());
        self.exchange(sent, |client, number| {
            let batch = changes.iter().fold(Batch::new(), |batch, change| {
                let (key, entity) = (row_key(change.row), entity(change, number));
                let (keys, condition) = ((PARTITION, key.as_str()), if_match(&change.kind));
                match change.kind {
                    SentKind::Insert => batch.insert(client, table, &entity),
                    SentKind::Replace(_) => batch.put(client, table, keys, condition, &entity),
                    SentKind::Merge(_) => batch.merge(client, table, keys, condition, &entity),
                    SentKind::Delete(_) => {
                        batch.delete(client, table, keys, condition.expect("a condition"))
                    }
                }
            });
            let reply = batch.try_send(client)?;
            if let [part] = &reply.parts[..]
                && part.status >= 400
            {
                let message = part.message();
                let (index, _) = message.split_once(':').expect("an index");
                return Ok(Heard::Refused(index.parse().expect("an index"), refusal(part)));
            }
            let parts = reply.expect_done(changes.len());
            Ok(Heard::Done(
                parts.iter().map(|part| part.header("etag").map(str::to_owned)).collect(),
            ))
        })
    }

    fn exchange(
        &mut self,
        sent: Sent,
        send: impl FnOnce(&Client, u64) -> std::io::Result<Heard>,
    ) -> Heard {
        let number = match &sent {
            Sent::Read(_) => 0,
            Sent::Write(number, _) => *number,
        };
        let restarts = self.kills.restarts();
        let invoked = self.recorder.now();
        let heard = send(&self.client, number).unwrap_or_else(|error| {
            self.kills.wait_for_restart(restarts, &error);
            Heard::Nothing
        });
        self.learn(&sent, &heard);
        self.recorder.record(self.number, invoked, sent, heard.clone());
        self.kills.count_operation();
        heard
    }

    fn learn(&mut self, sent: &Sent, heard: &Heard) {
        match (sent, heard) {
            (Sent::Read(rows), Heard::Found(found)) => {
                for (row, seen) in rows.iter().zip(found) {
                    // The ETag of a row that is gone stays known: it must not be right for a new row.
                    if let Some(seen) = seen {
                        self.etags[*row] = Some(seen.etag.clone());
                    }
                }
            }
            (Sent::Write(_, changes), Heard::Done(etags)) => {
                for (change, etag) in changes.iter().zip(etags) {
                    if etag.is_some() {
                        self.etags[change.row].clone_from(etag);
                    }
                }
            }
            _ => {}
        }
    }
}

fn row_key(row: usize) -> String {
    format!("row{row}")
}

fn entity(change: &SentChange, number: u64) -> Value {
    let mut entity = json!({
        "PartitionKey": PARTITION,
        "RowKey": row_key(change.row),
        "Number": number,
        "Amount": change.amount,
    });
    if !matches!(change.kind, SentKind::Merge(_)) {
        entity["Base"] = json!(number);
    }
    entity
}

fn seen(entity: &Value) -> SeenRow {
    let number = |name: &str| entity[name].as_u64();
    let row = Row {
        number: number("Number").expect("a number"),
        base: number("Base").unwrap_or(0),
        amount: entity["Amount"].as_i64().expect("an amount"),
    };
    SeenRow { row, etag: entity["odata.etag"].as_str().expect("an ETag").to_owned() }
}

fn if_match(kind: &SentKind) -> Option<&str> {
    match kind {
        SentKind::Insert => None,
        SentKind::Replace(if_match) | SentKind::Merge(if_match) | SentKind::Delete(if_match) => {
            match if_match {
                IfMatch::None => None,
                IfMatch::Any => Some("*"),
                IfMatch::Etag(etag) => Some(etag),
            }
        }
    }
}

fn refusal(answer: &Response) -> Refusal {
    match (answer.status, answer.code().as_deref()) {
        (404, Some("ResourceNotFound")) => Refusal::Missing,
        (409, Some("EntityAlreadyExists")) => Refusal::AlreadyThere,
        (412, Some("UpdateConditionNotSatisfied")) => Refusal::OtherVersion,
        _ => panic!("not an answer of this workload: {answer:?}"),
    }
}
