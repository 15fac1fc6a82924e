//! Verifying a data folder offline: the engine checks its files, this checks that the rows are ours and agree.
//!
//! What must hold is what `docs/format.md` says: every key has a family and parses, every id was given out, names
//! stand under themselves, every entity belongs to a table that exists or awaits the sweeper, and every value
//! decodes to its last byte.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use tavola_engine::{CheckedRows, FilesReport, FolderCheck, KeyRange, OpenError, Visitor};
use tavola_wire::Ticks;
use tavola_wire::table::names::{TableName, key_problem};
use tavola_wire::table::stored::key::read_entity_key;
use tavola_wire::table::stored::{EntityRef, check_entity as check_limits, check_name};
use tavola_wire::xml::acl;

use crate::auth::accounts::decode_properties;
use crate::storage::layout::{self, Family, PREFIX_BYTES, TableRecord};

/// Problems of rows that are told one by one; more are only counted.
const PROBLEMS_MAX: usize = 100;

/// What was looked at, and what is wrong.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub files: FilesReport,
    pub accounts: u64,
    pub tables: u64,
    pub dropped_tables: u64,
    pub entities: u64,
    /// What is wrong with the rows, at most the first hundred.
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
/// When there is no folder to check, or someone else uses it. What is wrong inside is in the report.
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
            let mut problems = Problems::default();
            problems.add(format!("the rows cannot be read: {error}"));
            problems
        }
    };
    report.row_problems = problems.told;
    report.row_problem_count = problems.count;
    Ok(report)
}

fn check_rows(rows: &CheckedRows, report: &mut CheckReport, progress: Progress) -> Problems {
    // Entities come first by key, but need what the others say.
    let before = KeyRange { start: Bytes::from_static(&[0]), end: family(Family::Entity).start };
    let after = KeyRange { start: family(Family::Entity).end, end: Bytes::from_static(&[0xFF; 9]) };
    let mut catalogue = Catalogue::default();
    for range in [before, after] {
        catalogue.last_key.clear();
        catalogue = match rows.scan(&range, catalogue) {
            Ok(catalogue) => catalogue,
            Err(error) => {
                let mut problems = Problems::default();
                problems.add(format!("the catalogue cannot be read: {error}"));
                return problems;
            }
        };
    }
    catalogue.finish();
    report.accounts = catalogue.accounts.len() as u64;
    report.tables = catalogue.tables.len() as u64;
    report.dropped_tables = catalogue.dropped.len() as u64;
    let owners = catalogue.tables.keys().chain(&catalogue.dropped).copied().collect();
    let visitor =
        Entities { owners, problems: catalogue.problems, count: 0, last_key: Vec::new(), progress };
    match rows.scan(&family(Family::Entity), visitor) {
        Ok(visitor) => {
            report.entities = visitor.count;
            visitor.problems
        }
        Err(error) => {
            let mut problems = Problems::default();
            problems.add(format!("the entities cannot all be read: {error}"));
            problems
        }
    }
}

/// Every key of a family.
fn family(family: Family) -> KeyRange {
    let start = Bytes::copy_from_slice(&[family as u8]);
    KeyRange { start, end: Bytes::copy_from_slice(&[family as u8 + 1]) }
}

type Progress = Box<dyn FnMut(CheckProgress) + Send>;

#[derive(Default)]
struct Problems {
    told: Vec<String>,
    count: u64,
}

impl Problems {
    fn add(&mut self, problem: String) {
        self.count += 1;
        if self.told.len() < PROBLEMS_MAX {
            self.told.push(problem);
        }
    }

    fn add_row(&mut self, key: &[u8], problem: &str) {
        self.add(format!("row {}: {problem}", key.escape_ascii()));
    }
}

/// Everything but entities.
#[derive(Default)]
struct Catalogue {
    sequence: Option<u64>,
    /// Ids that were found, with the keys of their rows.
    ids: Vec<(u64, Vec<u8>)>,
    accounts: HashSet<u64>,
    /// Accounts that rows speak of, with the keys of the rows.
    account_uses: Vec<(u64, Vec<u8>)>,
    /// Keys of the rows of tables, by id.
    tables: HashMap<u64, Vec<u8>>,
    dropped: HashSet<u64>,
    problems: Problems,
    last_key: Vec<u8>,
}

impl Visitor for Catalogue {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        check_order(&mut self.last_key, key, &mut self.problems);
        if let Err(problem) = self.check(key, value) {
            self.problems.add_row(key, problem);
        }
        ControlFlow::Continue(())
    }
}

impl Catalogue {
    fn check(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let id = layout::id_of(key).ok_or("its key is too short")?;
        let rest = &key[PREFIX_BYTES..];
        match key[0] {
            first if first == Family::Sequence as u8 => {
                if key != layout::sequence_key() {
                    return Err("there is one sequence only, and its id is 0");
                }
                self.sequence = Some(layout::decode_id(value).ok_or("the sequence is no number")?);
            }
            first if first == Family::Account as u8 => self.check_account(key, id, value)?,
            first if first == Family::Table as u8 => self.check_table(key, id, value)?,
            first if first == Family::Properties as u8 => {
                self.account_uses.push((id, key.to_vec()));
                if !rest.is_empty() {
                    return Err("its key goes on after the account");
                }
                decode_properties(value).map_err(|_| "its service properties cannot be read")?;
            }
            first if first == Family::Dropped as u8 => {
                self.ids.push((id, key.to_vec()));
                self.dropped.insert(id);
                let moment = layout::decode_moment(value).ok_or("it does not say when")?;
                if !rest.is_empty() || !is_moment(moment) {
                    return Err("it is no mark of a dropped table");
                }
            }
            _ => return Err("no family of rows begins like this"),
        }
        Ok(())
    }

    fn check_account(&mut self, key: &[u8], id: u64, value: &[u8]) -> Result<(), &'static str> {
        let account = layout::decode_id(value).ok_or("the account has no id")?;
        self.ids.push((account, key.to_vec()));
        if !self.accounts.insert(account) {
            return Err("two accounts have the same id");
        }
        let name = &key[PREFIX_BYTES..];
        let is_name = (1..=63).contains(&name.len())
            && name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if id == 0 && is_name { Ok(()) } else { Err("it is no name of an account") }
    }

    fn check_table(&mut self, key: &[u8], account: u64, value: &[u8]) -> Result<(), &'static str> {
        self.account_uses.push((account, key.to_vec()));
        let record = TableRecord::decode(value).ok_or("its table record cannot be read")?;
        self.ids.push((record.id.0, key.to_vec()));
        if self.tables.insert(record.id.0, key.to_vec()).is_some() {
            return Err("two tables have the same id");
        }
        let name = TableName::parse(record.name.as_str()).map_err(|_| "its name is not legal")?;
        if name.lower().as_bytes() != &key[PREFIX_BYTES..] {
            return Err("it stands under another name than its own");
        }
        if !is_moment(record.created) {
            return Err("its time of creation is out of range");
        }
        if !record.policies.is_empty() {
            acl::parse(&record.policies).map_err(|_| "its access policies cannot be read")?;
        }
        Ok(())
    }

    /// What can only be said when all rows are known.
    fn finish(&mut self) {
        // Ids start at 1, and the first row that has one comes with the sequence.
        let next = self.sequence.unwrap_or(1);
        for (id, key) in std::mem::take(&mut self.ids) {
            if id == 0 || id >= next {
                let problem = format!("its id {id} was never given out, the next is {next}");
                self.problems.add_row(&key, &problem);
            }
        }
        for (account, key) in std::mem::take(&mut self.account_uses) {
            if !self.accounts.contains(&account) {
                self.problems.add_row(&key, "it belongs to no account");
            }
        }
        for (id, key) in &self.tables {
            if self.dropped.contains(id) || self.accounts.contains(id) {
                self.problems.add_row(key, "its id also stands for something else");
            }
        }
    }
}

/// The entities.
struct Entities {
    /// Tables that exist or await the sweeper.
    owners: HashSet<u64>,
    problems: Problems,
    count: u64,
    last_key: Vec<u8>,
    progress: Progress,
}

/// Entities between two words of progress.
const PROGRESS_ENTITIES: u64 = 100_000;

impl Visitor for Entities {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        check_order(&mut self.last_key, key, &mut self.problems);
        self.count += 1;
        if self.count.is_multiple_of(PROGRESS_ENTITIES) {
            (self.progress)(CheckProgress::Entities(self.count));
        }
        if let Err(problem) = check_entity(&self.owners, key, value) {
            self.problems.add_row(key, problem);
        }
        ControlFlow::Continue(())
    }
}

fn check_entity(owners: &HashSet<u64>, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let id = layout::id_of(key).ok_or("its key is too short")?;
    if !owners.contains(&id) {
        return Err("it belongs to no table");
    }
    let (partition_key, row_key) =
        read_entity_key(&key[PREFIX_BYTES..]).ok_or("its key cannot be read")?;
    if key_problem(&partition_key).is_some() || key_problem(&row_key).is_some() {
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
    check_limits(&partition_key, &row_key, entity).map_err(|_| "it is too large")
}

fn check_order(last: &mut Vec<u8>, key: &[u8], problems: &mut Problems) {
    if !last.is_empty() && last.as_slice() >= key {
        problems.add_row(key, "it is not in order");
    }
    last.clear();
    last.extend_from_slice(key);
}

fn is_moment(moment: Ticks) -> bool {
    (Ticks::MIN..=Ticks::MAX).contains(&moment)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
