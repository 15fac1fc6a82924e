use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::conformance::{commit, random, range};
use crate::embedded::{EmbeddedEngine, EmbeddedOptions};
use crate::{Reader, Write};

/// Collects keys, up to a number of them, and counts its forks.
struct Collect {
    keys: Vec<Vec<u8>>,
    keys_max: usize,
    is_over: bool,
    forks: Arc<AtomicUsize>,
}

impl Collect {
    fn new(keys_max: usize) -> Self {
        Self { keys: Vec::new(), keys_max, is_over: false, forks: Arc::default() }
    }

    fn take(&mut self, key: &[u8]) -> ControlFlow<()> {
        self.is_over = self.keys.len() == self.keys_max;
        if self.is_over {
            return ControlFlow::Break(());
        }
        self.keys.push(key.to_vec());
        ControlFlow::Continue(())
    }
}

impl Visitor for Collect {
    fn visit(&mut self, key: &[u8], _value: &[u8]) -> ControlFlow<()> {
        self.take(key)
    }

    fn fork(&self) -> Option<Self> {
        self.forks.fetch_add(1, Ordering::Relaxed);
        let fork = Self::new(self.keys_max - self.keys.len());
        Some(Self { forks: self.forks.clone(), ..fork })
    }

    fn join(&mut self, fork: Self) -> ControlFlow<()> {
        fork.keys.iter().try_for_each(|key| self.take(key))?;
        if fork.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// An engine with rows of several shapes of keys: the rows that are left of them.
async fn engine(helpers: usize) -> (EmbeddedEngine, Vec<Vec<u8>>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = EmbeddedOptions { scan_helpers_max: helpers, ..EmbeddedOptions::default() };
    let engine = EmbeddedEngine::open(folder.path(), options).expect("it opens");
    let mut state = 7;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    // Spread evenly, far apart, and very many in one place.
    keys.extend((0..9_000).map(|number| format!("a{number:05}").into_bytes()));
    keys.extend((0..6_000).map(|_| [&b"b"[..], &random(&mut state).to_be_bytes()].concat()));
    keys.extend(
        (0..9_000).map(|number| format!("m-and-the-same-beginning{number:09}").into_bytes()),
    );
    keys.push(b"z".to_vec());
    keys.sort();
    for some in keys.chunks(5_000) {
        let puts = some.iter().map(|key| Write::Put(key.clone().into(), "value".into())).collect();
        commit(&engine, puts).await;
    }
    let (gone, left): (Vec<_>, Vec<_>) =
        keys.into_iter().partition(|key| key.starts_with(b"a03") || key.starts_with(b"b\x09"));
    commit(&engine, gone.into_iter().map(|key| Write::Delete(key.into())).collect()).await;
    (engine, left, folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_are_the_same_and_in_order() {
    for helpers in [0, 1, 3] {
        let (engine, all, _folder) = engine(helpers).await;
        for (start, end) in
            [("", "zz"), ("a", "b"), ("a1", "n"), ("b", "b\u{7f}"), ("m", "m\u{7f}")]
        {
            let rows =
                all.iter().filter(|key| (start.as_bytes()..end.as_bytes()).contains(&&key[..]));
            let expected: Vec<_> = rows.cloned().collect();
            for keys_max in [usize::MAX, expected.len(), expected.len() - 1, 5_000, 100] {
                let visitor = Collect::new(keys_max);
                let forks = visitor.forks.clone();
                let seen = engine.scan(range(start, end), visitor).await.expect("it is read");
                let wanted = &expected[..keys_max.min(expected.len())];
                assert!(seen.keys == wanted, "{helpers} helpers, {start}..{end}, {keys_max}");
                let is_forked = forks.load(Ordering::Relaxed) > 0;
                assert_eq!(is_forked, helpers > 0 && wanted.len() > ROWS_ALONE + 200);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_beside_others_goes_on_alone() {
    let (engine, all, _folder) = engine(3).await;
    let engine = Arc::new(engine);
    let others = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move {
            loop {
                engine.get(b"z").await.expect("it is read");
                tokio::task::yield_now().await;
            }
        }
    });
    for _ in 0..5 {
        let seen =
            engine.scan(range("", "zz"), Collect::new(usize::MAX)).await.expect("it is read");
        assert!(seen.keys == all);
    }
    others.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permits_are_given_back() {
    let (engine, all, _folder) = engine(3).await;
    for _ in 0..20 {
        let scan = engine.scan(range("", "zz"), Collect::new(usize::MAX));
        // Abandoned at any moment.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(3), scan).await;
    }
    let seen = engine.scan(range("", "zz"), Collect::new(usize::MAX)).await.expect("it is read");
    assert_eq!(seen.keys.len(), all.len());
}
