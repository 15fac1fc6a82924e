//! What is read again without a restart: the accounts file, certificate and key. When their contents change, and on
//! SIGHUP, which also begins a new access log.
//!
//! Contents are compared, not times: secrets that are mounted into a container change by a link, and times of them say
//! nothing. What cannot be used is told and changes nothing; the old settings stay until there are better ones.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tavola_server::RunningServer;

use crate::config::read_accounts;
use crate::options::ServeOptions;

/// How often files are looked at: two or three small ones. A change is used when it is there at two looks, so that a file which
/// is being written is not read by half.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The files that are watched.
pub(crate) struct Reloader {
    accounts: Option<Watched>,
    tls: Option<Watched>,
}

/// Files that are used together.
struct Watched {
    files: Vec<PathBuf>,
    hasher: RandomState,
    /// Of their contents when they were last used, or found to be of no use.
    used: u64,
    /// Of other contents, at the last look.
    changed: Option<u64>,
}

impl Reloader {
    /// To be made before the files are read, so that no change is missed.
    pub(crate) fn new(options: &ServeOptions) -> Self {
        let tls = options.cert.as_ref().zip(options.key.as_ref());
        Self {
            accounts: options.accounts_file.as_ref().map(|file| Watched::new(vec![file.clone()])),
            tls: tls.map(|(cert, key)| Watched::new(vec![cert.clone(), key.clone()])),
        }
    }

    /// Uses what has changed since the last look.
    pub(crate) async fn look(&mut self, server: &RunningServer) {
        if let Some(accounts) = &mut self.accounts
            && accounts.has_settled()
        {
            reload_accounts(server, &accounts.files[0]).await;
        }
        if let Some(tls) = &mut self.tls
            && tls.has_settled()
        {
            reload_certificate(server);
        }
    }

    /// Reads everything again, whether it has changed or not, and says so.
    pub(crate) async fn reload(&mut self, server: &RunningServer) {
        server.reopen_logs();
        if let Some(accounts) = &mut self.accounts {
            accounts.set_used();
            reload_accounts(server, &accounts.files[0]).await;
        }
        if let Some(tls) = &mut self.tls {
            tls.set_used();
            reload_certificate(server);
        }
    }
}

impl Watched {
    fn new(files: Vec<PathBuf>) -> Self {
        let mut watched = Self { files, hasher: RandomState::new(), used: 0, changed: None };
        watched.set_used();
        watched
    }

    /// Notes that the contents of this moment are used.
    fn set_used(&mut self) {
        (self.used, self.changed) = (self.hash(), None);
    }

    /// Whether the contents are others than those in use, and the same as at the last look. They are in use then.
    fn has_settled(&mut self) -> bool {
        let found = self.hash();
        let changed = self.changed.replace(found);
        if found == self.used || changed != Some(found) {
            return false;
        }
        self.used = found;
        true
    }

    /// Only a hash of the contents is kept: they are secrets.
    fn hash(&self) -> u64 {
        let contents: Vec<_> = self.files.iter().map(|file| std::fs::read(file).ok()).collect();
        self.hasher.hash_one(contents)
    }
}

async fn reload_accounts(server: &RunningServer, file: &Path) {
    let path = file.display();
    let reloaded = match read_accounts(file) {
        Ok(accounts) => server.reload_accounts(accounts).await.context("cannot open them"),
        Err(error) => Err(error),
    };
    match reloaded {
        Ok(reloaded) => tracing::info!(
            %path,
            added = ?reloaded.added,
            removed = ?reloaded.removed,
            changed = ?reloaded.changed,
            "accounts reloaded"
        ),
        Err(error) => {
            tracing::error!(%path, error = %format!("{error:#}"), "accounts not reloaded; the old ones stay");
        }
    }
}

fn reload_certificate(server: &RunningServer) {
    match server.reload_certificate() {
        Ok(()) => tracing::info!("certificate reloaded"),
        // The two files are replaced one after the other: the next look may find that they go together.
        Err(error) => {
            let error = anyhow::Error::from(error);
            tracing::warn!(error = %format!("{error:#}"), "certificate not reloaded; the old one stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_count_and_times_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        std::fs::write(&one, "a").unwrap();
        let mut watched = Watched::new(vec![one.clone(), other.clone()]);
        let mut looks =
            |count: usize| (0..count).map(|_| watched.has_settled()).collect::<Vec<_>>();
        std::fs::write(&one, "a").unwrap();
        assert_eq!(looks(2), [false, false]);
        std::fs::write(&other, "").unwrap();
        assert_eq!(looks(3), [false, true, false], "a file that was missing");
        std::fs::write(&one, "b").unwrap();
        assert_eq!(looks(1), [false]);
        std::fs::write(&one, "b and more").unwrap();
        assert_eq!(looks(3), [false, true, false], "not while it is being written");
        std::fs::write(&one, "c").unwrap();
        assert_eq!(looks(1), [false]);
        std::fs::write(&one, "b and more").unwrap();
        assert_eq!(looks(2), [false, false], "as it was");
    }
}
