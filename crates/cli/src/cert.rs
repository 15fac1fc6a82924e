//! `tavola cert`: a self-signed certificate for development.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use rcgen::{
    Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose,
};

/// What the subject says beside the first host, so that a list of trusted certificates tells where this one is from.
const ORGANIZATION: &str = "Tavola development";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Clients whose clock is behind ours take it all the same.
const CLOCK_TOLERANCE: Duration = DAY;

#[derive(Args, Debug)]
pub(crate) struct CertOptions {
    /// Folder for `cert.pem` and `key.pem`
    #[arg(long, default_value = ".", value_name = "DIR")]
    out: PathBuf,
    /// Names and addresses that the certificate is for
    #[arg(long, value_delimiter = ',', default_values = ["localhost", "127.0.0.1", "::1"])]
    host: Vec<String>,
    /// Days that it is valid
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(options: &CertOptions) -> anyhow::Result<()> {
    let (key, made) = make(options).context("cannot make a certificate for these hosts")?;
    let key_text = pem("PRIVATE KEY", &key.serialize_der());
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make the folder {}", options.out.display()))?;
    let (cert, key) = (options.out.join("cert.pem"), options.out.join("key.pem"));
    write(&key, &key_text, options.force, 0o600)?;
    write(&cert, &pem("CERTIFICATE", made.der()), options.force, 0o644)?;
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

fn make(options: &CertOptions) -> Result<(KeyPair, Certificate), rcgen::Error> {
    let mut params = CertificateParams::new(options.host.clone())?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, ORGANIZATION);
    if let Some(host) = options.host.first() {
        subject.push(DnType::CommonName, host.as_str());
    }
    params.distinguished_name = subject;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = now();
    params.not_before = (now - CLOCK_TOLERANCE).into();
    params.not_after = (now + DAY * options.days).into();
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((key, certificate))
}

#[expect(clippy::disallowed_methods, reason = "no server: a certificate is valid from now on")]
fn now() -> SystemTime {
    SystemTime::now()
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
