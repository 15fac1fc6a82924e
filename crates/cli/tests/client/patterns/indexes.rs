//! The intra-partition index, with each of the four choices: full copy, partial copy, reference, composite key.

use std::sync::Arc;

use futures::TryStreamExt;
use tavola_client::encryption::{EncryptionPolicy, KeyRing};
use tavola_client::patterns::index::{Index, Part};
use tavola_client::patterns::intra_partition_index::{IntraPartitionIndex, Repaired};
use tavola_client::{
    DateTime, EdmType, Entity, ErrorCode, ErrorExt, Filter, IfMatch, QueryOptions, Result, Stored,
    TableEntity, UpdateMode, Uuid,
};

use super::{Patient, moment, row_keys};
use crate::support::TestTable;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", columns)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    first_name: String,
    last_name: String,
    town: String,
    age: i32,
    email: Option<String>,
    hired: DateTime,
}

fn employee(id: &str, last_name: &str, hired: &str) -> Employee {
    Employee {
        department: "Sales".into(),
        id: id.into(),
        first_name: format!("First{id}"),
        last_name: last_name.into(),
        town: "Redmond".into(),
        age: 34,
        email: Some(format!("{}{id}@contoso.com", last_name.to_lowercase())),
        hired: moment(hired),
    }
}

async fn ids(found: impl futures::Stream<Item = Result<Stored<Employee>>>) -> Vec<String> {
    let found: Vec<_> = found.try_collect().await.unwrap();
    found.into_iter().map(|stored| stored.value.id).collect()
}

/// The guide's own point and range queries find what the pattern stored.
#[tokio::test]
async fn the_guides_printed_keys_are_stored() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::unique("email_", Employee::EMAIL))
        .unwrap();
    for (id, name) in [("000099", "zoe"), ("000150", "adam"), ("000223", "jonesj")] {
        let email = Some(format!("{name}@contoso.com"));
        employees.save(&Employee { email, ..employee(id, name, "2012-08-22") }).await.unwrap();
    }
    for (printed, rows) in [
        ("(PartitionKey eq 'Sales') and (RowKey eq 'empid_000223')", ["empid_000223"]),
        (
            "(PartitionKey eq 'Sales') and (RowKey eq 'email_jonesj@contoso.com')",
            ["email_jonesj@contoso.com"],
        ),
        (
            "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')",
            ["empid_000150"],
        ),
        (
            "(PartitionKey eq 'Sales') and (RowKey ge 'email_a') and (RowKey lt 'email_b')",
            ["email_adam@contoso.com"],
        ),
    ] {
        let filter = Filter::parse(printed).unwrap();
        let found: Vec<_> = table.query_entities::<Entity>(filter).try_collect().await.unwrap();
        let keys: Vec<_> = found.iter().map(|stored| stored.row_key()).collect();
        assert_eq!(keys, rows, "{printed}");
    }
    // The same by the pattern, typed.
    let by_email = employees.by("email_").unwrap();
    let found = by_email.find::<Employee>("Sales", "jonesj@contoso.com").await.unwrap().unwrap();
    assert_eq!(found.id, "000223");
    assert_eq!(ids(by_email.starting_with("Sales", "a").unwrap()).await, ["000150"]);
    assert_eq!(ids(by_email.all("Sales")).await, ["000150", "000223", "000099"]);
    table.delete().await;
}

#[tokio::test]
async fn an_entity_is_found_by_its_other_values() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::unique("email_", "Email"))
        .unwrap()
        .with(Index::unique("badge_", Part::new("Badge").digits(6)).reference())
        .unwrap();
    let jens = Entity::new("Sales", "000223")
        .with("Name", "Jens")
        .with("Email", "jens/jones@contoso.com")
        .with("Badge", 77);
    employees.save(&jens).await.unwrap();
    assert_eq!(
        row_keys(&table).await,
        ["badge_000077", "email_jens.~1jones@contoso.com", "empid_000223"]
    );
    let (by_email, by_badge) = (employees.by("email_").unwrap(), employees.by("badge_").unwrap());
    let found = by_email.find::<Entity>("Sales", "jens/jones@contoso.com").await.unwrap();
    assert_eq!(found.unwrap().value, jens);
    assert_eq!(by_badge.find::<Entity>("Sales", 77).await.unwrap().unwrap().value, jens);
    let badge = table.get_entity::<Entity>("Sales", "badge_000077", None).await.unwrap();
    assert_eq!(badge.value, Entity::new("Sales", "badge_000077").with("PrimaryRowKey", "000223"));

    // A change of the value moves the copy; the old value finds nothing.
    let renamed = jens.clone().with("Email", "jj@contoso.com");
    employees.save(&renamed).await.unwrap();
    assert_eq!(by_email.find::<Entity>("Sales", "jens/jones@contoso.com").await.unwrap(), None);
    let found = by_email.find::<Entity>("Sales", "jj@contoso.com").await.unwrap().unwrap();
    assert_eq!(found.value, renamed);
    assert_eq!(row_keys(&table).await.len(), 3);

    // The value of another is refused, and nothing of the attempt is there.
    let thief = Entity::new("Sales", "000224").with("Email", "jj@contoso.com");
    let error = employees.save(&thief).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::EntityAlreadyExists));
    assert_eq!(employees.get::<Entity>("Sales", "000224").await.unwrap(), None);

    assert!(employees.delete("Sales", "000223").await.unwrap());
    assert!(!employees.delete("Sales", "000223").await.unwrap());
    assert_eq!(row_keys(&table).await, Vec::<String>::new());
    table.delete().await;
}

/// Figure 8 of the guide: a copy without the age answers whoever does not ask for it.
#[tokio::test]
async fn a_partial_copy_answers_what_it_holds() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .id_property("EmployeeId")
        .with(Index::unique("email_", "Email").partial(["FirstName", "LastName", "Email"]))
        .unwrap();
    let jones = employee("000223", "Jones", "2012-08-22");
    employees.save(&jones).await.unwrap();
    let email = jones.email.as_deref().unwrap();
    let copy = format!("email_{email}");
    let stored = table.get_entity::<Entity>("Sales", &copy, None).await.unwrap();
    assert_eq!(
        stored.value,
        Entity::new("Sales", copy)
            .with("FirstName", "First000223")
            .with("LastName", "Jones")
            .with("Email", email)
            .with("EmployeeId", "000223")
    );
    // The entity is changed behind the back of its copy, which tells where an answer comes from.
    let change = Entity::new("Sales", "empid_000223").with("FirstName", "Changed").with("Age", 35);
    table.upsert_entity(&change, UpdateMode::Merge, None).await.unwrap();
    let by_email = employees.by("email_").unwrap();
    let names = by_email.clone().select(["FirstName", "LastName"]);
    let from_copy = names.find::<Entity>("Sales", email).await.unwrap().unwrap();
    let expected = Entity::new("Sales", "000223").with("FirstName", "First000223");
    assert_eq!(from_copy.value, expected.with("LastName", "Jones"));
    let ages = by_email.clone().select(["FirstName", "Age"]);
    let from_entity = ages.find::<Entity>("Sales", email).await.unwrap().unwrap();
    // A merge has sorted them by name.
    assert_eq!(
        from_entity.value,
        Entity::new("Sales", "000223").with("Age", 35).with("FirstName", "Changed")
    );
    let whole = by_email.find::<Employee>("Sales", email).await.unwrap().unwrap();
    assert_eq!((whole.first_name.as_str(), whole.age), ("Changed", 35));
    let listed: Vec<_> = names.all::<Entity>("Sales").try_collect().await.unwrap();
    assert_eq!(listed[0].get::<String>("FirstName").unwrap(), "First000223");
    table.delete().await;
}

/// "Find all customers that live in Redmond and that have a last name of Smith", and other lists and orders.
#[tokio::test]
async fn composite_keys_lists_and_ranges() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::many("town_", ["Town", "LastName"]).partial(["FirstName"]))
        .unwrap()
        .with(Index::many("hired_", Part::from(Employee::HIRED).day()))
        .unwrap()
        .with(Index::many("newest_", Part::from(Employee::HIRED).descending()).reference())
        .unwrap();
    for (id, name, town, hired) in [
        ("1", "Smith", "Redmond", "2011-12-31"),
        ("2", "Smith Jones", "Redmond", "2012-01-01"),
        ("3", "Smith", "Redmond", "2012-08-22T10:00:00Z"),
        ("4", "Smithers", "Redmond", "2012-08-22"),
        ("5", "Smith", "Red", "2012-12-31"),
        ("6", "Adams", "Seattle", "2013-01-01"),
    ] {
        let employee = Employee { town: town.into(), ..employee(id, name, hired) };
        employees.save(&employee).await.unwrap();
    }
    let by_town = employees.by("town_").unwrap();
    assert_eq!(ids(by_town.list("Sales", ("Redmond", "Smith")).unwrap()).await, ["1", "3"]);
    assert_eq!(ids(by_town.list("Sales", "Redmond").unwrap()).await, ["1", "3", "2", "4"]);
    assert_eq!(ids(by_town.list("Sales", "Portland").unwrap()).await, Vec::<String>::new());
    let first = by_town.find::<Employee>("Sales", ("Redmond", "Smith")).await.unwrap().unwrap();
    assert_eq!(first.id, "1");
    let range = by_town.range("Sales", ("Redmond", "Smith Jones")..("Seattle", "B")).unwrap();
    assert_eq!(ids(range).await, ["2", "4", "6"], "in the order of the values, not of the texts");
    let range = by_town.range("Sales", "Red"..="Redmond").unwrap();
    assert_eq!(ids(range).await, ["5", "1", "3", "2", "4"]);

    // Employees hired between two days.
    let by_day = employees.by("hired_").unwrap();
    let range = by_day.range("Sales", moment("2012-01-01")..moment("2013-01-01")).unwrap();
    assert_eq!(ids(range).await, ["2", "3", "4", "5"]);
    assert_eq!(ids(by_day.list("Sales", moment("2012-08-22")).unwrap()).await, ["3", "4"]);
    let newest = employees.by("newest_").unwrap();
    assert_eq!(ids(newest.all("Sales")).await, ["6", "5", "3", "4", "2", "1"]);
    let range = newest.range("Sales", moment("2012-01-01")..moment("2013-01-01")).unwrap();
    assert_eq!(ids(range).await, ["5", "3", "4", "2"], "the newest first, the bounds as given");
    let since = newest.range("Sales", moment("2012-12-31")..).unwrap();
    assert_eq!(ids(since).await, ["6", "5"]);
    table.delete().await;
}

/// Ranges over texts need the blank: with another separator `Jones Smith` comes before `Jones`.
#[tokio::test]
async fn ranges_that_would_be_wrong_are_refused() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::many("name_", "LastName").separator('_'))
        .unwrap()
        .with(Index::many("age_", Part::new("Age").digits(3)).separator('_'))
        .unwrap();
    employees.save(&employee("000223", "Jones", "2012-08-22")).await.unwrap();
    assert_eq!(
        row_keys(&table).await,
        ["age_034_000223", "empid_000223", "name_Jones_000223"],
        "as other programs separate them"
    );
    let by_name = employees.by("name_").unwrap();
    assert!(by_name.range::<Employee, _>("Sales", "A".."Z").is_err());
    assert_eq!(ids(by_name.list("Sales", "Jones").unwrap()).await, ["000223"]);
    let by_age = employees.by("age_").unwrap();
    assert_eq!(ids(by_age.range("Sales", 18..65).unwrap()).await, ["000223"]);
    assert!(by_age.range::<Employee, _>("Sales", "18".."65").is_err(), "texts are no ages");
    table.delete().await;
}

/// Every type is a key: nothing is saved without its copy.
#[tokio::test]
async fn every_type_is_found() {
    let table = TestTable::create().await;
    let names = ["Flag", "Small", "Large", "Real", "Moment", "Guid", "Bytes"];
    let mut all = IntraPartitionIndex::new(table.table.clone(), "id_");
    for name in names {
        all = all.with(Index::unique(format!("{name}_"), name)).unwrap();
    }
    let entity = Entity::new("p", "7")
        .with("Flag", false)
        .with("Small", -5)
        .with("Large", 1_i64 << 40)
        .with("Real", -0.25)
        .with("Moment", moment("2012-08-22"))
        .with("Guid", Uuid::from_u128(9))
        .with("Bytes", vec![1_u8, 2, 255]);
    all.save(&entity).await.unwrap();
    assert_eq!(row_keys(&table).await.len(), 8);
    for name in names {
        let value = entity.value(name).unwrap().clone();
        let found = all.by(&format!("{name}_")).unwrap().find::<Entity>("p", value).await.unwrap();
        assert_eq!(found.map(|stored| stored.value).as_ref(), Some(&entity), "{name}");
    }
    // A value that is no key for its index is an error, and nothing is written.
    let typed = IntraPartitionIndex::new(table.table.clone(), "id_")
        .with(Index::unique("age_", Employee::AGE))
        .unwrap();
    assert!(typed.save(&Entity::new("p", "8").with("Age", "old")).await.is_err());
    let long = Entity::new("p", "8").with("Email", "x".repeat(600));
    let by_email = IntraPartitionIndex::new(table.table.clone(), "id_")
        .with(Index::unique("email_", "Email"))
        .unwrap();
    assert!(by_email.save(&long).await.is_err());
    assert_eq!(row_keys(&table).await.len(), 8);
    table.delete().await;
}

#[tokio::test]
async fn a_change_is_of_the_version_that_was_read() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::many("name_", Employee::LAST_NAME))
        .unwrap();
    employees.save(&employee("1", "Jones", "2012-08-22")).await.unwrap();
    let mut first = employees.get::<Employee>("Sales", "1").await.unwrap().unwrap();
    let mut second = first.clone();
    first.last_name = "Smith".into();
    employees.update(&first).await.unwrap();
    second.last_name = "Brown".into();
    assert!(employees.update(&second).await.unwrap_err().is_precondition_failed());
    assert_eq!(row_keys(&table).await, ["empid_1", "name_Smith 1"]);
    // A copy that something else deleted is no reason to fail.
    table.delete_entity("Sales", "name_Smith 1", IfMatch::Any, None).await.unwrap();
    let mut third = employees.get::<Employee>("Sales", "1").await.unwrap().unwrap();
    third.last_name = "Green".into();
    employees.update(&third).await.unwrap();
    assert_eq!(row_keys(&table).await, ["empid_1", "name_Green 1"]);

    // Many writers, whose names all differ: one wins, whole.
    let writers = (0..6).map(|number| {
        let (employees, name) = (employees.clone(), format!("Name{number}"));
        async move { employees.save(&employee("1", &name, "2012-08-22")).await.unwrap() }
    });
    futures::future::join_all(writers).await;
    let winner = employees.get::<Employee>("Sales", "1").await.unwrap().unwrap();
    assert_eq!(
        row_keys(&table).await,
        ["empid_1".to_owned(), format!("name_{} 1", winner.last_name)]
    );
    table.delete().await;
}

/// An index over entities that are there already, and after something else wrote them.
#[tokio::test]
async fn copies_are_repaired() {
    let table = TestTable::create().await;
    for (id, name) in [("1", "Jones"), ("2", "Smith"), ("3", "Jones")] {
        let entity = Entity::new("Sales", format!("empid_{id}")).with("LastName", name);
        table.insert_entity(&entity, None).await.unwrap();
    }
    table.insert_entity(&Entity::new("Sales", "Department"), None).await.unwrap();
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::many("name_", "LastName"))
        .unwrap();
    let repair = || employees.repair::<Entity>("Sales");
    assert_eq!(repair().await.unwrap(), Repaired { written: 3, removed: 0 });
    assert_eq!(repair().await.unwrap(), Repaired::default());
    assert_eq!(
        row_keys(&table).await,
        [
            "Department",
            "empid_1",
            "empid_2",
            "empid_3",
            "name_Jones 1",
            "name_Jones 3",
            "name_Smith 2"
        ]
    );
    // Others rename one and delete another, without the copies.
    let renamed = Entity::new("Sales", "empid_1").with("LastName", "Brown");
    table.upsert_entity(&renamed, UpdateMode::Replace, None).await.unwrap();
    table.delete_entity("Sales", "empid_2", IfMatch::Any, None).await.unwrap();
    // A save finds no old copy where one should be, and goes on.
    employees.save(&Entity::new("Sales", "1").with("LastName", "Green")).await.unwrap();
    assert_eq!(repair().await.unwrap(), Repaired { written: 0, removed: 2 });
    assert_eq!(
        row_keys(&table).await,
        ["Department", "empid_1", "empid_3", "name_Green 1", "name_Jones 3"]
    );
    // A unique index over values that are shared says so.
    employees.save(&Entity::new("Sales", "4").with("LastName", "Jones")).await.unwrap();
    let unique = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::unique("one_", "LastName"))
        .unwrap();
    let error = unique.repair::<Entity>("Sales").await.unwrap_err();
    assert!(error.to_string().contains("one_Jones"), "{error}");
    table.delete().await;
}

/// A definition that cannot work is an error before anything is written.
#[tokio::test]
async fn indexes_that_cannot_be_are_refused_when_they_are_defined() {
    let table = TestTable::create().await;
    let new = || IntraPartitionIndex::new(table.table.clone(), "empid_");
    for index in [
        Index::unique("", "Email"),
        Index::unique("empid_", "Email"),
        Index::unique("empid_email_", "Email"),
        Index::unique("emp", "Email"),
        Index::unique("email_", "Timestamp"),
        Index::unique("email_", Part::from(Employee::EMAIL).digits(6)),
    ] {
        assert!(new().with(index.clone()).is_err(), "{index:?}");
    }
    let taken = new().with(Index::unique("email_", "Email")).unwrap();
    assert!(taken.clone().with(Index::many("email_home_", "Home")).is_err());
    assert!(taken.by("badge_").is_err());
    table.delete().await;
}

/// The cost that the pattern promises: one row examined for a full copy.
#[tokio::test]
async fn a_full_copy_is_one_look_up() {
    let table = TestTable::create().await;
    let employees = IntraPartitionIndex::new(table.table.clone(), "empid_")
        .with(Index::unique("email_", "Email"))
        .unwrap();
    for id in 0..20 {
        let id = format!("{id:06}");
        employees.save(&employee(&id, "Jones", "2012-08-22")).await.unwrap();
    }
    let point = Filter::key("Sales", "email_jones000007@contoso.com");
    let options = QueryOptions { filter: Some(point), explain: true, ..Default::default() };
    let mut pages = table.query_entities::<Entity>(options).by_page();
    let page = pages.try_next().await.unwrap().unwrap();
    assert_eq!(page.entities.len(), 1);
    if table.account.is_tavola() {
        assert_eq!(page.report.unwrap().rows_examined, 1);
    }
    table.delete().await;
}

/// The films of the Index Table pattern: by genre, and by each actor with the names of the others.
#[tokio::test]
async fn films_by_each_of_their_actors() {
    let table = TestTable::create().await;
    let by_actor = Index::many("actor_", Part::new("Actors").each(',')).partial(["Actors"]);
    let films = IntraPartitionIndex::new(table.table.clone(), "film_").with(by_actor).unwrap();
    for (title, actors) in [("Heat", "De Niro, Pacino"), ("Ronin", "De Niro, Reno")] {
        let film = Entity::new("Action", title).with("Actors", actors).with("Plot", "long");
        films.save(&film).await.unwrap();
    }
    let names = films.by("actor_").unwrap().select(["Actors"]);
    let found: Vec<_> = names.list("Action", "De Niro").unwrap().try_collect().await.unwrap();
    let found: Vec<Entity> = found.into_iter().map(|stored: Stored<Entity>| stored.value).collect();
    let film = |title: &str, actors: &str| Entity::new("Action", title).with("Actors", actors);
    assert_eq!(found, [film("Heat", "De Niro, Pacino"), film("Ronin", "De Niro, Reno")]);
    // The rest is in the film itself.
    let whole =
        films.by("actor_").unwrap().find::<Entity>("Action", "Reno").await.unwrap().unwrap();
    assert_eq!(whole.get::<String>("Plot").unwrap(), "long");
    // Another cast: the copies of those who left go.
    films.save(&film("Heat", "Pacino, Kilmer")).await.unwrap();
    assert_eq!(
        row_keys(&table).await,
        [
            "actor_De!20Niro Ronin",
            "actor_Kilmer Heat",
            "actor_Pacino Heat",
            "actor_Reno Ronin",
            "film_Heat",
            "film_Ronin"
        ]
    );
    table.delete().await;
}

/// Properties that the type wants encrypted are ciphertext in every copy, and are no keys.
#[tokio::test]
async fn copies_are_encrypted_as_their_entity_is() {
    let table = TestTable::create().await;
    let policy = EncryptionPolicy::new(Arc::new(KeyRing::new("2026", [7; 32])));
    let sealed = table.table.clone().with_encryption(policy);
    let patients = IntraPartitionIndex::new(sealed.clone(), "id_")
        .with(Index::many("name_", Patient::NAME))
        .unwrap();
    let jones = Patient {
        ward: "A".into(),
        id: "1".into(),
        name: "Jones".into(),
        diagnosis: "secret".into(),
    };
    patients.save(&jones).await.unwrap();
    for row in ["id_1", "name_Jones 1"] {
        let raw = table.get_entity::<Entity>("A", row, None).await.unwrap();
        assert_eq!(raw.value("Diagnosis").unwrap().edm_type(), EdmType::Binary, "{row}");
    }
    let by_name = patients.by("name_").unwrap();
    let found = by_name.find::<Patient>("A", "Jones").await.unwrap().unwrap();
    assert_eq!(found.value, jones);
    // A copy that was lost is written encrypted again.
    table.delete_entity("A", "name_Jones 1", IfMatch::Any, None).await.unwrap();
    let repaired = patients.repair::<Patient>("A").await.unwrap();
    assert_eq!(repaired, Repaired { written: 1, removed: 0 });
    let raw = table.get_entity::<Entity>("A", "name_Jones 1", None).await.unwrap();
    assert_eq!(raw.value("Diagnosis").unwrap().edm_type(), EdmType::Binary);
    let by_diagnosis = IntraPartitionIndex::new(sealed, "id_")
        .with(Index::many("diagnosis_", Patient::DIAGNOSIS))
        .unwrap();
    let error = by_diagnosis.save(&jones).await.unwrap_err();
    assert!(error.to_string().contains("a key would show what is encrypted"), "{error}");
    table.delete().await;
}
