//! The whole life of an environment, as its users see it.

use std::collections::BTreeMap;

use futures_util::future::{join, join_all};
use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::concurrency::statuses;
use crate::paging::in_parts;
use crate::shop::{SHOP, Shop, listed, path};
use crate::world::{ids, names_field, refused, sentences, until};

on_both_engines! {
    async fn from_a_plan_through_change_and_drift_to_nothing(engine: Engine) {
        let shop = Shop::open(engine).await;
        let wish = json!({"templates": ["shop@1.0.0"], "parameters": {"size": 1}});
        let plan = shop.ann.post("/api/v1/environments/plan", wish.clone()).await.expect(200);
        assert_eq!(plan["summary"], json!({"create": 4, "update": 0, "replace": 0, "destroy": 0, "nothing": 0}));

        let mut wish = wish;
        wish["name"] = json!("mine");
        wish["plan_hash"] = plan["hash"].clone();
        wish["tags"] = json!({"stage": "test"});
        wish["description"] = json!("For a while");
        let made = shop.ann.post("/api/v1/environments", wish).await;
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
        assert_eq!(shop.asked("apply").len(), 4);

        // Only what is touched runs again.
        let change = json!({"parameters": {"color": "blue"}});
        let plan = shop.ask(&id, "plan", change).await.expect(200);
        assert_eq!((&plan["summary"]["update"], &plan["summary"]["nothing"]), (&json!(1), &json!(3)));
        let change = json!({"parameters": {"color": "blue"}, "plan_hash": plan["hash"]});
        assert_eq!(shop.ask(&id, "apply", change.clone()).await.expect(202)["generation"], 2);
        let now = shop.until(&id, "deployed").await;
        assert_eq!(now["parameters"], json!({"size": 1, "color": "blue"}));
        assert_eq!(now["entry_points"], json!(["https://mine.shop.local/blue"]));
        assert_eq!(shop.asked("apply"), ["settings"]);
        let moved = shop.ask(&id, "apply", change).await;
        refused(&moved, "the same plan again");
        assert_eq!(moved.status, 409);
        assert!(sentences(&moved).contains("The world has moved since the plan"), "{:#}", moved.json);

        drifts_and_is_mended(&shop, &id).await;

        let gone = shop.ann.delete(&path(&id)).await.expect(202);
        assert_eq!(gone["status"], "destroying");
        let gone = shop.until(&id, "destroyed").await;
        assert!(gone["destroyed_at"].is_string() && gone["resources"] == json!([]), "{gone:#}");
        assert!(shop.executor.held().of.is_empty());
        assert_eq!(listed(&shop.ann, "environments").await, Vec::<Value>::new());
        assert_eq!(listed(&shop.ann, "environments?destroyed=true").await.len(), 1);
        assert_eq!(listed(&shop.ann, "resources").await, Vec::<Value>::new());
        shop.ann.delete("/api/v1/templates/shop@1.0.0").await.expect(204);
    }

    async fn lists_show_what_is_asked_for_in_parts(engine: Engine) {
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
            assert_eq!(in_parts(&shop.ann, list, 2).await, whole, "{list}");
        }
    }

    async fn what_users_write_on_it_changes_only_the_version_that_they_saw(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"size": 0})).await;
        shop.asked("apply");
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
        assert_eq!(shop.asked("apply"), Vec::<String>::new());

        // What drifts is mended by itself now.
        shop.break_by_hand(&id, "base").await;
        shop.ask(&id, "observe", json!(null)).await.expect(202);
        until("base is repaired", async || shop.executor.held().names("apply") == ["base"]).await;
        assert_eq!(shop.asked("apply"), ["base"]);
        shop.until(&id, "deployed").await;
    }

    async fn a_key_makes_one_environment_however_often_it_is_sent(engine: Engine) {
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

    async fn of_two_with_one_name_at_once_one_is_made(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let body = json!({"name": "mine", "templates": ["shop@1.0.0"]});
        let all = join_all((0..8).map(|_| shop.ann.post("/api/v1/environments", body.clone()))).await;
        assert_eq!(statuses(&all), BTreeMap::from([(202, 1), (409, 7)]));
        let taken = all.iter().find(|answer| answer.status == 409).unwrap();
        assert_eq!(taken.json["errors"][0]["field"], "name");
        assert_eq!(listed(&shop.ann, "environments").await.len(), 1);
        assert_eq!(listed(&shop.ann, "resources").await.len(), 5);
        // Another organization may call its own so.
        let zoe = shop.paddock.owner("zoe").await;
        crate::shop::publish(&zoe, SHOP).await.expect(201);
        zoe.post("/api/v1/environments", body).await.expect(202);
    }

    async fn no_environment_is_left_without_its_template(engine: Engine) {
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

    async fn the_first_provisioners_calls_do_the_same(engine: Engine) {
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

    async fn a_wish_that_breaks_a_rule_is_named(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let events = shop.log().await;
        let wish = json!({"name": "mine", "templates": ["shop@1.0.0"]});
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
            let mut body = wish.clone();
            body[field] = value;
            names_field(&shop.ann.post("/api/v1/environments", body.clone()).await, named, named);
            names_field(&shop.ann.put("/api/v1/environment", body).await, named, named);
        }
        let mut both = wish.clone();
        (both["ttl"], both["destroy_at"]) = (json!("1h"), json!("2101-01-01T00:00:00Z"));
        names_field(&shop.ann.post("/api/v1/environments", both).await, "ttl", "both");
        let mut stale = wish;
        stale["plan_hash"] = json!("5e1f");
        shop.ann.post("/api/v1/environments", stale).await.expect(409);
        assert_eq!(listed(&shop.ann, "environments").await, Vec::<Value>::new());
        assert_eq!(shop.log().await, events);
    }
}

async fn drifts_and_is_mended(shop: &Shop, id: &str) {
    let none = shop.ann.get(&format!("{}/drift", path(id))).await.expect(200);
    assert_eq!(none, json!({"drifted": false, "resources": []}));
    shop.asked("apply");
    shop.break_by_hand(id, "base").await;
    shop.ask(id, "observe", json!(null)).await.expect(202);
    let base = shop.until_resource(id, "base", "drifted").await;
    assert_eq!(base["drift"], json!([{"field": "path", "made": "base", "found": "by hand"}]));
    let drift = shop.ann.get(&format!("{}/drift", path(id))).await.expect(200);
    assert_eq!((&drift["drifted"], &drift["resources"][0]["name"]), (&json!(true), &json!("base")));
    assert_eq!(drift["resources"][0]["differences"], base["drift"]);

    names_field(
        &shop.ask(id, "repair", json!({"resources": ["nobody"]})).await,
        "resources",
        "nobody",
    );
    let none = shop.ask(id, "repair", json!({"resources": ["beside"]})).await.expect(202);
    assert_eq!(
        (&none["repaired"], &none["environment"]["status"]),
        (&json!([]), &json!("deployed"))
    );
    let repaired = shop.ask(id, "repair", json!({})).await.expect(202);
    assert_eq!(repaired["repaired"], json!(["base"]));
    assert_eq!(repaired["environment"]["status"], "deploying");
    shop.until(id, "deployed").await;
    assert_eq!(shop.asked("apply"), ["base"]);
    assert_eq!(shop.resource(id, "base").await["drift"], json!([]));
}

/// Makes an environment from a version while that is deleted: what of both was done.
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
