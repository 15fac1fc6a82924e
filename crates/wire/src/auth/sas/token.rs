//! A token on its way from the query string to a grant.

use std::borrow::Cow;
use std::net::IpAddr;

use super::decision::Grant;
use super::fields::{SasFields, present};
use super::ranges::KeyRangeLimit;
use super::refused;
use super::values::{IpRange, Permissions, Protocols, ResourceTypes, SasVersion};
use crate::auth::key::{AccountKey, Signature};
use crate::error::{ErrorCode, Result, StorageError};
use crate::ticks::Ticks;
use crate::xml::acl::{AccessPolicy, SignedIdentifier};

/// How early a token may be used: signers write `st` from their own clock. There is no such grace
/// at the end.
pub const START_SKEW_TICKS: i64 = Ticks::PER_MINUTE;

/// A token whose fields are well-formed, and nothing more: its signature is not checked yet.
#[derive(Clone, Debug)]
pub struct SasToken<'a> {
    fields: SasFields<'a>,
    version: SasVersion,
    signature: Signature,
    start: Option<Ticks>,
    expiry: Option<Ticks>,
    permissions: Option<Permissions>,
    ip_range: Option<IpRange>,
    protocols: Option<Protocols>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Account { table_service: bool, resource_types: ResourceTypes },
    Table { range: KeyRangeLimit },
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
    /// 403 `AuthenticationFailed` when a field is missing or malformed, or belongs to a user
    /// delegation.
    pub fn parse<'n>(
        pairs: impl IntoIterator<Item = (&'n str, Cow<'a, str>)>,
    ) -> Result<Option<Self>> {
        let fields = SasFields::from_pairs(pairs);
        let Some(signature) = fields.signature.as_deref() else {
            return Ok(None);
        };
        if fields.user_delegation {
            return Err(refused("user-delegation signatures are not supported"));
        }
        if fields.has_newline() {
            return Err(refused("a field has a newline, which would blur the string to sign"));
        }
        let signature = Signature::parse(signature)?;
        let version = present(&fields.version)
            .and_then(SasVersion::parse)
            .ok_or_else(|| refused("sv is missing or malformed"))?;
        let kind = Kind::parse(&fields, version)?;
        let parse_permissions = match kind {
            Kind::Account { .. } => Permissions::parse_account,
            Kind::Table { .. } => Permissions::parse_table,
        };
        Ok(Some(Self {
            signature,
            version,
            start: optional(&fields.start, "st", Ticks::parse_iso)?,
            expiry: optional(&fields.expiry, "se", Ticks::parse_iso)?,
            permissions: optional(&fields.permissions, "sp", parse_permissions)?,
            ip_range: optional(&fields.ip_range, "sip", IpRange::parse)?,
            protocols: optional(&fields.protocols, "spr", Protocols::parse)?,
            kind,
            fields,
        }))
    }

    /// The version that the token asks for, which is also the request's when `x-ms-version` is
    /// absent.
    pub fn version(&self) -> SasVersion {
        self.version
    }

    /// Checks the signature against the account's keys.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed`.
    pub fn verify(self, account: &str, keys: &[AccountKey]) -> Result<VerifiedSas<'a>> {
        if AccountKey::any_signed(keys, &self.string_to_sign(account), &self.signature) {
            Ok(VerifiedSas(self))
        } else {
            Err(refused("the signature does not match the token"))
        }
    }

    fn string_to_sign(&self, account: &str) -> String {
        match self.kind {
            Kind::Account { .. } => self.fields.account_string(account, self.version),
            Kind::Table { .. } => self.fields.table_string(account, self.version),
        }
    }
}

impl Kind {
    fn parse(fields: &SasFields<'_>, version: SasVersion) -> Result<Self> {
        let is_account = fields.services.is_some() || fields.resource_types.is_some();
        match (is_account, present(&fields.table)) {
            (true, None) => Self::parse_account(fields, version),
            (false, Some(_)) => Self::parse_table(fields, version),
            (true, Some(_)) => Err(refused("the token has fields of an account and of a table")),
            (false, None) => Err(refused("the token is for neither an account nor a table")),
        }
    }

    fn parse_account(fields: &SasFields<'_>, version: SasVersion) -> Result<Self> {
        if version < SasVersion::ADDRESS_AND_PROTOCOL {
            return Err(refused("sv is older than account signatures"));
        }
        let services = present(&fields.services).ok_or_else(|| refused("ss is missing"))?;
        if !services.bytes().all(|letter| letter.is_ascii_lowercase()) {
            return Err(refused("ss is malformed"));
        }
        let resource_types = optional(&fields.resource_types, "srt", ResourceTypes::parse)?
            .ok_or_else(|| refused("srt is missing"))?;
        Ok(Self::Account { table_service: services.contains('t'), resource_types })
    }

    fn parse_table(fields: &SasFields<'_>, version: SasVersion) -> Result<Self> {
        if version < SasVersion::FIRST_FOR_TABLES {
            return Err(refused("sv is older than table signatures"));
        }
        // Before these fields were signed they meant nothing; taking them now would let anyone add
        // or drop them.
        let unsigned = version < SasVersion::ADDRESS_AND_PROTOCOL;
        if unsigned && (fields.ip_range.is_some() || fields.protocols.is_some()) {
            return Err(refused("sip and spr are newer than sv"));
        }
        // Here an empty value is a bound, namely the empty key.
        let range = KeyRangeLimit::new(
            fields.start_partition_key.as_deref(),
            fields.start_row_key.as_deref(),
            fields.end_partition_key.as_deref(),
            fields.end_row_key.as_deref(),
        )?;
        Ok(Self::Table { range })
    }
}

impl VerifiedSas<'_> {
    /// The table whose stored policies [`Self::grant`] needs, when the token refers to one.
    pub fn policy_table(&self) -> Option<&str> {
        match self.0.kind {
            Kind::Table { .. } if self.identifier().is_some() => self.0.fields.table.as_deref(),
            _ => None,
        }
    }

    /// Turns the token into what it allows, now and for this client. `policies` are the stored
    /// access policies of [`Self::policy_table`]; none if there is no such table.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` (unknown policy, a field in both or in neither, outside of the
    /// time frame), `AuthorizationProtocolMismatch`, `AuthorizationSourceIPMismatch`,
    /// `AuthorizationServiceMismatch`.
    pub fn grant(&self, origin: &RequestOrigin, policies: &[SignedIdentifier]) -> Result<Grant> {
        let token = &self.0;
        let policy = self.policy(policies)?;
        let start = either(token.start, policy.start, "start")?;
        let expiry = either(token.expiry, policy.expiry, "expiry")?
            .ok_or_else(|| refused("neither token nor policy has an expiry"))?;
        let permissions = either(token.permissions, policy.permission, "permission")?
            .ok_or_else(|| refused("neither token nor policy has permissions"))?;

        check_time(origin.now, start, expiry)?;
        if token.protocols == Some(Protocols::HttpsOnly) && !origin.https {
            return Err(ErrorCode::AuthorizationProtocolMismatch.into());
        }
        check_address(origin.client, token.ip_range)?;
        match &token.kind {
            Kind::Account { table_service: false, .. } => {
                Err(ErrorCode::AuthorizationServiceMismatch.into())
            }
            Kind::Account { table_service: true, resource_types } => {
                Ok(Grant::Account { resource_types: *resource_types, permissions })
            }
            Kind::Table { range } => {
                let table = token.fields.table.as_deref().unwrap_or_default().to_owned();
                Ok(Grant::Table { table, permissions, range: range.clone() })
            }
        }
    }

    /// The `si` of a table token; account tokens do not sign the field, so theirs means nothing.
    fn identifier(&self) -> Option<&str> {
        match self.0.kind {
            Kind::Table { .. } => present(&self.0.fields.identifier),
            Kind::Account { .. } => None,
        }
    }

    fn policy(&self, policies: &[SignedIdentifier]) -> Result<AccessPolicy> {
        let Some(id) = self.identifier() else {
            return Ok(AccessPolicy::default());
        };
        match policies.iter().find(|policy| policy.id == id) {
            Some(policy) => Ok(policy.access_policy.clone().unwrap_or_default()),
            None => Err(refused("si names no stored access policy")),
        }
    }
}

fn optional<T>(
    field: &Option<Cow<'_, str>>,
    name: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    match present(field) {
        None => Ok(None),
        Some(text) => match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(refused(format!("{name} is malformed"))),
        },
    }
}

/// A field stands in the token or in the policy, never in both.
fn either<T>(token: Option<T>, policy: Option<T>, name: &'static str) -> Result<Option<T>> {
    match (token, policy) {
        (Some(_), Some(_)) => Err(refused(format!("both token and policy have a {name}"))),
        (token, policy) => Ok(token.or(policy)),
    }
}

fn check_time(now: Ticks, start: Option<Ticks>, expiry: Ticks) -> Result<()> {
    let started = start.is_none_or(|start| now.0 >= start.0 - START_SKEW_TICKS);
    if started && now < expiry {
        return Ok(());
    }
    Err(refused(format!(
        "signature not valid in the specified time frame: start={start:?} \
         expiry={expiry:?} now={now:?}"
    )))
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
mod tests {
    use proptest::prelude::*;

    use super::super::fields::tests::{borrow, decode};
    use super::super::{AccountSasSpec, TableSasSpec};
    use super::*;
    use crate::auth::key::tests::dev_key;

    const ACCOUNT: &str = "devstoreaccount1";

    fn ticks(text: &str) -> Ticks {
        Ticks::parse_iso(text).unwrap()
    }

    fn origin() -> RequestOrigin {
        RequestOrigin { now: ticks("2025-06-01"), client: [168, 1, 5, 65].into(), https: true }
    }

    fn grant_at(
        query: &str,
        origin: &RequestOrigin,
        policies: &[SignedIdentifier],
    ) -> Result<Grant> {
        let pairs = decode(query);
        let token = SasToken::parse(borrow(&pairs))?.expect("the query has a sig");
        token
            .verify(ACCOUNT, &[AccountKey::from_bytes(b"other"), dev_key()])?
            .grant(origin, policies)
    }

    fn grant(query: &str) -> Result<Grant> {
        grant_at(query, &origin(), &[])
    }

    fn code<T>(result: Result<T>) -> Option<(ErrorCode, u16)> {
        result.err().map(|error| (error.code(), error.status()))
    }

    const FAILED: Option<(ErrorCode, u16)> = Some((ErrorCode::AuthenticationFailed, 403));

    /// Signs fields as they are, so that tests can make tokens that the specs cannot.
    fn sign(query: &str) -> String {
        let pairs = decode(query);
        let mut fields = SasFields::from_pairs(borrow(&pairs));
        let version = SasVersion::parse(fields.version.as_deref().unwrap()).unwrap();
        let text = if fields.table.is_some() {
            fields.table_string(ACCOUNT, version)
        } else {
            fields.account_string(ACCOUNT, version)
        };
        fields.signature = Some(dev_key().sign(&text).to_base64().into());
        fields.to_query()
    }

    /// Made by azure-data-tables 12.7.0 `generate_table_sas` with the emulator's key.
    const PYTHON_TABLE_SAS: &str = "st=2020-01-01&se=2030-01-02T03%3A04%3A05Z&sp=raud&sip=168.1.5.60-168.1.5.70&spr=https%2Chttp&sv=2019-02-02&tn=MyTable&spk=A&srk=1&epk=Z%C3%A9&erk=9/x%2By&sig=IFATZAmLgzW%2BdOpPMRRr7zL5EsGnFXaAA3ve7tuQHCc%3D";
    /// Made by azure-data-tables 12.7.0 `generate_account_sas` with the emulator's key.
    const PYTHON_ACCOUNT_SAS: &str = "st=2020-01-01T00%3A00%3A00Z&se=2030-01-01T00%3A00%3A00Z&sp=rwdlacu&sip=10.0.0.1&spr=https&sv=2019-02-02&ss=t&srt=soc&sig=i6qtA337KGVn1NCVAxrFbfPcaG7S3az1EXM8j1zwvF0%3D";

    #[test]
    fn table_tokens_of_the_python_sdk() {
        assert_eq!(
            grant(PYTHON_TABLE_SAS).unwrap(),
            Grant::Table {
                table: "MyTable".into(),
                permissions: Permissions::TABLE_ALL,
                range: KeyRangeLimit::new(Some("A"), Some("1"), Some("Z\u{e9}"), Some("9/x+y"))
                    .unwrap(),
            }
        );
        // Made by azure-data-tables 12.7.0 generate_table_sas, too.
        let plain = "se=2030-01-01T00%3A00%3A00Z&sp=r&sv=2019-02-02&tn=MyTable&sig=YzfTkKP8gj98vRhYfivNKLH2Xo8G8Lk0DYF%2BbUMCg04%3D";
        assert_eq!(
            grant(plain).unwrap(),
            Grant::Table {
                table: "MyTable".into(),
                permissions: Permissions::READ,
                range: KeyRangeLimit::default(),
            }
        );
    }

    #[test]
    fn an_account_token_of_the_python_sdk() {
        let origin = RequestOrigin { client: [10, 0, 0, 1].into(), ..origin() };
        assert_eq!(
            grant_at(PYTHON_ACCOUNT_SAS, &origin, &[]).unwrap(),
            Grant::Account {
                resource_types: ResourceTypes::ALL,
                permissions: Permissions::ACCOUNT_ALL
            }
        );
    }

    /// The tokens that azure-sdk-for-js expects in `fakeTestSecrets.ts` (expectedSas1 to 7). Their
    /// key is the text `keySecret`, of which Node decodes the first eight characters.
    #[test]
    fn tokens_of_the_javascript_sdk() {
        let key = AccountKey::from_base64("keySecre").unwrap();
        for query in [
            "sv=2019-02-02&se=2021-12-12T01%3A00%3A00Z&sp=r&sig=lZxPmk%2BpMuu2MRXxeTZoBV6m3eobZKuIkYcHLDdDt2Q%3D&tn=testTable",
            "sv=2019-02-02&se=2021-12-12T01%3A00%3A00Z&sp=ad&sig=bf2oeXb%2FVL9hzbd5ZWngdNJoR%2BkyDp0vPZz%2FDGJt1d4%3D&tn=testTable",
            "sv=2019-02-02&se=2022-12-12T00%3A00%3A00Z&sp=r&sig=Jm1wKNTA0%2FHH8u9S8dSjqdZKtFKYr7whXnxDy3RKsxU%3D&tn=testTable",
            "sv=2019-02-02&si=MyAccessPolicy&sig=bXpQx%2FOSDR8oGiqi1QJekrwS5MBf%2Bdi6x%2FClf9QVKgg%3D&tn=testTable",
            "sv=2019-02-02&ss=t&srt=sco&se=2021-12-12T01%3A00%3A00Z&sp=rl&sig=Yuhy3%2BSpfj%2BFWmSoxa1GAxtX6IOKvX6qGnHIKn%2FLHD0%3D",
            "sv=2019-02-02&ss=t&srt=sco&se=2021-12-12T01%3A00%3A00Z&sp=da&sig=TmE8AOQFacynVIVR5ljBYqY3Y3K6olfdDMLl09iRvvs%3D",
            "sv=2019-02-02&ss=t&srt=sco&se=2022-12-12T00%3A00%3A00Z&sp=rl&sig=y42pmN9E%2FgA2O3nGn25lx%2B%2BqQmhvh0WqFi4%2BkOPitwA%3D",
        ] {
            let pairs = decode(query);
            let token = SasToken::parse(borrow(&pairs)).unwrap().unwrap();
            token.verify("keyName", std::slice::from_ref(&key)).unwrap();
        }
    }

    /// Signatures computed with Python's `hmac` over the strings of the reference, section 10.5.
    /// The layout of 2014-02-14 is that of azure-storage 0.20.3 for Python
    /// (`SharedAccessSignature._generate_signature`).
    #[test]
    fn older_and_newer_layouts() {
        for query in [
            "sp=raud&st=2015-01-01&se=2030-01-01&tn=MyTable&sv=2014-02-14&spk=A&srk=1&epk=Z&erk=9&sig=ren40mc/GFCEBBMsnsHsDjxoS9ChkHAVCTgi7sRCi0E%3D",
            "sp=r&se=2030-01-01&tn=MyTable&sv=2015-02-21&sig=05hG%2B0Y4D6Nd4CrrYjSQd6znyCaBVu4%2Bi6DtOzo%2BzFc%3D",
            "sp=r&se=2030-01-01&tn=MyTable&sv=2012-02-12&sig=cMG825NXZnFh6tbOIpnDQ9R4BckNS08HBIU%2BndsYnkk%3D",
            "sp=rwdlacu&ss=t&srt=sco&se=2030-01-01T00%3A00%3A00Z&spr=https&sv=2020-12-06&sig=Bb3i7BtYTLcn2F3MnzyNSTPnKpo%2BPYRcy14DA7iYzsY%3D",
        ] {
            grant(query).unwrap();
        }
    }

    #[test]
    fn strings_to_sign() {
        let table = |query: &str| {
            let pairs = decode(query);
            let fields = SasFields::from_pairs(borrow(&pairs));
            let version = SasVersion::parse(fields.version.as_deref().unwrap()).unwrap();
            (fields.table_string("acct", version), fields.account_string("acct", version))
        };
        let all =
            "sp=P&st=S&se=E&tn=Tn&si=I&sip=A&spr=R&spk=1&srk=2&epk=3&erk=4&ss=t&srt=o&ses=X&sv=";
        assert_eq!(
            table(&format!("{all}2015-04-05")),
            (
                "P\nS\nE\n/table/acct/tn\nI\nA\nR\n2015-04-05\n1\n2\n3\n4".into(),
                "acct\nP\nt\no\nS\nE\nA\nR\n2015-04-05\n".into()
            )
        );
        assert_eq!(
            table(&format!("{all}2020-12-06")).1,
            "acct\nP\nt\no\nS\nE\nA\nR\n2020-12-06\nX\n"
        );
        assert_eq!(
            table(&format!("{all}2015-02-21")).0,
            "P\nS\nE\n/table/acct/tn\nI\n2015-02-21\n1\n2\n3\n4"
        );
        assert_eq!(
            table(&format!("{all}2014-02-14")).0,
            "P\nS\nE\n/acct/tn\nI\n2014-02-14\n1\n2\n3\n4"
        );
        assert_eq!(table("tn=t&sv=2019-02-02").0, "\n\n\n/table/acct/t\n\n\n\n2019-02-02\n\n\n\n");
    }

    #[test]
    fn a_query_without_signature_has_no_token() {
        let pairs = decode("$filter=a&sv=2019-02-02&tn=t");
        assert!(SasToken::parse(borrow(&pairs)).unwrap().is_none());
    }

    #[test]
    fn malformed_tokens_are_refused() {
        let table = "tn=t&sp=r&se=2030-01-01&sv=2019-02-02";
        let account = "ss=t&srt=o&sp=r&se=2030-01-01&sv=2019-02-02";
        for query in [table, account] {
            assert_eq!(code(grant(&sign(query))), None, "{query}");
        }
        for query in [
            table.replace("2030-01-01", "soon"),
            table.replace("sp=r", "sp=rw"),
            table.replace("2019-02-02", "2011-08-18"),
            table.replace("tn=t&", "tn=t&sip=::1&"),
            table.replace("tn=t&", "tn=t&spr=http&"),
            table.replace("tn=t&", "tn=t&srk=1&"),
            table.replace("tn=t&", "tn=t&erk=1&"),
            table.replace("tn=t&", "tn=t&st=now&"),
            table.replace("sp=r&", ""),
            table.replace("se=2030-01-01&", ""),
            table.replace("tn=t&", "tn=t&ss=t&"),
            table.replace("tn=t", "tn="),
            table.replace("tn=t&", "tn=t&spk=a%0Ab&"),
            table.replace("tn=t&", "tn=t&si=a%0A&"),
            table.replace("2019-02-02", "2014-02-14&sip=10.0.0.1"),
            table.replace("2019-02-02", "2014-02-14&spr=https"),
            account.replace("srt=o", "srt=x"),
            account.replace("srt=o&", ""),
            account.replace("ss=t&", ""),
            account.replace("2019-02-02", "2015-02-21"),
            account.replace("sp=r&", ""),
            account.replace("se=2030-01-01&", ""),
        ] {
            assert_eq!(code(grant(&sign(&query))), FAILED, "{query}");
        }
        for field in ["skoid", "sktid", "skt", "ske", "sks", "skv"] {
            let query = format!("{}&{field}=x", sign(table));
            assert_eq!(code(grant(&query)), FAILED, "{query}");
        }
        assert_eq!(code(grant("sig=AAAA&tn=t&sv=2019-02-02")), FAILED);
        let unsigned = sign(table).replace("sv=2019-02-02&", "");
        assert_eq!(code(grant(&unsigned)), FAILED);
    }

    #[test]
    fn the_time_frame() {
        let query = sign("tn=t&sp=r&st=2025-01-01&se=2025-01-02&sv=2019-02-02");
        let at = |now| code(grant_at(&query, &RequestOrigin { now, ..origin() }, &[]));
        let (start, expiry) = (ticks("2025-01-01"), ticks("2025-01-02"));
        assert_eq!(at(Ticks(start.0 - START_SKEW_TICKS - 1)), FAILED);
        assert_eq!(at(Ticks(start.0 - START_SKEW_TICKS)), None);
        assert_eq!(at(Ticks(expiry.0 - 1)), None);
        assert_eq!(at(expiry), FAILED);
    }

    #[test]
    fn address_protocol_and_service() {
        let client = RequestOrigin { client: [168, 1, 5, 71].into(), ..origin() };
        let error = grant_at(PYTHON_TABLE_SAS, &client, &[]).unwrap_err();
        assert_eq!((error.code(), error.status()), (ErrorCode::AuthorizationSourceIPMismatch, 403));
        assert_eq!(
            error.message(),
            "This request is not authorized to perform this operation using this source IP 168.1.5.71."
        );
        let mapped = RequestOrigin { client: "::ffff:168.1.5.65".parse().unwrap(), ..origin() };
        assert_eq!(code(grant_at(PYTHON_TABLE_SAS, &mapped, &[])), None);
        // This one may come over HTTP, the other may not.
        let plain = RequestOrigin { https: false, ..origin() };
        assert_eq!(code(grant_at(PYTHON_TABLE_SAS, &plain, &[])), None);
        assert_eq!(
            code(grant_at(PYTHON_ACCOUNT_SAS, &plain, &[])),
            Some((ErrorCode::AuthorizationProtocolMismatch, 403))
        );
        let blobs = sign("ss=bqf&srt=o&sp=r&se=2030-01-01&sv=2019-02-02");
        assert_eq!(code(grant(&blobs)), Some((ErrorCode::AuthorizationServiceMismatch, 403)));
        assert_eq!(code(grant(&sign("ss=bfqt&srt=o&sp=r&se=2030-01-01&sv=2019-02-02"))), None);
    }

    #[test]
    fn stored_policies_complete_the_token() {
        // Made by azure-data-tables 12.7.0 generate_table_sas(policy_id="my policy").
        let query = "sv=2019-02-02&si=my%20policy&tn=MyTable&sig=R0Jv/wD9ahnddgRJbER0FVrPrzBkDaZ%2BHZZ2Oihzy7s%3D";
        let full = AccessPolicy {
            start: Some(ticks("2025-01-01")),
            expiry: Some(ticks("2026-01-01")),
            permission: Some(Permissions::READ),
        };
        let stored = |policy: &AccessPolicy| {
            let id = "my policy".to_owned();
            vec![SignedIdentifier { id, access_policy: Some(policy.clone()) }]
        };
        let with = |query: &str, policy: &AccessPolicy| grant_at(query, &origin(), &stored(policy));
        let granted = with(query, &full).unwrap();
        assert!(matches!(granted, Grant::Table { permissions: Permissions::READ, .. }));

        let pairs = decode(query);
        let verified = SasToken::parse(borrow(&pairs))
            .unwrap()
            .unwrap()
            .verify(ACCOUNT, &[dev_key()])
            .unwrap();
        assert_eq!(verified.policy_table(), Some("MyTable"));

        // Unknown, without policy, incomplete, expired, not yet valid.
        assert_eq!(code(grant(query)), FAILED);
        let bare = SignedIdentifier { id: "my policy".into(), access_policy: None };
        assert_eq!(code(grant_at(query, &origin(), &[bare])), FAILED);
        for policy in [
            AccessPolicy { expiry: None, ..full.clone() },
            AccessPolicy { permission: None, ..full.clone() },
            AccessPolicy { expiry: Some(ticks("2025-05-01")), ..full.clone() },
            AccessPolicy { start: Some(ticks("2025-07-01")), ..full.clone() },
        ] {
            assert_eq!(code(with(query, &policy)), FAILED, "{policy:?}");
        }

        // A field in the token and in the policy.
        for field in ["sp=r", "st=2025-01-01", "se=2026-01-01"] {
            let query = sign(&format!("tn=t&si=my%20policy&sv=2019-02-02&{field}"));
            assert_eq!(code(with(&query, &full)), FAILED, "{field}");
        }
        let query = sign("tn=t&si=my%20policy&sv=2019-02-02&sp=d&se=2026-01-01");
        let start = AccessPolicy { start: full.start, ..AccessPolicy::default() };
        assert_eq!(code(with(&query, &start)), None);
        // Ids are compared with case.
        let query = sign("tn=t&si=My%20Policy&sv=2019-02-02");
        assert_eq!(code(with(&query, &full)), FAILED);
    }

    fn any_version() -> impl Strategy<Value = SasVersion> {
        proptest::sample::select(vec!["2015-04-05", "2019-02-02", "2020-12-06", "2026-02-06"])
            .prop_map(|text| SasVersion::parse(text).unwrap())
    }

    fn any_key() -> impl Strategy<Value = String> {
        "[ -~\u{e9}\u{1F600}]{1,6}"
    }

    prop_compose! {
        fn any_table_spec()(
            version in any_version(),
            table in "[A-Za-z][A-Za-z0-9]{2,8}",
            bits in 1u8..16,
            start in proptest::bool::ANY,
            https in proptest::bool::ANY,
            keys in (any_key(), any_key(), any_key(), any_key()),
        ) -> TableSasSpec {
            let permissions = Permissions::from_bits(bits).unwrap();
            let (spk, srk, epk, erk) = (&*keys.0, &*keys.1, &*keys.2, &*keys.3);
            TableSasSpec {
                version,
                start: start.then(|| ticks("2020-01-01T01:02:03Z")),
                protocols: https.then_some(Protocols::HttpsOnly),
                ip_range: IpRange::parse("168.1.5.60-168.1.5.70"),
                range: KeyRangeLimit::new(Some(spk), Some(srk), Some(epk), Some(erk)).unwrap(),
                ..TableSasSpec::new(table, permissions, ticks("2030-01-01"))
            }
        }
    }

    /// Every way to change one character of one signed field, or to drop or add a field.
    fn tampered(query: &str, at: usize, with: char) -> Vec<String> {
        let pairs = decode(query);
        let mut results = Vec::new();
        let print = |pairs: &[(String, String)]| SasFields::from_pairs(borrow(pairs)).to_query();
        for index in 0..pairs.len() {
            let mut changed = pairs.clone();
            let mut value: Vec<char> = changed[index].1.chars().collect();
            let at = at % value.len();
            value[at] = if value[at] == with { '~' } else { with };
            changed[index].1 = value.into_iter().collect();
            results.push(print(&changed));
            if pairs[index].0 != "sig" {
                let mut dropped = pairs.clone();
                dropped.remove(index);
                results.push(print(&dropped));
            }
        }
        // The other fields of table tokens mean nothing in account tokens.
        let is_account = pairs.iter().any(|(name, _)| name == "ss");
        let added: &[&str] = if is_account {
            &["st", "sip", "spr"]
        } else {
            &["st", "si", "sip", "spr", "spk", "srk", "epk", "erk"]
        };
        for name in added {
            if !pairs.iter().any(|(known, _)| known == name) {
                results.push(format!("{query}&{name}=a"));
            }
        }
        results
    }

    proptest! {
        #[test]
        fn a_table_token_round_trips_and_resists(spec in any_table_spec(), at in 0usize..50, with in "[0-9]") {
            let query = spec.sign(ACCOUNT, &dev_key());
            let expected = Grant::Table {
                table: spec.table.clone(),
                permissions: spec.permissions.unwrap(),
                range: spec.range.clone(),
            };
            prop_assert_eq!(grant(&query).unwrap(), expected);
            let pairs = decode(&query);
            let token = SasToken::parse(borrow(&pairs)).unwrap().unwrap();
            prop_assert_eq!(code(token.clone().verify("other", &[dev_key()])), FAILED);
            prop_assert_eq!(code(token.verify(ACCOUNT, &[AccountKey::from_bytes(b"k")])), FAILED);
            for changed in tampered(&query, at, with.chars().next().unwrap()) {
                prop_assert_eq!(code(grant(&changed)), FAILED, "{}", changed);
            }
        }

        #[test]
        fn an_account_token_round_trips_and_resists(
            version in any_version(), bits in 1u8..128, types in 1u8..8, at in 0usize..50, with in "[0-9]",
        ) {
            let resource_types = ResourceTypes {
                service: types & 1 != 0,
                container: types & 2 != 0,
                object: types & 4 != 0,
            };
            let permissions = Permissions::from_bits(bits).unwrap();
            let spec = AccountSasSpec {
                version,
                start: Some(ticks("2020-01-01")),
                ip_range: IpRange::parse("168.1.5.65"),
                protocols: Some(Protocols::HttpsAndHttp),
                ..AccountSasSpec::new(permissions, resource_types, ticks("2030-01-01"))
            };
            let query = spec.sign(ACCOUNT, &dev_key());
            prop_assert_eq!(grant(&query).unwrap(), Grant::Account { resource_types, permissions });
            for changed in tampered(&query, at, with.chars().next().unwrap()) {
                prop_assert_eq!(code(grant(&changed)), FAILED, "{}", changed);
            }
        }

        #[test]
        fn any_fields_are_handled(
            values in proptest::collection::vec(("(sv|ss|srt|sp|st|se|sip|spr|si|tn|srk|sig)", "[0-9a-z:.,T-]{0,12}"), 0..8)
        ) {
            let _ = SasToken::parse(borrow(&values)).map(|token| token.is_some());
        }
    }
}
