//! What an index says about one entity.

use tavola_wire::table::filter::Literal;
use tavola_wire::table::index::value_line::{Decoded, decode};
use tavola_wire::table::index::{IndexDefinition, RowRef};
use tavola_wire::table::stored::EntityWriter;

use super::candidate::{Candidate, Coverage};

/// Bytes of entries that a query holds at a time.
pub(super) const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Its key, and what the answer needs of it if the index row has that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub entity_key: Vec<u8>,
    pub entity: Option<Vec<u8>>,
    /// The number of the index that says so.
    pub index: u16,
}

impl Entry {
    pub(super) fn of(candidate: &Candidate, row: RowRef<'_>) -> Self {
        let entity = match candidate.coverage {
            Coverage::Keys => None,
            Coverage::Parts => entity_of_parts(&candidate.index().definition, &row),
            Coverage::Copy => row.copy.map(<[u8]>::to_vec),
        };
        Self { entity_key: row.entity_key.into_owned(), entity, index: candidate.index().number }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.entity_key.len() + self.entity.as_ref().map_or(0, Vec::len)
    }
}

/// An entity of the values in the key of a row; `None` where the key does not say exactly which they are.
fn entity_of_parts(definition: &IndexDefinition, row: &RowRef<'_>) -> Option<Vec<u8>> {
    let mut writer = EntityWriter::new();
    for (part, place) in definition.keys.iter().zip(row.parts) {
        if matches!(part.property.as_str(), "PartitionKey" | "RowKey" | "Timestamp") {
            continue;
        }
        match decode(place)? {
            Decoded::Missing => {}
            // Both zeros have one place.
            Decoded::Cut(..) | Decoded::Value(Literal::Double(0.0)) => return None,
            Decoded::Value(value) => writer.push(&part.property, value.as_value()),
        }
    }
    Some(writer.finish())
}
