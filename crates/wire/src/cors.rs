//! Cross-origin requests of browsers, decided by the account's CORS rules.
//!
//! The first rule that matches origin and method is the one that counts; its headers are tested,
//! and no later rule is tried when they fail. A request that no rule matches is still served, only
//! without the headers that would let the browser show the answer to the page.

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::xml::service_properties::CorsRule;

/// The headers of a successful preflight, `Access-Control-` left off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightAnswer {
    /// The origin, or `*` when the rule is for all.
    pub allow_origin: String,
    pub allow_methods: String,
    /// The headers that were asked for; `None` when none were.
    pub allow_headers: Option<String>,
    pub max_age_seconds: u32,
    /// Send `Allow-Credentials: true`.
    pub allow_credentials: bool,
}

/// The headers of an answer that a page may see, `Access-Control-` left off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActualAnswer<'r> {
    /// The origin, or `*` when the rule is for all.
    pub allow_origin: String,
    /// Send `Allow-Credentials: true`.
    pub allow_credentials: bool,
    exposed: &'r [String],
}

/// Answers `OPTIONS` from the values of `Origin`, `Access-Control-Request-Method` and
/// `-Request-Headers`.
///
/// # Errors
/// 400 `InvalidHeaderValue` without origin or method; 403 `CorsPreflightFailure` when no rule
/// matches.
pub fn preflight(
    rules: &[CorsRule],
    origin: Option<&str>,
    method: Option<&str>,
    headers: Option<&str>,
) -> Result<PreflightAnswer> {
    let origin = present(origin).ok_or_else(|| lacks("Origin"))?;
    let method = present(method).ok_or_else(|| lacks("Access-Control-Request-Method"))?;
    let (rule, origin_match) =
        first_match(rules, origin, method).ok_or(ErrorCode::CorsPreflightFailure)?;
    let headers = present(headers);
    if !headers.is_none_or(|headers| allows_headers(rule, headers)) {
        return Err(ErrorCode::CorsPreflightFailure.into());
    }
    Ok(PreflightAnswer {
        allow_origin: origin_match.allow_origin(origin),
        allow_methods: method.to_owned(),
        allow_headers: headers.map(str::to_owned),
        max_age_seconds: rule.max_age_seconds,
        allow_credentials: origin_match == OriginMatch::Specific,
    })
}

/// A preflight without a header that it has to have; queues and blobs are told which.
fn lacks(header: &'static str) -> StorageError {
    StorageError::new(ErrorCode::InvalidHeaderValue)
        .element("HeaderName", header)
        .element("HeaderValue", "")
        .caused_by(format!("a preflight request has no {header}"))
}

/// The headers for a request that is not a preflight; `None` when no rule matches.
pub fn actual<'r>(rules: &'r [CorsRule], origin: &str, method: &str) -> Option<ActualAnswer<'r>> {
    let (rule, origin_match) = first_match(rules, origin, method)?;
    Some(ActualAnswer {
        allow_origin: origin_match.allow_origin(origin),
        allow_credentials: origin_match == OriginMatch::Specific,
        exposed: &rule.exposed_headers,
    })
}

/// The headers for a read that names no origin: queues and blobs say of what anybody may see that anybody may. `None` when
/// no rule is for all.
pub fn without_origin<'r>(rules: &'r [CorsRule], method: &str) -> Option<ActualAnswer<'r>> {
    let is_for_all = |rule: &&CorsRule| {
        allows_method(rule, method) && rule.allowed_origins.iter().any(|origin| origin == "*")
    };
    let rule = rules.iter().find(is_for_all).filter(|_| is_read(method))?;
    Some(ActualAnswer {
        allow_origin: "*".to_owned(),
        allow_credentials: false,
        exposed: &rule.exposed_headers,
    })
}

/// Whether the answer to a read depends on the origin and must say `Vary: Origin`, so that caches
/// keep origins apart. This does not depend on whether this request has an origin.
pub fn vary_origin(rules: &[CorsRule], method: &str) -> bool {
    is_read(method)
        && rules.iter().any(|rule| !rule.allowed_origins.iter().any(|origin| origin == "*"))
}

impl ActualAnswer<'_> {
    /// The value of `Access-Control-Expose-Headers`: the rule's names, and of the answer's headers
    /// those that match one of its prefixes. `None` when there are none.
    pub fn expose_headers<'h>(
        &self,
        answer_headers: impl IntoIterator<Item = &'h str>,
    ) -> Option<String> {
        let literals = self.exposed.iter().map(String::as_str).filter(|name| !name.ends_with('*'));
        let mut names: Vec<&str> = literals.collect();
        for header in answer_headers {
            let by_prefix = self
                .exposed
                .iter()
                .any(|pattern| pattern.ends_with('*') && header_matches(pattern, header));
            if by_prefix && !names.iter().any(|name| name.eq_ignore_ascii_case(header)) {
                names.push(header);
            }
        }
        (!names.is_empty()).then(|| names.join(","))
    }
}

/// The value, with empty taken as absent.
fn present(value: Option<&str>) -> Option<&str> {
    value.map(str::trim).filter(|value| !value.is_empty())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OriginMatch {
    /// The rule is for all origins.
    Any,
    /// The rule names this origin, or a domain above it.
    Specific,
}

impl OriginMatch {
    fn allow_origin(self, origin: &str) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::Specific => origin.to_owned(),
        }
    }
}

fn first_match<'r>(
    rules: &'r [CorsRule],
    origin: &str,
    method: &str,
) -> Option<(&'r CorsRule, OriginMatch)> {
    rules
        .iter()
        .filter(|rule| allows_method(rule, method))
        .find_map(|rule| Some((rule, match_origin(rule, origin)?)))
}

fn is_read(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

fn allows_method(rule: &CorsRule, method: &str) -> bool {
    rule.allowed_methods.iter().any(|allowed| allowed == method)
}

fn match_origin(rule: &CorsRule, origin: &str) -> Option<OriginMatch> {
    if rule.allowed_origins.iter().any(|allowed| allowed == "*") {
        return Some(OriginMatch::Any);
    }
    let matches = |allowed: &String| allowed == origin || is_subdomain(allowed, origin);
    rule.allowed_origins.iter().any(matches).then_some(OriginMatch::Specific)
}

/// `https://*.contoso.com` covers every host below `contoso.com`, not itself, with this scheme and
/// port alone.
fn is_subdomain(pattern: &str, origin: &str) -> bool {
    let Some((scheme, domain)) = pattern.split_once('*') else {
        return false;
    };
    if !scheme.ends_with("://") || !domain.starts_with('.') {
        return false;
    }
    let host = origin.strip_prefix(scheme).and_then(|rest| rest.strip_suffix(domain));
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_host_byte))
}

fn allows_headers(rule: &CorsRule, headers: &str) -> bool {
    headers
        .split(',')
        .map(str::trim)
        .filter(|header| !header.is_empty())
        .all(|header| rule.allowed_headers.iter().any(|pattern| header_matches(pattern, header)))
}

/// Header names ignore case; a trailing `*` makes a prefix.
fn header_matches(pattern: &str, header: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => pattern.eq_ignore_ascii_case(header),
        Some(prefix) => header
            .as_bytes()
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    fn rule(origins: &str, methods: &str, headers: &str) -> CorsRule {
        CorsRule {
            allowed_origins: list(origins),
            allowed_methods: list(methods),
            max_age_seconds: 60,
            exposed_headers: list("etag,x-ms-meta*"),
            allowed_headers: list(headers),
        }
    }

    fn check(rules: &[CorsRule], origin: &str, method: &str, headers: &str) -> bool {
        let result = preflight(rules, Some(origin), Some(method), Some(headers));
        if let Err(error) = &result {
            assert_eq!((error.code(), error.status()), (ErrorCode::CorsPreflightFailure, 403));
            assert_eq!(
                error.message(),
                "CORS not enabled or no matching rule found for this request."
            );
        }
        result.is_ok()
    }

    #[test]
    fn a_preflight_needs_origin_and_method() {
        let rules = [rule("*", "GET", "*")];
        for (origin, method) in
            [(None, Some("GET")), (Some("http://a"), None), (Some(""), Some("GET"))]
        {
            let error = preflight(&rules, origin, method, None).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::InvalidHeaderValue, 400));
            let names = ["HeaderName", "HeaderValue"];
            assert!(error.elements().map(|(name, _)| name).eq(names));
        }
    }

    #[test]
    fn a_preflight_is_answered_from_the_rule() {
        let rules = [rule("http://a.com", "GET,MERGE,PATCH", "x-ms-meta*,content-type")];
        assert_eq!(
            preflight(
                &rules,
                Some("http://a.com"),
                Some("PATCH"),
                Some("X-MS-Meta-x, Content-Type")
            )
            .unwrap(),
            PreflightAnswer {
                allow_origin: "http://a.com".into(),
                allow_methods: "PATCH".into(),
                allow_headers: Some("X-MS-Meta-x, Content-Type".into()),
                max_age_seconds: 60,
                allow_credentials: true,
            }
        );
        let any = [rule("*", "GET", "")];
        let answer = preflight(&any, Some("http://a.com"), Some("GET"), None).unwrap();
        assert_eq!((answer.allow_origin.as_str(), answer.allow_credentials), ("*", false));
        assert_eq!(answer.allow_headers, None);
    }

    #[test]
    fn origins_methods_and_headers() {
        let rules = [rule(
            "http://a.com,https://*.b.com,https://*.c.com:8443",
            "GET,MERGE",
            "x-one,x-ms-meta*",
        )];
        for (origin, method, headers, allowed) in [
            ("http://a.com", "GET", "", true),
            ("http://a.com", "MERGE", "", true),
            ("http://a.com", "PATCH", "", false),
            ("http://a.com", "get", "", false),
            ("http://A.com", "GET", "", false),
            ("https://a.com", "GET", "", false),
            ("https://x.b.com", "GET", "", true),
            ("https://x.y.b.com", "GET", "", true),
            ("https://b.com", "GET", "", false),
            ("https://.b.com", "GET", "", false),
            ("http://x.b.com", "GET", "", false),
            ("https://x.b.com:8443", "GET", "", false),
            ("https://x.c.com:8443", "GET", "", true),
            ("https://evil.com/.b.com", "GET", "", false),
            ("https://evilb.com", "GET", "", false),
            ("https://x.b.com.evil.com", "GET", "", false),
            ("http://a.com", "GET", "X-One, x-ms-meta-a,X-MS-META", true),
            ("http://a.com", "GET", "x-two", false),
            ("http://a.com", "GET", "x-one,x-ms-met", false),
        ] {
            assert_eq!(
                check(&rules, origin, method, headers),
                allowed,
                "{origin} {method} {headers}"
            );
        }
        assert!(!check(&[], "http://a.com", "GET", ""));
    }

    #[test]
    fn the_first_match_is_final() {
        let rules = [rule("http://a.com", "GET", "x-one"), rule("*", "GET,PUT", "*")];
        assert!(check(&rules, "http://a.com", "GET", "x-one"));
        // The second rule would allow this header, but the first has origin and method.
        assert!(!check(&rules, "http://a.com", "GET", "x-two"));
        assert!(check(&rules, "http://a.com", "PUT", "x-two"));
        assert!(check(&rules, "http://b.com", "GET", "x-two"));
    }

    #[test]
    fn an_actual_request_gets_headers_or_nothing() {
        let rules = [rule("http://a.com", "GET", "")];
        let answer = actual(&rules, "http://a.com", "GET").unwrap();
        assert_eq!(
            (answer.allow_origin.as_str(), answer.allow_credentials),
            ("http://a.com", true)
        );
        assert_eq!(
            answer.expose_headers(["ETag", "x-ms-meta-a", "Date"]).as_deref(),
            Some("etag,x-ms-meta-a")
        );
        assert_eq!(actual(&rules, "http://b.com", "GET"), None);
        assert_eq!(actual(&rules, "http://a.com", "PUT"), None);
        let silent = [CorsRule { exposed_headers: vec![], ..rule("*", "GET", "") }];
        let answer = actual(&silent, "http://a.com", "GET").unwrap();
        assert_eq!((answer.allow_origin.as_str(), answer.allow_credentials), ("*", false));
        assert_eq!(answer.expose_headers(["ETag"]), None);
    }

    #[test]
    fn reads_without_an_origin_are_told_what_is_for_all() {
        let rules =
            [rule("http://a.com", "GET,PUT,HEAD", ""), rule("http://b.com,*", "GET,PUT", "")];
        let answer = without_origin(&rules, "GET").unwrap();
        assert_eq!((answer.allow_origin.as_str(), answer.allow_credentials), ("*", false));
        assert_eq!(answer.expose_headers(["x-ms-meta-a"]).as_deref(), Some("etag,x-ms-meta-a"));
        for method in ["HEAD", "PUT", "DELETE"] {
            assert_eq!(without_origin(&rules, method), None, "{method}");
        }
        assert_eq!(without_origin(&rules[..1], "GET"), None);
    }

    #[test]
    fn reads_vary_by_origin_unless_all_rules_are_for_all() {
        let specific = rule("http://a.com", "PUT", "");
        let any = rule("http://a.com,*", "GET", "");
        for method in ["GET", "HEAD"] {
            assert!(!vary_origin(&[], method));
            assert!(!vary_origin(std::slice::from_ref(&any), method));
            assert!(vary_origin(&[any.clone(), specific.clone()], method));
        }
        assert!(!vary_origin(&[specific], "PUT"));
    }
}
