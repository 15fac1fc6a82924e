//! Shapes that one index would serve, and what is said of it.

use std::collections::BTreeSet;

use tavola_wire::Ticks;

use super::proposal::Candidate;
use super::{
    Action, Advice, DeclaredIndex, EXAMINE_SECONDS, INCLUDED_BYTES_MAX, INCLUDED_MAX, LARGE_SHARE,
    ROW_BYTES, WRITE_SECONDS,
};
use crate::workload::ShapeRecord;

/// The longest name of an index: that of a table.
const NAME_BYTES_MAX: usize = 63;
/// Executions below which the figures say little.
const FEW_EXECUTIONS: u64 = 10;

/// Shapes that are named for one index.
const SHAPES_TOLD_MAX: usize = 16;

/// Properties that every row of an index has.
const KEYS: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

pub(super) struct Group<'a> {
    pub(super) parts: Vec<&'a str>,
    shapes: Vec<&'a ShapeRecord>,
}

impl<'a> Group<'a> {
    pub(super) fn new(candidate: Candidate<'a>) -> Self {
        Self { parts: candidate.parts, shapes: vec![candidate.shape] }
    }

    pub(super) fn add(&mut self, candidate: &Candidate<'a>) {
        self.shapes.push(candidate.shape);
    }

    /// What to tell. `names` are those that are taken, in lower case.
    pub(super) fn advice(
        mut self,
        names: &mut BTreeSet<String>,
        declared: &[&DeclaredIndex],
        writes: u64,
    ) -> Advice {
        self.shapes.sort_by_key(|shape| std::cmp::Reverse(shape.examined));
        let sum = |of: fn(&ShapeRecord) -> u64| self.shapes.iter().map(|shape| of(shape)).sum();
        let (examined, returned): (u64, u64) = (sum(|it| it.examined), sum(|it| it.returned));
        let include = self.include();
        let gain_seconds = examined.saturating_sub(returned) as f64 * EXAMINE_SECONDS;
        let price_seconds = writes as f64 * WRITE_SECONDS;
        let included_bytes = if include.is_empty() { 0 } else { self.row_bytes() };
        Advice {
            action: Action::Create,
            table_name: self.shapes[0].table_name.clone(),
            name: unused_name(&self.parts, names),
            keys: self.parts.join(","),
            include: include.join(","),
            gain_seconds,
            price_seconds,
            price_bytes: self.rows().saturating_mul(ROW_BYTES + included_bytes),
            executions: sum(|it| it.executions),
            examined,
            returned,
            last_seen: self
                .shapes
                .iter()
                .map(|shape| shape.last_seen)
                .max()
                .unwrap_or(Ticks::MIN_STORED),
            shapes: self.shapes_text(),
            note: self.notes(declared, gain_seconds, price_seconds).join(" "),
        }
    }

    /// What the index has to hold so that no entity is fetched; nothing if a shape wants whole entities, or too much.
    fn include(&self) -> Vec<&'a str> {
        let selects_all = self.shapes.iter().any(|shape| shape.select.is_empty());
        if selects_all || self.row_bytes() > INCLUDED_BYTES_MAX {
            return Vec::new();
        }
        let names = self.shapes.iter().flat_map(|shape| {
            let terms = &shape.terms;
            shape.select.iter().chain(&terms.equals).chain(&terms.bounds).chain(&terms.others)
        });
        let names: BTreeSet<_> = names
            .map(String::as_str)
            .filter(|name| !KEYS.contains(name) && !self.parts.contains(name))
            .collect();
        if names.len() > INCLUDED_MAX { Vec::new() } else { names.into_iter().collect() }
    }

    /// The dearest shapes, one a line.
    fn shapes_text(&self) -> String {
        let texts = self.shapes.iter().take(SHAPES_TOLD_MAX).map(|shape| shape.text.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Bytes of a returned row, about.
    fn row_bytes(&self) -> u64 {
        let returned = self.shapes.iter().map(|shape| shape.returned).sum::<u64>();
        self.shapes.iter().map(|shape| shape.bytes).sum::<u64>() / returned.max(1)
    }

    /// Rows of the table, about: no query examines more. Those that stop early examine less.
    fn rows(&self) -> u64 {
        let rows = self.shapes.iter().map(|shape| shape.examined / shape.executions.max(1));
        rows.max().unwrap_or(0)
    }

    fn notes(&self, declared: &[&DeclaredIndex], gain: f64, price: f64) -> Vec<String> {
        let mut notes = Vec::new();
        let share = self.shapes.iter().map(|shape| shape.largest_share).fold(0.0, f64::max);
        if share > LARGE_SHARE {
            notes.push(format!(
                "Skewed: for some values {:.0} % of the rows matched, and queries for them go on scanning.",
                100.0 * share
            ));
        }
        if self.parts.contains(&"Timestamp") {
            notes.push(
                "Every write of an entity changes this index, whatever it writes.".to_owned(),
            );
        }
        let is_extended = |index: &&&DeclaredIndex| {
            index.keys.len() < self.parts.len()
                && index.keys.iter().zip(&self.parts).all(|(a, b)| a == b)
        };
        if let Some(index) = declared.iter().find(is_extended) {
            notes.push(format!("It does all that {} does, which can be dropped then.", index.name));
        }
        let executions = self.shapes.iter().map(|shape| shape.executions).sum::<u64>();
        if executions < FEW_EXECUTIONS {
            notes.push(format!("Only {executions} queries so far."));
        }
        if price > gain {
            notes.push("So far it would have cost more than it gained.".to_owned());
        }
        notes
    }
}

/// `ByTownLastName`, or with a number behind it.
fn unused_name(parts: &[&str], names: &mut BTreeSet<String>) -> String {
    let letters = parts.iter().flat_map(|part| part.chars().filter(char::is_ascii_alphanumeric));
    let base: String = "By".chars().chain(letters).take(NAME_BYTES_MAX - 4).collect();
    let base = if base.len() < 3 { "ByValue".to_owned() } else { base };
    let mut name = base.clone();
    let mut number = 1;
    while !names.insert(name.to_ascii_lowercase()) {
        number += 1;
        name = format!("{base}{number}");
    }
    name
}
