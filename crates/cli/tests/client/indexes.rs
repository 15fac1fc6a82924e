//! Indexes of a service that keeps them, through the client's own names for them.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::http::headers::Headers;
use azure_core::http::{
    AsyncRawResponse, ClientOptions, HttpClient, Method, Request, StatusCode, Transport,
};
use futures::TryStreamExt;
use tavola_client::{
    Entity, ErrorCode, ErrorExt, IfMatch, IndexSpec, IndexState, QueryCost, QueryOptions,
    TableClient, TableClientOptions, TableEntity, TableServiceClient, filter, new_transport,
};

use crate::support::TestTable;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(index(name = "ByTown", keys = "Town,LastName", include = "*"))]
#[table(index(name = "ByEmail", keys = "Email", unique))]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    town: String,
    last_name: String,
    email: String,
}

fn person(id: usize) -> Person {
    Person {
        country: "dk".into(),
        id: format!("{id:03}"),
        town: format!("Town{}", id % 3),
        last_name: "Hansen".into(),
        email: format!("{id}@example.com"),
    }
}

#[tokio::test]
async fn a_type_declares_its_indexes() {
    let table = TestTable::create().await;
    if !table.account.is_tavola() {
        assert!(!table.ensure_indexes::<Person>(None).await.unwrap());
        return table.delete().await;
    }
    for id in 0..50 {
        table.insert_entity(&person(id), None).await.unwrap();
    }
    for _ in 0..2 {
        assert!(table.ensure_indexes::<Person>(None).await.unwrap());
    }
    let indexes = table.account.service().indexes();
    for (name, spec) in Person::indexes() {
        let built = indexes.wait_until_readable(table.name(), name, None).await.unwrap();
        assert_eq!((built.spec, built.entries, built.state), (spec, 50, IndexState::Readable));
    }
    let twin = Person { id: "twin".into(), ..person(7) };
    let refused = table.insert_entity(&twin, None).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::UniqueIndexViolation));
    let options = QueryOptions { filter: Some(filter!(Town == "Town1")), ..Default::default() };
    let found: Vec<_> =
        table.query_entities::<Entity>(Some(options)).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(found.len(), 17);
    // Names of tables are, in any letters.
    let upper = table.name().to_uppercase();
    for name in [table.name(), &upper] {
        assert_eq!(indexes.list(Some(name), None).await.unwrap().len(), 2);
    }
    let same = table.account.service().table_client(&upper).unwrap();
    assert!(same.ensure_indexes::<Person>(None).await.unwrap());
    indexes.drop_index(table.name(), "ByTown", None).await.unwrap();
    let gone = indexes.get(table.name(), "ByTown", None).await.unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::ResourceNotFound));
    let wrong = indexes.declare(table.name(), "Wrong", &IndexSpec::on("A,,"), None).await;
    assert_eq!(wrong.unwrap_err().code(), Some(ErrorCode::InvalidInput));
    table.delete().await;
}

/// Texts that say the same in other words: the service has one form, and each declaration is a change that the advice waits
/// after.
#[tokio::test]
async fn an_index_that_is_there_is_not_declared_again() {
    let table = TestTable::create().await;
    if !table.account.is_tavola() {
        return table.delete().await;
    }
    let indexes = table.account.service().indexes();
    assert!(table.ensure_indexes::<Wordy>(None).await.unwrap());
    let before = indexes.wait_until_readable(table.name(), "ByTown", None).await.unwrap();
    assert_eq!(before.spec.keys, "Town,LastName:String");
    let stored = table.account.service().table_client("TavolaIndexes").unwrap();
    let changed = async || {
        let index = stored.get_entity::<Entity>(table.name(), "ByTown", None).await.unwrap();
        index.timestamp.expect("every entity has one")
    };
    let at_first = changed().await;
    assert!(table.ensure_indexes::<Wordy>(None).await.unwrap());
    assert!(table.ensure_indexes::<Wordy>(None).await.unwrap());
    assert_eq!(changed().await, at_first);
    let declared = indexes.declare(table.name(), "ByTown", &Wordy::indexes()[0].1, None).await;
    assert_eq!(declared.unwrap().state, IndexState::Readable);
    assert!(changed().await > at_first, "a declaration is seen, where there is one");
    table.delete().await;
}

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(index(
    name = "ByTown",
    keys = " Town! , LastName:Edm.String?",
    include = "Email ",
    filter = "Town ne 'x'"
))]
#[allow(dead_code)]
struct Wordy {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    town: String,
    last_name: String,
    email: String,
}

/// The reason is gone, and the next start of the program builds it.
#[tokio::test]
async fn an_index_that_has_failed_is_declared_again() {
    let table = TestTable::create().await;
    if !table.account.is_tavola() {
        return table.delete().await;
    }
    let (one, twin) = (person(1), Person { id: "twin".into(), ..person(1) });
    for person in [&one, &twin] {
        table.insert_entity(person, None).await.unwrap();
    }
    let indexes = table.account.service().indexes();
    table.ensure_indexes::<Person>(None).await.unwrap();
    assert!(indexes.wait_until_readable(table.name(), "ByEmail", None).await.is_err());
    table.delete_entity("dk", "twin", IfMatch::Any, None).await.unwrap();
    table.ensure_indexes::<Person>(None).await.unwrap();
    let built = indexes.wait_until_readable(table.name(), "ByEmail", None).await.unwrap();
    assert_eq!(built.entries, 1);
    table.delete().await;
}

/// Answers as a service does that has such an entity of an index, and nothing else.
#[derive(Debug)]
struct Says(&'static str);

#[async_trait]
impl HttpClient for Says {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let mut headers = Headers::new();
        headers.insert("etag", "W/\"1\"");
        Ok(match request.method() {
            Method::Get => AsyncRawResponse::from_bytes(StatusCode::Ok, headers, self.0),
            _ => AsyncRawResponse::from_bytes(StatusCode::NoContent, headers, ""),
        })
    }
}

fn service_that(says: &'static str) -> TableServiceClient {
    let options = TableClientOptions {
        client_options: ClientOptions {
            transport: Some(Transport::new(Arc::new(Says(says)))),
            ..Default::default()
        },
        ..Default::default()
    };
    let text = "UseDevelopmentStorage=true";
    TableServiceClient::from_connection_string(text, Some(options)).unwrap()
}

/// A user's table of this name, in which an entity builds nothing.
#[tokio::test]
async fn a_plain_table_of_the_name_keeps_no_indexes() {
    let service = service_that(r#"{"PartitionKey":"people","RowKey":"ByTown","Keys":"Town"}"#);
    let (indexes, spec) = (service.indexes(), IndexSpec::on("Town"));
    let error = indexes.declare("people", "ByTown", &spec, None).await.unwrap_err();
    assert!(error.to_string().contains("plain table"), "{error}");
    let people = service.table_client("people").unwrap();
    let error = people.ensure_indexes::<Person>(None).await.unwrap_err();
    assert!(error.to_string().contains("plain table"), "{error}");
}

#[tokio::test]
async fn rows_that_differ_are_told_and_are_an_error() {
    let service = service_that(
        r#"{"PartitionKey":"people","RowKey":"ByTown","State":"Readable","Verify":"2 entries are missing"}"#,
    );
    let error = service.indexes().verify("people", "ByTown", None).await.unwrap_err();
    assert!(error.to_string().contains("is not verified: 2 entries are missing"), "{error}");
}

/// Definitions lie under the name that the table was made with, also the first, which no other can tell.
#[tokio::test]
async fn the_table_of_an_index_may_be_written_in_other_letters() {
    let table = TestTable::create().await;
    if !table.account.is_tavola() {
        return table.delete().await;
    }
    let upper = table.name().to_uppercase();
    let same = table.account.service().table_client(&upper).unwrap();
    assert!(same.ensure_indexes::<Person>(None).await.unwrap());
    let indexes = table.account.service().indexes();
    for (name, _) in Person::indexes() {
        let built = indexes.wait_until_readable(&upper, name, None).await.unwrap();
        assert_eq!(built.table, table.name());
        assert_eq!(indexes.verify(&upper, name, None).await.unwrap(), "sound: 0 entries");
        indexes.drop_index(&upper, name, None).await.unwrap();
        let gone = indexes.get(&upper, name, None).await.unwrap_err();
        assert_eq!(gone.code(), Some(ErrorCode::ResourceNotFound));
    }
    indexes.declare(&upper, "ByAge", &IndexSpec::on("Age"), None).await.unwrap();
    assert_eq!(indexes.get(table.name(), "ByAge", None).await.unwrap().table, table.name());
    let wrong = indexes.declare(&upper, "Wrong", &IndexSpec::on("A,,"), None).await;
    assert_eq!(wrong.unwrap_err().code(), Some(ErrorCode::InvalidInput));
    table.delete().await;
    let gone = indexes.declare(&upper, "ByAge", &IndexSpec::on("Age"), None).await.unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::TableNotFound));
    assert_eq!(gone.to_string(), format!("there is no table {upper}"));
}

#[tokio::test]
async fn an_index_says_what_is_known_of_it() {
    let table = TestTable::create().await;
    if !table.account.is_tavola() {
        return table.delete().await;
    }
    for id in 0..30 {
        table.insert_entity(&person(id), None).await.unwrap();
    }
    let odd = Entity::new("dk", "odd").with("Town", 7);
    table.insert_entity(&odd, None).await.unwrap();
    let indexes = table.account.service().indexes();
    let spec = IndexSpec::on("Town:String");
    indexes.declare(table.name(), "ByTown", &spec, None).await.unwrap();
    let built = indexes.wait_until_readable(table.name(), "ByTown", None).await.unwrap();
    assert_eq!((built.entries, built.distinct, built.off_type), (31, 4, 1));
    assert!(built.bytes > 31 && (0.3..0.4).contains(&built.largest_share), "{built:?}");
    assert_eq!((built.last_used, built.note.as_str()), (None, ""));
    let used = filter!(Town == "Town1");
    assert_eq!(
        table.query_entities::<Entity>(used).try_collect::<Vec<_>>().await.unwrap().len(),
        10
    );
    let verified = indexes.verify(table.name(), "ByTown", None).await.unwrap();
    assert_eq!(verified, "sound: 31 entries");
    let after = indexes.get(table.name(), "ByTown", None).await.unwrap();
    assert_eq!((after.uses, after.verification), (1, verified));
    assert!(after.last_used.is_some());
    indexes.declare(table.name(), "Changes", &IndexSpec::on("Timestamp"), None).await.unwrap();
    let changes = indexes.get(table.name(), "Changes", None).await.unwrap();
    assert!(changes.note.contains("changes with every write"), "{}", changes.note);
    // Two entities of the same town: it cannot be built, nor verified.
    let unique = IndexSpec::on("Town").unique();
    indexes.declare(table.name(), "Unique", &unique, None).await.unwrap();
    assert!(indexes.wait_until_readable(table.name(), "Unique", None).await.is_err());
    let error = indexes.verify(table.name(), "Unique", None).await.unwrap_err();
    assert!(error.to_string().contains("is not verified"), "{error}");
    table.delete().await;
}

#[derive(TableEntity)]
#[table(index(name = "ByTown", keys = "Town"))]
#[allow(dead_code)]
enum Anybody {
    #[table(entity_type = "Person")]
    Person(Person),
    #[table(other)]
    Other(Person),
}

#[test]
fn several_types_in_a_table_have_the_indexes_of_each() {
    let indexes = Anybody::indexes();
    let keys: Vec<_> = indexes.iter().map(|(name, spec)| (*name, spec.keys.as_str())).collect();
    // What is said of all of them comes first.
    assert_eq!(keys, [("ByTown", "Town"), ("ByEmail", "Email")]);
}

#[tokio::test]
async fn a_query_is_explained_with_its_index() {
    let table = TestTable::create().await;
    for id in 0..50 {
        table.insert_entity(&person(id), None).await.unwrap();
    }
    let wanted = || filter!(Town == "Town1" && LastName == "Hansen");
    let before = table.explain_query(wanted()).await.unwrap();
    assert_eq!((before.estimate, before.index()), (QueryCost::TableScan, None));
    if !table.account.is_tavola() {
        assert_eq!(before.report, None);
        return table.delete().await;
    }
    assert_eq!(before.to_string(), "table scan: 50 rows examined, 17 returned");
    table.ensure_indexes::<Person>(None).await.unwrap();
    let indexes = table.account.service().indexes();
    for (name, _) in Person::indexes() {
        indexes.wait_until_readable(table.name(), name, None).await.unwrap();
    }
    let after = table.explain_query(wanted()).await.unwrap();
    assert_eq!(after.estimate, QueryCost::TableScan);
    let index = after.index().unwrap();
    assert_eq!(
        (&*index.names, &*index.how, index.entries),
        (&["ByTown".into()][..], "ordered covering", 17)
    );
    let report = after.report.as_ref().unwrap();
    assert_eq!((&*report.kind, report.rows_examined, report.rows_returned), ("index", 17, 17));
    let line = "index ByTown (ordered covering): 17 entries passed, 17 rows examined, 17 returned";
    assert_eq!(after.to_string(), line);
    // The page that was meant, from where it goes on; with what was asked for and why it was not so.
    let two = QueryOptions { page_size: Some(2), ..wanted().into() };
    let mut pager = table.query_entities::<Entity>(two.clone());
    while pager.try_next().await.unwrap().unwrap().row_key() != "046" {}
    let rest = QueryOptions { continuation: pager.into_continuation(), ..two };
    let rest = table.explain_query(rest).await.unwrap().report.unwrap();
    assert!(rest.rows_returned <= 2, "{rest}");
    let negated = table.explain_query(filter!(!(Email == "7@example.com"))).await.unwrap();
    let report = negated.report.unwrap();
    assert_eq!(report.indexes_not_used, [("ByEmail".to_owned(), "skip-missing".to_owned())]);
    assert!(
        report
            .to_string()
            .ends_with("50 rows examined, 49 returned; ByEmail not used: skip-missing")
    );
    // A key needs no index, and everything has no filter.
    let point = filter!(PartitionKey == "dk" && RowKey == "007");
    let point = table.explain_query(point).await.unwrap();
    assert_eq!((point.estimate, point.index()), (QueryCost::Point, None));
    let all = table.explain_query(None).await.unwrap();
    assert_eq!((all.estimate, all.report.unwrap().rows_returned), (QueryCost::TableScan, 50));
    table.delete().await;
}

/// A service that does not know the question: it never arrives.
#[derive(Debug)]
struct Unasked(Arc<dyn HttpClient>);

#[async_trait]
impl HttpClient for Unasked {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let mut plain = request.clone();
        assert!(plain.headers_mut().remove("x-tavola-explain").is_some());
        self.0.execute_request(&plain).await
    }
}

#[tokio::test]
async fn a_service_that_explains_nothing_leaves_the_estimate() {
    let table = TestTable::create().await;
    table.insert_entity(&person(1), None).await.unwrap();
    let transport = Transport::new(Arc::new(Unasked(new_transport(None).unwrap())));
    let options = TableClientOptions {
        client_options: ClientOptions { transport: Some(transport), ..Default::default() },
        ..Default::default()
    };
    let connection = table.account.connection_string();
    let client =
        TableClient::from_connection_string(connection, table.name(), Some(options)).unwrap();
    let filter = filter!(PartitionKey == "dk" && Town == "Town1");
    let explanation = client.explain_query(filter).await.unwrap();
    assert_eq!((explanation.estimate, &explanation.report), (QueryCost::PartitionScan, &None));
    assert_eq!(explanation.to_string(), "partition scan, as far as the filter tells");
    table.delete().await;
}
