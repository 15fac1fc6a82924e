//! A table cut into ranges of partition keys, for workers that read it in parallel.
//!
//! The service tells neither how many entities there are nor where they are. What it does cheaply is to find the next key
//! from a place on, so the cuts are found by asking: first for what all keys have in common, then for the characters that
//! follow it, and then for the keys nearest to the places that would be cuts if keys were numbers in these digits. That is
//! some tens of requests for one entity each, whatever the table's size.

use futures::TryStreamExt;
use tavola_wire::table::stored::key::compare_text;

use super::entity::Entity;
use super::filter::{Filter, PARTITION_KEY, prefix_end};
use super::{QueryOptions, TableClient};
use crate::core::error::Result;

/// Ranges that a table can be cut into.
const RANGES_MAX: usize = 1024;
/// The halves of pairs, which are no characters by themselves. All characters of pairs count as one here.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;
const FIRST_PAIR: char = '\u{10000}';
/// Keys have no control characters, neither these nor the first.
const OTHER_CONTROLS: std::ops::RangeInclusive<u32> = 0x7F..=0x9F;
const CONTROLS_END: u32 = 0x20;
/// Characters that are looked for one by one: all of ASCII. The steps get longer after that.
const LETTERS_EXACT: usize = 95;
/// Letters between two lengthenings of the step.
const LETTERS_A_STEP: usize = 8;

/// A range of partition keys.
///
/// ```
/// use tavola_client::{PartitionRange, filter};
///
/// // Cuts that are known beforehand: three ranges, which together are the whole table.
/// let ranges = PartitionRange::between(["g", "p"]);
/// let filters: Vec<String> = ranges.iter().map(|range| range.filter().to_string()).collect();
/// assert_eq!(
///     filters,
///     [
///         "PartitionKey lt 'g'",
///         "PartitionKey ge 'g' and PartitionKey lt 'p'",
///         "PartitionKey ge 'p'",
///     ]
/// );
/// assert_eq!((ranges[1].start(), ranges[1].end()), (Some("g"), Some("p")));
/// // A condition beside it.
/// let wanted = ranges[0].filter() & filter!(Age >= 30);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionRange {
    start: Option<String>,
    end: Option<String>,
}

impl PartitionRange {
    /// The ranges between these cuts, one more than there are cuts. A cut is the first key of the range after it.
    pub fn between(cuts: impl IntoIterator<Item = impl Into<String>>) -> Vec<Self> {
        let mut cuts: Vec<String> = cuts.into_iter().map(Into::into).collect();
        cuts.sort_by(|a, b| compare_text(a, b));
        cuts.dedup();
        let starts = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
        let ends = cuts.iter().cloned().map(Some).chain([None]);
        starts.zip(ends).map(|(start, end)| Self { start, end }).collect()
    }

    /// The first key that can be in it; `None` for the beginning of the table.
    pub fn start(&self) -> Option<&str> {
        self.start.as_deref()
    }

    /// The first key after it; `None` for the end of the table.
    pub fn end(&self) -> Option<&str> {
        self.end.as_deref()
    }

    /// The entities in it.
    pub fn filter(&self) -> Filter {
        let start = self.start().map_or(Filter::ALL, |start| PARTITION_KEY.ge(start));
        let end = self.end().map_or(Filter::ALL, |end| PARTITION_KEY.lt(end));
        start & end
    }
}

impl TableClient {
    /// Cuts the table into at most this many ranges of partition keys, for workers that read it in parallel.
    ///
    /// Together the ranges are the whole table, with the keys that are added later, and no partition is in two of them.
    /// They are about even if the keys are, such as numbers with leading zeros, GUIDs and hashes. Of keys that crowd, such
    /// as names, some ranges get more than others: then cut into several times as many ranges as there are workers, and let
    /// each take the next when it is done, or give [cuts of your own](PartitionRange::between). A table with few partitions
    /// gives few ranges.
    ///
    /// ```no_run
    /// # async fn run(people: tavola_client::TableClient) -> tavola_client::Result<()> {
    /// use tavola_client::{Entity, StreamExt, TryStreamExt};
    ///
    /// // Four workers, and ranges enough that none is long without work.
    /// let ranges = people.split_partitions(16).await?;
    /// let counts = ranges.into_iter().map(|range| {
    ///     let people = people.clone();
    ///     async move {
    ///         let found: Vec<_> = people.query_entities::<Entity>(range.filter()).try_collect().await?;
    ///         Ok::<_, tavola_client::Error>(found.len())
    ///     }
    /// });
    /// let counts: Vec<usize> =
    ///     futures::stream::iter(counts).buffer_unordered(4).try_collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of a query.
    pub async fn split_partitions(&self, count: usize) -> Result<Vec<PartitionRange>> {
        let whole = || vec![PartitionRange::default()];
        let count = count.min(RANGES_MAX);
        if count < 2 {
            return Ok(whole());
        }
        let Some(first) = self.first_partition_from("").await? else { return Ok(whole()) };
        let prefix = self.common_prefix(&first).await?;
        let letters = self.letters_after(&prefix).await?;
        let mut cuts = Vec::new();
        for guess in guesses(&prefix, &letters, count) {
            match self.first_partition_from(&guess).await? {
                Some(key) if key != first => cuts.push(key),
                _ => {}
            }
        }
        Ok(PartitionRange::between(cuts))
    }

    /// The first partition key at or after this one.
    async fn first_partition_from(&self, key: &str) -> Result<Option<String>> {
        let options = QueryOptions {
            filter: (!key.is_empty()).then(|| PARTITION_KEY.ge(key)),
            select: Some(Vec::new()),
            page_size: Some(1),
            ..Default::default()
        };
        let mut found = self.without_encryption().query_entities::<Entity>(options);
        Ok(found.try_next().await?.map(|stored| stored.into_value().take_partition_key()))
    }

    /// The longest start of the first key that all keys have: no key is after those that have it.
    async fn common_prefix(&self, first: &str) -> Result<String> {
        let ends: Vec<usize> =
            first.char_indices().map(|(at, _)| at).chain([first.len()]).collect();
        // All keys have the first `low` characters in common, and not the first `high`.
        let (mut low, mut high) = (0, ends.len());
        while high - low > 1 {
            let middle = low.midpoint(high);
            let has_other = match prefix_end(&first[..ends[middle]]) {
                Some(end) => self.first_partition_from(&end).await?.is_some(),
                None => false,
            };
            if has_other { high = middle } else { low = middle }
        }
        Ok(first[..ends[low]].to_owned())
    }

    /// The characters that follow the prefix in any key, in their order; some of them if there are very many.
    async fn letters_after(&self, prefix: &str) -> Result<Vec<char>> {
        let (mut letters, mut from) = (Vec::new(), CONTROLS_END);
        while let Some(letter) = char::from_u32(from) {
            let Some(key) = self.first_partition_from(&format!("{prefix}{letter}")).await? else {
                break;
            };
            // A key with another start came in between, and is the next range's.
            let Some(unit) = unit_after(prefix, &key) else { break };
            letters.push(char::from_u32(unit).unwrap_or(FIRST_PAIR));
            from = next_unit(unit.max(from), letters.len());
        }
        Ok(letters)
    }
}

/// The unit of UTF-16 that follows a prefix, because the service compares by these.
fn unit_after(prefix: &str, key: &str) -> Option<u32> {
    key.strip_prefix(prefix)?.encode_utf16().next().map(u32::from)
}

/// Where to look on after a unit, with this many letters found.
fn next_unit(unit: u32, found: usize) -> u32 {
    let step = 1 << (found.saturating_sub(LETTERS_EXACT) / LETTERS_A_STEP).min(12);
    match unit + step {
        next if SURROGATES.contains(&unit) || SURROGATES.contains(&next) => SURROGATES.end() + 1,
        next if OTHER_CONTROLS.contains(&next) => OTHER_CONTROLS.end() + 1,
        // Beyond the last unit there are no characters that have not been seen.
        next if next > u32::from(u16::MAX) => u32::MAX,
        next => next,
    }
}

/// Where the cuts would be if keys were numbers in these digits and spread evenly.
fn guesses(prefix: &str, letters: &[char], count: usize) -> Vec<String> {
    let base = letters.len();
    let guess = |index: usize| {
        let place = index * base * base * base / count;
        let digits = [place / base / base, place / base % base, place % base];
        let length = digits.iter().rposition(|digit| *digit > 0).map_or(1, |last| last + 1);
        let digits = digits[..length].iter().map(|digit| letters[*digit]);
        prefix.chars().chain(digits).collect()
    };
    let mut guesses: Vec<String> = match base {
        0 => Vec::new(),
        _ => (1..count).map(guess).collect(),
    };
    guesses.dedup();
    guesses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_even_and_in_order() {
        let digits: Vec<char> = ('0'..='9').collect();
        assert_eq!(guesses("user_", &digits, 4), ["user_25", "user_5", "user_75"]);
        assert_eq!(guesses("", &digits, 8)[0], "125");
        assert_eq!(guesses("Jones", &['y'], 3), ["Jonesy"]);
        for count in [2, 3, 7, 100, RANGES_MAX] {
            let cuts = guesses("", &['0', 'a', '\u{20ac}', FIRST_PAIR, '\u{e000}'], count);
            assert!(cuts.is_sorted_by(|a, b| compare_text(a, b).is_lt()), "{count}");
        }
    }

    #[test]
    fn the_search_for_letters_comes_to_an_end() {
        let (mut unit, mut found) = (CONTROLS_END, 0);
        while unit != u32::MAX {
            assert!(char::from_u32(unit).is_some(), "{unit:x}");
            found += 1;
            let next = next_unit(unit, found);
            assert!(next > unit);
            unit = next;
        }
        assert!(found < 250, "{found}");
    }

    #[test]
    fn ranges_are_the_whole_table_whatever_the_order_of_cuts() {
        let ranges = PartitionRange::between(["p", "g", "p"]);
        assert_eq!(ranges, PartitionRange::between(["g", "p"]));
        assert_eq!(PartitionRange::between(Vec::<String>::new()), [PartitionRange::default()]);
        assert_eq!(PartitionRange::default().filter(), Filter::ALL);
    }
}
