//! Remote agents over HTTP: desired state, reports, and agents that report false data.

use std::time::Duration;

use futures_util::future::join_all;
use model::InstanceId;
use serde_json::{Value, json};
use store::Scope;
use testing::{Client, TestPaddock, check_ledgers, on_both_engines};

use crate::fleet::kafka;
use crate::world::{
    World, agent_cluster, agent_of, cluster_path, deployment_path, names_field, refused, start,
    until_shown,
};

const HEARTBEAT: &str = "/api/v1/agent/heartbeat";
const REPORTS: &str = "/api/v1/agent/reports";

/// Reports `capacity` and enough memory for containers.
fn heartbeat_body(capacity: &Value) -> Value {
    let mut capacity = capacity.clone();
    capacity["ram"] = json!("64Gi");
    json!({"version": "1", "runtime": "simulated", "capacity": capacity})
}

fn report(desired: &Value, observed: &Value) -> Value {
    json!({"reports": [{
        "replica": desired["replica"], "cluster": desired["cluster"],
        "generation": desired["generation"], "observed": observed,
    }]})
}

fn running() -> Value {
    json!({"state": "running", "endpoints": ["10.0.0.1:80"]})
}

/// Creates a ready cluster of 4 cpu with its agent.
async fn ready_cluster(paddock: &TestPaddock, owner: &Client, name: &str) -> (String, Client) {
    let id = agent_cluster(owner, name).await;
    let agent = agent_of(paddock, owner, &id).await;
    agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": 4}))).await.expect(200);
    paddock.until(owner, &cluster_path(&id), "status", "ready").await;
    (id, agent)
}

/// Creates a deployment that fits nowhere else, and drives it until its agent reports it as
/// running.
async fn deploy(
    paddock: &TestPaddock,
    owner: &Client,
    agent: &Client,
    cpu: i64,
) -> (String, Value) {
    let body = json!({"image": "web:1", "resources": {"cpu": cpu}});
    let id = owner.post("/api/v1/deployments", body).await.text("id");
    let desired = desired_for(agent, &id).await;
    agent.post(REPORTS, report(&desired, &running())).await.expect(204);
    paddock.until(owner, &deployment_path(&id), "status", "running").await;
    (id, desired)
}

/// Returns the desired state of a deployment once its agent receives it.
async fn desired_for(agent: &Client, deployment: &str) -> Value {
    for _ in 0..20 {
        let told = agent.get("/api/v1/agent/desired?wait=5").await.expect(200);
        let items = told["items"].as_array().unwrap().clone();
        let found =
            items.into_iter().find(|desired| desired["replica"]["deployment"] == deployment);
        if let Some(desired) = found {
            return desired;
        }
    }
    panic!("the agent does not receive {deployment}");
}

async fn until_reason(client: &Client, path: &str, words: &str, is_there: bool) -> Value {
    let says = |now: &Value| now["status_reason"].as_str().unwrap().contains(words);
    until_shown(client, path, |now| says(now) == is_there).await
}

/// Stops an agent's heartbeats until its cluster is unreachable.
async fn make_unreachable(paddock: &TestPaddock, owner: &Client, cluster: &str) -> Value {
    paddock.clock.advance(Duration::from_secs(31));
    paddock.until(owner, &cluster_path(cluster), "status", "unreachable").await
}

const CAVEAT: &str = "this is the last known status.";

on_both_engines! {
    async fn agent_token_is_valid_for_its_cluster_until_it_expires(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let mia = paddock.member(&ann, "mia").await;
        let (id, first) = ready_cluster(&paddock, &ann, "far").await;
        let path = format!("{}/token", cluster_path(&id));
        zoe.post(&path, json!({})).await.expect(404);
        mia.post(&path, json!({})).await.expect(403);
        let local = paddock.cluster(&ann, json!({"cpu": 1})).await;
        ann.post(&format!("{}/token", cluster_path(&local)), json!({})).await.expect(409);

        let second = agent_of(&paddock, &ann, &id).await;
        let beat = || heartbeat_body(&json!({"cpu": 4}));
        for agent in [&first, &second] {
            assert_eq!(agent.post(HEARTBEAT, beat()).await.expect(200)["cluster"], *id);
        }
        paddock.clock.advance(Duration::from_secs(61));
        let ended = first.post(HEARTBEAT, beat()).await;
        refused(&ended, "an expired token");
        ended.expect(401);
        second.post(HEARTBEAT, beat()).await.expect(200);
        let third = ann.post(&path, json!({"overlap_secs": 0})).await.text("token");
        second.get("/api/v1/agent/desired").await.expect(401);
        let third = paddock.client.with_token(&third);
        third.post(HEARTBEAT, beat()).await.expect(200);

        // A user token is not valid for an agent, nor an agent token for a user.
        ann.post(HEARTBEAT, beat()).await.expect(401);
        for path in ["/api/v1/clusters", "/api/v1/events", "/user/", "/api/v1/users/me"] {
            third.get(path).await.expect(401);
        }
        third.get(&cluster_path(&id)).await.expect(401);
        let log = ann.get("/api/v1/events?limit=1000").await.expect(200).to_string();
        assert!(log.contains("cluster.token_made") && !log.contains(third.token().unwrap()));
        // Tokens of a deleted cluster are invalid.
        ann.delete(&cluster_path(&id)).await.expect(202);
        paddock.until_deleted(&ann, &cluster_path(&id)).await;
        third.post(HEARTBEAT, beat()).await.expect(401);
    }

    async fn desired_state_change_wakes_a_waiting_agent_once(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (id, agent) = ready_cluster(&paddock, &ann, "far").await;
        assert_eq!(agent.get("/api/v1/agent/desired").await.expect(200)["items"], json!([]));
        let body = json!({"cluster_id": id, "image": "web:1", "resources": {"cpu": 1}, "env": {"A": "b"}});
        let (told, made) = tokio::join!(
            agent.get("/api/v1/agent/desired?wait=20"),
            ann.post("/api/v1/deployments", body)
        );
        let (told, deployment) = (told.expect(200), made.text("id"));
        let desired = &told["items"][0];
        assert_eq!(desired["replica"], json!({"deployment": deployment, "number": 0}), "{told:#}");
        assert_eq!((&desired["run"]["image"], &desired["run"]["env"]["A"]), (&json!("web:1"), &json!("b")));
        let again = format!("/api/v1/agent/desired?wait=1&seen={}", told["cursor"].as_str().unwrap());
        assert_eq!(agent.get(&again).await.expect(200)["items"], json!([]));
        // An agent without a cursor still gets the change.
        assert_eq!(agent.get("/api/v1/agent/desired").await.expect(200)["items"][0], *desired);

        for _ in 0..2 {
            agent.post(REPORTS, report(desired, &running())).await.expect(204);
        }
        let path = deployment_path(&deployment);
        let seen = paddock.until(&ann, &path, "status", "running").await;
        assert_eq!(seen["endpoints"], json!(["10.0.0.1:80"]));
        let history = ann.get(&format!("{path}/history")).await.expect(200).to_string();
        assert_eq!(history.matches("deployment.running").count(), 1, "{history}");
        assert_eq!(agent.get("/api/v1/agent/desired").await.expect(200)["items"], json!([]));
        let all = agent.get("/api/v1/agent/desired?all=true&wait=20").await.expect(200);
        assert_eq!(all["items"][0], *desired);

        ann.delete(&path).await.expect(202);
        let desired = desired_for(&agent, &deployment).await;
        assert_eq!(desired["run"], Value::Null);
        agent.post(REPORTS, report(&desired, &json!({"state": "gone"}))).await.expect(204);
        paddock.until_deleted(&ann, &path).await;
        check_ledgers(paddock.db()).await;
    }

    async fn reports_about_other_clusters_are_ignored(engine: Engine) {
        let world = World::new(engine).await;
        let (paddock, ann) = (&world.paddock, &world.ann);
        let (id, agent) = ready_cluster(paddock, ann, "lab").await;
        let body = json!({"cluster_id": id, "image": "web:1", "resources": {"cpu": 1}});
        let own = ann.post("/api/v1/deployments", body).await.text("id");
        let desired = desired_for(&agent, &own).await;
        let before = world.snapshot().await;

        let gone = json!({"state": "gone"});
        for other in [&world.ours, &world.theirs] {
            let mut lie = desired.clone();
            lie["cluster"] = json!(other.cluster);
            let answer = agent.post(REPORTS, report(&lie, &gone)).await;
            refused(&answer, "another cluster");
            assert_eq!(answer.json["errors"][0]["field"], "reports[0].cluster");
            answer.expect(403);
            // A replica of another cluster, reported for this one.
            for generation in 0..4 {
                let mut lie = desired.clone();
                lie["replica"]["deployment"] = json!(other.deployment);
                lie["generation"] = json!(generation);
                agent.post(REPORTS, report(&lie, &gone)).await.expect(204);
            }
        }
        let first = desired["generation"].as_i64().unwrap();
        for generation in [0, -1, first + 1, first + 1000, i64::MAX, i64::MIN] {
            for observed in [&gone, &running(), &json!({"state": "failed", "reason": "a lie"})] {
                let mut lie = desired.clone();
                lie["generation"] = json!(generation);
                agent.post(REPORTS, report(&lie, observed)).await.expect(204);
            }
        }
        let mut lie = desired.clone();
        lie["replica"]["number"] = json!(u32::MAX);
        agent.post(REPORTS, report(&lie, &gone)).await.expect(204);
        // The desired state is running: a report that the replica is gone does not apply.
        for amount in [json!(-1), json!(1e300), json!("9999999999999999999")] {
            let answer = agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": amount}))).await;
            names_field(&answer, "capacity", &amount.to_string());
        }
        assert_eq!(world.snapshot().await, before);
        check_ledgers(paddock.db()).await;
        agent.post(REPORTS, report(&desired, &running())).await.expect(204);
        paddock.until(ann, &deployment_path(&own), "status", "running").await;
        // Overlong reports are truncated.
        let long = json!({"state": "failed", "reason": "x".repeat(100_000)});
        agent.post(REPORTS, report(&desired, &long)).await.expect(204);
        let failed = paddock.until(ann, &deployment_path(&own), "status", "failed").await;
        assert!(failed["status_reason"].as_str().unwrap().len() < 3000);
    }

    async fn excessive_heartbeats_are_throttled(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (_, wild) = ready_cluster(&paddock, &ann, "wild").await;
        let (_, calm) = ready_cluster(&paddock, &ann, "calm").await;
        let beat = || heartbeat_body(&json!({"cpu": 4}));
        let mut slowed = None;
        for _ in 0..20 {
            let answers = join_all((0..100).map(|_| wild.post(HEARTBEAT, beat()))).await;
            slowed = answers.into_iter().find(|answer| answer.status == 429);
            if slowed.is_some() {
                break;
            }
        }
        let slowed = slowed.expect("excessive heartbeats are rejected");
        refused(&slowed, "a flood");
        assert!(slowed.headers.contains_key("retry-after"));
        calm.post(HEARTBEAT, beat()).await.expect(200);
        paddock.clock.advance(Duration::from_secs(2));
        wild.post(HEARTBEAT, beat()).await.expect(200);
    }

    async fn reported_capacity_is_applied_unless_below_the_used_capacity(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (id, agent) = ready_cluster(&paddock, &ann, "far").await;
        deploy(&paddock, &ann, &agent, 3).await;
        let kept = agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": 2}))).await.expect(200);
        assert!(kept["capacity_kept"].as_str().unwrap().contains("in use"), "{kept:#}");
        let shown = ann.get(&cluster_path(&id)).await.expect(200);
        assert_eq!(shown["capacity"]["cpu"], json!({"total": 4, "used": 3, "free": 1}));
        assert_eq!(shown["agent"]["runtime"], "simulated");
        let more = agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": 8, "gpu": 1}))).await.expect(200);
        assert_eq!(more["capacity_kept"], Value::Null);
        let shown = ann.get(&cluster_path(&id)).await.expect(200);
        assert_eq!(shown["capacity"]["cpu"]["total"], 8);
        let generation = &shown["generation"];
        // The same capacity again is no change.
        agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": 8, "gpu": 1}))).await.expect(200);
        assert_eq!(ann.get(&cluster_path(&id)).await.expect(200)["generation"], *generation);
        let nodes = json!([{"name": "main", "capacity": {"cpu": 8, "ram": "1Gi"}, "labels": {"disk": "fast"}},
            {"name": "more", "capacity": {"cpu": 2, "ram": "1Gi"}}]);
        let body = json!({"version": "1", "runtime": "simulated", "nodes": nodes});
        assert_eq!(agent.post(HEARTBEAT, body).await.expect(200)["capacity_kept"], Value::Null);
        let shown = ann.get(&cluster_path(&id)).await.expect(200);
        assert_eq!(shown["nodes"][0]["labels"]["disk"], "fast");
        assert_eq!(shown["capacity"]["cpu"]["total"], 10);
        check_ledgers(paddock.db()).await;
    }

    async fn heartbeats_write_no_events(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (id, agent) = ready_cluster(&paddock, &ann, "far").await;
        let path = format!("/api/v1/events?subject={id}&limit=1000");
        let before = ann.get(&path).await.expect(200);
        for _ in 0..5 {
            paddock.clock.advance(Duration::from_secs(5));
            agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": 4}))).await.expect(200);
        }
        assert_eq!(ann.get(&path).await.expect(200), before);
        // The total time exceeds the heartbeat timeout, but no single interval does.
        assert_eq!(ann.get(&cluster_path(&id)).await.expect(200)["status"], "ready");
    }

    async fn cluster_without_heartbeats_is_unreachable_until_the_next_one(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (id, agent) = ready_cluster(&paddock, &ann, "far").await;
        let (deployment, _) = deploy(&paddock, &ann, &agent, 1).await;
        let path = deployment_path(&deployment);
        let lost = make_unreachable(&paddock, &ann, &id).await;
        let since = lost["agent"]["at"].as_str().unwrap();
        let reason = lost["status_reason"].as_str().unwrap();
        // Exactly at the timeout.
        assert!(reason.contains(&since[..19]) && reason.contains("valid token"), "{reason}");
        let doubted = until_reason(&ann, &path, CAVEAT, true).await;
        assert_eq!(doubted["status"], "running");
        assert_eq!(doubted["endpoints"], json!(["10.0.0.1:80"]));
        assert_eq!(doubted["reason_code"], "ClusterUnreachable");
        assert!(doubted["status_reason"].as_str().unwrap().contains(&since[..19]), "{doubted:#}");
        agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": 4}))).await.expect(200);
        paddock.until(&ann, &cluster_path(&id), "status", "ready").await;
        let known = until_reason(&ann, &path, CAVEAT, false).await;
        assert_eq!((&known["status"], &known["cluster_id"]), (&json!("running"), &json!(id)));
        check_ledgers(paddock.db()).await;
    }

    async fn workloads_of_an_unreachable_cluster_are_rescheduled_once(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (id, agent) = ready_cluster(&paddock, &ann, "far").await;
        let (deployment, old) = deploy(&paddock, &ann, &agent, 3).await;
        let body = json!({"cluster_id": id, "image": "web:1", "resources": {"cpu": 1}});
        let pinned = ann.post("/api/v1/deployments", body).await.text("id");
        let desired = desired_for(&agent, &pinned).await;
        agent.post(REPORTS, report(&desired, &running())).await.expect(204);
        let near = paddock.cluster(&ann, json!({"cpu": 4})).await;

        make_unreachable(&paddock, &ann, &id).await;
        let path = deployment_path(&deployment);
        until_reason(&ann, &path, CAVEAT, true).await;
        paddock.clock.advance(Duration::from_secs(301));
        paddock.until(&ann, &path, "cluster_id", &near).await;
        let moved = paddock.until(&ann, &path, "status", "running").await;
        assert!(!moved["status_reason"].as_str().unwrap().contains(CAVEAT), "{moved:#}");
        // Pinned deployments cannot move and may still run.
        let stays = ann.get(&deployment_path(&pinned)).await.expect(200);
        assert_eq!((&stays["status"], &stays["cluster_id"]), (&json!("running"), &json!(id)));
        let shown = ann.get(&cluster_path(&id)).await.expect(200);
        assert_eq!(shown["capacity"]["cpu"]["used"], 4, "workloads that may still run keep their capacity");
        check_ledgers(paddock.db()).await;

        // The old agent returns with outdated desired state.
        agent.post(REPORTS, report(&old, &running())).await.expect(204);
        agent.post(HEARTBEAT, heartbeat_body(&json!({"cpu": 4}))).await.expect(200);
        paddock.until(&ann, &cluster_path(&id), "status", "ready").await;
        let all = agent.get("/api/v1/agent/desired?all=true").await.expect(200);
        let all = all["items"].as_array().unwrap();
        let of = |id: &str| all.iter().find(|w| w["replica"]["deployment"] == id).unwrap().clone();
        assert_eq!(of(&deployment)["run"], Value::Null, "the old replica must be removed");
        assert_eq!(of(&pinned)["run"]["image"], "web:1");
        let now = ann.get(&path).await.expect(200);
        assert_eq!((&now["status"], &now["cluster_id"]), (&json!("running"), &json!(near)));
        agent.post(REPORTS, report(&of(&deployment), &json!({"state": "gone"}))).await.expect(204);
        let shown = ann.get(&cluster_path(&id)).await.expect(200);
        assert_eq!(shown["capacity"]["cpu"]["used"], 1);
        until_reason(&ann, &deployment_path(&pinned), CAVEAT, false).await;
        check_ledgers(paddock.db()).await;
    }

    async fn instance_of_an_unreachable_cluster_is_rescheduled_unless_ready(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let capacity = json!({"cpu": 2, "ram": "2Gi"});
        let id = agent_cluster(&ann, "far").await;
        let agent = agent_of(&paddock, &ann, &id).await;
        agent.post(HEARTBEAT, heartbeat_body(&capacity)).await.expect(200);
        paddock.until(&ann, &cluster_path(&id), "status", "ready").await;
        let held = async |name: &str| {
            let instance: InstanceId = kafka(&ann, name).await.parse().unwrap();
            paddock.until(&ann, &format!("/api/v1/instances/{instance}"), "status", "provisioning").await;
            let mut read = paddock.db().read().await.unwrap();
            let found = store::instance::get(&mut read, Scope::All, instance).await.unwrap();
            let desired = desired_for(&agent, &found.deployment_id.unwrap().to_string()).await;
            (format!("/api/v1/instances/{instance}"), desired)
        };
        // One instance is ready; the agent has not reported on the other yet.
        let (ready, desired) = held("orders").await;
        agent.post(REPORTS, report(&desired, &running())).await.expect(204);
        let used = paddock.until(&ann, &ready, "status", "ready").await;
        assert_eq!(used["cluster_id"], *id);
        let (coming, _) = held("bills").await;

        let near = paddock.cluster(&ann, capacity.clone()).await;
        make_unreachable(&paddock, &ann, &id).await;
        assert_eq!(ann.get(&ready).await.expect(200)["status"], "ready", "a ready instance may still be in use");
        paddock.clock.advance(Duration::from_secs(301));
        for path in [&ready, &coming] {
            paddock.until(&ann, path, "cluster_id", &near).await;
            let moved = paddock.until(&ann, path, "status", "ready").await;
            assert_ne!(moved["endpoints"], json!(["10.0.0.1:80"]), "{moved:#}");
        }
        let told = ann.get(&format!("/api/v1/events?subject={}&limit=1000", used["id"].as_str().unwrap())).await;
        assert!(told.expect(200).to_string().contains("PlacementLost"), "the event has the reason");
        let left = ann.get(&cluster_path(&id)).await.expect(200);
        assert_ne!(left["capacity"]["cpu"]["used"], 0, "workloads that may still run keep their capacity");
        check_ledgers(paddock.db()).await;

        // The agent returns and is told to remove the leftovers only.
        agent.post(REPORTS, report(&desired, &running())).await.expect(204);
        agent.post(HEARTBEAT, heartbeat_body(&capacity)).await.expect(200);
        paddock.until(&ann, &cluster_path(&id), "status", "ready").await;
        let all = agent.get("/api/v1/agent/desired?all=true").await.expect(200);
        for desired in all["items"].as_array().unwrap() {
            assert_eq!(desired["run"], Value::Null, "{desired:#}");
            agent.post(REPORTS, report(desired, &json!({"state": "gone"}))).await.expect(204);
        }
        assert_eq!(ann.get(&cluster_path(&id)).await.expect(200)["capacity"]["cpu"]["used"], 0);
        for path in [&ready, &coming] {
            let stays = ann.get(path).await.expect(200);
            assert_eq!((&stays["status"], &stays["cluster_id"]), (&json!("ready"), &json!(near)));
        }
        check_ledgers(paddock.db()).await;
    }

    async fn unreachable_cluster_can_be_deleted(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (id, agent) = ready_cluster(&paddock, &ann, "far").await;
        let (deployment, _) = deploy(&paddock, &ann, &agent, 3).await;
        let near = paddock.cluster(&ann, json!({"cpu": 4})).await;
        make_unreachable(&paddock, &ann, &id).await;
        ann.delete(&cluster_path(&id)).await.expect(409);
        paddock.clock.advance(Duration::from_secs(301));
        paddock.until(&ann, &deployment_path(&deployment), "cluster_id", &near).await;
        ann.delete(&cluster_path(&id)).await.expect(202);
        paddock.until_deleted(&ann, &cluster_path(&id)).await;
        check_ledgers(paddock.db()).await;
    }
}

on_both_engines! {
    async fn remote_log_is_delivered_by_the_agent(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (_, agent) = ready_cluster(&paddock, &ann, "far").await;
        let (_, other) = ready_cluster(&paddock, &ann, "further").await;
        let (id, desired) = deploy(&paddock, &ann, &agent, 4).await;
        let asking = ann.request("GET", &format!("{}/logs?follow=true", deployment_path(&id)));
        let asking = base::task::spawn("asking", async move { asking.send().await.unwrap().text().await.unwrap() });
        assert_eq!(other.get("/api/v1/agent/logs?wait=0").await.expect(200)["items"], json!([]));
        let asked = agent.get("/api/v1/agent/logs?wait=10").await.expect(200)["items"][0].clone();
        assert_eq!((&asked["replica"], &asked["follow"]), (&desired["replica"], &json!(true)));
        let line = |text: &str| json!({"at": "2026-11-16T00:00:00Z", "source": "stdout", "text": text, "next": "1"});
        let part = |text: &str, end: bool| json!({"id": asked["id"], "lines": [line(text)], "end": end});
        let lie = other.post("/api/v1/agent/logs", part("a lie", false)).await.expect(200);
        assert_eq!(lie["go_on"], false);
        let taken = agent.post("/api/v1/agent/logs", part("one", false)).await.expect(200);
        assert_eq!(taken["go_on"], true);
        agent.post("/api/v1/agent/logs", part("two", true)).await.expect(200);
        assert_eq!(asking.await.unwrap(), "one\ntwo\n");
    }
}
