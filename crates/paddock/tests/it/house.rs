//! Repository rules that the compiler does not check: dependencies between crates, banned functions
//! and terms, form and length of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use toml::Table;

/// Maximum number of lines of a file.
const MAX_LINES: usize = 600;

const HTTP: &[&str] =
    &["axum", "axum-core", "hyper", "hyper-util", "reqwest", "tower-http", "utoipa-axum"];
const SQL: &[&str] = &["rusqlite", "tokio-postgres", "deadpool-postgres", "sqlx", "libsqlite3-sys"];
/// Packages with side effects, which pure crates must not use: async runtime, clock, randomness, I/O.
const SIDE_EFFECTS: &[&str] =
    &["tokio", "futures-util", "getrandom", "rand", "chrono", "tracing", "tempfile", "deadpool"];
/// Clients of external systems, each behind `port` in `adapters`, or a runtime of the
/// agent, or in the embedded runtime itself.
const EXTERNAL_CLIENTS: &[&str] = &[
    "aws-sdk-route53",
    "bollard",
    "domain",
    "k8s-openapi",
    "kube",
    "lapin",
    "libcontainer",
    "oci-client",
    "openidconnect",
    "rtnetlink",
    "vaultrs",
];

/// Dependencies of a crate: the code map of ARCHITECTURE.md, checked for transitive dependencies.
struct CrateRule {
    name: &'static str,
    /// Workspace crates that it may depend on, directly or indirectly.
    may_use: &'static [&'static str],
    /// Packages that it must not depend on, directly or indirectly,
    forbidden: &'static [&'static [&'static str]],
    /// except through these crates, which encapsulate them.
    except_through: &'static [&'static str],
}

const RULES: &[CrateRule] = &[
    CrateRule {
        name: "model",
        may_use: &[],
        forbidden: &[SIDE_EFFECTS, HTTP, SQL, EXTERNAL_CLIENTS],
        except_through: &[],
    },
    CrateRule {
        name: "base",
        may_use: &["model"],
        forbidden: &[HTTP, SQL, EXTERNAL_CLIENTS],
        except_through: &[],
    },
    CrateRule {
        name: "port",
        may_use: &["model"],
        forbidden: &[HTTP, SQL, EXTERNAL_CLIENTS, &["tokio"]],
        except_through: &[],
    },
    // The schemas of utoipa are its own; axum must not come with them.
    CrateRule {
        name: "wire",
        may_use: &["model"],
        forbidden: &[SIDE_EFFECTS, HTTP, SQL, EXTERNAL_CLIENTS],
        except_through: &[],
    },
    CrateRule {
        name: "store",
        may_use: &["base", "model"],
        forbidden: &[HTTP, EXTERNAL_CLIENTS],
        except_through: &[],
    },
    CrateRule {
        name: "engine",
        may_use: &["base", "model", "port", "store"],
        forbidden: &[HTTP, SQL, EXTERNAL_CLIENTS],
        except_through: &["store"],
    },
    CrateRule {
        name: "adapters",
        may_use: &["base", "model", "port"],
        forbidden: &[SQL, &["axum"]],
        except_through: &[],
    },
    CrateRule {
        name: "runtime",
        may_use: &["base", "model"],
        forbidden: &[SQL, &["axum", "bollard", "k8s-openapi", "kube"]],
        except_through: &[],
    },
    CrateRule {
        name: "agent",
        may_use: &["base", "model", "runtime"],
        forbidden: &[SQL, &["axum"]],
        except_through: &[],
    },
    CrateRule {
        name: "api",
        may_use: &["base", "console", "engine", "model", "port", "store", "wire"],
        forbidden: &[SQL, EXTERNAL_CLIENTS],
        except_through: &["store"],
    },
    CrateRule {
        name: "server",
        may_use: &[
            "agent", "api", "base", "console", "engine", "model", "port", "runtime", "store",
            "wire",
        ],
        forbidden: &[SQL],
        except_through: &["store"],
    },
    CrateRule {
        name: "console",
        may_use: &[],
        forbidden: &[SIDE_EFFECTS, HTTP, SQL, EXTERNAL_CLIENTS, &["serde"]],
        except_through: &[],
    },
];

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> Table {
    let text = fs::read_to_string(root().join(path)).unwrap();
    text.parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Files that git tracks, and untracked files that it does not ignore.
pub(crate) fn files() -> Vec<String> {
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

/// The resolved dependency graph of the workspace, without dev-dependencies.
struct Graph {
    /// The direct dependencies of each package, by name.
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn read() -> Self {
        let mut cargo = Command::new(env!("CARGO"));
        let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        cargo.args(["metadata", "--format-version", "1", "--offline", "--locked"]);
        cargo.args(["--filter-platform", &platform]);
        let output = cargo.current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Json = serde_json::from_slice(&output.stdout).unwrap();
        let list = |value: &Json| value.as_array().unwrap().clone();
        let name_of = |package: &Json| package["name"].as_str().unwrap().to_owned();
        let packages = list(&metadata["packages"]);
        let names: BTreeMap<String, String> = packages
            .iter()
            .map(|package| (package["id"].as_str().unwrap().to_owned(), name_of(package)))
            .collect();
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let from = names[node["id"].as_str().unwrap()].clone();
            let built = list(&node["deps"]).into_iter().filter(|dependency| {
                list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev")
            });
            let to = built.map(|dependency| names[dependency["pkg"].as_str().unwrap()].clone());
            edges.entry(from).or_default().extend(to);
        }
        Self { edges }
    }

    /// Everything that a crate of the workspace is built from, with one path to each; crates in
    /// `except_through` are reached and not entered.
    fn closure(&self, name: &str, except_through: &[&str]) -> BTreeMap<String, String> {
        let start = package(name);
        let mut paths = BTreeMap::from([(start.clone(), name.to_owned())]);
        let mut open = vec![start];
        while let Some(next) = open.pop() {
            if except_through.iter().any(|hidden| package(hidden) == next) {
                continue;
            }
            for dependency in &self.edges[&next] {
                if !paths.contains_key(dependency) {
                    paths.insert(dependency.clone(), format!("{} → {dependency}", paths[&next]));
                    open.push(dependency.clone());
                }
            }
        }
        paths.remove(&package(name));
        paths
    }
}

/// The package of a crate of the workspace.
fn package(name: &str) -> String {
    format!("paddock-{name}")
}

#[test]
fn crates_respect_their_dependency_rules() {
    let graph = Graph::read();
    for rule in RULES {
        for (dependency, path) in graph.closure(rule.name, &[]) {
            let Some(ours) = dependency.strip_prefix("paddock-") else { continue };
            assert!(
                rule.may_use.contains(&ours),
                "{} must not depend on {ours}: {path}",
                rule.name
            );
        }
        for (dependency, path) in graph.closure(rule.name, rule.except_through) {
            let is_banned = rule.forbidden.iter().any(|list| list.contains(&dependency.as_str()));
            assert!(!is_banned, "{} must not depend on {dependency}: {path}", rule.name);
        }
    }
    assert!(graph.closure("console", &[]).is_empty());
    let reached = graph.closure("api", &[]);
    assert!(reached.contains_key("libsqlite3-sys"), "dependencies of dependencies are followed");
}

#[test]
fn every_crate_has_a_rule_and_the_workspace_lints() {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<_> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let known = RULES.iter().map(|rule| rule.name).chain(["paddock", "testing"]);
    let mut known: Vec<_> = known.collect();
    known.sort_unstable();
    assert_eq!(names, known, "a new crate needs a rule in RULES");
    let folders =
        names.iter().filter(|name| *name != "runtime").map(|name| format!("crates/{name}"));
    for name in folders.chain(["fuzz".to_owned()]) {
        let manifest = read(&format!("{name}/Cargo.toml"));
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{name}");
    }
}

#[test]
fn only_one_file_of_the_runtime_allows_unsafe_code() {
    let mut lints = read("Cargo.toml")["workspace"]["lints"].clone();
    lints["rust"]["unsafe_code"] = "deny".into();
    assert_eq!(read("crates/runtime/Cargo.toml")["lints"], lints);
    // Concatenated, so that this file does not match.
    let exemption = ["allow(unsafe", "_code"].concat();
    let allows = |file: &&String| {
        is_source(file) && fs::read_to_string(root().join(file)).unwrap().contains(&exemption)
    };
    let all = files();
    let exempt: Vec<_> = all.iter().filter(allows).collect();
    assert_eq!(exempt, ["crates/runtime/src/raw.rs"], "one named exception");
}

#[test]
fn no_tracked_file_is_empty() {
    for name in files() {
        assert_ne!(fs::metadata(root().join(&name)).unwrap().len(), 0, "{name} is empty");
    }
}

#[test]
fn clock_randomness_and_bare_tasks_are_banned_with_a_reason() {
    let clippy = read("clippy.toml");
    let banned = clippy["disallowed-methods"].as_array().unwrap();
    for path in [
        "std::time::SystemTime::now",
        "std::time::Instant::now",
        "tokio::time::Instant::now",
        "getrandom::fill",
        "tokio::spawn",
        "tokio::task::spawn",
        "tokio::task::JoinSet::spawn",
        "tokio::signal::ctrl_c",
        "tokio::signal::unix::signal",
    ] {
        let ban = banned.iter().find(|ban| ban["path"].as_str() == Some(path));
        let reason = ban.and_then(|ban| ban["reason"].as_str()).unwrap_or_default();
        assert!(!reason.is_empty(), "{path} must be banned, with a reason");
    }
}

#[test]
fn only_base_and_benchmarks_are_exempt_from_the_bans() {
    // Concatenated, so that this file does not match.
    let exemption = ["disallowed", "_methods"].concat();
    for name in files().iter().filter(|name| is_source(name)) {
        let is_exempt = fs::read_to_string(root().join(name)).unwrap().contains(&exemption);
        let may_be = name.starts_with("crates/base/src/") || name.contains("/benches/");
        assert!(!is_exempt || may_be, "{name} lifts a ban of clippy.toml");
    }
}

#[test]
fn every_source_file_has_a_module_doc() {
    for name in files().iter().filter(|name| is_source(name)) {
        let text = fs::read_to_string(root().join(name)).unwrap();
        assert!(text.starts_with("//! "), "{name} does not begin with //!");
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{name} has {lines} lines; at most {MAX_LINES}");
        assert!(!name.ends_with("/mod.rs"), "{name}: foo.rs and foo/, never mod.rs");
    }
}

#[test]
fn no_file_contains_a_path_of_a_developer_machine() {
    // Concatenated, so that this file does not match.
    let homes = [["/ro", "ot/"], ["/wo", "rk/"]].map(|parts| parts.concat());
    for name in files() {
        let bytes = fs::read(root().join(&name)).unwrap();
        for home in &homes {
            let is_there = bytes.windows(home.len()).any(|part| part == home.as_bytes());
            assert!(!is_there, "{name} contains {home}");
        }
    }
}

/// Files that may name a kind: the catalog, names of external APIs and file formats, examples.
const MAY_NAME_KINDS: &[&str] = &[
    "crates/api/src/fleet/",
    "crates/model/src/kind/catalog.rs",
    "crates/model/src/quota/file.rs",
    "crates/paddock/src/client/",
];

#[test]
fn code_names_no_service_kind() {
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

/// Names of commands and flags belong to the binary: `paddock::client::hint` adds them.
#[test]
fn core_names_no_command_and_no_flag() {
    let inner = ["crates/model/src/", "crates/store/src/", "crates/engine/src/"];
    let is_core = |name: &&String| is_code(name) && inner.iter().any(|part| name.starts_with(part));
    for name in files().iter().filter(is_core) {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            assert!(!names_command(line), "{name} names a command or a flag: {line}");
        }
    }
}

fn names_command(line: &str) -> bool {
    // A text may go on in the next line.
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase() || c == '\\');
    let has_command =
        line.match_indices("paddock ").any(|(at, found)| begins(&line[at + found.len()..]));
    let has_flag = line.match_indices("--").any(|(at, found)| {
        let is_inside = line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
        !is_inside && begins(&line[at + found.len()..])
    });
    has_command || has_flag
}

/// The file whose statements write statuses.
const WRITES_STATUS: &str = "crates/store/src/status.rs";

#[test]
fn only_one_file_writes_a_status() {
    for name in files().iter().filter(|name| is_source(name) && name.contains("/src/")) {
        for statement in statements(&fs::read_to_string(root().join(name)).unwrap()) {
            let (change, _) = statement.split_once(" WHERE ").unwrap_or((&statement, ""));
            let sets = change.split_once(" SET ").is_some_and(|(_, columns)| {
                let columns = columns.replace(',', " ");
                let mut words = columns.split_whitespace();
                words.any(|word| ["status", "status_reason", "status_since"].contains(&word))
            });
            assert!(!sets || name == WRITES_STATUS, "{name} writes a status: {statement}");
            let begins = statement.starts_with("INSERT") && statement.contains(" status_reason,");
            let first = ["'accepted'", "'queued'", "'deploying'", "'pending'"];
            let is_first = first.iter().any(|first| statement.contains(first));
            assert!(!begins || is_first, "{name} begins with another status: {statement}");
        }
    }
}

/// The statements in a file that change rows, in one line each.
fn statements(source: &str) -> Vec<String> {
    let source = source.replace("\\\n", "").replace(['"', '\n'], " ");
    let words: Vec<&str> = source.split_whitespace().collect();
    let is_start = |i: &usize| matches!(words[*i], "UPDATE" | "INSERT");
    (0..words.len())
        .filter(is_start)
        .map(|i| words[i..].iter().take(120).copied().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Phrases that have an established term: the terms are in CONTRIBUTING.md. A trailing `*` stands for the
/// rest of a word.
const BANNED: &[&str] = &[
    "all the same",
    "anew",
    "be gone",
    "doom*",
    "foreign system*",
    "give* up what",
    "it can host",
    "it rests",
    "it shall",
    "make* anew",
    "mend",
    "mended",
    "mending",
    "mends",
    "one too many",
    "shall",
    "sign in elsewhere",
    "sign-in elsewhere",
    "somebody*",
    "take* away",
    "taken away",
    "the foreign",
    "the safety net",
    "what is half",
    "what is seen",
    "what is there",
    "what is wanted",
    "what it was",
    "what shall",
    "what waits",
    "who is first",
    "who waits",
    "who yields",
    "whoever",
];

/// Files in which a banned phrase is data or has its usual meaning.
const ALLOWED_PHRASES: &[(&str, &[&str])] = &[
    (
        "CONTRIBUTING.md",
        &["foreign system*", "mend", "take* away", "what is there", "what is wanted"],
    ),
    ("crates/model/src/reason/tests.rs", &["mend", "shall", "somebody*"]),
];

#[test]
fn texts_use_established_terms() {
    let is_text = |name: &&String| {
        let end = Path::new(name).extension().and_then(|end| end.to_str()).unwrap_or_default();
        ["rs", "md", "yaml", "html", "js", "json", "toml"].contains(&end)
            && !name.ends_with("house.rs")
            && *name != "Cargo.lock"
    };
    let mut found = Vec::new();
    for name in files().iter().filter(is_text) {
        let text = fs::read_to_string(root().join(name)).unwrap();
        let words = words(&text);
        let allowed =
            ALLOWED_PHRASES.iter().find(|(file, _)| file == name).map_or(&[][..], |(_, all)| all);
        for phrase in BANNED.iter().filter(|phrase| !allowed.contains(phrase)) {
            found.extend(lines_with(&words, phrase).map(|line| format!("{name}:{line}: {phrase}")));
        }
    }
    assert!(found.is_empty(), "{} phrases:\n{}", found.len(), found.join("\n"));
}

/// The words of a text with their lines. A phrase may go on in the next line of a comment.
fn words(text: &str) -> Vec<(usize, String)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '\'';
    let numbered = (1..).zip(text.lines());
    let words = numbered.flat_map(|(line, text)| {
        let text = text.trim_start().trim_start_matches(['/', '!', '#', '*']);
        let words = text.split(move |c| !is_word(c)).filter(|word| !word.is_empty());
        words.map(move |word| (line, word.to_lowercase()))
    });
    words.collect()
}

/// The lines in which a phrase begins.
fn lines_with<'a>(words: &'a [(usize, String)], phrase: &str) -> impl Iterator<Item = usize> + 'a {
    let phrase: Vec<String> = phrase.split(' ').map(str::to_owned).collect();
    let is_same = |word: &str, pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => word.starts_with(start),
        None => word == pattern,
    };
    words.windows(phrase.len()).filter_map(move |run| {
        let is_found = run.iter().zip(&phrase).all(|((_, word), pattern)| is_same(word, pattern));
        is_found.then_some(run[0].0)
    })
}

#[test]
fn phrases_are_found_across_lines_and_not_inside_names() {
    let words =
        words("/// Jobs that are to be\n/// taken away\nlet taken_away = \"who waits.\";\n");
    let lines = |phrase: &str| lines_with(&words, phrase).collect::<Vec<_>>();
    assert_eq!(lines("be taken away"), [1]);
    assert_eq!(lines("taken away"), [2]);
    assert_eq!(lines("who wait*"), [3]);
    assert_eq!(lines("taken"), [2]);
}

pub(crate) fn is_source(name: &str) -> bool {
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
