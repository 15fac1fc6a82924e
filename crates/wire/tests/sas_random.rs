//! The decision functions against an independent model, for random tokens, policies, circumstances and operations.
//!
//! A failure tells its seed; `TAVOLA_TEST_SEED` runs it again, `TAVOLA_SAS_CASES` sets how many cases there are.

#![allow(clippy::print_stdout, reason = "the seed, for whoever wants to repeat a run")]

#[path = "../../cli/tests/e2e/support/random.rs"]
mod random;
#[path = "../../cli/tests/e2e/table/sas_model/mod.rs"]
mod sas_model;

use std::collections::BTreeMap;

use random::Random;
use sas_model::generate::{Generator, NEAR, PARTITIONS, ROWS, loopback};
use sas_model::grant::{Action, Circumstances, Operation, Policy, Token, refusals, shows};
use sas_model::time;
use tavola_wire::auth::sas::{
    Access, Addressed, EntityOperation, Grant, Permissions, RequestOrigin, SasToken,
};
use tavola_wire::auth::{AccessPolicy, AccountKey, SignedIdentifier};
use tavola_wire::{StorageError, Ticks};

const CASES: usize = 3_000;
const ACCOUNT: &str = "acct";

#[test]
fn decisions_are_those_of_the_model() {
    let seed = Random::seed_or(20_261_115);
    let cases = std::env::var("TAVOLA_SAS_CASES").map_or(CASES, |text| text.parse().unwrap());
    println!("TAVOLA_TEST_SEED={seed} TAVOLA_SAS_CASES={cases}");
    let mut random = Random::new(seed);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for case in 0..cases {
        let decided = check(&mut random, case);
        *seen.entry(decided).or_default() += 1;
    }
    // A generator that makes nothing but refusals, or none of a kind, would prove little.
    println!("{seen:?}");
    let kinds = [
        "AuthenticationFailed",
        "AuthorizationFailure",
        "AuthorizationPermissionMismatch",
        "AuthorizationProtocolMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationServiceMismatch",
        "AuthorizationSourceIPMismatch",
        "NoAuthenticationInformation",
        "ResourceNotFound",
    ];
    assert!(kinds.iter().all(|kind| seen.contains_key(*kind)), "{seen:?}");
    assert!(seen.get("allowed").is_some_and(|count| *count > cases / 8), "{seen:?}");
}

fn check(random: &mut Random, case: usize) -> String {
    let tables = ["Table1".to_owned(), "table2".to_owned()];
    let at = circumstances(random, &tables);
    let mut generator = Generator { random, tables: &tables, distances: &NEAR };
    let token = generator.token(&at);
    let operation = generator.operation(&token);
    let expected = refusals(&token, &at, &operation);
    let told = || format!("case {case}: {operation:?} by {token:?} at {at:?}: {expected:?}");
    match decide(&token, &at, &operation) {
        Ok(grant) => {
            assert!(expected.is_empty(), "allowed, {}", told());
            check_range(&token, &grant, &told);
            "allowed".to_owned()
        }
        Err(error) => {
            let refusal = (error.status(), error.code().as_str());
            assert!(expected.contains(&refusal), "refused with {refusal:?}, {}", told());
            refusal.1.to_owned()
        }
    }
}

/// The range that scans are narrowed to has the rows that the model shows.
fn check_range(token: &Token, grant: &Grant, told: &dyn Fn() -> String) {
    for partition in PARTITIONS {
        for row in ROWS {
            let inside = grant.key_range().is_none_or(|range| range.contains(partition, row));
            let key = (partition.to_owned(), row.to_owned());
            assert_eq!(inside, shows(token, &key), "{key:?}, {}", told());
        }
    }
}

fn circumstances(random: &mut Random, tables: &[String]) -> Circumstances {
    let now = 1_700_000_000 + i64::try_from(random.below(100_000_000)).unwrap();
    let (client, https) = (loopback(random), random.one_in(2));
    let mut policies = Vec::new();
    for table in tables {
        let mut generator = Generator { random, tables, distances: &NEAR };
        policies.push((table.to_lowercase(), generator.policies(now)));
    }
    let keys = vec![AccountKey::from_bytes(b"first"), AccountKey::from_bytes(b"second")];
    Circumstances { account: ACCOUNT.to_owned(), keys, now, client, https, policies }
}

/// What the server asks, in its order.
fn decide(token: &Token, at: &Circumstances, operation: &Operation) -> Result<Grant, StorageError> {
    let pairs = token.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str().into()));
    let Some(parsed) = SasToken::parse(Addressed::Table, pairs)? else {
        return Err(tavola_wire::ErrorCode::NoAuthenticationInformation.into());
    };
    let verified = parsed.verify(ACCOUNT, &at.keys)?;
    let table = verified.policy_table().map(str::to_lowercase);
    let stored = at.policies.iter().find(|(name, _)| Some(name) == table.as_ref());
    let stored: Vec<_> = stored.iter().flat_map(|(_, policies)| policies).map(identifier).collect();
    let origin = RequestOrigin { now: ticks(at.now), client: at.client.into(), https: at.https };
    let grant = verified.grant(&origin, &stored)?;
    match operation {
        Operation::GetServiceProperties => grant.allows(Access::GetServiceProperties)?,
        Operation::SetServiceProperties => grant.allows(Access::SetServiceProperties)?,
        Operation::GetServiceStats => grant.allows(Access::GetServiceStats)?,
        Operation::ListTables => grant.allows(Access::QueryTables)?,
        Operation::CreateTable => grant.allows(Access::CreateTable)?,
        Operation::DeleteTable => grant.allows(Access::DeleteTable)?,
        Operation::GetAcl | Operation::SetAcl => grant.allows(Access::TableAcl)?,
        Operation::Query { table } => {
            grant.allows(Access::Entity { table, operation: EntityOperation::Query })?;
        }
        Operation::Entity { table, action, key } => {
            let operation = match action {
                Action::Get => EntityOperation::Get,
                Action::Insert => EntityOperation::Insert,
                Action::Update => EntityOperation::Update,
                Action::Upsert => EntityOperation::Upsert,
                Action::Delete => EntityOperation::Delete,
            };
            grant.allows(Access::Entity { table, operation })?;
            grant.allows_key(operation, &key.0, &key.1)?;
        }
    }
    Ok(grant)
}

fn identifier(policy: &Policy) -> SignedIdentifier {
    let permission =
        policy.permission.as_deref().map(|text| Permissions::parse_table(text).unwrap());
    SignedIdentifier {
        id: policy.id.clone(),
        access_policy: Some(AccessPolicy {
            start: policy.start.map(ticks),
            expiry: policy.expiry.map(ticks),
            permission,
        }),
    }
}

fn ticks(seconds: i64) -> Ticks {
    Ticks::parse_iso(&time::write(seconds)).unwrap()
}
