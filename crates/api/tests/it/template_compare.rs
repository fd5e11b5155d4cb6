//! Comparison of template versions and its impact on environments.

use serde_json::{Value, json};
use testing::on_both_engines;

use crate::shop::{SHOP, Shop};
use crate::template::publish_shared;
use crate::world::names_field;

on_both_engines! {
    async fn diff_names_the_changed_fields(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let newer = SHOP
            .replace("1.0.0", "1.1.0")
            .replace("default: red", "default: blue")
            .replace("  - {name: beside, executor: vault-secret, with: {path: beside}}\n", "");
        shop.publish(&newer).await.expect(201);
        let diff = shop.ann.get("/api/v1/templates/shop/diff?from=1.0.0&to=1.1.0").await.expect(200);
        assert_eq!((&diff["from"], &diff["to"]), (&json!("1.0.0"), &json!("1.1.0")));
        let changes = diff["changes"].as_array().unwrap();
        let paths: Vec<&str> = changes.iter().map(|one| one["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["parameters.color.default", "resources.beside"]);
        assert_eq!((&changes[0]["from"], &changes[0]["to"]), (&json!("red"), &json!("blue")));
        assert_eq!(changes[1]["to"], Value::Null);
        let same = shop.ann.get("/api/v1/templates/shop/diff?from=1.0.0&to=1.0.0").await.expect(200);
        assert_eq!(same["changes"], json!([]));

        for what in ["diff", "impact"] {
            let path = |query: &str| format!("/api/v1/templates/shop/{what}{query}");
            names_field(&shop.ann.get(&path("")).await, "from", what);
            names_field(&shop.ann.get(&path("?from=1.0.0")).await, "to", what);
            shop.ann.get(&path("?from=1.0.0&to=9")).await.expect(404);
            shop.ann.get(&format!("/api/v1/templates/other/{what}?from=1&to=2")).await.expect(404);
        }
    }

    async fn impact_lists_the_planned_steps_without_effect(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"color": "blue"})).await;
        let body = json!({"name": "odd", "templates": ["shop@1.0.0"], "parameters": {"size": 9}});
        let odd = shop.ann.post("/api/v1/environments", body).await.text("id");
        shop.probe.state().insert("https://odd.shop.local/red".into(), 200);
        shop.until(&odd, "deployed").await;
        let newer = SHOP
            .replace("1.0.0", "2.0.0")
            .replace("maximum: 9", "maximum: 5")
            .replace("prefix: shop/", "prefix: shop2/");
        shop.publish(&newer).await.expect(201);
        shop.drain_calls("apply");
        let before = shop.log().await;
        let path = "/api/v1/templates/shop/impact?from=1.0.0&to=2.0.0";
        let impact = shop.ann.get(path).await.expect(200);
        let all = impact["environments"].as_array().unwrap();
        assert_eq!(all.len(), 2, "{impact:#}");
        let of = |id: &str| all.iter().find(|one| one["id"] == id).unwrap();
        let (mine, odd) = (of(&id), of(&odd));
        assert_eq!((&mine["problem"], &mine["name"]), (&Value::Null, &json!("mine")));
        let touched: Vec<&str> =
            mine["steps"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(touched, ["settings"], "{mine:#}");
        assert_eq!(mine["summary"]["nothing"], 4);
        assert!(odd["problem"].as_str().unwrap().contains("parameters.size: must be at most 5"));
        assert_eq!((&odd["hash"], &odd["steps"]), (&Value::Null, &json!([])));
        assert_eq!(shop.log().await, before);
        assert_eq!(shop.drain_calls("apply"), Vec::<String>::new());
        // The impact equals the plan and can be applied with its hash.
        let change = json!({"templates": ["shop@2.0.0"], "plan_hash": mine["hash"]});
        shop.command(&id, "apply", change).await.expect(202);
        shop.until(&id, "deployed").await;
        assert_eq!(shop.drain_calls("apply"), ["settings"]);
        let impact = shop.ann.get(path).await.expect(200);
        assert_eq!(impact["environments"].as_array().unwrap().len(), 1);

        let deprecate = "/api/v1/templates/shop@2.0.0/deprecate";
        shop.ann.post(deprecate, json!({"why": "Too small."})).await.expect(200);
        let body = json!({"name": "third", "templates": ["shop@1.0.0"]});
        shop.ann.post("/api/v1/environments", body).await.expect(202);
        let impact = shop.ann.get(path).await.expect(200);
        let third = &impact["environments"][1];
        assert_eq!(third["problem"], "shop@2.0.0 is deprecated: Too small.");
        // Environments of other organizations are not included.
        let zoe = shop.paddock.owner("zoe").await;
        zoe.get(path).await.expect(404);
    }

    async fn environment_keeps_its_template_when_the_name_is_shadowed(engine: Engine) {
        let shop = Shop::start(engine).await;
        publish_shared(&shop.paddock.admin().await).await.expect(201);
        let id = shop.deployed(json!({"size": 1})).await;
        // The organization publishes another template under the same name and version.
        let own = SHOP.replace("prefix: shop/", "prefix: own/");
        shop.publish(&own).await.expect(201);
        for change in [json!({}), json!({"templates": ["shop@1.0.0"]})] {
            let plan = shop.command(&id, "plan", change).await.expect(200);
            assert_eq!(plan["summary"]["nothing"], 4, "{plan:#}");
        }
        shop.drain_calls("apply");
        shop.command(&id, "apply", json!({"parameters": {"size": 2}})).await.expect(202);
        shop.until(&id, "deployed").await;
        assert_eq!(shop.drain_calls("apply"), ["part-1"]);
        // New environments use the organization's own template; both are found.
        let body = json!({"name": "new", "templates": ["shop@1.0.0"], "parameters": {"size": 0}});
        let new = shop.ann.post("/api/v1/environments", body).await.text("id");
        shop.probe.state().insert("https://new.shop.local/red".into(), 200);
        shop.until(&new, "deployed").await;
        let made = shop.resource(&new, "settings").await;
        assert_eq!(made["outputs"]["told"]["prefix"], "own/", "{made:#}");
        shop.publish(&own.replace("1.0.0", "1.1.0")).await.expect(201);
        let path = "/api/v1/templates/shop/impact?from=1.0.0&to=1.1.0";
        let impact = shop.ann.get(path).await.expect(200);
        let touched = |one: &Value| (one["id"].clone(), one["steps"].as_array().unwrap().len());
        let all: Vec<_> = impact["environments"].as_array().unwrap().iter().map(touched).collect();
        assert_eq!(all, [(json!(id), 1), (json!(new), 0)], "{impact:#}");
    }
}
