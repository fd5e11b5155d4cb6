//! Quotas of organizations: refusals through every API, and who sees and sets them.

use serde_json::{Value, json};
use testing::{Answer, Client, TestPaddock, TestSettings, on_both_engines};

use crate::fleet::{fails, organization, request_kafka, start_fleet};
use crate::shop::{SHOP, Shop, listed, publish, send};
use crate::sse::Stream;
use crate::template_archive::good;
use crate::world::{deploy, deployment_path, start, start_still, until_shown};

on_both_engines! {
    async fn administrator_sets_quotas_and_members_see_them(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let (mia, zoe) = (paddock.member(&ann, "mia").await, paddock.owner("zoe").await);
        let path = quotas_path(&ann).await;
        let body = json!({"quotas": {"cpu": 8, "ram": "16Gi", "clusters": 3, "nvidia.com/gpu": "1"}});
        set(&paddock, &ann, body["quotas"].clone()).await;
        deploy(&ann, json!({"name": "a", "resources": {"cpu": "500m"}, "replicas": 3})).await;
        for (answer, field) in [
            (mia.get(&path).await.expect(200), "items"),
            (mia.get("/api/v1/quota").await.expect(200), "organization"),
        ] {
            let of = |kind: &str| find(&answer[field], kind);
            assert_eq!(of("cpu"), json!({"kind": "cpu", "used": 1.5, "limit": 8, "is_default": false}));
            assert_eq!(of("ram")["limit"], json!(17_179_869_184_u64));
            assert_eq!(of("nvidia.com/gpu")["limit"], 1);
            assert_eq!((&of("deployments")["used"], &of("deployments")["limit"]), (&json!(1), &json!(1000)));
            assert_eq!((&of("members")["used"], &of("tokens")["used"]), (&json!(2), &json!(2)));
            assert_eq!((&of("deployments")["is_default"], &of("streams")["limit"]), (&json!(true), &json!(500)));
        }
        // A quota of null is the default again; one that is not named stays.
        set(&paddock, &ann, json!({"cpu": null, "clusters": "unlimited"})).await;
        let items = ann.get(&path).await.expect(200)["items"].clone();
        assert_eq!((&find(&items, "cpu")["limit"], &find(&items, "cpu")["is_default"]), (&json!(null), &json!(true)));
        assert_eq!((&find(&items, "clusters")["limit"], &find(&items, "clusters")["is_default"]), (&json!(null), &json!(false)));
        assert_eq!(find(&items, "nvidia.com/gpu")["limit"], 1);
        let events = ann.get("/api/v1/events?type=organization.quota_changed").await.expect(200);
        assert_eq!(events["items"][0]["data"]["quotas"]["cpu"], 8);
        assert_eq!(events["items"][1]["data"]["quotas"], json!({"cpu": null, "clusters": "unlimited"}));

        zoe.get(&path).await.expect(404);
        let set_path = path.replace("/v1/", "/v1/admin/");
        for client in [&ann, &mia, &zoe] {
            client.patch(&set_path, body.clone()).await.expect(403);
        }
        let admin = paddock.admin().await;
        for quotas in [json!({}), json!({"CPU": 1}), json!({"cpu": "much"}), json!({"cpu": -1}),
            json!({"clusters": 1.5}), json!({"cpu": [1]}), json!({"cpu": 1e300})] {
            let answer = admin.patch(&set_path, json!({"quotas": quotas})).await;
            assert_eq!(answer.status, 400, "{quotas}: {:#}", answer.json);
        }
        assert_eq!(find(&ann.get(&path).await.expect(200)["items"], "nvidia.com/gpu")["limit"], 1);
    }

    async fn deployment_beyond_a_quota_is_refused_by_both_apis(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let new = json!({"name": "main", "capacity": {"cpu": 100}});
        let cluster = ann.post("/api/v1/clusters", new).await.text("id");
        set(&paddock, &ann, json!({"cpu": 4})).await;
        let id = deploy(&ann, json!({"name": "a", "resources": {"cpu": 1}, "replicas": 3})).await;
        let events = listed(&ann, "events").await.len();
        let new = json!({"name": "b", "resources": {"cpu": 2}});
        exceeds(&ann.post("/api/v1/deployments", new.clone()).await, ["cpu", "3", "2", "4"]);
        let kargo = json!({"cluster_id": cluster, "resource": {"cpu": 2}});
        exceeds(&ann.put("/deployment/", kargo.clone()).await, ["cpu", "3", "2", "4"]);
        exceeds(&ann.patch(&deployment_path(&id), json!({"replicas": 6})).await, ["cpu", "3", "3", "4"]);
        assert_eq!(listed(&ann, "deployments").await.len(), 1);
        assert_eq!(ann.get(&deployment_path(&id)).await.expect(200)["replicas"], 3);
        assert_eq!(listed(&ann, "events").await.len(), events);
        let cluster = ann.get(&format!("/api/v1/clusters/{cluster}")).await.expect(200);
        assert_eq!(cluster["deployments"], 0);

        // A refused request has no stored response: it succeeds with the same key afterwards.
        let keyed = || ann.request("POST", "/api/v1/deployments").header("idempotency-key", "k").json(&new);
        exceeds(&ann.send(keyed()).await, ["cpu", "3", "2", "4"]);
        ann.patch(&deployment_path(&id), json!({"replicas": 2})).await.expect(200);
        ann.send(keyed()).await.expect(201);
        exceeds(&ann.put("/deployment/", kargo).await, ["cpu", "4", "2", "4"]);
    }

    async fn every_subject_beyond_its_quota_is_refused(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let ann = &shop.ann;
        set(&shop.paddock, ann, json!({"clusters": 0, "environments": 0, "templates": 1, "invites": 0})).await;
        let cluster = json!({"name": "main", "capacity": {"cpu": 1}});
        exceeds(&ann.post("/api/v1/clusters", cluster).await, ["clusters", "0", "1", "0"]);
        exceeds(&ann.put("/cluster/", json!({"cluster_name": "main", "resource": {"cpu": 1}})).await, ["clusters", "0", "1", "0"]);
        let environment = json!({"name": "mine", "templates": ["shop@1.0.0"]});
        exceeds(&ann.post("/api/v1/environments", environment).await, ["environments", "0", "1", "0"]);
        let other = "name: other\nversion: 1.0.0\nresources:\n- {name: a, executor: deployment, with: {image: x}}\n";
        exceeds(&publish(ann, other).await, ["templates", "1", "1", "1"]);
        exceeds(&ann.post("/api/v1/invites", json!({})).await, ["invites", "0", "1", "0"]);
        exceeds(&ann.patch("/organization/invite/", json!({})).await, ["invites", "0", "1", "0"]);
        assert_eq!(listed(ann, "clusters").await.len(), 0);
        // The same content again is no new template.
        publish(ann, SHOP).await.expect(200);
        set(&shop.paddock, ann, json!({"tokens": 1})).await;
        let login = json!({"username": "ann", "password": "secret"});
        exceeds(&shop.paddock.client.post("/api/v1/login", login.clone()).await, ["tokens", "1", "1", "1"]);
        ann.post("/api/v1/logout", json!(null)).await;
        shop.paddock.client.post("/api/v1/login", login).await.expect(200);
    }

    async fn instance_beyond_a_quota_is_refused_as_by_the_fleet_managers(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let ann = paddock.owner("ann").await;
        request_kafka(&ann, "a", json!({})).await.expect(202);
        set(&paddock, &ann, json!({"instances": 1})).await;
        fails(&request_kafka(&ann, "b", json!({})).await, 5, 403);
        let answer = ann.post("/api/v1/instances", json!({"kind": "kafka", "name": "b"})).await;
        exceeds(&answer, ["instances", "1", "1", "1"]);
        set(&paddock, &ann, json!({"instances": null, "cpu": "1m"})).await;
        fails(&request_kafka(&ann, "b", json!({})).await, 5, 403);
        assert_eq!(ann.get("/api/v1/instances").await.expect(200)["items"].as_array().unwrap().len(), 1);
    }

    async fn resource_beyond_a_quota_waits_until_it_is_raised(engine: Engine) {
        let shop = Shop::start(engine).await;
        let ann = &shop.ann;
        let template = "name: web\nversion: 1.0.0\nresources:\n- {name: web, executor: deployment, with: {image: nginx, cpu: 1, replicas: 2}}\n";
        publish(ann, template).await.expect(201);
        shop.paddock.cluster(ann, json!({"cpu": 8, "ram": 8})).await;
        set(&shop.paddock, ann, json!({"cpu": 1})).await;
        let body = json!({"name": "mine", "templates": ["web@1.0.0"]});
        let id = ann.post("/api/v1/environments", body).await.text("id");
        let path = format!("/api/v1/environments/{id}/resources/web");
        let resource = until_shown(ann, &path, |resource| resource["reason_code"] == "QuotaExceeded").await;
        let reason = resource["status_reason"].as_str().unwrap();
        assert!(reason.contains("uses 0 of 1 cpu, and the request adds 2"), "{reason}");
        assert_eq!(listed(ann, "deployments").await.len(), 0);
        set(&shop.paddock, ann, json!({"cpu": 2})).await;
        ann.post(&format!("/api/v1/environments/{id}/retry"), json!(null)).await;
        shop.until(&id, "deployed").await;
    }

    async fn dry_run_and_explanation_show_the_quota(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        set(&paddock, &ann, json!({"cpu": 2, "deployments": 1})).await;
        let new = json!({"name": "a", "resources": {"cpu": 1, "ram": 1}, "replicas": 2});
        let dry_run = async |body: &Value| {
            ann.post("/api/v1/deployments?dry_run=true", body.clone()).await.expect(200)
        };
        assert_eq!(dry_run(&new).await["exceeded_quotas"], json!([]));
        let id = deploy(&ann, new.clone()).await;
        let exceeded = json!([
            {"kind": "deployments", "used": 1, "requested": 1, "limit": 1},
            {"kind": "cpu", "used": 2, "requested": 2, "limit": 2},
        ]);
        assert_eq!(dry_run(&new).await["exceeded_quotas"], exceeded);
        let explanation = ann.get(&format!("{}/explain", deployment_path(&id))).await.expect(200);
        let cpu = json!([{"kind": "cpu", "used": 2, "limit": 2, "is_default": false}]);
        assert_eq!(explanation["quotas"], cpu);
    }

    async fn quota_of_streams_overrides_the_setting(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        set(&paddock, &ann, json!({"streams": 2})).await;
        let open = [Stream::open(&ann, "", None).await, Stream::open(&ann, "", None).await];
        let request = || ann.request("GET", "/api/v1/events").header("accept", "text/event-stream");
        assert_eq!(ann.send(request()).await.status, 429);
        let shown = ann.get("/api/v1/quota").await.expect(200)["organization"].clone();
        assert_eq!(find(&shown, "streams"), json!({"kind": "streams", "used": 2, "limit": 2, "is_default": false}));
        set(&paddock, &ann, json!({"streams": 0})).await;
        drop(open);
        assert_eq!(ann.send(request()).await.status, 429);
        set(&paddock, &ann, json!({"streams": 3})).await;
        Stream::open(&ann, "", None).await;
    }

    async fn template_files_count_towards_the_quota_of_storage(engine: Engine) {
        let shop = Shop::still(engine).await;
        set(&shop.paddock, &shop.ann, json!({"storage": 20})).await;
        let archive = || good().bytes();
        exceeds(&send(&shop.ann, "application/x-tar", archive()).await, ["storage", "0", "24", "20"]);
        assert_eq!(listed(&shop.ann, "templates").await.len(), 0);
        set(&shop.paddock, &shop.ann, json!({"storage": 24})).await;
        send(&shop.ann, "application/x-tar", archive()).await.expect(201);
        let shown = shop.ann.get("/api/v1/quota").await.expect(200)["organization"].clone();
        assert_eq!(find(&shown, "storage")["used"], 24);
        send(&shop.ann, "application/x-tar", archive()).await.expect(200);
        shop.ann.delete("/api/v1/templates/net@1.0.0").await.expect(204);
        let shown = shop.ann.get("/api/v1/quota").await.expect(200)["organization"].clone();
        assert_eq!(find(&shown, "storage")["used"], 0);
    }

    async fn default_quotas_of_the_server_apply(engine: Engine) {
        let mut api = api::Settings::default();
        api.quotas.set_all("cpu=2,clusters=1").unwrap();
        let settings = TestSettings { api, api_only: true, ..TestSettings::default() };
        let paddock = TestPaddock::start_with(engine, settings).await;
        let ann = paddock.owner("ann").await;
        let new = json!({"name": "a", "resources": {"cpu": 3}});
        exceeds(&ann.post("/api/v1/deployments", new.clone()).await, ["cpu", "0", "3", "2"]);
        set(&paddock, &ann, json!({"cpu": 3})).await;
        ann.post("/api/v1/deployments", new).await.expect(201);
    }
}

async fn quotas_path(client: &Client) -> String {
    format!("/api/v1/organizations/{}/quotas", organization(client).await)
}

/// Sets quotas of the client's organization.
async fn set(paddock: &TestPaddock, of: &Client, quotas: Value) {
    let path = quotas_path(of).await;
    let path = path.replace("/v1/", "/v1/admin/");
    paddock.admin().await.patch(&path, json!({"quotas": quotas})).await.expect(200);
}

/// The entry of a kind.
fn find(items: &Value, kind: &str) -> Value {
    let found = items.as_array().unwrap().iter().find(|item| item["kind"] == kind);
    found.unwrap_or_else(|| panic!("{kind}: {items:#}")).clone()
}

/// Fails unless the request was refused by this quota: kind, used, requested, limit.
#[track_caller]
fn exceeds(answer: &Answer, [kind, used, requested, limit]: [&str; 4]) {
    assert_eq!(answer.status, 409, "{}: {:#}", answer.call, answer.json);
    let quota = &answer.json["quota"];
    let number = |text: &str| json!(text.parse::<i64>().unwrap());
    let expected = json!({"kind": kind, "used": number(used), "requested": number(requested), "limit": number(limit)});
    assert_eq!(*quota, expected, "{}: {:#}", answer.call, answer.json);
    let detail = answer.json["detail"].as_str().unwrap();
    assert!(detail.contains("ask the platform administrator"), "{detail}");
}
