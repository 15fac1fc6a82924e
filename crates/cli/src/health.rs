//! `tavola health`: asks the admin port of a running service, for container health checks.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

/// Longer than a healthy service takes, shorter than an orchestrator waits.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args, Debug)]
pub(crate) struct HealthOptions {
    /// The admin port of the service
    #[arg(long, env = "TAVOLA_ADMIN_PORT", value_name = "PORT")]
    admin_port: u16,
    /// Ask whether it takes requests, not only whether it lives
    #[arg(long)]
    ready: bool,
}

pub(crate) fn run(options: &HealthOptions) -> anyhow::Result<()> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), options.admin_port);
    let path = if options.ready { "/ready" } else { "/health" };
    let answer = ask(address, path).with_context(|| format!("no answer from {address}"))?;
    // The last line says why.
    let reason = answer.trim_end().lines().last().unwrap_or_default();
    let is_well = answer.starts_with("HTTP/1.1 200");
    ensure!(is_well, "the service at {address} is not well: {reason}");
    Ok(())
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(4096).read_to_string(&mut answer)?;
    Ok(answer)
}
