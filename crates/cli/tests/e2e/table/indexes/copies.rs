//! Copies of whole entities that are more than a query may hold at a time.

use serde_json::{Value, json};

use super::{build, explained, explanation};
use crate::support::client::{row_keys, values};
use crate::support::{Client, shared_client};

/// Entities of some hundred kilobytes, and behind them small ones.
fn large_and_small(client: &Client, large: usize, small: usize) -> String {
    let table = client.new_table();
    let text = "x".repeat(30_000);
    for number in 0..large + small {
        let mut entity = json!({"Number": number, "Name": format!("v{number}")});
        for text_number in 0..if number < large { 10 } else { 0 } {
            entity[format!("Text{text_number}")] = Value::from(text.as_str());
        }
        let keys = ("p", &format!("{number:03}")[..]);
        client.put(&table, keys, &entity).send().expect(204);
    }
    table
}

/// The large ones leave a pass over the range no room for those behind them, but the small ones would find some.
#[test]
fn a_range_of_large_and_small_copies_is_found_whole() {
    let client = shared_client();
    let table = large_and_small(&client, 20, 6);
    build(&client, &table, "ByNumber", &json!({"Keys": "Number", "Include": "*"}));
    let options = [("$filter", "Number ge 0 and Number lt 1000"), ("$select", "RowKey")];
    let page = explained(&client, &table, &options);
    let expected: Vec<_> = (0..26).map(|number| format!("{number:03}")).collect();
    assert_eq!(row_keys(&values(&page)), expected);
    assert!(explanation(&page).starts_with("index ByNumber sorted"), "{}", explanation(&page));
}
