//! Where the log goes: standard error for operators, a file for `--debug`.

use std::path::Path;
use std::sync::Mutex;

use anyhow::Context;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
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

/// A panic is told in the form of the log, with its place: a log for machines must not hold a line that is not.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = tavola_server::panic_message(panic.payload());
        let location = panic.location().map(ToString::to_string);
        tracing::error!(message, location, "panic");
    }));
}
