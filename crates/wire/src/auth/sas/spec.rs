//! Making tokens, for clients, the command line and tests.
//!
//! An empty bound (`end` with the empty partition or row key) cannot be protected: it signs the
//! same as no bound, so whoever holds the token can drop it. Do not hand out tokens that rely on
//! one.

use std::borrow::Cow;

use super::fields::SasFields;
use super::ranges::{KeyBound, KeyRangeLimit};
use super::values::{IpRange, Permissions, Protocols, ResourceTypes, SasVersion};
use crate::auth::key::AccountKey;
use crate::ticks::Ticks;

/// What an account token shall allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSasSpec {
    pub version: SasVersion,
    pub permissions: Permissions,
    pub resource_types: ResourceTypes,
    pub start: Option<Ticks>,
    pub expiry: Ticks,
    pub ip_range: Option<IpRange>,
    pub protocols: Option<Protocols>,
}

impl AccountSasSpec {
    pub fn new(permissions: Permissions, resource_types: ResourceTypes, expiry: Ticks) -> Self {
        Self {
            version: SasVersion::CURRENT,
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
        let mut fields = SasFields {
            version: owned(&self.version),
            services: owned(&"t"),
            resource_types: owned(&self.resource_types),
            permissions: owned(&self.permissions.account_text()),
            start: self.start.map(time_text),
            expiry: Some(time_text(self.expiry)),
            ip_range: self.ip_range.as_ref().and_then(owned),
            protocols: self.protocols.and_then(|protocols| owned(&protocols.as_str())),
            ..SasFields::default()
        };
        let signature = key.sign(&fields.account_string(account, self.version));
        fields.signature = owned(&signature.to_base64());
        fields.to_query()
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
        let partition_key = |bound: &KeyBound| owned(&bound.partition_key);
        let row_key = |bound: &KeyBound| bound.row_key.as_ref().and_then(owned);
        let KeyRangeLimit { start, end } = &self.range;
        let mut fields = SasFields {
            version: owned(&self.version),
            table: owned(&self.table),
            permissions: self.permissions.and_then(|set| owned(&set.table_text())),
            start: self.start.map(time_text),
            expiry: self.expiry.map(time_text),
            identifier: self.identifier.as_ref().and_then(owned),
            ip_range: self.ip_range.as_ref().and_then(owned),
            protocols: self.protocols.and_then(|protocols| owned(&protocols.as_str())),
            start_partition_key: start.as_ref().and_then(partition_key),
            start_row_key: start.as_ref().and_then(row_key),
            end_partition_key: end.as_ref().and_then(partition_key),
            end_row_key: end.as_ref().and_then(row_key),
            ..SasFields::default()
        };
        let signature = key.sign(&fields.table_string(account, self.version));
        fields.signature = owned(&signature.to_base64());
        fields.to_query()
    }
}

fn owned(value: &impl ToString) -> Option<Cow<'static, str>> {
    Some(Cow::Owned(value.to_string()))
}

fn time_text(moment: Ticks) -> Cow<'static, str> {
    Cow::Owned(moment.whole_seconds().to_iso())
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
