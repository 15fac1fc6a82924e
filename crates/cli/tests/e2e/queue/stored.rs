//! Queues for a folder that later versions open: what is put in, and how it is read again.
//!
//! The clock goes on meanwhile: messages never expire, and one that was hidden may have become visible.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::client::{Message, QueueClient};
use crate::support::Server;

const QUEUE: &str = "orders";
const EMPTY: &str = "empty-queue";
const PROPERTIES: &str = "/?restype=service&comp=properties";
/// The longest that a message can be hidden.
const WEEK: u32 = 7 * 24 * 60 * 60;

/// Fills queues: messages that can be got, and hidden ones, which are answered with their receipts.
pub(crate) fn fill(server: &Arc<Server>) -> Value {
    let client = QueueClient::new(server);
    let create = client.request("PUT", format!("/{QUEUE}"));
    create.header("x-ms-meta-team", "billing").header("x-ms-meta-Level", "3").send().expect(201);
    client.request("PUT", format!("/{EMPTY}")).send().expect(201);
    let acl = "<SignedIdentifiers><SignedIdentifier><Id>workers</Id><AccessPolicy>\
        <Start>2024-01-01T00:00:00Z</Start><Expiry>2034-01-01T00:00:00Z</Expiry>\
        <Permission>rp</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    client.request("PUT", format!("/{QUEUE}?comp=acl")).body(acl).send().expect(204);
    let properties = "<StorageServiceProperties><Cors><CorsRule>\
        <AllowedOrigins>https://example.org</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
        <AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
        <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>";
    client.request("PUT", PROPERTIES).body(properties).send().expect(202);

    let put = |text: &str| client.put_message(QUEUE, text, "?messagettl=-1");
    // Got, and given back with another text.
    put("returned");
    let got = client.get_messages(QUEUE, "?visibilitytimeout=60").remove(0);
    client.update(QUEUE, &got.id, &got.receipt, 0, Some("returned, once")).expect(204);
    // Hidden: by Get, and by Update with another text.
    let [got, updated] = ["hidden by Get", "hidden by Update"].map(|text| {
        let hidden =
            client.put_message(QUEUE, text, &format!("?messagettl=-1&visibilitytimeout={WEEK}"));
        Message { text: Some(text.to_owned()), dequeue_count: Some(0), ..hidden }
    });
    let long = "a text that stands in a row of its own ".repeat(20);
    let update = client.update(QUEUE, &updated.id, &updated.receipt, WEEK, Some(&long)).expect(204);
    let receipt = update.header("x-ms-popreceipt").expect("a receipt").to_owned();
    let updated = Message { receipt, text: Some(long.clone()), ..updated };
    for text in ["plain", "", "Gr\u{fc}\u{df}e <&>\r\n\u{4e16}\u{754c} \u{1f600}", &long] {
        put(text);
    }
    // One that is gone.
    let gone = put("gone");
    client.remove(QUEUE, &gone.id, &gone.receipt).expect(204);
    let hidden = [got, updated].map(|message| {
        json!({
            "id": message.id, "receipt": message.receipt, "text": message.text,
            "dequeues": message.dequeue_count,
        })
    });
    json!({ "hidden": hidden, "visible": visible(&client), "rest": rest(&client) })
}

/// Compares everything with what [`fill`] answered, and gets hold of the hidden messages by their receipts.
pub(crate) fn assert_filled(server: &Arc<Server>, expected: &Value) {
    let client = QueueClient::new(server);
    assert_eq!(rest(&client), expected["rest"]);
    let (hidden, wanted) = (&expected["hidden"], expected["visible"].as_array().unwrap());
    let is_hidden =
        |id: &Value| hidden.as_array().unwrap().iter().any(|hidden| hidden["id"] == *id);
    let found = visible(&client);
    let mut found = found.as_array().unwrap().clone();
    found.retain(|message| !is_hidden(&message["id"]));
    assert_eq!(found, *wanted);
    for message in hidden.as_array().unwrap() {
        let (id, receipt) = (message["id"].as_str().unwrap(), message["receipt"].as_str().unwrap());
        client.update(QUEUE, id, receipt, 0, None).expect(204);
        // The receipt has been used.
        client.update(QUEUE, id, receipt, 0, None).expect_error(404, "MessageNotFound");
        let found = visible(&client);
        let found = found.as_array().unwrap().iter().find(|found| found["id"] == *id).unwrap();
        assert_eq!((&found["text"], &found["dequeues"]), (&message["text"], &message["dequeues"]));
    }
    // And it is in use.
    let put = client.put_message(EMPTY, "later", "");
    assert_eq!(client.get_messages(EMPTY, "").remove(0).id, put.id);
}

/// The messages that can be got, in their order.
fn visible(client: &QueueClient) -> Value {
    let shown = |message: Message| {
        json!({
            "id": message.id, "inserted": message.inserted, "expires": message.expires,
            "dequeues": message.dequeue_count, "text": message.text,
        })
    };
    client.peek(QUEUE, 32).into_iter().map(shown).collect()
}

/// All but the messages.
fn rest(client: &QueueClient) -> Value {
    let of_queue = |queue: &str| {
        let metadata = client.get(format!("/{queue}?comp=metadata")).expect(200);
        let names = ["team", "Level"];
        let pairs = names.map(|name| (name, metadata.header(&format!("x-ms-meta-{name}"))));
        let acl = client.get(format!("/{queue}?comp=acl")).expect(200).text().to_owned();
        json!({
            "count": client.count(queue), "policies": acl,
            "metadata": pairs.into_iter().collect::<BTreeMap<_, _>>(),
        })
    };
    let properties = client.get(PROPERTIES).expect(200).text().to_owned();
    json!({ QUEUE: of_queue(QUEUE), EMPTY: of_queue(EMPTY), "properties": properties })
}
