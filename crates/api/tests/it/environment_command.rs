//! Environment commands: cancel, retry, extend, adopt; each is rejected in an unsuitable state.

use std::time::Duration;

use model::template::Executor;
use serde_json::{Value, json};
use testing::{TestSettings, on_both_engines};

use crate::shop::{SHOP, Shop, listed, path};
use crate::world::{details, names_field, refused};

on_both_engines! {
    async fn cancelled_operation_stops_and_can_be_retried(engine: Engine) {
        let shop = Shop::open(engine).await;
        shop.executor.state().running_polls = u32::MAX;
        let id = shop.create(json!({"size": 1})).await;
        shop.until_resource(&id, "base", "applying").await;
        for (what, body) in [("apply", json!({})), ("retry", json!(null)), ("repair", json!({}))] {
            let busy = shop.command(&id, what, body).await;
            refused(&busy, what);
            assert_eq!(busy.status, 409, "{what}");
        }
        let now = shop.command(&id, "cancel", json!(null)).await.expect(202);
        assert_eq!(now["cancelling"], true);
        let now = shop.until(&id, "failed").await;
        assert_eq!((&now["cancelling"], &now["status_words"]), (&json!(false), &json!("Deployed - Fail")));
        assert_eq!(now["reason_code"], "Cancelled", "{now:#}");
        let again = shop.command(&id, "cancel", json!(null)).await;
        assert_eq!(again.status, 409);
        assert!(details(&again).contains("has no running operation"), "{:#}", again.json);
        shop.executor.state().running_polls = 1;
        assert_eq!(shop.command(&id, "retry", json!(null)).await.expect(202)["status"], "deploying");
        shop.until(&id, "deployed").await;
        assert_eq!(shop.command(&id, "retry", json!(null)).await.status, 409);
    }

    async fn failed_environment_has_a_reason_and_retry_resumes(engine: Engine) {
        let shop = Shop::open(engine).await;
        shop.executor.state().refuses.insert("settings".into());
        let id = shop.create(json!({"size": 1})).await;
        let now = shop.until(&id, "failed").await;
        assert_eq!(now["reason_code"], "BackendRefused", "{now:#}");
        assert!(now["status_reason"].as_str().unwrap().contains("settings is refused"), "{now:#}");
        let settings = shop.resource(&id, "settings").await;
        assert_eq!((&settings["status"], &settings["attempts"]), (&json!("failed"), &json!(1)));
        // The environment shows the last log lines of the failed resource only.
        let resources = now["resources"].as_array().unwrap();
        let told = |one: &&Value| one["last_log"].is_array();
        let told: Vec<_> = resources.iter().filter(told).map(|one| &one["name"]).collect();
        assert_eq!(told, ["settings"]);
        let said = settings["last_log"].as_array().unwrap();
        assert_eq!(said.last().unwrap(), &settings["status_reason"], "{settings:#}");
        assert!(said.contains(&json!("it says no to settings")), "{settings:#}");
        shop.executor.state().refuses.clear();
        shop.drain_calls("apply");
        shop.command(&id, "retry", json!(null)).await.expect(202);
        shop.until(&id, "deployed").await;
        let made = shop.drain_calls("apply");
        assert_eq!(made, ["settings", "part-0"]);
        assert!(shop.resource(&id, "settings").await.get("last_log").is_none());
    }

    async fn environment_is_destroyed_at_its_end_of_life_unless_extended(engine: Engine) {
        let shop = Shop::open(engine).await;
        let body = json!({
            "name": "mine", "templates": ["shop@1.0.0"], "parameters": {"size": 0}, "ttl": "2h",
        });
        let id = shop.ann.post("/api/v1/environments", body).await.text("id");
        let now = shop.until(&id, "deployed").await;
        let first = now["destroy_at"].as_str().unwrap().to_owned();
        let next = shop.command(&id, "extend", json!({"ttl": 36_000})).await.expect(200);
        assert!(next["destroy_at"].as_str().unwrap() > first.as_str(), "{next:#}");
        assert_eq!(next["status"], "deployed");
        let at = "2101-01-01T00:00:00Z";
        let now = shop.command(&id, "extend", json!({"destroy_at": at})).await;
        names_field(&now, "destroy_at", "far away");
        for (body, field) in [
            (json!({}), "ttl"),
            (json!({"destroy_at": "2001-01-01T00:00:00Z"}), "destroy_at"),
            (json!({"ttl": "1h", "destroy_at": first}), "ttl"),
            (json!({"ttl": "soon"}), "ttl"),
        ] {
            names_field(&shop.command(&id, "extend", body.clone()).await, field, &body.to_string());
        }
        let never = shop.command(&id, "extend", json!({"destroy_at": null})).await.expect(200);
        assert_eq!(never["destroy_at"], Value::Null);
        shop.command(&id, "extend", json!({"ttl": "90m"})).await.expect(200);
        shop.paddock.clock.advance(Duration::from_mins(91));
        shop.until(&id, "destroyed").await;
        assert!(shop.executor.state().resources.is_empty());
        let log = shop.log().await;
        assert!(log.contains("environment.reminder") && log.contains("TtlExpired"));
        for what in ["extend", "apply", "retry", "cancel", "repair"] {
            let body = if what == "extend" { json!({"ttl": 5}) } else { json!({}) };
            let late = shop.command(&id, what, body).await;
            refused(&late, what);
            assert_eq!(late.status, 409, "{what}");
        }
        let late = shop.ann.patch(&path(&id), json!({"description": "x"})).await;
        assert_eq!(late.status, 409);
        // The name is free again.
        shop.create(json!({})).await;
    }

    async fn existing_object_is_adopted(engine: Engine) {
        let shop = Shop::open(engine).await;
        shop.executor.state().refuses.insert("settings".into());
        let body = json!({
            "name": "mine", "templates": ["shop@1.0.0"], "parameters": {"size": 1},
            "adopt": {"base": "old/base"},
        });
        let id = shop.ann.post("/api/v1/environments", body).await.text("id");
        shop.until(&id, "failed").await;
        assert!(shop.executor.state().calls.contains(&"adopt old/base".to_owned()));
        let adopt = |name: &str, what: &str| {
            let path = format!("{}/resources/{name}/adopt", path(&id));
            let (ann, what) = (shop.ann.clone(), json!({"what": what}));
            async move { ann.post(&path, what).await }
        };
        let late = adopt("base", "other/base").await;
        assert_eq!(late.status, 409);
        assert!(details(&late).contains("only a resource that is not created yet"), "{:#}", late.json);
        adopt("nobody", "x").await.expect(404);
        assert_eq!(adopt("part-0", "old/part").await.expect(202)["status"], "pending");
        shop.executor.state().refuses.clear();
        shop.command(&id, "retry", json!(null)).await.expect(202);
        shop.until(&id, "deployed").await;
        assert!(shop.executor.state().calls.contains(&"adopt old/part".to_owned()));
    }

    async fn external_object_is_adopted_only_by_those_whom_the_platform_allows(engine: Engine) {
        use api::Adopters::{Admin, Off, Owners};
        for (adopt, statuses) in [(Owners, [403, 202, 202]), (Admin, [403, 403, 202]), (Off, [403; 3])] {
            let shop = Shop::open_for(engine, adopt).await;
            let admin = shop.paddock.admin().await;
            let member = shop.paddock.member(&shop.ann, "mia").await;
            shop.executor.state().refuses.insert("settings".into());
            let id = shop.create(json!({})).await;
            shop.until(&id, "failed").await;
            let path = format!("{}/resources/part-0/adopt", path(&id));
            for (caller, status) in [&member, &shop.ann, &admin].into_iter().zip(statuses) {
                let answer = caller.post(&path, json!({"what": "prod/db"})).await;
                assert_eq!(answer.status, status, "{adopt:?} {:#}", answer.json);
                if status == 403 {
                    let said = details(&answer);
                    assert!(said.contains("part-0") && said.contains("--adopt"), "{said}");
                }
            }
            let body = json!({
                "name": "other", "templates": ["shop@1.0.0"], "adopt": {"base": "prod/base"},
            });
            let answer = member.post("/api/v1/environments", body).await;
            assert_eq!(answer.status, 403, "{adopt:?} {:#}", answer.json);
            let others = member.get("/api/v1/environments?name=other").await.expect(200);
            assert_eq!(others["items"], json!([]), "nothing is created");
        }
    }

    async fn change_is_applied_completely(engine: Engine) {
        let shop = Shop::open(engine).await;
        let extra = "resources:\n  - {name: extra, executor: vault-secret, with: {path: extra}}\n";
        let next = SHOP.replace("1.0.0", "1.1.0").replace("resources:\n", extra);
        shop.publish(&next).await.expect(201);
        let id = shop.deployed(json!({"size": 1})).await;
        let plan = shop.command(&id, "plan", json!({"templates": ["shop@1.1.0"]})).await.expect(200);
        let said = json!({
            "templates": ["shop@1.1.0"], "tags": {"stage": "next"}, "description": "Moved",
            "on_drift": "repair", "ttl": "2h", "adopt": {"extra": "old/extra"}, "plan_hash": plan["hash"],
        });
        let now = shop.command(&id, "apply", said).await.expect(202);
        assert_eq!((&now["generation"], &now["status"]), (&json!(2), &json!("deploying")));
        let now = shop.until(&id, "deployed").await;
        assert_eq!((&now["templates"], &now["tags"]), (&json!(["shop@1.1.0"]), &json!({"stage": "next"})));
        assert_eq!((&now["description"], &now["on_drift"]), (&json!("Moved"), &json!("repair")));
        assert!(now["destroy_at"].is_string(), "{now:#}");
        assert!(shop.executor.state().calls.contains(&"adopt old/extra".to_owned()));

        // Omitted fields stay unchanged.
        shop.command(&id, "apply", json!({"parameters": {"size": 2}})).await.expect(202);
        let later = shop.until(&id, "deployed").await;
        for field in ["templates", "tags", "description", "on_drift", "destroy_at"] {
            assert_eq!(later[field], now[field], "{field}");
        }
    }

    async fn rejected_change_has_no_effect(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"size": 1})).await;
        let (before, events) = (shop.get(&id).await, shop.log().await);
        let said = json!({
            "parameters": {"size": 2}, "tags": {"a": "b"}, "description": "Other", "on_drift": "repair",
            "ttl": "2h", "adopt": {"part-1": "old/part"},
        });
        let with = |field: &str, value: Value| {
            let mut body = said.clone();
            body[field] = value;
            shop.command(&id, "apply", body)
        };
        let stale = with("plan_hash", json!("5e1f")).await;
        refused(&stale, "another plan");
        assert_eq!(stale.status, 409);
        for (field, value, named) in [
            ("adopt", json!({"base": "old/base"}), "adopt.base"),
            ("adopt", json!({"part-1": "old/part", "nobody": "x"}), "adopt.nobody"),
            ("adopt", json!({"part-2": "x"}), "adopt.part-2"),
            ("adopt", json!({"part-1": ""}), "adopt.part-1"),
            ("tags", json!({"": "b"}), "tags"),
            ("on_drift", json!("panic"), "on_drift"),
            ("ttl", json!("soon"), "ttl"),
            ("destroy_at", json!("2001-01-01T00:00:00Z"), "ttl"),
            ("description", json!("a\nb"), "description"),
            ("parameters", json!({"size": 10}), "parameters.size"),
        ] {
            names_field(&with(field, value.clone()).await, named, &value.to_string());
        }
        assert_eq!(shop.get(&id).await, before);
        assert_eq!(shop.log().await, events);
    }

    async fn busy_environment_rejects_partial_changes(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let id = shop.create(json!({"size": 1})).await;
        let (before, events) = (shop.get(&id).await, shop.log().await);
        let said = json!({"tags": {"a": "b"}, "ttl": "2h", "adopt": {"base": "old/base"}});
        assert_eq!(shop.command(&id, "apply", said).await.status, 409);
        assert_eq!(shop.get(&id).await, before);
        assert_eq!(shop.log().await, events);
    }

    async fn resource_not_created_yet_can_adopt_with_a_change(engine: Engine) {
        let shop = Shop::open(engine).await;
        shop.executor.state().refuses.insert("settings".into());
        let id = shop.create(json!({"size": 1})).await;
        shop.until(&id, "failed").await;
        shop.executor.state().refuses.clear();
        let said = json!({"parameters": {"color": "blue"}, "adopt": {"part-0": "old/part"}});
        shop.command(&id, "apply", said).await.expect(202);
        shop.until(&id, "deployed").await;
        assert!(shop.executor.state().calls.contains(&"adopt old/part".to_owned()));
    }

    async fn unavailable_executors_have_a_reason(engine: Engine) {
        let missing = vec![Executor::ConsulKv, Executor::Terraform];
        let settings = TestSettings { missing, api_only: true, ..TestSettings::default() };
        let shop = Shop::start_with(engine, settings).await;
        let all = listed(&shop.ann, "executors").await;
        assert_eq!(all.len(), 6);
        let of = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(*of("consul-kv"), json!({"name": "consul-kv", "available": false, "reason": "Executor consul-kv is not configured."}));
        assert_eq!(*of("deployment"), json!({"name": "deployment", "available": true, "reason": null}));
        assert_eq!(of("terraform")["available"], false);
    }
}
