//! What the service holds, as its owner sees it: everything a token might read or change.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::client::{NONE, entity_path, values};
use crate::support::{Client, Random};
use crate::table::sas_model::generate::{Generator, PARTITIONS, ROWS};
use crate::table::sas_model::grant::{Key, Policy};
use crate::table::sas_model::time;

pub(super) const TABLES: [&str; 2] = ["Alpha", "beta"];
const PROPERTIES: &str = "/?restype=service&comp=properties";

/// Every row by table and key, and everything else that can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct World {
    pub rows: BTreeMap<(String, Key), Row>,
    tables: Vec<String>,
    policies: Vec<String>,
    properties: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// A text that no other row has, and this one in no other version.
    pub secret: String,
    pub number: i64,
    pub etag: String,
}

impl World {
    /// Makes the tables, with about two thirds of the rows that there can be.
    pub(super) fn fill(owner: &Client, random: &mut Random) {
        for table in TABLES {
            owner.create_table(table).expect(204);
            for partition in PARTITIONS {
                for row in ROWS {
                    if !random.one_in(3) {
                        owner.put(table, (partition, row), &entity(random)).send().expect(204);
                    }
                }
            }
        }
    }

    pub(super) fn observe(owner: &Client) -> Self {
        let mut rows = BTreeMap::new();
        for table in TABLES {
            let page = owner.query(table, &[]).send().expect(200);
            for entity in values(&page) {
                let text = |name: &str| entity[name].as_str().expect("a text").to_owned();
                let key = (text("PartitionKey"), text("RowKey"));
                let number = entity["Number"].as_i64().expect("a number");
                let row = Row { secret: text("Secret"), number, etag: text("odata.etag") };
                rows.insert((table.to_owned(), key), row);
            }
        }
        let list = owner.get("/Tables").accept(NONE).send().expect(200);
        let name = |table: &Value| table["TableName"].as_str().expect("a name").to_owned();
        let acl = |table| owner.get(format!("/{table}?comp=acl")).send().expect(200);
        Self {
            rows,
            tables: values(&list).iter().map(name).collect(),
            policies: TABLES.iter().map(|table| acl(table).text().to_owned()).collect(),
            properties: owner.get(PROPERTIES).send().expect(200).text().to_owned(),
        }
    }

    pub(super) fn row(&self, table: &str, key: &Key) -> Option<&Row> {
        // The model and the service fold case; here are the names as they were created.
        let table = TABLES.iter().find(|name| name.eq_ignore_ascii_case(table))?;
        self.rows.get(&((*table).to_owned(), key.clone()))
    }

    /// The secrets of the rows, which tell the versions of rows apart.
    pub(super) fn secrets(&self) -> BTreeMap<(String, Key), String> {
        self.rows.iter().map(|(key, row)| (key.clone(), row.secret.clone())).collect()
    }

    pub(super) fn with_rows_of(self, other: &Self) -> Self {
        Self { rows: other.rows.clone(), ..self }
    }

    pub(super) fn with_properties_of(self, other: &Self) -> Self {
        Self { properties: other.properties.clone(), ..self }
    }
}

/// An entity without its keys.
pub(super) fn entity(random: &mut Random) -> Value {
    json!({"Secret": format!("secret-{:016x}", random.next()), "Number": random.below(6)})
}

/// Gives the tables other policies, and tells which.
pub(super) fn set_policies(
    owner: &Client,
    generator: &mut Generator<'_>,
    now: i64,
) -> Vec<(String, Vec<Policy>)> {
    let set = |table: &&str| {
        let policies = generator.policies(now);
        let all: String = policies.iter().map(identifier).collect();
        let document = format!("<SignedIdentifiers>{all}</SignedIdentifiers>");
        let request = owner.request("PUT", format!("/{table}?comp=acl"));
        request.body("application/xml", document).send().expect(204);
        (table.to_lowercase(), policies)
    };
    TABLES.iter().map(set).collect()
}

fn identifier(policy: &Policy) -> String {
    let leaf = |name: &str, text: Option<String>| match text {
        Some(text) => format!("<{name}>{text}</{name}>"),
        None => String::new(),
    };
    format!(
        "<SignedIdentifier><Id>{}</Id><AccessPolicy>{}{}{}</AccessPolicy></SignedIdentifier>",
        policy.id.replace('&', "&amp;"),
        leaf("Start", policy.start.map(time::write)),
        leaf("Expiry", policy.expiry.map(time::write)),
        leaf("Permission", policy.permission.clone()),
    )
}

/// `/table(PartitionKey='p',RowKey='r')` in one of its spellings.
pub(super) fn disguised_path(random: &mut Random, table: &str, (partition, row): &Key) -> String {
    let table = disguised_name(random, table);
    match random.below(3) {
        0 => entity_path(&table, partition, row).replace('\'', "%27"),
        1 => {
            let plain = entity_path("", partition, row);
            let keys = plain.trim_start_matches("/(PartitionKey=").trim_end_matches(')');
            let (partition, row) = keys.split_once(",RowKey=").expect("two keys");
            format!("/{table}(RowKey={row},PartitionKey={partition})")
        }
        _ => entity_path(&table, partition, row),
    }
}

/// The name of a table in one of its spellings.
pub(super) fn disguised_name(random: &mut Random, table: &str) -> String {
    match random.below(5) {
        0 => table.to_uppercase(),
        1 => table.to_lowercase(),
        2 => table.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        _ => table.to_owned(),
    }
}
