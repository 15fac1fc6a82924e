//! A server to measure: its name in the report, its address, and the account that requests are signed for.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use tavola_wire::auth::AccountKey;
pub use tavola_wire::auth::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use tavola_wire::service::Service;

/// Where requests go, and as whom.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    pub address: SocketAddr,
    /// The value of the `Host` header.
    pub host: String,
    pub account: String,
    pub key: AccountKey,
    /// What requests are signed for.
    pub service: Service,
}

impl Target {
    /// The development account's tables at this address.
    pub fn new(name: &str, address: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            address,
            host: address.to_string(),
            account: DEVELOPMENT_ACCOUNT.to_owned(),
            key: AccountKey::from_base64(DEVELOPMENT_KEY).expect("the published key"),
            service: Service::Table,
        }
    }

    /// The queues of the account.
    pub fn for_queues(self) -> Self {
        Self { service: Service::Queue, ..self }
    }

    pub fn with_key(mut self, key: &str) -> anyhow::Result<Self> {
        self.key = AccountKey::from_base64(key)?;
        Ok(self)
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    /// Reads `name=http://host:port/account`; the account may be left out.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, url) =
            text.split_once('=').context("write it as name=http://host:port/account")?;
        let rest = url.strip_prefix("http://").context("only http:// is measured")?;
        let (host, account) =
            rest.trim_end_matches('/').split_once('/').unwrap_or((rest, DEVELOPMENT_ACCOUNT));
        let host = host.trim_end_matches('/');
        if name.is_empty() || account.contains('/') {
            bail!("write it as name=http://host:port/account");
        }
        let mut addresses =
            host.to_socket_addrs().with_context(|| format!("no host and port: {host}"))?;
        let address = addresses.next().with_context(|| format!("{host} has no address"))?;
        let target = Self::new(name, address);
        Ok(Self { host: host.to_owned(), account: account.to_owned(), ..target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_and_an_endpoint() {
        let target: Target = "mine=http://127.0.0.1:10002/acct".parse().unwrap();
        assert_eq!((target.name.as_str(), target.account.as_str()), ("mine", "acct"));
        assert_eq!((target.address.port(), target.host.as_str()), (10002, "127.0.0.1:10002"));
        let target: Target = "bare=http://127.0.0.1:8080/".parse().unwrap();
        assert_eq!(
            (target.account.as_str(), target.host.as_str()),
            (DEVELOPMENT_ACCOUNT, "127.0.0.1:8080")
        );
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in [
            "",
            "x",
            "=http://127.0.0.1:1/a",
            "x=https://127.0.0.1:1/a",
            "x=http://127.0.0.1/a",
            "x=http://127.0.0.1:1/a/b",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
