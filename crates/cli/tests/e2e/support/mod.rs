//! What every test needs: a server, a client that shows every byte, signatures, batches, seeds.

pub(crate) mod batch;
pub(crate) mod client;
pub(crate) mod http;
pub(crate) mod random;
pub(crate) mod server;
pub(crate) mod stream;

pub(crate) use batch::{Batch, BatchReply};
pub(crate) use client::{Client, Credentials, encode};
pub(crate) use http::Response;
pub(crate) use random::{Random, SEED};
pub(crate) use server::{Launch, Server, shared};

use tavola_wire::Ticks;

pub(crate) const ACCOUNT: &str = "devstoreaccount1";
pub(crate) const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A client of the server that tests share.
pub(crate) fn shared_client() -> Client {
    Client::new(&shared())
}

/// The moment, for dates and the lifetime of tokens.
#[expect(clippy::disallowed_methods, reason = "a client has a clock of its own")]
pub(crate) fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// The moment as the service counts it.
pub(crate) fn now_ticks() -> Ticks {
    let since = now().duration_since(std::time::UNIX_EPOCH).expect("the clock is past 1970");
    Ticks::from_unix_nanos(i128::try_from(since.as_nanos()).expect("before the year 10000"))
}

/// A moment so many minutes from now; negative minutes are past.
pub(crate) fn minutes_from_now(minutes: i64) -> Ticks {
    Ticks(now_ticks().0 + minutes * Ticks::PER_MINUTE)
}
