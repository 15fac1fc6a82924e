//! An index that is read as a table: whole entities, in the order of its parts.

use serde_json::Value;

use super::Session;
use super::store::{Keys, Property, Row, key};
use crate::support::client::{Request, values};
use crate::table::indexes::{INDEXES, wait_for};

pub(super) const NAME: &str = "Seen";
const KEYS: &str = "A,B";

/// The name that the view of a table has.
pub(super) fn name_of(table: &str) -> String {
    format!("{table}Seen")
}

impl Session {
    /// Declares the index that is read as a table, or drops it.
    pub(super) fn change_view(&mut self, table: &str) {
        if self.viewed.remove(table) {
            self.client.remove(INDEXES, (table, NAME), "*").expect(204);
            self.client.query(&name_of(table), &[]).send().expect_error(404, "TableNotFound");
            return;
        }
        let include = *self.random.pick(&["", "B,C"]);
        let definition =
            serde_json::json!({"Keys": KEYS, "Include": include, "BrowseAs": name_of(table)});
        let answer = self.client.put(INDEXES, (table, NAME), &definition).send();
        if self.store.rows(table).is_none() {
            answer.expect_error(404, "TableNotFound");
            return;
        }
        answer.expect(204);
        wait_for(&self.client, table, NAME, "Readable");
        self.viewed.insert(table.to_owned());
    }

    /// Holds the view of a table against its entities in the order of the index.
    pub(super) fn compare_view(&mut self, table: &str) {
        if !self.viewed.contains(table) {
            return;
        }
        let top = self.random.pick(&["3", "1000"]).to_string();
        let pages = self.client.pages(&name_of(table), &[("$top", &top)], Request::send);
        let found: Vec<Value> = pages.iter().flat_map(values).collect();
        let rows = self.store.rows(table).expect("it has a view");
        let mut expected: Vec<_> =
            rows.iter().filter(|(_, row)| row.properties.0.contains_key("A")).collect();
        expected.sort_by(|a, b| places(a).partial_cmp(&places(b)).expect("no NaN"));
        let origins: Vec<_> = found.iter().map(origin).collect();
        let keys: Vec<_> = expected.iter().map(|(keys, _)| (*keys).clone()).collect();
        assert_eq!(origins, keys, "the view of {table}");
        for ((keys, row), mut entity) in expected.into_iter().zip(found) {
            let members = entity.as_object_mut().expect("an entity");
            for name in ["PartitionKey", "RowKey"] {
                let own = members.remove(&format!("Origin{name}")).expect("where it is from");
                members.insert(name.to_owned(), own);
            }
            row.assert_is((keys.0.as_str(), keys.1.as_str()), &entity);
        }
    }
}

/// Where the entity of a row of the view is.
fn origin(entity: &Value) -> Keys {
    let text = |name: &str| entity[name].as_str().expect("a key");
    key(text("OriginPartitionKey"), text("OriginRowKey"))
}

/// A part by its type, then by its value.
type Place = (u8, f64, Vec<u16>);

/// Where an entity stands in the index.
fn places<'r>((keys, row): &(&'r Keys, &Row)) -> ([Place; 2], &'r Keys) {
    let place = |name: &str| match row.properties.0.get(name) {
        None => (0, 0.0, Vec::new()),
        Some(Property::Boolean(value)) => (1, f64::from(u8::from(*value)), Vec::new()),
        Some(Property::Double(number)) => (2, *number, Vec::new()),
        Some(Property::Int32(number)) => (3, f64::from(*number), Vec::new()),
        Some(Property::Int64(number)) => (4, *number as f64, Vec::new()),
        Some(Property::Text(text)) => (5, 0.0, text.encode_utf16().collect()),
    };
    ([place("A"), place("B")], keys)
}
