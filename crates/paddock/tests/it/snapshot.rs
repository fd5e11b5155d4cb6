//! Snapshots of the output of every command that shows something, and of its errors, against a
//! server with sample data.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use serde_json::{Map, Value};

use super::fake;
use super::process::Client;

/// Commands that print tables, details or notes.
const COMMANDS: &[&str] = &[
    "whoami",
    "org show",
    "org members",
    "org invite --expires-in 7d",
    "org invite --list",
    "org invite --check kf7wq2-x9m4tz",
    "cluster list",
    "cluster show prod",
    "cluster show far",
    "cluster token far",
    "deployment list",
    "deployment show web",
    "deployment explain web",
    "deploy nginx:1 --name web --replicas 4 --dry-run",
    "queue",
    "events",
    "template list",
    "template show web-shop@1.4.0",
    "template diff web-shop 1.4.0 1.5.0",
    "template impact web-shop 1.4.0 1.5.0",
    "template executors",
    "env list",
    "env show shop",
    "env plan shop --set replicas=3",
    "env plan shop --set replicas=3 --all",
    "env drift shop",
    "graph environment/shop",
    "search shop web",
    "service kinds",
    "service kafka list",
    "service kafka show orders",
    "service-account list",
    "service-account show importer",
    "service-account create importer",
    "quota",
    "admin quota set acme cpu=8",
    "admin quota show acme",
    "admin quota list",
    "admin instance list",
    "admin instance show orders",
    "admin denied-owner list",
    "admin scaling",
];

#[test]
fn snapshot_of_every_table_is_current() {
    let samples = serde_json::from_str(include_str!("snapshot/samples.json")).unwrap();
    let client = Client::logged_in(&serve(samples));
    let intro = "Output of the commands that show something, with sample data. Lines with > go to \
                 stderr.\n";
    let outputs = COMMANDS.iter().map(|line| output(&client, line));
    let outputs = outputs.inspect(|text| assert!(!text.contains("> error:"), "{text}"));
    testing::assert_snapshot("tables.txt", &outputs.fold(intro.to_owned(), |all, one| all + &one));
}

/// Command lines that fail, by cause.
const FAILURES: &[(&str, &[&str])] = &[
    (
        "Invalid command line",
        &[
            "",
            "cluster",
            "clusters list",
            "deploy",
            "deploy nginx:1 --env A",
            "deployment scale web 0",
            "cluster create prod --node a,cpu=4",
            "cluster list --limit 0",
            "cluster list --server 127.0.0.1:8001",
            "org invite --expires-in soon",
            "events --since yesterday",
            "env extend shop never-ever",
            "template diff web-shop 1.4.0",
            "service list",
            "completions cmd",
            "openapi rest",
        ],
    ),
    (
        "Unknown names",
        &[
            "cluster show none",
            "deployment show none",
            "deployment show twin",
            "env show none",
            "env plan new",
            "env plan new --template none",
            "template show none@1.0.0",
            "template publish none",
            "service none list",
            "service kafka show none",
            "service-account show none",
            "events --subject web",
        ],
    ),
];

/// Responses of the server to `paddock cluster list`.
const RESPONSES: &[(&str, &str, &str)] = &[
    ("401 Unauthorized", "", r#"{"detail":"The token is invalid or expired; log in again."}"#),
    ("403 Forbidden", "", r#"{"detail":"Only an owner of the organization may do this."}"#),
    ("404 Not Found", "", r#"{"title":"Not Found"}"#),
    ("400 Bad Request", "", INVALID),
    ("400 Bad Request", "", INVALID_TWICE),
    ("429 Too Many Requests", "retry-after: 12\r\n", r#"{"detail":"Too many requests."}"#),
    ("500 Internal Server Error", "", r#"{"detail":"Internal error.","request_id":"9m4e2mr0"}"#),
    ("502 Bad Gateway", "", "<html>"),
    ("503 Service Unavailable", "", r#"{"detail":"The database is unavailable; try again."}"#),
    ("307 Temporary Redirect", "location: https://paddock.example.com/\r\n", ""),
    ("200 OK", "", "<html>"),
];
const INVALID: &str = r#"{"detail":"capacity.cpu: must not be negative.",
    "errors":[{"field":"capacity.cpu","detail":"must not be negative"}]}"#;
const INVALID_TWICE: &str = r#"{"detail":"2 fields are invalid.",
    "errors":[{"field":"capacity.cpu","detail":"must not be negative"},
              {"field":"name","detail":"must not be empty"}]}"#;

#[test]
fn snapshot_of_client_errors_is_current() {
    let mut samples: Map<String, Value> =
        serde_json::from_str(include_str!("snapshot/samples.json")).unwrap();
    let deployments = samples["GET /api/v1/deployments"]["items"].as_array_mut().unwrap();
    for deployment in deployments.iter_mut() {
        deployment["name"] = "twin".into();
    }
    let client = Client::logged_in(&serve(samples));
    let mut text = String::from("Errors and hints of the command-line client.\n");
    for (title, lines) in FAILURES {
        write!(text, "\n== {title} ==\n").unwrap();
        text.extend(lines.iter().map(|line| output(&client, line)));
    }
    text += "\n== Connection and responses ==\n";
    text += &output(&Client::new(&client.server), "whoami");
    text += &output(&Client::logged_in("http://127.0.0.1:1"), "cluster list");
    for (status, headers, body) in RESPONSES {
        // Some responses are retried.
        let script = (0..3).map(|_| fake::answer(status, headers, body)).collect();
        let client = Client::logged_in(&fake::Fake::start(script).address);
        write!(text, "\nServer responds with {status}{}", output(&client, "cluster list")).unwrap();
    }
    testing::assert_snapshot("client-errors.txt", &text);
}

/// A command line and its output.
fn output(client: &Client, line: &str) -> String {
    let outcome = client.run(line);
    let note = |line: &str| format!("> {line}").trim_end().to_owned() + "\n";
    let notes: String = outcome.stderr.lines().map(note).collect();
    let command = format!("$ paddock {line}");
    let text = format!("\n{}\n{}{notes}", command.trim_end(), outcome.stdout);
    text.replace(&client.server, "http://127.0.0.1:8001")
}

/// Starts a server that answers with `samples`, keyed by method and path.
fn serve(samples: Map<String, Value>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let request = fake::read(&connection);
            let fake::Act::Answer(answer) = answer(&samples, &request) else { continue };
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    address
}

/// The sample at the path, or the item with the id at the end of the path.
fn answer(samples: &Map<String, Value>, request: &str) -> fake::Act {
    let (method, rest) = request.split_once(' ').unwrap();
    let target = rest.split_whitespace().next().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let key = format!("{} {path}", method.to_uppercase());
    if let Some(sample) = samples.get(&key) {
        return fake::json("200 OK", &named(sample.clone(), query).to_string());
    }
    let (list, id) = key.rsplit_once('/').unwrap();
    let items = samples.get(list).and_then(|list| list["items"].as_array());
    match items.into_iter().flatten().find(|item| item["id"] == id) {
        Some(item) => fake::json("200 OK", &item.to_string()),
        None => fake::json("404 Not Found", r#"{"title":"Not Found","detail":"Not found."}"#),
    }
}

/// The list with only the items that have the name in the query, if it has one.
fn named(mut list: Value, query: &str) -> Value {
    let name = query.split('&').find_map(|pair| pair.strip_prefix("name="));
    if let (Some(name), Some(items)) = (name, list["items"].as_array_mut()) {
        items.retain(|item| item["name"] == name);
    }
    list
}
