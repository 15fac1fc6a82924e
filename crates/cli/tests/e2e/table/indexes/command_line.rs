//! `tavola index` as scripts use it: its arguments, what it prints, its exit codes, and where its connection comes from.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::sas::{AccountSasSpec, Permissions, ResourceTypes};

use super::{build, index, insert_all, person, wait_for};
use crate::support::{ACCOUNT, Client, KEY, Launch, minutes_from_now};

/// What a run came to.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn ran(launch: &Launch) -> Ran {
    let output = launch.command(std::path::Path::new(".")).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn connection(client: &Client) -> String {
    format!("AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={}", client.base())
}

/// `tavola index`, with the connection in the environment.
fn run(client: &Client, arguments: &[&str]) -> Ran {
    run_with(connection(client), arguments)
}

fn run_with(connection: String, arguments: &[&str]) -> Ran {
    let launch = Launch::new().arg("index").args(arguments.iter().copied());
    ran(&launch.env("AZURE_STORAGE_CONNECTION_STRING", connection))
}

/// A way to the server that answers one reading, and none after it: whoever waits for something does so for ever.
fn answers_one_reading(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        let readings = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming() {
            let (stream, readings) = (stream.expect("a connection"), Arc::clone(&readings));
            thread::spawn(move || pass_on(stream, server, &readings));
        }
    });
    address
}

fn pass_on(mut stream: TcpStream, server: SocketAddr, readings: &AtomicUsize) -> io::Result<()> {
    let mut behind = TcpStream::connect(server)?;
    let (mut answers, mut back) = (behind.try_clone()?, stream.try_clone()?);
    thread::spawn(move || io::copy(&mut answers, &mut back));
    let mut buffer = [0; 16 * 1024];
    loop {
        let length = stream.read(&mut buffer)?;
        let request = &buffer[..length];
        let is_reading = request.starts_with(b"GET ");
        if length == 0 {
            return Ok(());
        }
        if !is_reading || readings.fetch_add(1, Ordering::SeqCst) == 0 {
            behind.write_all(request)?;
        }
    }
}

#[track_caller]
fn done(client: &Client, arguments: &[&str]) -> String {
    let Ran { code, stdout, stderr } = run(client, arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}: {stdout}");
    stdout
}

/// A server of one's own, with a table of some people.
fn people() -> (Client, String) {
    let client = Client::new(&Arc::new(Launch::new().start()));
    let table = client.new_table();
    let people: Vec<_> = (0..20).map(|row| person("p", row)).collect();
    insert_all(&client, &table, &people);
    (client, table)
}

#[test]
fn exit_codes_tell_failures_from_misuse() {
    let (client, table) = people();
    done(&client, &["create", &table, "ByTown", "--keys", "Town", "--wait"]);
    assert_eq!(run(&client, &["show", &table, "Nothing"]).code, Some(1));
    assert_eq!(run(&client, &["create", &table, "Wrong", "--keys", "A,,B"]).code, Some(1));
    for misuse in [&["create", &table, "ByTown"][..], &["show"], &["rename", &table, "ByTown"]] {
        assert_eq!(run(&client, misuse).code, Some(2), "{misuse:?}");
    }
}

#[test]
fn waiting_has_an_end_and_no_number_is_too_long() {
    let (client, table) = people();
    // Both read the index once before they wait.
    let never = |arguments: &[&str]| {
        let server = client.server().address();
        let stuck = answers_one_reading(server).to_string();
        run_with(connection(&client).replace(&server.to_string(), &stuck), arguments)
    };
    let create = ["create", &table, "ByTown", "--keys", "Town", "--wait", "--timeout"];
    let too_late = never(&[&create[..], &["0"]].concat());
    assert_eq!(too_late.code, Some(1));
    assert!(too_late.stderr.contains("still being built"), "{too_late:?}");
    // It is built all the same.
    wait_for(&client, &table, "ByTown", "Readable");
    let longest = u64::MAX.to_string();
    done(&client, &[&create[..], &[&longest]].concat());
    let too_late = never(&["verify", &table, "ByTown", "--timeout", "0"]);
    assert_eq!(too_late.code, Some(1));
    assert!(too_late.stderr.contains("still running"), "{too_late:?}");
    let verified = done(&client, &["verify", &table, "ByTown", "--timeout", &longest]);
    assert_eq!(verified, "sound: 20 entries\n");
}

#[test]
fn an_index_is_what_the_arguments_say_and_no_more() {
    let (client, table) = people();
    let view = format!("{table}Open");
    let create = ["create", &table, "ByTown", "--keys", "Town"];
    let all = ["--include", "Email", "--filter", "Age lt 10", "--browse-as", &view, "--wait"];
    done(&client, &[&create[..], &all].concat());
    let declared = index(&client, &table, "ByTown");
    let texts = |entity: &Value| {
        let text = |name: &str| entity[name].as_str().unwrap_or_default().to_owned();
        ["Keys", "Include", "Filter", "BrowseAs"].map(text)
    };
    assert_eq!(texts(&declared), ["Town", "Email", "Age lt 10", &view]);
    assert_eq!(declared["Entries"], "10");
    assert_eq!(client.rows(&view, "Age ge 0").len(), 10);
    // The whole definition is replaced: what is not given is not kept.
    done(&client, &[&create[..], &["--wait"]].concat());
    assert_eq!(texts(&index(&client, &table, "ByTown")), ["Town", "", "", ""]);
    client.query(&view, &[]).send().expect(404);
    let shown = done(&client, &["show", &table, "ByTown"]);
    assert!(shown.lines().any(|line| line == "Entries       20"), "{shown}");
}

#[test]
fn a_list_is_of_one_table_or_of_all_for_people_and_for_programs() {
    let (client, table) = people();
    let other = client.new_table();
    build(&client, &table, "ByTown", &json!({"Keys": "Town", "Include": "*"}));
    build(&client, &other, "ByEmail", &json!({"Keys": "Email", "Unique": true}));
    let lines = |arguments: &[&str]| -> Vec<String> {
        done(&client, arguments).lines().map(str::to_owned).collect()
    };
    assert_eq!(lines(&["list"]).len(), 3, "a head and both");
    let upper = other.to_uppercase();
    let [head, line] = &lines(&["list", &upper])[..] else { panic!("one of {other}") };
    assert!(head.starts_with("TABLE") && head.contains("ENTRIES"), "{head}");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words, [&*other, "ByEmail", "Email", "yes", "Readable", "0", "0"]);
    let objects = lines(&["list", &table, "--json"]);
    let [object] = &objects[..] else { panic!("{objects:?}") };
    let object: Value = serde_json::from_str(object).unwrap();
    assert_eq!((&object["PartitionKey"], &object["RowKey"]), (&json!(table), &json!("ByTown")));
    assert_eq!((&object["Entries"], &object["Include"]), (&json!(20), &json!("*")));
}

/// Arguments can be seen by everyone on a machine; whoever gives a key there is told, once.
#[test]
fn a_connection_is_a_text_a_variable_a_file_or_a_signature() {
    let (client, table) = people();
    let text = connection(&client);
    let show = |connection: &str| {
        let launch = Launch::new().arg("index").args(["list", "-c", connection]);
        // What is given comes before the usual variable.
        ran(&launch.env("AZURE_STORAGE_CONNECTION_STRING", "nonsense").env("ELSEWHERE", &*text))
    };
    build(&client, &table, "ByTown", &json!({"Keys": "Town"}));
    let file = client.server().folder().join("connection");
    std::fs::write(&file, format!("{text}\n")).unwrap();
    let file = format!("@{}", file.display());
    for quiet in ["env:ELSEWHERE", &file] {
        let Ran { code, stdout, stderr } = show(quiet);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{quiet}");
        assert!(stdout.contains("ByTown"), "{stdout}");
    }
    let reads = Permissions::READ | Permissions::LIST;
    let spec = AccountSasSpec::new(reads, ResourceTypes::ALL, minutes_from_now(10));
    let token = spec.sign(ACCOUNT, &AccountKey::from_base64(KEY).unwrap());
    let url = format!("{}?{token}", client.base());
    for loud in [&text, &url] {
        let Ran { code, stdout, stderr } = show(loud);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("ByTown"), "{stdout}");
        assert_eq!(stderr.matches("the secret can be seen").count(), 1, "{stderr}");
        assert!(!stderr.contains(KEY) && !stderr.contains("sig="), "{stderr}");
    }
    let create = ["create", &table, "Again", "--keys", "Town", "-c", &text];
    let told = run(&client, &create);
    assert_eq!((told.code, told.stderr.matches("Warning").count()), (Some(0), 1), "{told:?}");
    for (wrong, why) in [("env:NOWHERE", "no variable NOWHERE"), ("@/nowhere", "cannot read")] {
        let Ran { code, stderr, .. } = show(wrong);
        assert!(code == Some(1) && stderr.contains(why), "{stderr}");
    }
}
