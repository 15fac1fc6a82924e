//! Typed entities: what the derive macro writes is what the service keeps.

use azure_core::time::OffsetDateTime;
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use tavola_client::patterns::compound_key::Inverted;
use tavola_client::{
    DateTime, EdmType, Entity, Result, Serde, TableEntity, UpdateMode, Uuid, filter,
};

use crate::support::{Defect, TestTable};

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", columns)]
struct Everything {
    #[table(partition_key)]
    group: String,
    #[table(row_key)]
    id: String,
    text: String,
    flag: bool,
    number: i32,
    large: i64,
    ratio: f64,
    guid: Uuid,
    since: DateTime,
    until: OffsetDateTime,
    bytes: Vec<u8>,
    #[table(rename = "renamed_one")]
    other: String,
    absent: Option<i64>,
    #[table(default)]
    added_later: i32,
    #[table(skip)]
    cached: usize,
}

fn everything() -> Everything {
    Everything {
        group: "p".into(),
        id: "r".into(),
        text: "it's \u{1F600}".into(),
        flag: true,
        number: -7,
        large: i64::MAX,
        ratio: 3.0,
        guid: Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
        since: DateTime::parse_iso("2020-02-29T01:02:03.4567891Z").unwrap(),
        until: OffsetDateTime::from_unix_timestamp(1_600_000_000).unwrap(),
        bytes: vec![0, 1, 255],
        other: String::new(),
        absent: None,
        added_later: 4,
        cached: 0,
    }
}

#[tokio::test]
async fn every_type_is_kept_as_its_own() {
    let table = TestTable::create().await;
    table.insert_entity(&everything(), None).await.unwrap();
    let read = table.get_entity::<Everything>("p", "r", None).await.unwrap();
    assert_eq!(read.value, everything());
    let bare = table.get_entity::<Entity>("p", "r", None).await.unwrap();
    let types: Vec<_> =
        bare.properties().map(|(name, value)| (name.to_owned(), value.edm_type())).collect();
    for expected in [
        ("Text", EdmType::String),
        ("Flag", EdmType::Boolean),
        ("Number", EdmType::Int32),
        ("Large", EdmType::Int64),
        ("Ratio", EdmType::Double),
        ("Guid", EdmType::Guid),
        ("Since", EdmType::DateTime),
        ("Until", EdmType::DateTime),
        ("Bytes", EdmType::Binary),
        ("renamed_one", EdmType::String),
        ("AddedLater", EdmType::Int32),
    ] {
        let is_known = expected.0 == "Ratio" && table.account.has(Defect::WholeDoubles);
        let is_there = types.contains(&(expected.0.to_owned(), expected.1));
        assert!(is_there || is_known, "{expected:?} {types:?}");
    }
    assert_eq!(types.len(), 11);

    // A column knows its type, so a filter by it cannot compare with another.
    let wanted = Everything::LARGE.eq(i64::MAX) & Everything::GUID.eq(everything().guid);
    let found: Vec<_> = table.query_entities::<Everything>(wanted).try_collect().await.unwrap();
    assert_eq!(found.len(), 1);
    table.delete().await;
}

#[tokio::test]
async fn an_older_entity_gets_its_defaults_and_a_wrong_one_an_error() {
    let table = TestTable::create().await;
    let mut older = everything().to_entity().unwrap();
    older.remove("AddedLater");
    table.insert_entity(&older, None).await.unwrap();
    let read = table.get_entity::<Everything>("p", "r", None).await.unwrap();
    assert_eq!(read.added_later, 0);

    older.set("Number", "seven");
    table.upsert_entity(&older, UpdateMode::Replace, None).await.unwrap();
    let error = table.get_entity::<Everything>("p", "r", None).await.unwrap_err().to_string();
    assert!(error.contains("Edm.String and not Edm.Int32 property=Number"), "{error}");
    table.delete().await;
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Department {
    #[table(partition_key)]
    name: String,
    #[table(row_key)]
    row: String,
    employee_count: i32,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase", entity_type = "Employee", version = 2, upgrade = upgrade_employee)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    full_name: String,
}

/// Version 1 had two names.
fn upgrade_employee(mut entity: Entity, found: i32) -> Result<Entity> {
    assert_eq!(found, 1);
    let (first, last): (String, String) = (entity.take("First")?, entity.take("Last")?);
    Ok(entity.with("FullName", format!("{first} {last}")))
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
enum Item {
    #[table(row_key_prefix = "DEPT_")]
    Department(Department),
    #[table(entity_type = "Employee")]
    Employee(Employee),
    #[table(other)]
    Other(Entity),
}

#[tokio::test]
async fn one_query_gives_several_types_and_versions() {
    let table = TestTable::create().await;
    let department = Department { name: "Sales".into(), row: "DEPT_".into(), employee_count: 3 };
    let employee =
        Employee { department: "Sales".into(), id: "00010".into(), full_name: "Jens Old".into() };
    table.insert_entity(&Item::Department(department.clone()), None).await.unwrap();
    table.insert_entity(&Item::Employee(employee.clone()), None).await.unwrap();
    let first_version = Entity::new("Sales", "00011")
        .with("EntityType", "Employee")
        .with("First", "Ada")
        .with("Last", "New");
    table.insert_entity(&first_version, None).await.unwrap();
    let stranger = Entity::new("Sales", "zzz").with("EntityType", "Robot");
    table.insert_entity(&stranger, None).await.unwrap();

    let items: Vec<_> = table
        .query_entities::<Item>(filter!(PartitionKey == "Sales"))
        .map_ok(|stored| stored.into_value())
        .try_collect()
        .await
        .unwrap();
    let upgraded = Employee { id: "00011".into(), full_name: "Ada New".into(), ..employee.clone() };
    let expected = [
        Item::Employee(employee),
        Item::Employee(upgraded),
        Item::Department(department),
        Item::Other(stranger),
    ];
    assert_eq!(items, expected);

    let future =
        Entity::new("Sales", "00012").with("EntityType", "Employee").with("EntityVersion", 3);
    table.insert_entity(&future, None).await.unwrap();
    let error = table.get_entity::<Item>("Sales", "00012", None).await.unwrap_err().to_string();
    assert!(error.contains("newer version"), "{error}");
    table.delete().await;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Address {
    street: String,
    floors: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Site {
    #[table(partition_key)]
    region: u32,
    #[table(row_key)]
    opened: Inverted<DateTime>,
    #[table(json)]
    address: Address,
    #[table(json)]
    former: Option<Address>,
    #[table(json, default)]
    tags: Vec<String>,
    #[table(json)]
    visitors: u64,
}

#[tokio::test]
async fn fields_can_be_json_and_keys_numbers_and_moments() {
    let table = TestTable::create().await;
    let site = |opened: &str| Site {
        region: 7,
        opened: Inverted(DateTime::parse_iso(opened).unwrap()),
        address: Address { street: "Main \"St\"".into(), floors: vec![1, 2] },
        former: None,
        tags: vec!["new".into()],
        visitors: u64::MAX,
    };
    let (old, new) = (site("2020-01-01"), site("2026-11-17"));
    for site in [&old, &new] {
        table.insert_entity(site, None).await.unwrap();
    }
    let found: Vec<_> = table.query_entities::<Site>(None).try_collect().await.unwrap();
    let found: Vec<_> = found.into_iter().map(|stored| stored.into_value()).collect();
    assert_eq!(found, [new.clone(), old], "the newest first");

    let mut bare = new.to_entity().unwrap();
    assert_eq!(bare.partition_key(), "0000000007");
    assert_eq!(bare.get::<String>("Visitors").unwrap(), "18446744073709551615");
    assert_eq!(bare.value("Former"), None);
    bare.remove("Tags");
    assert!(Site::from_entity(bare.clone()).unwrap().tags.is_empty());
    bare.set("Address", "{");
    let error = Site::from_entity(bare.clone()).unwrap_err().to_string();
    assert!(
        error.contains("not the JSON of its type") && error.contains("property=Address"),
        "{error}"
    );
    bare.remove("Address");
    let error = Site::from_entity(bare).unwrap_err().to_string();
    assert!(
        error.contains("no such property property=Address partition_key=0000000007"),
        "{error}"
    );
    table.delete().await;
}

/// Told apart by where they are, and by nothing that is stored.
#[derive(Clone, Debug, PartialEq, TableEntity)]
enum ByPlace {
    #[table(partition_key_prefix = "Employee_", row_key_prefix = "Review_")]
    Review(Entity),
    #[table(partition_key_prefix = "Employee_")]
    Employee(Entity),
    #[table(partition_key_prefix = "Department_")]
    Department(Entity),
}

#[tokio::test]
async fn prefixes_of_partition_keys_tell_types_apart() {
    let table = TestTable::create().await;
    let items = [
        ByPlace::Department(Entity::new("Department_Sales", "1")),
        ByPlace::Review(Entity::new("Employee_00010", "Review_2026")),
        ByPlace::Employee(Entity::new("Employee_00010", "self")),
    ];
    for item in &items {
        table.insert_entity(item, None).await.unwrap();
    }
    let found: Vec<_> = table
        .query_entities::<ByPlace>(None)
        .map_ok(|stored| stored.into_value())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(found, items);
    let misplaced = ByPlace::Department(Entity::new("Employee_00010", "1"));
    let error = table.insert_entity(&misplaced, None).await.unwrap_err().to_string();
    assert!(
        error.contains("the partition key does not tell the type: prefix=Department_"),
        "{error}"
    );
    let stranger = Entity::new("Robot_1", "1");
    assert!(ByPlace::from_entity(stranger).is_err());
    table.delete().await;
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Plain {
    partition_key: String,
    row_key: String,
    number: i64,
    #[serde(with = "tavola_client::guid")]
    guid: Uuid,
    note: Option<String>,
}

#[tokio::test]
async fn any_serde_type_is_an_entity() {
    let table = TestTable::create().await;
    let plain = Plain {
        partition_key: "p".into(),
        row_key: "r".into(),
        number: 5,
        guid: Uuid::from_u128(3),
        note: None,
    };
    table.insert_entity(&Serde(plain.clone()), None).await.unwrap();
    let found: Vec<_> = table
        .query_entities::<Serde<Plain>>(filter!(PartitionKey == "p" && Number == 5_i64))
        .try_collect()
        .await
        .unwrap();
    assert_eq!(found[0].0, plain);
    table.delete().await;
}

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(columns)]
struct Counted {
    #[table(partition_key)]
    name: String,
    #[table(row_key)]
    shard: u64,
    count: u64,
    last: Option<u64>,
}

/// The service has no unsigned numbers: what fits is stored and found, what does not is refused before it is sent.
#[tokio::test]
async fn unsigned_numbers_are_stored_as_long_as_they_fit() {
    let test_table = TestTable::create().await;
    let table = &test_table.table;
    let counted = |shard, count| Counted { name: "hits".into(), shard, count, last: Some(1) };
    let largest = u64::try_from(i64::MAX).unwrap();
    for (shard, count) in [(1, 0), (2, largest)] {
        let counted = counted(shard, count);
        table.insert_entity(&counted, None).await.unwrap();
        let key = tavola_client::KeyField::to_key(&shard).unwrap();
        let read = table.get_entity::<Counted>("hits", &key, None).await.unwrap();
        assert_eq!(read.value, counted);
    }
    let error = table.insert_entity(&counted(3, largest + 1), None).await.unwrap_err().to_string();
    assert!(error.contains("9223372036854775808") && error.contains("property=count"), "{error}");
    let found = |filter| table.query_entities::<Counted>(filter).try_collect::<Vec<_>>();
    for (filter, rows) in [
        (Counted::COUNT.ge(1_u64), 1),
        (Counted::COUNT.eq(largest), 1),
        (Counted::COUNT.eq(u64::MAX), 0),
        (Counted::COUNT.gt(largest + 1), 0),
        (Counted::COUNT.lt(u64::MAX), 2),
        (Counted::COUNT.ne(u64::MAX), 2),
    ] {
        let text = filter.to_string();
        assert_eq!(found(filter).await.unwrap().len(), rows, "{text}");
    }
    test_table.delete().await;
}
