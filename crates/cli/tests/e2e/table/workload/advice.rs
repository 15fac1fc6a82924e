//! The examples of the Index Table pattern: the queries run, and the index they need is proposed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{printed, run};
use crate::server::admin::metrics;
use crate::support::client::{FULL, NONE, values};
use crate::support::{Batch, Client, Launch};
use crate::table::indexes::build;

/// Customers in shards by a hash, as the pattern has them: eight shards of a hundred.
const SHARDS: usize = 8;
const TOWNS: usize = 100;

fn client() -> Client {
    Client::new(&Arc::new(Launch::new().arg("--inMemoryPersistence").start()))
}

fn customers(client: &Client) {
    client.create_table("Customers").expect(204);
    for shard in 0..SHARDS {
        let rows = (0..100).fold(Batch::new(), |rows, row| {
            let number = shard * 100 + row;
            let entity = json!({
                "PartitionKey": format!("shard{shard}"), "RowKey": format!("{number:05}"),
                "Town": format!("Redmond{}", number % TOWNS),
                "LastName": format!("Smith{}", number / 4),
                "Email": format!("secret{number}@example.org"),
                "Gender": if number % 2 == 0 { "f" } else { "m" },
                "Age": number % 90,
            });
            rows.insert(client, "Customers", &entity)
        });
        rows.send(client).expect_done(100);
    }
}

/// Asks a dozen times, each time for other values.
fn ask(client: &Client, filter: impl Fn(usize) -> String, select: Option<&str>) {
    for number in 0..12 {
        let filter = filter(number);
        let mut options = vec![("$filter", filter.as_str())];
        options.extend(select.map(|select| ("$select", select)));
        client.query("Customers", &options).send().expect(200);
    }
}

fn advice(client: &Client, filter: &str) -> Vec<Value> {
    client.matches("TavolaAdvice", filter)
}

#[test]
fn customers_by_town_and_by_town_and_last_name_share_an_index() {
    let client = client();
    customers(&client);
    assert_eq!(advice(&client, ""), [Value::Null; 0]);
    ask(&client, |number| format!("Town eq 'Redmond{number}'"), None);
    let by_town = &advice(&client, "Action eq 'create'")[0];
    assert_eq!((&by_town["Keys"], &by_town["Include"]), (&json!("Town"), &json!("")));

    ask(
        &client,
        |number| format!("LastName eq 'Smith{number}' and Town eq 'Redmond{number}'"),
        None,
    );
    let found = advice(&client, "Action eq 'create'");
    assert_eq!(found.len(), 1, "{found:?}");
    let both = &found[0];
    assert_eq!(
        (&both["PartitionKey"], &both["RowKey"]),
        (&json!("Customers"), &json!("create-ByTownLastName"))
    );
    assert_eq!((&both["Keys"], &both["Name"]), (&json!("Town,LastName"), &json!("ByTownLastName")));
    assert_eq!(both["Executions"], json!("24"));
    assert_eq!(both["RowsExamined"], json!((24 * 800).to_string()));
    let shapes = "LastName eq <String> and Town eq <String>\nTown eq <String>";
    let mut told: Vec<_> = both["Shapes"].as_str().unwrap().lines().collect();
    told.sort_unstable();
    assert_eq!(told.join("\n"), shapes);
    assert!(both["GainSeconds"].as_f64().unwrap() > 0.0);
    assert!(both["PriceSeconds"].as_f64().is_some() && both["PriceBytes"].is_string());
}

#[test]
fn customers_by_last_name_age_and_what_is_selected() {
    let client = client();
    customers(&client);
    let filter = |number| format!("LastName eq 'Smith{number}' and Age ge 10 and Gender ne 'x'");
    ask(&client, filter, Some("Email,LastName,RowKey"));
    let found = advice(&client, "Action eq 'create'");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["Keys"], "LastName,Age");
    assert_eq!(found[0]["Include"], "Email,Gender");
}

/// The guide's intra-partition index, and the sharded hash.
#[test]
fn a_query_within_one_shard_gets_a_local_index() {
    let client = client();
    customers(&client);
    for _ in 0..2 {
        ask(
            &client,
            |number| format!("PartitionKey eq 'shard1' and Email eq 'secret{number}@example.org'"),
            None,
        );
    }
    assert_eq!(advice(&client, "Action eq 'create'")[0]["Keys"], "PartitionKey,Email");
    ask(&client, |number| format!("Email eq 'secret{number}@example.org'"), None);
    let found = advice(&client, "Action eq 'create'");
    assert_eq!((found.len(), &found[0]["Keys"]), (1, &json!("Email")));
}

/// A property with two values finds nothing faster, and is told so.
#[test]
fn what_tells_few_rows_apart_is_not_proposed() {
    let client = client();
    customers(&client);
    ask(&client, |_| "Gender eq 'f'".to_owned(), None);
    assert_eq!(advice(&client, "Action ne 'none'"), [Value::Null; 0]);
    let told = advice(&client, "Action eq 'none'");
    assert!(told[0]["Note"].as_str().unwrap().contains("50 %"), "{told:?}");
    // A range by its keys needs nothing.
    ask(
        &client,
        |_| "PartitionKey eq 'shard1' and RowKey ge '00150' and Age eq 7".to_owned(),
        None,
    );
    assert_eq!(advice(&client, "").len(), 1);
}

/// Asks in every way that leaves something behind, and looks at all that is left: also where nothing goes well, and where
/// everything is logged.
#[test]
fn no_literal_of_a_filter_is_kept() {
    let launch = Launch::new().env("TAVOLA_LOG", "debug").args(["--admin-port", "0"]);
    let server = Arc::new(launch.args(["--inMemoryPersistence", "--slow-query-ms", "0"]).start());
    let client = Client::new(&server);
    customers(&client);
    let ask_all = || {
        for filter in [
            "Town eq 'Redmond{}' and Email ne 'secret{}@example.org'",
            "not (Town eq 'Redmond{}') and LastName eq 'Smith{}'",
            "Age eq 4711471{} or Balance gt 98765432{}L or Share lt 0.3141592{}",
            "Code eq guid'c9da6455-213d-42c9-9a79-3e9149a578{}' and Raw ne X'decade{}'",
            "Born gt datetime'1912-06-23T00:00:{}Z'",
        ] {
            ask(&client, |number| filter.replace("{}", &format!("{:02}", number + 10)), None);
        }
    };
    ask_all();
    let page = client.query("TavolaAdvice", &[]).send().expect(200);
    assert!(page.text().contains("Email ne <String>"), "{}", page.text());

    // With indexes, one of which is read as a table.
    let by_town = json!({"Keys": "Town", "BrowseAs": "CustomersByTown"});
    build(&client, "Customers", "ByTown", &by_town);
    build(&client, "Customers", "ByAge", &json!({"Keys": "Age,Balance", "Include": "Email"}));
    ask_all();
    assert_eq!(client.matches("CustomersByTown", "PartitionKey eq 'Redmond7'").len(), 8);
    client.matches("CustomersByTown", "PartitionKey gt 'Redmond7' and Email ge 'secret'");
    // What is refused is told to the client, word by word, and to nobody else.
    let refused = client.query("Customers", &[("$filter", "Town eq 'Redmond' and")]).send();
    let told = refused.expect(400).text().to_owned();
    assert!(told.contains("Redmond"), "{told}");
    client.query("Customers", &[("$filter", "Town eq Redmond7")]).send().expect(501);
    let wrong = json!({"Keys": "Town", "Filter": "Town eq 'Redmond' and"});
    client.put("TavolaIndexes", ("Customers", "Wrong"), &wrong).send().expect(400);
    client.insert("Customers", &json!({"PartitionKey": "Redmond/7", "RowKey": ""})).expect(400);
    let date = json!({"PartitionKey": "p", "RowKey": "r", "At": "Redmond", "At@odata.type": "Edm.DateTime"});
    client.insert("Customers", &date).expect(400);

    let log = server.log();
    assert!(log.contains("slow query") && log.contains("kind=\"index\""), "{log}");
    assert!(log.matches("request refused").count() >= 5, "{log}");
    let all = [
        page.text().to_owned(),
        client.query("TavolaAdvice", &[]).send().expect(200).text().to_owned(),
        client.query("TavolaIndexes", &[]).send().expect(200).text().to_owned(),
        printed(&client, &["advise", "--all"]),
        printed(&client, &["advise", "--all", "--json"]),
        metrics(&server),
        log,
    ];
    let literals = [
        "Redmond",
        "Smith",
        "secret",
        "example.org",
        "4711471",
        "98765432",
        "3141592",
        "c9da6455",
        "decade",
        "1912-06-23",
    ];
    for text in all {
        for literal in literals {
            assert!(!text.contains(literal), "{literal}: {text}");
        }
    }
}

/// It is a table: filters, projections, pages, levels and explanations are those of every table.
#[test]
fn advice_is_read_as_any_table() {
    let client = client();
    customers(&client);
    ask(&client, |number| format!("Town eq 'Redmond{number}'"), None);
    ask(&client, |number| format!("LastName eq 'Smith{number}'"), None);
    ask(&client, |_| "Gender eq 'f'".to_owned(), None);
    let keys = |page: &crate::support::Response| {
        values(page)
            .iter()
            .map(|row| row["RowKey"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let first = client.query("tavolaadvice", &[("$top", "1"), ("$filter", "Action eq 'create'")]);
    let first = first.header("x-tavola-explain", "true").send().expect(200);
    assert_eq!(keys(&first), ["create-ByLastName"]);
    assert_eq!(first.header("x-tavola-query-kind"), Some("table scan"));
    assert_eq!(first.header("x-tavola-rows-returned"), Some("1"));
    let token = |name: &str| first.header(&format!("x-ms-continuation-{name}")).unwrap().to_owned();
    let (partition, row) = (token("NextPartitionKey"), token("NextRowKey"));
    let next = client.query(
        "TavolaAdvice",
        &[
            ("$filter", "Action eq 'create'"),
            ("$select", "Keys,Missing"),
            ("NextPartitionKey", &partition),
            ("NextRowKey", &row),
        ],
    );
    let next = next.accept(NONE).send().expect(200);
    assert_eq!(next.json()["value"], json!([{"Keys": "Town", "Missing": null}]));
    assert_eq!(next.header("x-ms-continuation-NextPartitionKey"), None);

    let one = client.get("/TavolaAdvice(PartitionKey='Customers',RowKey='create-ByTown')");
    let one = one.accept(FULL).send().expect(200);
    let json = one.json();
    assert_eq!(json["odata.etag"], json!(one.etag()));
    assert_eq!(json["LastSeen@odata.type"], "Edm.DateTime");
    assert_eq!(json["LastSeen"], json["Timestamp"]);
    assert_eq!(
        json["odata.id"],
        json!(format!(
            "{}/TavolaAdvice(PartitionKey='Customers',RowKey='create-ByTown')",
            client.base()
        ))
    );
    client
        .entity("TavolaAdvice", ("Customers", "create-Other"))
        .expect_error(404, "ResourceNotFound");
    client.query("TavolaAdvice", &[("$filter", "Action is")]).send().expect(400);

    // What is about a table goes with it.
    client.drop_table("Customers").expect(204);
    assert_eq!(advice(&client, ""), [Value::Null; 0]);
}

#[test]
fn the_verb_prints_a_table_or_json() {
    let client = client();
    customers(&client);
    assert!(printed(&client, &["advise"]).starts_with("Nothing to advise"));
    ask(&client, |number| format!("Town eq 'Redmond{number}'"), None);
    ask(&client, |_| "Gender eq 'f'".to_owned(), None);
    let text = printed(&client, &["advise"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("ACTION  TABLE      INDEX   KEYS"), "{text}");
    assert!(lines[1].starts_with("create  Customers  ByTown  Town"), "{text}");
    assert_eq!(lines[2].trim(), "Town eq <String>");
    assert!(!text.contains("Gender"), "{text}");
    assert!(printed(&client, &["advise", "--all"]).contains("Gender eq <String>"));
    let json: Value = serde_json::from_str(&printed(&client, &["advise", "--json"])).unwrap();
    assert_eq!((&json["Keys"], &json["Executions"]), (&json!("Town"), &json!(12)));
    assert!(printed(&client, &["advise", "--table", "other"]).starts_with("Nothing"));

    let refused = run(
        &client,
        &[
            "advise",
            "--connection",
            "AccountName=x;AccountKey=eA==;TableEndpoint=http://127.0.0.1:1/x",
        ],
    );
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("TavolaAdvice"));
}

/// Each account sees what its own queries came to.
#[test]
fn accounts_do_not_see_each_other() {
    use tavola_wire::auth::AccountKey;
    use tavola_wire::auth::shared_key::Scheme;

    use crate::support::Credentials;

    let accounts = "mine:b3duZXI=;theirs:c3RyYW5nZXI=";
    let launch = Launch::new().env("TAVOLA_ACCOUNTS", accounts).arg("--inMemoryPersistence");
    let server = Arc::new(launch.start());
    let [mine, theirs] = [("mine", &b"owner"[..]), ("theirs", b"stranger")].map(|(name, key)| {
        let key = Credentials::Key(Scheme::SharedKey, AccountKey::from_bytes(key));
        let mut client = Client::with(&server, key);
        (client.account, client.root) = (name.to_owned(), name.to_owned());
        client
    });
    customers(&mine);
    theirs.create_table("Customers").expect(204);
    ask(&mine, |number| format!("Town eq 'Redmond{number}'"), None);
    assert_eq!(advice(&mine, "").len(), 1);
    assert_eq!(advice(&theirs, ""), [Value::Null; 0]);
    assert_eq!(theirs.matches("TavolaHotPartitions", ""), [Value::Null; 0]);
}

/// What was proposed is declared as it stands there; the queries use it, and it is not proposed again.
#[test]
fn a_proposal_can_be_copied_and_is_taken() {
    let client = client();
    customers(&client);
    let by_town = |number| format!("Town eq 'Redmond{number}'");
    let by_both = |number| format!("LastName eq 'Smith{number}' and Town eq 'Redmond{number}'");
    ask(&client, by_town, Some("Email"));
    ask(&client, by_both, Some("Email"));
    let proposal = advice(&client, "Action eq 'create'").remove(0);
    let definition = json!({"Keys": proposal["Keys"], "Include": proposal["Include"]});
    assert_eq!(definition, json!({"Keys": "Town,LastName", "Include": "Email"}));
    let name = proposal["Name"].as_str().unwrap();
    client.put("TavolaIndexes", ("Customers", name), &definition).send().expect(204);
    // While it is built it is not proposed again either.
    assert_eq!(advice(&client, "Action ne 'none'"), [Value::Null; 0]);
    while client.entity("TavolaIndexes", ("Customers", name)).json()["State"] != "Readable" {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }

    assert_eq!(advice(&client, "Action ne 'none'"), [Value::Null; 0]);
    let notes = advice(&client, "Action eq 'none'");
    assert!(
        notes.iter().all(|row| row["Note"] == "The index ByTownLastName serves it."),
        "{notes:?}"
    );
    let page = client.query("Customers", &[("$filter", &by_town(1)), ("$select", "Email")]);
    let page = page.header("x-tavola-explain", "true").send().expect(200);
    assert_eq!(page.header("x-tavola-index"), Some(name));
    // Pages that an index finds are no scans.
    ask(&client, |number| format!("Town eq 'Redmond{number}' and Age ge 200"), None);
    assert_eq!(advice(&client, "Action eq 'create'"), [Value::Null; 0]);
}

/// An index that most entities share a value of is begun and given up. What would help is proposed all the same.
#[test]
fn an_index_that_is_given_up_hides_nothing() {
    let client = client();
    customers(&client);
    for shard in 0..SHARDS {
        let rows =
            (0..100).filter(|row| (shard * 100 + row) % 10 > 0).fold(Batch::new(), |rows, row| {
                let keys = (format!("shard{shard}"), format!("{:05}", shard * 100 + row));
                let most = json!({"Country": "most"});
                rows.merge(&client, "Customers", (&keys.0, &keys.1), None, &most)
            });
        rows.send(&client).expect_done(90);
    }
    build(&client, "Customers", "ByCountry", &json!({"Keys": "Country"}));
    for _ in 0..5 {
        ask(&client, |number| format!("Country eq 'most' and LastName eq 'Smith{number}'"), None);
    }
    let proposals = advice(&client, "Action eq 'create'");
    assert_eq!(proposals.len(), 1, "{:?}", advice(&client, ""));
    assert_eq!(proposals[0]["Keys"], "Country,LastName");
    assert_eq!(proposals[0]["Executions"], "60");
    let index = client.entity("TavolaIndexes", ("Customers", "ByCountry")).json();
    assert_eq!(index["Uses"], "0", "{index}");
}
