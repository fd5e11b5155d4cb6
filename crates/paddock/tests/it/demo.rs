//! `paddock demo`, on a server without network access.

use super::process::{Client, Server, Setup};
use super::real::{http_get, traces};

/// Statuses of everything that the demo creates.
fn statuses(client: &Client) -> Vec<String> {
    ["cluster show demo", "deployment show hello", "service dinosaur show rex", "env show hello"]
        .map(|line| client.json(line)["status"].as_str().unwrap().to_owned())
        .to_vec()
}

struct Demo(Server);

impl Drop for Demo {
    /// Removes containers of a failed test, which would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.kill();
            traces::clean_up(&self.0.setup.file("data"));
        }
    }
}

#[test]
fn demo_is_created_reused_and_deleted() {
    let setup = Setup::new().arg("--runtime", "embedded").arg("--egress", "false");
    let demo = Demo(setup.start());
    let client = demo.0.client();
    let first = client.run("demo").succeeds();
    let first = first.notes(&["password of demo: ", "environment hello created"]);
    let first = first.prints(&["CONSOLE", &demo.0.address, "paddock demo --delete"]);
    let urls: Vec<&str> = first.stdout.split_whitespace().collect();
    let urls = urls.iter().filter_map(|word| word.strip_prefix("http://127.0.0.1:"));
    let pages: Vec<String> = urls
        .filter(|rest| !demo.0.address.ends_with(rest.trim_end_matches('/')))
        .map(|rest| http_get(&format!("127.0.0.1:{}", rest.trim_end_matches('/'))).unwrap())
        .collect();
    for text in ["Hello from Paddock", "This is rex, a dinosaur.", "Hello from an environment"] {
        assert!(pages.iter().any(|page| page.contains(text)), "{text}: {pages:?}");
    }
    assert_eq!(statuses(&client), ["ready", "running", "ready", "deployed"]);

    let count = || client.json("deployment list")["items"].as_array().unwrap().len();
    let before = count();

    // Again, with the stored login: nothing is created.
    let again = client.run("demo").succeeds().notes(&["environment hello exists"]);
    assert!(!again.stderr.contains("created") && !again.stderr.contains("password"), "{again:?}");
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(count(), before);

    // Another client is not logged in, and the organization exists.
    demo.0.client().run("demo").fails(1, &["demo exists", "paddock login --username demo"]);

    client.run("demo --delete").succeeds().notes(&["cluster demo deleted"]);
    for list in ["deployment list", "service dinosaur list", "env list", "template list"] {
        assert_eq!(client.json(list)["items"].as_array().unwrap().len(), 0, "{list}");
    }
    assert_eq!(traces::find(&demo.0.setup.file("data")), Vec::<String>::new());
    client.run("demo --delete").succeeds();
    client.run("demo").succeeds().notes(&["deployment hello created"]);
    client.run("demo --delete --yes").succeeds();
}

#[test]
fn demo_without_a_server_says_how_to_start_one() {
    let client = Client::new("http://127.0.0.1:1");
    client.run("demo").fails(1, &["cannot reach http://127.0.0.1:1", "paddock server"]);
}
