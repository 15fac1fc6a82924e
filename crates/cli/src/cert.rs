//! `tavola cert`: a self-signed certificate for development.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct CertOptions {
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

pub(crate) fn run(options: &CertOptions) -> anyhow::Result<()> {
    let made = rcgen::generate_simple_self_signed(options.host.clone())
        .context("cannot make a certificate for these hosts")?;
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make the folder {}", options.out.display()))?;
    let (cert, key) = (options.out.join("cert.pem"), options.out.join("key.pem"));
    let key_text = pem("PRIVATE KEY", &made.signing_key.serialize_der());
    write(&key, &key_text, options.force, 0o600)?;
    write(&cert, &pem("CERTIFICATE", made.cert.der()), options.force, 0o644)?;
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

/// The text form of a certificate or a key: base64 in lines of 64 characters between two marks (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    // 48 bytes are 64 characters.
    for line in der.chunks(48) {
        STANDARD.encode_string(line, &mut text);
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

fn write(path: &Path, text: &str, force: bool, mode: u32) -> anyhow::Result<()> {
    create(path, force, mode)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {} (--force replaces a file)", path.display()))
}

fn create(path: &Path, force: bool, mode: u32) -> std::io::Result<File> {
    if force {
        // Removed, not overwritten: an old file would keep its permissions, and a link would be followed.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // A private key is its owner's alone.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}
