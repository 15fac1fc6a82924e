//! The operations of the protocol that loads are made of. Each checks that it got what it asked for: a fast wrong
//! answer is no answer.

use std::io::Write as _;
use std::time::Duration;

use memchr::memmem;
use tokio::time::sleep;

use crate::entity::Place;
use crate::request::{Client, Failure, JSON, NO_METADATA};

const QUIET: &str = "Prefer: return-no-content\r\n";
const ANY_ETAG: &str = "If-Match: *\r\n";
const ROW_KEY: &[u8] = b"\"RowKey\":";
/// Between two looks at an index.
const POLL: Duration = Duration::from_millis(20);
/// No entity of a load is smaller; an answer below this per entity lacks properties.
const ENTITY_BYTES_MIN: usize = 400;

/// What a table scan came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub entities: u64,
    pub pages: u64,
}

/// One change inside a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Insert,
    Upsert,
    Delete,
}

impl Client {
    /// Makes a table; gives whether it was new.
    pub async fn create_table(&mut self, table: &str) -> Result<bool, Failure> {
        self.start("Tables");
        write!(self.body, "{{\"TableName\":\"{table}\"}}").expect("a vector takes every write");
        match self.send("POST", NO_METADATA, JSON, QUIET).await? {
            201 | 204 => Ok(true),
            409 => Ok(false),
            status => Err(self.refused(status)),
        }
    }

    pub async fn drop_table(&mut self, table: &str) -> Result<(), Failure> {
        self.start(&format!("Tables('{table}')"));
        self.expect(204, "DELETE", NO_METADATA, "", "").await
    }

    pub async fn insert(
        &mut self,
        table: &str,
        place: Place,
        revision: u64,
    ) -> Result<(), Failure> {
        self.start(table);
        self.keys.push_entity(&mut self.body, place, revision);
        self.expect(204, "POST", NO_METADATA, JSON, QUIET).await
    }

    pub async fn upsert(
        &mut self,
        table: &str,
        place: Place,
        revision: u64,
    ) -> Result<(), Failure> {
        self.start_entity(table, place);
        self.keys.push_entity(&mut self.body, place, revision);
        self.expect(204, "PUT", NO_METADATA, JSON, "").await
    }

    /// Replaces the entity if it still has this ETag.
    pub async fn replace(
        &mut self,
        table: &str,
        place: Place,
        revision: u64,
        etag: &str,
    ) -> Result<(), Failure> {
        self.start_entity(table, place);
        self.keys.push_entity(&mut self.body, place, revision);
        self.expect(204, "PUT", NO_METADATA, JSON, &format!("If-Match: {etag}\r\n")).await
    }

    /// Sets two of the properties of an entity that exists.
    pub async fn merge(&mut self, table: &str, place: Place, revision: u64) -> Result<(), Failure> {
        self.start_entity(table, place);
        let quantity = revision % (1 << 24);
        write!(self.body, "{{\"Quantity\":{quantity},\"Revision\":\"{revision}\"}}")
            .expect("a vector takes every write");
        self.expect(204, "PATCH", NO_METADATA, JSON, ANY_ETAG).await
    }

    pub async fn delete(&mut self, table: &str, place: Place) -> Result<(), Failure> {
        self.start_entity(table, place);
        self.expect(204, "DELETE", NO_METADATA, "", ANY_ETAG).await
    }

    /// Reads one entity, which is then the connection's body.
    pub async fn get(&mut self, table: &str, place: Place) -> Result<(), Failure> {
        self.start_entity(table, place);
        self.expect(200, "GET", NO_METADATA, "", "").await?;
        self.check_holds(place)
    }

    /// Reads one entity with a query that names both of its keys.
    pub async fn point_query(&mut self, table: &str, place: Place) -> Result<(), Failure> {
        let (partition, row) = self.key_texts(place);
        self.start_query(table);
        self.option("$filter", &format!("PartitionKey eq '{partition}' and RowKey eq '{row}'"));
        self.expect(200, "GET", NO_METADATA, "", "").await?;
        self.check_count(1)?;
        self.check_holds(place)
    }

    /// Reads `rows` entities of a partition, from a row on.
    pub async fn range_query(
        &mut self,
        table: &str,
        from: Place,
        rows: u64,
    ) -> Result<(), Failure> {
        let found = self.range_count(table, from, rows).await?;
        if found == rows { self.check_count(rows) } else { Err(miscounted(found, rows)) }
    }

    /// Like [`Client::range_query`], where rows may be missing; gives how many there were.
    pub async fn range_count(
        &mut self,
        table: &str,
        from: Place,
        rows: u64,
    ) -> Result<u64, Failure> {
        let (partition, first) = self.key_texts(from);
        let (_, end) = self.key_texts(Place { row: from.row + rows, ..from });
        self.start_query(table);
        let filter =
            format!("PartitionKey eq '{partition}' and RowKey ge '{first}' and RowKey lt '{end}'");
        self.option("$filter", &filter);
        self.expect(200, "GET", NO_METADATA, "", "").await?;
        Ok(self.entities_in_body())
    }

    /// Reads the first page of a partition.
    pub async fn page(
        &mut self,
        table: &str,
        partition: u64,
        rows: u64,
        accept: &str,
    ) -> Result<(), Failure> {
        let (key, _) = self.key_texts(Place { partition, row: 0 });
        self.start_query(table);
        self.option("$filter", &format!("PartitionKey eq '{key}'"));
        self.expect(200, "GET", accept, "", "").await?;
        self.check_count(rows)
    }

    /// Reads the first page of a filter, which is to have this many entities.
    pub async fn filtered(
        &mut self,
        table: &str,
        filter: &str,
        select: &str,
        headers: &str,
        expected: u64,
    ) -> Result<u64, Failure> {
        self.start_query(table);
        self.option("$filter", filter);
        if !select.is_empty() {
            self.option("$select", select);
        }
        self.expect(200, "GET", NO_METADATA, "", headers).await?;
        let found = self.entities_in_body();
        if found == expected { Ok(found) } else { Err(miscounted(found, expected)) }
    }

    /// Declares an index, and does not wait for it.
    pub async fn declare_index(
        &mut self,
        table: &str,
        name: &str,
        keys: &str,
        include: &str,
    ) -> Result<(), Failure> {
        self.start_index(table, name);
        write!(self.body, "{{\"Keys\":\"{keys}\",\"Include\":\"{include}\"}}")
            .expect("a vector takes every write");
        self.expect(204, "PUT", NO_METADATA, JSON, "").await
    }

    /// Whether queries use an index.
    pub async fn is_index_readable(&mut self, table: &str, name: &str) -> Result<bool, Failure> {
        let index = self.read_index(table, name).await?;
        Ok(memmem::find(index, b"\"State\":\"Readable\"").is_some())
    }

    async fn read_index(&mut self, table: &str, name: &str) -> Result<&[u8], Failure> {
        self.start_index(table, name);
        self.expect(200, "GET", NO_METADATA, "", "").await?;
        Ok(self.connection.body())
    }

    fn start_index(&mut self, table: &str, name: &str) {
        self.start(&format!("TavolaIndexes(PartitionKey='{table}',RowKey='{name}')"));
    }

    /// Declares an index and waits for it.
    pub async fn build_index(
        &mut self,
        table: &str,
        name: &str,
        keys: &str,
        include: &str,
    ) -> Result<(), Failure> {
        self.declare_index(table, name, keys, include).await?;
        // A definition that is replaced stays readable until the new one is.
        sleep(POLL).await;
        while !self.is_index_readable(table, name).await? {
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Has an index compared with the entities.
    pub async fn verify_index(&mut self, table: &str, name: &str) -> Result<(), Failure> {
        self.start_index(table, name);
        self.body.extend_from_slice(b"{\"Verify\":true}");
        self.expect(204, "PATCH", NO_METADATA, JSON, ANY_ETAG).await?;
        loop {
            sleep(POLL).await;
            let index = self.read_index(table, name).await?;
            let says = |words: &[u8]| memmem::find(index, words).is_some();
            if says(b"\"Verify\":\"sound") {
                return Ok(());
            }
            if !says(b"\"Verify\":\"running\"") {
                return Err(Failure::Wrong(String::from_utf8_lossy(index).into_owned()));
            }
        }
    }

    /// Follows a query to its end.
    pub async fn scan(&mut self, table: &str, filter: &str) -> Result<Scanned, Failure> {
        let mut scanned = Scanned::default();
        let mut token: Option<(String, Option<String>)> = None;
        loop {
            self.start_query(table);
            self.option("$filter", filter);
            if let Some((partition, row)) = token {
                self.option("NextPartitionKey", &partition);
                row.iter().for_each(|row| self.option("NextRowKey", row));
            }
            self.expect(200, "GET", NO_METADATA, "", "").await?;
            scanned.entities += self.entities_in_body();
            scanned.pages += 1;
            let next_row = self.connection.next_row_key().map(str::to_owned);
            match self.connection.next_partition_key() {
                Some(partition) => token = Some((partition.to_owned(), next_row)),
                None => return Ok(scanned),
            }
        }
    }

    /// Changes rows of one partition together or not at all.
    pub async fn transaction(
        &mut self,
        table: &str,
        changes: impl Iterator<Item = (Change, Place)>,
        revision: u64,
    ) -> Result<u64, Failure> {
        self.start("$batch");
        self.body.extend_from_slice(
            b"--batch_t\r\nContent-Type: multipart/mixed; boundary=changeset_t\r\n\r\n",
        );
        let mut count = 0;
        for (change, place) in changes {
            self.push_change(table, change, place, revision);
            count += 1;
        }
        self.body.extend_from_slice(b"--changeset_t--\r\n--batch_t--\r\n");
        self.expect(202, "POST", NO_METADATA, "multipart/mixed; boundary=batch_t", "").await?;
        let body = self.connection.body();
        let done = memmem::find_iter(body, b"HTTP/1.1 204").count() as u64;
        if done == count { Ok(count) } else { Err(self.inner_failure()) }
    }

    fn push_change(&mut self, table: &str, change: Change, place: Place, revision: u64) {
        let verb = match change {
            Change::Insert => "POST ",
            Change::Upsert => "PUT ",
            Change::Delete => "DELETE ",
        };
        self.push_body(&["--changeset_t\r\nContent-Type: application/http\r\n"]);
        self.push_body(&["Content-Transfer-Encoding: binary\r\n\r\n", verb]);
        self.push_base();
        self.push_body(&["/", table]);
        if change != Change::Insert {
            let (partition, row) = self.key_texts(place);
            self.push_body(&["(PartitionKey='", &partition, "',RowKey='", &row, "')"]);
        }
        self.push_body(&[" HTTP/1.1\r\nAccept: ", NO_METADATA, "\r\nDataServiceVersion: 3.0;\r\n"]);
        match change {
            Change::Delete => self.push_body(&[ANY_ETAG, "\r\n"]),
            Change::Insert | Change::Upsert => {
                self.push_body(&["Content-Type: application/json\r\n", QUIET, "\r\n"]);
                self.keys.push_entity(&mut self.body, place, revision);
            }
        }
        self.push_body(&["\r\n"]);
    }

    fn push_body(&mut self, parts: &[&str]) {
        for part in parts {
            self.body.extend_from_slice(part.as_bytes());
        }
    }

    /// The refusal inside the answer to a transaction.
    fn inner_failure(&self) -> Failure {
        let body = String::from_utf8_lossy(self.connection.body());
        let status = body.split_once("HTTP/1.1 ").and_then(|(_, rest)| rest.get(..3)?.parse().ok());
        match status {
            Some(status) => self.refused(status),
            None => Failure::Wrong("the answer to a transaction has no parts".to_owned()),
        }
    }

    fn start_query(&mut self, table: &str) {
        self.start(table);
        self.path.push_str("()");
    }

    pub fn key_texts(&self, place: Place) -> (String, String) {
        let (mut partition, mut row) = (Vec::new(), Vec::new());
        self.keys.push_partition_key(&mut partition, place);
        self.keys.push_row_key(&mut row, place);
        (String::from_utf8(partition).expect("text"), String::from_utf8(row).expect("text"))
    }

    fn entities_in_body(&self) -> u64 {
        memmem::find_iter(self.connection.body(), ROW_KEY).count() as u64
    }

    fn check_count(&self, expected: u64) -> Result<(), Failure> {
        let (found, body) = (self.entities_in_body(), self.connection.body());
        if found != expected {
            return Err(miscounted(found, expected));
        }
        match body.len() < expected as usize * ENTITY_BYTES_MIN {
            true => Err(Failure::Wrong(format!("{expected} entities in {} bytes", body.len()))),
            false => Ok(()),
        }
    }

    fn check_holds(&self, place: Place) -> Result<(), Failure> {
        let mut row = Vec::with_capacity(16);
        self.keys.push_row_key(&mut row, place);
        let body = self.connection.body();
        match memmem::find(body, &row).is_some() && body.len() > ENTITY_BYTES_MIN {
            true => Ok(()),
            false => Err(Failure::Wrong("the answer is another entity".to_owned())),
        }
    }
}

fn miscounted(found: u64, expected: u64) -> Failure {
    Failure::Wrong(format!("{found} entities where {expected} were expected"))
}
