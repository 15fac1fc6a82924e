//! Verifying a data folder offline: the engine checks its files, this checks that the rows are ours and agree.
//!
//! The rules are those of `docs/format.md`: every key has a family and parses, every id was given out, names
//! stand under themselves, every entity belongs to a table that exists or awaits the sweeper and every message to such a
//! queue, texts and headers of messages go together, every value decodes to its last byte, and what is in use is in the list
//! of features.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use tavola_engine::{CheckedRows, FilesReport, FolderCheck, KeyRange, OpenError, Visitor};
use tavola_wire::queue::QueueName;
use tavola_wire::table::names::{TableName, key_problem};
use tavola_wire::table::stored::{EntityRef, check_entity as check_limits, check_name};
use tavola_wire::xml::acl;

use super::check_indexes::IndexCheck;
use super::check_queues::QueueCheck;
use super::problems::Problems;
use crate::storage::features::{self, Feature};
use crate::storage::index::sketch::Sketch;
use crate::storage::layout::{
    AccountId, BuildRecord, Dropped, Family, Key, KeyError, QueueRecord, Record, ResourceId,
    StoreId, TableId, TableRecord, account, mark, properties, sequence,
};

/// The rows and files that were looked at, and their problems.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub files: FilesReport,
    pub accounts: u64,
    pub tables: u64,
    pub dropped_tables: u64,
    pub entities: u64,
    pub index_rows: u64,
    pub queues: u64,
    pub messages: u64,
    /// Problems of rows, at most the first hundred.
    pub row_problems: Vec<String>,
    pub row_problem_count: u64,
}

impl CheckReport {
    pub fn is_sound(&self) -> bool {
        self.problem_count() == 0
    }

    pub fn problem_count(&self) -> u64 {
        self.files.problems.len() as u64 + self.row_problem_count
    }
}

/// How far a check has come.
#[derive(Clone, Copy, Debug)]
pub enum CheckProgress {
    Bytes { done: u64, total: u64 },
    Entities(u64),
}

/// Checks the data folder at `path` without changing it.
///
/// # Errors
///
/// When there is no folder to check, or someone else uses it. Problems inside it are in the report.
pub fn check(
    path: impl AsRef<Path>,
    mut progress: impl FnMut(CheckProgress) + Send + 'static,
) -> Result<CheckReport, OpenError> {
    let folder = FolderCheck::open(path)?;
    let files = folder.files(&mut |done, total| progress(CheckProgress::Bytes { done, total }));
    let mut report = CheckReport { files, ..CheckReport::default() };
    let problems = match folder.rows() {
        Ok(rows) => check_rows(&rows, &mut report, Box::new(progress)),
        Err(error) => {
            // Usually one of the files that were told already.
            Problems::one(format!("the rows cannot be read: {error}"))
        }
    };
    report.row_problems = problems.told;
    report.row_problem_count = problems.count;
    Ok(report)
}

fn check_rows(rows: &CheckedRows, report: &mut CheckReport, progress: Progress) -> Problems {
    // What belongs to tables and queues is in the midst by key, but needs what the others say.
    let belonging =
        [Family::Entity, Family::Index, Family::Mark, Family::Message, Family::MessageText];
    let belonging = belonging.map(Family::range);
    let mut found = Rows::new(progress);
    let mut start = Bytes::from_static(&[0]);
    let ends = belonging.iter().map(|range| (range.start.clone(), range.end.clone()));
    let last = Bytes::from_static(&[0xFF; 9]);
    for (end, next) in ends.chain([(last.clone(), last)]) {
        let range = KeyRange { start: std::mem::replace(&mut start, next), end };
        found = match rows.scan(&range, found) {
            Ok(found) => found.at_the_end(),
            Err(error) => return Problems::one(format!("the catalogue cannot be read: {error}")),
        };
    }
    found.compare();
    report.accounts = found.accounts.len() as u64;
    report.tables = found.tables.len() as u64;
    report.dropped_tables = found.dropped.len() as u64;
    report.queues = found.queues.stores().count() as u64;
    for range in &belonging {
        found = match rows.scan(range, found) {
            Ok(found) => found.at_the_end(),
            Err(error) => {
                return Problems::one(format!("the entities cannot all be read: {error}"));
            }
        };
    }
    report.entities = found.entities;
    report.messages = found.queues.messages;
    found.queues.compare_texts(&mut found.problems);
    let dropped = std::mem::take(&mut found.dropped);
    let is_dropped = move |id| dropped.contains(&id);
    report.index_rows = found.indexes.check_rows(rows, is_dropped, &mut found.problems);
    found.problems
}

type Progress = Box<dyn FnMut(CheckProgress) + Send>;

/// The contents of the rows read so far, as far as other rows are compared with them.
struct Rows {
    sequence: Option<u64>,
    /// Ids that were found, with the keys of their rows.
    ids: Vec<(u64, Vec<u8>)>,
    accounts: HashSet<AccountId>,
    /// Accounts that rows speak of, with the keys of the rows.
    account_uses: Vec<(AccountId, Vec<u8>)>,
    /// Keys of the rows of tables.
    tables: HashMap<TableId, Vec<u8>>,
    dropped: HashSet<ResourceId>,
    indexes: IndexCheck,
    /// Builds of indexes: table and number, with the keys of the rows.
    builds: Vec<(TableId, u16, Vec<u8>)>,
    queues: QueueCheck,
    /// The features in use; `None` if the list cannot be read.
    features: Option<Vec<Feature>>,
    /// Features with the key of the first row that needs each.
    needs: Vec<(Feature, Vec<u8>)>,
    entities: u64,
    problems: Problems,
    last_key: Vec<u8>,
    progress: Progress,
}

/// Entities between two words of progress.
const PROGRESS_ENTITIES: u64 = 100_000;

impl Visitor for Rows {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        if !self.last_key.is_empty() && self.last_key.as_slice() >= key {
            self.problems.add(key, "it is not in order");
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        if let Err(problem) = self.check(key, value) {
            self.problems.add(key, problem);
        }
        ControlFlow::Continue(())
    }
}

impl Rows {
    fn new(progress: Progress) -> Self {
        Self {
            sequence: None,
            ids: Vec::new(),
            accounts: HashSet::new(),
            account_uses: Vec::new(),
            tables: HashMap::new(),
            dropped: HashSet::new(),
            indexes: IndexCheck::default(),
            builds: Vec::new(),
            queues: QueueCheck::default(),
            features: Some(Vec::new()),
            needs: Vec::new(),
            entities: 0,
            problems: Problems::default(),
            last_key: Vec::new(),
            progress,
        }
    }

    fn at_the_end(mut self) -> Self {
        self.last_key.clear();
        self
    }

    fn check(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match Key::decode(key).map_err(|KeyError(problem)| problem)? {
            Key::Sequence => {
                self.sequence = Some(sequence::decode(value).ok_or("the sequence is no number")?);
                Ok(())
            }
            Key::Account { name } => self.check_account(key, name, value),
            Key::Table { account, name } => self.check_table(key, account, name, value),
            Key::Properties { account, .. } => {
                self.account_uses.push((account, key.to_vec()));
                let read = properties::decode(value);
                read.map(drop).ok_or("its service properties cannot be read")
            }
            Key::Dropped { id } => self.check_dropped(key, id, value),
            // In a scan of their own.
            Key::Index { .. } => Ok(()),
            Key::IndexSketch { table, number } => {
                self.builds.push((table, number, key.to_vec()));
                Sketch::decode(value).map(drop).ok_or("the sketch of an index cannot be read")
            }
            Key::IndexBuild { table, number } => {
                self.builds.push((table, number, key.to_vec()));
                BuildRecord::decode(value).map(drop).ok_or("the state of a build cannot be read")
            }
            Key::Features => {
                self.features = features::read(value);
                let is_known = self.features.is_some();
                is_known.then_some(()).ok_or("it names a feature that this version does not know")
            }
            Key::Queue { account, name } => self.check_queue(key, account, name, value),
            Key::ClockMark => {
                let mark = mark::decode_clock(value).filter(|mark| mark.has_text());
                mark.map(drop).ok_or("it is no mark of the clock")
            }
            Key::LowMark { store } => {
                self.belongs_to_queue(store)?;
                self.queues.check_low_mark(store, value)
            }
            Key::Message { store, place } => {
                self.queues.messages += 1;
                self.belongs_to_queue(store)?;
                self.queues.check_header(store, place, value)
            }
            Key::MessageText { store, expires, id } => {
                self.belongs_to_queue(store)?;
                self.queues.check_text(store, expires, id, value)
            }
            Key::Entity { table, partition_key, row_key } => {
                self.count_entity();
                if !self.tables.contains_key(&table) && !self.dropped.contains(&table.into()) {
                    return Err("it belongs to no table");
                }
                check_entity(&partition_key, &row_key, value)
            }
        }
    }

    fn check_account(&mut self, key: &[u8], name: &str, value: &[u8]) -> Result<(), &'static str> {
        let id = account::decode(value).ok_or("the account has no id")?;
        self.ids.push((id.0, key.to_vec()));
        if !self.accounts.insert(id) {
            return Err("two accounts have the same id");
        }
        let is_name = (1..=63).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if is_name { Ok(()) } else { Err("it is no name of an account") }
    }

    fn check_table(
        &mut self,
        key: &[u8],
        account: AccountId,
        key_name: &str,
        value: &[u8],
    ) -> Result<(), &'static str> {
        self.account_uses.push((account, key.to_vec()));
        let record = TableRecord::decode(value).ok_or("its table record cannot be read")?;
        self.ids.push((record.id.0, key.to_vec()));
        if self.tables.insert(record.id, key.to_vec()).is_some() {
            return Err("two tables have the same id");
        }
        let name = TableName::parse(record.name.as_str()).map_err(|_| "its name is not legal")?;
        if name.lower() != key_name {
            return Err("it stands under another name than its own");
        }
        if !record.created.has_text() {
            return Err("its time of creation is out of range");
        }
        if !record.indexes.is_untouched() || record.view.is_some() {
            self.need(Feature::Index, key);
        }
        self.indexes.see(key, &record)?;
        if !record.policies.is_empty() {
            acl::parse(&record.policies).map_err(|_| "its access policies cannot be read")?;
        }
        Ok(())
    }

    fn check_queue(
        &mut self,
        key: &[u8],
        account: AccountId,
        name: &str,
        value: &[u8],
    ) -> Result<(), &'static str> {
        self.account_uses.push((account, key.to_vec()));
        let record = QueueRecord::decode(value).ok_or("its queue record cannot be read")?;
        self.ids.push((record.store.0, key.to_vec()));
        self.need(Feature::Queue, key);
        self.queues.see(key, record.store)?;
        QueueName::parse(name).map_err(|_| "its name is not legal")?;
        if !record.created.has_text() {
            return Err("its time of creation is out of range");
        }
        acl::parse_queue(&record.policies).map_err(|_| "its access policies cannot be read")?;
        Ok(())
    }

    /// Notes that a row is of a feature, which has to be in the list then.
    fn need(&mut self, feature: Feature, key: &[u8]) {
        if self.needs.iter().all(|(other, _)| *other != feature) {
            self.needs.push((feature, key.to_vec()));
        }
    }

    fn belongs_to_queue(&self, store: StoreId) -> Result<(), &'static str> {
        let is_known = self.queues.has(store) || self.dropped.contains(&ResourceId::from(store));
        is_known.then_some(()).ok_or("it belongs to no queue")
    }

    fn check_dropped(
        &mut self,
        key: &[u8],
        id: ResourceId,
        value: &[u8],
    ) -> Result<(), &'static str> {
        self.ids.push((id.0, key.to_vec()));
        self.dropped.insert(id);
        let dropped = Dropped::decode(id, value).ok_or("it does not say when, or of what")?;
        if dropped.at.has_text() { Ok(()) } else { Err("it is no mark of a dropped table") }
    }

    fn count_entity(&mut self) {
        self.entities += 1;
        if self.entities.is_multiple_of(PROGRESS_ENTITIES) {
            (self.progress)(CheckProgress::Entities(self.entities));
        }
    }

    /// Compares the rows with each other, when everything but the entities has been read.
    fn compare(&mut self) {
        // The first row that has an id comes with the sequence.
        let next = self.sequence.unwrap_or(sequence::FIRST_ID);
        for (id, key) in std::mem::take(&mut self.ids) {
            if id < sequence::FIRST_ID || id >= next {
                let problem = format!("its id {id} was never given out, the next is {next}");
                self.problems.add(&key, &problem);
            }
        }
        for (account, key) in std::mem::take(&mut self.account_uses) {
            if !self.accounts.contains(&account) {
                self.problems.add(&key, "it belongs to no account");
            }
        }
        let dropped = &self.dropped;
        for (table, number, key) in std::mem::take(&mut self.builds) {
            if !self.indexes.has(table, number, |id| dropped.contains(&id)) {
                self.problems.add(&key, "it belongs to no index");
            }
        }
        self.indexes.compare_views(&mut self.problems);
        let tables = self.tables.iter().map(|(id, key)| (ResourceId::from(*id), key));
        let queues = self.queues.stores().map(|(id, key)| (ResourceId::from(id), key));
        for (id, key) in tables.chain(queues) {
            if self.dropped.contains(&id) || self.accounts.contains(&AccountId(id.0)) {
                self.problems.add(key, "its id also stands for something else");
            }
        }
        for (StoreId(id), key) in self.queues.stores() {
            if self.tables.contains_key(&TableId(id)) {
                self.problems.add(key, "its id also stands for something else");
            }
        }
        let Some(features) = &self.features else { return };
        for (feature, key) in self.needs.iter().filter(|(needed, _)| !features.contains(needed)) {
            let name = feature.name();
            let problem = format!(
                "the list of features in use does not say `{name}`: other versions would not keep it in order"
            );
            self.problems.add(key, &problem);
        }
    }
}

fn check_entity(partition_key: &str, row_key: &str, value: &[u8]) -> Result<(), &'static str> {
    if key_problem(partition_key).is_some() || key_problem(row_key).is_some() {
        return Err("its key is not legal");
    }
    let entity = EntityRef::parse(value).map_err(|_| "its value is no entity")?;
    let mut names = HashSet::with_capacity(entity.property_count());
    for property in entity.properties() {
        let property = property.map_err(|_| "its properties cannot all be read")?;
        let name = property.name_str().ok_or("a property's name is no text")?;
        property.value().ok_or("a property's value is not of its type")?;
        check_name(name).map_err(|_| "a property's name is not legal")?;
        if !names.insert(name) {
            return Err("two properties have the same name");
        }
    }
    check_limits(partition_key, row_key, entity).map_err(|_| "it is too large")
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
