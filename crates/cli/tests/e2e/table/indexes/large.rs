//! The largest transactions that indexes multiply.

use serde_json::json;

use super::*;
use crate::support::{Batch, shared_client};

/// A hundred entities, four megabytes, three copies of each and five more rows.
#[test]
fn the_largest_transaction_is_copied_three_times() {
    let client = shared_client();
    let table = client.new_table();
    for number in 0..8 {
        let include = if number < 3 { "*" } else { "" };
        let keys = if number % 2 == 0 { "Group" } else { "Text" };
        declare(
            &client,
            &table,
            &format!("Index{number}"),
            &json!({"Keys": keys, "Include": include}),
        );
    }
    for number in 0..8 {
        wait_for(&client, &table, &format!("Index{number}"), "Readable");
    }
    let batch = |group: &str| {
        (0..100).fold(Batch::new(), |batch, row| {
            let entity = json!({"Group": group, "Text": "x".repeat(30_000), "Row": row});
            batch.put(&client, &table, ("p", &format!("{row:03}")), None, &entity)
        })
    };
    batch("one").send(&client).expect_done(100);
    batch("two").send(&client).expect_done(100);
    for number in 0..8 {
        assert_sound(&client, &table, &format!("Index{number}"), 100);
    }
}
