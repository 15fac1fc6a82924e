//! What the client costs for each request, in processor time, beside hyper alone.
//!
//! `TAVOLA_CONNECTION=... cargo bench -p tavola-client --bench overhead`, against a server on the same machine. Both sides
//! send the same point query over one connection, one after another; the bare side has its headers made beforehand and does
//! not read the JSON.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tavola_client::{
    AccountSasSpec, DateTime, Entity, Permissions, ResourceTypes, Result, TableServiceClient,
    UpdateMode,
};

const REQUESTS: u32 = 20_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let Ok(connection) = std::env::var("TAVOLA_CONNECTION") else {
        println!("TAVOLA_CONNECTION is not set: nothing to measure");
        return Ok(());
    };
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
    measure("hyper alone", || async {
        let request = http::Request::get(uri.clone())
            .header("accept", "application/json;odata=minimalmetadata")
            .header("x-ms-version", "2020-12-06")
            .body(Empty::new())
            .expect("a request");
        let response = bare.request(request).await.expect("an answer");
        assert!(response.status().is_success());
        response.into_body().collect().await.expect("a body").to_bytes()
    })
    .await;
    measure("tavola-client", || async {
        table.get_entity::<Entity>("p", "r", None).await.expect("an entity")
    })
    .await;
    table.delete(None).await
}

async fn measure<T, F: Future<Output = T>>(what: &str, request: impl Fn() -> F) {
    for _ in 0..200 {
        request().await;
    }
    let (start, processor) = (Instant::now(), processor_ticks());
    for _ in 0..REQUESTS {
        std::hint::black_box(request().await);
    }
    let used = f64::from(processor_ticks() - processor) * 10_000.0 / f64::from(REQUESTS);
    let wall = start.elapsed().as_secs_f64() * 1e6 / f64::from(REQUESTS);
    println!(
        "{what}: {used:.1} us of processor time and {wall:.1} us of wall time for each request"
    );
}

/// The processor time of this process, in hundredths of a second; zero where the system does not tell.
fn processor_ticks() -> u32 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15, counted after the name in parentheses, which may have blanks.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum()
}
