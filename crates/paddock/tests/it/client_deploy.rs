//! `deploy`, `scale`, `explain`, `queue` and nodes.

use serde_json::Value;

use super::process::{Client, Server, Setup};

/// A client with a cluster of two nodes, `a` in zone x and `b` in zone y.
fn with_nodes(server: &Server) -> Client {
    let ann = server.owner("acme", "ann");
    ann.run(
        "cluster create duo --node name=a,cpu=2,ram=4Gi,label.zone=x \
         --node name=b,cpu=1,ram=2Gi,label.zone=y --wait=60",
    )
    .succeeds();
    ann
}

fn count(list: &Value) -> usize {
    list["items"].as_array().unwrap().len()
}

#[test]
fn deploy_creates_a_deployment_with_defaults() {
    let server = Server::start();
    let ann = with_nodes(&server);
    ann.run("deploy nginx:1 --name web --cluster duo --port 80 --wait=60")
        .succeeds()
        .prints(&["web", "running", "nginx:1", "127.0.0.1:80"])
        .notes(&["deployment web: running"]);
    let web = ann.json("deployment get web");
    assert_eq!(web["resources"]["cpu"], 0.1);
    assert_eq!(web["resources"]["ram"], 64 << 20);
    assert_eq!(web["restart"], "on_failure");

    let job = ann.json(
        "deploy busybox:1 --name job --cluster duo --cpu 200m --restart never --run-for 10m \
         --on-label zone=y --label team=web --env A=1 -- sh -c true",
    );
    assert_eq!(job["restart"], "never");
    assert_eq!(job["run_for"], 600);
    assert_eq!(job["node_selector"]["zone"], "y");
    assert_eq!(job["command"], serde_json::json!(["sh", "-c", "true"]));
    ann.run("deployment show job").succeeds().prints(&[
        "RESTART    never\n",
        "RUN FOR    600 s\n",
        "ON LABELS  zone=y\n",
    ]);
}

#[test]
fn wait_covers_all_replicas() {
    let server = Setup::new().arg("--simulated-delay-ms", "100").start();
    let ann = with_nodes(&server);
    let line = "deploy nginx:1 --name web --cluster duo --replicas 2 --spread";
    let web = ann.json(&format!("{line} --wait=60"));
    let replicas = web["replica_statuses"].as_array().unwrap();
    assert_eq!(replicas.len(), 2);
    assert!(replicas.iter().all(|replica| replica["status"] == "running"), "{web}");
    assert_ne!(replicas[0]["node"], replicas[1]["node"]);
    ann.run("deployment get web")
        .succeeds()
        .prints(&["SPREAD     yes\n", "\nREPLICA  STATUS   NODE  ENDPOINTS  REASON\n"])
        .prints(&["running  a     -          -\n", "running  b     -          -\n"]);

    // No node is left for the third replica: the deployment runs but is not complete.
    ann.run("deployment scale web 3 --wait=2").fails(
        1,
        &[
            "deployment web is still running after 2 s: 2 of 3 replicas running.",
            "deployment explain",
        ],
    );
    ann.run("deployment scale web 1 --wait=60").succeeds().prints(&["web", "running"]);
    let web = ann.json("deployment get web");
    assert_eq!(web["replicas"], 1);
    assert_eq!(web["replica_statuses"].as_array().unwrap().len(), 1, "{web}");
    assert_eq!(ann.json("deployment scale web 2")["replicas"], 2);
}

#[test]
fn wait_reports_the_reason_of_a_failure() {
    let server = Setup::new().arg("--simulated-fail", "broken").start();
    let ann = with_nodes(&server);
    ann.run("deploy broken:1 --name web --cluster duo --replicas 2 --restart never --wait=60")
        .fails(
            1,
            &[
                "error: deployment web failed: ",
                "is configured to fail",
                "hint: check the logs: run \"paddock deployment logs",
            ],
        );
}

#[test]
fn dry_run_shows_placement_without_changes() {
    let server = Server::start();
    let ann = with_nodes(&server);
    ann.run("deploy batch:1 --name batch --cluster duo --cpu 2 --wait=60").succeeds();
    let before = ann.json("events");

    ann.run("deploy nginx:1 --cluster duo --cpu 1 --dry-run")
        .succeeds()
        .prints(&["REPLICA  OUTCOME  CLUSTER  NODE  VICTIMS  WHY\n"])
        .prints(&["0        start    duo      b     -        -\n"])
        .notes(&["no changes made"]);
    ann.run("deployment create --image nginx:1 --cluster duo --cpu 2 --priority 9 --dry-run")
        .succeeds()
        .prints(&["0        preempt  duo      a     batch/0  -\n"]);
    ann.run("deploy nginx:1 --cluster duo --cpu 2 --dry-run").succeeds().prints(&[
        "wait",
        "missing on duo/a: 2 cpu",
        "blocked by: batch/0",
    ]);
    ann.run("deploy nginx:1 --cluster duo --cpu 64 --dry-run")
        .succeeds()
        .prints(&["unschedulable", "even if empty"]);
    let dry_run = ann.json("deploy nginx:1 --cluster duo --cpu 1 --replicas 2 --dry-run");
    assert_eq!(dry_run["dry_run"], true);
    assert_eq!(dry_run["replicas"].as_array().unwrap().len(), 2);

    ann.run("deploy nginx:1 --dry-run --wait").fails(2, &["cannot be used with"]);
    assert_eq!(ann.json("events"), before, "no events");
    assert_eq!(count(&ann.json("deployment list")), 1);
}

#[test]
fn pending_deployments_are_queued_and_explained() {
    let server = Server::start();
    let ann = with_nodes(&server);
    ann.run("deploy batch:1 --name batch --cluster duo --cpu 2 --run-for 1h --wait=60").succeeds();
    ann.run("deploy low:1 --name low --cluster duo --cpu 2").succeeds();
    ann.run("deploy next:1 --name next --cluster duo --cpu 2 --ram 1Gi").succeeds();
    ann.run("deploy huge:1 --name huge --cluster duo --cpu 64 --priority -1 --wait=1")
        .fails(1, &["deployment huge is still queued after 1 s: "]);

    let outcome = ann.run("queue --cluster duo").succeeds();
    let lines: Vec<_> = outcome.stdout.lines().collect();
    assert!(lines[0].starts_with("#  ID "), "{lines:?}");
    for (line, name) in lines[1..].iter().zip(["low", "next", "huge"]) {
        assert!(line.contains(&format!("  {name} ")) && line.contains("cpu"), "{lines:?}");
    }
    assert_eq!(count(&ann.json("queue")), 3);
    ann.run("queue --limit 1").succeeds().notes(&["showing the first 1; use --limit for more"]);
    ann.run("queue --limit 0").fails(2, &["--limit"]);
    ann.run("queue --cluster nowhere").fails(1, &["cluster \"nowhere\" not found"]);

    ann.run("deployment explain low").succeeds().prints(&[
        "DEPLOYMENT  low\n",
        "STATUS      queued\n",
        "Replica 0: pending, ",
        "position in the queue: 1\n",
        "missing on duo/a: 2 cpu\n",
        "blocked by: batch/0\n",
        "estimated start: 20",
    ]);
    ann.run("deployment explain next").succeeds().prints(&["position in the queue: 2\n"]);
    ann.run("deployment explain huge")
        .succeeds()
        .prints(&["Replica 0: unschedulable, ", "cpu, even if empty\n"]);
    ann.run("deployment explain batch")
        .succeeds()
        .prints(&["Replica 0: placed.", "placed on: duo/a\n"]);
    let explained = ann.json("deployment explain low");
    assert_eq!(explained["replicas"][0]["verdict"], "not_now");
    assert_eq!(explained["replicas"][0]["position"], 1);
    ann.run("deployment explain nothing")
        .fails(1, &["deployment \"nothing\" not found", "deployment list"]);
}

#[test]
fn cluster_can_be_created_with_nodes() {
    let server = Server::start();
    let ann = with_nodes(&server);
    ann.run("cluster get duo")
        .succeeds()
        .prints(&["cpu       3      0     3\n", "\nNODE  CPU  RAM    OTHER  LABELS\n"])
        .prints(&["\na     0/2  0/4Gi  -      zone=x\n", "\nb     0/1  0/2Gi  -      zone=y\n"]);
    assert_eq!(ann.json("cluster show duo")["nodes"].as_array().unwrap().len(), 2);
    ann.run("cluster create one --cpu 1 --ram 1Gi").succeeds();
    let one = ann.run("cluster show one").succeeds();
    assert!(!one.stdout.contains("NODE"), "{one:?}");

    ann.run("cluster create bad --node cpu=1").fails(2, &["--node", "no name"]);
    ann.run("cluster create bad --node a").fails(2, &["name=a,cpu=4,ram=8Gi"]);
    ann.run("cluster create bad --node name=a,cpu=many").fails(1, &["--node"]);
    ann.run("cluster create bad --node name=a").fails(1, &["--node", "at least one resource"]);
    ann.run("cluster create bad --node name=a,cpu=1 --node name=a,cpu=1").fails(1, &["twice"]);
    ann.run("cluster create bad --cpu 9 --node name=a,cpu=1").fails(1, &["their sum"]);
}

#[test]
fn invalid_input_is_rejected_with_a_helpful_message() {
    let server = Server::start();
    let ann = with_nodes(&server);
    ann.run("deploy").fails(2, &["<IMAGE>"]);
    ann.run("deploy ngi$nx").fails(1, &["error: image: ", "must be name:tag"]);
    ann.run("deploy nginx:1 --replicas 0").fails(1, &["--replicas: must be from 1 to 1000, not 0"]);
    ann.run("deploy nginx:1 --replicas 1000000").fails(1, &["--replicas: "]);
    ann.run("deploy nginx:1 --run-for soon").fails(2, &["--run-for", "use for example 45s"]);
    ann.run("deploy nginx:1 --run-for 0s").fails(2, &["--run-for", "greater than zero"]);
    ann.run("deploy nginx:1 --restart maybe").fails(2, &["never, on-failure, always"]);
    ann.run("deploy nginx:1 --on-label zone").fails(2, &["--on-label", "KEY=VALUE"]);
    ann.run("deploy nginx:1 --cluster nowhere").fails(1, &["cluster \"nowhere\" not found"]);
    ann.run("deployment scale web 0").fails(2, &["paddock deployment delete"]);
    ann.run("deployment scale web many").fails(2, &["at least 1"]);
    ann.run("deployment scale web 2")
        .fails(1, &["deployment \"web\" not found", "deployment list"]);
    ann.run("deployment get 9m4e2mr0ui3e8a215n4g").fails(1, &["deployment", "not found"]);
    assert_eq!(count(&ann.json("deployment list")), 0);
}
