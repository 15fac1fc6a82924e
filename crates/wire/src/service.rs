//! The services of a storage account: what each is called on the wire, and what differs between them there.
//!
//! Which of them a server offers, and where it listens, is the server's to say; here is only what clients rely on.

use std::fmt;

/// One of the services of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Blob,
    Queue,
    Table,
}

impl Service {
    pub const ALL: [Self; 3] = [Self::Blob, Self::Queue, Self::Table];

    /// The name in lower case: the label behind the account in a host (`account.table.localhost`), and the first part of
    /// the resource that a service SAS signs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }

    /// The name in prose: `Table service is successfully listening at ...`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Blob => "Blob",
            Self::Queue => "Queue",
            Self::Table => "Table",
        }
    }

    /// Where connection strings of the development account look for the service.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Blob => 10000,
            Self::Queue => 10001,
            Self::Table => 10002,
        }
    }

    /// How the `Server` header begins; clients tell the services apart by it.
    pub const fn product(self) -> &'static str {
        match self {
            Self::Blob => "Windows-Azure-Blob/1.0",
            Self::Queue => "Windows-Azure-Queue/1.0",
            Self::Table => "Windows-Azure-Table/1.0",
        }
    }

    /// The letter of the service in the field `ss` of an account SAS.
    pub const fn letter(self) -> char {
        match self {
            Self::Blob => 'b',
            Self::Queue => 'q',
            Self::Table => 't',
        }
    }

    /// Whether its resources have metadata, whose names come and go as headers.
    pub const fn has_metadata(self) -> bool {
        match self {
            Self::Blob | Self::Queue => true,
            Self::Table => false,
        }
    }

    /// Whether a request that names no version is answered as by the newest one. Tables answer it as by an old one.
    pub const fn defaults_to_newest_version(self) -> bool {
        match self {
            Self::Blob | Self::Queue => true,
            Self::Table => false,
        }
    }

    /// Whether cross-origin headers also go to requests without an origin, and name the headers that frame the body. Those of
    /// tables are simpler.
    pub const fn has_full_cors(self) -> bool {
        match self {
            Self::Blob | Self::Queue => true,
            Self::Table => false,
        }
    }

    /// The host of an account in host style.
    pub fn host(self, account: &str, domain: &str) -> String {
        [account, ".", self.name(), ".", domain].concat()
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::{Address, AddressRules};

    #[test]
    fn what_a_service_is_called_is_one_name_in_several_spellings() {
        for service in Service::ALL {
            let (name, title) = (service.name(), service.title());
            assert_eq!(title.to_ascii_lowercase(), name);
            assert_eq!(service.product(), format!("Windows-Azure-{title}/1.0"));
            assert!(name.starts_with(service.letter()));
            assert_eq!(service.to_string(), name);
        }
        assert_eq!(Service::ALL.map(Service::default_port), [10000, 10001, 10002]);
    }

    #[test]
    fn a_host_of_any_service_names_its_account() {
        for service in Service::ALL {
            for account in ["acct", "acct-secondary"] {
                let host = service.host(account, "localhost:10001");
                let address = Address::parse(&host, "/a/b", AddressRules::default()).unwrap();
                assert_eq!((address.account, address.resource_path), ("acct", "/a/b"), "{host}");
                assert_eq!(address.secondary, account != "acct");
            }
        }
    }
}
