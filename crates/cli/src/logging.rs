//! Where the log goes: standard error for operators, a file for `--debug`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock};

use anyhow::Context;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::options::LogFormat;
use crate::private;

/// The variable that sets levels, such as `TAVOLA_LOG=debug`.
const LEVELS: &str = "TAVOLA_LOG";
/// Ours; of the storage library only what an operator has to know.
const USUAL_LEVELS: &str = "info,fjall=warn,lsm_tree=warn";

pub(crate) fn start(format: LogFormat, debug: Option<&Path>) -> anyhow::Result<()> {
    let levels = std::env::var(LEVELS).unwrap_or_else(|_| USUAL_LEVELS.to_owned());
    let levels = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(levels)
        .with_context(|| format!("{LEVELS} is not a list of levels"))?;
    let stderr = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let stderr: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => stderr.with_ansi(false).with_filter(levels).boxed(),
        LogFormat::Json => stderr.json().flatten_event(true).with_filter(levels).boxed(),
    };
    let file = debug
        .map(|path| {
            // Made if need be, as Azurite does: it often is the data's folder, which comes later.
            let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            let file = folder
                .and_then(|()| private::append_to(path))
                .with_context(|| format!("cannot write the debug log {}", path.display()))?;
            let layer = fmt::layer().with_writer(Mutex::new(file)).with_ansi(false);
            anyhow::Ok(layer.with_filter(LevelFilter::DEBUG))
        })
        .transpose()?;
    tracing_subscriber::registry().with(stderr).with(file).init();
    log_panics();
    Ok(())
}

/// The form that was asked for, as soon as it is known: for what is told outside of the log.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

pub(crate) fn set_format(format: LogFormat) {
    let _ = FORMAT.set(format);
}

/// Tells why the program ends: with its causes, on one line, and without a trace of calls that would tell a user nothing.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let text = with_causes(error);
    let line = match FORMAT.get() {
        Some(LogFormat::Json) => json_line("ERROR", &text),
        _ => format!("Error: {text}\n"),
    };
    // Nobody may be listening.
    let _ = std::io::stderr().write_all(line.as_bytes());
    ExitCode::FAILURE
}

/// An error and its causes, without those that were told by what they caused.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Tells what is wrong with the arguments, or what was asked for by `--help` and `--version`.
pub(crate) fn report_usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && asks_for_json(std::env::args()) {
        let line = json_line("ERROR", error.to_string().trim());
        let _ = std::io::stderr().write_all(line.as_bytes());
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Whether arguments that could not be read ask for JSON, or the environment does.
fn asks_for_json(arguments: impl Iterator<Item = String>) -> bool {
    let arguments: Vec<_> = arguments.collect();
    let in_one = arguments.iter().any(|argument| argument == "--log-format=json");
    let in_two = arguments.windows(2).any(|pair| pair[0] == "--log-format" && pair[1] == "json");
    in_one || in_two || std::env::var("TAVOLA_LOG_FORMAT").is_ok_and(|format| format == "json")
}

/// A line in the form of the log, for what is not logged.
pub(crate) fn json_line(level: &str, message: &str) -> String {
    let mut timestamp = String::new();
    // It cannot fail into a string, and a line without its time is better than none.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let text = |text: &str| serde_json::Value::from(text);
    let (timestamp, level, message) = (text(&timestamp), text(level), text(message));
    format!("{{\"timestamp\":{timestamp},\"level\":{level},\"message\":{message}}}\n")
}

/// A panic is told in the form of the log, with its place: a log for machines must not hold a line that is not.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = tavola_server::panic_message(panic.payload());
        let location = panic.location().map(ToString::to_string);
        tracing::error!(message, location, "panic");
    }));
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = anyhow!("the connection is refused");
        let error = cause.context("it cannot be sent: the connection is refused");
        assert_eq!(
            with_causes(&error.context("cannot read the index")),
            "cannot read the index: it cannot be sent: the connection is refused"
        );
        let different = anyhow!("no such file").context("cannot read it");
        assert_eq!(with_causes(&different), "cannot read it: no such file");
    }
}
