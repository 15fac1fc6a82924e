//! Messages: put, get, peek, update, delete, clear, and what may be sent.

use std::time::{Duration, Instant};

use super::client::{Message, VERSION, document, messages, shared_client, unused_name};
use crate::support::encode;
use crate::support::http::Response;

#[test]
fn a_message_is_put_got_and_deleted() {
    let client = shared_client();
    let queue = client.new_queue();
    let response = client.put(&queue, "a<b> & c", "").expect(201);
    assert_eq!(response.header("content-type"), Some("application/xml"));
    assert_eq!(response.header("cache-control"), None);
    let put = messages(&response).remove(0);
    assert_eq!((put.dequeue_count, put.text.as_deref()), (None, None));
    assert_eq!(put.inserted, put.next_visible);
    let peeked = client.peek(&queue, 32).remove(0);
    let expected = Message {
        receipt: String::new(),
        next_visible: String::new(),
        dequeue_count: Some(0),
        text: Some("a<b> & c".into()),
        ..put.clone()
    };
    assert_eq!(peeked, expected);
    let response = client.get(format!("/{queue}/messages")).expect(200);
    assert_eq!(response.header("cache-control"), Some("no-cache"));
    let got = messages(&response).remove(0);
    assert_eq!((&got.id, &got.inserted, &got.expires), (&put.id, &put.inserted, &put.expires));
    assert_eq!((got.dequeue_count, got.text.as_deref()), (Some(1), Some("a<b> & c")));
    assert_ne!(got.receipt, put.receipt);
    assert!(client.get_messages(&queue, "").is_empty());
    assert!(client.peek(&queue, 1).is_empty());
    assert_eq!(client.count(&queue), 1);
    // The receipt of Put is out of date, and so is everyone else's.
    client.remove(&queue, &put.id, &put.receipt).expect_error(404, "MessageNotFound");
    let deleted = client.remove(&queue, &got.id, &got.receipt).expect(204);
    assert!(deleted.body.is_empty());
    let again = client.remove(&queue, &got.id, &got.receipt).expect_error(404, "MessageNotFound");
    assert_eq!(again.body.len(), 221);
    assert_eq!(client.count(&queue), 0);
}

#[test]
fn a_queue_that_is_not_there_has_no_messages() {
    let client = shared_client();
    let queue = unused_name();
    client.put(&queue, "text", "").expect_error(404, "QueueNotFound");
    for path in ["messages", "messages?peekonly=true"] {
        client.get(format!("/{queue}/{path}")).expect_error(404, "QueueNotFound");
    }
    client.delete(format!("/{queue}/messages")).expect_error(404, "QueueNotFound");
    let (id, receipt) = ("3f2504e0-4f89-41d3-9a0c-0305e82c3301", "AgAAAAMAAAAAAAAAB+eJBMJ13QE=");
    client.remove(&queue, id, receipt).expect_error(404, "QueueNotFound");
    client.update(&queue, id, receipt, 0, None).expect_error(404, "QueueNotFound");
    // Parameters and body are looked at first.
    client.get(format!("/{queue}/messages?numofmessages=33")).expect(400);
    client.request("POST", format!("/{queue}/messages")).body("<a").send().expect(400);
}

#[test]
fn order_is_that_of_put_also_over_batches() {
    let client = shared_client();
    let queue = client.new_queue();
    for number in 0..70 {
        client.put(&queue, &number.to_string(), "").expect(201);
    }
    let mut texts = Vec::new();
    for _ in 0..3 {
        let batch = client.get_messages(&queue, "?numofmessages=32&visibilitytimeout=600");
        assert!(batch.iter().all(|message| message.receipt == batch[0].receipt));
        texts.extend(batch.into_iter().map(|message| message.text.unwrap()));
    }
    assert_eq!(texts, (0..70).map(|number| number.to_string()).collect::<Vec<_>>());
}

fn told(response: &Response) -> String {
    let (_, extra) = response.text().split_once("</Message>").expect("a message");
    extra.strip_suffix("</Error>").expect("an end").to_owned()
}

/// Sections 3.6 to 3.9 and 5.1.
#[test]
fn parameters_have_their_ranges() {
    let client = shared_client();
    let queue = client.new_queue();
    let out_of_range = |name: &str, value: &str, min: u32, max: u32| {
        format!(
            "<QueryParameterName>{name}</QueryParameterName><QueryParameterValue>{value}</QueryParameterValue><MinimumAllowed>{min}</MinimumAllowed><MaximumAllowed>{max}</MaximumAllowed>"
        )
    };
    for (query, name, value, min, max) in [
        ("numofmessages=0", "numofmessages", "0", 1, 32),
        ("numofmessages=33", "numofmessages", "33", 1, 32),
        ("visibilitytimeout=0", "visibilitytimeout", "0", 1, 604_800),
        ("visibilitytimeout=604801", "visibilitytimeout", "604801", 1, 604_800),
    ] {
        let refused = client.get(format!("/{queue}/messages?{query}"));
        let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
        assert_eq!(told(&refused), out_of_range(name, value, min, max));
    }
    let refused = client.put(&queue, "a", "?visibilitytimeout=-1");
    let refused = refused.expect_error(400, "OutOfRangeQueryParameterValue");
    assert_eq!(told(&refused), out_of_range("visibilitytimeout", "-1", 0, 604_800));
    let refused = client.put(&queue, "a", "?visibilitytimeout=30&messagettl=30");
    let refused = refused.expect_error(400, "InvalidQueryParameterValue");
    let reason = "messagettl must be greater than visibilitytimeout";
    assert_eq!(
        told(&refused),
        format!(
            "<QueryParameterName>visibilitytimeout</QueryParameterName><QueryParameterValue>30</QueryParameterValue><Reason>{reason}</Reason>"
        )
    );
    for ttl in ["0", "-2", "x"] {
        let refused = client.put(&queue, "a", &format!("?messagettl={ttl}"));
        refused.expect_error(400, "InvalidQueryParameterValue");
    }
    let never = client.put_message(&queue, "a", "?messagettl=-1");
    assert_eq!(never.expires, "Fri, 31 Dec 9999 23:59:59 GMT");
    // Names in any case, parameters that mean nothing.
    client.put(&queue, "a", "?MessageTtl=60&visibilityTimeout=1&timeout=30&other=1").expect(201);
}

#[test]
fn older_versions_are_answered_in_their_way() {
    let client = shared_client();
    let queue = client.new_queue();
    let put = |version: &str, query: &str| {
        let request = client.request("POST", format!("/{queue}/messages{query}"));
        request.body(document("a")).header("x-ms-version", version).send()
    };
    let old = put("2015-12-11", "").expect(201);
    assert_eq!((old.body.len(), old.header("x-ms-version")), (0, Some("2015-12-11")));
    put("2017-04-17", "?messagettl=-1").expect_error(400, "OutOfRangeQueryParameterValue");
    put("2017-07-29", "?messagettl=-1").expect(201);
    assert_eq!(put("2031-01-01", "").expect(201).header("x-ms-version"), Some("2031-01-01"));
    let refused = put("yesterday", "").expect_error(400, "InvalidHeaderValue");
    assert!(refused.header("x-ms-error-code").is_some());
    assert_eq!(VERSION, "2025-01-05");
}

/// Section 4: what clients write, and what may not be written.
#[test]
fn texts_come_back_as_they_were() {
    let client = shared_client();
    let queue = client.new_queue();
    let all: String = (' '..='\u{2ff}').chain(['\u{e000}', '\u{fffd}', '\u{10ffff}']).collect();
    for text in
        ["", " ", "\t\n", "a\r\nb\rc", " both ends ", "<![CDATA[x]]>", "&lt;", "]]>", all.trim()]
    {
        let put = client.put_message(&queue, text, "");
        let got = client.get_messages(&queue, "").remove(0);
        assert_eq!((&got.id, got.text.as_deref()), (&put.id, Some(text)));
        client.remove(&queue, &got.id, &got.receipt).expect(204);
    }
    for (body, expected) in [
        ("\u{feff}<QueueMessage><MessageText /></QueueMessage>", ""),
        (
            "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage><MessageText>x</MessageText></QueueMessage>",
            "x",
        ),
        (
            "<QueueMessage>\r\n  <MessageText><![CDATA[<y>]]>&#65;</MessageText>\r\n</QueueMessage>",
            "<y>A",
        ),
    ] {
        client.request("POST", format!("/{queue}/messages")).body(body).send().expect(201);
        let got = client.get_messages(&queue, "").remove(0);
        assert_eq!(got.text.as_deref(), Some(expected));
    }
    for body in [
        "",
        "<QueueMessage/>",
        "<Other/>",
        "<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>",
        "<![CDATA[ ]]><QueueMessage><MessageText>x</MessageText></QueueMessage>",
        "&#32;<QueueMessage><MessageText>x</MessageText></QueueMessage>",
        "\u{feff}\u{feff}<QueueMessage><MessageText>x</MessageText></QueueMessage>",
        "<?xml encoding='utf-8'?><QueueMessage><MessageText>x</MessageText></QueueMessage>",
        "<?xml version='1.0' encoding='utf-16'?><QueueMessage><MessageText>x</MessageText></QueueMessage>",
        "<QueueMessage a='1'b='2'><MessageText>x</MessageText></QueueMessage>",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><QueueMessage><MessageText>&x;</MessageText></QueueMessage>",
    ] {
        let refused = client.request("POST", format!("/{queue}/messages")).body(body).send();
        refused.expect_error(400, "InvalidXmlDocument");
    }
    let bad = client.request("POST", format!("/{queue}/messages")).body(document("ab\u{1}")).send();
    let bad = bad.expect_error(400, "InvalidXmlDocument");
    assert_eq!(
        told(&bad),
        "<LineNumber>1</LineNumber><LinePosition>30</LinePosition><Reason>Error parsing Xml content</Reason>"
    );
}

#[test]
fn the_largest_text_fits_and_no_larger_one() {
    let client = shared_client();
    let queue = client.new_queue();
    for unit in ["a", "\u{e9}", "\u{20ac}", "\u{1F600}", "&"] {
        let text = unit.repeat(65_536 / unit.len());
        client.put(&queue, &text, "").expect(201);
        let got = client.get_messages(&queue, "").remove(0);
        assert_eq!(got.text.as_deref(), Some(text.as_str()));
        let larger = format!("{text}{unit}");
        let refused = client.put(&queue, &larger, "").expect_error(413, "RequestBodyTooLarge");
        assert_eq!(told(&refused), "<MaxLimit>65536</MaxLimit>");
        let refused = client.update(&queue, &got.id, &got.receipt, 0, Some(&larger));
        refused.expect_error(413, "RequestBodyTooLarge");
        client.remove(&queue, &got.id, &got.receipt).expect(204);
    }
}

/// A body that is too long for any text is told as one whose text is too long, known beforehand or not.
#[test]
fn a_body_that_is_too_large_names_the_limit() {
    let client = shared_client();
    let queue = client.new_queue();
    let body = document(&"a".repeat(600_000));
    let put = || client.request("POST", format!("/{queue}/messages"));
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for request in
        [put().body(&*body), put().header("Transfer-Encoding", "chunked").body(&*chunked)]
    {
        let refused = request.send().expect_error(413, "RequestBodyTooLarge");
        assert_eq!(told(&refused), "<MaxLimit>65536</MaxLimit>");
    }
}

/// Trap 7: an answer of several megabytes, made while it is sent.
#[test]
fn thirty_two_large_messages_are_one_answer() {
    let client = shared_client();
    let queue = client.new_queue();
    let texts: Vec<String> =
        (0..32).map(|number| format!("{number:02}<&").repeat(16_384)).collect();
    for text in &texts {
        client.put(&queue, text, "").expect(201);
    }
    for query in ["?peekonly=true&numofmessages=32", "?numofmessages=32"] {
        let response = client.get(format!("/{queue}/messages{query}")).expect(200);
        assert_eq!(response.header("transfer-encoding"), Some("chunked"));
        let found: Vec<_> =
            messages(&response).into_iter().map(|message| message.text.unwrap()).collect();
        assert!(found == texts, "other texts");
    }
    client.delete(format!("/{queue}/messages")).expect(204);
}

#[test]
fn clear_removes_everything_and_nothing_that_comes_later() {
    let client = shared_client();
    let queue = client.new_queue();
    for _ in 0..5 {
        client.put(&queue, "old", "").expect(201);
    }
    client.put(&queue, "hidden", "?visibilitytimeout=60").expect(201);
    let got = client.get_messages(&queue, "").remove(0);
    assert_eq!(client.count(&queue), 6);
    // The id was forgotten: that is Clear, too.
    client.delete(format!("/{queue}/messages?popreceipt={}", encode(&got.receipt))).expect(204);
    assert_eq!((client.count(&queue), client.peek(&queue, 32).len()), (0, 0));
    client.remove(&queue, &got.id, &got.receipt).expect_error(404, "MessageNotFound");
    client.put(&queue, "new", "").expect(201);
    assert_eq!(client.get_messages(&queue, "?numofmessages=32").len(), 1);
}

/// A URL that is made of an empty id asks for a message, not for all of them.
#[test]
fn an_empty_id_clears_nothing() {
    let client = shared_client();
    let queue = client.new_queue();
    let put = client.put_message(&queue, "text", "");
    client.remove(&queue, "", &put.receipt).expect_error(404, "MessageNotFound");
    client.update(&queue, "", &put.receipt, 0, Some("x")).expect_error(404, "MessageNotFound");
    let path = format!("/{queue}/messages/");
    client.delete(&path).expect_error(400, "MissingRequiredQueryParameter");
    for method in ["GET", "POST"] {
        let refused = client.request(method, &path).body(document("x")).send();
        refused.expect_error(405, "UnsupportedHttpVerb");
    }
    assert_eq!(client.peek(&queue, 32).len(), 1);
}

/// Waits until something is so; nothing is said of how long that takes.
pub(super) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn hidden_messages_appear_and_expired_ones_vanish() {
    let client = shared_client();
    let queue = client.new_queue();
    let hidden = client.new_queue();
    client.put(&hidden, "much later", "?visibilitytimeout=600").expect(201);
    assert!(client.peek(&hidden, 1).is_empty());
    assert!(client.get_messages(&hidden, "").is_empty());
    assert_eq!(client.count(&hidden), 1);
    client.put(&queue, "later", "?visibilitytimeout=1").expect(201);
    eventually("it appears", || client.peek(&queue, 1).len() == 1);
    let first = client.get_messages(&queue, "?visibilitytimeout=1").remove(0);
    let mut again = Vec::new();
    eventually("it appears again", || {
        again = client.get_messages(&queue, "?visibilitytimeout=600");
        !again.is_empty()
    });
    assert_eq!((again[0].id.clone(), again[0].dequeue_count), (first.id.clone(), Some(2)));
    assert!(client.peek(&queue, 1).is_empty(), "it is hidden again");
    client.remove(&queue, &first.id, &first.receipt).expect_error(404, "MessageNotFound");
    let short = client.put_message(&queue, "short", "?messagettl=1");
    // One that lives longer stays, so that it is the short life that ends.
    let long = client.put_message(&queue, "long", "?messagettl=600");
    eventually("it vanishes", || {
        let left = client.peek(&queue, 32);
        left.len() == 1 && left[0].id == long.id
    });
    client.remove(&queue, &short.id, &short.receipt).expect_error(404, "MessageNotFound");
}
