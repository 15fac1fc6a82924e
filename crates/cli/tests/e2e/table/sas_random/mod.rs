//! Random tokens, through HTTP, against an independent model of what they grant (`sas_model`).
//!
//! Each case makes a token, thinks of an operation in one of its disguises, and sends it. The answer is the model's:
//! done if the model allows it, one of the model's refusals otherwise. After each case the owner reads everything:
//! nothing has changed but what the model allows to change. No answer ever holds the text of a row that the token
//! cannot read. A failure tells its seed; `TAVOLA_TEST_SEED` runs it again, `TAVOLA_SAS_CASES` sets how many cases.

#![allow(
    clippy::print_stdout,
    reason = "the seed and the cases, for whoever wants to repeat a run"
)]

mod batches;
mod queries;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::Scheme;

use self::world::{TABLES, World, disguised_name, disguised_path, entity};
use crate::support::client::Request;
use crate::support::stream::{Route, trusting};
use crate::support::{
    Client, Credentials, Launch, Random, Response, Server, encode, http, now_ticks,
};
use crate::table::sas_model::generate::{FAR, Generator, loopback};
use crate::table::sas_model::grant::{
    Action, Circumstances, Key, Operation, Policy, Refusal, Token, refusals,
};

const CASES: usize = 240;
const CASES_OVER_TLS: usize = 40;
/// The policies of the tables change so often.
const CASES_BETWEEN_POLICIES: usize = 15;
const ACCOUNT: &str = "acct";
const KEYS: [&str; 2] = ["Zmlyc3Qga2V5", "c2Vjb25kIGtleQ=="];
/// A write to the secondary, whoever asks.
const READ_ONLY: Refusal = (403, "InsufficientAccountPermissions");

fn launch() -> Launch {
    let accounts = format!("{ACCOUNT}:{}:{}", KEYS[0], KEYS[1]);
    Launch::new().env("TAVOLA_ACCOUNTS", accounts).arg("--inMemoryPersistence")
}

fn cases(default: usize) -> usize {
    std::env::var("TAVOLA_SAS_CASES").map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn tokens_over_http() {
    let server = Arc::new(launch().start());
    Session::new(&server, Route::default(), Random::seed_or(1115)).run(cases(CASES));
}

#[test]
fn tokens_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Launch::new().args(["cert", "--out", "tls"]).command(folder.path()).output();
    assert!(made.expect("it runs").status.success());
    let tls = Some(trusting(&folder.path().join("tls/cert.pem")));
    let launch = launch().args(["--cert", "tls/cert.pem", "--key", "tls/key.pem"]);
    let server = Arc::new(Server::start_in(launch, folder));
    let route = Route { tls, ..Route::default() };
    Session::new(&server, route, Random::seed_or(443)).run(cases(CASES_OVER_TLS));
}

/// A server, its owner, and the choices.
struct Session {
    owner: Client,
    random: Random,
    keys: Vec<AccountKey>,
    policies: Vec<(String, Vec<Policy>)>,
    world: World,
    decisions: BTreeMap<String, usize>,
}

/// Someone with a token.
struct Holder<'a> {
    client: Client,
    token: &'a Token,
    at: &'a Circumstances,
}

impl Session {
    fn new(server: &Arc<Server>, route: Route, seed: u64) -> Self {
        println!("TAVOLA_TEST_SEED={seed}");
        let mut random = Random::new(seed);
        let keys = KEYS.map(|key| AccountKey::from_base64(key).expect("a key")).to_vec();
        let mut owner = Client::with(server, Credentials::Key(Scheme::SharedKey, keys[0].clone()));
        (owner.account, owner.root) = (ACCOUNT.to_owned(), ACCOUNT.to_owned());
        owner.route = route;
        World::fill(&owner, &mut random);
        let world = World::observe(&owner);
        Self { owner, random, keys, policies: Vec::new(), world, decisions: BTreeMap::new() }
    }

    fn run(mut self, cases: usize) {
        let tables = TABLES.map(str::to_owned);
        for case in 0..cases {
            let now = now_ticks().unix_seconds();
            let mut generator =
                Generator { random: &mut self.random, tables: &tables, distances: &FAR };
            if case % CASES_BETWEEN_POLICIES == 0 {
                self.policies = world::set_policies(&self.owner, &mut generator, now);
                self.world = World::observe(&self.owner);
            }
            let mut at = Circumstances {
                account: ACCOUNT.to_owned(),
                keys: self.keys.clone(),
                now,
                client: Ipv4Addr::LOCALHOST,
                https: self.owner.route.tls.is_some(),
                policies: self.policies.clone(),
            };
            if cfg!(target_os = "linux") {
                at.client = loopback(generator.random);
            }
            let token = generator.token(&at);
            let operation = generator.operation(&token);
            println!("case {case}: {operation:?} by {:?} from {}", token.pairs, at.client);
            self.case(case, &Holder::new(&self.owner, &token, &at), &operation);
            self.check_forged(&token, &at);
        }
        println!("{:?}", self.decisions);
        // Cases that are all refused, or all allowed, would prove little.
        let allowed = self.decisions.get("allowed").copied().unwrap_or(0);
        assert!((cases / 8..cases * 7 / 8).contains(&allowed), "{:?}", self.decisions);
    }

    fn case(&mut self, case: usize, holder: &Holder<'_>, operation: &Operation) {
        match (operation, self.random.below(12)) {
            (Operation::Entity { key, .. }, 0..4) => self.batch(holder, key),
            (Operation::Entity { table, key, .. }, 4) => self.odd_methods(holder, table, key),
            (_, 11) => self.preflight(holder),
            (Operation::Query { table }, _) => self.query(holder, operation, table),
            (Operation::Entity { table, action, key }, _) => {
                self.entity(holder, operation, table, *action, key);
            }
            _ => self.table_or_service(case, holder, operation),
        }
    }

    /// The same token with another signature, now that the service may know the token.
    fn check_forged(&self, token: &Token, at: &Circumstances) {
        let mut token = token.clone();
        for (name, value) in &mut token.pairs {
            if name == "sig" {
                *value = AccountKey::from_bytes(b"a key of nobody").sign("forged").to_base64();
            }
        }
        let holder = Holder::new(&self.owner, &token, at);
        let answer = holder.request(&mut Random::new(0), &holder.client, "GET", "/Alpha()").send();
        assert!([401, 403].contains(&answer.status), "{answer:?}");
    }

    /// One operation on one row.
    fn entity(
        &mut self,
        holder: &Holder<'_>,
        operation: &Operation,
        table: &str,
        action: Action,
        key: &Key,
    ) {
        let refused = holder.refusals(operation);
        let secondary = self.random.one_in(8);
        let client = holder.client(secondary);
        let body = entity(&mut self.random);
        let answer = self.entity_request(holder, &client, table, action, key, &body).send();
        self.scan(holder, &answer);
        let is_write = action != Action::Get;
        if self.note_refusal(&answer, &refused, secondary && is_write) {
            return;
        }
        let mut expected = self.world.secrets();
        let stored = (table_name(table), key.clone());
        let exists = expected.contains_key(&stored);
        let status = match action {
            Action::Get if exists => {
                assert!(answer.text().contains(&expected[&stored]), "{answer:?}");
                200
            }
            Action::Insert if exists => 409,
            Action::Get | Action::Update | Action::Delete if !exists => 404,
            Action::Delete => {
                expected.remove(&stored);
                204
            }
            _ => {
                expected.insert(stored, text(&body, "Secret"));
                if action == Action::Insert && answer.status == 201 { 201 } else { 204 }
            }
        };
        assert_eq!(answer.status, status, "{answer:?}");
        self.check_changed(&expected);
    }

    fn entity_request<'c>(
        &mut self,
        holder: &Holder<'_>,
        client: &'c Client,
        table: &str,
        action: Action,
        key: &Key,
        body: &Value,
    ) -> Request<'c> {
        let random = &mut self.random;
        let path = disguised_path(random, table, key);
        let mut body = body.clone();
        if action == Action::Insert {
            (body["PartitionKey"], body["RowKey"]) = (json!(key.0), json!(key.1));
            let path = format!("/{}", disguised_name(random, table));
            return holder.request(random, client, "POST", &path).json(&body);
        }
        if random.one_in(4) {
            // The keys in the URL count, whatever the body says.
            (body["PartitionKey"], body["RowKey"]) = (json!("a"), json!("5"));
        }
        let verb = match action {
            Action::Get => "GET",
            Action::Delete => "DELETE",
            _ => random.pick(&["PUT", "PATCH", "MERGE"]),
        };
        let request = if action != Action::Get && random.one_in(3) {
            holder.request(random, client, "POST", &path).header("X-HTTP-Method", verb)
        } else {
            holder.request(random, client, verb, &path)
        };
        let stored = self.world.row(table, key).map(|row| row.etag.as_str());
        let if_match = stored.filter(|_| random.one_in(2)).unwrap_or("*");
        match action {
            Action::Get => request,
            Action::Delete => request.if_match(if_match),
            Action::Update => request.if_match(if_match).json(&body),
            _ => request.json(&body),
        }
    }

    /// What is not about rows.
    fn table_or_service(&mut self, case: usize, holder: &Holder<'_>, operation: &Operation) {
        let refused = holder.refusals(operation);
        let (scratch, made) = (format!("scratch{case}"), format!("made{case}"));
        let is_delete = matches!(operation, Operation::DeleteTable);
        if is_delete && refused.is_empty() {
            self.owner.create_table(&scratch).expect(204);
        }
        let (method, path, body, status) = match operation {
            Operation::GetServiceProperties => ("GET", PROPERTIES.to_owned(), None, 200),
            Operation::SetServiceProperties => {
                ("PUT", PROPERTIES.to_owned(), Some(cors(case)), 202)
            }
            Operation::GetServiceStats => {
                ("GET", "/?restype=service&comp=stats".to_owned(), None, 200)
            }
            Operation::ListTables => {
                let all = ["/Tables", "/Tables()", "/Tables('Alpha')", "/Tables('BETA')"];
                ("GET", (*self.random.pick(&all)).to_owned(), None, 200)
            }
            Operation::CreateTable => {
                ("POST", "/Tables".to_owned(), Some(json!({"TableName": made}).to_string()), 201)
            }
            // A table that matters, where it must not be possible.
            Operation::DeleteTable if refused.is_empty() => {
                ("DELETE", format!("/Tables('{scratch}')"), None, 204)
            }
            Operation::DeleteTable => ("DELETE", "/Tables('ALPHA')".to_owned(), None, 204),
            Operation::GetAcl => ("GET", "/Alpha?comp=acl".to_owned(), None, 200),
            _ => ("PUT", "/Alpha?comp=acl".to_owned(), Some(String::new()), 204),
        };
        let is_stats = matches!(operation, Operation::GetServiceStats);
        let secondary = is_stats || self.random.one_in(8);
        let client = holder.client(secondary);
        let mut request = holder.request(&mut self.random, &client, method, &path);
        if let Some(body) = body {
            let content_type =
                if path == "/Tables" { "application/json" } else { "application/xml" };
            request = request.body(content_type, body);
        }
        let answer = request.send();
        self.scan(holder, &answer);
        if !self.note_refusal(&answer, &refused, secondary && method != "GET") {
            assert_eq!(answer.status, status, "{answer:?}");
            if matches!(operation, Operation::CreateTable) {
                self.owner.drop_table(&made).expect(204);
            }
            let after = World::observe(&self.owner);
            let before = self.world.clone();
            let is_set = matches!(operation, Operation::SetServiceProperties);
            assert_eq!(after != before, is_set, "{before:?}\n{after:?}");
            let before = if is_set { before.with_properties_of(&after) } else { before };
            assert_eq!(after, before);
            self.world = after;
        } else if is_delete && refused.is_empty() {
            self.owner.drop_table(&scratch).expect(204);
        }
    }

    /// Methods that are no operation: never done, never told.
    fn odd_methods(&mut self, holder: &Holder<'_>, table: &str, key: &Key) {
        let path = disguised_path(&mut self.random, table, key);
        let target = holder.target(&mut self.random, &path);
        let (method, headers) = *self.random.pick(&[
            ("HEAD", ""),
            ("get", ""),
            ("DELETE", "X-HTTP-Method: GET\r\n"),
            ("GET", "X-HTTP-Method: DELETE\r\n"),
            ("POST", "X-HTTP-Method: GET\r\n"),
            ("POST", "X-HTTP-Method: delete\r\n"),
            ("POST", "X-HTTP-Method: MERGE\r\nX-HTTP-Method: DELETE\r\n"),
            ("TRACE", ""),
        ]);
        let head = format!(
            "{method} /{ACCOUNT}{target} HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\n{headers}\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let mut stream =
            holder.client.route.connect(self.owner.server().address()).expect("a connection");
        std::io::Write::write_all(&mut stream, head.as_bytes()).expect("it is sent");
        let mut raw = Vec::new();
        // A server may end TLS without saying so.
        let _ = stream.read_to_end(&mut raw);
        let raw = String::from_utf8_lossy(&raw);
        let status = http::between(&raw, "HTTP/1.1 ", " ").and_then(|status| status.parse().ok());
        assert!(status.is_some_and(|status: u16| status >= 400), "{method} {headers}{raw}");
        self.scan_text(holder, &raw);
        self.check_unchanged();
    }

    /// A preflight has no credentials, so that a token neither helps nor harms.
    fn preflight(&mut self, holder: &Holder<'_>) {
        let stranger = self.owner.anonymous();
        let path = format!("/{}", TABLES[0]);
        let ask = |request: Request<'_>| {
            request
                .header("Origin", "https://a.example")
                .header("Access-Control-Request-Method", "GET")
                .send()
        };
        let with = ask(holder.request(&mut self.random, &holder.client, "OPTIONS", &path));
        let without = ask(stranger.request("OPTIONS", &path));
        assert_eq!((with.status, with.code()), (without.status, without.code()));
        self.scan(holder, &with);
        self.check_unchanged();
    }

    /// Whether the answer is a refusal, which it must be if there is a reason, and then one of the reasons.
    fn note_refusal(
        &mut self,
        answer: &Response,
        refused: &BTreeSet<Refusal>,
        is_read_only: bool,
    ) -> bool {
        if refused.is_empty() && !is_read_only {
            *self.decisions.entry("allowed".to_owned()).or_default() += 1;
            return false;
        }
        let code = answer.code().unwrap_or_default();
        let found = (answer.status, code.as_str());
        let is_expected = refused.contains(&found) || (is_read_only && found == READ_ONLY);
        assert!(is_expected, "{found:?}, not one of {refused:?}: {answer:?}");
        *self.decisions.entry(code).or_default() += 1;
        self.check_unchanged();
        true
    }

    #[track_caller]
    fn check_unchanged(&self) {
        assert_eq!(World::observe(&self.owner), self.world);
    }

    /// The rows are these, and all else is as it was.
    #[track_caller]
    fn check_changed(&mut self, secrets: &BTreeMap<(String, Key), String>) {
        let after = World::observe(&self.owner);
        assert_eq!(&after.secrets(), secrets);
        assert_eq!(after, self.world.clone().with_rows_of(&after));
        self.world = after;
    }

    /// Nothing that the token cannot read is in the answer.
    fn scan(&self, holder: &Holder<'_>, answer: &Response) {
        let body = String::from_utf8_lossy(&answer.body);
        self.scan_text(holder, &format!("{} {:?} {body}", answer.reason, answer.headers));
    }

    fn scan_text(&self, holder: &Holder<'_>, text: &str) {
        for ((table, key), row) in &self.world.rows {
            if text.contains(&row.secret) {
                let read = Operation::Entity {
                    table: table.clone(),
                    action: Action::Get,
                    key: key.clone(),
                };
                let refused = holder.refusals(&read);
                assert!(
                    refused.is_empty(),
                    "{table} {key:?} is told in spite of {refused:?}: {text}"
                );
            }
        }
    }
}

const PROPERTIES: &str = "/?restype=service&comp=properties";

fn cors(case: usize) -> String {
    format!(
        "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>https://case{case}.example\
         </AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders></AllowedHeaders>\
         <ExposedHeaders></ExposedHeaders><MaxAgeInSeconds>{case}</MaxAgeInSeconds></CorsRule></Cors>\
         </StorageServiceProperties>"
    )
}

/// The name under which the table was created.
fn table_name(table: &str) -> String {
    let name = TABLES.iter().find(|name| name.eq_ignore_ascii_case(table));
    (*name.expect("a table")).to_owned()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().expect("a text").to_owned()
}

impl<'a> Holder<'a> {
    fn new(owner: &Client, token: &'a Token, at: &'a Circumstances) -> Self {
        let mut client = owner.anonymous();
        client.route.source = cfg!(target_os = "linux").then_some(at.client);
        Self { client, token, at }
    }

    fn refusals(&self, operation: &Operation) -> BTreeSet<Refusal> {
        refusals(self.token, self.at, operation)
    }

    /// The client of the primary or the secondary.
    fn client(&self, secondary: bool) -> Client {
        let mut client = self.client.as_other(Credentials::Nobody);
        if secondary {
            client.root = format!("{ACCOUNT}-secondary");
        }
        client
    }

    fn request<'c>(
        &self,
        random: &mut Random,
        client: &'c Client,
        method: &str,
        path: &str,
    ) -> Request<'c> {
        client.request(method, self.target(random, path))
    }

    /// The path with the token.
    fn target(&self, random: &mut Random, path: &str) -> String {
        let mut target = path.to_owned();
        for (name, value) in &self.token.pairs {
            target.push(if target.contains('?') { '&' } else { '?' });
            // A name may be encoded like a value.
            match random.one_in(10) {
                true => target.extend(name.bytes().map(|byte| format!("%{byte:02x}"))),
                false => target.push_str(name),
            }
            target.push('=');
            target.push_str(&encode(value));
        }
        target
    }
}
