//! Default and minimum resources of containers, in every API.

use serde_json::json;
use testing::on_both_engines;

use crate::world::{names_field, start, start_still};

const DEFAULTS: (f64, i64) = (0.1, 67_108_864);

on_both_engines! {
    async fn image_without_resources_gets_defaults_in_both_apis(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 4, "ram": "1Gi"})).await;
        for (requested, cpu, ram) in [
            (json!({}), json!(DEFAULTS.0), DEFAULTS.1),
            (json!({"cpu": 1}), json!(1), DEFAULTS.1),
            (json!({"ram": "4Mi"}), json!(DEFAULTS.0), 4_194_304),
        ] {
            let body = json!({"image": "web:1", "resources": requested, "cluster_id": cluster});
            let made = ann.post("/api/v1/deployments", body).await.expect(201);
            let shown = &made["resources"];
            assert_eq!((&shown["cpu"], &shown["ram"]), (&cpu, &json!(ram)));
            let body = json!({"image": "web:1", "resource": requested, "cluster_id": cluster});
            let made = ann.put("/deployment/", body).await.expect(201);
            let shown = &made["resource"];
            assert_eq!((&shown["cpu"], &shown["ram"]), (&cpu, &json!(ram)));
        }
    }

    async fn memory_below_the_minimum_is_refused_with_an_image_only(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        for ram in [json!(0), json!("4Ki"), json!("3.9Mi")] {
            let body = json!({"image": "web:1", "resources": {"ram": ram}});
            let refused = ann.post("/api/v1/deployments", body).await;
            names_field(&refused, "resources.ram", "minimum");
            assert!(refused.json.to_string().contains("at least 4Mi"), "{:#}", refused.json);
            let path = "/api/v1/deployments?dry_run=true";
            let body = json!({"image": "web:1", "resources": {"ram": ram}});
            names_field(&ann.post(path, body).await, "resources.ram", "minimum");
            let cluster = json!({"cluster_name": "main", "resource": {"ram": "1Gi"}});
            let cluster = ann.put("/cluster/", cluster).await.text("id");
            let body = json!({"image": "web:1", "resource": {"ram": ram}, "cluster_id": cluster});
            names_field(&ann.put("/deployment/", body).await, "resource.ram", "minimum");
            // Only holds capacity.
            let body = json!({"resources": {"ram": ram}});
            ann.post("/api/v1/deployments", body).await.expect(201);
        }
        // Kargo has no units: a number of a cluster that counts memory otherwise.
        let cluster = json!({"cluster_name": "units", "resource": {"cpu": " 4", "ram": " 16"}});
        let cluster = ann.put("/cluster/", cluster).await.text("id");
        for (resource, expected) in [
            (json!({"cpu": 1, "ram": " 1"}), json!({"cpu": 1, "ram": 1})),
            (json!({"cpu": 1}), json!({"cpu": 1})),
        ] {
            let body = json!({"image": "web:1", "resource": resource, "cluster_id": cluster});
            let id = ann.put("/deployment/", body).await.text("id");
            let shown = ann.get(&format!("/api/v1/deployments/{id}")).await.expect(200);
            assert_eq!(shown["resources"], expected);
        }
        let body = json!({"resources": {"gpu": 1}});
        let held = ann.post("/api/v1/deployments", body).await.expect(201);
        assert_eq!(held["resources"], json!({"gpu": 1}));
    }
}
