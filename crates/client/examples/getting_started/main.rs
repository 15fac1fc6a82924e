// The first steps, as README.md shows them. They can be taken any number of times.

use std::process::ExitCode;

use tavola_client::{Result, TableEntity, TableServiceClient, TryStreamExt, UpdateMode, filter};

#[derive(Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    age: i32,
}

#[expect(clippy::print_stdout, reason = "a program prints")]
async fn run(connection_string: &str) -> Result<usize> {
    let service = TableServiceClient::builder().connection_string(connection_string).build()?;
    let employees = service.table_client("GettingStarted")?;
    employees.create_if_not_exists(None).await?;

    for (id, name, age) in [("00010", "Jens", 34), ("00011", "Ada", 28), ("00012", "Kim", 51)] {
        let (department, id, name) = ("Sales".into(), id.into(), name.into());
        let employee = Employee { department, id, name, age };
        employees.upsert_entity(&employee, UpdateMode::Replace, None).await?;
    }

    let mut found = 0;
    let mut seniors =
        employees.query_entities::<Employee>(filter!(PartitionKey == "Sales" && Age >= 30));
    while let Some(employee) = seniors.try_next().await? {
        println!("{} is {}", employee.name, employee.age);
        found += 1;
    }
    Ok(found)
}

#[tokio::main]
#[expect(clippy::print_stderr, reason = "a program tells its error there")]
async fn main() -> ExitCode {
    // A Tavola or a storage emulator on this machine; or a connection string of Azure in the environment.
    let connection_string = std::env::var("TAVOLA_CONNECTION");
    match run(connection_string.as_deref().unwrap_or("UseDevelopmentStorage=true")).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
