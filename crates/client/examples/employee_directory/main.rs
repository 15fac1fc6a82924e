//! An employee directory, as the Table Design Guide builds one: each chapter asks a question and prints what it cost.
//!
//! `cargo run -p tavola-client --example employee_directory [connection string]`; without one that in `TAVOLA_CONNECTION`,
//! or else the server of the development account on this machine. The costs are told by Tavola; other servers answer without
//! them.

mod directory;

#[tokio::main]
async fn main() -> tavola_client::Result<()> {
    let connection = std::env::args().nth(1).or_else(|| std::env::var("TAVOLA_CONNECTION").ok());
    let mut out = std::io::stdout().lock();
    directory::run(connection.as_deref(), "EmployeeDirectory", &mut out).await
}
