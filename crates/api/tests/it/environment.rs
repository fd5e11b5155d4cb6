//! Life cycle of an environment.

use std::collections::BTreeMap;

use futures_util::future::{join, join_all};
use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::concurrency::statuses;
use crate::paging::all_pages;
use crate::shop::{SHOP, Shop, listed, path};
use crate::world::{details, ids, names_field, refused, until};

on_both_engines! {
    async fn environment_is_planned_changed_repaired_and_destroyed(engine: Engine) {
        let shop = Shop::open(engine).await;
        let spec = json!({"templates": ["shop@1.0.0"], "parameters": {"size": 1}});
        let plan = shop.ann.post("/api/v1/environments/plan", spec.clone()).await.expect(200);
        assert_eq!(plan["summary"], json!({"create": 4, "update": 0, "replace": 0, "destroy": 0, "nothing": 0}));

        let mut spec = spec;
        spec["name"] = json!("mine");
        spec["plan_hash"] = plan["hash"].clone();
        spec["tags"] = json!({"stage": "test"});
        spec["description"] = json!("For a while");
        let made = shop.ann.post("/api/v1/environments", spec).await;
        assert_eq!((made.status, &made.json["status"]), (202, &json!("deploying")), "{:#}", made.json);
        assert_eq!(made.json["resources"].as_array().unwrap().len(), 4);
        let id = made.text("id");
        let now = shop.until(&id, "deployed").await;
        assert_eq!((&now["status_words"], &now["progress"]), (&json!("Deployed - OK"), &json!(100)));
        assert_eq!(now["entry_points"], json!(["https://mine.shop.local/red"]));
        assert_eq!((&now["tags"]["stage"], &now["cancelling"]), (&json!("test"), &json!(false)));
        let settings = resource(&now, "settings");
        assert_eq!((&settings["status"], &settings["depends_on"]), (&json!("applied"), &json!(["base"])));
        assert_eq!((&settings["template"], &settings["executor"]), (&json!("shop@1.0.0"), &json!("consul-kv")));
        assert_eq!(shop.drain_calls("apply").len(), 4);

        // Only changed resources are applied again.
        let change = json!({"parameters": {"color": "blue"}});
        let plan = shop.command(&id, "plan", change).await.expect(200);
        assert_eq!((&plan["summary"]["update"], &plan["summary"]["nothing"]), (&json!(1), &json!(3)));
        let change = json!({"parameters": {"color": "blue"}, "plan_hash": plan["hash"]});
        assert_eq!(shop.command(&id, "apply", change.clone()).await.expect(202)["generation"], 2);
        let now = shop.until(&id, "deployed").await;
        assert_eq!(now["parameters"], json!({"size": 1, "color": "blue"}));
        assert_eq!(now["entry_points"], json!(["https://mine.shop.local/blue"]));
        assert_eq!(shop.drain_calls("apply"), ["settings"]);
        let moved = shop.command(&id, "apply", change).await;
        refused(&moved, "the same plan again");
        assert_eq!(moved.status, 409);
        assert!(details(&moved).contains("is outdated"), "{:#}", moved.json);

        drift_and_repair(&shop, &id).await;

        let gone = shop.ann.delete(&path(&id)).await.expect(202);
        assert_eq!(gone["status"], "destroying");
        let gone = shop.until(&id, "destroyed").await;
        assert!(gone["destroyed_at"].is_string() && gone["resources"] == json!([]), "{gone:#}");
        assert!(shop.executor.state().resources.is_empty());
        assert_eq!(listed(&shop.ann, "environments").await, Vec::<Value>::new());
        assert_eq!(listed(&shop.ann, "environments?destroyed=true").await.len(), 1);
        assert_eq!(listed(&shop.ann, "resources").await, Vec::<Value>::new());
        shop.ann.delete("/api/v1/templates/shop@1.0.0").await.expect(204);
    }

    async fn environment_list_is_filtered_and_paged(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let mut made = Vec::new();
        for name in ["one", "two", "three"] {
            let body = json!({"name": name, "templates": ["shop@1.0.0"]});
            made.push(shop.ann.post("/api/v1/environments", body).await.text("id"));
        }
        let list = listed(&shop.ann, "environments").await;
        assert_eq!(list.len(), 3);
        assert_eq!((list[0].get("resources"), &list[0]["name"]), (None, &json!("one")));
        let two = listed(&shop.ann, "environments?name=two").await;
        assert_eq!((two.len(), &two[0]["id"]), (1, &json!(made[1])));
        assert_eq!(listed(&shop.ann, "environments?status=deploying").await.len(), 3);
        assert_eq!(listed(&shop.ann, "environments?status=deployed").await.len(), 0);
        for list in ["environments", "resources", "templates"] {
            let whole = ids(&json!(listed(&shop.ann, list).await));
            assert_eq!(all_pages(&shop.ann, list, 2).await, whole, "{list}");
        }
    }

    async fn environment_update_requires_a_matching_etag(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"size": 0})).await;
        shop.drain_calls("apply");
        let seen = shop.ann.get(&path(&id)).await;
        let etag = seen.headers["etag"].to_str().unwrap().to_owned();
        let change = json!({"description": "Ours", "tags": {"a": "b"}, "on_drift": "repair"});
        let patch = |etag: &str| shop.ann.request("PATCH", &path(&id)).header("if-match", etag).json(&change);
        let now = shop.ann.send(patch(&etag)).await;
        let next = now.headers["etag"].to_str().unwrap().to_owned();
        let now = now.expect(200);
        assert_eq!((&now["description"], &now["tags"]), (&json!("Ours"), &json!({"a": "b"})));
        assert_eq!((&now["on_drift"], &now["status"]), (&json!("repair"), &json!("deployed")));
        assert_ne!(next, etag);
        shop.ann.send(patch(&etag)).await.expect(412);
        let now = shop.ann.patch(&path(&id), json!({"description": ""})).await.expect(200);
        assert_eq!((&now["description"], &now["tags"]), (&json!(""), &json!({"a": "b"})));
        assert_eq!(shop.drain_calls("apply"), Vec::<String>::new());

        // Drift is repaired automatically now.
        shop.change_externally(&id, "base").await;
        shop.command(&id, "observe", json!(null)).await.expect(202);
        until("base is repaired", async || shop.executor.state().names("apply") == ["base"]).await;
        assert_eq!(shop.drain_calls("apply"), ["base"]);
        shop.until(&id, "deployed").await;
    }

    async fn idempotency_key_creates_one_environment(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let body = json!({"name": "mine", "templates": ["shop@1.0.0"]});
        let send = || {
            let request = shop.ann.request("POST", "/api/v1/environments");
            shop.ann.send(request.header("idempotency-key", "once").json(&body))
        };
        let (first, second) = join(send(), send()).await;
        assert_eq!((first.status, second.status), (202, 202), "{:#}", second.json);
        assert_eq!(first.json["id"], second.json["id"]);
        assert_eq!(listed(&shop.ann, "environments").await.len(), 1);
        let again = send().await;
        assert_eq!((again.status, &again.headers["idempotency-replayed"]), (202, &HeaderValue::from_static("true")));
    }

    async fn environment_name_is_unique_under_concurrency(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let body = json!({"name": "mine", "templates": ["shop@1.0.0"]});
        let all = join_all((0..8).map(|_| shop.ann.post("/api/v1/environments", body.clone()))).await;
        assert_eq!(statuses(&all), BTreeMap::from([(202, 1), (409, 7)]));
        let taken = all.iter().find(|answer| answer.status == 409).unwrap();
        assert_eq!(taken.json["errors"][0]["field"], "name");
        assert_eq!(listed(&shop.ann, "environments").await.len(), 1);
        assert_eq!(listed(&shop.ann, "resources").await.len(), 5);
        // Another organization may use the same name.
        let zoe = shop.paddock.owner("zoe").await;
        crate::shop::publish(&zoe, SHOP).await.expect(201);
        zoe.post("/api/v1/environments", body).await.expect(202);
    }

    async fn template_deletion_never_orphans_an_environment(engine: Engine) {
        let shop = Shop::still(engine).await;
        let text = |i: usize| SHOP.replace("1.0.0", &format!("1.{i}.0"));
        let rounds = 12;
        for i in 0..rounds {
            shop.publish(&text(i)).await.expect(201);
        }
        let all = join_all((0..rounds).map(|i| race(&shop.ann, i))).await;
        for (i, (made, deleted)) in all.into_iter().enumerate() {
            assert!(made != deleted, "round {i}: made {made}, deleted {deleted}");
            let reference = format!("/api/v1/templates/shop@1.{i}.0");
            assert_eq!(shop.ann.get(&reference).await.status, if made { 200 } else { 404 });
        }
    }

    async fn alias_endpoints_behave_the_same(engine: Engine) {
        let shop = Shop::open(engine).await;
        let body = json!({"name": "mine", "templates": ["shop@1.0.0"], "parameters": {"size": 0}});
        let made = shop.ann.put("/api/v1/environment", body.clone()).await;
        assert_eq!(made.status, 202, "{:#}", made.json);
        let id = made.text("id");
        shop.ann.put("/api/v1/environment", body).await.expect(409);
        for list in ["/api/v1/environment", "/api/v1/environment/"] {
            let list = shop.ann.get(list).await.expect(200);
            assert_eq!((&list["items"][0]["id"], &list["next"]), (&json!(id), &Value::Null));
        }
        let path = format!("/api/v1/environment/{id}");
        let now = shop.paddock.until(&shop.ann, &path, "status", "deployed").await;
        assert_eq!(now, shop.get(&id).await);
        assert_eq!(shop.ann.delete(&path).await.expect(202)["status"], "destroying");
        shop.paddock.until(&shop.ann, &path, "status", "destroyed").await;
    }

    async fn invalid_environment_field_is_named(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let events = shop.log().await;
        let spec = json!({"name": "mine", "templates": ["shop@1.0.0"]});
        let past = "2001-01-01T00:00:00Z";
        for (field, value, named) in [
            ("name", Value::Null, "name"),
            ("name", json!(""), "name"),
            ("destroy_at", json!(past), "destroy_at"),
            ("templates", json!(["shop@1.0.0", "shop@1.0.0"]), "templates[1]"),
            ("templates", json!(["shop@2.0.0"]), "templates[0]"),
            ("parameters", json!({"size": "many"}), "parameters.size"),
            ("parameters", json!({"size": 1.5}), "parameters.size"),
            ("parameters", json!({"size": 10}), "parameters.size"),
            ("parameters", json!({"sise": 1}), "parameters.sise"),
            ("adopt", json!({"nobody": "x"}), "adopt.nobody"),
            ("adopt", json!({"base": ""}), "adopt.base"),
        ] {
            let mut body = spec.clone();
            body[field] = value;
            names_field(&shop.ann.post("/api/v1/environments", body.clone()).await, named, named);
            names_field(&shop.ann.put("/api/v1/environment", body).await, named, named);
        }
        let mut both = spec.clone();
        (both["ttl"], both["destroy_at"]) = (json!("1h"), json!("2101-01-01T00:00:00Z"));
        names_field(&shop.ann.post("/api/v1/environments", both).await, "ttl", "both");
        let mut stale = spec;
        stale["plan_hash"] = json!("5e1f");
        shop.ann.post("/api/v1/environments", stale).await.expect(409);
        assert_eq!(listed(&shop.ann, "environments").await, Vec::<Value>::new());
        assert_eq!(shop.log().await, events);
    }
}

async fn drift_and_repair(shop: &Shop, id: &str) {
    let none = shop.ann.get(&format!("{}/drift", path(id))).await.expect(200);
    assert_eq!(none, json!({"drifted": false, "resources": []}));
    shop.drain_calls("apply");
    shop.change_externally(id, "base").await;
    shop.command(id, "observe", json!(null)).await.expect(202);
    let base = shop.until_resource(id, "base", "drifted").await;
    assert_eq!(base["drift"], json!([{"field": "path", "made": "base", "found": "by hand"}]));
    let drift = shop.ann.get(&format!("{}/drift", path(id))).await.expect(200);
    assert_eq!((&drift["drifted"], &drift["resources"][0]["name"]), (&json!(true), &json!("base")));
    assert_eq!(drift["resources"][0]["differences"], base["drift"]);

    names_field(
        &shop.command(id, "repair", json!({"resources": ["nobody"]})).await,
        "resources",
        "nobody",
    );
    let none = shop.command(id, "repair", json!({"resources": ["beside"]})).await.expect(202);
    assert_eq!(
        (&none["repaired"], &none["environment"]["status"]),
        (&json!([]), &json!("deployed"))
    );
    let repaired = shop.command(id, "repair", json!({})).await.expect(202);
    assert_eq!(repaired["repaired"], json!(["base"]));
    assert_eq!(repaired["environment"]["status"], "deploying");
    shop.until(id, "deployed").await;
    assert_eq!(shop.drain_calls("apply"), ["base"]);
    assert_eq!(shop.resource(id, "base").await["drift"], json!([]));
}

/// Creates an environment from a template version while that is deleted. Returns which of the two
/// succeeded.
async fn race(ann: &Client, i: usize) -> (bool, bool) {
    let body = json!({"name": format!("mine-{i}"), "templates": [format!("shop@1.{i}.0")]});
    let template = format!("/api/v1/templates/shop@1.{i}.0");
    let (made, deleted) = join(ann.post("/api/v1/environments", body), ann.delete(&template)).await;
    assert!([202, 400, 404].contains(&made.status), "{:#}", made.json);
    assert!([204, 409].contains(&deleted.status), "{:#}", deleted.json);
    (made.status == 202, deleted.status == 204)
}

fn resource<'a>(environment: &'a Value, name: &str) -> &'a Value {
    let all = environment["resources"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap()
}
