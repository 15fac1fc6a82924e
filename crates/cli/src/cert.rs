//! `tavola cert`: a self-signed certificate for development.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

#[derive(Args, Debug)]
pub struct CertOptions {
    /// Folder for `cert.pem` and `key.pem`
    #[arg(long, default_value = ".", value_name = "DIR")]
    out: PathBuf,
    /// Names and addresses that the certificate is for
    #[arg(long, value_delimiter = ',', default_values = ["localhost", "127.0.0.1", "::1"])]
    host: Vec<String>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

pub fn run(options: &CertOptions) -> anyhow::Result<()> {
    let made = rcgen::generate_simple_self_signed(options.host.clone())
        .context("cannot make a certificate for these hosts")?;
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make the folder {}", options.out.display()))?;
    let (cert, key) = (options.out.join("cert.pem"), options.out.join("key.pem"));
    write(&key, &made.signing_key.serialize_pem(), options.force, 0o600)?;
    write(&cert, &made.cert.pem(), options.force, 0o644)?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "Certificate: {}\nKey: {}", cert.display(), key.display())?;
    writeln!(
        stdout,
        "Serve with it: tavola serve --cert {} --key {}",
        cert.display(),
        key.display()
    )?;
    Ok(())
}

fn write(path: &Path, text: &str, force: bool, mode: u32) -> anyhow::Result<()> {
    create(path, force, mode)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {} (--force replaces a file)", path.display()))
}

fn create(path: &Path, force: bool, mode: u32) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(force).truncate(force).create_new(!force);
    // A private key is its owner's alone.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}
