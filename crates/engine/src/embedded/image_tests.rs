//! Crash images: what a power cut at any moment leaves behind opens, with a prefix of the history that holds all
//! that had been acknowledged.
//!
//! A child process writes without end. The parent stops it (SIGSTOP) at random moments and copies its folder, so
//! that the copy is the state of one instant: what a kill at that instant would leave. A power cut may leave less,
//! namely not what was not yet synced: so each image is also tried with the newest journal cut, and with sectors
//! zeroed, behind the last batch that the child was known to have acknowledged, and with damage in files that no
//! manifest names yet.
//!
//! Every transaction takes the next number from a counter row, and writes what follows from that number alone. So the
//! rows of an image must be exactly those of the first `counter` transactions, no more and no less, and the counter must
//! not be below the last acknowledged number. A second writer fills ranges and drops them.
//!
//! `TAVOLA_IMAGES=500` sets the number of images, `TAVOLA_TEST_SEED` the seed; both are printed.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::*;
use crate::conformance::{Apply, put, random, range, rows};
use crate::embedded::files::{journal, manifest};
use crate::{Decision, WriteSet};

const IMAGES: u64 = 16;
/// In a longer run, every this many images one is taken just after a rotation of the journal: it comes after 64 MB, and
/// the old journal goes with the next flush.
const ROTATION_EVERY: u64 = 20;
const FOLDER: &str = "TAVOLA_IMAGES_FOLDER";
const COUNTER: &[u8] = b"counter";
const SLOTS: u64 = 3000;
const WRITERS: usize = 6;
/// Rows of one transaction of the second writer, and transactions before it drops them.
const CHUNK: usize = 400;
const CHUNKS: usize = 3;
const SECTOR: usize = 512;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stderr, reason = "a long run is asked what it has seen")]
async fn every_crash_image_opens_with_all_that_was_acknowledged() {
    let images: u64 = number_from("TAVOLA_IMAGES").unwrap_or(IMAGES);
    let seed = number_from("TAVOLA_TEST_SEED").unwrap_or(11);
    let told = format!("TAVOLA_IMAGES={images} TAVOLA_TEST_SEED={seed}");
    let mut state = seeded(seed);
    let home = tempfile::tempdir().unwrap();
    let mut history = History::default();
    let mut seen = Seen::default();
    let mut running = Running::start(home.path());
    for image in 0..images {
        running.wait_for(1 + random(&mut state) % 400);
        if images > IMAGES && image % ROTATION_EVERY == 0 {
            running.wait_for_rotation();
        }
        // A moment within whatever it is doing.
        thread::sleep(Duration::from_micros(random(&mut state) % 2000));
        running.stop();
        let moment = Moment::of(&running.data(), &running.acknowledged());
        for damage in [Damage::None, Damage::draw(&mut state)] {
            let told = format!("image {image}, {damage:?}, {told}");
            let copy = moment.copy(home.path(), damage, &mut state);
            let is_dropping =
                check(copy.path(), &mut history, &running.acknowledged(), &told).await;
            seen.add(&moment, damage, is_dropping);
        }
        running.go_on();
    }
    eprintln!("{told}: {seen:?}");
    assert!(
        seen.unfinished_tables > 0,
        "no image was taken during a flush or a compaction: {seen:?}"
    );
    assert!(seen.torn_tails > 0, "no image had a torn tail: {seen:?}");
    if images > IMAGES {
        assert!(seen.journals > 0 && seen.drops > 0, "{seen:?}");
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// What the images were taken of.
#[derive(Debug, Default)]
struct Seen {
    images: usize,
    /// During a flush or a compaction.
    unfinished_tables: usize,
    /// With a journal that waits to be flushed beside the newest one.
    journals: usize,
    /// While a range was being dropped.
    drops: usize,
    /// With bytes behind what was acknowledged.
    tails: usize,
    /// The same, damaged.
    torn_tails: usize,
}

impl Seen {
    fn add(&mut self, moment: &Moment, damage: Damage, is_dropping: bool) {
        let has_tail = moment.synced < moment.written;
        self.images += 1;
        self.unfinished_tables += usize::from(!moment.unnamed.is_empty());
        self.journals += usize::from(moment.journals > 1);
        self.drops += usize::from(is_dropping);
        self.tails += usize::from(has_tail);
        self.torn_tails += usize::from(has_tail && damage.tears());
    }
}

/// What happens to an image beyond being copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    None,
    Cut,
    Zeroed,
    CutAndZeroed,
}

impl Damage {
    fn draw(state: &mut u64) -> Self {
        [Self::Cut, Self::Zeroed, Self::CutAndZeroed][random(state) as usize % 3]
    }

    fn tears(self) -> bool {
        self != Self::None
    }

    /// Damages what lies between what was surely synced and the end of what was written.
    fn apply(self, journal: &mut Vec<u8>, synced: usize, written: usize, state: &mut u64) {
        let place = |state: &mut u64| synced + random(state) as usize % (written - synced);
        if written == synced {
            return;
        }
        if matches!(self, Self::Zeroed | Self::CutAndZeroed) {
            for _ in 0..1 + random(state) % 3 {
                let sector = place(state) / SECTOR * SECTOR;
                let end = (sector + SECTOR).min(journal.len());
                journal[sector.max(synced)..end].fill(0);
            }
        }
        if matches!(self, Self::Cut | Self::CutAndZeroed) {
            journal.truncate(place(state));
        }
    }
}

/// A stopped folder.
struct Moment {
    data: PathBuf,
    newest: PathBuf,
    journals: usize,
    /// Where the batch ends that holds the last acknowledged number, and where the zeros begin.
    synced: usize,
    written: usize,
    /// Files that no manifest names.
    unnamed: HashSet<PathBuf>,
}

impl Moment {
    fn of(data: &Path, acknowledged: &Acknowledged) -> Self {
        let store = data.join("store");
        let journals = journal::list(&store).unwrap();
        let newest = journals.last().expect("a journal").clone();
        let bytes = fs::read(&newest).unwrap();
        let written = journal::content(&bytes).len();
        let synced = synced(&bytes, acknowledged);
        let trees = manifest::trees(&store).unwrap();
        let named: HashSet<PathBuf> = trees
            .into_iter()
            .flat_map(|tree| tree.tables.into_iter().chain(tree.values))
            .map(|file| file.path)
            .collect();
        let unnamed =
            files(data).into_iter().filter(|path| is_table(path) && !named.contains(path));
        let unnamed = unnamed.collect();
        Self { data: data.into(), newest, journals: journals.len(), synced, written, unnamed }
    }

    /// Copies the folder. Files that are never written again are only linked.
    fn copy(&self, home: &Path, damage: Damage, state: &mut u64) -> tempfile::TempDir {
        let copy = tempfile::tempdir_in(home).unwrap();
        for path in files(&self.data) {
            let target = copy.path().join(path.strip_prefix(&self.data).unwrap());
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            if is_table(&path) && !self.unnamed.contains(&path) {
                fs::hard_link(&path, &target).unwrap();
                continue;
            }
            let mut bytes = fs::read(&path).unwrap();
            let full = bytes.len();
            if path == self.newest {
                damage.apply(&mut bytes, self.synced, self.written, state);
            } else if damage.tears() && self.unnamed.contains(&path) && !bytes.is_empty() {
                let start = random(state) as usize % bytes.len();
                bytes[start..].fill(0);
            }
            if path == self.newest {
                bytes.truncate(self.written);
            }
            let file = File::create(&target).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            // Some journals keep their preallocated zeros.
            if damage == Damage::Zeroed {
                file.set_len(full as u64).unwrap();
            }
        }
        copy
    }
}

/// Where the last batch ends that must be on the disk: because something in it was acknowledged, or because a later one
/// was begun, which the committer does only when the one before it is synced. A batch is synced as a whole, so
/// the first one that reaches the last acknowledged number holds it.
fn synced(journal: &[u8], acknowledged: &Acknowledged) -> usize {
    let written = journal::content(journal).len();
    let mut end_of_numbers = None;
    let mut synced = 0;
    for (end, entries) in journal::batches(journal) {
        for (key, value) in entries {
            if key == COUNTER && decode(value) >= acknowledged.number {
                end_of_numbers.get_or_insert(end);
            }
            if step_of(key).is_some_and(|step| step <= acknowledged.steps) {
                synced = end;
            }
        }
        if end < written {
            synced = end;
        }
    }
    synced.max(end_of_numbers.unwrap_or(0))
}

fn is_table(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name == "tables" || name == "blobs")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut found): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    found.extend(folders.iter().flat_map(|folder| files(folder)));
    found
}

/// Opens an image and compares it with the history; true if it was taken while a range was being dropped.
async fn check(
    image: &Path,
    history: &mut History,
    acknowledged: &Acknowledged,
    told: &str,
) -> bool {
    let engine = EmbeddedEngine::open(image, options())
        .unwrap_or_else(|error| panic!("does not open: {error} ({told})"));
    let counter = engine.get(COUNTER).await.unwrap().map_or(0, |value| decode(&value));
    assert!(
        counter >= acknowledged.number,
        "{} was acknowledged, the image ends with {counter} ({told})",
        acknowledged.number
    );
    let expected = history.rows_after(counter);
    let found = rows(&engine, range("r/", "r0")).await;
    assert_eq!(found.len(), expected.len(), "{told}");
    for ((key, value), (slot, number)) in found.iter().zip(&expected) {
        assert_eq!(*key, slot_key(*slot), "{told}");
        assert!(*value == value_of(*number, *slot), "{key} does not hold number {number} ({told})");
    }
    // By key as well: a scan does not ask the filters.
    for (slot, number) in expected.iter().step_by(37) {
        let value = engine.get(slot_key(*slot).as_bytes()).await.unwrap();
        assert!(value == Some(value_of(*number, *slot)), "{} ({told})", slot_key(*slot));
    }
    let is_dropping = check_steps(&engine, acknowledged, told).await;
    put(&engine, "after", "the crash").await;
    is_dropping
}

/// Checks what the second writer wrote and dropped; true if it was just dropping.
async fn check_steps(engine: &EmbeddedEngine, acknowledged: &Acknowledged, told: &str) -> bool {
    let marks = rows(engine, range("step/", "step0")).await;
    let steps = marks.len() as u64;
    assert!(marks.iter().zip(1..).all(|((key, _), step)| step_of(key.as_bytes()) == Some(step)));
    assert!(steps >= acknowledged.steps, "{} steps of {steps} ({told})", acknowledged.steps);
    let mut expected = Vec::new();
    // A round is its chunks, the word that the range is about to be dropped, and the word that it was.
    let (round, step) = (steps / ROUND_STEPS, steps % ROUND_STEPS);
    let is_dropping = step == CHUNKS as u64 + 1;
    if !is_dropping {
        for row in 0..(step as usize).min(CHUNKS) * CHUNK {
            expected.push(drop_key(round, row));
        }
    }
    let found = rows(engine, range("drop/", "drop0")).await;
    assert!(found.iter().all(|(key, value)| *value == key.repeat(3)), "{told}");
    if is_dropping {
        let prefix = drop_prefix(round);
        assert!(found.iter().all(|(key, _)| key.starts_with(&prefix)), "{told}");
    } else {
        let found: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
        assert!(found == expected, "{} rows, not {} ({told})", found.len(), expected.len());
    }
    is_dropping
}

/// Steps of a round of the second writer.
const ROUND_STEPS: u64 = CHUNKS as u64 + 2;

fn step_key(step: u64) -> String {
    format!("step/{step:08}")
}

fn step_of(key: &[u8]) -> Option<u64> {
    std::str::from_utf8(key.strip_prefix(b"step/")?).ok()?.parse().ok()
}

fn drop_prefix(round: u64) -> String {
    format!("drop/{round:06}/")
}

fn drop_key(round: u64, row: usize) -> String {
    format!("{}{row:06}", drop_prefix(round))
}

fn slot_key(slot: u64) -> String {
    format!("r/{slot:06}")
}

fn decode(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

/// What transaction `number` does: the slots it writes, and the one it deletes.
fn effects(number: u64) -> (Vec<u64>, Option<u64>) {
    let mut state = seeded(number);
    let count = 1 + random(&mut state) % 3;
    let mut slots: Vec<u64> = (0..count).map(|_| random(&mut state) % SLOTS).collect();
    slots.sort_unstable();
    slots.dedup();
    let deleted = random(&mut state) % SLOTS;
    let deletes = random(&mut state).is_multiple_of(4) && !slots.contains(&deleted);
    (slots, deletes.then_some(deleted))
}

/// Mostly small, sometimes large enough for a value file.
fn value_of(number: u64, slot: u64) -> Bytes {
    let mut state = seeded(number ^ slot << 32);
    let pattern: Vec<u8> = (0..8).flat_map(|_| random(&mut state).to_le_bytes()).collect();
    let repeats = match random(&mut state) % 64 {
        0 => 4000,
        1..4 => 700,
        other => other % 16,
    };
    pattern.repeat(repeats as usize).into()
}

/// A start for a sequence that differs much for numbers that differ little.
fn seeded(number: u64) -> u64 {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    random(&mut state);
    state
}

/// Who wrote each slot when; grows as images show higher numbers.
#[derive(Default)]
struct History {
    numbers: u64,
    /// For each slot the numbers that wrote it, and whether they deleted it.
    slots: BTreeMap<u64, Vec<(u64, bool)>>,
}

impl History {
    /// Each slot that holds a value after `counter` transactions, and the number that wrote it.
    fn rows_after(&mut self, counter: u64) -> Vec<(u64, u64)> {
        while self.numbers < counter {
            self.numbers += 1;
            let (written, deleted) = effects(self.numbers);
            let written = written.into_iter().map(|slot| (slot, true));
            for (slot, is_there) in written.chain(deleted.map(|slot| (slot, false))) {
                self.slots.entry(slot).or_default().push((self.numbers, is_there));
            }
        }
        let at = |changes: &Vec<(u64, bool)>| {
            let before = changes.partition_point(|(number, _)| *number <= counter);
            let (number, is_there) = *changes[..before].last()?;
            is_there.then_some(number)
        };
        self.slots.iter().filter_map(|(slot, changes)| Some((*slot, at(changes)?))).collect()
    }
}

fn options() -> EmbeddedOptions {
    // Small, so that flushes and compactions run all the time.
    EmbeddedOptions {
        memtable_bytes: 512 * 1024,
        cache_bytes: 1 << 20,
        ..EmbeddedOptions::default()
    }
}

/// The child, and the parent's hold on it.
struct Running {
    child: Child,
    home: PathBuf,
    acknowledgements: File,
    last: u64,
}

/// What the child had acknowledged.
struct Acknowledged {
    number: u64,
    steps: u64,
}

impl Running {
    fn start(home: &Path) -> Self {
        let acknowledgements = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(home.join("acknowledged"))
            .unwrap();
        acknowledgements.write_all_at(&[0; 16], 0).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["embedded::image_tests::image_child", "--exact", "--nocapture"])
            .env(FOLDER, home)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, home: home.into(), acknowledgements, last: 0 }
    }

    fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    fn acknowledged(&self) -> Acknowledged {
        let mut bytes = [0; 16];
        self.acknowledgements.read_exact_at(&mut bytes, 0).unwrap();
        Acknowledged { number: decode(&bytes[..8]), steps: decode(&bytes[8..]) }
    }

    /// Waits for that many more acknowledgements.
    fn wait_for(&mut self, more: u64) {
        while self.acknowledged().number < self.last + more {
            assert!(self.child.try_wait().unwrap().is_none(), "the child ended by itself");
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits until there is more than one journal.
    fn wait_for_rotation(&mut self) {
        let store = self.data().join("store");
        while journal::list(&store).map_or(0, |journals| journals.len()) < 2 {
            assert!(self.child.try_wait().unwrap().is_none(), "the child ended by itself");
            thread::sleep(Duration::from_micros(50));
        }
    }

    /// Stops the child, with all its threads.
    fn stop(&mut self) {
        self.signal("-STOP");
        let tasks = PathBuf::from(format!("/proc/{}/task", self.child.id()));
        let is_stopped = |task: io::Result<fs::DirEntry>| {
            let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 't']))
        };
        if !tasks.exists() {
            // Another system: it stops threads on their next way out of the kernel.
            thread::sleep(Duration::from_millis(100));
        }
        while tasks.exists() && !fs::read_dir(&tasks).unwrap().all(is_stopped) {
            thread::sleep(Duration::from_micros(100));
        }
        self.last = self.acknowledged().number;
    }

    fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child of the test above: writes and drops until it is killed. Does nothing unless told where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_child() {
    let Some(home) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let mut engine = EmbeddedEngine::open(home.join("data"), options()).unwrap();
    // Some by the committer, some inline.
    Arc::get_mut(&mut engine.shared).unwrap().inline_commits.allow_everybody();
    let told = OpenOptions::new().write(true).open(home.join("acknowledged")).unwrap();
    let told = Arc::new((told, Mutex::new(0)));
    for _ in 0..WRITERS {
        let (engine, told) = (engine.clone(), Arc::clone(&told));
        tokio::spawn(async move {
            loop {
                let number = engine.transact(Apply::new([COUNTER], take_number)).await.unwrap();
                let mut last = told.1.lock().unwrap();
                *last = number.max(*last);
                told.0.write_all_at(&last.to_le_bytes(), 0).unwrap();
            }
        });
    }
    for round in 0.. {
        for chunk in 0..CHUNKS {
            step(&engine, &told.0, round * ROUND_STEPS + chunk as u64, move |writes| {
                for row in chunk * CHUNK..(chunk + 1) * CHUNK {
                    let key = drop_key(round, row);
                    writes.put(key.clone().into(), key.repeat(3).into());
                }
            })
            .await;
        }
        step(&engine, &told.0, round * ROUND_STEPS + CHUNKS as u64, |_| {}).await;
        let prefix = drop_prefix(round);
        engine.drop_range(range(&prefix, &format!("drop/{round:06}0"))).await.unwrap();
        step(&engine, &told.0, round * ROUND_STEPS + CHUNKS as u64 + 1, |_| {}).await;
    }
}

fn take_number(values: &[Option<Bytes>], writes: &mut WriteSet) -> Decision<u64> {
    let number = values[0].as_ref().map_or(0, |value| decode(value)) + 1;
    let (slots, deleted) = effects(number);
    writes.put(Bytes::from_static(COUNTER), Bytes::copy_from_slice(&number.to_le_bytes()));
    for slot in slots {
        writes.put(slot_key(slot).into(), value_of(number, slot));
    }
    if let Some(slot) = deleted {
        writes.delete(slot_key(slot).into());
    }
    Decision::Commit(number)
}

/// Writes one step and its mark, then says that it is acknowledged.
async fn step(
    engine: &EmbeddedEngine,
    told: &File,
    before: u64,
    write: impl Fn(&mut WriteSet) + Send + 'static,
) {
    let transition = Apply::new([""; 0], move |_, writes: &mut WriteSet| {
        writes.put(step_key(before + 1).into(), "done".into());
        write(writes);
        Decision::Commit(())
    });
    engine.transact(transition).await.unwrap();
    told.write_all_at(&(before + 1).to_le_bytes(), 8).unwrap();
}
