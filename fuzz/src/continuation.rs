//! Continuation tokens: `NextPartitionKey`, `NextRowKey` and `NextTableName`, each on its line.

use tavola_wire::table::continuation::{EntityContinuation, encode, table_from_query};
use tavola_wire::table::names::key_problem;

use crate::input::{assert_refusal, lines};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [partition, row, table] = lines(text);
    entities(partition, row);
    tables(table);
    keys([partition, row]);
}

/// A token has one spelling: what is read is written the same.
fn entities(partition: &str, row: &str) {
    for (partition, row) in [(partition, Some(row)), (partition, None), (row, Some(partition))] {
        let next = match EntityContinuation::from_query(Some(partition), row) {
            Ok(Some(next)) => next,
            Ok(None) => {
                assert!(partition.is_empty() && row.unwrap_or_default().is_empty());
                continue;
            }
            Err(error) => {
                assert_refusal(&error);
                continue;
            }
        };
        assert_eq!(encode(&next.partition_key), partition);
        assert_eq!(
            next.row_key.as_deref().map(encode).as_deref(),
            row.filter(|row| !row.is_empty())
        );
        let keys = [Some(&next.partition_key), next.row_key.as_ref()];
        assert!(keys.into_iter().flatten().all(|key| key_problem(key).is_none()), "{next:?}");
    }
}

fn tables(token: &str) {
    match table_from_query(Some(token)) {
        Ok(Some(name)) => {
            let again = table_from_query(Some(&encode(name.as_str()))).unwrap();
            assert_eq!(again, Some(name));
        }
        Ok(None) => assert!(token.is_empty()),
        Err(error) => assert_refusal(&error),
    }
}

/// Whatever is a key has a token that every client carries back.
fn keys(keys: [&str; 2]) {
    if keys.iter().any(|key| key_problem(key).is_some()) {
        return;
    }
    let tokens = keys.map(encode);
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"!*_-".contains(&byte);
    assert!(tokens.iter().all(|token| token.bytes().all(is_safe)), "{tokens:?}");
    let read = EntityContinuation::from_query(Some(&tokens[0]), Some(&tokens[1])).unwrap().unwrap();
    assert_eq!((read.partition_key.as_str(), read.row_key.as_deref()), (keys[0], Some(keys[1])));
}
