//! Login, organizations, invites, clusters and events.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use super::process::{PASSWORD, Server, Setup};

#[test]
fn org_create_logs_in_until_logout() {
    let server = Server::start();
    let ann = server.client();
    ann.run("whoami").fails(1, &["not logged in to http://", "run \"paddock login\""]);
    ann.run("org create acme --username ann --display-name Ann")
        .succeeds()
        .prints(&["ID ", "NAME", "acme", "ann"])
        .notes(&["logged in to http://", " as ann\n"]);
    ann.run("whoami").succeeds().prints(&["USERNAME      ann\n", &server.address, "owner"]);
    ann.run("org show").succeeds().prints(&["NAME          acme\n", "MEMBERS       ann\n"]);
    assert_eq!(ann.json("whoami")["username"], "ann");
    let mode = fs::metadata(ann.config_file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    ann.run("logout").succeeds().notes(&["logged out"]);
    ann.run("whoami").fails(1, &["not logged in"]);
}

#[test]
fn login_requires_the_correct_password() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run_with_input("login --password-stdin", "wrong password\n").fails(1, &["error: "]);
    ann.run_with_input("login", "").fails(2, &["--password-stdin", "PADDOCK_PASSWORD"]);
    ann.run_with_input("login --password-stdin", "").fails(2, &["stdin is empty"]);
    ann.run_with_input("login --password-stdin", &format!("{PASSWORD}\n"))
        .succeeds()
        .notes(&["logged in to", "as ann"]);
    server.client().run("login").fails(2, &["--username"]);

    let token = ann.json("login")["token"].as_str().unwrap().to_owned();
    let stranger = server.client();
    let output = stranger.command("whoami").env("PADDOCK_TOKEN", &token).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("ann"));
    let output = stranger.command("logout").env("PADDOCK_TOKEN", &token).output().unwrap();
    assert!(output.status.success());
    ann.run("whoami").fails(1, &["hint: run \"paddock login\""]);
}

#[test]
fn invalid_organization_is_rejected_with_reason() {
    let server = Setup::new().arg("--password-min-length", "8").start();
    server.owner("acme", "ann");
    let other = server.client();
    other.run("org create other --username ann").fails(1, &["error: "]);
    let line = "org create other --username bob --password-stdin";
    other.run_with_input(line, "short\n").fails(1, &["error: password: "]);
    other.run("org create other").fails(2, &["--username"]);
    other.run("whoami").fails(1, &["not logged in"]);
}

#[test]
fn invite_admits_a_new_member() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let invite = ann.json("org invite --expires-in 7d");
    let (code, id) = (invite["code"].as_str().unwrap(), invite["id"].as_str().unwrap());
    let bob = server.client();
    bob.run(&format!("org invite --check {code}")).succeeds().prints(&["acme", "active"]);
    bob.run(&format!("org join {code} --username bob")).succeeds().prints(&["bob", "member"]);
    bob.run("whoami").succeeds().prints(&["bob"]);
    ann.run("org members").succeeds().prints(&["USERNAME", "ann", "bob"]);
    ann.run("org invite --list").succeeds().prints(&["STATE", id, "used", "bob"]);

    ann.run(&format!("org invite --reopen {id} --expires-in 1d")).succeeds().prints(&["active"]);
    ann.run(&format!("org invite --revoke {id}")).succeeds().notes(&["revoked"]);
    server.client().run(&format!("org join {code} --username eve")).fails(1, &["error: "]);
    server.client().run("org join nonsense --username eve").fails(1, &["error: "]);
    ann.run("org invite --list --check x").fails(2, &["cannot be used with"]);
    ann.run("org invite --expires-in soon").fails(2, &["use for example 45s, 30m, 12h or 7d"]);
}

#[test]
fn cluster_lifecycle_from_create_to_delete() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create prod --cpu 4 --ram 8Gi --resource gpu=1 --label team=web --wait=60")
        .succeeds()
        .prints(&["ID ", "NAME", "STATUS", "prod", "ready", "0/4", "0/8Gi", "gpu=0/1"])
        .notes(&["cluster prod: ready"]);
    let shown = ann.json("cluster show prod");
    let id = shown["id"].as_str().unwrap();
    assert_eq!(shown["capacity"]["ram"]["total"], 8_589_934_592_u64);
    ann.run(&format!("cluster show {id}")).succeeds().prints(&[
        "NAME         prod\n",
        "LABELS       team=web\n",
        "ram       8Gi    0     8Gi\n",
    ]);
    let listed = ann.json("cluster list");
    assert!(listed["items"].as_array().unwrap().iter().any(|cluster| cluster["id"] == id));

    ann.run("cluster delete prod --yes --wait=60").succeeds().notes(&["cluster prod deleted"]);
    ann.run(&format!("cluster show {id}")).fails(1, &["cluster", "not found", "cluster list"]);
}

#[test]
fn invalid_cluster_is_rejected_with_flag_names() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create prod --cpu many --ram 8Gi").fails(1, &["--cpu: "]);
    ann.run("cluster create prod --cpu -4 --ram 8Gi").fails(2, &["error: "]);
    ann.run("cluster create prod --cpu=-4 --ram 8Gi").fails(1, &["--cpu: "]);
    let long = "x".repeat(101);
    ann.run(&format!("cluster create {long} --cpu 4 --ram 8Gi")).fails(1, &["error: name: "]);
    ann.run("cluster create prod --cpu 4 --resource cpu=1").fails(2, &["given twice"]);
    ann.run("cluster create prod --cpu 4 --label x").fails(2, &["KEY=VALUE"]);
    ann.run("cluster create prod --cpu 4 --wait=never").fails(2, &["--wait"]);
    ann.run("cluster create").fails(2, &["<NAME>"]);
    ann.run("cluster delete nothing").fails(1, &["cluster \"nothing\" not found"]);
}

#[test]
fn ambiguous_name_is_rejected() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    // The shared cluster of the server's machine has the same name.
    ann.run("cluster create local --cpu 1 --ram 1Gi").succeeds();
    let outcome = ann.run("cluster show local").fails(1, &["2 clusters have the name \"local\""]);
    assert_eq!(outcome.stderr.lines().count(), 4, "{outcome:?}");
}

#[test]
fn clusters_of_other_organizations_are_not_found() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let eve = server.owner("evil", "eve");
    let cluster = ann.json("cluster create secret --cpu 1 --ram 1Gi");
    let id = cluster["id"].as_str().unwrap();
    eve.run("cluster show secret").fails(1, &["cluster \"secret\" not found"]);
    eve.run(&format!("cluster show {id}")).fails(1, &["cluster", "not found"]);
    eve.run(&format!("cluster delete {id}")).fails(1, &["cluster", "not found"]);
    let events = eve.json("events");
    assert!(!events.to_string().contains(id));
}

#[test]
fn events_are_listed_and_followed() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create one --cpu 1 --ram 1Gi --wait=60").succeeds();
    ann.run("events --kind cluster --subject one --since 10m").succeeds().prints(&[
        "SEQ",
        "AT",
        "TYPE",
        "cluster.created",
        "cluster.ready",
        "one",
    ]);
    let listed = ann.json("events --type cluster.ready");
    assert_eq!(listed["items"][0]["type"], "cluster.ready");
    ann.run("events --limit 1").succeeds().notes(&["showing the first 1; use --limit for more"]);
    ann.run("events --subject one").fails(2, &["--kind cluster"]);
    ann.run("events --since yesterday").fails(2, &["such as 10m"]);

    let mut follow = ann
        .command("events -f -o json --kind cluster --since 10m")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("cluster.created"), "past events");
    ann.run("cluster create two --cpu 1 --ram 1Gi").succeeds();
    assert!(lines.any(|line| line.contains("\"two\"")), "new events");
    follow.kill().unwrap();
    follow.wait().unwrap();
}
