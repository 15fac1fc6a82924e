//! The values inside a token: version, permissions, resource types, addresses, protocols.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::BitOr;
use std::str::FromStr;

use super::fields::{Field, SasFields};
use crate::service::Service;

/// A service version, `YYYY-MM-DD`; later versions compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SasVersion(u32);

impl SasVersion {
    /// The first version whose tables and queues can be shared.
    pub(crate) const FIRST: Self = Self::of(2012, 2, 12);
    /// From here the token of a blob signs headers of the answer.
    pub(super) const RESPONSE_HEADERS: Self = Self::of(2013, 8, 15);
    /// From here the resource of a service's token starts with the service's name.
    pub(crate) const SERVICE_IN_RESOURCE: Self = Self::of(2015, 2, 21);
    /// From here address and protocol are signed, and account tokens exist.
    pub(crate) const ADDRESS_AND_PROTOCOL: Self = Self::of(2015, 4, 5);
    /// From here the token of a blob signs its kind of resource, and there are tokens of snapshots.
    pub(super) const SNAPSHOT: Self = Self::of(2018, 11, 9);
    /// What current SDKs put in the tokens they make.
    pub const CURRENT: Self = Self::of(2019, 2, 2);
    /// From here there are tokens of versions of a blob.
    pub(super) const BLOB_VERSION: Self = Self::of(2019, 10, 10);
    /// From here the tokens of accounts and blobs sign an encryption scope.
    pub const ENCRYPTION_SCOPE: Self = Self::of(2020, 12, 6);

    const fn of(year: u32, month: u32, day: u32) -> Self {
        Self(year * 10_000 + month * 100 + day)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let digits = [&bytes[..4], &bytes[5..7], &bytes[8..]].into_iter().flatten();
        let number = digits.into_iter().try_fold(0, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0'))
        });
        number.map(Self)
    }

    /// Appends what the strings to sign of every service begin with, up to the resource within the account. The account
    /// stands there once, whatever the style of the address.
    pub(super) fn push_service_start(
        self,
        out: &mut String,
        fields: &SasFields<'_>,
        service: Service,
        account: &str,
    ) {
        for field in [Field::Permissions, Field::Start, Field::Expiry] {
            out.push_str(fields.text(field));
            out.push('\n');
        }
        if self >= Self::SERVICE_IN_RESOURCE {
            out.push('/');
            out.push_str(service.name());
        }
        out.push('/');
        out.push_str(account);
        out.push('/');
    }

    /// Appends what the strings to sign of every service have behind the resource.
    pub(super) fn push_service_end(self, out: &mut String, fields: &SasFields<'_>) {
        fields.push_lines(out, [Field::Identifier]);
        if self >= Self::ADDRESS_AND_PROTOCOL {
            fields.push_lines(out, [Field::IpRange, Field::Protocols]);
        }
        fields.push_lines(out, [Field::Version]);
    }
}

impl fmt::Display for SasVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0 / 10_000, self.0 / 100 % 100, self.0 % 100)
    }
}

/// A set of permissions, of a token or a stored policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(u16);

impl Permissions {
    pub const NONE: Self = Self(0);
    pub const READ: Self = Self(1);
    pub const ADD: Self = Self(1 << 1);
    pub const UPDATE: Self = Self(1 << 2);
    pub const DELETE: Self = Self(1 << 3);
    pub const WRITE: Self = Self(1 << 4);
    pub const LIST: Self = Self(1 << 5);
    pub const CREATE: Self = Self(1 << 6);
    /// Get and delete messages.
    pub const PROCESS: Self = Self(1 << 7);
    /// Delete a version of a blob.
    pub const DELETE_VERSION: Self = Self(1 << 8);
    /// Delete for good what could be restored.
    pub const DELETE_PERMANENTLY: Self = Self(1 << 9);
    /// Read and set the tags of a blob.
    pub const TAGS: Self = Self(1 << 10);
    /// Find blobs by their tags.
    pub const FIND: Self = Self(1 << 11);
    /// Set immutability policies and legal holds.
    pub const IMMUTABILITY: Self = Self(1 << 12);
    /// Move a blob in a hierarchical namespace.
    pub const MOVE: Self = Self(1 << 13);
    /// Read the access list in a hierarchical namespace.
    pub const EXECUTE: Self = Self(1 << 14);
    /// Everything that a table token or a stored policy of a table can grant.
    pub const TABLE_ALL: Self = Self(0b1111);
    /// Everything that an account token can grant on tables.
    pub const ACCOUNT_ALL: Self = Self(0b111_1111);

    /// Letters in the order in which table tokens and policies must list them.
    const TABLE_LETTERS: [(char, Self); 4] =
        [('r', Self::READ), ('a', Self::ADD), ('u', Self::UPDATE), ('d', Self::DELETE)];
    /// Letters in the order in which SDKs list them in queue tokens.
    const QUEUE_LETTERS: [(char, Self); 4] =
        [('r', Self::READ), ('a', Self::ADD), ('u', Self::UPDATE), ('p', Self::PROCESS)];
    /// Letters of the tokens of containers and blobs.
    const BLOB_LETTERS: [(char, Self); 13] = [
        ('r', Self::READ),
        ('a', Self::ADD),
        ('c', Self::CREATE),
        ('w', Self::WRITE),
        ('d', Self::DELETE),
        ('x', Self::DELETE_VERSION),
        ('y', Self::DELETE_PERMANENTLY),
        ('l', Self::LIST),
        ('t', Self::TAGS),
        ('f', Self::FIND),
        ('m', Self::MOVE),
        ('e', Self::EXECUTE),
        ('i', Self::IMMUTABILITY),
    ];
    /// Letters in the order in which SDKs list them in account tokens.
    const ACCOUNT_LETTERS: [(char, Self); 13] = [
        ('r', Self::READ),
        ('w', Self::WRITE),
        ('d', Self::DELETE),
        ('x', Self::DELETE_VERSION),
        ('y', Self::DELETE_PERMANENTLY),
        ('l', Self::LIST),
        ('a', Self::ADD),
        ('c', Self::CREATE),
        ('u', Self::UPDATE),
        ('p', Self::PROCESS),
        ('t', Self::TAGS),
        ('f', Self::FIND),
        ('i', Self::IMMUTABILITY),
    ];

    /// Reads the letters of a table token or policy, in any order; `None` for a letter that tables
    /// do not know.
    pub fn parse_table(text: &str) -> Option<Self> {
        Self::parse(text, &Self::TABLE_LETTERS)
    }

    /// Reads the letters of a queue token or policy, in any order; `None` for a letter that queues
    /// do not know.
    pub fn parse_queue(text: &str) -> Option<Self> {
        Self::parse(text, &Self::QUEUE_LETTERS)
    }

    /// Reads the letters of the token or policy of a container or blob, in any order; `None` for a letter that neither
    /// knows.
    pub fn parse_blob(text: &str) -> Option<Self> {
        Self::parse(text, &Self::BLOB_LETTERS)
    }

    fn parse(text: &str, letters: &[(char, Self)]) -> Option<Self> {
        text.chars().try_fold(Self::NONE, |set, letter| {
            let (_, permission) = letters.iter().find(|(known, _)| *known == letter)?;
            Some(set | *permission)
        })
    }

    /// Reads the letters of an account token. Other letters mean nothing here and are passed over, as one token may
    /// serve services that are not here; `None` for what is no letter.
    pub fn parse_account(text: &str) -> Option<Self> {
        text.chars().try_fold(Self::NONE, |set, letter| {
            let known = Self::ACCOUNT_LETTERS.iter().find(|(known, _)| *known == letter);
            match known {
                Some((_, permission)) => Some(set | *permission),
                None => letter.is_ascii_lowercase().then_some(set),
            }
        })
    }

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The letters `raud` of this set.
    pub fn table_text(self) -> String {
        self.text(&Self::TABLE_LETTERS)
    }

    /// The letters `raup` of this set.
    pub fn queue_text(self) -> String {
        self.text(&Self::QUEUE_LETTERS)
    }

    /// The letters of this set that account tokens know.
    pub fn account_text(self) -> String {
        self.text(&Self::ACCOUNT_LETTERS)
    }

    fn text(self, letters: &[(char, Self)]) -> String {
        letters.iter().filter(|(_, one)| self.contains(*one)).map(|(letter, _)| letter).collect()
    }
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The services that an account token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Services(u8);

impl Services {
    /// Those that are served here.
    pub const ALL: Self = Self(0b111);

    pub const fn of(service: Service) -> Self {
        Self(1 << service as u8)
    }

    /// Reads `ss`. Letters of services that are not here are passed over; `None` for what is no letter, and for none.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || !text.bytes().all(|letter| letter.is_ascii_lowercase()) {
            return None;
        }
        let named = Service::ALL.into_iter().filter(|service| text.contains(service.letter()));
        Some(named.fold(Self(0), |services, service| services | Self::of(service)))
    }

    pub fn contains(self, service: Service) -> bool {
        self.0 & Self::of(service).0 != 0
    }
}

impl BitOr for Services {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = Service::ALL.into_iter().filter(|service| self.contains(*service));
        named.try_for_each(|service| write!(f, "{}", service.letter()))
    }
}

/// Which kinds of resource an account token opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceTypes {
    /// The service: its properties and stats.
    pub service: bool,
    /// Containers: of blobs, queues, tables.
    pub container: bool,
    /// Objects: blobs, messages, entities.
    pub object: bool,
}

impl ResourceTypes {
    pub const ALL: Self = Self { service: true, container: true, object: true };

    pub fn parse(text: &str) -> Option<Self> {
        let mut types = Self::default();
        for letter in text.chars() {
            match letter {
                's' => types.service = true,
                'c' => types.container = true,
                'o' => types.object = true,
                _ => return None,
            }
        }
        (types != Self::default()).then_some(types)
    }
}

impl fmt::Display for ResourceTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [(self.service, 's'), (self.container, 'c'), (self.object, 'o')];
        letters.iter().filter(|(set, _)| *set).try_for_each(|(_, letter)| write!(f, "{letter}"))
    }
}

/// The IPv4 addresses that may use a token, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpRange {
    pub first: Ipv4Addr,
    pub last: Ipv4Addr,
}

impl IpRange {
    /// Reads `a` or `a-b`.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range =
            Self { first: Ipv4Addr::from_str(first).ok()?, last: Ipv4Addr::from_str(last).ok()? };
        (range.first <= range.last).then_some(range)
    }

    /// Tells whether a client is in the range. A v4-mapped IPv6 address, as a dual-stack socket
    /// reports it, counts as the IPv4 address; any other IPv6 address is outside of every range.
    pub fn contains(&self, client: IpAddr) -> bool {
        match client.to_canonical() {
            IpAddr::V4(address) => (self.first..=self.last).contains(&address),
            IpAddr::V6(_) => false,
        }
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// The protocols that a token may travel over. Plain HTTP alone cannot be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    HttpsOnly,
    HttpsAndHttp,
}

impl Protocols {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "https" => Some(Self::HttpsOnly),
            "https,http" | "http,https" => Some(Self::HttpsAndHttp),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::HttpsOnly => "https",
            Self::HttpsAndHttp => "https,http",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Permissions {
        /// Any set of what tables know.
        pub(crate) fn of_bits(bits: u8) -> Self {
            Self(u16::from(bits) & Self::ACCOUNT_ALL.0)
        }
    }

    #[test]
    fn versions_are_dates_in_order() {
        let version = SasVersion::parse("2019-02-02").unwrap();
        assert_eq!(version, SasVersion::CURRENT);
        assert_eq!(version.to_string(), "2019-02-02");
        assert!(SasVersion::parse("2020-10-02").unwrap() < SasVersion::ENCRYPTION_SCOPE);
        for text in
            ["", "2019", "2019-2-02", "2019/02/02", "2019-02-0x", "20190-2-02", "2019---022"]
        {
            assert_eq!(SasVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn permission_letters() {
        assert_eq!(Permissions::parse_table("raud"), Some(Permissions::TABLE_ALL));
        assert_eq!(Permissions::parse_table("da").unwrap().table_text(), "ad");
        assert_eq!(Permissions::parse_table("rw"), None);
        assert_eq!(Permissions::parse_queue("paur").unwrap().queue_text(), "raup");
        assert_eq!(Permissions::parse_queue("raud"), None);
        assert_eq!(Permissions::parse_account("ulcawdr"), Some(Permissions::ACCOUNT_ALL));
        assert_eq!(Permissions::ACCOUNT_ALL.account_text(), "rwdlacu");
        assert_eq!(Permissions::TABLE_ALL.table_text(), "raud");
        let all = Permissions::parse_account("rwdxftlacupiyz").unwrap();
        assert_eq!(all.account_text(), "rwdxylacuptfi");
        let blob = Permissions::parse_blob("racwdxyltfmei").unwrap();
        assert!(blob.contains(Permissions::MOVE | Permissions::EXECUTE));
        assert_eq!(blob.account_text(), "rwdxylactfi");
        assert_eq!(Permissions::parse_blob("u"), None);
        assert_eq!(Permissions::parse_account("r w"), None);
        assert_eq!(Permissions::parse_account("R"), None);
    }

    #[test]
    fn services() {
        let text = |text| Services::parse(text).map(|services| services.to_string());
        assert_eq!(text("t").as_deref(), Some("t"));
        assert_eq!(text("tfqb").as_deref(), Some("bqt"));
        assert_eq!(text("f").as_deref(), Some(""));
        assert_eq!(Services::parse("bqt"), Some(Services::ALL));
        for (wrong, is_wrong) in [("", true), ("T", true), ("b q", true), ("zz", false)] {
            assert_eq!(Services::parse(wrong).is_none(), is_wrong, "{wrong:?}");
        }
        assert!(Services::of(Service::Queue).contains(Service::Queue));
        assert!(!Services::of(Service::Queue).contains(Service::Table));
    }

    #[test]
    fn resource_types() {
        let types = ResourceTypes::parse("oc").unwrap();
        assert_eq!(types, ResourceTypes { service: false, container: true, object: true });
        assert_eq!(types.to_string(), "co");
        assert_eq!(ResourceTypes::parse(""), None);
        assert_eq!(ResourceTypes::parse("sx"), None);
    }

    #[test]
    fn addresses() {
        let range = IpRange::parse("168.1.5.60-168.1.5.70").unwrap();
        assert_eq!(range.to_string(), "168.1.5.60-168.1.5.70");
        for (address, inside) in [
            ("168.1.5.59", false),
            ("168.1.5.60", true),
            ("168.1.5.70", true),
            ("168.1.5.71", false),
            ("::ffff:168.1.5.65", true),
            ("::ffff:168.1.5.71", false),
            ("::168.1.5.65", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(range.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert_eq!(IpRange::parse("10.0.0.1").unwrap().to_string(), "10.0.0.1");
        for text in
            ["", "10.0.0", "10.0.0.2-10.0.0.1", "10.0.0.1-", "::1", "a", "1.1.1.1-1.1.1.2-1.1.1.3"]
        {
            assert_eq!(IpRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn protocols() {
        assert_eq!(Protocols::parse("https"), Some(Protocols::HttpsOnly));
        assert_eq!(Protocols::parse("https,http"), Some(Protocols::HttpsAndHttp));
        for text in ["http", "HTTPS", "https, http", ""] {
            assert_eq!(Protocols::parse(text), None, "{text}");
        }
    }
}
