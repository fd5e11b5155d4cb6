//! `paddock env`, from plan to destroy.

use serde_json::{Value, json};

use super::client_template::{SHOP, next_shop, publish};
use super::fake::{Fake, json as answer};
use super::process::{Client, Server, Setup};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

/// Finds a resource by name.
fn resource<'a>(environment: &'a Value, name: &str) -> &'a Value {
    let all = environment["resources"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap()
}

/// A client that has published the shop template.
fn with_shop(server: &Server) -> Client {
    let ann = server.owner("acme", "ann");
    publish(&ann, SHOP);
    ann
}

#[test]
fn environment_lifecycle_from_plan_to_destroy() {
    let server = Server::start();
    let ann = with_shop(&server);
    let plan = ann.run("env plan prod --template shop --set replicas=1").succeeds().prints(&[
        "ACTION    RESOURCE  EXECUTOR    AFTER  REASON\n",
        "+ create  bus       service     -      ",
        "+ create  web       deployment  bus    ",
        "2 to create.\nplan ",
    ]);
    let (_, hash) = plan.stdout.trim_end().rsplit_once("plan ").unwrap();
    let next =
        format!("paddock env apply prod --template shop@1.0.0 --set replicas=1 --plan {hash}");
    let plan = plan.notes(&[&format!("no changes made; to apply this plan, run: {next}")]);
    assert_eq!(plan.stderr.lines().count(), 1);
    assert_eq!(names(&ann.json("env list")), [""; 0]);

    let line = next.strip_prefix("paddock ").unwrap();
    ann.run(&format!("{line} --tag team=web --description Production --ttl 7d --wait=120"))
        .succeeds()
        .prints(&["prod", "deployed", "100%", "shop@1.0.0", "tcp://127.0.0.1:80"])
        .notes(&["environment prod: 0 %: deploying: ", "environment prod: web: applied\n"])
        .notes(&["environment prod: 100 %: deployed\n"]);
    let shown = ann.json("env show prod");
    let id = shown["id"].as_str().unwrap();
    assert_eq!(
        (&shown["tags"]["team"], &shown["description"]),
        (&json!("web"), &json!("Production"))
    );
    let (bus, web) = (resource(&shown, "bus"), resource(&shown, "web"));
    let deployment = web["link"]["id"].as_str().unwrap();
    ann.run(&format!("env get {id}")).succeeds().prints(&[
        "STATUS        deployed (Deployed - OK)\n",
        "PROGRESS      100%\n",
        "ENTRY POINTS  tcp://127.0.0.1:80\n",
        "PARAMETERS    replicas=1\n",
        "ON DRIFT      report\n",
        "RESOURCE  EXECUTOR    STATUS   ACTION  PROGRESS",
        &format!("instance {}", bus["link"]["id"].as_str().unwrap()),
        &format!("deployment {deployment}"),
    ]);
    assert_eq!(ann.json(&format!("deployment show {deployment}"))["image"], "nginx:1");
    ann.run("env logs prod web").succeeds().prints(&[") created."]);
    ann.run("env logs prod web -f --tail 1 --timestamps").succeeds().prints(&["20", "Z "]);
    assert_eq!(
        ann.json("env logs prod web --tail 1")["text"].as_str().map(str::is_empty),
        Some(false)
    );
    ann.run("env graph prod").succeeds().prints(&["prod", "web", "bus", "shop@1.0.0"]);
    ann.run("env graph prod --format svg").succeeds().prints(&["<svg"]);
    ann.run("env graph nowhere").fails(1, &["environment \"nowhere\" not found"]);
    ann.run("env list --status deployed").succeeds().prints(&["prod"]);
    assert_eq!(names(&ann.json("env list --status failed")), [""; 0]);
    ann.run("template delete shop@1.0.0")
        .fails(1, &["is used by environments", "hint: run \"paddock env list\""]);

    ann.run("env plan prod").succeeds().prints(&["2 unchanged."]).notes(&["no changes"]);
    ann.run("env plan prod --all").succeeds().prints(&["= unchanged  web"]);
    ann.run("env plan prod --destroy")
        .succeeds()
        .prints(&["- destroy  web", "2 to destroy."])
        .notes(&["paddock env destroy prod"]);
    ann.run("env destroy prod --wait=120")
        .succeeds()
        .notes(&["environment prod: web: destroyed", "environment prod destroyed"]);
    assert_eq!(names(&ann.json("env list")), [""; 0]);
    assert_eq!(names(&ann.json("env list --all")), ["prod"]);
    assert_eq!(names(&ann.json("deployment list")), [""; 0]);
    ann.run(&format!("env show {id}"))
        .succeeds()
        .prints(&["STATUS        destroyed (Destroyed)\n"]);
    ann.run("env show prod").fails(1, &["environment \"prod\" not found", "paddock env list"]);
    ann.run(&format!("env logs {id} web")).succeeds().prints(&[") created."]);
}

#[test]
fn environment_is_updated_and_moved_to_another_version() {
    let server = Server::start();
    let ann = with_shop(&server);
    ann.run("env apply prod --template shop@1.0.0 --wait=120").succeeds();
    ann.run("env plan prod --set replicas=2")
        .succeeds()
        .prints(&["~ update  web", "1 to update, 1 unchanged."]);
    ann.run("env apply prod --set replicas=2 --on-drift repair --tag a=b --wait=120").succeeds();
    let shown = ann.json("env show prod");
    assert_eq!(shown["parameters"], json!({"replicas": 2}));
    assert_eq!((&shown["on_drift"], &shown["tags"]), (&json!("repair"), &json!({"a": "b"})));
    let web = resource(&shown, "web")["link"]["id"].as_str().unwrap();
    assert_eq!(ann.json(&format!("deployment show {web}"))["replicas"], 2);

    publish(&ann, &next_shop());
    ann.run("template impact shop 1.0.0 1.1.0").succeeds().prints(&[
        "ENVIRONMENT  STATUS    SUMMARY",
        "prod         deployed  ",
        "1 to destroy",
        "- bus",
    ]);
    let plan = ann.json("env plan prod --template shop");
    let hash = plan["hash"].as_str().unwrap();
    ann.run("env apply prod --template shop --plan 0000").fails(
        1,
        &["Plan 0000 is outdated", "hint: plan again: paddock env plan prod --template shop@1.1.0"],
    );
    assert_eq!(ann.json("env show prod")["templates"], json!(["shop@1.0.0"]));
    ann.run(&format!("env apply prod --template shop --plan {hash} --wait=120")).succeeds();
    let shown = ann.json("env show prod");
    assert_eq!(shown["templates"], json!(["shop@1.1.0"]));
    assert_eq!(shown["resources"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(names(&ann.json("service dinosaur list")), [""; 0]);
}

#[test]
fn wait_reports_the_reason_of_a_failure_and_a_hint() {
    let server = Setup::new().arg("--simulated-fail", "broken").start();
    let ann = with_shop(&server);
    ann.run("env apply prod --template shop --set image=broken:1 --wait=120").fails(
        1,
        &[
            "error: environment prod failed: Resource web failed: ",
            "is configured to fail",
            "  last log lines of web:\n    ",
            "hint: check \"paddock env logs prod web\" and \"paddock deployment logs ",
            "run \"paddock env retry prod --wait\"",
        ],
    );
    ann.run("env show prod")
        .succeeds()
        .prints(&["failed (Deployed - Fail)", "is configured to fail"]);
    ann.run("env retry prod --wait=120").fails(1, &["is configured to fail"]);
    ann.run("env apply prod --set image=nginx:1 --wait=120").succeeds().prints(&["deployed"]);
    ann.run("env retry prod").fails(1, &["has not failed", "hint: run \"paddock env show prod\""]);
}

#[test]
fn wait_timeout_reports_status_and_cancel_stops_it() {
    let server = Setup::new().arg("--simulated-delay-ms", "30000").start();
    let ann = with_shop(&server);
    ann.run("env apply prod --template shop --wait=2").fails(
        1,
        &["environment prod is still deploying after 2 s: ", "run \"paddock env show prod\""],
    );
    ann.run("env apply prod --set replicas=2").fails(1, &["is being deployed", "env show prod"]);
    ann.run("env cancel prod --wait=120").succeeds().prints(&["prod", "failed", "Cancelled"]);
    ann.run("env cancel prod").fails(1, &["has no running operation", "env show prod"]);
    ann.run("env destroy prod").succeeds().notes(&["environment prod is being destroyed"]);
}

#[test]
fn drift_is_shown_by_field_and_repaired() {
    let server = Server::start();
    let ann = with_shop(&server);
    ann.run("env apply prod --template shop --wait=120").succeeds();
    ann.run("env drift prod --now").succeeds().prints(&["No drift."]);
    ann.run("env repair prod --wait").succeeds().notes(&["nothing to repair"]);
    let shown = ann.json("env show prod");
    let web = resource(&shown, "web")["link"]["id"].as_str().unwrap().to_owned();
    ann.run(&format!("deployment scale {web} 3 --wait=60")).succeeds();
    ann.run("env drift prod --now")
        .succeeds()
        .prints(&[
            "RESOURCE  FIELD     EXPECTED  ACTUAL  OBSERVED\n",
            "web       replicas  1         3       20",
        ])
        .notes(&["to repair it, run \"paddock env repair prod\""]);
    assert_eq!(ann.json("env drift prod")["drifted"], true);
    ann.run("env repair prod wob").fails(1, &["resource wob not found"]);
    ann.run("env repair prod web --wait=120").succeeds().notes(&["repaired: web"]);
    ann.run("env drift prod --now").succeeds().prints(&["No drift."]);
    assert_eq!(ann.json(&format!("deployment show {web}"))["replicas"], 1);
}

#[test]
fn existing_deployment_is_adopted() {
    let server = Server::start();
    let ann = with_shop(&server);
    let old = ann.json("deploy nginx:1 --name old-web --cpu 50m --ram 32Mi --port 80 --wait=60");
    let line = "env apply prod --template shop --adopt web=old-web --wait=120";
    ann.run(line).succeeds().prints(&["deployed"]);
    assert_eq!(resource(&ann.json("env show prod"), "web")["link"]["id"], old["id"]);
    ann.run("env adopt prod web old-web")
        .fails(1, &["only a resource that is not created yet", "env show prod"]);
    ann.run("env apply lab --template shop --adopt wob=old-web").fails(1, &["--adopt wob: "]);
    ann.run("env apply lab --template shop --adopt web=nowhere --wait=120")
        .fails(1, &["deployment nowhere not found"]);
    ann.run("env adopt lab web old-web").succeeds().notes(&["adopts old-web", "env retry lab"]);
}

#[test]
fn apply_is_atomic() {
    let server = Server::start();
    let ann = with_shop(&server);
    // An earlier version without web servers.
    let (early, _) = SHOP.split_once("  - name: web").unwrap();
    publish(&ann, &early.replace("1.0.0", "0.9.0"));
    let old = ann.json("deploy nginx:1 --name old-web --cpu 50m --ram 32Mi --port 80 --wait=60");
    ann.run("env apply prod --template shop@0.9.0 --wait=120").succeeds();
    let before = ann.json("env show prod");
    let flags = "--template shop@1.0.0 --tag a=b --description Moved --on-drift repair --ttl 7d";
    for (more, why) in [
        ("--adopt web=old-web --plan 0000", "Plan 0000 is outdated"),
        ("--adopt bus=other", "--adopt bus: "),
        ("--adopt wob=old-web", "--adopt wob: resource wob not found"),
    ] {
        ann.run(&format!("env apply prod {flags} {more}")).fails(1, &[why]);
        assert_eq!(ann.json("env show prod"), before, "{more}");
    }
    // The resource of the new version adopts the existing deployment.
    ann.run(&format!("env apply prod {flags} --adopt web=old-web --wait=120")).succeeds();
    let now = ann.json("env show prod");
    assert_eq!(resource(&now, "web")["link"]["id"], old["id"]);
    assert_eq!((&now["tags"], &now["description"]), (&json!({"a": "b"}), &json!("Moved")));
    assert!(now["on_drift"] == "repair" && now["destroy_at"].is_string(), "{now}");
    ann.run("env apply prod --destroy-at 2d --wait=120").succeeds();
    assert_ne!(ann.json("env show prod")["destroy_at"], now["destroy_at"]);
}

#[test]
fn destroy_time_is_set_and_removed() {
    let server = Server::start();
    let ann = with_shop(&server);
    let created = ann.json("env apply prod --template shop --destroy-at 365d");
    let ttl = created["destroy_at"].as_str().unwrap();
    let later = format!("{}-01-31T12:00:00Z", ttl[..4].parse::<u32>().unwrap() + 1);
    ann.run(&format!("env extend prod {later}")).succeeds().prints(&[&later]);
    assert_eq!(ann.json("env show prod")["destroy_at"], later.as_str());
    ann.run("env extend prod --never").succeeds();
    assert_eq!(ann.json("env show prod")["destroy_at"], Value::Null);
    assert!(ann.json("env extend prod 12h")["destroy_at"].is_string());
    ann.run("env extend prod").fails(2, &["<TTL>"]);
    ann.run("env extend prod soon").fails(2, &["45s, 30m, 12h or 7d", "2030-01-31T12:00:00Z"]);
    ann.run("env extend prod 1h --never").fails(2, &["cannot be used with"]);
    ann.run("env apply prod --ttl 1h --destroy-at 2h").fails(2, &["cannot be used with"]);
    ann.run("env extend prod 1s").succeeds();
    ann.run("events --kind environment --subject prod --type environment.extended")
        .succeeds()
        .prints(&["environment.extended"]);
}

#[test]
fn invalid_environment_is_rejected_with_flag_and_hint() {
    let server = Server::start();
    let ann = with_shop(&server);
    for line in ["plan", "apply"] {
        ann.run(&format!("env {line} prod"))
            .fails(1, &["environment \"prod\" not found", "--template", "template list"]);
        ann.run(&format!("env {line} prod --template nowhere"))
            .fails(1, &["--template: template \"nowhere\" not found", "template list"]);
        ann.run(&format!("env {line} prod --template shop@9"))
            .fails(1, &["--template: ", "shop@9"]);
        ann.run(&format!("env {line} prod --template shop --set replicas=9"))
            .fails(1, &["--set replicas: "]);
        ann.run(&format!("env {line} prod --template shop --set colour=red"))
            .fails(1, &["--set colour: "]);
        ann.run(&format!("env {line} Bad_ --template shop"))
            .fails(1, &["error: name: ", "a-z, 0-9 and -"]);
        ann.run(&format!("env {line} prod --template shop --set replicas"))
            .fails(2, &["KEY=VALUE"]);
        ann.run(&format!("env {line} prod --template shop --parameters nowhere.yaml"))
            .fails(1, &["--parameters: cannot read nowhere.yaml"]);
    }
    ann.run("env plan prod --destroy").fails(1, &["environment \"prod\" not found"]);
    ann.run("env plan prod --destroy --set a=1").fails(2, &["cannot be used with"]);
    ann.run("env apply prod --template shop --on-drift panic").fails(2, &["report, repair"]);
    ann.run("env logs prod web").fails(1, &["environment", "not found"]);
    ann.run("env list --status sleeping").fails(2, &["deploying", "destroyed"]);
    assert_eq!(names(&ann.json("env list --all")), [""; 0]);
    let mut deprecate = ann.command("template deprecate shop@1.0.0 --why");
    assert!(deprecate.arg("It is old.").status().unwrap().success());
    ann.run("env apply prod --template shop@1.0.0").fails(1, &["--template: ", "It is old."]);
    ann.run("env apply prod --template shop")
        .fails(1, &["not found, or all versions are deprecated", "template list"]);
}

#[test]
fn environments_of_others_are_not_found() {
    let server = Server::start();
    let ann = with_shop(&server);
    let eve = server.owner("evil", "eve");
    let id = ann.json("env apply prod --template shop")["id"].as_str().unwrap().to_owned();
    for which in [id.as_str(), "prod"] {
        for line in [
            "show WHICH",
            "destroy WHICH",
            "retry WHICH",
            "cancel WHICH",
            "drift WHICH",
            "repair WHICH",
            "extend WHICH 1h",
            "logs WHICH web",
            "adopt WHICH web x",
            "plan WHICH --destroy",
        ] {
            let line = line.replace("WHICH", which);
            eve.run(&format!("env {line}")).fails(1, &["environment", "not found"]);
        }
    }
    assert_eq!(names(&ann.json("env list")), ["prod"]);
    publish(&eve, SHOP);
    eve.run("env apply prod --template shop").succeeds();
}

#[test]
fn interrupted_log_is_resumed() {
    let id = "9m4e2mr0ui3e8a215n4g";
    let now = "2026-01-02T03:04:05Z";
    let at = |status: &str, step: &str| {
        let resource = json!({
            "id": id, "environment_id": id, "name": "web", "executor": "deployment",
            "template": "shop@1.0.0", "action": false, "description": "", "tags": {},
            "act": "nothing", "status": step, "status_reason": "", "status_since": now,
            "progress": 0, "outputs": {}, "depends_on": [], "drift": [], "unexpected": [],
            "attempts": 0, "generation": 1, "created_at": now, "updated_at": now,
        });
        let environment = json!({
            "id": id, "organization_id": id, "name": "prod", "description": "", "tags": {},
            "templates": [], "parameters": {}, "on_drift": "report", "status": status,
            "status_words": "", "status_reason": "", "status_since": now, "progress": 0,
            "entry_points": [], "cancelling": false, "created_by": id, "generation": 1,
            "created_at": now, "updated_at": now, "resources": [resource],
        });
        answer("200 OK", &environment.to_string())
    };
    let line = |number: u8| {
        let text = format!("line {number}");
        format!("{}\n", json!({ "number": number, "at": now, "text": text }))
    };
    let fake = Fake::start(vec![
        at("deploying", "applying"),
        answer("200 OK", &line(1)),
        at("deploying", "applying"),
        answer("200 OK", &line(2)),
        at("deployed", "applied"),
    ]);
    let client = Client::logged_in(&fake.address);
    let outcome = client.run(&format!("env logs {id} web -f --tail 5")).succeeds();
    assert_eq!(outcome.stdout, "line 1\nline 2\n");
    let requests = fake.requests();
    assert!(requests[1].contains("/resources/web/logs?tail=5&follow=true "), "{requests:?}");
    assert!(requests[3].contains("/resources/web/logs?follow=true&after=1 "), "{requests:?}");
}
