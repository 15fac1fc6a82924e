//! Queues themselves: made, listed, described, deleted.

use std::io::{Read, Write};
use std::net::TcpStream;

use futures::TryStreamExt;
use tavola_client::queue::{CreateQueueOptions, ListQueuesOptions, Metadata, QueueItem};
use tavola_client::{
    AccountSasSpec, CorsRule, DateTime, ErrorExt, Logging, Permissions, ResourceTypes,
    RetentionPolicy, ServiceProperties, ServiceStats, StatusCode,
};

use crate::support::{Defect, TestQueue, account, fresh_name};

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn a_queue_is_made_once_and_described() {
    let account = account();
    let queue = account.queues().queue_client(fresh_name()).unwrap();
    assert!(!queue.exists(None).await.unwrap());
    let error = queue.get_properties(None).await.unwrap_err();
    assert_eq!(error.service_error().unwrap().code(), "QueueNotFound");
    let team = metadata(&[("team", "billing"), ("purpose", "a & b <c>")]);
    let options = CreateQueueOptions { metadata: team.clone(), ..Default::default() };
    let made = queue.create(Some(options.clone())).await.unwrap();
    assert_eq!(made.status(), StatusCode::Created);
    assert!(made.request_id().is_some());
    assert_eq!(queue.create(Some(options)).await.unwrap().status(), StatusCode::NoContent);
    // Other metadata: another queue is there already.
    assert!(queue.create(None).await.unwrap_err().is_already_there());
    assert!(!queue.create_if_not_exists(None).await.unwrap());
    assert!(queue.exists(None).await.unwrap());

    queue.send_message("one", None).await.unwrap();
    let properties = queue.get_properties(None).await.unwrap();
    assert_eq!((properties.approximate_message_count, properties.metadata), (1, team));
    let other = metadata(&[("team", "sales")]);
    queue.set_metadata(&other, None).await.unwrap();
    assert_eq!(queue.get_properties(None).await.unwrap().metadata, other);
    queue.set_metadata(&Metadata::new(), None).await.unwrap();
    assert_eq!(queue.get_properties(None).await.unwrap().metadata, Metadata::new());
    // Refused before it is sent. Letters without a case are in no name of a header.
    for wrong in [&[("no-name", "x")][..], &[("\u{540d}", "x")], &[("Team", "a"), ("team", "b")]] {
        let error = queue.set_metadata(&metadata(wrong), None).await.unwrap_err();
        assert!(error.to_string().contains("metadata="), "{error}");
        let options = CreateQueueOptions { metadata: metadata(wrong), ..Default::default() };
        assert!(queue.create(Some(options)).await.is_err());
    }

    queue.delete(None).await.unwrap();
    assert!(queue.delete(None).await.unwrap_err().is_not_found());
    assert!(!queue.delete_if_exists(None).await.unwrap());
    assert!(queue.create_if_not_exists(None).await.unwrap());
    assert!(queue.delete_if_exists(None).await.unwrap());
    assert!(account.queues().queue_client("No_Name").is_err());
}

/// Writes a value that this client does not send, as another one does.
fn write_foreign(queue: &TestQueue, value: &[u8]) {
    let service = queue.account.queues();
    let expiry = DateTime::parse_iso("2040-01-01").unwrap();
    let spec = AccountSasSpec::new(Permissions::WRITE, ResourceTypes::ALL, expiry);
    let (endpoint, token) = (service.endpoint(), service.sas(&spec).unwrap());
    let address = (endpoint.host_str().unwrap(), endpoint.port().unwrap());
    let mut stream = TcpStream::connect(address).unwrap();
    let (path, name) = (endpoint.path(), queue.name());
    let head = format!(
        "PUT {path}/{name}?comp=metadata&{token} HTTP/1.1\r\nhost: {}\r\n\
         x-ms-version: 2020-12-06\r\ncontent-length: 0\r\nconnection: close\r\nx-ms-meta-purpose: ",
        endpoint.authority()
    );
    stream.write_all(&[head.as_bytes(), value, b"\r\n\r\n"].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

/// Left out, it would be deleted by whoever reads all, adds something and writes it back.
#[tokio::test]
async fn metadata_of_others_are_not_lost_unseen() {
    let queue = TestQueue::create().await;
    if !queue.account.is_tavola() {
        return queue.delete().await;
    }
    for value in ["gr\u{f6}\u{df}er".as_bytes(), b"gr\xf6\xdfer"] {
        write_foreign(&queue, value);
        let mut found = queue.get_properties(None).await.unwrap().metadata;
        assert_eq!(found, metadata(&[("purpose", "gr\u{f6}\u{df}er")]));
        found.insert("team".into(), "billing".into());
        let error = queue.set_metadata(&found, None).await.unwrap_err();
        assert!(error.to_string().contains("metadata=purpose"), "{error}");
    }
    queue.delete().await;
}

/// Wherever a list is stopped, it goes on with the next queue, with pages of another size and in another process.
#[tokio::test]
async fn a_list_is_resumed_exactly() {
    let account = account();
    let (service, prefix) = (account.queues(), fresh_name());
    let names: Vec<_> = (0..7).map(|number| format!("{prefix}-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let metadata = metadata(&[("number", &number.to_string())]);
        let options = CreateQueueOptions { metadata, ..Default::default() };
        service.create_queue(name, Some(options)).await.unwrap();
    }
    let options = |page_size, continuation| ListQueuesOptions {
        prefix: Some(prefix.clone()),
        page_size,
        continuation,
        ..Default::default()
    };
    for stop in 0..=names.len() {
        let mut first = service.list_queues(Some(options(Some(3), None)));
        for name in &names[..stop] {
            assert_eq!(first.try_next().await.unwrap().unwrap().name, *name);
        }
        let kept = first.into_continuation().map(|position| position.to_string());
        let Some(kept) = kept else {
            assert_eq!(stop, names.len());
            continue;
        };
        for size in [None, Some(1), Some(2)] {
            let rest = options(size, Some(kept.parse().unwrap()));
            let rest: Vec<QueueItem> = service.list_queues(Some(rest)).try_collect().await.unwrap();
            let rest: Vec<_> = rest.into_iter().map(|queue| queue.name).collect();
            assert_eq!(rest, names[stop..], "from {stop} on by {size:?}");
        }
    }
    let with_metadata = ListQueuesOptions { include_metadata: true, ..options(None, None) };
    let all: Vec<QueueItem> = service.list_queues(Some(with_metadata)).try_collect().await.unwrap();
    assert_eq!(all[3].metadata, Some(metadata(&[("number", "3")])));
    let pages = service.list_queues(Some(options(Some(4), None))).by_page();
    let sizes: Vec<_> = pages.map_ok(|page| page.queues.len()).try_collect().await.unwrap();
    assert_eq!(sizes, [4, 3]);
    for name in &names {
        assert!(service.delete_queue_if_exists(name, None).await.unwrap());
    }
}

#[tokio::test]
async fn pages_follow_the_names_and_not_the_order_of_making() {
    let account = account();
    if account.has(Defect::QueuePages) {
        return;
    }
    let (service, prefix) = (account.queues(), fresh_name());
    let mut names: Vec<_> = [3, 0, 4, 1, 2].map(|number| format!("{prefix}-{number}")).into();
    for name in &names {
        service.create_queue(name, None).await.unwrap();
    }
    let options =
        ListQueuesOptions { prefix: Some(prefix), page_size: Some(2), ..Default::default() };
    let listed: Vec<QueueItem> = service.list_queues(Some(options)).try_collect().await.unwrap();
    names.sort_unstable();
    assert_eq!(listed.into_iter().map(|queue| queue.name).collect::<Vec<_>>(), names);
    for name in &names {
        service.delete_queue(name, None).await.unwrap();
    }
}

/// The settings are those of the whole account, so that they are put back.
#[tokio::test]
async fn settings_are_read_and_changed() {
    let account = account();
    let service = account.queues();
    let before = service.get_properties(None).await.unwrap();
    let changed = ServiceProperties {
        logging: Logging {
            read: true,
            write: true,
            delete: false,
            retention: RetentionPolicy { days: Some(5) },
        },
        cors: vec![CorsRule {
            allowed_origins: vec!["https://contoso.com".into()],
            allowed_methods: vec!["GET".into()],
            max_age_seconds: 60,
            exposed_headers: vec!["x-ms-meta-abc".into()],
            allowed_headers: vec!["x-ms-meta-*".into()],
        }],
        ..before.clone()
    };
    service.set_properties(&changed, None).await.unwrap();
    assert_eq!(service.get_properties(None).await.unwrap(), changed);
    service.set_properties(&before, None).await.unwrap();
    assert_eq!(service.get_properties(None).await.unwrap(), before);
    if !account.has(Defect::QueueStats) {
        let stats = service.get_stats(None).await.unwrap();
        assert!(matches!(stats, ServiceStats::Live { .. }), "{stats:?}");
    }
}

#[tokio::test]
async fn a_client_tells_what_it_cannot_do() {
    let queue = TestQueue::create().await;
    let endpoint = queue.account.queues().endpoint().to_string();
    let wrong = tavola_client::SharedKeyCredential::new("devstoreaccount1", "a2V5").unwrap();
    let stranger =
        tavola_client::queue::QueueClient::new(&endpoint, queue.name(), wrong, None).unwrap();
    let error = stranger.send_message("x", None).await.unwrap_err();
    assert_eq!(error.service_error().unwrap().status(), StatusCode::Forbidden);
    assert!(!error.may_have_been_applied() && !error.is_transient());
    queue.delete().await;
}
