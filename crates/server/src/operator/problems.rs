//! What a check found wrong with rows.

/// Problems that are told one by one; more are only counted.
const PROBLEMS_MAX: usize = 100;

#[derive(Default)]
pub(super) struct Problems {
    pub(super) told: Vec<String>,
    pub(super) count: u64,
}

impl Problems {
    pub(super) fn one(problem: String) -> Self {
        Self { told: vec![problem], count: 1 }
    }

    pub(super) fn add(&mut self, key: &[u8], problem: &str) {
        self.tell(format!("row {}: {problem}", key.escape_ascii()));
    }

    pub(super) fn tell(&mut self, problem: String) {
        self.count += 1;
        if self.told.len() < PROBLEMS_MAX {
            self.told.push(problem);
        }
    }

    pub(super) fn append(&mut self, others: Self) {
        let untold = others.count - others.told.len() as u64;
        others.told.into_iter().for_each(|problem| self.tell(problem));
        self.count += untold;
    }
}
