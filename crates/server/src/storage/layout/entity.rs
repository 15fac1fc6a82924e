//! Entity rows: `E . table id . PartitionKey 00 RowKey`.

use bytes::{BufMut, Bytes};
use tavola_engine::KeyRange;
use tavola_wire::table::stored::key::push_entity_key;

use super::{Family, PREFIX_BYTES, TableId, prefix, range_of};

/// The keys of one table's entities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntityKeys {
    table: TableId,
}

impl EntityKeys {
    pub(crate) fn of(table: TableId) -> Self {
        Self { table }
    }

    /// The key of one entity.
    pub(crate) fn key(self, partition_key: &str, row_key: &str) -> Bytes {
        let mut key = Vec::with_capacity(PREFIX_BYTES + partition_key.len() + 1 + row_key.len());
        key.push(Family::Entity as u8);
        key.extend_from_slice(&self.table.0.to_be_bytes());
        push_entity_key(&mut key, partition_key, row_key);
        key.into()
    }

    /// The key of the entity with these entity-key bytes.
    pub(crate) fn raw(self, entity_key: &[u8]) -> Bytes {
        let mut key = prefix(Family::Entity, self.table.0, entity_key.len());
        key.put_slice(entity_key);
        key.freeze()
    }

    /// The rows from `start` (included) to `end` (excluded; `None` is the end of the table).
    pub(crate) fn range(self, start: &[u8], end: Option<&[u8]>) -> KeyRange {
        let end = end.map_or_else(|| self.all().end, |end| self.raw(end));
        KeyRange { start: self.raw(start), end }
    }

    /// Every row of the table.
    pub(crate) fn all(self) -> KeyRange {
        range_of(Family::Entity, self.table.0)
    }
}

/// The entity-key bytes of a row's key.
pub(crate) fn entity_key_of(key: &[u8]) -> &[u8] {
    &key[PREFIX_BYTES..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lie_in_the_range_of_their_table() {
        let keys = EntityKeys::of(TableId(3));
        let all = keys.all();
        for (pk, rk) in [("", ""), ("a", "b"), ("\u{ffff}", "\u{10ffff}")] {
            let key = keys.key(pk, rk);
            assert!(all.start <= key && key < all.end);
            assert!(key < EntityKeys::of(TableId(4)).all().start);
            assert_eq!(keys.raw(entity_key_of(&key)), key);
        }
    }
}
