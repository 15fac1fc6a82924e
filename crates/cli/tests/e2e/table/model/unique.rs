//! A unique index beside the others, and what it refuses: the model knows exactly.

use serde_json::json;

use super::Session;
use super::store::{Change, Keys, Properties, Rows, key};
use crate::table::indexes::{INDEXES, wait_until_built};

/// What a change is answered that would give two entities the same values.
pub(super) const VIOLATION: (u16, &str) = (409, "UniqueIndexViolation");
pub(super) const NAME: &str = "Alone";
/// Of some, entities meet in few values; of others, a table is often without a violation.
const KEYS: [&str; 5] = ["A", "A!,B!", "A,B", "C,D", "C!,D!,A?"];

impl Session {
    /// Declares the unique index of a table, or drops it. It is waited for, so that the model knows what is refused.
    pub(super) fn change_unique(&mut self, table: &str) {
        if self.unique.contains_key(table) {
            // It stays for a while, so that there is something to refuse.
            if !self.random.one_in(4) {
                return;
            }
            self.unique.remove(table);
            self.client.remove(INDEXES, (table, NAME), "*").expect(204);
            return;
        }
        let keys = *self.random.pick(&KEYS);
        let include = *self.random.pick(&["", "D"]);
        let definition = json!({"Keys": keys, "Include": include, "Unique": true});
        let answer = self.client.put(INDEXES, (table, NAME), &definition).send();
        let Some(rows) = self.store.rows(table) else {
            answer.expect_error(404, "TableNotFound");
            return;
        };
        answer.expect(204);
        let state = wait_until_built(&self.client, table, NAME);
        if has_duplicates(rows, keys) {
            assert_eq!(state, "Failed", "{table} by {keys}");
            self.client.remove(INDEXES, (table, NAME), "*").expect(204);
        } else {
            assert_eq!(state, "Readable", "{table} by {keys}");
            self.unique.insert(table.to_owned(), keys);
        }
    }
}

fn has_duplicates(rows: &Rows, keys: &str) -> bool {
    let mut all: Vec<_> = rows.values().filter_map(|row| values(&row.properties, keys)).collect();
    all.sort_unstable();
    all.windows(2).any(|pair| pair[0] == pair[1])
}

/// What stands in the index for an entity; `None` if it is not in it.
type Values = Option<Vec<String>>;

fn values(properties: &Properties, keys: &str) -> Values {
    let value = |(place, part): (usize, &str)| {
        let skips = part.ends_with('!') || place == 0 && !part.ends_with('?');
        match properties.0.get(part.trim_end_matches(['!', '?'])) {
            Some(property) => Some(format!("{property:?}")),
            None if skips => None,
            None => Some(String::new()),
        }
    };
    keys.split(',').enumerate().map(value).collect()
}

/// The first of the changes that claims values which are another entity's then. What a change gives up is free for all.
pub(super) fn violation(
    rows: &Rows,
    keys: &str,
    partition: &str,
    changes: &[(&str, Change)],
) -> Option<usize> {
    let changed: Vec<(Keys, Values, Values)> = changes
        .iter()
        .map(|(row, change)| {
            let keys_of_row = key(partition, row);
            let stored = rows.get(&keys_of_row);
            let old = stored.and_then(|row| values(&row.properties, keys));
            let new = change.outcome(stored).and_then(|new| values(&new, keys));
            (keys_of_row, old, new)
        })
        .collect();
    let is_changed = |keys: &Keys| changed.iter().any(|(other, ..)| other == keys);
    changed.iter().enumerate().position(|(place, (_, old, new))| {
        if new.is_none() || old == new {
            return false;
        }
        let of_another = rows.iter().any(|(keys_of_row, row)| {
            !is_changed(keys_of_row) && values(&row.properties, keys) == *new
        });
        let claimed = changed[..place].iter().any(|(_, _, earlier)| earlier == new);
        let kept = changed.iter().any(|(_, old, other)| old == new && other == new);
        of_another || claimed || kept
    })
}
