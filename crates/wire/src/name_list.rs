//! Distinct names in the order in which they came, each of which can be found again.
//!
//! A body has a dozen names and may have thousands. A few are found by comparing with each, which is quicker than hashing;
//! many by hashing, so that nobody can make us compare all with all.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Names that are compared one by one; above, they are hashed.
const FEW: usize = 24;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct NameList<N> {
    names: Vec<N>,
    /// Where each name stands in `names`, once they are many.
    positions: Option<HashMap<ByBytes<N>, usize>>,
}

impl<N> Default for NameList<N> {
    fn default() -> Self {
        Self { names: Vec::new(), positions: None }
    }
}

impl<N: AsRef<[u8]> + Clone> NameList<N> {
    /// Adds a name at the end, unless it is there already: where it stands, and whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, name: N) -> (usize, bool) {
        if let Some(position) = self.position(name.as_ref()) {
            return (position, false);
        }
        let position = self.names.len();
        self.names.push(name);
        if position >= FEW {
            self.index(position);
        }
        (position, true)
    }

    /// Notes where the last name stands, and where all of them do when they become many.
    #[cold]
    fn index(&mut self, position: usize) {
        match &mut self.positions {
            Some(positions) => {
                positions.insert(ByBytes(self.names[position].clone()), position);
            }
            None => {
                let all = self.names.iter().cloned().map(ByBytes).enumerate();
                self.positions = Some(all.map(|(position, name)| (name, position)).collect());
            }
        }
    }

    #[inline]
    pub(crate) fn position(&self, name: &[u8]) -> Option<usize> {
        match &self.positions {
            None => self.names.iter().position(|known| known.as_ref() == name),
            Some(positions) => positions.get(name).copied(),
        }
    }

    pub(crate) fn names(&self) -> &[N] {
        &self.names
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// A name that hashes and compares as its bytes, so that it is found by any text of the same bytes.
#[derive(Clone, Debug)]
struct ByBytes<N>(N);

impl<N: AsRef<[u8]>> Borrow<[u8]> for ByBytes<N> {
    fn borrow(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl<N: AsRef<[u8]>> Hash for ByBytes<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ref().hash(state);
    }
}

impl<N: AsRef<[u8]>> PartialEq for ByBytes<N> {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref() == other.0.as_ref()
    }
}

impl<N: AsRef<[u8]>> Eq for ByBytes<N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_names_are_found_alike() {
        for count in [0, 1, FEW - 1, FEW, FEW + 1, 4 * FEW] {
            let names: Vec<String> = (0..count).map(|n| format!("name{n}")).collect();
            let mut list = NameList::default();
            for _ in 0..2 {
                let is_first = list.is_empty();
                for (index, name) in names.iter().enumerate() {
                    assert_eq!(list.insert(name.as_str()), (index, is_first), "{name} of {count}");
                }
            }
            assert_eq!((list.len(), list.names().len()), (count, count));
            for (index, name) in names.iter().enumerate() {
                assert_eq!(list.position(name.as_bytes()), Some(index));
            }
            assert_eq!(list.position(b"other"), None);
        }
    }
}
