//! Which account of which service a verb works with, as far as it is not about a folder.
//!
//! A connection holds a key, and arguments can be seen by everyone on a machine: it is better taken from the environment
//! or a file.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use tavola_client::TableServiceClient;
use tavola_client::blocking;

/// Where the tools of the service look for a connection string.
const VARIABLE: &str = "AZURE_STORAGE_CONNECTION_STRING";

/// Attempts after the first: someone waits for the answer.
const RETRIES: u32 = 1;

#[derive(Args, Debug)]
pub(crate) struct ConnectionOptions {
    /// The account: a connection string, `env:NAME`, `@FILE`, or a URL with a signature [default: the variable
    /// AZURE_STORAGE_CONNECTION_STRING, else the development account on this machine]
    #[arg(long, short = 'c', value_name = "CONNECTION")]
    connection: Option<String>,
}

impl ConnectionOptions {
    /// A client for the tables of the account.
    pub(crate) fn tables(&self) -> anyhow::Result<blocking::TableServiceClient> {
        let text = self.text()?;
        let builder = TableServiceClient::builder().max_retries(RETRIES);
        let builder = if text.starts_with("http://") || text.starts_with("https://") {
            builder.sas_url(&text)
        } else {
            builder.connection_string(&text)
        };
        let client = builder.build().context("the connection cannot be used")?;
        Ok(blocking::TableServiceClient::new(client)?)
    }

    fn text(&self) -> anyhow::Result<String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let Some(given) = &self.connection else {
            return Ok(variable(VARIABLE).unwrap_or_else(|| "UseDevelopmentStorage=true".into()));
        };
        if let Some(name) = given.strip_prefix("env:") {
            return variable(name).with_context(|| format!("there is no variable {name}"));
        }
        if let Some(path) = given.strip_prefix('@') {
            let text = std::fs::read_to_string(path);
            return Ok(text.with_context(|| format!("cannot read {path}"))?.trim().to_owned());
        }
        if given.contains("AccountKey=") || given.contains("sig=") {
            // Nobody has to be listening.
            let _ = writeln!(
                std::io::stderr(),
                "Warning: the secret can be seen in the list of processes; use env:NAME or @FILE"
            );
        }
        Ok(given.clone())
    }
}
