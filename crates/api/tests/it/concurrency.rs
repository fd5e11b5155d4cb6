//! Concurrent requests: limits hold exactly, invites are redeemed once, capacity stays consistent.

use std::collections::BTreeMap;
use std::future::Future;

use futures_util::future::join_all;
use serde_json::json;
use store::deployment::Limits;
use testing::{Answer, TestPaddock, TestSettings, on_both_engines};

use crate::accounting::assert_consistent;
use crate::world::{cluster_path, start, start_with, until_shown};

const MANY: usize = 1000;

on_both_engines! {
    async fn concurrent_redemptions_of_an_invite_create_one_user(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let invite = ann.post("/api/v1/invites", json!({})).await;
        let (id, code) = (invite.text("id"), invite.text("code"));
        let answers = at_once(MANY, |i| {
            let body = json!({"code": code, "username": format!("user{i}"), "password": "x"});
            let path = ["/organization/invite/", "/api/v1/invites/redeem"][i % 2];
            let client = paddock.client.clone();
            async move { client.post(path, body).await }
        }).await;
        assert_eq!(statuses(&answers), BTreeMap::from([(201, 1), (409, MANY - 1)]));
        let users = ann.get("/api/v1/users?limit=1000").await.expect(200);
        assert_eq!(users["items"].as_array().unwrap().len(), 2);
        let invite = ann.get(&format!("/api/v1/invites/{id}")).await.expect(200);
        assert_eq!((&invite["times_used"], &invite["active"]), (&json!(1), &json!(false)));
        assert_eq!(invite["uses"].as_array().unwrap().len(), 1);
    }

    async fn concurrent_creates_respect_the_organization_limit(engine: Engine) {
        let limits = Limits { per_organization: 37, per_cluster: 10_000, max_priority: 100 };
        let (paddock, ann) = start_with(engine, limited(limits)).await;
        let zoe = paddock.owner("zoe").await;
        let answers = at_once(MANY, |_| {
            let ann = ann.clone();
            async move { ann.post("/api/v1/deployments", json!({"resources": {"cpu": 1}})).await }
        }).await;
        assert_eq!(statuses(&answers), BTreeMap::from([(201, 37), (409, MANY - 37)]));
        assert_detail(&answers, "uses 37 of 37 deployments");
        zoe.post("/api/v1/deployments", json!({"resources": {"cpu": 1}})).await.expect(201);
        assert_consistent(&paddock).await;
    }

    async fn concurrent_creates_respect_the_cluster_limit(engine: Engine) {
        let limits = Limits { per_organization: 1000, per_cluster: 41, max_priority: 100 };
        let (paddock, ann) = start_with(engine, limited(limits)).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 30})).await;
        let answers = at_once(MANY, |i| {
            let (ann, cluster) = (ann.clone(), cluster.clone());
            async move {
                if i % 2 == 0 {
                    let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "web:1"});
                    return ann.post("/api/v1/deployments", body).await;
                }
                ann.put("/deployment/", json!({"cluster_id": cluster, "resource": {"cpu": 1}})).await
            }
        }).await;
        assert_eq!(statuses(&answers), BTreeMap::from([(201, 41), (409, MANY - 41)]));
        assert_detail(&answers, "limit of 41 deployments per cluster");
        // Deletions free as many places again.
        ann.delete(&format!("/deployment/?clusterId={cluster}")).await.expect(202);
        until_shown(&ann, "/deployment/", |page| page["total"] == 0).await;
        ann.put("/deployment/", json!({"cluster_id": cluster, "resource": {"cpu": 1}})).await.expect(201);
        assert_consistent(&paddock).await;
    }

    async fn concurrent_reserve_and_release_keep_capacity_consistent(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 5, "gpu": "2.5", "ram": 100})).await;
        let path = format!("{}/capacity", cluster_path(&cluster));
        let kargo = format!("/cluster/{cluster}/resource/");
        let amounts = [json!({"cpu": "0.1", "gpu": "0.3"}), json!({"gpu": 0.3, "cpu": 0.1, "ram": 7})];
        let rounds = at_once(300, |i| {
            let (ann, path, kargo, amount) =
                (ann.clone(), path.clone(), kargo.clone(), amounts[i % 2].clone());
            async move {
                let taken = if i % 3 == 0 {
                    ann.post(&kargo, json!({"resource": amount})).await
                } else {
                    ann.post(&format!("{path}/take"), json!({"resources": amount})).await
                };
                if taken.status == 200 && i % 5 != 0 {
                    let body = json!({"resources": amount});
                    ann.post(&format!("{path}/give-back"), body).await.expect(200);
                }
                taken
            }
        }).await;
        // Reserved but not released amounts, in thousandths.
        let mut kept: BTreeMap<&str, u64> = BTreeMap::new();
        for (i, _) in rounds.iter().enumerate().filter(|(i, a)| a.status == 200 && i % 5 == 0) {
            for (kind, milli) in [("cpu", 100), ("gpu", 300), ("ram", 7000)] {
                *kept.entry(kind).or_default() += if kind == "ram" && i % 2 == 0 { 0 } else { milli };
            }
        }
        assert!(rounds.iter().all(|a| [200, 409].contains(&a.status)), "{:?}", statuses(&rounds));
        let shown = ann.get(&cluster_path(&cluster)).await.expect(200)["capacity"].clone();
        for (kind, milli) in kept {
            let used = shown[kind]["used"].as_f64().unwrap() * 1000.0;
            assert!((used - f64::from(u32::try_from(milli).unwrap())).abs() < 1e-6, "{kind}: {shown:#}");
        }
        assert_consistent(&paddock).await;
    }

    async fn deployments_and_manual_reservations_never_exceed_capacity(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 10})).await;
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "web:1"});
        at_once(120, |i| {
            let (ann, cluster, mut body) = (ann.clone(), cluster.clone(), body.clone());
            async move {
                if i % 3 == 0 {
                    let path = format!("{}/capacity/take", cluster_path(&cluster));
                    return ann.post(&path, json!({"resources": {"cpu": 0.5}})).await;
                }
                body["priority"] = json!(i % 4);
                let made = ann.post("/api/v1/deployments", body).await;
                if i % 2 == 0 {
                    let path = format!("/api/v1/deployments/{}", made.text("id"));
                    return ann.delete(&path).await;
                }
                made
            }
        }).await;
        assert_consistent(&paddock).await;
    }

    async fn concurrent_demotions_leave_one_owner(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let bob = paddock.member(&ann, "bob").await;
        let [ann_id, bob_id] = [ann.get("/user/").await.text("id"), bob.get("/user/").await.text("id")];
        for _ in 0..10 {
            for (client, id) in [(&ann, &bob_id), (&bob, &ann_id)] {
                // The remaining owner promotes the other one again.
                let _ = client.patch(&format!("/api/v1/users/{id}"), json!({"role": "owner"})).await;
            }
            let (one, other) = (format!("/api/v1/users/{bob_id}"), format!("/api/v1/users/{ann_id}"));
            let member = json!({"role": "member"});
            let (a, b) = tokio::join!(ann.patch(&one, member.clone()), bob.patch(&other, member));
            let mut codes = [a.status, b.status];
            codes.sort_unstable();
            assert!(codes[0] == 200 && [403, 409].contains(&codes[1]), "{codes:?}");
            let users = ann.get("/api/v1/users").await.expect(200);
            let roles = users["items"].as_array().unwrap().iter().filter(|u| u["role"] == "owner");
            assert_eq!(roles.count(), 1);
        }
    }

    async fn organization_name_is_unique_under_concurrency(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let mut owners = Vec::new();
        for i in 0..6 {
            let owner = paddock.owner(&format!("owner{i}")).await;
            let id = owner.get("/organization/").await.text("id");
            owners.push((owner, format!("/api/v1/organizations/{id}")));
        }
        for i in 0..10 {
            let answers = at_once(6, |n| {
                let (client, path) = owners[n].clone();
                async move { client.patch(&path, json!({"name": format!("Name {i}")})).await }
            }).await;
            assert_eq!(statuses(&answers), BTreeMap::from([(200, 1), (409, 5)]));
        }
    }

    async fn username_is_unique_under_concurrency(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let answers = at_once(12, |i| {
            let client = paddock.client.clone();
            let username = ["same", "SAME"][i % 2];
            let user = json!({"username": username, "password": "x"});
            let body = json!({"user": user, "organization": {"name": format!("Number {i}")}});
            async move { client.put("/user/create/", body).await }
        }).await;
        assert_eq!(statuses(&answers), BTreeMap::from([(201, 1), (409, 11)]));
        assert_detail(&answers, "user.username");
        let admin = paddock.admin().await;
        let all = admin.get("/api/v1/organizations").await.expect(200);
        // The platform's organization and the new one: failed requests left nothing.
        assert_eq!(all["items"].as_array().unwrap().len(), 2);
    }
}

/// Sends `n` concurrent requests. Returns the responses in order.
pub(crate) async fn at_once<F>(n: usize, call: impl Fn(usize) -> F) -> Vec<Answer>
where
    F: Future<Output = Answer>,
{
    join_all((0..n).map(call)).await
}

/// Number of responses by status.
pub(crate) fn statuses(answers: &[Answer]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer.status).or_default() += 1;
    }
    counts
}

fn assert_detail(answers: &[Answer], text: &str) {
    for answer in answers.iter().filter(|answer| answer.status == 409) {
        assert!(answer.json["detail"].as_str().unwrap().contains(text), "{:#}", answer.json);
    }
}

/// Settings with these deployment limits.
pub(crate) fn limited(limits: Limits) -> TestSettings {
    let api = api::Settings { limits, ..api::Settings::default() };
    TestSettings { api, ..TestSettings::default() }
}
