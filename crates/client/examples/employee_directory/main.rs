//! An employee directory, as the Table Design Guide builds one: each chapter asks a question and prints what it cost.
//!
//! `cargo run -p tavola-client --example employee_directory [connection string]`; without one, the server of the
//! development account on this machine. The costs are told by Tavola; other servers answer without them.

mod directory;

use tavola_client::{Result, TableServiceClient};

#[tokio::main]
async fn main() -> Result<()> {
    let connection = std::env::args().nth(1).unwrap_or_else(|| "UseDevelopmentStorage=true".into());
    let service = TableServiceClient::from_connection_string(&connection, None)?;
    let mut out = std::io::stdout().lock();
    directory::run(&service, "EmployeeDirectory", &mut out).await
}
