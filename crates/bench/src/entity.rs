//! The entities of every load: about 600 bytes of JSON, eleven properties of all types, determined by their number.

use std::io::Write as _;

use crate::random::scramble;

/// Entities that one value of `Bucket` stands for: `Bucket eq 7` matches one in a thousand.
pub const BUCKETS: u64 = 1000;
/// A filter that matches one entity in [`BUCKETS`] and that no key helps with.
pub const SCAN_FILTER: &str = "Bucket eq 7";
const SCAN_BUCKET: u64 = 7;

/// How numbers become keys: partitions side by side, rows in turn.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub partitions: u64,
    /// Keeps the keys of one workload apart from those of another in the same table.
    pub prefix: char,
}

/// Where an entity stands: the so-manieth row of the so-manieth partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub partition: u64,
    pub row: u64,
}

impl Default for Keys {
    fn default() -> Self {
        Self { partitions: 50, prefix: 'p' }
    }
}

impl Keys {
    pub fn place(&self, number: u64) -> Place {
        Place { partition: number % self.partitions, row: number / self.partitions }
    }

    pub fn number(&self, place: Place) -> u64 {
        place.row * self.partitions + place.partition
    }

    /// How many of the first `entities` stand in one partition.
    pub fn rows_in(&self, partition: u64, entities: u64) -> u64 {
        entities / self.partitions + u64::from(partition < entities % self.partitions)
    }

    pub fn push_partition_key(&self, out: &mut Vec<u8>, place: Place) {
        write!(out, "{}{:05}", self.prefix, place.partition).expect(ALWAYS_WRITES);
    }

    /// Row keys are unique in the whole table and sort by row.
    pub fn push_row_key(&self, out: &mut Vec<u8>, place: Place) {
        out.push(b'r');
        push_padded(out, self.number(place), 10);
    }

    /// Appends the JSON of an entity; another revision has other values of the same size.
    pub fn push_entity(&self, out: &mut Vec<u8>, place: Place, revision: u64) {
        let number = self.number(place);
        let seed = scramble(number ^ (revision << 40));
        out.extend_from_slice(b"{\"PartitionKey\":\"");
        self.push_partition_key(out, place);
        out.extend_from_slice(b"\",\"RowKey\":\"");
        self.push_row_key(out, place);
        out.extend_from_slice(b"\",\"Customer\":\"customer ");
        push_padded(out, number, 10);
        out.extend_from_slice(b"\",\"Remark\":\"");
        push_words(out, seed, 110);
        out.extend_from_slice(b"\",\"Quantity\":");
        push_number(out, seed >> 40);
        out.extend_from_slice(b",\"Bucket\":");
        push_number(out, number % BUCKETS);
        out.extend_from_slice(b",\"Amount@odata.type\":\"Edm.Int64\",\"Amount\":\"");
        push_number(out, seed >> 1);
        out.extend_from_slice(b"\",\"Price\":");
        push_number(out, seed % 100_000);
        out.extend_from_slice(b".75,\"Active\":");
        // The value of nine in ten, for queries that an index is no good for.
        out.extend_from_slice(if number.is_multiple_of(10) { b"false" } else { b"true" });
        out.extend_from_slice(b",\"Ordered@odata.type\":\"Edm.DateTime\",\"Ordered\":\"2026-03-");
        push_padded(out, 1 + seed % 28, 2);
        out.extend_from_slice(b"T10:20:30.4567Z\",\"Trace@odata.type\":\"Edm.Guid\",\"Trace\":\"");
        push_guid(out, seed);
        out.extend_from_slice(b"\",\"Digest@odata.type\":\"Edm.Binary\",\"Digest\":\"");
        push_base64(out, seed, 64);
        out.extend_from_slice(b"\",\"Revision\":\"");
        push_number(out, revision);
        out.extend_from_slice(b"\"}");
    }
}

/// How many of the first `entities` the [`SCAN_FILTER`] matches.
pub fn scan_matches(entities: u64) -> u64 {
    entities / BUCKETS + u64::from(entities % BUCKETS > SCAN_BUCKET)
}

const ALWAYS_WRITES: &str = "a vector takes every write";
const WORDS: [&str; 16] = [
    "bread ", "butter ", "cheese ", "olives ", "pears ", "honey ", "salt ", "pepper ", "rice ",
    "beans ", "figs ", "walnuts ", "lemons ", "tea ", "coffee ", "water ",
];
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn push_words(out: &mut Vec<u8>, seed: u64, length: usize) {
    let start = out.len();
    let mut choice = seed;
    while out.len() - start < length {
        out.extend_from_slice(WORDS[(choice % 16) as usize].as_bytes());
        choice = choice.rotate_right(4).wrapping_add(0x51_7C);
    }
    out.truncate(start + length);
}

fn push_base64(out: &mut Vec<u8>, seed: u64, length: usize) {
    let mut bits = seed;
    for index in 0..length {
        if index % 10 == 0 {
            bits = scramble(bits);
        }
        out.push(BASE64[(bits >> (index % 10 * 6)) as usize % 64]);
    }
}

fn push_guid(out: &mut Vec<u8>, seed: u64) {
    let bits = (u128::from(seed) << 64) | u128::from(scramble(seed));
    let (a, b, c) = ((bits >> 96) as u32, (bits >> 80) as u16, (bits >> 64) as u16);
    let (d, e) = ((bits >> 48) as u16, bits as u64 & 0xFFFF_FFFF_FFFF);
    write!(out, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}").expect(ALWAYS_WRITES);
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn push_padded(out: &mut Vec<u8>, number: u64, width: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits.len())));
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use tavola_wire::table::json::read_entity;
    use tavola_wire::table::stored::{EdmType, EntityRef};

    use super::*;

    #[test]
    fn entities_are_legal_and_of_about_600_bytes() {
        let keys = Keys::default();
        for number in [0, 7, 49, 50, 99_999, 4_999_999] {
            let mut json = Vec::new();
            keys.push_entity(&mut json, keys.place(number), number % 3);
            assert!((560..640).contains(&json.len()), "{} bytes", json.len());
            let body = read_entity(&json).unwrap();
            let entity = EntityRef::parse(&body.entity).unwrap();
            let types: Vec<_> =
                entity.properties().map(|property| property.unwrap().edm_type).collect();
            assert_eq!(types.len(), 11);
            for edm_type in
                [EdmType::String, EdmType::Int32, EdmType::Int64, EdmType::Double, EdmType::Boolean]
            {
                assert!(types.contains(&edm_type), "{edm_type:?}");
            }
            for edm_type in [EdmType::DateTime, EdmType::Guid, EdmType::Binary] {
                assert!(types.contains(&edm_type), "{edm_type:?}");
            }
        }
    }

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let keys = Keys { partitions: 7, prefix: 'q' };
        let mut rows = vec![0; 7];
        for number in 0..1000 {
            let place = keys.place(number);
            assert_eq!(keys.number(place), number);
            assert_eq!(place.row, rows[usize::try_from(place.partition).unwrap()]);
            rows[usize::try_from(place.partition).unwrap()] += 1;
        }
        for (partition, rows) in rows.into_iter().enumerate() {
            assert_eq!(keys.rows_in(partition as u64, 1000), rows);
        }
    }

    #[test]
    fn the_scan_filter_matches_as_many_as_it_says() {
        for entities in [0, 7, 8, 1000, 1007, 1008, 54_321] {
            let matching =
                (0..entities).filter(|number| number % BUCKETS == SCAN_BUCKET).count() as u64;
            assert_eq!(scan_matches(entities), matching, "{entities}");
        }
    }
}
