//! Resources: objects, logs, and hidden values.

use std::time::Duration;

use serde_json::{Value, json};
use testing::on_both_engines;

use crate::shop::{SHOP, Shop, listed, path, text};

/// A value that must never be returned.
const SECRET: &str = "environment-secret-93be";

const WEB: &str = "
name: web
version: 1
parameters:
  key: {type: string, default: none}
resources:
  - name: base
    executor: vault-secret
    with: {path: base}
  - name: web
    executor: deployment
    with:
      image: web:1
      cpu: 1
      env: {PASSPHRASE: environment-secret-93be, BASE: '{{ base.path }}'}
    status: {http: 'http://{{ environment.name }}.local/health'}
";

on_both_engines! {
    async fn resource_links_to_its_object(engine: Engine) {
        let shop = Shop::start(engine).await;
        shop.paddock.cluster(&shop.ann, json!({"cpu": 4})).await;
        shop.publish(WEB).await.expect(201);
        shop.probe.state().insert("http://mine.local/health".into(), 200);
        let body = json!({"name": "mine", "templates": ["web@1"]});
        let id = shop.ann.post("/api/v1/environments", body).await.text("id");
        let now = shop.until(&id, "deployed").await;
        let url = json!([{"resource": "web", "url": "http://mine.local/health"}]);
        assert_eq!(now["status_endpoints"], url);
        let web = shop.resource(&id, "web").await;
        assert_eq!((&web["action"], &web["act"], &web["progress"]), (&json!(false), &json!("nothing"), &json!(100)));
        assert_eq!((&web["link"]["kind"], &web["depends_on"]), (&json!("deployment"), &json!(["base"])));
        let href = web["link"]["href"].as_str().unwrap();
        assert_eq!(shop.ann.get(href).await.expect(200)["status"], "running");
        let by_id = format!("/api/v1/resources/{}", web["id"].as_str().unwrap());
        assert_eq!(shop.ann.get(&by_id).await.expect(200), web);
        let all = listed(&shop.ann, "resources").await;
        assert_eq!((all.len(), &all[0]["environment_id"]), (2, &json!(id)));

        // Values of environment variables appear only in the deployment itself.
        assert_eq!(web["with"]["env"], json!({"PASSPHRASE": "(not shown)", "BASE": "{{ base.path }}"}));
        for seen in [&web, &now, &json!(all), &json!(shop.log().await)] {
            assert!(!seen.to_string().contains(SECRET), "{seen:#}");
        }
        for name in ["web", "base"] {
            let (_, log) = text(&shop.ann, &format!("{}/resources/{name}/logs", path(&id)), "*/*").await;
            assert!(!log.contains(SECRET), "{log}");
        }
        // Other organizations cannot see it.
        let zoe = shop.paddock.owner("zoe").await;
        zoe.get(&by_id).await.expect(404);
        zoe.get(&format!("{}/resources/web", path(&id))).await.expect(404);
        zoe.get(&format!("{}/resources/web/logs", path(&id))).await.expect(404);
        assert_eq!(listed(&zoe, "resources").await, Vec::<Value>::new());

        shop.ann.delete(&path(&id)).await.expect(202);
        shop.until(&id, "destroyed").await;
        shop.ann.get(&by_id).await.expect(404);
        shop.paddock.until_deleted(&shop.ann, href).await;
    }

    async fn resource_logs_can_be_read_and_followed(engine: Engine) {
        let shop = Shop::open(engine).await;
        shop.executor.state().refuses.insert("settings".into());
        let id = shop.create(json!({"size": 1})).await;
        let logs = |name: &str, query: &str| format!("{}/resources/{name}/logs{query}", path(&id));
        shop.until(&id, "failed").await;
        let (kind, said) = text(&shop.ann, &logs("settings", ""), "text/plain").await;
        assert_eq!(kind, "text/plain; charset=utf-8");
        assert!(said.contains("it says no to settings\n"), "{said}");
        // A blocked resource has no log and does not block its reader.
        let (_, nothing) = text(&shop.ann, &logs("part-0", "?follow=true"), "*/*").await;
        assert_eq!(nothing, "");

        shop.executor.state().refuses.clear();
        shop.executor.state().running_polls = 5;
        shop.command(&id, "retry", json!(null)).await.expect(202);
        let (kind, followed) = text(&shop.ann, &logs("settings", "?follow=true"), "application/x-ndjson").await;
        assert_eq!(kind, "application/x-ndjson");
        let lines: Vec<Value> = followed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let last = lines.last().unwrap();
        assert_eq!(last["text"], "settings is made");
        assert!(last["at"].is_string());
        let numbers: Vec<i64> = lines.iter().map(|line| line["number"].as_i64().unwrap()).collect();
        assert!(numbers.iter().zip(1..).all(|(number, place)| *number == place), "{numbers:?}");
        shop.until(&id, "deployed").await;

        let (_, tail) = text(&shop.ann, &logs("settings", "?tail=1"), "*/*").await;
        assert_eq!(tail, "settings is made\n");
        let after = format!("?after={}", numbers.len() - 1);
        assert_eq!(text(&shop.ann, &logs("settings", &after), "*/*").await.1, tail);
        let beyond = format!("?after={}&follow=true", numbers.len());
        assert_eq!(text(&shop.ann, &logs("settings", &beyond), "*/*").await.1, "");
        shop.ann.get(&logs("settings", "?tail=1&after=1")).await.expect(400);
        for nobody in ["nobody", "%00", "A"] {
            shop.ann.get(&logs(nobody, "")).await.expect(404);
            shop.ann.get(&format!("{}/resources/{nobody}", path(&id))).await.expect(404);
        }

        // The log is retained after the resource is destroyed.
        shop.executor.state().running_polls = 0;
        shop.ann.delete(&path(&id)).await.expect(202);
        shop.until(&id, "destroyed").await;
        let (_, said) = text(&shop.ann, &logs("settings", "?follow=true"), "*/*").await;
        assert!(said.contains("settings is made"), "{said}");
    }

    async fn log_stream_ends_when_the_server_stops(engine: Engine) {
        let shop = Shop::open(engine).await;
        shop.executor.state().running_polls = u32::MAX;
        let id = shop.create(json!({"size": 0})).await;
        shop.until_resource(&id, "base", "applying").await;
        let path = format!("{}/resources/base/logs?follow=true", path(&id));
        let mut answer = shop.ann.request("GET", &path).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        drop(shop.paddock);
        let end = tokio::time::timeout(Duration::from_secs(30), async {
            while let Ok(Some(_)) = answer.chunk().await {}
        });
        end.await.expect("the stream ends with the server");
    }

    async fn template_can_be_republished_after_deletion(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"size": 0})).await;
        shop.ann.delete(&path(&id)).await.expect(202);
        shop.until(&id, "destroyed").await;
        shop.ann.delete("/api/v1/templates/shop@1.0.0").await.expect(204);
        shop.publish(&SHOP.replace("A shop", "Another")).await.expect(201);
        shop.deployed(json!({"size": 0})).await;
    }
}
