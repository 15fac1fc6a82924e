//! The life of an index, as changes of the list in its table's record. Pure: who waits for what in between is the builder's.
//!
//! ```text
//! (absent) -declare-> DeleteOnly -fence-> WriteOnly -fence-> Building -built-> Readable
//! Readable -drop-> Retiring -fence-> Dropped -fence, sweep-> (absent)
//! Building -violation-> Failed;  what was never readable is dropped without retiring
//! Readable -wrong row-> Failing -fence-> Failed
//! ```
//!
//! A new definition under an old name is a new index beside the old one, which takes its place when it is readable.

use std::collections::BTreeSet;

use tavola_wire::Ticks;
use tavola_wire::table::index::{Include, IndexDefinition};

use crate::storage::layout::{DefinitionTexts, IndexList, IndexRecord, IndexState};

/// Indexes of a table: together with the next limit, a transaction of 4 MiB stays below 16 MiB.
pub(crate) const INDEXES_PER_TABLE_MAX: usize = 16;
/// Those of them that have a copy of the whole entity.
pub(crate) const COPYING_INDEXES_PER_TABLE_MAX: usize = 3;
/// How many times as many are kept at a time at most, where definitions are replaced or dropped and not gone yet.
const KEPT_FACTOR: usize = 2;
/// Definitions of all tables of an account: their tables are kept in mind.
pub(crate) const DEFINITIONS_PER_ACCOUNT_MAX: usize = 1000;

/// Why an index is not declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitError {
    #[error("A table can have at most {INDEXES_PER_TABLE_MAX} indexes.")]
    Indexes,
    #[error(
        "A table can have at most {COPYING_INDEXES_PER_TABLE_MAX} indexes that include all properties."
    )]
    CopyingIndexes,
    #[error("An account can have at most {DEFINITIONS_PER_ACCOUNT_MAX} indexes.")]
    Definitions,
    #[error("Too many indexes have been declared on this table ever; copy it to a new one.")]
    Numbers,
}

/// The index of that name, as it was declared last.
pub(crate) fn latest<'a>(list: &'a IndexList, name: &str) -> Option<&'a IndexRecord> {
    list.indexes.iter().rev().find(|index| index.name == name && index.state.is_named())
}

/// The names of the indexes, each once, in the order of their first numbers.
pub(crate) fn names(list: &IndexList) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for index in list.indexes.iter().filter(|index| index.state.is_named()) {
        if !names.contains(&index.name.as_str()) {
            names.push(&index.name);
        }
    }
    names
}

/// Whether an index is to be read under the name under which another one is, in any case of letters.
pub(crate) fn shares_view(list: &IndexList, name: &str) -> bool {
    let Some(view) = latest(list, name).and_then(|index| index.browse_as.as_deref()) else {
        return false;
    };
    let is_same = |other: &String| other.eq_ignore_ascii_case(view);
    let others = list.indexes.iter().filter(|other| other.name != name && other.state.is_named());
    others.filter_map(|other| other.browse_as.as_ref()).any(is_same)
}

/// Declares an index, or another definition for one. One that has failed begins again.
///
/// # Errors
/// A limit of the table.
pub(crate) fn declare(
    list: &mut IndexList,
    name: &str,
    definition: &IndexDefinition,
    browse_as: Option<&str>,
    now: Ticks,
) -> Result<(), LimitError> {
    let texts = DefinitionTexts::of(definition);
    let before = latest(list, name).cloned();
    check_limits(list, name, definition)?;
    let is_same = |index: &IndexRecord| index.definition == texts && !index.state.has_failed();
    match before {
        Some(before) if is_same(&before) => {}
        // Back to what it still is, because the new one was not ready.
        Some(before) if readable_before(list, &before).is_some_and(is_same) => {
            set_state(list, before.number, IndexState::Dropped, now);
        }
        Some(before) => {
            let replaces = match before.state {
                IndexState::Readable => Some(before.number),
                _ => before.replaces,
            };
            if before.state != IndexState::Readable {
                set_state(list, before.number, state_when_dropped(before.state), now);
            }
            push(list, name, texts, replaces, now)?;
        }
        None => push(list, name, texts, None, now)?,
    }
    let named = |index: &&mut IndexRecord| index.name == name && index.state.is_named();
    for index in list.indexes.iter_mut().filter(named) {
        if index.browse_as.as_deref() != browse_as {
            index.browse_as = browse_as.map(str::to_owned);
        }
        index.changed = now;
    }
    Ok(())
}

/// Drops the index of that name.
pub(crate) fn drop_index(list: &mut IndexList, name: &str, now: Ticks) {
    let named = |index: &&mut IndexRecord| index.name == name && index.state.is_named();
    for index in list.indexes.iter_mut().filter(named) {
        index.state = state_when_dropped(index.state);
        index.browse_as = None;
        index.changed = now;
    }
}

/// An index can be read from now on, and the one that it replaces goes.
pub(crate) fn finish_build(list: &mut IndexList, number: u16, now: Ticks) {
    let Some(built) = find(list, number) else { return };
    if built.state != IndexState::Building {
        return;
    }
    let replaced = built.replaces.take();
    set_state(list, number, IndexState::Readable, now);
    if let Some(replaced) = replaced.and_then(|number| find(list, number))
        && replaced.state.is_named()
    {
        replaced.browse_as = None;
        let (number, next) = (replaced.number, state_when_dropped(replaced.state));
        set_state(list, number, next, now);
    }
}

/// An index cannot be completed, or is not what it should be.
pub(crate) fn fail(list: &mut IndexList, number: u16, why: &str, now: Ticks) {
    let Some(index) = find(list, number) else { return };
    let next = match index.state {
        IndexState::Building | IndexState::WriteOnly => IndexState::Failed,
        IndexState::Readable => IndexState::Failing,
        _ => return,
    };
    index.error = why.to_owned();
    set_state(list, number, next, now);
}

/// Whether an index waits for a fence.
pub(crate) fn has_steps(list: &IndexList) -> bool {
    list.indexes.iter().any(|index| next_state(index.state).is_some() || is_swept(index.state))
}

/// Whether there is anything to do for the indexes.
pub(crate) fn has_work(list: &IndexList) -> bool {
    has_steps(list) || next_build(list).is_some()
}

/// The index that is built next.
pub(crate) fn next_build(list: &IndexList) -> Option<&IndexRecord> {
    list.indexes.iter().find(|index| index.state == IndexState::Building)
}

/// Those whose rows can be swept once the fence has passed.
pub(crate) fn swept(list: &IndexList) -> impl Iterator<Item = u16> {
    list.indexes.iter().filter(|index| is_swept(index.state)).map(|index| index.number)
}

/// The steps that may be taken when nobody works with a list older than `seen` any more, and the rows of what
/// [`swept`] names are gone.
pub(crate) fn advance(list: &mut IndexList, seen: &IndexList, now: Ticks) {
    list.indexes.retain(|index| !(is_swept(index.state) && is_as_seen(index, seen)));
    take_next_states(list, seen, now, |_| true);
}

/// Of these steps the one that ends a dropped index for those who write: it needs no rows to be gone.
pub(crate) fn retire(list: &mut IndexList, seen: &IndexList, now: Ticks) {
    take_next_states(list, seen, now, |state| state == IndexState::Retiring);
}

/// Whether a unique index that was dropped still refuses values.
pub(crate) fn has_retiring_unique(list: &IndexList) -> bool {
    list.indexes.iter().any(is_retiring_unique)
}

/// Whether a definition before this one, of the same index, still refuses values.
pub(crate) fn waits_for_retiring_unique(list: &IndexList, index: &IndexRecord) -> bool {
    list.indexes.iter().any(|other| other.name == index.name && is_retiring_unique(other))
}

fn is_retiring_unique(index: &IndexRecord) -> bool {
    index.state == IndexState::Retiring && index.definition.unique
}

fn take_next_states(
    list: &mut IndexList,
    seen: &IndexList,
    now: Ticks,
    is_taken: impl Fn(IndexState) -> bool,
) {
    for index in list.indexes.iter_mut().filter(|index| is_taken(index.state)) {
        if let Some(next) = next_state(index.state)
            && is_as_seen(index, seen)
        {
            index.state = next;
            index.changed = now.max(Ticks(index.changed.0 + 1));
        }
    }
}

fn is_as_seen(index: &IndexRecord, seen: &IndexList) -> bool {
    seen.indexes.iter().any(|seen| seen.number == index.number && seen.state == index.state)
}

fn next_state(state: IndexState) -> Option<IndexState> {
    match state {
        IndexState::DeleteOnly => Some(IndexState::WriteOnly),
        IndexState::WriteOnly => Some(IndexState::Building),
        IndexState::Retiring => Some(IndexState::Dropped),
        IndexState::Failing => Some(IndexState::Failed),
        IndexState::Building | IndexState::Readable | IndexState::Failed | IndexState::Dropped => {
            None
        }
    }
}

/// Queries that read it must not meet writers that do not keep it.
fn state_when_dropped(state: IndexState) -> IndexState {
    match state {
        IndexState::Readable | IndexState::Failing => IndexState::Retiring,
        _ => IndexState::Dropped,
    }
}

fn is_swept(state: IndexState) -> bool {
    state == IndexState::Dropped
}

/// The index that is still used in the place of one that is not ready.
pub(crate) fn readable_before<'a>(
    list: &'a IndexList,
    index: &IndexRecord,
) -> Option<&'a IndexRecord> {
    let replaced = index.replaces?;
    let is_readable =
        |index: &&IndexRecord| index.number == replaced && index.state == IndexState::Readable;
    list.indexes.iter().find(is_readable)
}

/// Counts names, and what writers keep under them: a definition that is used until another one is built, or that is going.
fn check_limits(
    list: &IndexList,
    name: &str,
    definition: &IndexDefinition,
) -> Result<(), LimitError> {
    let goes_now =
        latest(list, name).filter(|it| state_when_dropped(it.state) == IndexState::Dropped);
    let goes_now = goes_now.map(|index| index.number);
    let is_counted = |index: &&IndexRecord| is_kept(index.state) && Some(index.number) != goes_now;
    let kept: Vec<_> = list.indexes.iter().filter(is_counted).collect();
    let others = names(list).into_iter().filter(|other| *other != name);
    if others.count() >= INDEXES_PER_TABLE_MAX || kept.len() >= KEPT_FACTOR * INDEXES_PER_TABLE_MAX
    {
        return Err(LimitError::Indexes);
    }
    let copying = || kept.iter().filter(|index| index.definition.include.trim() == "*");
    let others = copying().filter(|index| index.name != name && index.state.is_named());
    let others: BTreeSet<&str> = others.map(|index| &*index.name).collect();
    if definition.include == Include::All
        && (others.len() >= COPYING_INDEXES_PER_TABLE_MAX
            || copying().count() >= KEPT_FACTOR * COPYING_INDEXES_PER_TABLE_MAX)
    {
        return Err(LimitError::CopyingIndexes);
    }
    Ok(())
}

/// Whether writers add rows to it, or soon will.
fn is_kept(state: IndexState) -> bool {
    state.is_written() || state == IndexState::DeleteOnly
}

fn push(
    list: &mut IndexList,
    name: &str,
    definition: DefinitionTexts,
    replaces: Option<u16>,
    now: Ticks,
) -> Result<(), LimitError> {
    list.last_number = list.last_number.checked_add(1).ok_or(LimitError::Numbers)?;
    list.indexes.push(IndexRecord {
        number: list.last_number,
        name: name.to_owned(),
        definition,
        state: IndexState::DeleteOnly,
        browse_as: None,
        replaces,
        changed: now,
        error: String::new(),
    });
    Ok(())
}

fn find(list: &mut IndexList, number: u16) -> Option<&mut IndexRecord> {
    list.indexes.iter_mut().find(|index| index.number == number)
}

fn set_state(list: &mut IndexList, number: u16, state: IndexState, now: Ticks) {
    if let Some(index) = find(list, number) {
        index.state = state;
        index.changed = now.max(Ticks(index.changed.0 + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Ticks = Ticks(1000);

    fn definition(keys: &str, include: &str) -> IndexDefinition {
        IndexDefinition::parse(keys, include, "", false).unwrap()
    }

    fn declared(list: &mut IndexList, name: &str, keys: &str) {
        declare(list, name, &definition(keys, ""), None, NOW).unwrap();
    }

    fn states(list: &IndexList) -> Vec<(u16, IndexState)> {
        list.indexes.iter().map(|index| (index.number, index.state)).collect()
    }

    /// Every step that needs nobody but the builder.
    fn settle(list: &mut IndexList) {
        while has_work(list) {
            let seen = list.clone();
            advance(list, &seen, NOW);
            if let Some(number) = next_build(list).map(|index| index.number) {
                finish_build(list, number, NOW);
            }
        }
    }

    #[test]
    fn an_index_passes_through_every_state() {
        use IndexState::*;
        let mut list = IndexList::default();
        declared(&mut list, "ByTown", "Town");
        let mut step = |expected: &[(u16, IndexState)], change: &dyn Fn(&mut IndexList)| {
            change(&mut list);
            assert_eq!(states(&list), expected);
        };
        let next = |list: &mut IndexList| {
            let seen = list.clone();
            advance(list, &seen, NOW);
        };
        step(&[(1, DeleteOnly)], &|_| {});
        step(&[(1, WriteOnly)], &next);
        step(&[(1, Building)], &next);
        step(&[(1, Building)], &next);
        step(&[(1, Readable)], &|list| finish_build(list, 1, NOW));
        step(&[(1, Readable)], &next);
        step(&[(1, Retiring)], &|list| drop_index(list, "ByTown", NOW));
        step(&[(1, Dropped)], &next);
        step(&[], &next);
        declared(&mut list, "ByTown", "Town");
        assert_eq!(states(&list), [(2, DeleteOnly)]);
    }

    /// A step is for those that were seen before the fence.
    #[test]
    fn what_came_after_the_fence_waits_for_the_next() {
        let mut list = IndexList::default();
        declared(&mut list, "A", "A");
        let seen = list.clone();
        declared(&mut list, "B", "B");
        advance(&mut list, &seen, NOW);
        assert_eq!(states(&list), [(1, IndexState::WriteOnly), (2, IndexState::DeleteOnly)]);
        // What was dropped meanwhile does not come back.
        let seen = list.clone();
        drop_index(&mut list, "A", NOW);
        advance(&mut list, &seen, NOW);
        assert_eq!(states(&list), [(1, IndexState::Dropped), (2, IndexState::WriteOnly)]);
    }

    /// What awaits the sweeping stays: its rows are still there.
    #[test]
    fn a_dropped_index_is_retired_alone() {
        use IndexState::*;
        let mut list = IndexList::default();
        let unique = IndexDefinition::parse("A", "", "", true).unwrap();
        declare(&mut list, "A", &unique, None, NOW).unwrap();
        settle(&mut list);
        assert!(!has_retiring_unique(&list));
        declared(&mut list, "B", "B");
        drop_index(&mut list, "B", NOW);
        declared(&mut list, "C", "C");
        let before_drop = list.clone();
        drop_index(&mut list, "A", NOW);
        assert!(has_retiring_unique(&list));
        retire(&mut list, &before_drop, NOW);
        assert_eq!(states(&list), [(1, Retiring), (2, Dropped), (3, DeleteOnly)]);
        let seen = list.clone();
        retire(&mut list, &seen, NOW);
        assert_eq!(states(&list), [(1, Dropped), (2, Dropped), (3, DeleteOnly)]);
        assert!(!has_retiring_unique(&list));
    }

    #[test]
    fn a_new_definition_takes_the_place_of_the_old_when_it_is_readable() {
        let mut list = IndexList::default();
        declared(&mut list, "A", "Town");
        settle(&mut list);
        declared(&mut list, "A", "Town");
        assert_eq!(states(&list), [(1, IndexState::Readable)]);
        declared(&mut list, "A", "Town,Name");
        assert_eq!(states(&list), [(1, IndexState::Readable), (2, IndexState::DeleteOnly)]);
        assert_eq!(latest(&list, "A").unwrap().definition.keys, "Town,Name");
        // And another, before the first is ready: the old one stays until the last is.
        declared(&mut list, "A", "Name");
        assert_eq!(
            states(&list),
            [(1, IndexState::Readable), (2, IndexState::Dropped), (3, IndexState::DeleteOnly)]
        );
        // Back to what it was: nothing needs to be built.
        let mut back = list.clone();
        declared(&mut back, "A", "Town");
        settle(&mut back);
        assert_eq!(states(&back), [(1, IndexState::Readable)]);
        settle(&mut list);
        assert_eq!(states(&list), [(3, IndexState::Readable)]);
        assert_eq!(list.last_number, 3);
    }

    #[test]
    fn what_has_failed_begins_again_when_it_is_declared_again() {
        let mut list = IndexList::default();
        declared(&mut list, "A", "Town");
        for _ in 0..2 {
            let seen = list.clone();
            advance(&mut list, &seen, NOW);
        }
        fail(&mut list, 1, "why", NOW);
        assert_eq!(states(&list), [(1, IndexState::Failed)]);
        assert_eq!(latest(&list, "A").unwrap().error, "why");
        assert!(!has_work(&list));
        declared(&mut list, "A", "Town");
        assert_eq!(states(&list), [(1, IndexState::Dropped), (2, IndexState::DeleteOnly)]);
    }

    /// Those who still read it must find it kept, whatever is done next.
    #[test]
    fn what_was_readable_fails_in_two_steps() {
        use IndexState::*;
        let failing = || {
            let mut list = IndexList::default();
            declared(&mut list, "A", "Town");
            settle(&mut list);
            fail(&mut list, 1, "why", NOW);
            assert_eq!(states(&list), [(1, Failing)]);
            assert!(has_steps(&list));
            list
        };
        let mut list = failing();
        settle(&mut list);
        assert_eq!(states(&list), [(1, Failed)]);
        assert_eq!(latest(&list, "A").unwrap().error, "why");
        // Dropped or declared again before the second.
        let mut list = failing();
        drop_index(&mut list, "A", NOW);
        assert_eq!(states(&list), [(1, Retiring)]);
        let mut list = failing();
        declared(&mut list, "A", "Town");
        assert_eq!(states(&list), [(1, Retiring), (2, DeleteOnly)]);
        settle(&mut list);
        assert_eq!(states(&list), [(2, Readable)]);
        assert!(latest(&list, "A").unwrap().error.is_empty());
        // And while another takes its place.
        for has_failed in [false, true] {
            let mut list = IndexList::default();
            declared(&mut list, "A", "Town");
            settle(&mut list);
            declared(&mut list, "A", "Name");
            fail(&mut list, 1, "why", NOW);
            if has_failed {
                let seen = list.clone();
                advance(&mut list, &seen, NOW);
            }
            settle(&mut list);
            assert_eq!(states(&list), [(2, Readable)], "{has_failed}");
        }
    }

    #[test]
    fn limits_count_names() {
        let mut list = IndexList::default();
        let all = |number: usize| {
            declare(
                &mut IndexList::default(),
                &format!("A{number}"),
                &definition("A", "*"),
                None,
                NOW,
            )
        };
        all(0).unwrap();
        for number in 0..INDEXES_PER_TABLE_MAX {
            let include = if number < COPYING_INDEXES_PER_TABLE_MAX { "*" } else { "" };
            declare(&mut list, &format!("A{number}"), &definition("A", include), None, NOW)
                .unwrap();
        }
        let one_more = declare(&mut list, "B", &definition("A", ""), None, NOW);
        assert_eq!(one_more, Err(LimitError::Indexes));
        // Another definition for one that is there.
        let copying = declare(&mut list, "A9", &definition("A", "*"), None, NOW);
        assert_eq!(copying, Err(LimitError::CopyingIndexes));
        declare(&mut list, "A0", &definition("B", "*"), None, NOW).unwrap();
        list.last_number = u16::MAX;
        drop_index(&mut list, "A5", NOW);
        assert_eq!(
            declare(&mut list, "B", &definition("A", ""), None, NOW),
            Err(LimitError::Numbers)
        );
    }

    /// What is used until a new definition is built is written all the while, even if that never comes.
    #[test]
    fn limits_count_what_is_written() {
        let mut list = IndexList::default();
        let copying = |list: &mut IndexList, name: &str, keys: &str| {
            declare(list, name, &definition(keys, "*"), None, NOW)
        };
        let names = ["A0", "A1", "A2"];
        names.iter().for_each(|name| copying(&mut list, name, "A").unwrap());
        settle(&mut list);
        for name in names {
            declared(&mut list, name, "B");
            let number = latest(&list, name).unwrap().number;
            for _ in 0..2 {
                let seen = list.clone();
                advance(&mut list, &seen, NOW);
            }
            fail(&mut list, number, "why", NOW);
        }
        assert_eq!(copying(&mut list, "B", "A"), Err(LimitError::CopyingIndexes));
        // Each may have one definition more, while it is built.
        names.iter().for_each(|name| copying(&mut list, name, "C").unwrap());
        // Instead of the one that is not built yet.
        copying(&mut list, "A0", "D").unwrap();
        let kept = list.indexes.iter().filter(|index| is_kept(index.state)).count();
        assert_eq!(kept, 2 * COPYING_INDEXES_PER_TABLE_MAX);
        settle(&mut list);
        copying(&mut list, "A0", "E").unwrap();
    }

    /// A query of long ago may hold up what is dropped.
    #[test]
    fn what_is_going_is_counted() {
        let mut list = IndexList::default();
        for _ in 0..2 * COPYING_INDEXES_PER_TABLE_MAX {
            declare(&mut list, "A", &definition("A", "*"), None, NOW).unwrap();
            let number = list.last_number;
            for _ in 0..2 {
                let seen = list.clone();
                take_next_states(&mut list, &seen, NOW, |state| state != IndexState::Retiring);
            }
            finish_build(&mut list, number, NOW);
            drop_index(&mut list, "A", NOW);
        }
        let one_more = declare(&mut list, "A", &definition("A", "*"), None, NOW);
        assert_eq!(one_more, Err(LimitError::CopyingIndexes));
        settle(&mut list);
        declare(&mut list, "A", &definition("A", "*"), None, NOW).unwrap();
    }
}
