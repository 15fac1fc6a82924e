//! The service itself: properties, stats, cross-origin requests, addresses, verbs.

use super::client::{QueueClient, VERSION, document, shared_client};
use crate::server::admin::{figure, metrics, wait_until};
use crate::support::{ACCOUNT, Credentials, Launch, encode};

const PROPERTIES: &str = "/?restype=service&comp=properties";

#[test]
fn properties_are_kept_and_those_of_tables_are_others() {
    let server = std::sync::Arc::new(Launch::new().start());
    let client = QueueClient::new(&server);
    let default = client.get(PROPERTIES).expect(200);
    assert_eq!(default.header("cache-control"), Some("no-cache"));
    assert!(default.text().ends_with("<Cors /></StorageServiceProperties>"));
    let rule = "<CorsRule><AllowedOrigins>http://www.contoso.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>60</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-meta-data*,x-ms-meta-abc</AllowedHeaders></CorsRule>";
    let body = |rules: &str| {
        format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>")
    };
    let set = client.request("PUT", PROPERTIES).body(body(rule)).send().expect(202);
    assert_eq!(set.header("content-length"), Some("0"));
    let stored = client.get(PROPERTIES).expect(200);
    assert!(stored.text().contains("<Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://www.contoso.com</AllowedOrigins><AllowedHeaders>x-ms-meta-abc,x-ms-meta-data*</AllowedHeaders>"), "{}", stored.text());
    assert_eq!(stored.header("vary"), Some("Origin"));
    let refused = client.request("PUT", PROPERTIES).body(body(&rule.repeat(6))).send();
    refused.expect_error(400, "InvalidXmlDocument");

    // Of blobs alone; and what is not well-formed changes nothing.
    let foreign = body("")
        .replace("<Cors></Cors>", "<DefaultServiceVersion>2011-08-18</DefaultServiceVersion>");
    client.request("PUT", PROPERTIES).body(foreign).send().expect(202);
    for broken in [body("").replace("<Cors>", "<Cors a='b'c='d'>"), format!("&#32;{}", body(""))] {
        let refused = client.request("PUT", PROPERTIES).body(broken).send();
        let refused = refused.expect_error(400, "InvalidXmlDocument");
        assert!(refused.text().contains("<Reason>Error parsing Xml content</Reason>"));
    }
    assert_eq!(client.get(PROPERTIES).text(), stored.text());

    let origin = "http://www.contoso.com";
    let queue = client.new_queue();
    let preflight = |method: &str| {
        let nobody = client.with(Credentials::Nobody);
        let request = nobody.request("OPTIONS", format!("/{queue}/messages"));
        request.header("Origin", origin).header("Access-Control-Request-Method", method).send()
    };
    let allowed = preflight("PUT").expect(200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(origin));
    assert_eq!(allowed.header("access-control-max-age"), Some("60"));
    preflight("DELETE").expect_error(403, "CorsPreflightFailure");
    let lacking = preflight("").expect_error(400, "InvalidHeaderValue");
    let told = "<HeaderName>Access-Control-Request-Method</HeaderName><HeaderValue /></Error>";
    assert!(lacking.text().ends_with(told), "{}", lacking.text());
    let missing = client.request("GET", "/no-such-queue/messages").header("Origin", origin).send();
    assert_eq!(missing.header("access-control-allow-origin"), Some(origin));
    // Tables have rules of their own.
    let tables = crate::support::Client::new(&server).get(PROPERTIES).send().expect(200);
    assert!(tables.text().contains("<Cors />"));
    server.crash_and_restart();
    let again = QueueClient::new(&server).get(PROPERTIES).expect(200);
    assert_eq!(again.text(), stored.text());
}

/// Section 9: what is for all is said to all who read, be they browsers or not.
#[test]
fn a_rule_for_all_is_told_without_an_origin() {
    let server = std::sync::Arc::new(Launch::new().start());
    let client = QueueClient::new(&server);
    let queue = client.new_queue();
    let rule = "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>";
    let body = format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
    client.request("PUT", PROPERTIES).body(&*body).send().expect(202);
    let (allowed, exposed) = ("access-control-allow-origin", "access-control-expose-headers");
    let path = format!("/{queue}?comp=metadata");
    let told = client.get(&path).expect(200);
    assert_eq!(told.header(allowed), Some("*"));
    assert!(told.header(exposed).is_some_and(|names| names.contains("x-ms-request-id")));
    let missing = client.get("/no-such-queue?comp=metadata").expect(404);
    assert_eq!((missing.header(allowed), missing.header(exposed)), (Some("*"), None));
    for answer in [&told, &missing] {
        assert_eq!(answer.header("vary"), None);
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    // What is exposed are the headers of this answer, and those that frame it.
    let names = |path: &str| {
        let answer = client.request("GET", path).header("Origin", "https://a.example").send();
        answer.header(exposed).expect("names").to_ascii_lowercase()
    };
    let framing = ",content-length,date,transfer-encoding";
    let list = names("/?comp=list");
    assert!(list.contains("content-type") && list.contains("cache-control"), "{list}");
    assert!(list.ends_with(framing), "{list}");
    let refused = names("/no-such-queue?comp=metadata");
    assert!(refused.contains("x-ms-error-code") && !refused.contains("content-type"), "{refused}");
    assert!(refused.ends_with(framing), "{refused}");
    // A write is not told, nor is a method that the rule does not name.
    for method in ["PUT", "HEAD"] {
        assert_eq!(client.request(method, &path).send().header(allowed), None, "{method}");
    }
    let browser = client.request("PUT", &path).header("Origin", "https://a.example").send();
    assert_eq!(browser.expect(204).header(allowed), Some("*"));
    // Of tables it is not known.
    let tables = crate::support::Client::new(&server);
    tables.request("PUT", PROPERTIES).body("application/xml", &*body).send().expect(202);
    assert_eq!(tables.get("/Tables").send().expect(200).header(allowed), None);
}

#[test]
fn a_timeout_is_a_number_of_seconds() {
    let client = shared_client();
    let queue = client.new_queue();
    for seconds in ["1", "30", "90"] {
        client.get(format!("/{queue}/messages?timeout={seconds}")).expect(200);
    }
    let refused = client.request("PUT", format!("/{queue}?timeout=0")).send();
    let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
    let told = "<QueryParameterName>timeout</QueryParameterName><QueryParameterValue>0</QueryParameterValue>";
    assert!(refused.text().contains(told), "{}", refused.text());
    let refused = client.put(&queue, "text", "?timeout=soon");
    refused.expect_error(400, "InvalidQueryParameterValue");
    assert_eq!(client.count(&queue), 0);
}

/// Parameters are looked at before the body, also before its size.
#[test]
fn a_wrong_parameter_is_told_before_a_body_that_is_too_large() {
    let client = shared_client();
    let queue = client.new_queue();
    let body = document(&"a".repeat(600_000));
    let send = |method: &str, path: &str| {
        client.request(method, format!("/{queue}/messages{path}")).body(&*body).send()
    };
    for (method, path, code) in [
        ("POST", "?visibilitytimeout=-1", "OutOfRangeQueryParameterValue"),
        ("POST", "?timeout=0", "OutOfRangeQueryParameterValue"),
        ("PUT", "/1?visibilitytimeout=0", "MissingRequiredQueryParameter"),
        ("PUT", "/1?popreceipt=x&visibilitytimeout=0", "InvalidQueryParameterValue"),
        ("DELETE", "/1", "MissingRequiredQueryParameter"),
    ] {
        send(method, path).expect_error(400, code);
    }
    send("POST", "").expect_error(413, "RequestBodyTooLarge");
    assert_eq!(client.count(&queue), 0);
}

#[test]
fn the_secondary_reads_and_never_writes() {
    let client = shared_client();
    let queue = client.new_queue();
    client.put(&queue, "text", "").expect(201);
    let secondary = client.secondary();
    let stats = secondary.get("/?restype=service&comp=stats").expect(200);
    assert!(stats.text().contains("<GeoReplication><Status>live</Status><LastSyncTime>"));
    let primary = client.get("/?restype=service&comp=stats");
    let primary = primary.expect_error(400, "InvalidQueryParameterValue");
    let told = "<QueryParameterName>comp</QueryParameterName><QueryParameterValue>stats</QueryParameterValue><Reason>";
    assert!(primary.text().contains(told), "{}", primary.text());
    assert_eq!(secondary.peek(&queue, 1).len(), 1);
    secondary.get(format!("/{queue}?comp=metadata")).expect(200);
    secondary.get(format!("/{queue}?comp=acl")).expect(200);
    let list = secondary.get("/?comp=list").expect(200);
    assert!(list.text().contains(&format!("{ACCOUNT}-secondary/\"")), "{}", list.text());
    for (method, path) in
        [("PUT", ""), ("DELETE", ""), ("GET", "/messages"), ("DELETE", "/messages")]
    {
        let refused = secondary.request(method, format!("/{queue}{path}")).send();
        refused.expect_error(403, "InsufficientAccountPermissions");
    }
}

#[test]
fn what_is_no_operation_is_told() {
    let client = shared_client();
    let queue = client.new_queue();
    for (method, path) in [
        ("GET", format!("/{queue}")),
        ("POST", format!("/{queue}")),
        ("PUT", format!("/{queue}/messages")),
        ("GET", format!("/{queue}/messages/1")),
        ("DELETE", "/?comp=list".to_owned()),
        ("BREW", format!("/{queue}")),
    ] {
        let refused = client.request(method, path).send().expect_error(405, "UnsupportedHttpVerb");
        assert!(refused.text().contains("The resource doesn't support specified Http Verb."));
    }
    client.get(format!("/{queue}?comp=other")).expect_error(400, "InvalidQueryParameterValue");
    client.get(format!("/{queue}/other")).expect_error(400, "InvalidUri");
    let key = client.request("POST", "/?restype=service&comp=userdelegationkey").send();
    key.expect_error(501, "NotImplemented");
}

/// What asks for another operation must not delete, clear or claim.
#[test]
fn comp_and_restype_are_not_ignored() {
    let client = shared_client();
    let queue = client.new_queue();
    let put = client.put_message(&queue, "text", "");
    let message = format!("messages/{}?popreceipt={}", put.id, encode(&put.receipt));
    for (method, path, name, value) in [
        ("DELETE", "?restype=container", "restype", "container"),
        ("DELETE", "?comp=&comp=other", "comp", "other"),
        ("DELETE", "/messages?comp=metadata", "comp", "metadata"),
        ("DELETE", "/messages?restype=queue", "restype", "queue"),
        ("GET", "/messages?comp=acl", "comp", "acl"),
        ("DELETE", &*format!("/{message}&comp=metadata"), "comp", "metadata"),
        ("PUT", &*format!("/{message}&visibilitytimeout=9&restype=q"), "restype", "q"),
    ] {
        let refused = client.request(method, format!("/{queue}{path}")).send();
        let refused = refused.expect_error(400, "InvalidQueryParameterValue");
        let told = format!(
            "<QueryParameterName>{name}</QueryParameterName><QueryParameterValue>{value}</QueryParameterValue><Reason>Invalid query parameter value.</Reason></Error>"
        );
        assert!(refused.text().ends_with(&told), "{method} {path}: {}", refused.text());
    }
    let left = client.peek(&queue, 32);
    assert_eq!(left.len(), 1);
    assert_eq!((&left[0].id, left[0].dequeue_count), (&put.id, Some(0)));
    client.remove(&queue, &put.id, &put.receipt).expect(204);
}

/// Also by answers to requests that go no further than their head.
#[test]
fn the_version_is_that_of_the_request() {
    let mut client = shared_client().with(Credentials::Nobody);
    for (root, path, status) in
        [("nobody", "/q/messages", 404), (ACCOUNT, "/q/messages?a=%zz", 400)]
    {
        client.root = root.to_owned();
        let refused = client.get(path).expect(status);
        assert_eq!(refused.header("x-ms-version"), Some(VERSION), "{path}");
    }
}

/// Tunnelling is for tables alone.
#[test]
fn a_verb_is_that_of_the_request_line() {
    let client = shared_client();
    let queue = client.new_queue();
    for _ in 0..2 {
        let put = client.request("POST", format!("/{queue}/messages")).body(document("text"));
        put.header("X-HTTP-Method", "DELETE").send().expect(201);
    }
    let get = client.request("GET", format!("/{queue}/messages")).header("X-HTTP-Method", "PUT");
    get.send().expect(200);
    assert_eq!(client.count(&queue), 2);
}

/// An account in the host name, and the id that a client gives its request.
#[test]
fn hosts_may_name_the_account() {
    let client = shared_client();
    let queue = client.new_queue();
    let host = format!("{ACCOUNT}.queue.localhost:{}", client.server().queue_address().port());
    let mut by_host = QueueClient::new(client.server());
    by_host.root = String::new();
    // The root is empty, so that the target begins with two slashes unless the path is the whole of it.
    let request = by_host.request("GET", format!("{queue}?comp=metadata"));
    let answer = request.header("Host", &*host).header("x-ms-client-request-id", "mine").send();
    assert_eq!(answer.expect(200).header("x-ms-client-request-id"), Some("mine"));
    // Names of hosts have no case.
    let request = by_host.request("GET", format!("{queue}?comp=metadata"));
    request.header("Host", host.to_uppercase()).send().expect(200);
    let host = host.replace(".queue", "-Secondary.queue");
    let secondary = by_host.request("GET", format!("{queue}?comp=metadata"));
    secondary.header("Host", &*host).send().expect(200);
    let refused = by_host.request("DELETE", &queue).header("Host", &*host).send();
    refused.expect_error(403, "InsufficientAccountPermissions");
}

/// Section 14, 12: a browser shows its page why a request was refused, whatever of it could be read.
#[test]
fn refusals_of_a_head_have_the_headers_of_cors() {
    let server = std::sync::Arc::new(Launch::new().start());
    let client = QueueClient::new(&server);
    let origin = "http://www.contoso.com";
    let rule = format!(
        "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>{origin}</AllowedOrigins><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
    );
    let body = format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
    client.request("PUT", PROPERTIES).body(body).send().expect(202);
    let nobody = client.with(Credentials::Nobody);
    for (path, version, code) in [
        ("/q/messages?a=%zz", VERSION, "InvalidInput"),
        ("/q/messages", "soon", "InvalidHeaderValue"),
    ] {
        let request = nobody.request("GET", path).header("x-ms-version", version);
        let refused = request.header("Origin", origin).send().expect_error(400, code);
        assert_eq!(refused.header("access-control-allow-origin"), Some(origin), "{path}");
        let exposed = refused.header("access-control-expose-headers").expect("names");
        assert!(exposed.contains("x-ms-error-code"), "{exposed}");
        assert_eq!(refused.header("vary"), Some("Origin"));
        let request = nobody.request("GET", path).header("x-ms-version", version);
        let stranger = request.header("Origin", "http://else.example").send().expect(400);
        assert_eq!(stranger.header("access-control-allow-origin"), None);
    }
    // An account that is not served has no rules.
    let mut stranger = client.with(Credentials::Nobody);
    stranger.root = "nobody".to_owned();
    let request = stranger.request("GET", "/q/messages?a=%zz").header("Origin", origin);
    assert_eq!(request.send().expect(400).header("access-control-allow-origin"), None);
}

/// Figures of every operation, and how full the queues are, without a name.
#[test]
fn operations_and_depth_are_counted() {
    let server = std::sync::Arc::new(Launch::new().args(["--admin-port", "0"]).start());
    let client = QueueClient::new(&server);
    let queue = client.new_queue();
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        client.put(&queue, "text", "").expect(201);
    }
    let other = client.new_queue();
    client.put(&other, "text", "?visibilitytimeout=60").expect(201);
    client.get_messages(&queue, "");
    client.get("/missing/messages").expect(404);
    let figures = wait_until("a message that has waited a second", || {
        let figures = metrics(&server);
        let seconds: u64 = figure(&figures, "tavola_queue_oldest_message_seconds");
        assert!(seconds <= begun.elapsed().as_secs() + 1, "{seconds}");
        (seconds >= 1).then_some(figures)
    });
    for line in [
        "tavola_requests_total{service=\"queue\",operation=\"PutMessage\",class=\"2xx\"} 4\n",
        "tavola_requests_total{service=\"queue\",operation=\"GetMessages\",class=\"2xx\"} 1\n",
        "tavola_requests_total{service=\"queue\",operation=\"GetMessages\",class=\"4xx\"} 1\n",
        "tavola_queue_messages 4\n",
        "tavola_queue_messages_max 3\n",
    ] {
        assert!(figures.contains(line), "{line} in {figures}");
    }
    assert!(!figures.contains(&queue), "{figures}");
}
