//! `paddock quota` and `paddock admin`.

use std::thread;
use std::time::Duration;

use super::process::{Client, Server, Setup};

/// A client logged in as platform administrator.
fn admin(server: &Server) -> Client {
    let admin = server.client();
    admin.run("login --username admin").succeeds();
    admin
}

#[test]
fn granted_quota_limits_instances() {
    let server = Server::start();
    let (ann, admin) = (server.owner("acme", "ann"), admin(&server));
    ann.run("quota")
        .succeeds()
        .prints(&["KIND      TYPE       BILLING MODEL  USED  LIMIT      HOLDER        EXPIRES\n"])
        .prints(&["kafka     standard   standard       0     unlimited  organization  -\n"])
        .notes(&["no quota of service kinds is granted"]);

    admin
        .run("admin quota grant --org acme --kind kafka --type standard --limit 2 --expires-at 30d")
        .succeeds()
        .prints(&["HOLDER", "organization/", "kafka  standard  standard       2      20"]);
    ann.run("quota").succeeds().prints(&["kafka     standard  standard       0     2 "]);
    ann.run("service kafka create orders --plan standard.x1 --wait=60").succeeds();
    assert_eq!(ann.json("quota")["items"][1]["used"], 1);
    ann.run("service kafka create more --plan standard.x2").fails(
        1,
        &[
            "The limit of 2 units of its type in the quota is reached",
            "hint: run \"paddock quota\"",
        ],
    );
    ann.run("service kafka create more --plan developer.x1")
        .fails(1, &["--plan: ", "only standard instances are", "\"paddock quota\""]);

    let grants = admin.json("admin quota list --org acme");
    let id = grants["items"][0]["id"].as_str().unwrap();
    let replaced =
        admin.json("admin quota grant --org acme --kind kafka --type standard --limit 3");
    assert_eq!(replaced["limit"], 3);
    assert_eq!(admin.json("admin quota list")["items"].as_array().unwrap().len(), 1);
    let id = if replaced["id"] == id { id } else { replaced["id"].as_str().unwrap() };
    ann.run("service kafka create more --plan standard.x2").succeeds();
    admin.run(&format!("admin quota revoke {id}")).succeeds().notes(&["revoked"]);
    admin.run(&format!("admin quota revoke {id}")).fails(1, &["admin quota list"]);
    assert_eq!(admin.json("admin quota list")["items"].as_array().unwrap().len(), 0);
}

#[test]
fn invalid_grant_is_rejected_with_flag_names() {
    let server = Server::start();
    let admin = admin(&server);
    admin.run("admin quota grant --type standard").fails(2, &["--org", "--user"]);
    admin.run("admin quota grant --org a --user b --type standard").fails(2, &["cannot be used"]);
    admin.run("admin quota grant --org acme").fails(2, &["--type"]);
    admin
        .run("admin quota grant --org acme --type standard")
        .fails(1, &["organization \"acme\" not found"]);
    let line = "admin quota grant --user ann --type";
    admin.run(&format!("{line} huge")).fails(1, &["--type: "]);
    admin.run(&format!("{line} standard --kind rhino")).fails(1, &["--kind: "]);
    admin.run(&format!("{line} standard --billing-model gold")).fails(1, &["--billing-model: "]);
    admin.run(&format!("{line} standard --limit -1")).fails(2, &["error: "]);
    admin.run(&format!("{line} standard --limit 1000001")).fails(1, &["--limit: "]);
    admin.run(&format!("{line} standard --expires-at soon")).fails(2, &["such as 30d"]);
    assert_eq!(admin.json("admin quota list")["items"].as_array().unwrap().len(), 0);
}

#[test]
fn administrator_manages_instances_of_all_organizations() {
    let server = Server::start();
    let (ann, eve, admin) =
        (server.owner("acme", "ann"), server.owner("evil", "eve"), admin(&server));
    ann.run("service kafka create orders --plan standard.x1 --wait=60").succeeds();
    eve.run("service dinosaur create rex --wait=60").succeeds();
    admin.run("admin instance list").succeeds().prints(&["ORGANIZATION", "orders", "ann", "rex"]);
    let listed = admin.json("admin instance list --kind dinosaur");
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let listed = admin.json("admin instance list --search owner=ann --order name");
    assert_eq!(listed["items"][0]["name"], "orders");
    admin.run("admin instance list --kind rhino").fails(1, &["available: dinosaur, kafka"]);
    admin.run("admin instance show orders").succeeds().prints(&[
        "ORGANISATION ID ",
        "DESIRED KAFKA VERSION ",
        "OWNER                            ann\n",
    ]);

    admin.run("admin instance suspend orders --wait=60").succeeds().prints(&["suspended"]);
    ann.run("service kafka list --status suspended").succeeds().prints(&["orders"]);
    admin.run("admin instance suspend orders").fails(1, &["Only ready instances can be suspended"]);
    admin.run("admin instance resume orders --wait=60").succeeds().prints(&["ready"]);
    admin
        .run("admin instance delete orders --wait=60")
        .succeeds()
        .notes(&["instance orders deleted"]);
    ann.run("service kafka show orders").fails(1, &["kafka \"orders\" not found"]);
    admin
        .run("admin instance show orders")
        .fails(1, &["instance \"orders\" not found", "admin instance list"]);
}

#[test]
fn denied_owner_loses_instances_and_cannot_create_any() {
    let server = Server::start();
    let (ann, admin) = (server.owner("acme", "ann"), admin(&server));
    ann.run("service kafka create orders --wait=60").succeeds();
    admin.run("admin denied-owner add ann --reason spam").succeeds().prints(&[
        "OWNER  CREATED",
        "ann",
        "spam",
    ]);
    ann.run("service kafka create more").fails(1, &["You may not own instances"]);
    let is_deleted = || {
        thread::sleep(Duration::from_millis(50));
        ann.json("service kafka list")["items"].as_array().unwrap().is_empty()
    };
    assert!((0..600).any(|_| is_deleted()), "instance still exists");
    admin.run("admin denied-owner list").succeeds().prints(&["ann"]);
    admin.run("admin denied-owner remove ann").succeeds().notes(&["may own instances again"]);
    admin.run("admin denied-owner remove ann").fails(1, &["denied-owner list"]);
    ann.run("service kafka create more --wait=60").succeeds();
}

#[test]
fn admin_commands_are_refused_to_other_users() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("service kafka create orders --wait=60").succeeds();
    for line in [
        "quota list",
        "quota grant --org acme --type standard",
        "quota revoke 9m4e2mr0ui3e8a215n4g",
        "instance list",
        "instance list --kind kafka",
        "instance show orders",
        "instance suspend orders",
        "instance resume orders",
        "instance delete orders",
        "denied-owner list",
        "denied-owner add ann",
        "denied-owner remove ann",
    ] {
        ann.run(&format!("admin {line}")).fails(1, &["error: ", "paddock login --username admin"]);
    }
    ann.run("service kafka list").succeeds().prints(&["orders", "ready"]);
}

const POOLS: &str = "pools:
  - name: east
    cloud_provider: local
    region: east
    cluster: {provider: local, capacity: {cpu: 4, ram: 8Gi}, labels: {tier: pooled}}
    at_most: 2
";

#[test]
fn administrator_sees_pools_and_their_decisions() {
    let setup = Setup::new();
    let file = setup.file("scaling.yaml");
    std::fs::write(&file, POOLS).unwrap();
    let server = setup.arg("--scaling-file", &file.display().to_string()).start();
    let (ann, admin) = (server.owner("acme", "ann"), admin(&server));
    ann.run("admin scaling").fails(1, &["paddock login --username admin"]);
    admin
        .run("admin scaling")
        .succeeds()
        .prints(&["POOL  CLUSTERS  BOUNDS  PENDING  DECISION  SINCE", "east  0         0 to 2  0"]);
    ann.run("deploy web --cpu 3 --on-label tier=pooled --wait=60").succeeds();
    let pool = until(&admin, |pool| pool["reason"] == ENOUGH);
    assert_eq!(pool["clusters"], serde_json::json!({"ready": 1}));
    assert!(pool["last_grown_at"].is_string());
    admin.run("admin scaling").succeeds().prints(&["east  1 ready   0 to 2  0        "]);
    admin.run("admin scaling --output table").succeeds().prints(&[ENOUGH]);
    admin.run("admin scaling --output yaml").fails(2, &["table", "json"]);

    std::fs::write(&file, POOLS.replace("at_most: 2", "at_most: 5")).unwrap();
    until(&admin, |pool| pool["settings"]["at_most"] == 5);
}

const ENOUGH: &str = "Capacity is sufficient, and no cluster is empty.";

/// Polls until the pool satisfies the condition.
fn until(admin: &Client, condition: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    for _ in 0..200 {
        let pool = admin.json("admin scaling")["items"][0].clone();
        if condition(&pool) {
            return pool;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("condition not reached: {}", admin.run("admin scaling").succeeds().stdout);
}

#[test]
fn invalid_scaling_file_aborts_startup() {
    let setup = Setup::new();
    let file = setup.file("scaling.yaml");
    std::fs::write(&file, POOLS.replace("at_most: 2", "at_least: 3\n    at_most: 2")).unwrap();
    let setup = setup.arg("--scaling-file", &file.display().to_string());
    setup.run_to_exit().fails(
        1,
        &["--scaling-file: ", "scaling.yaml:6: pools.east.at_least: must not be more than at_most"],
    );
}
