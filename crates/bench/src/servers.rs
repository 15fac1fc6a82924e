//! Servers as processes: the service, Azurite and the bare server, each on a free port with data of its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tavola_wire::service::Service;

use crate::target::Target;

/// What a server prints before its address.
const LISTENING: &str = "listening at http://";
const START_MAX: Duration = Duration::from_secs(120);
/// Where the conformance suites pin and install Azurite; it is the same one.
const AZURITE_PINNED: &str = "conformance/lib/differential";
const AZURITE_INSTALLED: &str = "conformance/.cache/diff";

/// A server that was started here. It is killed when this is dropped.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn target(&self, name: &str) -> Target {
        Target::new(name, self.address)
    }

    /// Ends the process as `kill -9` does.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Waits for the line that names the address of this service.
    fn announced(mut process: Child, service: &str) -> anyhow::Result<Self> {
        let stdout = process.stdout.take().context("the server's output")?;
        let mut seen = String::new();
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            if let Some((before, address)) = line.split_once(LISTENING)
                && before.contains(service)
            {
                return Ok(Self { process, address: address.trim().parse()? });
            }
            seen.push_str(&line);
        }
        bail!("the server ended before it listened: {seen}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the service on this data folder. Its log goes to a file beside it.
pub fn tavola(binary: &Path, data: &Path) -> anyhow::Result<Server> {
    start_tavola(binary, data, &["--port", "0"], "Table service")
}

/// The same for queues.
pub fn tavola_queues(binary: &Path, data: &Path) -> anyhow::Result<Server> {
    start_tavola(binary, data, &["--services", "queue", "--queuePort", "0"], "Queue service")
}

fn start_tavola(
    binary: &Path,
    data: &Path,
    arguments: &[&str],
    service: &str,
) -> anyhow::Result<Server> {
    let process = command(binary)
        .args(arguments)
        .arg("--data")
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(log_beside(data)?)
        .spawn()
        .with_context(|| format!("starting {}", binary.display()))?;
    Server::announced(process, service)
}

/// Starts the bare server: this same program.
pub fn bare() -> anyhow::Result<Server> {
    let own = std::env::current_exe()?;
    let process = command(&own).args(["bare", "--port", "0"]).stdout(Stdio::piped()).spawn()?;
    Server::announced(process, "bare server")
}

/// Starts a service of Azurite, on disk as it is by default, in this folder.
pub fn azurite(root: &Path, data: &Path, service: Service) -> anyhow::Result<Server> {
    let (program, name) = (azurite_program(root, service)?, service.name());
    fs::create_dir_all(data)?;
    let address = free_address()?;
    let mut process = command(&program)
        .args(["--silent", "--disableTelemetry", &format!("--{name}Host"), "127.0.0.1"])
        .args([format!("--{name}Port"), address.port().to_string()])
        .arg("--location")
        .arg(data)
        .stdout(log_beside(data)?)
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let start = Instant::now();
    while TcpStream::connect(address).is_err() {
        ensure!(process.try_wait()?.is_none(), "Azurite ended before it listened");
        ensure!(start.elapsed() < START_MAX, "Azurite does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(Server { process, address })
}

/// The service's binary: the one given, or one built now.
pub fn tavola_binary(given: Option<&Path>, root: &Path) -> anyhow::Result<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().with_context(|| format!("there is no {}", path.display()));
    }
    let arguments = ["build", "--release", "--locked", "-p", "tavola"];
    let built = Command::new("cargo").args(arguments).current_dir(root).status()?;
    ensure!(built.success(), "the service could not be built");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root.join(target).join("release/tavola"))
}

/// Azurite in the version that the conformance suites pin, installed where they install it.
fn azurite_program(root: &Path, service: Service) -> anyhow::Result<PathBuf> {
    let pinned = root.join(AZURITE_PINNED);
    let installed = match std::env::var_os("TAVOLA_CACHE") {
        Some(cache) => PathBuf::from(cache).join("diff"),
        None => root.join(AZURITE_INSTALLED),
    };
    let program = installed.join("node_modules/.bin").join(format!("azurite-{}", service.name()));
    let lock = "package-lock.json";
    let is_current =
        fs::read(pinned.join(lock))? == fs::read(installed.join(lock)).unwrap_or_default();
    if !(is_current && program.exists()) {
        fs::create_dir_all(&installed)?;
        for file in ["package.json", lock, ".npmrc"] {
            fs::copy(pinned.join(file), installed.join(file))?;
        }
        let mut npm = Command::new("npm");
        npm.args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--prefix",
        ]);
        let done = npm.arg(&installed).status().context("npm is needed to install Azurite")?;
        ensure!(done.success(), "Azurite could not be installed");
    }
    Ok(program)
}

/// The version of Azurite that the conformance suites pin.
pub fn azurite_version(root: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(root.join(AZURITE_PINNED).join("package.json"))?;
    let package: serde_json::Value = serde_json::from_str(&text)?;
    Ok(package["dependencies"]["azurite"].as_str().context("no version of Azurite")?.to_owned())
}

/// A program with nothing of this process's settings for such servers.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("TAVOLA_") || text.starts_with("AZURITE_") {
            command.env_remove(&name);
        }
    }
    command.stdin(Stdio::null());
    command
}

fn log_beside(data: &Path) -> anyhow::Result<File> {
    let path = data.with_extension("log");
    File::options()
        .append(true)
        .create(true)
        .open(&path)
        .with_context(|| format!("writing {}", path.display()))
}

fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
