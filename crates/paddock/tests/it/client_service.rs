//! `paddock service` and `paddock service-account`.

use serde_json::Value;

use super::process::{Server, Setup};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn instance_lifecycle_from_create_to_delete() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("service kafka create orders --plan standard.x1 --wait=60")
        .succeeds()
        .prints(&["ID ", "NAME", "STATUS", "orders", "ready", "standard.x1", "127.0.0.1:9092"])
        .notes(&["kafka orders: ready"]);
    let shown = ann.json("service kafka show orders");
    let id = shown["id"].as_str().unwrap();
    assert_eq!(shown["kind"], "kafka");
    ann.run(&format!("service kafka get {id}")).succeeds().prints(&[
        "NAME              orders\n",
        "PLAN              standard.x1\n",
        "BILLING MODEL     standard\n",
        "OWNER             ann\n",
        "REAUTHENTICATION  yes\n",
    ]);
    ann.run("service kafka list --status ready --owner ann").succeeds().prints(&["orders"]);
    assert_eq!(names(&ann.json("service kafka list --status failed")), [""; 0]);
    assert_eq!(names(&ann.json("service dinosaur list")), [""; 0]);
    let events = ann.json("events --kind instance --subject orders --type instance.ready");
    assert_eq!(events["items"][0]["subject"], id);

    ann.run("service kafka delete orders --wait=60")
        .succeeds()
        .notes(&["kafka orders: deleted", "kafka orders deleted"]);
    ann.run(&format!("service kafka show {id}"))
        .fails(1, &["not found", "hint: run \"paddock service kafka list\" to see all"]);
}

#[test]
fn service_kinds_come_from_the_server() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("service kinds").succeeds().prints(&[
        "KIND      DISPLAY NAME  TRIAL      VERSIONS\n",
        "kafka     Apache Kafka  developer  ",
        "kafka     standard.x2   2      cpu=1,ram=1.5Gi     -         standard,marketplace",
        "kafka     local           local         yes      developer,standard\n",
    ]);
    assert_eq!(names(&ann.json("service kinds")), ["dinosaur", "kafka"]);
    for line in ["list", "create a", "show a", "delete a", "update a --owner bob"] {
        ann.run(&format!("service rhino {line}")).fails(
            1,
            &["service kind \"rhino\" not found; available: dinosaur, kafka", "service kinds"],
        );
    }
    ann.run("service list").fails(2, &["no service kind"]);
    ann.run("service kafka").fails(2, &["requires a subcommand", "paddock service <KIND>"]);
    server.client().run("service kafka list").fails(1, &["not logged in"]);
}

#[test]
fn new_service_kind_works_without_client_changes() {
    let setup = Setup::new();
    let catalog = setup.file("catalog");
    std::fs::create_dir(&catalog).unwrap();
    std::fs::write(catalog.join("rhino.yaml"), RHINO).unwrap();
    let server = setup.arg("--catalog-dir", &catalog.display().to_string()).start();
    let ann = server.owner("acme", "ann");
    ann.run("service kinds").succeeds().prints(&["rhino     Rhino"]);
    ann.run("service rhino create big --wait=60").succeeds().prints(&["big", "ready", "grown.x1"]);
    ann.run("service rhino list --order name").succeeds().prints(&["big"]);
    ann.run("service rhino delete big --wait=60").succeeds().notes(&["rhino big deleted"]);
}

const RHINO: &str = r#"
name: rhino
display_name: Rhino
types:
  - id: grown
    display_name: Grown
    billing_models:
      - {id: standard, resource: rhino, product: RHINO, models: [standard]}
    sizes:
      - {id: x1, resources: {cpu: 50m, ram: 32Mi}}
clouds:
  - name: local
    display_name: This machine
    default: true
    regions:
      - {name: local, display_name: This machine, default: true, types: {grown: {}}}
versions:
  - {operator: rhino-operator.v1.0.0-0, version: "1.0"}
run:
  container:
    image: docker.io/library/busybox:1.36
    ports: [80]
    ready: {tcp: {port: 80, within: 60}}
needs:
  domain: rhino.paddock.local
"#;

#[test]
fn instances_are_searched_and_sorted() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    for name in ["bills", "audit", "orders"] {
        ann.run(&format!("service dinosaur create {name}")).succeeds();
    }
    let list = |words: &[&str]| {
        let mut command = ann.command("-o json service dinosaur list");
        let output = command.args(words).output().unwrap();
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(list["items"].as_array().unwrap().iter().all(|one| one["kind"] == "dinosaur"));
        names(&list).join(" ")
    };
    assert_eq!(list(&[]), "bills audit orders");
    assert_eq!(list(&["--order", "name desc"]), "orders bills audit");
    assert_eq!(list(&["--search", "name like '%i%' and owner = ann"]), "bills audit");
    assert_eq!(list(&["--search", "name = nothing"]), "");
    assert_eq!(list(&["--order", "name", "--owner", "bob"]), "");
    assert_eq!(list(&["--order", "name", "--limit", "2"]), "audit bills");
    ann.run("service dinosaur list --order name --limit 1")
        .succeeds()
        .notes(&["showing the first 1; use --limit for more"]);
    ann.run("service dinosaur list --search zoo=1")
        .fails(1, &["Invalid search expression: position 1", "must be one of"]);
    ann.run("service dinosaur list --order zoo").fails(1, &["Invalid orderBy"]);
    ann.run("service dinosaur list --status sleeping").fails(2, &["ready", "suspended"]);
}

#[test]
fn invalid_instance_is_rejected_with_reason_and_hint() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("service kafka create orders").succeeds();
    let kinds = "hint: run \"paddock service kinds\"";
    ann.run("service kafka create orders").fails(1, &["error: name: is already in use"]);
    ann.run("service kafka create Bad_").fails(1, &["error: name: ", "a-z, 0-9 and -"]);
    ann.run("service kafka create a --plan huge.x9").fails(1, &["--plan: ", "huge.x9", kinds]);
    ann.run("service kafka create a --plan huge")
        .fails(1, &["--plan: ", "like standard.x1", kinds]);
    ann.run("service kafka create a --region mars").fails(1, &["--region: ", "mars", kinds]);
    ann.run("service kafka create a --cloud-provider moon")
        .fails(1, &["--cloud-provider: ", kinds]);
    ann.run("service kafka create a --plan standard.x1 --billing-model gold")
        .fails(1, &["--billing-model: ", "gold", kinds]);
    ann.run("service kafka create a --marketplace aws").fails(1, &["--billing-account: "]);
    ann.run("service dinosaur create a --billing-model standard")
        .fails(1, &["--billing-model: is not supported by kind dinosaur"]);
    ann.run("service kafka create a --cluster nowhere")
        .fails(1, &["cluster \"nowhere\" not found"]);
    ann.run("service kafka create a --cluster local").fails(1, &["--cluster: ", "cluster list"]);
    ann.run("service kafka create").fails(2, &["<NAME>", "paddock service <KIND> create"]);
    ann.run("service kafka create a --reauthentication maybe").fails(2, &["true, false"]);
    assert_eq!(names(&ann.json("service kafka list")), ["orders"]);
}

#[test]
fn wait_for_instance_reports_the_reason_of_a_failure() {
    let server = Setup::new().arg("--simulated-fail", "kafka").start();
    let ann = server.owner("acme", "ann");
    ann.run("service kafka create orders --wait=120").fails(
        1,
        &["error: kafka orders failed: ", "is configured to fail", "service kafka delete"],
    );
    ann.run("service kafka show orders").succeeds().prints(&["STATUS            failed\n"]);
    ann.run("service kafka delete orders --wait=60").succeeds().notes(&["kafka orders deleted"]);
}

#[test]
fn wait_for_instance_times_out_with_its_status() {
    let server = Setup::new().arg("--simulated-delay-ms", "30000").start();
    let ann = server.owner("acme", "ann");
    ann.run("service kafka create orders --wait=2").fails(
        1,
        &["kafka orders is still provisioning after 2 s: ", "run \"paddock service kafka show"],
    );
}

#[test]
fn instance_is_transferred_to_another_owner() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let code = ann.json("org invite")["code"].as_str().unwrap().to_owned();
    let bob = server.client();
    bob.run(&format!("org join {code} --username bob")).succeeds();
    ann.run("service kafka create orders").succeeds();
    bob.run("service kafka delete orders").fails(1, &["Only ann and the organization's owners"]);
    ann.run("service kafka update orders --owner nobody").fails(1, &["error: owner: "]);
    ann.run("service kafka update orders").fails(2, &["--owner"]);
    ann.run("service kafka update orders --owner bob --reauthentication false").succeeds();
    let shown = bob.json("service kafka show orders");
    assert_eq!((&shown["owner"], &shown["reauthentication"]), (&"bob".into(), &false.into()));
    bob.run("service kafka delete orders --wait=60").succeeds();
}

#[test]
fn instances_of_others_and_of_other_kinds_are_not_found() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let eve = server.owner("evil", "eve");
    let id = ann.json("service kafka create orders")["id"].as_str().unwrap().to_owned();
    for (client, kind) in [(&eve, "kafka"), (&ann, "dinosaur"), (&eve, "dinosaur")] {
        for line in [format!("show {id}"), "show orders".into(), format!("delete {id}")] {
            client
                .run(&format!("service {kind} {line}"))
                .fails(1, &[&format!("error: {kind} "), "not found"]);
        }
    }
    assert_eq!(names(&ann.json("service kafka list")), ["orders"]);
    // Names are unique per organization.
    eve.run("service kafka create orders").succeeds();
}

#[tokio::test]
async fn service_account_secret_is_shown_once_and_works() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let created = ann
        .run("-o json service-account create importer")
        .succeeds()
        .notes(&["the secret is shown only once", "token endpoint: http://"]);
    let created: Value = serde_json::from_str(&created.stdout).unwrap();
    let (id, client_id) =
        (created["client_id"].as_str().unwrap(), created["client_id"].as_str().unwrap());
    let secret = created["client_secret"].as_str().unwrap();
    for line in ["list", "show importer", &format!("show {id}")] {
        let shown = ann.run(&format!("service-account {line}")).succeeds().prints(&[client_id]);
        assert!(!shown.stdout.contains(secret), "{shown:?}");
    }
    assert_eq!(token_status(&server, client_id, secret).await, 200);

    let reset = ann.run("service-account reset importer").succeeds();
    let reset = reset.prints(&["CLIENT SECRET  "]).notes(&["the secret is shown only once"]);
    let line = reset.stdout.lines().find(|line| line.starts_with("CLIENT SECRET")).unwrap();
    let renewed = line.split_whitespace().nth(2).unwrap();
    assert_eq!(token_status(&server, client_id, secret).await, 401, "the old secret is revoked");
    assert_eq!(token_status(&server, client_id, renewed).await, 200);

    ann.run("service-account delete importer").succeeds().notes(&["importer deleted"]);
    assert_eq!(token_status(&server, client_id, renewed).await, 401);
    assert_eq!(ann.json("service-account list")["items"].as_array().unwrap().len(), 0);
}

async fn token_status(server: &Server, client_id: &str, secret: &str) -> u16 {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("{}/auth/realms/paddock/protocol/openid-connect/token", server.address);
    let form =
        format!("grant_type=client_credentials&client_id={client_id}&client_secret={secret}");
    let request = reqwest::Client::new()
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    request.send().await.unwrap().status().as_u16()
}

#[test]
fn invalid_service_account_is_rejected_with_reason() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("service-account create Bad_").fails(1, &["error: name: must contain only a-z"]);
    ann.run("service-account create a --description <").fails(1, &["error: description: "]);
    for verb in ["show", "reset", "delete"] {
        ann.run(&format!("service-account {verb} nobody")).fails(
            1,
            &["service account \"nobody\" not found", "hint: run \"paddock service-account list\""],
        );
    }
    ann.run("service-account list --kind rhino").fails(1, &["available: dinosaur, kafka"]);
    ann.run("service-account list --kind dinosaur")
        .fails(1, &["dinosaur does not support service accounts", "omit --kind"]);
    ann.run("service-account list --kind kafka").succeeds().prints(&["CLIENT ID"]);

    ann.run("service-account create twin").succeeds();
    ann.run("service-account create twin").succeeds();
    ann.run("service-account delete twin")
        .fails(1, &["2 service accounts have the name", "use the id"]);
}
