//! The examples that need no external system, on a server without network access.

use std::path::Path;

use serde_json::Value;

use super::process::{Server, Setup};
use super::real::{http_get, traces};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
const TEMPLATES: [&str; 5] = ["hello", "blue-green", "batch", "service", "groups"];
const KINDS: [&str; 3] = ["page", "worker", "board"];

struct Examples(Server);

impl Drop for Examples {
    /// Removes containers of a failed test, which would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.kill();
            traces::clean_up(&self.0.setup.file("data"));
        }
    }
}

#[test]
fn templates_and_kinds_work_without_external_systems() {
    let kinds = Path::new(EXAMPLES).join("kinds");
    let setup = Setup::new().arg("--runtime", "embedded").arg("--egress", "false");
    let fixture = Examples(setup.arg("--catalog-dir", kinds.to_str().unwrap()).start());
    let ann = fixture.0.owner("acme", "ann");
    for name in TEMPLATES {
        ann.run(&format!("template publish {EXAMPLES}/{name}"))
            .succeeds()
            .prints(&[&format!("{name}@1.0.0")]);
        ann.run(&format!("env apply {name} --template {name}@1.0.0 --yes --wait=240")).succeeds();
    }
    let page = |name: &str| -> String {
        let shown = ann.json(&format!("env show {name}"));
        let url = shown["entry_points"][0].as_str().unwrap().to_owned();
        http_get(url.trim_start_matches("http://").trim_end_matches('/')).unwrap()
    };
    assert!(page("hello").contains("Hello from an environment"));
    assert!(page("blue-green").contains("Version 1"));
    ann.run("env apply blue-green --set live=green --yes --wait=240").succeeds();
    assert!(page("blue-green").contains("Version 2"));
    assert!(page("service").contains("Keeper of"));
    ann.run("deployment logs batch-load").succeeds().prints(&["loaded 2030-01-31"]);
    let count = |name: &str| {
        let shown = ann.json(&format!("env show {name}"));
        shown["resources"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((count("batch"), count("groups")), (5, 5));
    ann.run("env apply groups --set with_canary=true --yes --wait=240").succeeds();
    assert_eq!(count("groups"), 6);

    for kind in KINDS {
        ann.run(&format!("service {kind} create my-{kind} --wait=120")).succeeds();
        let shown = ann.json(&format!("service {kind} show my-{kind}"));
        assert_eq!(shown["status"], "ready", "{shown:#}");
        if let Some(endpoint) = shown["endpoints"].get(0).and_then(Value::as_str) {
            assert!(http_get(endpoint).unwrap().contains(&format!("my-{kind}")), "{kind}");
        }
    }
    for kind in KINDS {
        ann.run(&format!("service {kind} delete my-{kind} --yes --wait=60")).succeeds();
    }
    for name in TEMPLATES {
        ann.run(&format!("env destroy {name} --yes --wait=120")).succeeds();
    }
    assert_eq!(traces::find(&fixture.0.setup.file("data")), Vec::<String>::new());
}

#[test]
fn every_example_begins_with_its_explanation() {
    let templates = TEMPLATES.map(|name| format!("{name}/template.yaml"));
    let kinds = KINDS.map(|name| format!("kinds/{name}.yaml"));
    for file in templates.iter().chain(&kinds) {
        let text = std::fs::read_to_string(Path::new(EXAMPLES).join(file)).unwrap();
        assert!(text.starts_with("# ") && text.contains("#   paddock "), "{file}");
        assert!(text.contains("localhost/paddock-page:1"), "{file}");
    }
}
