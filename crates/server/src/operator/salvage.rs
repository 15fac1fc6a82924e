//! Copying what can still be read of a damaged data folder into a new one, which is then sound.
//!
//! The engine reads the rows; this makes them agree, as `docs/format.md` wants it. Rows depend on others: an entity on
//! the row of its table, that on the row of its account, all of them on the sequence of ids. Where such a row is lost:
//!
//! - entities get a table `Recovered<id>`. It belongs to the one account that there is, or, if there are several, to an
//!   account `recovered` of its own: nobody may get what might be another's;
//! - messages get a queue `recovered-<id>` in the same way; one whose text is lost is lost;
//! - tables, queues and service properties get an account `recovered<id>`;
//! - the sequence goes on after the highest id that is seen.
//!
//! Whoever wants to read them configures an account of that name. A dropped table whose mark is lost comes back as
//! such a table, if its entities were not swept. Rows whose value is not what the format says are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tavola_engine::{
    Decision, EmbeddedEngine, EmbeddedOptions, Engine, Loss, OpenError, Salvage, Status,
    Transition, WriteSet,
};
use tavola_wire::Ticks;
use tavola_wire::queue::metadata::Metadata;
use tavola_wire::table::stored::EntityRef;

use super::salvaged_messages::{MESSAGE_FAMILIES, Messages};
use crate::storage::features::{self, Feature};
use crate::storage::layout::{
    AccountId, Dropped, Family, Key, KeyError, QueueRecord, Record, StoreId, TableId, TableRecord,
    account, mark, properties, sequence,
};

/// Rows and bytes that are written in one transaction.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// Lost rows that are told one by one; more are only counted.
const TOLD_MAX: usize = 100;

/// What was copied, and what was not.
#[derive(Debug, Default)]
pub struct SalvageReport {
    pub accounts: u64,
    pub tables: u64,
    pub entities: u64,
    pub queues: u64,
    pub messages: u64,
    /// What the files no longer hold.
    pub losses: Vec<Loss>,
    /// Rows that were read and make no sense, at most the first hundred.
    pub senseless: Vec<String>,
    pub senseless_count: u64,
    /// What was made up for rows that are lost.
    pub made_up: Vec<String>,
}

impl SalvageReport {
    /// Whether everything was readable.
    pub fn is_complete(&self) -> bool {
        self.losses.is_empty() && self.senseless_count == 0 && self.made_up.is_empty()
    }

    fn leave_out(&mut self, key: &[u8], why: &str) {
        self.senseless_count += 1;
        if self.senseless.len() < TOLD_MAX {
            self.senseless.push(format!("row {}: {why}", key.escape_ascii()));
        }
    }
}

/// Why nothing was salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    #[error("{} is not empty; give a new folder, or an empty one", .0.display())]
    TargetNotEmpty(PathBuf),
    #[error("{} is inside the folder that is salvaged, which is not changed; give another", .0.display())]
    TargetInside(PathBuf),
    #[error(transparent)]
    Source(OpenError),
    #[error("cannot make the new folder: {0}")]
    Target(OpenError),
    #[error("cannot write to the new folder: {0}")]
    Write(String),
}

impl SalvageError {
    /// Whether other arguments would help.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Target(_) | Self::Write(_))
    }
}

/// Copies every row of the data folder at `from` that can be read into a new one at `to`. `progress` is told how many
/// entities are done.
///
/// # Errors
///
/// See [`SalvageError`]. What could not be read is in the report.
pub fn salvage(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    mut progress: impl FnMut(u64),
) -> Result<SalvageReport, SalvageError> {
    let (from, to) = (from.as_ref(), to.as_ref());
    check_target(from, to)?;
    let source = Salvage::open(from).map_err(SalvageError::Source)?;
    let mut report = SalvageReport::default();
    let mut catalogue = Catalogue::default();
    // The losses come with the second reading again.
    source.rows(&mut |key, value| catalogue.see(key, value, &mut report));
    let rows = catalogue.complete(&mut report);
    let owners: BTreeSet<u64> =
        catalogue.tables.keys().chain(&catalogue.dropped).copied().collect();
    let mut target = Target::create(to)?;
    if !catalogue.features.is_empty() {
        target.raise_format(features::FORMAT);
    }
    for (key, value) in rows {
        target.put(key, value);
    }
    report.losses = source.rows(&mut |key, value| {
        let checked = match key.first().copied() {
            Some(family) if family == Family::Entity as u8 => check_entity(&owners, key, value),
            Some(family) if MESSAGE_FAMILIES.contains(&family) => {
                catalogue.messages.check(key, value)
            }
            _ => return,
        };
        match checked {
            Ok(()) => {
                target.put(Bytes::copy_from_slice(key), value.clone());
                report.entities += u64::from(key[0] == Family::Entity as u8);
                report.messages += u64::from(key[0] == Family::Message as u8);
                progress(report.entities + report.messages);
            }
            Err(why) => report.leave_out(key, why),
        }
    });
    target.finish()?;
    Ok(report)
}

/// Nothing is mixed with what is there, and the source is left alone.
fn check_target(from: &Path, to: &Path) -> Result<(), SalvageError> {
    if std::fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) || to.is_file() {
        return Err(SalvageError::TargetNotEmpty(to.into()));
    }
    // The nearest folder that exists says where the new one will be.
    let real = |path: &Path| path.ancestors().find_map(|path| path.canonicalize().ok());
    let parent = if to.is_relative() { Path::new(".").join(to) } else { to.into() };
    let from = from.canonicalize().ok();
    if from.zip(real(&parent)).is_some_and(|(from, to)| to.starts_with(from)) {
        return Err(SalvageError::TargetInside(to.into()));
    }
    Ok(())
}

/// Everything but the entities, and which tables these are of.
#[derive(Default)]
struct Catalogue {
    sequence: Option<u64>,
    /// Names by id.
    accounts: BTreeMap<u64, String>,
    /// Keys and values of the rows that are copied as they are.
    rows: Vec<(Bytes, Bytes)>,
    /// Accounts that rows belong to.
    account_uses: BTreeSet<u64>,
    /// Account and lower-case name by id.
    tables: BTreeMap<u64, (u64, String)>,
    dropped: BTreeSet<u64>,
    /// Whether there is a list of features, which older versions do not know.
    features: Vec<Feature>,
    /// Whether a table has indexes, which then are in the list.
    has_indexes: bool,
    has_queues: bool,
    /// Entities by table.
    entities: BTreeMap<u64, u64>,
    /// Account and name by the id of their messages.
    queues: BTreeMap<u64, (u64, String)>,
    messages: Messages,
}

impl Catalogue {
    fn see(&mut self, key: &[u8], value: &Bytes, report: &mut SalvageReport) {
        if let Err(why) = self.take(key, value) {
            report.leave_out(key, why);
        }
    }

    fn take(&mut self, key: &[u8], value: &Bytes) -> Result<(), &'static str> {
        match Key::decode(key) {
            Ok(Key::Entity { table, .. }) => {
                *self.entities.entry(table.0).or_default() += 1;
                // With the second reading.
                return Ok(());
            }
            Ok(Key::Sequence) => {
                self.sequence = Some(sequence::decode(value).ok_or("the sequence is no number")?);
                return Ok(());
            }
            Ok(Key::Account { name }) => {
                let account = account::decode(value).ok_or("the account has no id")?;
                if self.accounts.insert(account.0, name.to_owned()).is_some() {
                    return Err("two accounts have the same id");
                }
            }
            Ok(Key::Table { account, name }) => return self.see_table(key, account, name, value),
            Ok(Key::Properties { account, .. }) => {
                properties::decode(value).ok_or("its service properties cannot be read")?;
                self.account_uses.insert(account.0);
            }
            Ok(Key::Dropped { id }) => {
                Dropped::decode(id, value).ok_or("it does not say when, or of what")?;
                self.dropped.insert(id.0);
            }
            // Rows of indexes are made again from the entities.
            Ok(Key::Index { .. } | Key::IndexBuild { .. } | Key::IndexSketch { .. }) => {
                return Ok(());
            }
            Ok(Key::Message { store, place }) => {
                return self.messages.see_header(store, place, value);
            }
            Ok(Key::MessageText { store, expires, id }) => {
                self.messages.see_text(store, expires, id, value);
                return Ok(());
            }
            Ok(Key::ClockMark) => {
                mark::decode_clock(value).ok_or("it is no mark of the clock")?;
            }
            // Messages that were lost and found may lie before it.
            Ok(Key::LowMark { .. }) => return Ok(()),
            Ok(Key::Queue { account, name }) => self.see_queue(account, name, value)?,
            Ok(Key::Features) => {
                let listed = features::read(value);
                self.features =
                    listed.ok_or("it names a feature that this version does not know")?;
                // Written anew, with those that were found beside.
                return Ok(());
            }
            Err(KeyError(why)) => return Err(why),
        }
        self.rows.push((Bytes::copy_from_slice(key), value.clone()));
        Ok(())
    }

    fn see_table(
        &mut self,
        key: &[u8],
        account: AccountId,
        name: &str,
        value: &[u8],
    ) -> Result<(), &'static str> {
        let mut record = TableRecord::decode(value).ok_or("its table record cannot be read")?;
        if self.tables.insert(record.id.0, (account.0, name.to_owned())).is_some() {
            return Err("two tables have the same id");
        }
        self.account_uses.insert(account.0);
        self.has_indexes |= !record.indexes.is_untouched() || record.view.is_some();
        record.indexes.build_again();
        self.rows.push((Bytes::copy_from_slice(key), record.encode()));
        Ok(())
    }

    fn see_queue(
        &mut self,
        account: AccountId,
        name: &str,
        value: &[u8],
    ) -> Result<(), &'static str> {
        let record = QueueRecord::decode(value).ok_or("its queue record cannot be read")?;
        if self.queues.insert(record.store.0, (account.0, name.to_owned())).is_some() {
            return Err("two queues have the same id");
        }
        self.account_uses.insert(account.0);
        self.has_queues = true;
        Ok(())
    }

    /// Adds the rows that others depend on, and answers all of them.
    fn complete(&mut self, report: &mut SalvageReport) -> Vec<(Bytes, Bytes)> {
        let mut next = self.next_id();
        for id in std::mem::take(&mut self.account_uses) {
            if !self.accounts.contains_key(&id) {
                self.add_account(id, format!("recovered{id}"), report);
            }
        }
        let orphans: Vec<(u64, u64)> = self
            .entities
            .iter()
            .filter(|(id, _)| !self.tables.contains_key(id) && !self.dropped.contains(id))
            .map(|(id, count)| (*id, *count))
            .collect();
        let stores = self.messages.counts.iter();
        let orphaned_messages: Vec<(u64, u64)> = stores
            .filter(|(id, _)| !self.queues.contains_key(id) && !self.dropped.contains(id))
            .map(|(id, count)| (*id, *count))
            .collect();
        if !orphans.is_empty() || !orphaned_messages.is_empty() {
            let owner = self.owner_of_orphans(&mut next, report);
            for (id, count) in orphans {
                self.add_table(id, owner, count, report);
            }
            for (id, count) in orphaned_messages {
                self.add_queue(id, owner, count, report);
            }
        }
        self.messages.owners = self.queues.keys().chain(&self.dropped).copied().collect();
        if self.sequence.is_none_or(|sequence| sequence < next) {
            // A folder without any id has no sequence either.
            if next > 1 {
                let was = if self.sequence.is_none() { "lost" } else { "too low" };
                report.made_up.push(format!("the sequence of ids was {was}; it goes on at {next}"));
            }
            self.sequence = Some(next);
        }
        self.list_features(report);
        report.accounts = self.accounts.len() as u64;
        report.tables = self.tables.len() as u64;
        report.queues = self.queues.len() as u64;
        let mut rows = std::mem::take(&mut self.rows);
        rows.push((Key::Sequence.encode(), sequence::encode(self.sequence.unwrap_or(next))));
        rows
    }

    /// Lists the features in use, with those whose rows were found: a start looks for nothing that is not in the list.
    fn list_features(&mut self, report: &mut SalvageReport) {
        let found = [(Feature::Index, self.has_indexes), (Feature::Queue, self.has_queues)];
        for (feature, is_there) in found {
            if is_there && !self.features.contains(&feature) {
                self.features.push(feature);
                let name = feature.name();
                report.made_up.push(format!("the list of features in use did not say `{name}`"));
            }
        }
        if !self.features.is_empty() {
            self.rows.push((Key::Features.encode(), features::list(&self.features)));
        }
    }

    /// One more than any id that a row speaks of.
    fn next_id(&self) -> u64 {
        let ids = self.accounts.keys().chain(&self.account_uses).chain(self.tables.keys());
        let ids = ids.chain(self.queues.keys()).chain(self.messages.counts.keys());
        let highest = ids.chain(&self.dropped).chain(self.entities.keys()).max();
        let seen = highest.map_or(1, |id| id.saturating_add(1));
        seen.max(self.sequence.unwrap_or(1))
    }

    fn owner_of_orphans(&mut self, next: &mut u64, report: &mut SalvageReport) -> u64 {
        let mut accounts = self.accounts.keys();
        if let (Some(only), None) = (accounts.next(), accounts.next()) {
            return *only;
        }
        let id = *next;
        *next += 1;
        self.add_account(id, "recovered".to_owned(), report);
        id
    }

    fn add_account(&mut self, id: u64, mut name: String, report: &mut SalvageReport) {
        while self.accounts.values().any(|other| *other == name) {
            name.push('x');
        }
        report.made_up.push(format!("account {name}: its row was lost, and so was its name"));
        self.rows.push((Key::Account { name: &name }.encode(), account::encode(AccountId(id))));
        self.accounts.insert(id, name);
    }

    fn add_table(&mut self, id: u64, account: u64, count: u64, report: &mut SalvageReport) {
        let mut name = format!("Recovered{id}");
        let is_taken = |name: &str| {
            let lower = name.to_ascii_lowercase();
            self.tables.values().any(|(owner, other)| *owner == account && *other == lower)
        };
        while is_taken(&name) {
            name.push('x');
        }
        let owner = &self.accounts[&account];
        report.made_up.push(format!(
            "table {name} of account {owner}: holds {count} entities whose table was lost, with its name and policies"
        ));
        let lower = name.to_ascii_lowercase();
        let record = TableRecord::new(TableId(id), Ticks::MIN_STORED, name.as_str().into());
        self.rows.push((TableRecord::key(AccountId(account), &lower), record.encode()));
        self.tables.insert(id, (account, lower));
    }

    fn add_queue(&mut self, id: u64, account: u64, count: u64, report: &mut SalvageReport) {
        let mut name = format!("recovered-{id}");
        while self.queues.values().any(|(owner, other)| *owner == account && *other == name) {
            name.push('x');
        }
        let owner = &self.accounts[&account];
        report.made_up.push(format!(
            "queue {name} of account {owner}: holds {count} messages whose queue was lost, with its name, metadata and policies"
        ));
        let record = QueueRecord {
            store: StoreId(id),
            created: Ticks::MIN_STORED,
            metadata: Metadata::default(),
            policies: Bytes::new(),
        };
        self.rows.push((QueueRecord::key(AccountId(account), &name), record.encode()));
        self.queues.insert(id, (account, name));
        self.has_queues = true;
    }
}

fn check_entity(owners: &BTreeSet<u64>, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let Ok(Key::Entity { table, .. }) = Key::decode(key) else {
        return Err("its key cannot be read");
    };
    if !owners.contains(&table.0) {
        return Err("it belongs to no table");
    }
    let entity = EntityRef::parse(value).map_err(|_| "its value is no entity")?;
    match entity.properties().all(|property| property.is_ok()) {
        true => Ok(()),
        false => Err("its properties cannot all be read"),
    }
}

/// The new folder.
struct Target {
    engine: EmbeddedEngine,
    runtime: tokio::runtime::Runtime,
    batch: Vec<(Bytes, Bytes)>,
    bytes: usize,
    failure: Option<String>,
}

impl Target {
    fn create(path: &Path) -> Result<Self, SalvageError> {
        let failed = |error: std::io::Error| SalvageError::Write(error.to_string());
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(failed)?;
        let engine = {
            let _inside = runtime.enter();
            EmbeddedEngine::open(path, EmbeddedOptions::default()).map_err(SalvageError::Target)?
        };
        Ok(Self { engine, runtime, batch: Vec::new(), bytes: 0, failure: None })
    }

    fn raise_format(&mut self, format: u32) {
        self.failure = self.engine.raise_format(format).err().map(|error| error.to_string());
    }

    fn put(&mut self, key: Bytes, value: Bytes) {
        self.bytes += key.len() + value.len();
        self.batch.push((key, value));
        if self.batch.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.write();
        }
    }

    fn write(&mut self) {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.batch);
        if self.failure.is_none() && !rows.is_empty() {
            let written = self.runtime.block_on(self.engine.transact(Put(rows)));
            self.failure = written.err().map(|error| error.to_string());
        }
    }

    fn finish(mut self) -> Result<(), SalvageError> {
        self.write();
        self.engine.close();
        self.failure.map_or(Ok(()), |failure| Err(SalvageError::Write(failure)))
    }
}

struct Put(Vec<(Bytes, Bytes)>);

impl Transition for Put {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        &[]
    }

    fn apply(&mut self, _: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<()> {
        for (key, value) in self.0.drain(..) {
            writes.put(key, value);
        }
        Decision::Commit(())
    }
}

#[cfg(test)]
#[path = "salvage_tests.rs"]
mod tests;
