//! The access log: a line for every request, written by a thread of its own.
//!
//! No request waits for it. Lines go through a queue that has a bound; what finds no room in it is left out and counted.
//! A line holds neither a signature nor anything of a body: of the URL it has the path without what looks like a
//! signature, and never the query. The path names the keys of entities, so a new file is its owner's alone.
//!
//! There is no rotation in here: rename the file and send SIGHUP, and a new one is begun.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;

use crate::config::{AccessLogConfig, AccessLogTarget, LogFormat};
use crate::request::redact::shortened;

/// Lines that wait to be written: some seconds of a busy server, a few megabytes.
const QUEUE_LINES_MAX: usize = 16_384;
/// Failures to write are told no more often than this.
const WARNING_EVERY: Duration = Duration::from_secs(60);
/// How long a stop waits for the last lines.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// Texts of clients are cut off here.
const TEXT_BYTES_MAX: usize = 1024;

/// Why the access log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the access log {path}")]
pub struct AccessLogError {
    path: String,
    source: io::Error,
}

#[derive(Debug)]
pub(crate) struct AccessLog {
    format: LogFormat,
    messages: SyncSender<Message>,
    /// Lines that were left out.
    pub(crate) dropped: Counter,
}

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    Reopen,
    /// Written and flushed when this is answered.
    Flush(SyncSender<()>),
}

/// What a line says.
pub(crate) struct Entry<'a> {
    pub(crate) time: &'a str,
    pub(crate) peer: &'a str,
    pub(crate) account: &'a str,
    pub(crate) service: &'a str,
    pub(crate) operation: &'a str,
    pub(crate) method: &'a str,
    /// The path, redacted.
    pub(crate) resource: &'a str,
    /// That of the failed part where a batch failed.
    pub(crate) status: u16,
    pub(crate) code: Option<&'a str>,
    /// Which part of a batch failed.
    pub(crate) part: Option<usize>,
    pub(crate) refusal: Option<&'a str>,
    /// Of queries: examined and returned.
    pub(crate) rows: Option<(u64, u64)>,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) duration: Duration,
    pub(crate) request_id: &'a str,
    pub(crate) client_request_id: Option<&'a str>,
    pub(crate) user_agent: Option<&'a str>,
}

impl AccessLog {
    pub(crate) fn open(config: &AccessLogConfig) -> Result<Self, AccessLogError> {
        let output = Output::open(&config.target)?;
        let (messages, received) = sync_channel(QUEUE_LINES_MAX);
        let dropped = Counter::default();
        let writer = Writer { output, dropped: dropped.clone(), warned: None };
        let error = |source| AccessLogError { path: config.target.name(), source };
        let run = move || writer.run(&received);
        thread::Builder::new().name("tavola-access".into()).spawn(run).map_err(error)?;
        Ok(Self { format: config.format, messages, dropped })
    }

    pub(crate) fn write(&self, entry: &Entry<'_>) {
        let line = Message::Line(entry.line(self.format));
        if self.messages.try_send(line).is_err() {
            self.dropped.inc();
        }
    }

    /// Begins a new file where the old one was renamed.
    pub(crate) fn reopen(&self) {
        self.send(Message::Reopen);
    }

    /// Waits until what was logged is written, but not for long.
    pub(crate) fn flush(&self) {
        let (done, flushed) = sync_channel(1);
        self.send(Message::Flush(done));
        let _ = flushed.recv_timeout(CLOSE_WAIT);
    }

    /// Sends what must not be left out, unless the writer hangs.
    fn send(&self, mut message: Message) {
        let until = Instant::now() + CLOSE_WAIT;
        while let Err(TrySendError::Full(refused)) = self.messages.try_send(message) {
            if Instant::now() >= until {
                return;
            }
            message = refused;
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Where lines go.
enum Output {
    Stdout(BufWriter<Stdout>),
    File { path: PathBuf, file: BufWriter<File> },
}

impl Output {
    fn open(target: &AccessLogTarget) -> Result<Self, AccessLogError> {
        Ok(match target {
            AccessLogTarget::Stdout => Self::Stdout(BufWriter::new(io::stdout())),
            AccessLogTarget::File(path) => {
                let file = open_file(path)
                    .map_err(|source| AccessLogError { path: target.name(), source })?;
                Self::File { path: path.clone(), file: BufWriter::new(file) }
            }
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdout(stdout) => stdout,
            Self::File { file, .. } => file,
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Self::File { path, file } = self {
            file.flush()?;
            *file = BufWriter::new(open_file(path)?);
        }
        Ok(())
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The thread that writes.
struct Writer {
    output: Output,
    dropped: Counter,
    warned: Option<Instant>,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let message = match messages.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {
                    // Nobody waits for lines, but who looks should find the last one.
                    let flushed = self.output.writer().flush();
                    self.note(flushed);
                    let Ok(message) = messages.recv() else { return };
                    message
                }
            };
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Line(line) => {
                let written = self.output.writer().write_all(&line);
                if written.is_err() {
                    self.dropped.inc();
                }
                self.note(written);
            }
            Message::Reopen => {
                let reopened = self.output.reopen();
                self.note(reopened);
            }
            Message::Flush(done) => {
                let flushed = self.output.writer().flush();
                self.note(flushed);
                let _ = done.send(());
            }
        }
    }

    fn note(&mut self, written: io::Result<()>) {
        let Err(error) = written else { return };
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARNING_EVERY) {
            self.warned = Some(Instant::now());
            tracing::warn!(%error, "cannot write the access log");
        }
    }
}

impl Entry<'_> {
    fn line(&self, format: LogFormat) -> Vec<u8> {
        let mut line = Line::new(format);
        line.text("time", Some(self.time));
        line.text("peer", Some(self.peer));
        line.text("account", Some(self.account));
        line.text("service", Some(self.service));
        line.text("operation", Some(self.operation));
        line.text("method", Some(self.method));
        line.text("resource", Some(self.resource));
        line.number("status", Some(self.status.into()));
        line.text("code", self.code);
        line.number("part", self.part.map(|part| part as u64));
        line.text("refusal", self.refusal);
        line.number("rows_examined", self.rows.map(|(examined, _)| examined));
        line.number("rows_returned", self.rows.map(|(_, returned)| returned));
        line.number("request_bytes", Some(self.request_bytes));
        line.number("response_bytes", Some(self.response_bytes));
        let microseconds = u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX);
        line.number("duration_us", Some(microseconds));
        line.text("request_id", Some(self.request_id));
        line.text("client_request_id", self.client_request_id);
        line.text("user_agent", self.user_agent);
        line.end()
    }
}

/// A line in the making. What is absent is left out.
struct Line {
    format: LogFormat,
    bytes: Vec<u8>,
}

impl Line {
    fn new(format: LogFormat) -> Self {
        let mut bytes = Vec::with_capacity(512);
        if format == LogFormat::Json {
            bytes.push(b'{');
        }
        Self { format, bytes }
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        let value = shortened(value, TEXT_BYTES_MAX);
        self.name(name);
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'=');
        if self.format == LogFormat::Text && !value.is_empty() && value.bytes().all(is_plain) {
            self.bytes.extend_from_slice(value.as_bytes());
        } else {
            // Escaped, so that no client can begin a line of its own.
            serde_json::to_writer(&mut self.bytes, value).expect("a text is written to memory");
        }
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        let Some(value) = value else { return };
        self.name(name);
        write!(self.bytes, "{value}").expect("a number is written to memory");
    }

    fn name(&mut self, name: &str) {
        let (separator, quote, assignment): (&[u8], &[u8], &[u8]) = match self.format {
            LogFormat::Text => (b" ", b"", b"="),
            LogFormat::Json => (b",", b"\"", b":"),
        };
        let is_first = matches!(self.bytes.as_slice(), [] | [b'{']);
        if !is_first {
            self.bytes.extend_from_slice(separator);
        }
        for part in [quote, name.as_bytes(), quote, assignment] {
            self.bytes.extend_from_slice(part);
        }
    }

    fn end(mut self) -> Vec<u8> {
        if self.format == LogFormat::Json {
            self.bytes.push(b'}');
        }
        self.bytes.push(b'\n');
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(agent: &'a str) -> Entry<'a> {
        Entry {
            time: "2026-11-18T02:00:00.0000000Z",
            peer: "127.0.0.1:5000",
            account: "acct",
            service: "table",
            operation: "QueryEntities",
            method: "GET",
            resource: "/acct/t()",
            status: 200,
            code: None,
            part: None,
            refusal: None,
            rows: Some((10, 3)),
            request_bytes: 0,
            response_bytes: 512,
            duration: Duration::from_micros(1234),
            request_id: "id",
            client_request_id: None,
            user_agent: Some(agent),
        }
    }

    #[test]
    fn a_line_is_one_line_in_both_forms() {
        let text = String::from_utf8(entry("a \"b\"\nc=d").line(LogFormat::Text)).unwrap();
        assert_eq!(
            text,
            "time=2026-11-18T02:00:00.0000000Z peer=127.0.0.1:5000 account=acct service=table \
             operation=QueryEntities method=GET resource=/acct/t() status=200 rows_examined=10 \
             rows_returned=3 request_bytes=0 response_bytes=512 duration_us=1234 request_id=id \
             user_agent=\"a \\\"b\\\"\\nc=d\"\n"
        );
        let json = entry("a \"b\"\nc\u{1}").line(LogFormat::Json);
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["user_agent"], "a \"b\"\nc\u{1}");
        assert_eq!((&json["status"], &json["rows_returned"]), (&200.into(), &3.into()));
        assert!(json.get("code").is_none());
    }

    /// A disk that hangs costs lines, never requests.
    #[test]
    fn what_finds_no_room_is_left_out_and_counted() {
        let (messages, received) = sync_channel(2);
        let log = AccessLog { format: LogFormat::Text, messages, dropped: Counter::default() };
        for _ in 0..5 {
            log.write(&entry("agent"));
        }
        assert_eq!(log.dropped.get(), 3);
        drop(received);
        log.write(&entry("agent"));
        assert_eq!(log.dropped.get(), 4);
    }

    #[test]
    fn a_renamed_file_is_followed_by_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("logs/access.log"), folder.path().join("old.log"));
        let target = AccessLogTarget::File(path.clone());
        let log = AccessLog::open(&AccessLogConfig { target, format: LogFormat::Text }).unwrap();
        log.write(&entry("first"));
        log.flush();
        std::fs::rename(&path, &old).unwrap();
        log.write(&entry("second"));
        log.reopen();
        log.write(&entry("third"));
        log.flush();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert!(read(&old).contains("first") && read(&old).contains("second"));
        assert!(read(&path).contains("third") && !read(&path).contains("second"));
    }
}
