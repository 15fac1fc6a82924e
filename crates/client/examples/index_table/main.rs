//! The Index Table pattern with indexes that the service keeps: customers by town, by last name, by both, and in hashed
//! shards. Each query is printed with what it cost, before and after.
//!
//! `cargo run -p tavola-client --example index_table [connection string]`; without one that in `TAVOLA_CONNECTION`, or else
//! the server of the development account on this machine. It can be run any number of times. A service without indexes, as
//! Azure, finds the same, and what it costs there is what the filter tells.
#![expect(clippy::print_stderr, reason = "a program tells its error there")]

mod customers;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let connection = std::env::args().nth(1).or_else(|| std::env::var("TAVOLA_CONNECTION").ok());
    let mut out = std::io::stdout().lock();
    match customers::run(connection.as_deref(), "IndexTableCustomers", &mut out).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
