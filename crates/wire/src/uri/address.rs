//! Which account a request addresses, and what is left of its path.
//!
//! Host style names the account in the first label of the host, path style in the first segment of
//! the path; the rules that tell them apart are Azurite's, because the same clients with the same
//! connection strings come here. Whether the account exists is not known here: a wrong name
//! is simply not found. Names are only kept from breaking the texts that they are written into.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use memchr::{memchr, memchr2};

use crate::error::Result;
use crate::error_code::ErrorCode;

/// What a name ends with when it means the read-only replica.
const SECONDARY_SUFFIX: &str = "-secondary";

/// Names with a dot by which containers reach their host; they never name an account.
const PATH_STYLE_HOSTS: [&str; 7] = [
    "localhost.localdomain",
    "host.docker.internal",
    "gateway.docker.internal",
    "kubernetes.docker.internal",
    "host.containers.internal",
    "host.minikube.internal",
    "host.lima.internal",
];

/// How the operator wants requests to be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddressRules {
    /// The account is always the first path segment, whatever the host is called.
    pub disable_product_style_url: bool,
}

/// The account that a request addresses and the way the client wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// The primary name of the account as it was sent, without `-secondary`.
    pub account: &'a str,
    /// The client asks the read-only replica.
    pub secondary: bool,
    /// The host as sent, with its port.
    pub host: &'a str,
    /// The first path segment as sent, when it named the account.
    pub account_segment: Option<&'a str>,
    /// The path below the service root, still percent-encoded: empty, or with its leading slash.
    pub resource_path: &'a str,
}

impl<'a> Address<'a> {
    /// Splits a request by the value of its `Host` header (or the authority of its target) and its
    /// raw path.
    ///
    /// # Errors
    /// 400 `HostInformationNotPresent` without a host, 400 `InvalidUri` when no account is named or
    /// a name has characters that no name has.
    pub fn parse(host: &'a str, raw_path: &'a str, rules: AddressRules) -> Result<Self> {
        let host = host.trim_ascii();
        if host.is_empty() {
            return Err(ErrorCode::HostInformationNotPresent.into());
        }
        if !host.bytes().all(|byte| is_name(byte) || b":[]%".contains(&byte)) {
            return Err(ErrorCode::InvalidUri.into());
        }
        let label = match rules.disable_product_style_url {
            true => None,
            false => account_label(host),
        };
        let (name, account_segment, resource_path) = match label {
            Some(label) => (label, None, raw_path),
            None => {
                let path = raw_path.strip_prefix('/').ok_or(ErrorCode::InvalidUri)?;
                let (segment, rest) = split_segment(path);
                (segment, Some(segment), rest)
            }
        };
        let (account, secondary) = match account_segment {
            Some(_) => split_secondary(name),
            None => split_secondary_host(name),
        };
        if account.is_empty() || !account.bytes().all(is_name) {
            return Err(ErrorCode::InvalidUri.into());
        }
        let resource_path = match account_segment {
            Some(_) if secondary => skip_repeated_account(resource_path, account),
            _ => resource_path,
        };
        Ok(Self { account, secondary, host, account_segment, resource_path })
    }

    /// The name of the account, which has no capital letters. Those of a host mean nothing; a path means what it says.
    pub fn account_name(&self) -> Cow<'a, str> {
        let is_host = self.account_segment.is_none();
        match is_host && self.account.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(self.account.to_ascii_lowercase()),
            false => Cow::Borrowed(self.account),
        }
    }

    /// The service root as the client addressed it, without a final slash.
    pub fn base(&self, scheme: &str) -> String {
        let segment = self.account_segment;
        let mut base = [scheme, "://", self.host].concat();
        base.extend(segment.iter().flat_map(|segment| ["/", segment]));
        base
    }
}

/// Splits the URL of an operation inside a batch into its resource path and its query, both raw.
///
/// Scheme and host are not looked at. An account segment is taken off when something follows it, so
/// that a table with the name of its account can still be addressed by a relative or host-style
/// URL.
pub fn split_inner_url<'a>(raw_url: &'a str, account: &str) -> (&'a str, &'a str) {
    let (path, query) = match memchr(b'?', raw_url.as_bytes()) {
        Some(at) => (&raw_url[..at], &raw_url[at + 1..]),
        None => (raw_url, ""),
    };
    let path = match path.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
        {
            split_segment(rest).1
        }
        _ => path,
    };
    let (segment, rest) = split_segment(path.strip_prefix('/').unwrap_or(path));
    let names_account = split_secondary(segment).0 == account;
    (if names_account && rest.len() > 1 { rest } else { path }, query)
}

/// Python puts its secondary host, account and all, before a path that has the account already:
/// `/acct-secondary/acct/...`.
fn skip_repeated_account<'a>(resource_path: &'a str, account: &str) -> &'a str {
    let repeated = resource_path.strip_prefix('/').and_then(|path| path.strip_prefix(account));
    repeated.filter(|rest| rest.starts_with('/')).unwrap_or(resource_path)
}

/// The label that names the account, when the host has one.
fn account_label(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        return None;
    }
    let at = memchr2(b'.', b':', host.as_bytes())?;
    let (label, rest) = host.split_at(at);
    if rest.starts_with(':') {
        return None;
    }
    let name = &host[..memchr(b':', host.as_bytes()).unwrap_or(host.len())];
    let is_path_style = name.parse::<Ipv4Addr>().is_ok()
        || PATH_STYLE_HOSTS.iter().any(|known| known.eq_ignore_ascii_case(name))
        // The name of a Kubernetes service: `tavola.storage.svc.cluster.local`.
        || name.split('.').skip(1).any(|label| label.eq_ignore_ascii_case("svc"));
    (!is_path_style).then_some(label)
}

/// What a host or an account may be made of. The base is written into headers and JSON as it is, so
/// nothing that means something there may get into it.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._".contains(&byte)
}

/// The text before the first slash, and the rest with it.
fn split_segment(path: &str) -> (&str, &str) {
    path.split_at(memchr(b'/', path.as_bytes()).unwrap_or(path.len()))
}

fn split_secondary(name: &str) -> (&str, bool) {
    match name.strip_suffix(SECONDARY_SUFFIX) {
        Some(account) => (account, true),
        None => (name, false),
    }
}

/// The same in any case of letters, as names of hosts are compared.
fn split_secondary_host(name: &str) -> (&str, bool) {
    let at = name.len().checked_sub(SECONDARY_SUFFIX.len());
    match at.and_then(|at| name.split_at_checked(at)) {
        Some((account, end)) if end.eq_ignore_ascii_case(SECONDARY_SUFFIX) => (account, true),
        _ => (name, false),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<'a>(host: &'a str, path: &'a str) -> Address<'a> {
        Address::parse(host, path, AddressRules::default()).unwrap()
    }

    #[test]
    fn hosts_that_are_path_style() {
        for host in [
            "127.0.0.1:10002",
            "10.0.0.7",
            "[::1]:10002",
            "[::1]",
            "localhost:10002",
            "localhost",
            "tavola",
            "azurite:10002",
            "host.docker.internal:10002",
            "tavola.storage.svc.cluster.local:10002",
        ] {
            let address = parse(host, "/devstoreaccount1/t(PartitionKey='a%2Fb',RowKey='')");
            assert_eq!(address.account, "devstoreaccount1", "{host}");
            assert!(!address.secondary, "{host}");
            assert_eq!(address.resource_path, "/t(PartitionKey='a%2Fb',RowKey='')", "{host}");
            assert_eq!(address.base("http"), format!("http://{host}/devstoreaccount1"));
        }
    }

    #[test]
    fn hosts_that_are_host_style() {
        for host in [
            "acct.table.core.windows.net",
            "acct.z07.table.storage.azure.net",
            "acct.table.localhost:10002",
            "acct.example.com:443",
        ] {
            let address = parse(host, "/Tables");
            assert_eq!((address.account, address.secondary), ("acct", false), "{host}");
            assert_eq!(address.resource_path, "/Tables", "{host}");
            assert_eq!(address.base("https"), format!("https://{host}"));
        }
    }

    #[test]
    fn a_host_names_its_account_in_any_case() {
        for (host, secondary) in [
            ("Acct.Queue.Core.Windows.Net", false),
            ("ACCT-SECONDARY.queue.localhost:10001", true),
            ("acct-Secondary.queue.localhost", true),
        ] {
            let address = parse(host, "/orders");
            assert_eq!(
                (&*address.account_name(), address.secondary),
                ("acct", secondary),
                "{host}"
            );
            assert_eq!(address.base("http"), format!("http://{host}"));
        }
        // A path has no case to ignore.
        let path = parse("127.0.0.1:10001", "/Acct/orders");
        assert_eq!((&*path.account_name(), path.secondary), ("Acct", false));
        let path = parse("127.0.0.1:10001", "/acct-SECONDARY/orders");
        assert_eq!((&*path.account_name(), path.secondary), ("acct-SECONDARY", false));
    }

    #[test]
    fn the_secondary_is_marked_and_stays_in_the_base() {
        let host = parse("acct-secondary.table.core.windows.net", "/");
        assert_eq!((host.account, host.secondary), ("acct", true));
        let path = parse("127.0.0.1:10002", "/acct-secondary/?comp=stats");
        assert_eq!((path.account, path.secondary), ("acct", true));
        assert_eq!(path.base("http"), "http://127.0.0.1:10002/acct-secondary");
        let twice = parse("127.0.0.1:10002", "/acct-secondary/acct/?comp=stats");
        assert_eq!((twice.account, twice.resource_path), ("acct", "/?comp=stats"));
        let table = parse("127.0.0.1:10002", "/acct-secondary/acct()");
        assert_eq!(table.resource_path, "/acct()");
    }

    #[test]
    fn product_style_can_be_disabled() {
        let rules = AddressRules { disable_product_style_url: true };
        let address = Address::parse("storage.example.com", "/acct/Tables", rules).unwrap();
        assert_eq!((address.account, address.resource_path), ("acct", "/Tables"));
    }

    #[test]
    fn a_request_without_host_or_account_is_refused() {
        let code =
            |host, path| Address::parse(host, path, AddressRules::default()).unwrap_err().code();
        assert_eq!(code("", "/"), ErrorCode::HostInformationNotPresent);
        assert_eq!(code("127.0.0.1", "/"), ErrorCode::InvalidUri);
        assert_eq!(code("127.0.0.1", "*"), ErrorCode::InvalidUri);
        assert_eq!(code("127.0.0.1", ""), ErrorCode::InvalidUri);
        assert_eq!(code("127.0.0.1", "/-secondary/t"), ErrorCode::InvalidUri);
        assert_eq!(code(".table.localhost", "/t"), ErrorCode::InvalidUri);
        assert_eq!(code("acct.table\"x", "/t"), ErrorCode::InvalidUri);
        assert_eq!(code("127.0.0.1", "/a\"b/t"), ErrorCode::InvalidUri);
        assert_eq!(parse("127.0.0.1", "/acct").resource_path, "");
    }

    #[test]
    fn inner_urls_come_in_every_form() {
        // Wire reference 9.1.
        let split = |url| split_inner_url(url, "acct");
        assert_eq!(split("https://acct.table.core.windows.net/t"), ("/t", ""));
        assert_eq!(split("http://127.0.0.1:10002/acct/t?$format=json"), ("/t", "$format=json"));
        assert_eq!(split("http://127.0.0.1:10002/acct-secondary/t"), ("/t", ""));
        assert_eq!(split("/t(PartitionKey='a',RowKey='b')").0, "/t(PartitionKey='a',RowKey='b')");
        assert_eq!(split("t(PartitionKey='a',RowKey='b')").0, "t(PartitionKey='a',RowKey='b')");
        assert_eq!(split("/acct/t"), ("/t", ""));
        assert_eq!(split("HTTPS://other.table.core.windows.net/t()"), ("/t()", ""));
        // A table that is called like its account.
        assert_eq!(split("https://acct.table.core.windows.net/acct"), ("/acct", ""));
        assert_eq!(split("http://127.0.0.1:10002/acct/acct"), ("/acct", ""));
        // A key may look like a URL.
        let odd = "/t(PartitionKey='http://x',RowKey='b')";
        assert_eq!(split(odd), (odd, ""));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(host in any::<String>(), path in any::<String>()) {
            let _ = Address::parse(&host, &path, AddressRules::default());
            let _ = split_inner_url(&path, &host);
        }
    }
}
