//! In the place of Azurite's image: what Testcontainers, .NET Aspire, Compose and CI start, wait for and ask.
//!
//! Each command line and each expression below was looked up in the source that is named beside it; `docs/clients.md`
//! lists the same. There is no Docker here: the names, variables and entry point that the Dockerfile gives the image are
//! laid out in a folder, and the binary is started through them. Paths of the container are paths of that folder, and
//! ports are free ones, so that tests can run at the same time. What happens outside the container (mapped ports, the
//! engine's health states) is not tested.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use crate::support::stream::trusting;
use crate::support::{ACCOUNT, Client, KEY, Launch, Server};

/// A tool that starts Azurite's image.
struct Tool {
    name: &'static str,
    /// Repository and file.
    source: &'static str,
    starts: Start,
    /// What must be found in the log before the tool goes on. For a tool without, ports decide.
    expressions: &'static [&'static str],
}

/// What a tool tells the container engine to run.
enum Start {
    /// In place of the image's entry point.
    Program(&'static str),
    /// After the image's entry point.
    Command(&'static str),
    /// Neither: the image's own command.
    Image,
}

const TOOLS: [Tool; 14] = [
    Tool {
        name: "Testcontainers for .NET",
        source: "testcontainers-dotnet src/Testcontainers.Azurite/AzuriteBuilder.cs",
        starts: Start::Program(
            "azurite --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0",
        ),
        expressions: &PHRASES,
    },
    Tool {
        name: "Testcontainers for .NET, in memory",
        source: "testcontainers-dotnet src/Testcontainers.Azurite/AzuriteBuilder.cs",
        starts: Start::Program(
            "azurite --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0 \
             --inMemoryPersistence --extentMemoryLimit 64",
        ),
        expressions: &PHRASES,
    },
    Tool {
        name: "Testcontainers for Node.js",
        source: "testcontainers-node packages/modules/azurite/src/azurite-container.ts",
        starts: Start::Program(
            "azurite --blobHost 0.0.0.0 --blobPort 10000 --queueHost 0.0.0.0 --queuePort 10001 \
             --tableHost 0.0.0.0 --tablePort 10002",
        ),
        expressions: &LINES,
    },
    Tool {
        name: "Testcontainers for Node.js, in memory, any version",
        source: "testcontainers-node packages/modules/azurite/src/azurite-container.ts",
        starts: Start::Program(
            "azurite --blobHost 0.0.0.0 --blobPort 10000 --queueHost 0.0.0.0 --queuePort 10001 \
             --tableHost 0.0.0.0 --tablePort 10002 --inMemoryPersistence --extentMemoryLimit 64 \
             --skipApiVersionCheck",
        ),
        expressions: &LINES,
    },
    Tool {
        name: "Testcontainers for Go",
        source: "testcontainers-go modules/azure/azurite/azurite.go",
        starts: Start::Program(
            "azurite --blobHost 0.0.0.0 --blobPort 10000 --queueHost 0.0.0.0 --queuePort 10001 \
             --tableHost 0.0.0.0 --tablePort 10002",
        ),
        expressions: &[],
    },
    Tool {
        name: "Testcontainers for Go, tables alone, in memory",
        source: "testcontainers-go modules/azure/azurite/azurite.go",
        starts: Start::Program(
            "azurite --tableHost 0.0.0.0 --tablePort 10002 --inMemoryPersistence \
             --extentMemoryLimit 64.000000",
        ),
        expressions: &[],
    },
    Tool {
        name: "Testcontainers for Java",
        source: "testcontainers-java \
                 modules/azure/src/main/java/org/testcontainers/azure/AzuriteContainer.java",
        starts: Start::Command(
            "azurite --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0",
        ),
        expressions: &[],
    },
    Tool {
        name: "Testcontainers for Python",
        source: "testcontainers-python src/testcontainers/community/azurite/__init__.py",
        starts: Start::Image,
        expressions: &[],
    },
    Tool {
        name: ".NET Aspire",
        source: "aspire src/Aspire.Hosting.Azure.Storage/AzureStorageExtensions.cs",
        starts: Start::Command(
            "azurite -l /data --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0 \
             --disableProductStyleUrl --skipApiVersionCheck",
        ),
        expressions: &[],
    },
    Tool {
        name: ".NET Aspire, with a flag that it gives by itself",
        source: "aspire src/Aspire.Hosting.Azure.Storage/AzureStorageExtensions.cs",
        starts: Start::Command(
            "azurite -l /data --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0 \
             --disableProductStyleUrl --skipApiVersionCheck --skipApiVersionCheck",
        ),
        expressions: &[],
    },
    Tool {
        name: "the command of Azurite's image",
        source: "Azurite Dockerfile",
        starts: Start::Command(
            "azurite -l /data --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0",
        ),
        expressions: &PHRASES,
    },
    Tool {
        name: "the table program of Azurite",
        source: "Azurite package.json",
        starts: Start::Command("azurite-table -l /data --tableHost 0.0.0.0 --tablePort 10002"),
        expressions: &[],
    },
    Tool {
        name: "flags alone, in a folder that is not there",
        source: "Azurite src/common/Environment.ts",
        starts: Start::Command(
            "--silent --location /workspace --debug /workspace/debug.log --loose",
        ),
        expressions: &[],
    },
    Tool {
        name: "a verb",
        source: "Dockerfile",
        starts: Start::Command("serve --in-memory"),
        expressions: &[],
    },
];

/// The services that Azurite has, each with its expression at the same index below.
const SERVICES: [&str; 3] = ["Blob", "Queue", "Table"];
/// Regular expressions that are looked for anywhere in the log.
const PHRASES: [&str; 3] = [
    "Blob service is successfully listening",
    "Queue service is successfully listening",
    "Table service is successfully listening",
];
/// Regular expressions that a line of the log is tested with.
const LINES: [&str; 3] = [
    ".*Blob service is successfully listening.*",
    ".*Queue service is successfully listening.*",
    ".*Table service is successfully listening.*",
];

/// What an ASP.NET Core health check asks of tables (`AspNetCore.Diagnostics.HealthChecks`,
/// `src/HealthChecks.Azure.Data.Tables/AzureTableServiceHealthCheck.cs`); Aspire's client integration registers it.
const HEALTH_FILTER: &str = "false";

/// Every tool starts the image with its own command line, finds its expressions in the log as far as the services are
/// served, reaches the tables, and can stop it.
#[test]
#[expect(clippy::print_stdout, reason = "a failed test tells which tool it was")]
fn tools_start_it_as_they_start_azurite() {
    let image = Image::read();
    for tool in &TOOLS {
        println!("{} ({})", tool.name, tool.source);
        let mut launch = image.launch(&tool.starts);
        if tool.name.ends_with("Python") {
            launch = launch.env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"));
        }
        let server = Arc::new(launch.start());
        assert_expressions(tool, &server.lines());
        assert!(server.address().ip().is_unspecified(), "{}: {}", tool.name, server.address());

        let client = Client::new(&server);
        let table = client.new_table();
        client.get("/?restype=service&comp=properties").send().expect(200);
        client.get(format!("/Tables?$filter={HEALTH_FILTER}")).send().expect(200);
        client.query(&table, &[("$filter", HEALTH_FILTER)]).send().expect(200);

        server.ask_to_stop();
        assert!(server.wait().success(), "{}: {}", tool.name, server.log());
    }
}

/// An expression matches when its service is served, and not before: a tool that waits for all three must not go on
/// without them. Queue and blob join by appearing in the connection string.
fn assert_expressions(tool: &Tool, lines: &[String]) {
    let served = served(lines);
    for (expression, service) in tool.expressions.iter().zip(SERVICES) {
        let is_found = lines.iter().any(|line| is_match(expression, line));
        let is_served = served.contains(&service);
        assert_eq!(is_found, is_served, "{}: {expression} in {lines:#?}", tool.name);
    }
    assert!(served.contains(&"Table"), "{lines:#?}");
}

/// The services that the connection string names.
fn served(lines: &[String]) -> Vec<&'static str> {
    let is_served =
        |service: &&str| lines.iter().any(|line| line.contains(&format!(";{service}Endpoint=")));
    SERVICES.into_iter().filter(is_served).collect()
}

/// Matches the expressions of these tools, which are plain words, with or without `.*` at both ends.
fn is_match(expression: &str, line: &str) -> bool {
    let words = expression.trim_start_matches(".*").trim_end_matches(".*");
    assert!(words.chars().all(|c| c.is_ascii_alphabetic() || c == ' '), "{expression}");
    line.contains(words)
}

/// A shell in the image, as some Compose files have it. It ends with the service, so the tool's signal arrives.
#[test]
fn a_shell_starts_it_too() {
    let image = Image::read();
    let line = "exec azurite --location ./data --tableHost 0.0.0.0";
    let launch = image.run(["/bin/sh", "-c", line].map(str::to_owned));
    let server = Arc::new(launch.start());
    Client::new(&server).new_table();
    server.ask_to_stop();
    assert!(server.wait().success(), "{}", server.log());
}

/// The image has a program for every service that is served, and for no other: a tool that wants a service which is
/// not there fails at the start.
#[test]
fn programs_are_those_of_the_services_that_are_served() {
    let image = Image::read();
    let server = image.launch(&Start::Image).start();
    let of_services =
        served(&server.lines()).into_iter().map(|name| format!("azurite-{}", name.to_lowercase()));
    let expected: Vec<_> = ["azurite".to_owned()].into_iter().chain(of_services).collect();
    assert_eq!(image.programs, expected);
}

/// The image's health check, when the service was started as Azurite.
#[test]
fn the_health_check_of_the_image_answers() {
    let image = Image::read();
    let start =
        Start::Program("azurite --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0");
    let server = image.launch(&start).start();
    let port = server.admin_address().expect("an admin port").port();
    let health = |port: u16| {
        let launch = image.run(image.health.clone()).env("TAVOLA_ADMIN_PORT", port.to_string());
        launch.command(server.folder()).output().expect("it runs")
    };
    let answer = health(port);
    assert!(answer.status.success(), "{}", text(&answer));
    server.kill();
    assert!(!health(port).status.success());
}

/// TLS as the modules for Java and Node.js ask for it: certificate and key as PEM files at the container's root.
#[test]
fn tools_bring_certificates() {
    let image = Image::read();
    for (certificate, key) in [("cert.pem", "key.pem"), ("azurite-cert.pem", "azurite-key.pem")] {
        let folder = tempfile::tempdir().expect("a folder");
        let made = image.launch(&Start::Command("cert --out tls")).command(folder.path()).output();
        assert!(made.expect("it runs").status.success());
        for (made, wanted) in [("cert.pem", certificate), ("key.pem", key)] {
            let made = folder.path().join("tls").join(made);
            std::fs::copy(made, folder.path().join(wanted)).expect("a copy");
        }
        let tls = trusting(&folder.path().join(certificate));
        let command = format!(
            "azurite --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0 \
             --cert ./{certificate} --key ./{key}"
        );
        let words = command.split_whitespace().map(str::to_owned);
        let server = Arc::new(Server::start_in(image.run(image.after_entry_point(words)), folder));
        let mut client = Client::new(&server);
        client.route.tls = Some(tls);
        client.new_table();
    }
}

/// The other form that they offer is refused with a word that helps, and the password is not shown.
#[test]
fn a_pfx_file_is_refused_by_name() {
    let image = Image::read();
    let folder = tempfile::tempdir().expect("a folder");
    let start = Start::Command("azurite --tableHost 0.0.0.0 --cert /cert.pfx --pwd secret");
    let output = image.launch(&start).command(folder.path()).output().expect("it runs");
    assert!(!output.status.success());
    assert!(text(&output).contains("PFX"), "{}", text(&output));
    assert!(!text(&output).contains("secret"), "{}", text(&output));
}

/// The page names the source and the expressions of every tool, and says which services are not there yet.
#[test]
fn the_page_says_what_is_tested() {
    let page = std::fs::read_to_string(root().join("docs/clients.md")).expect("a page");
    for tool in &TOOLS {
        let (_, file) = tool.source.split_once(' ').unwrap_or(("", tool.source));
        assert!(page.contains(file), "{} is not in the page", tool.source);
        for expression in tool.expressions {
            assert!(page.contains(expression), "{expression} is not in the page");
        }
    }
    let server = Image::read().launch(&Start::Image).start();
    let served = served(&server.lines());
    for service in SERVICES {
        let says_not_yet = page.contains(&format!("| {service} | not yet |"));
        assert_ne!(says_not_yet, served.contains(&service), "the page is wrong about {service}");
    }
}

/// What the Dockerfile makes of the image, as far as it decides how the service starts.
struct Image {
    /// Names of the service in the image, beside its own.
    programs: Vec<String>,
    variables: Vec<(String, String)>,
    entry_point: PathBuf,
    command: Vec<String>,
    health: Vec<String>,
}

impl Image {
    fn read() -> Self {
        let text = std::fs::read_to_string(root().join("Dockerfile")).expect("a Dockerfile");
        let line = |start: &str| {
            text.lines()
                .find_map(|line| line.trim_start().strip_prefix(start))
                .unwrap_or_else(|| panic!("no {start} in the Dockerfile"))
        };
        let words = |start: &str| -> Vec<String> {
            serde_json::from_str(line(start)).unwrap_or_else(|_| panic!("{start} is no list"))
        };
        let programs = text.split("ln -s tavola /usr/local/bin/").skip(1);
        let programs = programs.filter_map(|rest| rest.split_whitespace().next());
        let (copied, copy) = line("COPY docker/").split_once(' ').expect("a source and a target");
        let entry_point = words("ENTRYPOINT ").concat();
        assert_eq!(copy, format!("/usr/local/bin/{entry_point}"));
        let health = line("HEALTHCHECK ").split_once("CMD ").expect("a command").1;
        Self {
            programs: programs.map(str::to_owned).collect(),
            variables: line("ENV ")
                .split_whitespace()
                .map(|pair| pair.split_once('=').expect("a pair"))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            entry_point: root().join("docker").join(copied),
            command: words("CMD "),
            health: serde_json::from_str(health).expect("a list"),
        }
    }

    /// What the container engine would start.
    fn launch(&self, start: &Start) -> Launch {
        let words = |line: &str| line.split_whitespace().map(in_folder).collect::<Vec<_>>();
        match start {
            Start::Program(line) => self.run(words(line)),
            Start::Command(line) => self.run(self.after_entry_point(words(line))),
            Start::Image => self.run(self.after_entry_point(self.command.clone())),
        }
    }

    fn after_entry_point(&self, words: impl IntoIterator<Item = String>) -> Vec<String> {
        let entry_point = self.entry_point.display().to_string();
        [entry_point].into_iter().chain(words).collect()
    }

    /// Runs these words where the programs of the image are found, with its variables. The program that they start is
    /// the process that gets signals, as in a container.
    fn run(&self, words: impl IntoIterator<Item = String>) -> Launch {
        let links = self.programs.iter().map(|name| format!("ln -sf \"$1\" bin/{name}\n"));
        let script = format!(
            "mkdir -p bin && ln -sf \"$1\" bin/tavola\n{}shift\nPATH=\"$PWD/bin:$PATH\"\nexec \"$@\"",
            links.collect::<String>()
        );
        let mut launch = Launch::new().wrap(["sh", "-c", &script, "sh"]);
        for word in words {
            launch = launch.arg(word);
        }
        for (name, value) in &self.variables {
            launch = launch.env(name, in_folder(value));
        }
        // Free ports: others run tests on this machine.
        launch.env("TAVOLA_ADMIN_PORT", "0").env("TAVOLA_PORT", "0")
    }
}

/// A path of the container, in the folder that stands for it.
fn in_folder(word: &str) -> String {
    if word.starts_with('/') { format!(".{word}") } else { word.to_owned() }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}
