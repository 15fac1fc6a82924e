//! Faults of the disk: full, read-only, failing syncs, no file descriptors left.
//!
//! Whatever happens: the client is told, nothing acknowledged is lost, reads go on while the process does, and the
//! service either recovers by itself or stops with a word and an exit code. Most faults are injected below the C
//! library (`faults.c`); a really full disk is a small tmpfs in a mount namespace, where the machine allows one.
//! Linux only.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::admin::plain_get;
use crate::support::{Client, Launch, Response, Server};
use crate::table::indexes;

/// How often a test looks for what must come; far more than it takes.
const LOOKS: usize = 600;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Rows from one client after which the thread that serves it commits by itself.
const INLINE_ROWS: usize = 400;

/// The name of the threads that serve connections.
const SERVING_THREAD: &str = "tokio-rt-worker";

/// Waits for what must come, and shows the log if it does not.
#[track_caller]
pub(crate) fn wait_until(server: &Server, is_so: impl Fn() -> bool) {
    let has_come = (0..LOOKS).any(|_| {
        std::thread::sleep(BETWEEN_LOOKS);
        is_so()
    });
    assert!(has_come, "{}", server.log());
}

/// Disk faults that can be switched on and off.
struct Faults {
    folder: tempfile::TempDir,
    library: PathBuf,
}

impl Faults {
    /// Compiles the library; the compiler is the one that Rust links with.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libfaults.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/server/faults.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
        assert!(compiler.status().expect("a C compiler").success());
        Self { folder, library }
    }

    fn launch(&self) -> Launch {
        let text = |path: &Path| path.to_str().expect("a path").to_owned();
        Launch::new().env("LD_PRELOAD", text(&self.library)).env("FAULTS", text(self.folder.path()))
    }

    fn switch_on(&self, fault: &str) {
        std::fs::write(self.folder.path().join(fault), "").unwrap();
    }

    fn switch_off(&self, fault: &str) {
        std::fs::remove_file(self.folder.path().join(fault)).unwrap();
    }
}

fn row(number: usize) -> serde_json::Value {
    json!({"PartitionKey": "p", "RowKey": format!("{number:06}"), "Number": number})
}

/// An entity of a quarter of a megabyte.
fn large_row(number: usize) -> serde_json::Value {
    let mut entity = row(number);
    for property in 0..8 {
        entity[format!("Text{property}")] = json!("x".repeat(30_000));
    }
    entity
}

/// Inserts large rows until one is not taken, and answers how many were, and how that one was answered.
fn insert_until_refused(
    client: &Client,
    table: &str,
    rows_max: usize,
) -> (usize, std::io::Result<Response>) {
    for number in 0..rows_max {
        let entity = large_row(number);
        let request =
            client.post(format!("/{table}"), &entity).header("Prefer", "return-no-content");
        match request.try_send() {
            Ok(response) if response.status == 204 => {}
            other => return (number, other),
        }
    }
    panic!("{rows_max} rows were taken");
}

/// The rows that were acknowledged are there.
fn assert_rows(client: &Client, table: &str, rows: usize) {
    for number in (0..rows).step_by((rows / 50).max(1)).chain(rows.checked_sub(1)) {
        let entity = client.entity(table, ("p", &format!("{number:06}"))).expect(200).json();
        assert_eq!(entity["Number"], json!(number));
    }
}

/// A fault that hits commits, whoever makes them: the client is told, the process stops and says why, and the next one has
/// everything.
fn assert_stops_and_recovers(fault: &str, reason: &str) {
    assert_stops_and_recovers_after(20, fault, reason);
    assert_stops_and_recovers_after(INLINE_ROWS, fault, reason);
}

fn assert_stops_and_recovers_after(rows: usize, fault: &str, reason: &str) {
    let faults = Faults::new();
    let server = Arc::new(faults.launch().args(["--admin-port", "0"]).start());
    let admin = server.admin_address().unwrap();
    let client = Client::new(&server);
    let table = client.new_table();
    for number in 0..rows {
        client.insert(&table, &row(number)).expect(204);
    }
    faults.switch_on(fault);
    let refused = client.insert(&table, &row(rows));
    // Whether it is on the disk nobody can say, and the client must not be told otherwise.
    refused.expect_error(500, "InternalError");
    // From this very moment nobody should be sent here.
    let ready = plain_get(admin, "/ready").expect(503);
    assert!(ready.text().starts_with("not ready: the storage engine has failed: "), "{ready:?}");
    // Reads go on until the process ends, a moment later.
    if let Ok(read) = client.get(format!("/{table}(PartitionKey='p',RowKey='000007')")).try_send() {
        read.expect(200);
    }
    let status = server.wait();
    assert_eq!(status.code(), Some(1), "{}", server.log());
    let log = server.log();
    assert!(log.contains("the storage engine has failed"), "{log}");
    assert!(log.contains(reason), "{log}");
    faults.switch_off(fault);
    server.start_again();
    let client = Client::new(&server);
    assert_rows(&client, &table, rows);
    client.insert(&table, &row(rows + 1)).expect(204);
}

#[test]
fn a_failed_sync_stops_the_service_and_loses_nothing() {
    assert_stops_and_recovers("sync", "Input/output error");
}

#[test]
fn a_commit_without_room_stops_the_service_and_loses_nothing() {
    assert_stops_and_recovers("full", "No space left on device");
}

#[test]
fn a_disk_that_turns_read_only_stops_the_service_and_loses_nothing() {
    assert_stops_and_recovers("readonly", "Read-only file system");
}

/// While a sync takes its time, whoever reads is served, also when it is one of the server's own threads that waits.
#[test]
fn a_disk_that_stalls_does_not_keep_readers_waiting() {
    let faults = Faults::new();
    let server = Arc::new(faults.launch().start());
    faults.switch_on("quick");
    let threads: Vec<_> = (0..10).map(|_| assert_reads_while_stalled(&faults, &server)).collect();
    let is_possible = std::thread::available_parallelism().unwrap().get() > 1;
    assert!(!is_possible || threads.contains(&SERVING_THREAD), "{threads:?}");
}

/// Reads while an inline commit waits, and answers which thread it was that waited.
fn assert_reads_while_stalled(faults: &Faults, server: &Arc<Server>) -> &'static str {
    let client = Client::new(server);
    let table = client.new_table();
    for number in 0..INLINE_ROWS {
        client.insert(&table, &row(number)).expect(204);
    }
    faults.switch_on("stall");
    let (writers_table, last) = (table.clone(), row(INLINE_ROWS));
    let writer = std::thread::spawn(move || client.insert(&writers_table, &last));
    let mark = |thread: &str| faults.folder.path().join(format!("stalled-{thread}"));
    let waiting = || [SERVING_THREAD, "tavola-commit"].into_iter().find(|name| mark(name).exists());
    wait_until(server, || waiting().is_some());
    let (reader, readers_table) = (Client::new(server), table.clone());
    let reader = std::thread::spawn(move || {
        reader.entity(&readers_table, ("p", "000007")).expect(200);
        let unsynced = format!("{INLINE_ROWS:06}");
        assert_eq!(reader.entity(&readers_table, ("p", &unsynced)).status, 404);
    });
    wait_until(server, || reader.is_finished());
    reader.join().unwrap();
    assert!(!writer.is_finished());
    let thread = waiting().unwrap();
    faults.switch_off("stall");
    writer.join().unwrap().expect(204);
    std::fs::remove_dir(mark(thread)).unwrap();
    assert_rows(&Client::new(server), &table, INLINE_ROWS + 1);
    thread
}

/// Compaction is nobody's request: without room for it the service goes on, and compacts when there is.
#[test]
fn a_compaction_without_room_does_not_stop_the_service() {
    let faults = Faults::new();
    let server = Arc::new(faults.launch().start());
    let client = Client::new(&server);
    let table = client.new_table();
    faults.switch_on("unmergeable");
    let waits = || server.log().contains("compaction waits until there is room");
    // Enough for a flush when it pauses, and again, so that there is something to compact.
    for _ in 0..3 {
        for number in 0..40 {
            let keys = ("p", &*format!("{number:06}"));
            client.put(&table, keys, &large_row(number)).send().expect(204);
        }
        let _ = (0..60).any(|_| {
            std::thread::sleep(BETWEEN_LOOKS);
            waits()
        });
    }
    assert!(waits(), "{}", server.log());
    client.insert(&table, &row(40)).expect(204);
    assert_rows(&client, &table, 41);
    assert!(!server.log().contains("the storage engine has failed"), "{}", server.log());
    faults.switch_off("unmergeable");
    server.restart_cleanly();
    let client = Client::new(&server);
    assert_rows(&client, &table, 41);
    client.insert(&table, &row(41)).expect(204);
}

/// A folder that cannot be written to is not served, and stays as it is.
#[test]
fn a_read_only_folder_is_refused_with_a_word() {
    let faults = Faults::new();
    let server = Arc::new(faults.launch().start());
    let table = Client::new(&server).new_table();
    server.kill();
    faults.switch_on("readonly");
    let launch = faults.launch().args(["--port", "0"]);
    let output = launch.command(server.folder()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("Read-only file system"), "{told}");
    assert!(told.contains("tavola-data"), "{told}");
    faults.switch_off("readonly");
    server.start_again();
    Client::new(&server).query(&table, &[]).send().expect(200);
}

/// A mount namespace with a small disk in it, which lives as long as this.
pub(crate) struct SmallDisk {
    holder: Child,
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` where the machine does not allow it.
    #[expect(clippy::print_stderr, reason = "what is not tested must be told")]
    pub(crate) fn of(megabytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs -o size={megabytes}m,mode=0777 none {} && echo ready && exec sleep 1000000",
            folder.path().display()
        );
        for namespace in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
            let holder = Command::new("unshare")
                .args(namespace)
                .args(["sh", "-c", &script])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut holder) = holder else { continue };
            let mut output = std::io::BufReader::new(holder.stdout.take().unwrap());
            let mut line = String::new();
            let _ = std::io::BufRead::read_line(&mut output, &mut line);
            if line == "ready\n" {
                return Some(Self { holder, folder });
            }
            let _ = holder.kill();
            let _ = holder.wait();
        }
        eprintln!("NOT TESTED: this machine allows no mount namespace (unshare --user --mount)");
        None
    }

    /// Starts a server inside, with its data on the small disk.
    pub(crate) fn launch(&self) -> Launch {
        let holder = self.holder.id().to_string();
        let as_root = ["nsenter", "-m", "-t", &holder];
        let as_user = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", &holder];
        let mut attempt = Command::new(as_root[0]);
        attempt.args(&as_root[1..]).arg("true").stderr(Stdio::null());
        let is_root = attempt.status().is_ok_and(|status| status.success());
        let enter = if is_root { &as_root[..] } else { &as_user[..] };
        let folder = self.folder.path().join("data");
        Launch::new().wrap(enter.iter().copied()).env("TAVOLA_DATA", folder.to_str().unwrap())
    }

    /// A file that takes room.
    pub(crate) fn ballast(&self) -> PathBuf {
        self.file("ballast")
    }

    fn free_bytes(&self) -> usize {
        let asked = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(self.file("")).output();
        let told = String::from_utf8(asked.expect("stat runs").stdout).unwrap();
        told.split_whitespace().map(|number| number.parse::<usize>().unwrap()).product()
    }

    fn file(&self, name: &str) -> PathBuf {
        let inner = self.folder.path().join(name);
        PathBuf::from(format!("/proc/{}/root{}", self.holder.id(), inner.display()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

pub(crate) const MB: usize = 1 << 20;

/// On a nearly full disk writes are refused with a word, reads and deletions go on, and writes are taken again as soon
/// as there is room.
#[test]
fn a_nearly_full_disk_takes_no_writes_until_there_is_room() {
    // The reserve is what a flush of a full memtable takes.
    let Some(disk) = SmallDisk::of(200) else { return };
    std::fs::write(disk.ballast(), vec![1; 130 * MB]).unwrap();
    let server =
        Arc::new(disk.launch().args(["--disk-reserve-mb", "45", "--admin-port", "0"]).start());
    let admin = server.admin_address().unwrap();
    plain_get(admin, "/ready").expect(200);
    let client = Client::new(&server);
    let (table, dropped) = (client.new_table(), client.new_table());
    let (rows, refused) = insert_until_refused(&client, &table, 10_000);
    let refused = refused.expect("an answer").expect_error(503, "ServerBusy");
    assert!(refused.message().contains("nearly full"), "{}", server.log());
    assert!(rows > 10, "{rows}");
    let ready = plain_get(admin, "/ready").expect(503);
    assert!(ready.text().contains("writes are refused for lack of room on the disk"), "{ready:?}");

    assert_rows(&client, &table, rows);
    client.insert(&table, &row(rows)).expect_error(503, "ServerBusy");
    client.remove(&table, ("p", "000000"), "*").expect(204);
    client.drop_table(&dropped).expect(204);
    assert!(server.log().contains("the disk is nearly full"), "{}", server.log());

    // Deletions take room as well, and stop at a quarter of the reserve.
    let (key, more) = (("p", "000001"), disk.file("more ballast"));
    std::fs::write(&more, vec![1; 36 * MB]).unwrap();
    wait_until(&server, || server.log().contains("the disk is all but full"));
    client.remove(&table, key, "*").expect_error(503, "ServerBusy");
    client.drop_table(&table).expect_error(503, "ServerBusy");
    client.entity(&table, key).expect(200);
    std::fs::remove_file(more).unwrap();

    std::fs::remove_file(disk.ballast()).unwrap();
    wait_until(&server, || client.insert(&table, &row(rows)).status == 204);
    plain_get(admin, "/ready").expect(200);
    server.crash_and_restart();
    let client = Client::new(&server);
    client.entity(&table, ("p", "000000")).expect(404);
    for number in [1, rows / 2, rows] {
        client.entity(&table, ("p", &format!("{number:06}"))).expect(200);
    }
}

/// Deletions give their room back while the disk is nearly full: writes are taken again without other help.
#[test]
fn deletions_make_room_on_a_nearly_full_disk() {
    const ROWS: usize = 200;
    let Some(disk) = SmallDisk::of(200) else { return };
    let server = Arc::new(disk.launch().args(["--disk-reserve-mb", "50"]).start());
    let client = Client::new(&server);
    let table = client.new_table();
    for number in 0..ROWS {
        client.insert(&table, &large_row(number)).expect(204);
    }
    // Until all is flushed and merged.
    wait_until(&server, || {
        let free = disk.free_bytes();
        std::thread::sleep(40 * BETWEEN_LOOKS);
        free == disk.free_bytes()
    });
    let ballast = disk.free_bytes() - 40 * MB;
    std::fs::write(disk.ballast(), vec![1; ballast]).unwrap();
    wait_until(&server, || {
        client.insert(&table, &row(ROWS)).status == 503 || {
            client.remove(&table, ("p", &format!("{ROWS:06}")), "*").expect(204);
            false
        }
    });
    for number in 0..ROWS {
        client.remove(&table, ("p", &format!("{number:06}")), "*").expect(204);
    }
    wait_until(&server, || client.insert(&table, &row(ROWS)).status == 204);
    server.crash_and_restart();
    let client = Client::new(&server);
    client.entity(&table, ("p", "000000")).expect(404);
    client.entity(&table, ("p", &format!("{ROWS:06}"))).expect(200);
}

/// A build pauses while there is no room, and goes on by itself; what was readable before can be dropped meanwhile.
#[test]
fn an_index_waits_for_room() {
    let Some(disk) = SmallDisk::of(200) else { return };
    let server = Arc::new(disk.launch().args(["--disk-reserve-mb", "45"]).start());
    let client = Client::new(&server);
    let table = client.new_table();
    for number in 0..2000 {
        client.insert(&table, &row(number)).expect(204);
    }
    let keys = json!({"Keys": "Number"});
    indexes::build(&client, &table, "Before", &keys);
    let client = Client::new(&server);
    // Killed before it is built, and started again without room.
    let name = (0..20).map(|attempt| format!("Index{attempt}")).find(|name| {
        indexes::declare(&client, &table, name, &keys);
        server.kill();
        std::fs::write(disk.ballast(), vec![1; disk.free_bytes() - 40 * MB]).unwrap();
        server.start_again();
        let put = || client.put(&table, ("p", "x"), &json!({})).send().status;
        wait_until(&server, || put() == 503);
        let is_built = indexes::index(&client, &table, name)["State"] == "Readable";
        if is_built {
            std::fs::remove_file(disk.ballast()).unwrap();
            wait_until(&server, || put() == 204);
            client.remove(indexes::INDEXES, (&table, name), "*").expect(204);
        }
        !is_built
    });
    let name = name.expect("one that was not built at once");
    wait_until(&server, || server.log().contains("indexes pause"));
    let refused = client.put(indexes::INDEXES, (&table, "More"), &keys).send();
    refused.expect_error(503, "ServerBusy");
    client.remove(indexes::INDEXES, (&table, "Before"), "*").expect(204);
    assert_eq!(indexes::index(&client, &table, &name)["State"], "Building");
    std::fs::remove_file(disk.ballast()).unwrap();
    indexes::wait_for(&client, &table, &name, "Readable");
    assert!(indexes::verify(&client, &table, &name).starts_with("sound: 200"));
}

/// The smallest disk that is promised to work, in megabytes.
const SMALLEST_DISK: usize = 120;

/// On the smallest disk as on any other: writes are refused in time, reads go on, dropping gives the room back.
#[test]
fn the_smallest_disk_keeps_the_promises() {
    let Some(disk) = SmallDisk::of(SMALLEST_DISK) else { return };
    let server = Arc::new(disk.launch().start());
    for _ in 0..2 {
        let client = Client::new(&server);
        let table = client.new_table();
        let (rows, refused) = insert_until_refused(&client, &table, 10_000);
        refused.expect("an answer").expect_error(503, "ServerBusy");
        assert!(rows > 10, "{rows}");
        assert_rows(&client, &table, rows);
        client.drop_table(&table).expect(204);
        wait_until(&server, || client.create_table("Later").status != 503);
        wait_until(&server, || client.insert("Later", &row(rows)).status != 503);
        server.crash_and_restart();
        let client = Client::new(&server);
        client.entity("Later", ("p", &format!("{rows:06}"))).expect(200);
    }
    assert!(!server.log().contains("the storage engine has failed"), "{}", server.log());
}

/// On less the service says so at once, and how much it needs; who reserves nothing is not asked.
#[test]
fn a_disk_that_is_too_small_is_refused_with_the_number() {
    let Some(disk) = SmallDisk::of(64) else { return };
    let output = disk.launch().args(["--port", "0"]).command(Path::new("/")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("64 MB") && told.contains("120 MB are needed"), "{told}");
    let server = Arc::new(disk.launch().args(["--disk-reserve-mb", "0"]).start());
    Client::new(&server).new_table();
}

/// Without a reserve the disk fills up under a commit, a flush or a compaction: the service stops with a word, and has
/// everything once there is room.
#[test]
fn a_disk_that_is_full_stops_the_service_and_loses_nothing() {
    let Some(disk) = SmallDisk::of(110) else { return };
    std::fs::write(disk.ballast(), vec![1; 50 * MB]).unwrap();
    let server = Arc::new(disk.launch().args(["--disk-reserve-mb", "0"]).start());
    let client = Client::new(&server);
    let table = client.new_table();
    let (rows, refused) = insert_until_refused(&client, &table, 10_000);
    let refused = refused.expect("an answer");
    assert!(matches!(refused.status, 500 | 503), "{refused:?}");
    assert!(refused.code().is_some(), "{refused:?}");
    assert_eq!(server.wait().code(), Some(1), "{}", server.log());
    assert!(server.log().contains("the storage engine has failed"), "{}", server.log());

    std::fs::remove_file(disk.ballast()).unwrap();
    server.start_again();
    let client = Client::new(&server);
    assert_rows(&client, &table, rows);
    client.insert(&table, &json!({"PartitionKey": "p", "RowKey": "later"})).expect(204);
}

/// With few file descriptors, connections beyond their share are refused, and the engine has its own.
#[test]
fn a_shortage_of_file_descriptors_is_not_the_engines() {
    let script = "ulimit -n 128 && exec \"$0\" \"$@\"";
    let server = Arc::new(Launch::new().wrap(["sh", "-c", script]).start());
    let client = Client::new(&server);
    let table = client.new_table();
    let crowd: Vec<_> =
        (0..200).filter_map(|_| TcpStream::connect(server.address()).ok()).collect();
    assert!(crowd.len() > 100, "{}", crowd.len());
    // Those who were served before still are, with rows enough for a flush.
    for number in 0..160 {
        client.insert(&table, &large_row(number)).expect(204);
    }
    assert_rows(&client, &table, 160);
    drop(crowd);
    let other = Client::new(&server);
    wait_until(&server, || {
        let answer = other.get("/Tables").try_send();
        answer.is_ok_and(|answer| answer.status == 200)
    });
    assert!(!server.log().contains("the storage engine has failed"), "{}", server.log());
    server.restart_cleanly();
    assert_rows(&Client::new(&server), &table, 160);
}
