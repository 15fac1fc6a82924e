//! A token on its way from the query string to a grant.

use std::borrow::Cow;
use std::net::IpAddr;

use super::account::{self, AccountSas};
use super::blob::{self, BlobAddress, BlobSas, ResponseHeaders};
use super::fields::{Field, SasFields};
use super::grant::Grant;
use super::ranges::KeyRangeLimit;
use super::values::{IpRange, Permissions, Protocols, SasVersion};
use super::{malformed, queue, refused, table};
use crate::auth::STRING_TOLD_BYTES_MAX;
use crate::auth::key::{AccountKey, Signature};
use crate::auth::policy::{AccessPolicy, SignedIdentifier};
use crate::auth::shared_key::http_date_text;
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;
use crate::service::Service;
use crate::ticks::Ticks;

/// How early a token may be used: signers write `st` from their own clock. There is no such grace
/// at the end.
pub const START_SKEW_TICKS: i64 = Ticks::PER_MINUTE;

/// What a request addresses, as far as the token of a service does not say it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressed<'a> {
    /// Tokens of tables name their table.
    Table,
    /// Empty at the root of the service.
    Queue(Cow<'a, str>),
    Blob(BlobAddress<'a>),
}

impl Addressed<'_> {
    pub fn service(&self) -> Service {
        match self {
            Self::Table => Service::Table,
            Self::Queue(_) => Service::Queue,
            Self::Blob(_) => Service::Blob,
        }
    }
}

/// A token whose fields are well-formed, and nothing more: its signature is not checked yet.
#[derive(Clone, Debug)]
pub struct SasToken<'a> {
    service: Service,
    fields: SasFields<'a>,
    version: SasVersion,
    signature: Signature,
    /// What it says of time and permissions; a stored policy says the rest.
    terms: AccessPolicy,
    ip_range: Option<IpRange>,
    protocols: Option<Protocols>,
    kind: Kind<'a>,
}

#[derive(Clone, Debug)]
enum Kind<'a> {
    Account(AccountSas),
    Table { range: KeyRangeLimit },
    Queue { queue: Cow<'a, str> },
    Blob(BlobSas),
}

/// A token that one of the account's keys signed.
#[derive(Clone, Debug)]
pub struct VerifiedSas<'a>(SasToken<'a>);

/// Where and when a request came in.
#[derive(Clone, Copy, Debug)]
pub struct RequestOrigin {
    pub now: Ticks,
    pub client: IpAddr,
    /// The request came over TLS, here or at a trusted proxy.
    pub https: bool,
}

impl<'a> SasToken<'a> {
    /// Finds a token among the decoded query pairs; `None` when there is no `sig`.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` when a field is missing, malformed or given twice, or belongs to a
    /// user delegation.
    pub fn parse<'n>(
        addressed: Addressed<'a>,
        pairs: impl IntoIterator<Item = (&'n str, Cow<'a, str>)>,
    ) -> Result<Option<Self>> {
        let service = addressed.service();
        let fields = SasFields::from_pairs(service, pairs);
        let Some(signature) = fields.get(Field::Signature) else {
            return Ok(None);
        };
        if fields.user_delegation {
            return Err(malformed("user-delegation signatures are not supported"));
        }
        if fields.repeated {
            return Err(malformed("a field is given twice, and only one of them is signed"));
        }
        if fields.has_newline() {
            return Err(malformed("a field has a newline, which would blur the string to sign"));
        }
        let signature = Signature::parse(signature)?;
        let version = fields.present(Field::Version).and_then(SasVersion::parse);
        let version = version.ok_or_else(|| malformed("sv is missing or malformed"))?;
        let kind = Kind::parse(addressed, &fields, version)?;
        let terms = AccessPolicy {
            start: fields.parsed(Field::Start, Ticks::parse_iso)?,
            expiry: fields.parsed(Field::Expiry, Ticks::parse_iso)?,
            permission: fields.parsed(Field::Permissions, kind.permission_letters())?,
        };
        let ip_range = fields.parsed(Field::IpRange, IpRange::parse)?;
        let protocols = fields.parsed(Field::Protocols, Protocols::parse)?;
        Ok(Some(Self { service, signature, version, terms, ip_range, protocols, kind, fields }))
    }

    /// The version that the token asks for, which is also the request's when `x-ms-version` is
    /// absent.
    pub fn version(&self) -> SasVersion {
        self.version
    }

    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Checks the signature against the account's keys.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed`.
    pub fn verify(self, account: &str, keys: &[AccountKey]) -> Result<VerifiedSas<'a>> {
        let string = self.string_to_sign(account);
        if AccountKey::any_signed(keys, &string, &self.signature) {
            Ok(VerifiedSas(self))
        } else {
            Err(wrong_key(&string))
        }
    }

    /// A text by which what was found out about a token can be found again. Two tokens for one account with the same
    /// text and the same [signature](Self::signature) are verified alike and grant alike.
    ///
    /// It is made of what is signed alone. The holder of a token cannot make many texts of it: not by more parameters,
    /// by repeated fields, by their order, nor by fields that its kind does not sign.
    pub fn cache_key(&self, account: &str) -> String {
        let mut key = String::with_capacity(256);
        key.push(self.service.letter());
        match &self.kind {
            Kind::Account(_) => key.push('a'),
            // An empty bound signs as none does, and means something else.
            Kind::Table { range } => {
                for bound in [&range.start, &range.end] {
                    let row_key = bound.as_ref().map(|bound| bound.row_key.is_some());
                    key.push(match row_key {
                        None => '0',
                        Some(false) => '1',
                        Some(true) => '2',
                    });
                }
            }
            Kind::Queue { .. } => {}
            // Old versions do not sign it.
            Kind::Blob(_) => key.push_str(self.fields.text(Field::Resource)),
        }
        key.push('\n');
        self.push_string_to_sign(&mut key, account);
        key
    }

    pub fn into_owned(self) -> SasToken<'static> {
        let Self { service, version, signature, terms, ip_range, protocols, .. } = self;
        let fields = self.fields.into_owned();
        let kind = match self.kind {
            Kind::Account(account) => Kind::Account(account),
            Kind::Table { range } => Kind::Table { range },
            Kind::Queue { queue } => Kind::Queue { queue: Cow::Owned(queue.into_owned()) },
            Kind::Blob(blob) => Kind::Blob(blob),
        };
        SasToken { service, fields, version, signature, terms, ip_range, protocols, kind }
    }

    fn string_to_sign(&self, account: &str) -> String {
        let mut string = String::with_capacity(256);
        self.push_string_to_sign(&mut string, account);
        string
    }

    fn push_string_to_sign(&self, out: &mut String, account: &str) {
        let (fields, version) = (&self.fields, self.version);
        match &self.kind {
            Kind::Account(_) => account::push_string_to_sign(out, fields, account, version),
            Kind::Table { .. } => table::push_string_to_sign(out, fields, account, version),
            Kind::Queue { queue } => {
                queue::push_string_to_sign(out, fields, account, queue, version);
            }
            Kind::Blob(blob) => blob.push_string_to_sign(out, fields, account, version),
        }
    }
}

impl<'a> Kind<'a> {
    fn parse(
        addressed: Addressed<'a>,
        fields: &SasFields<'_>,
        version: SasVersion,
    ) -> Result<Self> {
        let is_named = match addressed {
            Addressed::Table => fields.present(Field::Table).is_some(),
            Addressed::Queue(_) => false,
            Addressed::Blob(_) => fields.present(Field::Resource).is_some(),
        };
        if AccountSas::is_named(fields) {
            return match is_named {
                false => AccountSas::parse(fields, version).map(Self::Account),
                true => Err(malformed("the token has fields of an account and of a service")),
            };
        }
        if version < SasVersion::FIRST {
            return Err(malformed("sv is older than signatures of this service"));
        }
        // Before these fields were signed they meant nothing; to honour them now would let anyone add
        // or drop them.
        let has_unsigned = [Field::IpRange, Field::Protocols]
            .into_iter()
            .any(|field| version < SasVersion::ADDRESS_AND_PROTOCOL && fields.get(field).is_some());
        if has_unsigned {
            return Err(malformed("sip and spr are newer than sv"));
        }
        match addressed {
            Addressed::Table if is_named => Ok(Self::Table { range: table::parse(fields)? }),
            Addressed::Table => Err(malformed("the token is for neither an account nor a table")),
            Addressed::Queue(queue) => Ok(Self::Queue { queue }),
            Addressed::Blob(address) => BlobSas::parse(fields, address, version).map(Self::Blob),
        }
    }

    fn permission_letters(&self) -> fn(&str) -> Option<Permissions> {
        match self {
            Self::Account(_) => Permissions::parse_account,
            Self::Table { .. } => Permissions::parse_table,
            Self::Queue { .. } => Permissions::parse_queue,
            Self::Blob(_) => Permissions::parse_blob,
        }
    }
}

impl VerifiedSas<'_> {
    /// Whether it would have been verified alike for what is addressed. A token of a queue is signed for that queue alone,
    /// which is named by the request's path and not by the token.
    pub fn is_for(&self, addressed: &Addressed<'_>) -> bool {
        let is_of_resource = match &self.0.kind {
            Kind::Account(_) | Kind::Table { .. } => true,
            Kind::Queue { queue } => matches!(addressed, Addressed::Queue(other) if other == queue),
            // What is addressed decides what it grants.
            Kind::Blob(_) => false,
        };
        is_of_resource && addressed.service() == self.0.service
    }

    /// The table whose stored policies [`Self::grant`] needs, when the token refers to one.
    pub fn policy_table(&self) -> Option<&str> {
        match self.0.kind {
            Kind::Table { .. } if self.has_policy() => self.0.fields.get(Field::Table),
            _ => None,
        }
    }

    /// Whether [`Self::grant`] needs the stored policies of the queue or container that the request addresses, or of
    /// [`Self::policy_table`].
    pub fn has_policy(&self) -> bool {
        self.identifier().is_some()
    }

    /// Turns the token into what it allows, now and for this client. `policies` are the stored
    /// access policies where [`Self::has_policy`]; none if there is no such resource.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` (unknown policy, a field in both or in neither, outside of the
    /// time frame), `AuthorizationProtocolMismatch`, `AuthorizationSourceIPMismatch`,
    /// `AuthorizationServiceMismatch`.
    pub fn grant(&self, origin: &RequestOrigin, policies: &[SignedIdentifier]) -> Result<Grant> {
        let SasToken { fields, version, kind, .. } = &self.0;
        let terms = match self.identifier() {
            Some(id) => self.0.terms.joined(&AccessPolicy::find(id, policies)?)?,
            None => self.0.terms.clone(),
        };
        let expiry =
            terms.expiry.ok_or_else(|| malformed("neither token nor policy has an expiry"))?;
        let permissions = terms
            .permission
            .ok_or_else(|| malformed("neither token nor policy has permissions"))?;

        check_time(origin.now, terms.start, expiry)?;
        if self.0.protocols == Some(Protocols::HttpsOnly) && !origin.https {
            return Err(ErrorCode::AuthorizationProtocolMismatch.into());
        }
        check_address(origin.client, self.0.ip_range)?;
        Ok(match kind {
            Kind::Account(account) if !account.services.contains(self.0.service) => {
                return Err(ErrorCode::AuthorizationServiceMismatch.into());
            }
            Kind::Account(AccountSas { resource_types, .. }) => {
                Grant::Account { resource_types: *resource_types, permissions }
            }
            Kind::Table { range } => {
                let table = fields.text(Field::Table).to_owned();
                Grant::Table { table, permissions, range: range.clone() }
            }
            Kind::Queue { .. } => Grant::Queue { permissions },
            Kind::Blob(blob) => Grant::Blob {
                resource: blob.resource,
                permissions,
                headers: ResponseHeaders::of(fields, *version),
                encryption_scope: blob::encryption_scope(fields, *version),
            },
        })
    }

    /// The `si` of a service's token; account tokens do not sign the field, so theirs means nothing.
    fn identifier(&self) -> Option<&str> {
        match self.0.kind {
            Kind::Account(_) => None,
            _ => self.0.fields.present(Field::Identifier),
        }
    }
}

/// Said to strangers too, so it says nothing but what they sent: the string to sign is made of the token.
fn wrong_key(string_to_sign: &str) -> StorageError {
    let error = StorageError::new(ErrorCode::AuthenticationFailed)
        .caused_by("the signature does not match the token")
        .refused_for(RefusalReason::WrongKey);
    if string_to_sign.len() > STRING_TOLD_BYTES_MAX {
        return error;
    }
    // As the live service puts it.
    let text = "Signature did not match. String to sign used was ";
    error.authentication_detail([text, string_to_sign].concat())
}

fn check_time(now: Ticks, start: Option<Ticks>, expiry: Ticks) -> Result<()> {
    let started = start.is_none_or(|start| now.0 >= start.0 - START_SKEW_TICKS);
    let reason = match started {
        true if now < expiry => return Ok(()),
        true => RefusalReason::Expired,
        false => RefusalReason::NotYetValid,
    };
    // As the live service puts it.
    let start =
        start.map_or(String::new(), |start| format!("Start [{}] - ", http_date_text(start)));
    let text = format!(
        "Signature not valid in the specified time frame: {start}Expiry [{}] - Current [{}]",
        http_date_text(expiry),
        http_date_text(now)
    );
    Err(refused(reason, text))
}

fn check_address(client: IpAddr, range: Option<IpRange>) -> Result<()> {
    if range.is_none_or(|range| range.contains(client)) {
        return Ok(());
    }
    Err(StorageError::with_detail(
        ErrorCode::AuthorizationSourceIPMismatch,
        format!(
            "This request is not authorized to perform this operation using this source IP {}.",
            client.to_canonical()
        ),
    ))
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
