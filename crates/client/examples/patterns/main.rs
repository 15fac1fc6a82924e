//! The patterns of the guide at work: all of them, or those that are named.
//!
//! `cargo run -p tavola-client --example patterns [name ...]`, with the connection string in `TAVOLA_CONNECTION`; without
//! one, the server of the development account on this machine.

mod shown;

use tavola_client::{Result, TableServiceClient};

#[tokio::main]
async fn main() -> Result<()> {
    let connection = std::env::var("TAVOLA_CONNECTION");
    let connection = connection.unwrap_or_else(|_| "UseDevelopmentStorage=true".into());
    let service = TableServiceClient::from_connection_string(&connection, None)?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::stdout().lock();
    shown::run(&service, "Pattern", &wanted, &mut out).await
}
