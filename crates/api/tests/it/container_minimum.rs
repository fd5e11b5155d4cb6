//! Default and minimum resources of containers, from every API and from templates.

use serde_json::json;
use testing::on_both_engines;

use crate::shop::{Shop, listed};
use crate::world::names_field;

const NO_CPU: &str = "must be more than 0 for a container; omit it for the default of 100m";

on_both_engines! {
    async fn container_without_cpu_or_memory_is_refused_by_both_apis(engine: Engine) {
        let shop = Shop::start(engine).await;
        let ann = &shop.ann;
        let cluster = shop.paddock.cluster(ann, json!({"cpu": 4, "ram": "1Gi"})).await;
        for (kind, detail) in [("cpu", NO_CPU), ("ram", "must be at least 4Mi for a container")] {
            let resources = json!({kind: 0});
            let body = json!({"image": "web:1", "resources": resources, "cluster_id": cluster});
            for path in ["/api/v1/deployments", "/api/v1/deployments?dry_run=true"] {
                let refused = ann.post(path, body.clone()).await;
                names_field(&refused, &format!("resources.{kind}"), path);
                assert!(refused.json.to_string().contains(detail), "{:#}", refused.json);
            }
            let body = json!({"image": "web:1", "resource": resources, "cluster_id": cluster});
            let refused = ann.put("/deployment/", body).await;
            names_field(&refused, &format!("resource.{kind}"), "kargo");
            assert!(refused.json.to_string().contains(detail), "{:#}", refused.json);
        }
        assert_eq!(listed(ann, "deployments").await.len(), 0);
        // Only holds capacity.
        let held = ann.post("/api/v1/deployments", json!({"resources": {"cpu": 0, "gpu": 1}})).await;
        held.expect(201);
    }

    async fn deployment_of_a_template_has_defaults_and_a_minimum(engine: Engine) {
        let shop = Shop::start(engine).await;
        shop.paddock.cluster(&shop.ann, json!({"cpu": 4, "ram": "1Gi"})).await;
        let template = "
name: web
version: 1.0.0
resources:
  - {name: plain, executor: deployment, with: {image: 'web:1', cluster: main}}
  - {name: idle, executor: deployment, with: {image: 'web:1', cluster: main, cpu: 0}}
  - {name: tiny, executor: deployment, with: {image: 'web:1', cluster: main, resources: {ram: 1Mi}}}
";
        shop.publish(template).await.expect(201);
        let body = json!({"name": "mine", "templates": ["web@1.0.0"]});
        let id = shop.ann.post("/api/v1/environments", body).await.text("id");
        for (name, detail) in [("idle", NO_CPU), ("tiny", "must be at least 4Mi for a container, not 1Mi")] {
            let failed = shop.until_resource(&id, name, "failed").await;
            let reason = failed["status_reason"].as_str().unwrap();
            assert!(reason.contains(detail), "{reason}");
        }
        shop.until_resource(&id, "plain", "applied").await;
        let all = listed(&shop.ann, "deployments").await;
        assert_eq!(all.len(), 1, "{all:#?}");
        assert_eq!((&all[0]["resources"]["cpu"], &all[0]["resources"]["ram"]), (&json!(0.1), &json!(67_108_864)));
    }
}
