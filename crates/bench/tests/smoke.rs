//! The program as it is called, against its own bare server. What it measures is not looked at, only that it does.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

struct Bare {
    process: Child,
    url: String,
}

impl Bare {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tavola-bench"))
            .args(["bare", "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { process, url }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(bare: &Bare, workload: &str, more: &[&str]) -> std::process::Output {
    let target = format!("same={}/devstoreaccount1", bare.url);
    Command::new(env!("CARGO_BIN_EXE_tavola-bench"))
        .args(["run", "--target", &target, "--bare", &bare.url, "--workloads", workload])
        .args(["--seconds", "0.2", "--rounds", "2", "--connections", "4"])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_run_measures_its_targets_in_turn_and_writes_them_down() {
    let bare = Bare::start();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("out.json");
    let pid = format!("bare={}", bare.process.id());
    // Nothing is loaded: the bare server takes no transactions.
    let more = ["--json", json.to_str().unwrap(), "--pid", &pid, "--entities", "0"];
    let output = run(&bare, "insert", &more);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("p99").count(), 5, "two rounds of two targets and a heading: {text}");
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    for (row, name) in result["rows"].as_array().unwrap().iter().zip(["same", "bare"]) {
        assert_eq!(
            (row["target"].as_str(), row["workload"].as_str()),
            (Some(name), Some("insert"))
        );
        assert!(row["operations"].as_u64().unwrap() > 0, "{row}");
        assert!(row["p50_micros"].as_f64().unwrap() > 0.0, "{row}");
    }
    let cpu = |row: usize| &result["rows"][row]["server_cpu_micros_per_operation"];
    assert!(
        cpu(0).is_null() && cpu(1).is_f64(),
        "only the bare server's process was named: {result}"
    );
    assert_eq!(result["ratios"][0].as_f64(), Some(1.0));
}

#[test]
fn answers_that_are_not_what_was_asked_for_fail_the_run() {
    let bare = Bare::start();
    // The bare server takes a transaction without doing it, which the load must notice.
    let output = run(&bare, "get", &["--entities", "100"]);
    assert!(!output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("loading same"), "{text}");
}
