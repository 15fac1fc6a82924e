//! Valid requests with something wrong in them: whatever it is, the answer is HTTP, and never our mistake.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::Target;
use crate::support::{ACCOUNT, Random, http};

/// Some hundred in a few seconds; `TAVOLA_TEST_SEED` repeats a run.
const ROUNDS: usize = 600;
const AT_A_TIME: usize = 10;
const SEED: u64 = 20_260_729;

#[test]
fn mutated_requests_are_answered_or_closed() {
    let seed = Random::seed_or(SEED);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let target = Target::start(&["--transfer-timeout", "1", "--in-memory"]);
    let bystander = target.bystander();
    let valid = valid_requests(&target);
    let address = target.server.address();
    let requests: Vec<_> = (0..ROUNDS).map(|_| mutated(&valid, &mut random)).collect();
    // Most of the time is spent waiting for a server that waits for more.
    std::thread::scope(|scope| {
        for requests in requests.chunks(ROUNDS / AT_A_TIME) {
            scope.spawn(move || {
                for request in requests {
                    let answers = exchange(address, request);
                    if let Err(wrong) = check(&answers) {
                        let (request, answers) = (printable(request), printable(&answers));
                        panic!("seed {seed}: {wrong}\n{request}\n-- answered\n{answers}");
                    }
                }
            });
        }
    });
    bystander.finish();
    target.assert_unharmed();
}

/// One of each kind of operation.
fn valid_requests(target: &Target) -> Vec<Vec<u8>> {
    let table = &target.table;
    let json = r#"{"PartitionKey":"p","RowKey":"r","A":1,"B@odata.type":"Edm.Int64","B":"2"}"#;
    let xml = "<?xml version=\"1.0\"?><SignedIdentifiers></SignedIdentifiers>";
    let batch = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\
         Content-Transfer-Encoding: binary\r\n\r\nPOST http://{}/{ACCOUNT}/{table} HTTP/1.1\r\n\
         Content-Type: application/json\r\n\r\n{json}\r\n--c--\r\n--b--\r\n",
        target.server.address()
    );
    let entity = format!("{table}(PartitionKey='p',RowKey='r')");
    let filter = format!("{table}()?$filter=A%20gt%201%20and%20B%20eq%202L&$top=3&$select=A,B");
    let with_body = |method: &str, path: &str, kind: &str, body: &str| {
        let (head, length) = (target.head(method, path), body.len());
        format!("{head}Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let chunked = format!("{:x}\r\n{json}\r\n0\r\n\r\n", json.len());
    let requests = [
        format!("{}\r\n", target.head("GET", "Tables")),
        format!("{}\r\n", target.head("GET", &filter)),
        format!("{}\r\n", target.head("GET", &entity)),
        format!("{}If-Match: *\r\n\r\n", target.head("DELETE", &entity)),
        with_body("POST", table, "application/json", json),
        with_body("PUT", &entity, "application/json", json),
        with_body("PATCH", &entity, "application/json", json),
        with_body("POST", "Tables", "application/json", r#"{"TableName":"mutated"}"#),
        with_body("PUT", &format!("{table}?comp=acl"), "application/xml", xml),
        with_body("POST", "$batch", "multipart/mixed; boundary=b", &batch),
        format!("{}{chunked}", target.insert_head("Transfer-Encoding: chunked")),
    ];
    requests.map(String::into_bytes).to_vec()
}

fn mutated(valid: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut request = random.pick(valid).clone();
    for _ in 0..=random.below(3) {
        if request.is_empty() {
            break;
        }
        let at = random.below(request.len());
        match random.below(6) {
            0 => request[at] ^= 1 << random.below(8),
            1 => request[at] = u8::try_from(random.below(256)).expect("a byte"),
            2 => request.truncate(at),
            3 => {
                let end = (at + 1 + random.below(20)).min(request.len());
                request.drain(at..end);
            }
            // The end of another one, or a piece of it in the middle.
            4 => {
                let other = random.pick(valid);
                request.truncate(at);
                request.extend_from_slice(&other[random.below(other.len())..]);
            }
            _ => {
                let other = random.pick(valid);
                let start = random.below(other.len());
                let end = (start + random.below(60)).min(other.len());
                request.splice(at..at, other[start..end].iter().copied());
            }
        }
    }
    request
}

/// Sends it and takes what comes, until the server has nothing more to say.
fn exchange(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let _ = stream.write_all(request);
    // The first answer may take its time; after it, silence means that the server waits for more.
    let mut answers = vec![0; 64 * 1024];
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut length = stream.read(&mut answers).unwrap_or(0);
    if length == 0 {
        // It waits for the rest, or has closed: tell it that there is none.
        let _ = stream.shutdown(Shutdown::Write);
        stream.set_read_timeout(Some(super::GIVE_UP)).unwrap();
    }
    while let Ok(more @ 1..) = stream.read(&mut answers[length..]) {
        length += more;
    }
    answers.truncate(length);
    answers
}

/// One answer after the other, each whole.
fn check(answers: &[u8]) -> Result<(), String> {
    // A mutated version is answered in that version.
    let answers = String::from_utf8_lossy(answers).replace("HTTP/1.0 ", "HTTP/1.1 ");
    let mut rest = BufReader::new(answers.as_bytes());
    while rest.fill_buf().is_ok_and(|rest| !rest.is_empty()) {
        let answer = http::read(&mut rest).map_err(|error| error.to_string())?;
        match answer.status {
            100 | 200..=299 | 400..=499 | 501 | 503 => {}
            status => return Err(format!("status {status}")),
        }
    }
    Ok(())
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}
