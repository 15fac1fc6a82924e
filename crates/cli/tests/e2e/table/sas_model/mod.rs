//! An independent model of shared access signatures: what the reference, section 10.5, says that a token grants.
//!
//! Nothing here knows how the service decides; of the service's code only HMAC is used. The model is shared by two
//! tests: `crates/wire/tests/sas_random.rs` asks the decision functions, `crates/cli/tests/e2e/sas_random.rs` the
//! real binary over HTTP. `grant.rs` decides, `generate.rs` thinks of tokens and operations to decide about.

pub(crate) mod generate;
pub(crate) mod grant;
pub(crate) mod time;
