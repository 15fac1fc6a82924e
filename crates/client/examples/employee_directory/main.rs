//! An employee directory, as the Table Design Guide builds one: each chapter asks a question and prints what it cost.
//!
//! `cargo run -p tavola-client --example employee_directory [connection string]`; without one that in `TAVOLA_CONNECTION`,
//! or else the server of the development account on this machine. The costs are told by Tavola; other servers answer without
//! them.
#![expect(clippy::print_stderr, reason = "a program tells its error there")]

mod directory;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let connection = std::env::args().nth(1).or_else(|| std::env::var("TAVOLA_CONNECTION").ok());
    let mut out = std::io::stdout().lock();
    match directory::run(connection.as_deref(), "EmployeeDirectory", &mut out).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
