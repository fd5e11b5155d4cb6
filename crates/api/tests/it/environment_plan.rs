//! Plans of environments.

use serde_json::{Value, json};
use testing::on_both_engines;

use crate::shop::{Shop, listed, path};
use crate::world::{names_field, refused};

on_both_engines! {
    async fn plan_needs_no_name_and_has_no_effect(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let events = shop.log().await;
        let request = json!({"templates": ["shop@1.0.0"]});
        let plan = shop.ann.post("/api/v1/environments/plan", request.clone()).await.expect(200);
        assert_eq!(plan["summary"]["create"], 5);
        let names: Vec<&str> = steps(&plan).map(|(name, _)| name).collect();
        let place = |name: &str| names.iter().position(|one| *one == name).unwrap();
        assert!(place("base") < place("settings") && place("settings") < place("part-0"), "{names:?}");
        let settings = &plan["steps"][place("settings")];
        assert_eq!((&settings["after"], &settings["act"]), (&json!(["base"]), &json!("create")));
        assert!(settings["reason"].as_str().unwrap().len() > 5);
        // The same spec has the same plan; the name makes no difference, a parameter does.
        let mut named = request.clone();
        named["name"] = json!("mine");
        let same = shop.ann.post("/api/v1/environments/plan", named).await.expect(200);
        assert_eq!(same["hash"], plan["hash"]);
        let mut other = request;
        other["parameters"] = json!({"color": "blue"});
        let other = shop.ann.post("/api/v1/environments/plan", other).await.expect(200);
        assert_ne!(other["hash"], plan["hash"]);
        assert_eq!(listed(&shop.ann, "environments").await, Vec::<Value>::new());
        assert_eq!(shop.log().await, events);
    }

    async fn outdated_plan_is_rejected(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"size": 1})).await;
        let plan = |body: Value| shop.plan(&id, body);
        let first = plan(json!({"parameters": {"size": 3}})).await;
        let (two, three) = (json!({"parameters": {"size": 2}}), json!({"parameters": {"size": 3}}));
        assert_eq!(first["summary"]["create"], 2);
        shop.command(&id, "apply", two).await.expect(202);
        shop.until(&id, "deployed").await;
        let mut stale = three.clone();
        stale["plan_hash"] = first["hash"].clone();
        let no = shop.command(&id, "apply", stale).await;
        refused(&no, "stale");
        assert_eq!(no.status, 409);
        assert_eq!(shop.get(&id).await["parameters"], json!({"size": 2}));
        let now = plan(three.clone()).await;
        assert_eq!(now["summary"]["create"], 1);
        let mut fresh = three;
        fresh["plan_hash"] = now["hash"].clone();
        shop.command(&id, "apply", fresh).await.expect(202);
        shop.until(&id, "deployed").await;
        // Null restores the default.
        let back = plan(json!({"parameters": {"size": null}})).await;
        assert_eq!((&back["summary"]["destroy"], &back["summary"]["nothing"]), (&json!(1), &json!(5)));
        assert_eq!(acts(&back, "destroy"), ["part-2"]);
    }

    async fn destruction_is_planned_in_reverse_order(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"size": 1})).await;
        let end = shop.plan(&id, json!({"destroy": true})).await;
        assert_eq!(end["summary"]["destroy"], 4);
        let names: Vec<&str> = steps(&end).map(|(name, _)| name).collect();
        let place = |name: &str| names.iter().position(|one| *one == name).unwrap();
        assert!(place("part-0") < place("settings") && place("settings") < place("base"), "{names:?}");
        let both = json!({"destroy": true, "parameters": {"size": 1}});
        names_field(&shop.command(&id, "plan", both).await, "destroy", "both");
        // Without a body: the plan without any change.
        let request = shop.ann.request("POST", &format!("{}/plan", path(&id)));
        let idle = shop.ann.send(request).await.expect(200);
        assert_eq!(idle["summary"]["nothing"], 4);
    }

    async fn environment_can_use_several_templates(engine: Engine) {
        let shop = Shop::open(engine).await;
        let front = "name: front\nversion: 1\nneeds: [settings]\nresources:\n  - name: page\n    executor: \
                     consul-kv\n    with: {prefix: page/, values: {from: '{{ settings.path }}'}}\n";
        shop.publish(front).await.expect(201);
        let alone = json!({"name": "mine", "templates": ["front@1"]});
        refused(&shop.ann.post("/api/v1/environments", alone).await, "a required template is missing");
        let both = json!({"name": "mine", "templates": ["front@1", "shop@1.0.0"]});
        let id = shop.ann.post("/api/v1/environments", both).await.text("id");
        let now = shop.until(&id, "deployed").await;
        assert_eq!(now["templates"], json!(["front@1", "shop@1.0.0"]));
        let page = shop.resource(&id, "page").await;
        assert_eq!((&page["template"], &page["depends_on"]), (&json!("front@1"), &json!(["settings"])));
        assert_eq!(page["outputs"]["told"]["values"]["from"], "made/settings");
        // Removing one template keeps the resources of the other.
        let change = json!({"templates": ["shop@1.0.0"]});
        assert_eq!(acts(&shop.plan(&id, change.clone()).await, "destroy"), ["page"]);
        shop.drain_calls("apply");
        shop.command(&id, "apply", change).await.expect(202);
        shop.until(&id, "deployed").await;
        assert_eq!(shop.drain_calls("destroy"), ["page"]);
        shop.ann.delete("/api/v1/templates/front@1").await.expect(204);
    }
}

impl Shop {
    async fn plan(&self, id: &str, body: Value) -> Value {
        self.command(id, "plan", body).await.expect(200)
    }
}

fn steps(plan: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = plan["steps"].as_array().unwrap().iter();
    all.map(|one| (one["name"].as_str().unwrap(), one["act"].as_str().unwrap()))
}

fn acts<'a>(plan: &'a Value, act: &str) -> Vec<&'a str> {
    steps(plan).filter(|(_, of)| *of == act).map(|(name, _)| name).collect()
}
