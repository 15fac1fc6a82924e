//! Every committed input, through every promise of its target, on any toolchain.

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use tavola_fuzz::TARGETS;

/// All committed inputs together. They are read with every test run, and by people.
const BYTES_MAX: u64 = 1024 * 1024;
/// Changed copies of each input, so that a change of the code meets more than what was met before.
const COPIES: u64 = 12;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The files of one folder in order; none if it is not there.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
}

fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let found = ["corpus", "regressions"].map(|kind| files(&folder(kind).join(target)));
    let found = found.into_iter().flatten();
    found.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn every_committed_input_keeps_every_promise() {
    let mut broken = Vec::new();
    for (target, run) in TARGETS {
        for (path, bytes) in inputs(target) {
            if catch_unwind(|| run(&bytes)).is_err() {
                broken.push(path.display().to_string());
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn changed_copies_keep_every_promise() {
    let mut broken = Vec::new();
    for (target, run) in TARGETS {
        let inputs = inputs(target);
        for (index, (path, bytes)) in inputs.iter().enumerate() {
            let other = &inputs[(index + 1) % inputs.len()].1;
            for copy in 0..COPIES {
                let changed = changed(bytes, other, copy + COPIES * index as u64);
                if catch_unwind(|| run(&changed)).is_err() {
                    broken.push(format!(
                        "{} as {:?}",
                        path.display(),
                        changed.escape_ascii().to_string()
                    ));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// A copy with a few bytes changed, cut out or doubled, or with the end of another input; the same for the same
/// seed.
fn changed(bytes: &[u8], other: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut copy = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let (from, to) = (random.below(copy.len() + 1), random.below(copy.len() + 1));
        let range = from.min(to)..from.max(to);
        match random.below(5) {
            0 if !copy.is_empty() => {
                let at = from % copy.len();
                copy[at] ^= 1 << random.below(8);
            }
            1 => drop(copy.drain(range)),
            2 if copy.len() < 64 * 1024 => {
                let doubled = copy[range].to_vec();
                copy.splice(to..to, doubled);
            }
            3 => copy.insert(from, *random.pick(b"\0\r\n '\"%&=()-<>{}[],:;!@+\\/\xff")),
            _ => {
                copy.truncate(from);
                copy.extend_from_slice(&other[random.below(other.len() + 1)..]);
            }
        }
    }
    copy
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

#[test]
fn every_target_has_a_corpus_and_all_of_them_stay_small() {
    let mut bytes = 0;
    for (target, _) in TARGETS {
        let inputs = inputs(target);
        assert!(inputs.len() >= 8, "{target} has {} inputs", inputs.len());
        bytes += inputs.iter().map(|(_, input)| input.len() as u64).sum::<u64>();
    }
    assert!(bytes <= BYTES_MAX, "{bytes}");
}

#[test]
fn every_target_can_be_fuzzed() {
    let names: BTreeSet<_> = TARGETS
        .iter()
        .map(|(name, _)| folder("fuzz_targets").join(name).with_extension("rs"))
        .collect();
    assert_eq!(files(&folder("fuzz_targets")), names);
}
