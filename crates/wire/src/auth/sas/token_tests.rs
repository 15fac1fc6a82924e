//! Tokens of tables and accounts: what SDKs made, what is malformed, and what no holder can change.

use proptest::prelude::*;

use super::super::ResourceTypes;
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

fn grant_at(query: &str, origin: &RequestOrigin, policies: &[SignedIdentifier]) -> Result<Grant> {
    let pairs = decode(query);
    let token = SasToken::parse(Addressed::Table, borrow(&pairs))?.expect("the query has a sig");
    token.verify(ACCOUNT, &[AccountKey::from_bytes(b"other"), dev_key()])?.grant(origin, policies)
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
    let mut fields = SasFields::from_pairs(Service::Table, borrow(&pairs));
    let version = SasVersion::parse(fields.text(Field::Version)).unwrap();
    let mut text = String::new();
    match fields.get(Field::Table) {
        Some(_) => table::push_string_to_sign(&mut text, &fields, ACCOUNT, version),
        None => account::push_string_to_sign(&mut text, &fields, ACCOUNT, version),
    }
    fields.set(Field::Signature, dev_key().sign(&text).to_base64());
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
        let token = SasToken::parse(Addressed::Table, borrow(&pairs)).unwrap().unwrap();
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
    let strings = |query: &str| {
        let pairs = decode(query);
        let fields = SasFields::from_pairs(Service::Table, borrow(&pairs));
        let version = SasVersion::parse(fields.text(Field::Version)).unwrap();
        let (mut table, mut account) = (String::new(), String::new());
        table::push_string_to_sign(&mut table, &fields, "acct", version);
        account::push_string_to_sign(&mut account, &fields, "acct", version);
        (table, account)
    };
    let all = "sp=P&st=S&se=E&tn=Tn&si=I&sip=A&spr=R&spk=1&srk=2&epk=3&erk=4&ss=t&srt=o&ses=X&sv=";
    assert_eq!(
        strings(&format!("{all}2015-04-05")),
        (
            "P\nS\nE\n/table/acct/tn\nI\nA\nR\n2015-04-05\n1\n2\n3\n4".into(),
            "acct\nP\nt\no\nS\nE\nA\nR\n2015-04-05\n".into()
        )
    );
    assert_eq!(
        strings(&format!("{all}2020-12-06")).1,
        "acct\nP\nt\no\nS\nE\nA\nR\n2020-12-06\nX\n"
    );
    assert_eq!(
        strings(&format!("{all}2015-02-21")).0,
        "P\nS\nE\n/table/acct/tn\nI\n2015-02-21\n1\n2\n3\n4"
    );
    assert_eq!(
        strings(&format!("{all}2014-02-14")).0,
        "P\nS\nE\n/acct/tn\nI\n2014-02-14\n1\n2\n3\n4"
    );
    assert_eq!(strings("tn=t&sv=2019-02-02").0, "\n\n\n/table/acct/t\n\n\n\n2019-02-02\n\n\n\n");
}

#[test]
fn a_query_without_signature_has_no_token() {
    let pairs = decode("$filter=a&sv=2019-02-02&tn=t");
    assert!(SasToken::parse(Addressed::Table, borrow(&pairs)).unwrap().is_none());
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
    let verified = SasToken::parse(Addressed::Table, borrow(&pairs))
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
        let permissions = Permissions::of_bits(bits);
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
    let print = |pairs: &[(String, String)]| {
        SasFields::from_pairs(Service::Table, borrow(pairs)).to_query()
    };
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

fn cache_key(query: &str) -> String {
    let pairs = decode(query);
    SasToken::parse(Addressed::Table, borrow(&pairs)).unwrap().unwrap().cache_key(ACCOUNT)
}

/// Whoever holds a token cannot make it look like many.
#[test]
fn a_token_has_one_cache_key() {
    let table = sign("tn=MyTable&sp=r&se=2030-01-01&sv=2019-02-02&spk=a&epk=b");
    let account = sign("ss=t&srt=o&sp=r&se=2030-01-01&sv=2019-02-02");
    for query in [&table, &account] {
        let key = cache_key(query);
        let mut reversed: Vec<_> = query.split('&').collect();
        reversed.reverse();
        let mut same = vec![
            reversed.join("&"),
            format!("$top=5&timeout=3&x=y&{query}&comp=acl&sr=c&rscc=1&saoid=1"),
            format!("{query}&st=&si=&sip=&spr=&ses="),
            format!("{query}&SE=2031-01-01"),
        ];
        if *query == account {
            same.push(format!("{query}&si=a&spk=b&srk=c&epk=d&erk=e&tn=&ses=f"));
        } else {
            same.push(query.replace("MyTable", "mYtABLE"));
            same.push(format!("{query}&ses=f"));
        }
        for same in same {
            assert_eq!(cache_key(&same), key, "{same}");
            assert_eq!(code(grant(&same)), None, "{same}");
        }
        for twice in
            [format!("{query}&{query}"), format!("{query}&sp=r"), format!("sp=raud&{query}")]
        {
            assert_eq!(code(grant(&twice)), FAILED, "{twice}");
        }
    }
    // An empty bound is signed as none is, and opens less.
    let keys = ["", "&spk=", "&spk=&srk=", "&epk=", "&epk=&erk=", "&spk=&epk="].map(|bounds| {
        cache_key(&format!("{}{bounds}", sign("tn=t&sp=r&se=2030-01-01&sv=2019-02-02")))
    });
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "{key}");
    }
    let pairs = decode(&account);
    let other = SasToken::parse(Addressed::Queue("q".into()), borrow(&pairs)).unwrap().unwrap();
    assert_ne!(other.cache_key(ACCOUNT), cache_key(&account), "ss is asked for its service");
    assert_ne!(other.cache_key("other"), other.cache_key(ACCOUNT));
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
        let token = SasToken::parse(Addressed::Table, borrow(&pairs)).unwrap().unwrap();
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
        let permissions = Permissions::of_bits(bits);
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
        let _ = SasToken::parse(Addressed::Table, borrow(&values)).map(|token| token.is_some());
    }

    /// The cache may answer for a token only what the token would have been told.
    #[test]
    fn tokens_of_one_cache_key_are_alike(
        one in any_fields(), changes in any_fields(), which in any::<prop::sample::Index>(),
        at in "2025-0[1-9]-01", https in any::<bool>(),
    ) {
        // The same but for one field.
        let mut other = one.clone();
        if !changes.is_empty() {
            let change = which.get(&changes);
            other.retain(|(name, _)| *name != change.0);
            other.push(change.clone());
        }
        let signature = dev_key().sign("").to_base64();
        let parse = |fields: &[(String, String)]| {
            let mut fields = fields.to_vec();
            fields.push(("sig".into(), signature.clone()));
            let token = SasToken::parse(Addressed::Table, borrow(&fields)).ok().flatten();
            token.map(SasToken::into_owned)
        };
        if let (Some(one), Some(other)) = (parse(&one), parse(&other))
            && one.cache_key(ACCOUNT) == other.cache_key(ACCOUNT)
        {
            prop_assert_eq!(one.string_to_sign(ACCOUNT), other.string_to_sign(ACCOUNT));
            let origin = RequestOrigin { now: ticks(&at), https, ..origin() };
            let policy = AccessPolicy { permission: Some(Permissions::READ), ..AccessPolicy::default() };
            let policies = [SignedIdentifier { id: "a".into(), access_policy: Some(policy) }];
            let [one, other] = [one, other].map(|token| {
                let verified = VerifiedSas(token);
                let table = verified.policy_table().map(str::to_ascii_lowercase);
                let grant = match verified.grant(&origin, &policies) {
                    Ok(Grant::Table { table, permissions, range }) => {
                        let table = table.to_ascii_lowercase();
                        Ok(Grant::Table { table, permissions, range })
                    }
                    Ok(grant) => Ok(grant),
                    Err(error) => Err(error.code()),
                };
                (grant, table)
            });
            prop_assert_eq!(one, other);
        }
    }
}

/// Fields with so few values that two lists of them often sign alike.
fn any_fields() -> impl Strategy<Value = Vec<(String, String)>> {
    let values = [
        ("sv", vec!["2019-02-02", "2014-02-14", "2020-12-06"]),
        ("sp", vec!["r", "", "au"]),
        ("se", vec!["2025-06-01", ""]),
        ("st", vec!["", "2025-03-01"]),
        ("tn", vec!["t", "T", ""]),
        ("ss", vec!["t", "q", "bt"]),
        ("srt", vec!["o", "s"]),
        ("si", vec!["", "a"]),
        ("sip", vec!["", "168.1.5.65", "10.0.0.1"]),
        ("spr", vec!["", "https"]),
        ("ses", vec!["", "x"]),
        ("spk", vec!["", "a"]),
        ("srk", vec!["", "a"]),
        ("epk", vec!["", "a"]),
        ("erk", vec!["", "a"]),
    ];
    let field = |(name, values): (&'static str, Vec<&'static str>)| {
        // Most tokens have the first three, few the others.
        let chance = if ["sv", "sp", "se", "tn"].contains(&name) { 0.95 } else { 0.15 };
        let value = prop::option::weighted(chance, prop::sample::select(values));
        value.prop_map(move |value| value.map(|value| (name.to_owned(), value.to_owned())))
    };
    let fields: Vec<_> = values.into_iter().map(|values| field(values).boxed()).collect();
    fields.prop_map(|fields| fields.into_iter().flatten().collect())
}
