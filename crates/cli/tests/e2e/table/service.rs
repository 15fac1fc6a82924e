//! Service properties and CORS (wire-reference 12), on servers of their own: they belong to the account.

use std::sync::Arc;

use serde_json::json;

use crate::support::{Client, Launch, Response};

const PATH: &str = "/?restype=service&comp=properties";

/// 12.1: what a new account has.
const DEFAULT: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging>\
    <Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>\
    <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics>\
    <Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy>\
    <Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics>\
    <Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled>\
    </RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>";

fn own_client() -> Client {
    Client::new(&Arc::new(Launch::new().start()))
}

fn set(client: &Client, elements: &str) -> Response {
    let document = format!(
        "<?xml version='1.0' encoding='utf-8'?><StorageServiceProperties>{elements}</StorageServiceProperties>"
    );
    client.request("PUT", PATH).body("application/xml", document).send()
}

fn properties(client: &Client) -> String {
    let found = client.get(PATH).accept("application/xml").send().expect(200);
    assert_eq!(found.header("content-type"), Some("application/xml"));
    assert_eq!(found.header("cache-control"), None);
    found.text().trim_start_matches('\u{feff}').to_owned()
}

/// 12.1, 12.2: defaults, a change of one element that keeps the others, and both after a crash.
#[test]
fn properties_are_kept() {
    let client = own_client();
    assert_eq!(properties(&client), DEFAULT);
    let logging = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read>\
        <Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>";
    let changed = set(&client, logging).expect(202);
    assert!(changed.body.is_empty());
    let expected = DEFAULT.replacen(
        "<Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy>\
         <Enabled>false</Enabled></RetentionPolicy>",
        "<Read>false</Read><Write>true</Write><Delete>true</Delete><RetentionPolicy>\
         <Enabled>true</Enabled><Days>5</Days></RetentionPolicy>",
        1,
    );
    assert_eq!(properties(&client), expected);
    client.server().crash_and_restart();
    assert_eq!(properties(&client), expected);
}

fn rule(origins: &str, methods: &str, headers: &str, exposed: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
         <AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders>\
         <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
    )
}

fn set_rules(client: &Client, rules: &[String]) -> Response {
    set(client, &format!("<Cors>{}</Cors>", rules.concat()))
}

/// 12.2: what is not a valid document.
#[test]
fn properties_are_checked() {
    let client = own_client();
    let six = vec![rule("*", "GET", "", ""); 6];
    let retention = "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy>\
        <Enabled>true</Enabled><Days>366</Days></RetentionPolicy></HourMetrics>";
    for refused in [
        set_rules(&client, &six),
        set(&client, retention),
        set(&client, "<Logging><Version>1.0</Version></Logging>"),
        client.request("PUT", PATH).body("application/xml", "<nonsense").send(),
    ] {
        let refused = refused.expect_error(400, "InvalidXmlDocument");
        assert_eq!(refused.header("x-ms-error-code"), Some("InvalidXmlDocument"));
    }
    set_rules(&client, &six[..5]).expect(202);
    assert_eq!(properties(&client).matches("<CorsRule>").count(), 5);
    set(&client, "<Cors />").expect(202);
    assert_eq!(properties(&client), DEFAULT);
}

fn preflight(client: &Client, headers: &[(&str, &str)]) -> Response {
    let mut request = client.request("OPTIONS", "/any/where");
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    request.send()
}

/// 12.4: the preflight, asked by nobody in particular.
#[test]
fn a_preflight_is_answered_by_the_first_matching_rule() {
    let client = own_client();
    let browser = client.anonymous();
    let asked = [("Origin", "https://a.example"), ("Access-Control-Request-Method", "GET")];
    let refused = preflight(&browser, &asked).expect_error(403, "CorsPreflightFailure");
    assert_eq!(refused.message(), "CORS not enabled or no matching rule found for this request.");
    preflight(&browser, &asked[..1]).expect_error(400, "InvalidHeaderValue");
    preflight(&browser, &asked[1..]).expect_error(400, "InvalidHeaderValue");

    let rules = [
        rule(
            "https://a.example,https://b.example",
            "GET,PUT",
            "x-ms-meta-*,content-type",
            "x-ms-*",
        ),
        rule("*", "GET", "*", ""),
    ];
    set_rules(&client, &rules).expect(202);
    let with_headers = |origin, headers| {
        preflight(
            &browser,
            &[
                ("Origin", origin),
                ("Access-Control-Request-Method", "GET"),
                ("Access-Control-Request-Headers", headers),
            ],
        )
    };
    let allowed = with_headers("https://a.example", "x-ms-meta-one,content-type").expect(200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://a.example"));
    assert_eq!(allowed.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(allowed.header("access-control-max-age"), Some("60"));
    assert_eq!(allowed.header("access-control-allow-headers"), Some("x-ms-meta-one,content-type"));
    let methods = allowed.header("access-control-allow-methods").expect("methods");
    assert!(methods.contains("GET"), "{methods}");
    // The first rule matches origin and method, so its headers decide: there is no second try.
    with_headers("https://a.example", "x-other").expect_error(403, "CorsPreflightFailure");
    let any = with_headers("https://c.example", "x-other").expect(200);
    assert_eq!(any.header("access-control-allow-origin"), Some("*"));
    assert_eq!(any.header("access-control-allow-credentials"), None);
    let put = [("Origin", "https://c.example"), ("Access-Control-Request-Method", "PUT")];
    preflight(&browser, &put).expect_error(403, "CorsPreflightFailure");
}

/// 12.4: real requests get the headers, or none; they are served either way.
#[test]
fn real_requests_get_cors_headers() {
    let client = own_client();
    let table = client.new_table();
    let get = |origin: Option<&str>| {
        let request = client.query(&table, &[]);
        match origin {
            Some(origin) => request.header("Origin", origin).send().expect(200),
            None => request.send().expect(200),
        }
    };
    assert_eq!(get(Some("https://a.example")).header("access-control-allow-origin"), None);
    assert_eq!(get(None).header("vary"), None);
    set_rules(&client, &[rule("https://a.example", "GET", "*", "x-ms-request-id")]).expect(202);
    let allowed = get(Some("https://a.example"));
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://a.example"));
    assert_eq!(allowed.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(allowed.header("vary"), Some("Origin"));
    let exposed = allowed.header("access-control-expose-headers").expect("exposed headers");
    assert!(exposed.contains("x-ms-request-id"), "{exposed}");
    let other = get(Some("https://b.example"));
    assert_eq!(other.header("access-control-allow-origin"), None);
    assert_eq!(other.header("vary"), Some("Origin"));
    let insert = client.post(format!("/{table}"), &json!({"PartitionKey": "p", "RowKey": "r"}));
    let insert = insert.header("Origin", "https://a.example").send().expect(201);
    assert_eq!(insert.header("access-control-allow-origin"), None);
    // An error is shown to the page as well.
    let missing = client.query("missing", &[]).header("Origin", "https://a.example").send();
    assert_eq!(missing.header("access-control-allow-origin"), Some("https://a.example"));
}

/// 12.4: a rule for everyone needs no Vary and lends no credentials.
#[test]
fn a_rule_for_every_origin() {
    let client = own_client();
    let table = client.new_table();
    set_rules(&client, &[rule("*", "GET", "*", "*")]).expect(202);
    let answer = client.query(&table, &[]).header("Origin", "https://a.example").send().expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert_eq!(answer.header("vary"), None);
}
