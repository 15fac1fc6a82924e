//! The directory itself, apart from where it prints to.

use std::io::Write;

use futures::{StreamExt, TryStreamExt};
use tavola_client::patterns::denormalization::Denormalization;
use tavola_client::patterns::index_entities::IndexEntities;
use tavola_client::{
    Entity, Filter, Operation, QueryOptions, Result, TableClient, TableEntity, TableServiceClient,
    UpdateMode, filter,
};

const DEPARTMENTS: [&str; 4] = ["Finance", "Marketing", "Research", "Sales"];
const LAST_NAMES: [&str; 5] = ["Adams", "Jones", "Kowalski", "Nguyen", "Smith"];
const EMPLOYEES: usize = 400;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    last_name: String,
    age: i32,
    email: String,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", entity_type = "Department")]
struct Department {
    #[table(partition_key)]
    name: String,
    #[table(row_key)]
    row: String,
    employee_count: i32,
    manager_email: Option<String>,
}

/// One query of a partition gives both.
#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Item {
    #[table(entity_type = "Employee")]
    Employee(Employee),
    #[table(entity_type = "Department")]
    Department(Department),
    #[table(other)]
    Other(Entity),
}

/// Fills a table, walks through the guide's chapters, and deletes the table.
///
/// # Errors
/// A connection string that does not add up, and those of the service.
pub(super) async fn run(connection: Option<&str>, name: &str, out: &mut impl Write) -> Result<()> {
    let connection = connection.unwrap_or("UseDevelopmentStorage=true");
    let table = TableServiceClient::from_connection_string(connection, None)?.table_client(name)?;
    table.create_if_not_exists(None).await?;
    fill(&table, out).await?;
    design_for_querying(&table, out).await?;
    secondary_index(&table, out).await?;
    several_types(&table, out).await?;
    change_together(&table, out).await?;
    table.delete(None).await.map(|_| ())
}

async fn fill(table: &TableClient, out: &mut impl Write) -> Result<()> {
    let employees = (0..EMPLOYEES).map(|index| {
        let department = DEPARTMENTS[index % DEPARTMENTS.len()];
        let id = format!("{index:06}");
        Operation::upsert(
            &Employee {
                department: department.into(),
                email: format!("{id}@contoso.com"),
                id,
                last_name: LAST_NAMES[index % LAST_NAMES.len()].into(),
                age: 20 + i32::try_from(index % 45).expect("a small number"),
            },
            UpdateMode::Replace,
        )
    });
    let departments = DEPARTMENTS.map(|name| {
        let count = i32::try_from(EMPLOYEES / DEPARTMENTS.len()).expect("a small number");
        let department = Department {
            name: name.into(),
            row: "Department".into(),
            employee_count: count,
            manager_email: None,
        };
        Operation::upsert(&department, UpdateMode::Replace)
    });
    let operations = employees.chain(departments).collect::<Result<Vec<_>>>()?;
    let report = table.bulk(operations, None).await;
    writeln!(
        out,
        "{} entities in {} departments, written with {} requests",
        report.progress.done,
        DEPARTMENTS.len(),
        report.progress.transactions
    )?;
    Ok(())
}

/// The same person, asked for in four ways.
async fn design_for_querying(table: &TableClient, out: &mut impl Write) -> Result<()> {
    writeln!(out, "\nDesign for querying")?;
    ask(table, out, "an employee by both keys", Filter::key("Sales", "000103")).await?;
    let range = filter!(PartitionKey == "Sales" && RowKey >= "000100" && RowKey < "000200");
    ask(table, out, "a range of ids in a department", range).await?;
    let scan = filter!(PartitionKey == "Sales" && LastName == "Jones");
    ask(table, out, "a last name in a department", scan).await?;
    ask(table, out, "a last name anywhere", filter!(LastName == "Jones")).await?;
    let either = Filter::key("Sales", "000103") | Filter::key("Finance", "000104");
    ask(table, out, "two employees by their keys, joined by or", either).await
}

/// A list of ids under each last name turns the scan into look-ups.
async fn secondary_index(table: &TableClient, out: &mut impl Write) -> Result<()> {
    writeln!(out, "\nIndex entities")?;
    let by_name = IndexEntities::new(table.clone(), "LastName", "EmployeeIDs")?;
    let wanted =
        filter!(PartitionKey == "Sales" && LastName == "Jones" && EntityType == "Employee");
    let mut jones = table.query_entities::<Employee>(wanted);
    let mut count = 0;
    while let Some(employee) = jones.try_next().await? {
        by_name.add("Sales", "Jones", &employee.id).await?;
        count += 1;
    }
    let found = by_name.entities::<Employee>("Sales", "Jones").await?;
    writeln!(out, "  {count} listed; {} found by one look-up and a point query each", found.len())?;
    Ok(())
}

async fn several_types(table: &TableClient, out: &mut impl Write) -> Result<()> {
    writeln!(out, "\nSeveral types in a partition")?;
    let (mut employees, mut departments, mut others) = (0, 0, 0);
    let mut items = table.query_entities::<Item>(Filter::partition("Sales"));
    while let Some(item) = items.try_next().await? {
        match item.into_value() {
            Item::Employee(_) => employees += 1,
            Item::Department(_) => departments += 1,
            Item::Other(_) => others += 1,
        }
    }
    writeln!(
        out,
        "  {employees} employees, {departments} department, {others} index entities by one query"
    )?;
    Ok(())
}

async fn change_together(table: &TableClient, out: &mut impl Write) -> Result<()> {
    writeln!(out, "\nDenormalization")?;
    let copies = Denormalization::new().copy("Email", "ManagerEmail");
    let mut manager = table.get_entity::<Entity>("Sales", "000103", None).await?;
    manager.set("Email", "boss@contoso.com");
    copies.update(table, &manager, ["Department"]).await?;
    let department = table.get_entity::<Department>("Sales", "Department", None).await?;
    let email = department.manager_email.as_deref().unwrap_or("nobody");
    writeln!(
        out,
        "  the department's manager is {email}: changed with the employee, in one transaction"
    )?;
    Ok(())
}

/// Runs a query and prints what the client foresaw and what the server did.
async fn ask(table: &TableClient, out: &mut impl Write, what: &str, filter: Filter) -> Result<()> {
    let (cost, warning) = (filter.cost(), filter.warning());
    let options = QueryOptions { filter: Some(filter), explain: true, ..Default::default() };
    let mut pages = table.query_entities::<Entity>(options).by_page();
    let (mut found, mut requests, mut examined) = (0, 0, None);
    while let Some(page) = pages.next().await {
        let page = page?;
        requests += 1;
        found += page.entities.len();
        if let Some(report) = page.report {
            examined = Some(examined.unwrap_or(0) + report.rows_examined);
        }
    }
    write!(out, "  {what}: {cost}, {found} found, {requests} request(s)")?;
    if let Some(examined) = examined {
        write!(out, ", {examined} rows examined")?;
    }
    writeln!(out)?;
    if let Some(warning) = warning {
        writeln!(out, "    {warning}")?;
    }
    Ok(())
}
