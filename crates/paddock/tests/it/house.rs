//! The rules of the house, which the compiler alone does not keep: who may know what, what is
//! banned, how files begin and how long they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

/// The most lines of a file.
const MAX_LINES: usize = 600;

const HTTP: &[&str] =
    &["axum", "axum-core", "hyper", "hyper-util", "reqwest", "tower-http", "utoipa"];
const SQL: &[&str] = &["rusqlite", "tokio-postgres", "deadpool-postgres", "sqlx", "libsqlite3-sys"];
const OURS: &[&str] = &[
    "paddock-adapters",
    "paddock-agent",
    "paddock-api",
    "paddock-console",
    "paddock-engine",
    "paddock-store",
    "paddock-testing",
];
const WORLD: &[&str] =
    &["tokio", "futures-util", "getrandom", "rand", "chrono", "tracing", "tempfile", "deadpool"];
const FOREIGN: &[&str] = &["kube", "lapin", "bollard", "vaultrs", "openidconnect"];

/// Each crate, and what it must never know.
const MUST_NOT_KNOW: [(&str, &[&[&str]]); 7] = [
    ("model", &[OURS, WORLD, HTTP, SQL, FOREIGN]),
    (
        "store",
        &[
            HTTP,
            FOREIGN,
            &[
                "paddock-agent",
                "paddock-api",
                "paddock-engine",
                "paddock-adapters",
                "paddock-console",
            ],
        ],
    ),
    (
        "engine",
        &[
            HTTP,
            SQL,
            FOREIGN,
            &["paddock-adapters", "paddock-agent", "paddock-api", "paddock-console"],
        ],
    ),
    ("adapters", &[&["paddock-store", "paddock-api", "paddock-console", "axum"], SQL]),
    ("agent", &[SQL, &["paddock-store", "paddock-engine", "paddock-api", "paddock-console"]]),
    ("api", &[SQL, FOREIGN, &["paddock-adapters", "paddock-agent"]]),
    ("console", &[OURS, WORLD, HTTP, SQL, FOREIGN, &["paddock-model", "serde"]]),
];

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> Table {
    let text = fs::read_to_string(root().join(path)).unwrap();
    text.parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files that git keeps, or would keep if they were added.
fn files() -> Vec<String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let names = String::from_utf8(output.stdout).unwrap();
    let names = names.split_terminator('\0').map(String::from);
    let files: Vec<_> = names.filter(|name| root().join(name).is_file()).collect();
    assert!(files.len() > 100, "{files:?}");
    files
}

/// The packages that a crate is made from: not those of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let workspace = read("Cargo.toml");
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.as_table()).chain([&manifest]);
    let tables: Vec<_> =
        tables.flat_map(|t| [t.get("dependencies"), t.get("build-dependencies")]).collect();
    let entries = tables.into_iter().flatten().filter_map(Value::as_table).flatten();
    entries
        .map(|(key, value)| package(key, value, &workspace["workspace"]["dependencies"]))
        .collect()
}

/// What a dependency is really called.
fn package(key: &str, value: &Value, workspace: &Value) -> String {
    let is_inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
    let value = if is_inherited { &workspace[key] } else { value };
    value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()
}

#[test]
fn no_crate_knows_what_it_must_not_know() {
    for (name, banned) in MUST_NOT_KNOW {
        for dependency in dependencies(name) {
            let is_banned = banned.iter().any(|list| list.contains(&dependency.as_str()));
            assert!(!is_banned, "{name} must never know {dependency}: see ARCHITECTURE.md");
        }
    }
    assert_eq!(dependencies("console"), Vec::<String>::new());
    assert!(dependencies("api").contains(&"paddock-store".to_owned()), "names are resolved");
}

#[test]
fn every_crate_has_its_place_in_the_table_and_the_lints_of_the_house() {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<_> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let known = MUST_NOT_KNOW.iter().map(|(name, _)| *name).chain(["paddock", "testing"]);
    let mut known: Vec<_> = known.collect();
    known.sort_unstable();
    assert_eq!(names, known, "a new crate needs a line in MUST_NOT_KNOW");
    for name in names.iter().filter(|name| *name != "agent") {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{name}");
    }
}

#[test]
fn the_agent_differs_only_in_where_unsafe_code_may_be_allowed() {
    let house = &read("Cargo.toml")["workspace"]["lints"];
    let agent = &read("crates/agent/Cargo.toml")["lints"];
    assert_eq!(agent["clippy"], house["clippy"]);
    assert_eq!(agent["rust"]["unsafe_code"].as_str(), Some("deny"));
    assert_eq!(agent["rust"]["missing_docs"], house["rust"]["missing_docs"]);
    let allows = |file: &String| {
        file.starts_with("crates/agent/src/")
            && fs::read_to_string(root().join(file)).unwrap().contains("allow(unsafe_code")
    };
    assert!(files().iter().filter(|file| allows(file)).count() <= 1, "one named exception");
}

#[test]
fn the_clock_randomness_and_bare_tasks_are_banned_with_a_reason() {
    let clippy = read("clippy.toml");
    let banned = clippy["disallowed-methods"].as_array().unwrap();
    for path in
        ["std::time::SystemTime::now", "getrandom::fill", "tokio::spawn", "tokio::task::spawn"]
    {
        let ban = banned.iter().find(|ban| ban["path"].as_str() == Some(path));
        let reason = ban.and_then(|ban| ban["reason"].as_str()).unwrap_or_default();
        assert!(!reason.is_empty(), "{path} must be banned, with a reason");
    }
}

#[test]
fn every_source_file_says_what_it_is() {
    for name in files().iter().filter(|name| is_source(name)) {
        let text = fs::read_to_string(root().join(name)).unwrap();
        assert!(text.starts_with("//! "), "{name} does not begin with //!");
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{name} has {lines} lines; at most {MAX_LINES}");
        assert!(!name.ends_with("/mod.rs"), "{name}: foo.rs and foo/, never mod.rs");
    }
}

#[test]
fn no_file_knows_the_machine_that_it_was_written_on() {
    // Put together here, so that this file is none of those.
    let homes = [["/ro", "ot/"], ["/wo", "rk/"]].map(|parts| parts.concat());
    for name in files() {
        let bytes = fs::read(root().join(&name)).unwrap();
        for home in &homes {
            let is_there = bytes.windows(home.len()).any(|part| part == home.as_bytes());
            assert!(!is_there, "{name} contains {home}");
        }
    }
}

/// Where a kind may be named: the catalog's own files, words that others' APIs and files have, examples.
const MAY_NAME_KINDS: &[&str] = &[
    "crates/api/src/fleet/",
    "crates/model/src/kind/catalog.rs",
    "crates/model/src/quota/file.rs",
    "crates/paddock/src/client/",
];

#[test]
fn kinds_are_data_the_code_names_none() {
    for name in files().iter().filter(|name| is_code(name)) {
        let text = fs::read_to_string(root().join(name)).unwrap();
        // Unit tests come last in a file.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let line = line.to_lowercase();
            let names_one = line.contains("kafka") || line.contains("dinosaur");
            assert!(!names_one, "{name} names a kind: {line}");
        }
    }
}

fn is_source(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "rs")
}

fn is_code(name: &str) -> bool {
    let is_test = name.contains("/tests") || name.ends_with("/sample.rs");
    let is_shipped = name.starts_with("crates/") && !name.starts_with("crates/testing/");
    is_source(name)
        && is_shipped
        && name.contains("/src/")
        && !is_test
        && !MAY_NAME_KINDS.iter().any(|place| name.starts_with(place))
}
