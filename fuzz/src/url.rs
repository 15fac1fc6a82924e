//! A request's URL: `host`, raw path, query string and method, each on its line.

use tavola_wire::ServiceVersion;
use tavola_wire::table::ResourcePath;
use tavola_wire::table::continuation::EntityContinuation;
use tavola_wire::table::negotiate::{MetadataLevel, Preference};
use tavola_wire::table::select::{SELECT_NAMES_MAX, Select};
use tavola_wire::uri::address::split_inner_url;
use tavola_wire::uri::percent::{decode_path, decode_query, write_entity_link, write_key};
use tavola_wire::uri::query::{PARAMETERS_MAX, TIMEOUT_SECONDS_MAX, TOP_MAX};
use tavola_wire::uri::{Address, AddressRules, QueryString};
use tavola_wire::verb::Verb;

use crate::input::{assert_refusal, lines};
use crate::model::decode_slowly;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [host, path, query, method] = lines(text);
    for disable_product_style_url in [false, true] {
        address(host, path, AddressRules { disable_product_style_url });
    }
    resource(path);
    percent(path);
    percent(query);
    options(query);
    let (inner_path, inner_query) = split_inner_url(path, host);
    assert!(path.contains(inner_path) && path.ends_with(inner_query));
    if let Err(error) = Verb::resolve(method, [host]) {
        assert_refusal(&error);
    }
}

fn address(host: &str, path: &str, rules: AddressRules) {
    let address = match Address::parse(host, path, rules) {
        Ok(address) => address,
        Err(error) => return assert_refusal(&error),
    };
    assert!(path.ends_with(address.resource_path), "{address:?}");
    assert!(!address.account.is_empty());
    // It is written into headers and JSON as it is.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/[]%-._".contains(&byte);
    assert!(address.base("https").bytes().all(is_plain), "{}", address.base("https"));
    if address.account_segment.is_none() {
        assert_eq!(address.resource_path, path);
        assert!(!rules.disable_product_style_url);
    }
    resource(address.resource_path);
}

fn resource(path: &str) {
    let resource = match ResourcePath::parse(path, "acct") {
        Ok(resource) => resource,
        Err(error) => return assert_refusal(&error),
    };
    assert_eq!(resource.clone().into_owned(), resource);
    let ResourcePath::Entity { table, partition_key, row_key } = &resource else { return };
    for key in [partition_key, row_key] {
        assert_eq!(key.for_read().is_ok(), key.problem().is_none());
        for refused in [key.for_read(), key.for_write()].into_iter().filter_map(Result::err) {
            assert_refusal(&refused);
        }
    }
    if let (Ok(partition), Ok(row)) = (partition_key.for_write(), row_key.for_write()) {
        let mut link = b"/".to_vec();
        write_entity_link(table.as_str(), partition, row, &mut link);
        let link = String::from_utf8(link).expect("a link is ASCII");
        assert_eq!(ResourcePath::parse(&link, "acct").expect("our own link"), resource);
    }
}

/// Decoding against a reading byte by byte, and the way back.
fn percent(raw: &str) {
    for (decoded, plus_is_space) in [(decode_path(raw), false), (decode_query(raw), true)] {
        let expected = decode_slowly(raw.as_bytes(), plus_is_space);
        assert_eq!(decoded.as_deref().ok(), expected.as_deref(), "{raw:?}");
        let Ok(decoded) = decoded else { continue };
        let mut written = Vec::new();
        write_key(&decoded, &mut written);
        let written = String::from_utf8(written).expect("a written key is ASCII");
        assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{written:?}");
        assert_eq!(decode_path(&written).unwrap(), decoded.replace('\'', "''"));
    }
}

fn options(raw: &str) {
    let query = match QueryString::parse(raw) {
        Ok(query) => query,
        Err(error) => return assert_refusal(&error),
    };
    assert!(query.iter().count() <= PARAMETERS_MAX);
    for (name, _) in query.iter() {
        // The first of a name counts.
        let first = query.iter().find(|(other, _)| *other == name).unwrap().1;
        assert_eq!(query.value(name), Some(first));
    }
    assert!(query.top().map_err(|error| assert_refusal(&error)).ok().flatten() <= Some(TOP_MAX));
    if let Ok(Some(timeout)) = query.timeout() {
        assert!((1..=TIMEOUT_SECONDS_MAX).contains(&timeout.as_secs()));
    }
    let _ = query.refuse_unserved_options().map_err(|error| assert_refusal(&error));
    let token = EntityContinuation::from_query(query.next_partition_key(), query.next_row_key());
    let _ = token.map_err(|error| assert_refusal(&error));
    negotiation(&query);
    select(query.select().unwrap_or(raw));
}

fn negotiation(query: &QueryString<'_>) {
    let accept = query.value("accept");
    match MetadataLevel::negotiate(query.format(), accept) {
        Ok(level) => assert_eq!(MetadataLevel::for_errors(query.format(), accept), level),
        Err(error) => assert_eq!(error.status(), 415),
    }
    let version = query.api_version().unwrap_or_default();
    match ServiceVersion::parse(version) {
        Ok(parsed) => assert_eq!(parsed.as_str(), version.trim_ascii()),
        Err(error) => assert_refusal(&error),
    }
    let _ = Preference::parse(query.value("prefer").unwrap_or_default());
}

fn select(raw: &str) {
    let select = match Select::parse(raw) {
        Ok(Some(select)) => select,
        Ok(None) => return assert!(raw.split(',').all(|name| name.trim().is_empty())),
        Err(error) => return assert_refusal(&error),
    };
    assert!((1..=SELECT_NAMES_MAX).contains(&select.names().len()));
    assert_eq!(select.raw(), raw);
    assert_eq!(select.is_all(), select.names().iter().any(|name| name == "*"));
    for (at, name) in select.names().iter().enumerate() {
        assert_eq!(select.position(name.as_bytes()), Some(at), "{name}");
    }
}
