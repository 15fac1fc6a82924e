//! More of everything than there is room for.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Barrier;

use super::{GIVE_UP, KIB, MIB, Target, answer_to};
use crate::support::{Batch, Launch};
use crate::table::indexes::build;

/// The burst that has to be served or refused.
const BURST: usize = 10_000;
/// Descriptors of this process that are not for the burst.
const FILES_OF_OTHERS: u64 = 1000;
/// Rows of half a megabyte that fill the write buffer of the store twice.
const BUFFER_ROWS: usize = 150;

/// Each connection of a burst is served or refused, and the service goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_ten_thousand_connections() {
    let files = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(1024);
    let most = usize::try_from(files.saturating_sub(FILES_OF_OTHERS)).unwrap_or(usize::MAX);
    let burst = BURST.min(most).max(1000);
    if burst < BURST {
        println!("the limit of open files, {files}, allows a burst of {burst} only");
    }
    let served_max = 2 * burst / 5;
    let connections_max = (served_max + 2).to_string();
    let target = Target::start(&["--connections-max", &connections_max]);
    let before = target.memory();
    let bystander = target.bystander();
    let entity = json!({"PartitionKey": "p", "RowKey": "r"});
    target.client.insert(&target.table, &entity).expect(204);
    let path = format!("{}(PartitionKey='p',RowKey='r')", target.table);
    let request: Arc<str> = format!("{}\r\n", target.head("GET", &path)).into();
    let address = target.server.address();
    // Nobody leaves before everybody has been answered.
    let all_are_answered = Arc::new(Barrier::new(burst));
    let connections: Vec<_> = (0..burst)
        .map(|_| {
            let (request, all_are_answered) = (request.clone(), all_are_answered.clone());
            tokio::spawn(async move {
                let status = status_of(address, &request).await;
                all_are_answered.wait().await;
                status.map(|(status, _)| status)
            })
        })
        .collect();
    let mut served = 0;
    let mut refused = 0;
    for connection in connections {
        match connection.await.unwrap() {
            Ok(200) => served += 1,
            Ok(503) => refused += 1,
            // Beyond some hundred at a time they are not waited for, and the answer may be lost with the connection.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(served + refused, burst);
    assert!(served <= served_max + 1, "{served} of {served_max}");
    assert!(served >= served_max / 2, "{served} of {served_max}");
    target.memory().assert_grew_less_than(300 * MIB, before);
    bystander.finish();
    // Those who were refused may come again.
    target.wait_until("tavola_connections", ..=3);
    assert!(status_of(address, &request).await.is_ok_and(|(status, _)| status == 200));
    target.assert_unharmed();
}

/// Asks on a connection of its own, which is kept open.
async fn status_of(
    address: std::net::SocketAddr,
    request: &str,
) -> std::io::Result<(u16, tokio::net::TcpStream)> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    // Who is refused may be told before it has asked.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut status_line = [0; 12];
    stream.read_exact(&mut status_line).await?;
    let status = std::str::from_utf8(&status_line[9..]).map_err(std::io::Error::other)?;
    Ok((status.parse().map_err(std::io::Error::other)?, stream))
}

/// Connections leave file descriptors to the store: it goes on writing while they are used up.
#[test]
fn connections_leave_files_to_the_store() {
    let target = Target::launch(Launch::new().open_files_max(128));
    let log = target.server.log();
    assert!(log.contains("allowed=68"), "{log}");
    let bystander = target.bystander();
    let crowd: Vec<TcpStream> = (0..200).map(|_| target.connect()).collect();
    answer_to(&target, target.get_page()).expect(503);
    for row in 0..50 {
        let entity = json!({"PartitionKey": "p", "RowKey": row.to_string()});
        target.client.insert(&target.table, &entity).expect(204);
    }
    bystander.finish();
    drop(crowd);
    target.wait_until("tavola_connections", ..=3);
    assert!(!target.server.log().contains("accepting a connection failed"));
    target.assert_unharmed();
}

/// Where descriptors are few, connections have their part of them as well, and the store has enough to write its buffer
/// out while a crowd asks for more.
#[test]
fn a_low_limit_of_files_leaves_connections_to_all() {
    let target = Target::launch(Launch::new().open_files_max(64));
    let table = format!("{}()", target.table);
    let request = format!("{}\r\n", target.head("GET", &table));
    // The client has one, and some are left to come and go.
    let mut served: Vec<_> = (0..20).map(|_| BufReader::new(target.connect())).collect();
    for stream in &mut served {
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        crate::support::http::read(stream).expect("an answer").expect(200);
    }
    let crowd: Vec<TcpStream> = (0..100).map(|_| target.connect()).collect();
    let text = "a".repeat(32 * KIB);
    let large: Map<String, Value> = (0..15).map(|n| (format!("P{n}"), json!(text))).collect();
    for row in 0..BUFFER_ROWS {
        let large = Value::Object(large.clone());
        target.client.put(&target.table, ("p", &row.to_string()), &large).send().expect(204);
    }
    drop((served, crowd));
    target.wait_until("tavola_connections", ..=3);
    assert!(!target.server.log().contains("accepting a connection failed"));
    target.assert_unharmed();
}

/// Clients that send most of a large body, and then wait.
const HOARDERS: usize = 80;

/// Bodies that have come and wait for their end share one budget. Who comes when it is used up is told to come
/// again; small requests still find room.
#[test]
fn bodies_in_flight_share_a_budget() {
    let target = Target::start(&["--message-memory-mb", "16"]);
    let before = target.memory();
    let bystander = target.bystander();
    let head = target.insert_head("Content-Length: 4000000");
    let piece = vec![b' '; 3 * MIB];
    let mut hoarders: Vec<_> = (0..HOARDERS)
        .map(|_| {
            let mut stream = BufReader::new(target.connect());
            stream.get_mut().write_all(head.as_bytes()).unwrap();
            stream.get_mut().write_all(&piece).unwrap();
            stream
        })
        .collect();
    // What they hold is full for large ones, and they know it when they have sent the rest.
    let small = json!({"PartitionKey": "p", "RowKey": "r", "A": "a".repeat(30 * KIB)});
    target.client.put(&target.table, ("p", "r"), &small).send().expect(204);
    let rest = vec![b' '; 4_000_000 - piece.len()];
    let mut statuses: Vec<u16> = hoarders
        .iter_mut()
        .map(|stream| {
            stream.get_mut().write_all(&rest).unwrap();
            crate::support::http::read(stream).expect("an answer").status
        })
        .collect();
    statuses.sort_unstable();
    let busy = statuses.iter().filter(|status| **status == 503).count();
    assert!(busy >= HOARDERS - 12 * MIB / piece.len(), "{statuses:?}");
    assert!(statuses.iter().all(|status| [400, 503].contains(status)), "{statuses:?}");
    target.memory().assert_grew_less_than(HOARDERS * piece.len() / 2, before);
    drop(hoarders);
    bystander.finish();
    target.assert_unharmed();
}

/// What indexes copy for a request is of the same budget: it comes again when others have gone.
#[test]
fn copies_into_indexes_wait_for_memory() {
    let target = Target::start(&["--message-memory-mb", "16"]);
    for number in 0..3 {
        let definition = json!({"Keys": "Group", "Include": "*"});
        build(&target.client, &target.table, &format!("Index{number}"), &definition);
    }
    let head = target.insert_head("Content-Length: 4000000");
    let hoarders: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = target.connect();
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&vec![b' '; 3 * MIB]).unwrap();
            stream
        })
        .collect();
    let send = |table: &str| {
        let batch = (0..60).fold(Batch::new(), |batch, row| {
            let entity = json!({"Group": "g", "Text": "x".repeat(30_000)});
            batch.put(&target.client, table, ("p", &format!("{row:03}")), None, &entity)
        });
        batch.send(&target.client)
    };
    let send_until = |status: u16| {
        let begun = Instant::now();
        loop {
            let reply = send(&target.table);
            if reply.response.status == status {
                return reply;
            }
            assert!(begun.elapsed() < GIVE_UP / 2, "{:?}", reply.response.status);
        }
    };
    send_until(503).response.expect_error(503, "ServerBusy");
    // There is room for the body itself, and not for three times as much.
    send(&target.client.new_table()).expect_done(60);
    send(&target.table).response.expect_error(503, "ServerBusy");
    drop(hoarders);
    send_until(202).expect_done(60);
    target.assert_unharmed();
}

/// Announcing a large body takes nothing from others.
#[test]
fn announced_bodies_hold_nothing() {
    let target = Target::start(&["--message-memory-mb", "16"]);
    let head = target.insert_head("Content-Length: 4000000");
    let announced: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = target.connect();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let text = "a".repeat(32 * KIB);
    let entity = json!({"A": text, "B": text, "C": text, "D": text});
    target.client.put(&target.table, ("p", "r"), &entity).send().expect(204);
    drop(announced);
    target.assert_unharmed();
}
