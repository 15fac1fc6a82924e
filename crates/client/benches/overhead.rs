//! What the client costs for each request, in processor time, beside hyper alone.
//!
//! `TAVOLA_CONNECTION=... cargo bench -p tavola-client --bench overhead`, against a server on the same machine. Both sides
//! send the same point query over one connection, one after another; the bare side has its headers made beforehand and does
//! not read the JSON. `TAVOLA_OVERHEAD_REQUESTS` sets another number of requests than 20,000 for each side.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tavola_client::{
    AccountSasSpec, DateTime, Entity, Permissions, ResourceTypes, Result, TableServiceClient,
    UpdateMode,
};

/// Each side is measured so many times, by turns: a machine that is busy for a while is busy for both.
const ROUNDS: u32 = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let Ok(connection) = std::env::var("TAVOLA_CONNECTION") else {
        println!("TAVOLA_CONNECTION is not set: nothing to measure");
        return Ok(());
    };
    let requests: u32 = match std::env::var("TAVOLA_OVERHEAD_REQUESTS") {
        Ok(text) => text.parse().expect("TAVOLA_OVERHEAD_REQUESTS is a number"),
        Err(_) => 20_000,
    };
    assert!(requests >= ROUNDS, "fewer requests than rounds measure nothing");
    let service = TableServiceClient::from_connection_string(&connection, None)?;
    let table = service.table_client("overhead")?;
    table.create_if_not_exists(None).await?;
    let entity =
        Entity::new("p", "r").with("Name", "Jens").with("Age", 34).with("Big", 1_i64 << 40);
    table.upsert_entity(&entity, UpdateMode::Replace, None).await?;

    let expiry = DateTime::parse_iso("2040-01-01").expect("a date");
    let sas = service.sas(&AccountSasSpec::new(Permissions::READ, ResourceTypes::ALL, expiry))?;
    let uri: http::Uri =
        format!("{}/overhead(PartitionKey='p',RowKey='r')?{sas}", service.endpoint())
            .parse()
            .expect("a URI");
    let bare = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let by_hyper = || async {
        let request = http::Request::get(uri.clone())
            .header("accept", "application/json;odata=minimalmetadata")
            .header("x-ms-version", "2020-12-06")
            .body(Empty::new())
            .expect("a request");
        let response = bare.request(request).await.expect("an answer");
        assert!(response.status().is_success());
        response.into_body().collect().await.expect("a body").to_bytes()
    };
    let by_client =
        || async { table.get_entity::<Entity>("p", "r", None).await.expect("an entity") };
    let (mut hyper, mut client) = (Used::default(), Used::default());
    for _ in 0..ROUNDS {
        hyper.measure(requests / ROUNDS, by_hyper).await;
        client.measure(requests / ROUNDS, by_client).await;
    }
    println!("hyper alone: {hyper}");
    println!("tavola-client: {client}");
    println!("the client's own: {:.1} us", client.processor_us() - hyper.processor_us());
    table.delete(None).await.map(|_| ())
}

/// What the requests of one side used.
#[derive(Default)]
struct Used {
    requests: u32,
    processor_ticks: u32,
    wall: Duration,
}

impl Used {
    async fn measure<T, F: Future<Output = T>>(&mut self, requests: u32, request: impl Fn() -> F) {
        for _ in 0..requests.min(100) {
            request().await;
        }
        let (start, processor) = (Instant::now(), processor_ticks());
        for _ in 0..requests {
            std::hint::black_box(request().await);
        }
        self.requests += requests;
        self.processor_ticks += processor_ticks() - processor;
        self.wall += start.elapsed();
    }

    fn processor_us(&self) -> f64 {
        f64::from(self.processor_ticks) * 10_000.0 / f64::from(self.requests)
    }
}

impl std::fmt::Display for Used {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let wall_us = self.wall.as_secs_f64() * 1e6 / f64::from(self.requests);
        let processor_us = self.processor_us();
        write!(
            f,
            "{processor_us:.1} us of processor time and {wall_us:.1} us of wall time a request"
        )
    }
}

/// The processor time of this process, in hundredths of a second; zero where the system does not tell.
fn processor_ticks() -> u32 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15, counted after the name in parentheses, which may have blanks.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum()
}
