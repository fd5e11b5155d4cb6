//! The event log: one event per change, and filters.

use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::fleet::start_fleet;
use crate::world::{World, cluster_path, deployment_path};

/// Expected result of a filter.
type Rule<'a> = &'a dyn Fn(&Value) -> bool;

on_both_engines! {
    async fn every_change_writes_one_event_with_its_actor(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let anybody = &paddock.client;
        let user = json!({"username": "ann", "password": "x"});
        let made = anybody.put("/user/create/", json!({"user": user, "organization": {"name": "a"}})).await;
        let ann = paddock.sign_in("ann", "x").await;
        let organization = made.json["organization"]["id"].as_str().unwrap().to_owned();
        let me = format!("user:{}", made.json["user"]["id"].as_str().unwrap());
        let mut log = Log { ann: &ann, seen: 0 };
        log.is(&[("organization.created", "anonymous"), ("user.created", "anonymous")]).await;

        let invite = ann.post("/api/v1/invites", json!({})).await;
        log.is(&[("invite.created", &me)]).await;
        let body = json!({"code": invite.text("code"), "username": "mia", "password": "x"});
        let mia = anybody.post("/organization/invite/", body).await.text("id");
        log.is(&[("user.created", "anonymous"), ("invite.redeemed", "anonymous")]).await;
        let path = format!("/api/v1/invites/{}", invite.text("id"));
        ann.post(&format!("{path}/reopen"), json!({})).await.expect(200);
        log.is(&[("invite.reopened", &me)]).await;
        ann.delete(&path).await.expect(204);
        log.is(&[("invite.revoked", &me)]).await;

        let path = format!("/api/v1/organizations/{organization}");
        ann.patch(&path, json!({"name": "b"})).await.expect(200);
        log.is(&[("organization.updated", &me)]).await;
        ann.patch(&format!("/api/v1/users/{mia}"), json!({"role": "owner"})).await.expect(200);
        log.is(&[("user.updated", &me)]).await;
        ann.delete(&format!("/api/v1/users/{mia}")).await.expect(204);
        log.is(&[("user.removed", &me)]).await;

        let cluster = ann.post("/api/v1/clusters", json!({"name": "c", "capacity": {"cpu": 1}})).await;
        log.is(&[("cluster.created", &me)]).await;
        let path = cluster_path(&cluster.text("id"));
        ann.patch(&path, json!({"name": "d", "labels": {}})).await.expect(200);
        log.is(&[("cluster.updated", &me)]).await;
        let amount = json!({"resources": {"cpu": 1}});
        ann.post(&format!("{path}/capacity/check"), amount.clone()).await.expect(200);
        ann.post(&format!("{path}/capacity/take"), amount.clone()).await.expect(200);
        log.is(&[("cluster.capacity_taken", &me)]).await;
        ann.post(&format!("{path}/capacity/give-back"), amount).await.expect(200);
        log.is(&[("cluster.capacity_given_back", &me)]).await;

        let body = json!({"cluster_id": cluster.text("id"), "resources": {"cpu": 1}});
        let deployment = deployment_path(&ann.post("/api/v1/deployments", body).await.text("id"));
        log.is(&[("deployment.created", &me)]).await;
        ann.patch(&deployment, json!({"priority": 1, "name": "n"})).await.expect(200);
        log.is(&[("deployment.updated", &me)]).await;
        ann.delete(&deployment).await.expect(202);
        log.is(&[("deployment.deleting", &me), ("deployment.deleted", &me)]).await;
        ann.delete(&path).await.expect(202);
        log.is(&[("cluster.deprovisioning", &me)]).await;
    }

    async fn events_of_workers_and_agents_name_their_actor(engine: Engine) {
        let world = World::new(engine).await;
        let path = format!("/api/v1/events?subject={}", world.ours.cluster);
        assert_eq!(types(&world.ann.get(&path).await.expect(200)), [
            "cluster.created", "cluster.provisioning", "cluster.provisioned",
            "cluster.waiting_for_agent", "cluster.ready",
        ]);
        let path = deployment_path(&world.ours.deployment);
        world.ann.delete(&path).await.expect(202);
        world.paddock.until_deleted(&world.ann, &path).await;
        let history = world.ann.get(&format!("{path}/history")).await.expect(200);
        assert_eq!(types(&history), [
            "deployment.created", "deployment.scheduled", "deployment.starting",
            "deployment.running", "deployment.deleting", "deployment.stopped", "deployment.deleted",
        ]);
        let me = format!("user:{}", world.ours.user);
        let actors: Vec<_> = items(&history).iter().map(|e| e["actor"].as_str().unwrap()).collect();
        assert_eq!(actors, [&*me, "worker:placement", "agent", "agent", &*me, "agent", "agent"]);
        for event in items(&history) {
            let status = event["type"].as_str().unwrap().replace("deployment.", "");
            if !["created", "stopped", "deleted"].contains(&&*status) {
                assert_eq!(event["data"]["status"], *status, "{event:#}");
            }
        }
    }

    async fn event_filters_exclude_other_events(engine: Engine) {
        let world = World::new(engine).await;
        let all = world.ann.get("/api/v1/events?limit=1000").await.expect(200);
        let all = items(&all).clone();
        let middle = &all[all.len() / 2];
        let since = middle["at"].as_str().unwrap();
        let (seq, cluster) = (middle["seq"].as_i64().unwrap(), &world.ours.cluster);
        let later = |e: &Value| e["at"].as_str().unwrap() >= since;
        let after = |e: &Value| e["seq"].as_i64().unwrap() > seq;
        let of_cluster = |e: &Value| e["subject"] == **cluster;
        let later_deployments = |e: &Value| after(e) && e["kind"] == "deployment";
        let checks: [(String, Rule<'_>); 7] = [
            ("kind=cluster".into(), &|e| e["kind"] == "cluster"),
            (format!("subject={cluster}"), &of_cluster),
            ("type=deployment.running".into(), &|e| e["type"] == "deployment.running"),
            (format!("since={since}"), &later),
            (format!("after={seq}"), &after),
            (format!("after={seq}&kind=deployment"), &later_deployments),
            ("kind=cluster&type=user.created".into(), &|_| false),
        ];
        for (query, rule) in checks {
            let found = world.ann.get(&format!("/api/v1/events?limit=1000&{query}")).await.expect(200);
            let expected: Vec<_> = all.iter().filter(|e| rule(e)).cloned().collect();
            assert_eq!(items(&found), &expected, "{query}");
        }
        let mut parts = Vec::new();
        let mut after = 0;
        while parts.len() < all.len() {
            let part = world.ann.get(&format!("/api/v1/events?limit=3&after={after}")).await.expect(200);
            parts.extend(items(&part).clone());
            after = parts.last().unwrap()["seq"].as_i64().unwrap();
        }
        assert_eq!(parts, all);
    }
}

/// A reader of the event log with its position.
struct Log<'a> {
    ann: &'a Client,
    seen: i64,
}

impl Log<'_> {
    /// Fails unless exactly these events were written since the last call.
    async fn is(&mut self, expected: &[(&str, &str)]) {
        let page = self.ann.get(&format!("/api/v1/events?after={}", self.seen)).await.expect(200);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
        let came: Vec<_> =
            items(&page).iter().map(|e| (text(e, "type"), text(e, "actor"))).collect();
        let came: Vec<_> = came.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(came, expected);
        self.seen = items(&page).last().unwrap()["seq"].as_i64().unwrap();
    }
}

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}

fn types(page: &Value) -> Vec<&str> {
    items(page).iter().map(|event| event["type"].as_str().unwrap()).collect()
}
