//! Making tokens, for clients, the command line and tests.
//!
//! An empty bound (`end` with the empty partition or row key) cannot be protected: it signs the
//! same as no bound, so whoever holds the token can drop it. Do not hand out tokens that rely on
//! one.

use super::fields::{Field, SasFields};
use super::ranges::KeyRangeLimit;
use super::values::{IpRange, Permissions, Protocols, ResourceTypes, SasVersion, Services};
use super::{account, queue, table};
use crate::auth::key::AccountKey;
use crate::service::Service;
use crate::ticks::Ticks;

/// What an account token shall allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSasSpec {
    pub version: SasVersion,
    pub services: Services,
    pub permissions: Permissions,
    pub resource_types: ResourceTypes,
    pub start: Option<Ticks>,
    pub expiry: Ticks,
    pub ip_range: Option<IpRange>,
    pub protocols: Option<Protocols>,
}

impl AccountSasSpec {
    /// A token for tables; other [services](Self::services) can be set.
    pub fn new(permissions: Permissions, resource_types: ResourceTypes, expiry: Ticks) -> Self {
        Self {
            version: SasVersion::CURRENT,
            services: Services::of(Service::Table),
            permissions,
            resource_types,
            start: None,
            expiry,
            ip_range: None,
            protocols: None,
        }
    }

    /// Makes the token: a query string without `?`. Times are cut to seconds.
    pub fn sign(&self, account: &str, key: &AccountKey) -> String {
        let mut fields = SasFields::default();
        fields.set(Field::Version, self.version.to_string());
        fields.set(Field::Services, self.services.to_string());
        fields.set(Field::ResourceTypes, self.resource_types.to_string());
        fields.set(Field::Permissions, self.permissions.account_text());
        set_times(&mut fields, self.start, Some(self.expiry));
        set_origin(&mut fields, self.ip_range, self.protocols);
        signed(fields, key, |fields, string| {
            account::push_string_to_sign(string, fields, account, self.version);
        })
    }
}

/// What a table token shall allow. What a stored access policy says is left out here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSasSpec {
    pub version: SasVersion,
    pub table: String,
    pub permissions: Option<Permissions>,
    pub start: Option<Ticks>,
    pub expiry: Option<Ticks>,
    /// The id of a stored access policy.
    pub identifier: Option<String>,
    /// Needs a version from 2015-04-05 on: older ones cannot sign it, and the token would be
    /// refused.
    pub ip_range: Option<IpRange>,
    /// Needs a version from 2015-04-05 on: older ones cannot sign it, and the token would be
    /// refused.
    pub protocols: Option<Protocols>,
    pub range: KeyRangeLimit,
}

impl TableSasSpec {
    /// A token with its own permissions and expiry.
    pub fn new(table: impl Into<String>, permissions: Permissions, expiry: Ticks) -> Self {
        Self {
            permissions: Some(permissions),
            expiry: Some(expiry),
            identifier: None,
            ..Self::with_policy(table, String::new())
        }
    }

    /// A token whose permissions and times are those of a stored access policy.
    pub fn with_policy(table: impl Into<String>, identifier: impl Into<String>) -> Self {
        Self {
            version: SasVersion::CURRENT,
            table: table.into(),
            permissions: None,
            start: None,
            expiry: None,
            identifier: Some(identifier.into()),
            ip_range: None,
            protocols: None,
            range: KeyRangeLimit::default(),
        }
    }

    /// Makes the token: a query string without `?`. Times are cut to seconds.
    pub fn sign(&self, account: &str, key: &AccountKey) -> String {
        let mut fields = SasFields::default();
        fields.set(Field::Version, self.version.to_string());
        fields.set(Field::Table, &*self.table);
        if let Some(permissions) = self.permissions {
            fields.set(Field::Permissions, permissions.table_text());
        }
        set_times(&mut fields, self.start, self.expiry);
        set_origin(&mut fields, self.ip_range, self.protocols);
        if let Some(identifier) = &self.identifier {
            fields.set(Field::Identifier, &**identifier);
        }
        for (field, bound) in [
            (Field::StartPartitionKey, self.range.start_partition_key()),
            (Field::StartRowKey, self.range.start_row_key()),
            (Field::EndPartitionKey, self.range.end_partition_key()),
            (Field::EndRowKey, self.range.end_row_key()),
        ] {
            if let Some(bound) = bound {
                fields.set(field, bound);
            }
        }
        signed(fields, key, |fields, string| {
            table::push_string_to_sign(string, fields, account, self.version);
        })
    }
}

/// What the token of a queue shall allow. What a stored access policy says is left out here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSasSpec {
    /// From 2015-04-05 on, if there is an address or a protocol.
    pub version: SasVersion,
    pub queue: String,
    pub permissions: Option<Permissions>,
    pub start: Option<Ticks>,
    pub expiry: Option<Ticks>,
    /// The id of a stored access policy.
    pub identifier: Option<String>,
    pub ip_range: Option<IpRange>,
    pub protocols: Option<Protocols>,
}

impl QueueSasSpec {
    /// A token with its own permissions and expiry.
    pub fn new(queue: impl Into<String>, permissions: Permissions, expiry: Ticks) -> Self {
        Self {
            permissions: Some(permissions),
            expiry: Some(expiry),
            identifier: None,
            ..Self::with_policy(queue, String::new())
        }
    }

    /// A token whose permissions and times are those of a stored access policy.
    pub fn with_policy(queue: impl Into<String>, identifier: impl Into<String>) -> Self {
        Self {
            version: SasVersion::CURRENT,
            queue: queue.into(),
            permissions: None,
            start: None,
            expiry: None,
            identifier: Some(identifier.into()),
            ip_range: None,
            protocols: None,
        }
    }

    /// Makes the token: a query string without `?`. Times are cut to seconds.
    pub fn sign(&self, account: &str, key: &AccountKey) -> String {
        let mut fields = SasFields::default();
        fields.set(Field::Version, self.version.to_string());
        if let Some(permissions) = self.permissions {
            fields.set(Field::Permissions, permissions.queue_text());
        }
        set_times(&mut fields, self.start, self.expiry);
        set_origin(&mut fields, self.ip_range, self.protocols);
        if let Some(identifier) = &self.identifier {
            fields.set(Field::Identifier, &**identifier);
        }
        signed(fields, key, |fields, string| {
            queue::push_string_to_sign(string, fields, account, &self.queue, self.version);
        })
    }
}

fn set_times(fields: &mut SasFields<'_>, start: Option<Ticks>, expiry: Option<Ticks>) {
    for (field, moment) in [(Field::Start, start), (Field::Expiry, expiry)] {
        if let Some(moment) = moment {
            fields.set(field, moment.whole_seconds().to_iso());
        }
    }
}

fn set_origin(fields: &mut SasFields<'_>, ip_range: Option<IpRange>, protocols: Option<Protocols>) {
    if let Some(ip_range) = ip_range {
        fields.set(Field::IpRange, ip_range.to_string());
    }
    if let Some(protocols) = protocols {
        fields.set(Field::Protocols, protocols.as_str());
    }
}

fn signed(
    mut fields: SasFields<'_>,
    key: &AccountKey,
    push_string_to_sign: impl FnOnce(&SasFields<'_>, &mut String),
) -> String {
    let mut string = String::new();
    push_string_to_sign(&fields, &mut string);
    fields.set(Field::Signature, key.sign(&string).to_base64());
    fields.to_query()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::key::tests::dev_key;

    const ACCOUNT: &str = "devstoreaccount1";

    /// The signatures are those of azure-data-tables 12.7.0 `generate_table_sas`
    /// for the same fields; only the order of the query differs.
    #[test]
    fn tokens_equal_those_of_the_python_sdk() {
        let expiry = Ticks::parse_iso("2030-01-01").unwrap();
        assert_eq!(
            TableSasSpec::new("MyTable", Permissions::READ, expiry).sign(ACCOUNT, &dev_key()),
            "sv=2019-02-02&tn=MyTable&sp=r&se=2030-01-01T00%3A00%3A00Z&sig=YzfTkKP8gj98vRhYfivNKLH2Xo8G8Lk0DYF%2BbUMCg04%3D"
        );
        assert_eq!(
            TableSasSpec::with_policy("MyTable", "my policy").sign(ACCOUNT, &dev_key()),
            "sv=2019-02-02&tn=MyTable&si=my%20policy&sig=R0Jv%2FwD9ahnddgRJbER0FVrPrzBkDaZ%2BHZZ2Oihzy7s%3D"
        );
    }

    /// Computed with Python's `hmac` over the string of the reference, section 10.5.
    #[test]
    fn a_new_version_signs_the_encryption_scope() {
        let expiry = Ticks::parse_iso("2030-01-01").unwrap();
        let spec = AccountSasSpec {
            version: SasVersion::ENCRYPTION_SCOPE,
            protocols: Some(Protocols::HttpsOnly),
            ..AccountSasSpec::new(Permissions::ACCOUNT_ALL, ResourceTypes::ALL, expiry)
        };
        assert_eq!(
            spec.sign(ACCOUNT, &dev_key()),
            "sv=2020-12-06&ss=t&srt=sco&sp=rwdlacu&se=2030-01-01T00%3A00%3A00Z&spr=https&sig=Bb3i7BtYTLcn2F3MnzyNSTPnKpo%2BPYRcy14DA7iYzsY%3D"
        );
    }
}
