//! The newest version of each row out of many sorted sources.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::VecDeque;

use bytes::Bytes;

use crate::embedded::salvage::journals::Journals;
use crate::embedded::salvage::table::Table;
use crate::embedded::salvage::{Loss, Version};

/// Versions in order of keys, newer ones first.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// The next version of each source that has one: key, the newest first, and which source.
    heads: BinaryHeap<Reverse<(Bytes, Reverse<u64>, usize)>>,
    next: Vec<Option<Version>>,
    is_begun: bool,
}

enum Source {
    Table(Box<Table>),
    Sorted(VecDeque<Version>),
}

impl Merge {
    pub(super) fn new(tables: Vec<Table>) -> Self {
        let sources = tables.into_iter().map(|table| Source::Table(Box::new(table))).collect();
        Self { sources, heads: BinaryHeap::new(), next: Vec::new(), is_begun: false }
    }

    /// Adds the journals. What a journal holds is in tables already up to their highest sequence number; as at a start,
    /// that is not looked at, unless a table may have lost it.
    pub(super) fn add_journals(
        &mut self,
        journals: &Journals,
        is_whole: bool,
        losses: &mut Vec<Loss>,
    ) {
        let highest = |source: &Source| match source {
            Source::Table(table) if table.is_whole() => table.highest_seqno(),
            _ => None,
        };
        let seqnos: Option<Vec<_>> = self.sources.iter().map(highest).collect();
        let flushed = seqnos.filter(|_| is_whole).and_then(|seqnos| seqnos.into_iter().max());
        let versions = journals.versions(flushed, losses);
        self.sources.push(Source::Sorted(versions.into()));
    }

    /// The newest version of the next row.
    pub(super) fn next(&mut self, losses: &mut Vec<Loss>) -> Option<Version> {
        if !self.is_begun {
            self.is_begun = true;
            self.next.resize_with(self.sources.len(), || None);
            for source in 0..self.sources.len() {
                self.advance(source, losses);
            }
        }
        let newest = self.pop(losses)?;
        while self.heads.peek().is_some_and(|Reverse((key, ..))| *key == newest.key) {
            self.pop(losses);
        }
        Some(newest)
    }

    fn pop(&mut self, losses: &mut Vec<Loss>) -> Option<Version> {
        let Reverse((.., source)) = self.heads.pop()?;
        let version = self.next[source].take();
        self.advance(source, losses);
        version
    }

    fn advance(&mut self, source: usize, losses: &mut Vec<Loss>) {
        self.next[source] = match &mut self.sources[source] {
            Source::Table(table) => table.next(losses),
            Source::Sorted(versions) => versions.pop_front(),
        };
        if let Some(version) = &self.next[source] {
            self.heads.push(Reverse((version.key.clone(), Reverse(version.seqno), source)));
        }
    }
}
