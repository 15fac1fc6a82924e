//! XML bodies: access policies and service properties, and what browsers are told by them.

use tavola_wire::cors;
use tavola_wire::xml::acl;
use tavola_wire::xml::service_properties::{
    CORS_RULES_MAX, CorsRule, ServiceProperties, ServicePropertiesUpdate,
};

use crate::input::assert_refusal;

pub fn run(data: &[u8]) {
    policies(data);
    properties(data);
}

/// What is read is written and read again as the same, and written the same.
fn policies(data: &[u8]) {
    let identifiers = match acl::parse(data) {
        Ok(identifiers) => identifiers,
        Err(error) => return assert_refusal(&error),
    };
    assert!(identifiers.len() <= acl::IDENTIFIERS_MAX);
    let written = acl::write(&identifiers);
    let again = acl::parse(written.as_bytes()).expect("our own document");
    assert_eq!(again, identifiers, "{written}");
    assert_eq!(acl::write(&again), written);
}

fn properties(data: &[u8]) {
    let update = match ServicePropertiesUpdate::parse(data) {
        Ok(update) => update,
        Err(error) => return assert_refusal(&error),
    };
    let default = ServiceProperties::default();
    let properties = update.clone().apply(&default);
    assert_eq!(update.apply(&properties), properties);
    let written = properties.to_xml();
    let again = ServicePropertiesUpdate::parse(written.as_bytes()).expect("our own document");
    let again = again.apply(&default);
    assert_eq!(again, properties, "{written}");
    assert_eq!(again.to_xml(), written);
    assert!(properties.cors.len() <= CORS_RULES_MAX);
    for rule in &properties.cors {
        preflights(&properties.cors, rule);
    }
}

/// A page from an origin that a rule names is answered, and one that no rule names is not.
fn preflights(rules: &[CorsRule], rule: &CorsRule) {
    for method in &rule.allowed_methods {
        for origin in rule.allowed_origins.iter().filter(|origin| !origin.contains('*')) {
            let answer = cors::preflight(rules, Some(origin), Some(method), None);
            let answer = answer.expect("a rule names the origin");
            assert!([origin.as_str(), "*"].contains(&answer.allow_origin.as_str()));
            assert_eq!(answer.allow_credentials, answer.allow_origin != "*");
            assert!(cors::actual(rules, origin, method).is_some());
        }
        let stranger = "https://stranger.invalid:1";
        let names_all = |rule: &CorsRule| rule.allowed_origins.iter().any(|it| it.contains('*'));
        if !rules.iter().any(names_all) && !rule.allowed_origins.iter().any(|it| it == stranger) {
            let known = rules.iter().any(|it| it.allowed_origins.iter().any(|it| it == stranger));
            assert!(known || cors::actual(rules, stranger, method).is_none());
        }
    }
}
