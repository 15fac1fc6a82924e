//! For whom a bearer token may be made out.
//!
//! An audience is a URL that libraries write with and without its final slash. Where tokens for Azure Storage as a whole
//! are taken, so are those that Azure makes out more narrowly: for this service of this account, and those that name the
//! storage resource by its id. A URL that a request chose by its `Host` is never an audience: whoever got a token for
//! another server could use it here.

use tavola_wire::Service;

const STORAGE: &str = "https://storage.azure.com";
/// The same in tokens of version 2.
const STORAGE_ID: &str = "e406a681-f3d4-42a8-90b6-c2b029497af1";

#[derive(Debug)]
pub(super) struct Audiences {
    /// In both spellings.
    configured: Vec<String>,
    has_storage: bool,
}

impl Audiences {
    pub(super) fn new(configured: &[String]) -> Self {
        let has_storage = configured.iter().any(|audience| without_slash(audience) == STORAGE);
        let mut all = Vec::new();
        for audience in configured {
            push_both(&mut all, audience);
        }
        if has_storage {
            all.push(STORAGE_ID.to_owned());
        }
        Self { configured: all, has_storage }
    }

    /// Any of which a token for this service of an account must name.
    pub(super) fn of(&self, service: Service, account: &str) -> Vec<String> {
        let mut all = self.configured.clone();
        if self.has_storage {
            let service = service.name();
            push_both(&mut all, &format!("https://{account}.{service}.core.windows.net"));
        }
        all
    }
}

fn push_both(all: &mut Vec<String>, audience: &str) {
    let plain = without_slash(audience);
    all.extend([plain.to_owned(), format!("{plain}/")]);
}

fn without_slash(audience: &str) -> &str {
    audience.strip_suffix('/').unwrap_or(audience)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(configured: &str, audience: &str) -> bool {
        let audiences = Audiences::new(&[configured.to_owned()]);
        audiences.of(Service::Queue, "acct").iter().any(|taken| taken == audience)
    }

    #[test]
    fn a_final_slash_means_nothing() {
        for configured in ["https://a.example", "https://a.example/"] {
            assert!(takes(configured, "https://a.example"), "{configured}");
            assert!(takes(configured, "https://a.example/"), "{configured}");
            for other in ["https://a.example//", "https://a.example/b", "https://a.exampl", ""] {
                assert!(!takes(configured, other), "{configured} {other}");
            }
        }
    }

    #[test]
    fn tokens_for_storage_may_be_made_out_more_narrowly() {
        for audience in [
            "https://storage.azure.com",
            "https://storage.azure.com/",
            "https://acct.queue.core.windows.net",
            "https://acct.queue.core.windows.net/",
            "e406a681-f3d4-42a8-90b6-c2b029497af1",
        ] {
            for configured in ["https://storage.azure.com", "https://storage.azure.com/"] {
                assert!(takes(configured, audience), "{configured} {audience}");
            }
        }
        for other in [
            "https://other.queue.core.windows.net",
            "https://acct.table.core.windows.net",
            "https://acct.queue.core.windows.net.example",
        ] {
            assert!(!takes("https://storage.azure.com", other), "{other}");
        }
        assert!(!takes("https://a.example", "https://acct.queue.core.windows.net"));
        assert!(!takes("https://a.example", "e406a681-f3d4-42a8-90b6-c2b029497af1"));
    }
}
