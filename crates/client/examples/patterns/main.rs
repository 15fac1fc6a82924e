//! The patterns of the guide at work: all of them, or those that are named.
//!
//! `cargo run -p tavola-client --example patterns [name ...]`, with the connection string in `TAVOLA_CONNECTION`; without
//! one, the server of the development account on this machine.
#![expect(clippy::print_stderr, reason = "a program tells its error there")]

mod shown;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let connection = std::env::var("TAVOLA_CONNECTION").ok();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match shown::run(connection.as_deref(), "Pattern", &wanted, &mut std::io::stdout().lock()).await
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
