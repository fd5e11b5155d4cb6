//! Templates: published once, found by name and version, immutable.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testing::{Answer, Client, TestPaddock, on_both_engines};

use crate::concurrency::statuses;
use crate::shop::{SHOP, Shop, listed, publish, send, text};
use crate::world::{details, refused};

on_both_engines! {
    async fn published_template_is_immutable(engine: Engine) {
        let shop = Shop::still(engine).await;
        let request = shop.ann.request("POST", "/api/v1/templates?commit=5e1f0d");
        let request = request.header("content-type", "text/plain").body(SHOP);
        let made = shop.ann.send(request).await.expect(201);
        assert_eq!((&made["reference"], &made["commit"]), (&json!("shop@1.0.0"), &json!("5e1f0d")));
        assert_eq!((&made["shared"], &made["deprecated_at"]), (&json!(false), &Value::Null));
        assert_eq!(made["parameters"]["size"]["maximum"], 9.0);
        assert_eq!(made["resources"][1]["with"]["values"]["color"], "{{ color }}");
        assert_eq!((&made["files"], &made["needs"]), (&json!([]), &json!([])));

        // The same content again, in another notation and from another commit.
        let again = send(&shop.ann, "application/yaml", format!("# Again.\n{SHOP}").into()).await;
        let again = again.expect(200);
        assert_eq!((&again["id"], &again["commit"]), (&made["id"], &json!("5e1f0d")));
        let other = shop.publish(&SHOP.replace("A shop", "Another shop")).await;
        refused(&other, "other content");
        assert_eq!(other.status, 409);
        assert!(details(&other).contains("publish a new version"), "{:#}", other.json);

        for reference in ["shop@1.0.0", "shop"] {
            let found = shop.ann.get(&format!("/api/v1/templates/{reference}")).await.expect(200);
            assert_eq!(found, made, "{reference}");
        }
        let list = listed(&shop.ann, "templates?name=shop").await;
        assert_eq!((list.len(), &list[0]["hash"]), (1, &made["hash"]));
        assert_eq!((list[0].get("resources"), list[0].get("files")), (None, None));
        let (kind, source) = text(&shop.ann, "/api/v1/templates/shop/source", "*/*").await;
        assert_eq!((kind.as_str(), source.as_str()), ("application/yaml", SHOP));
        assert_eq!(listed(&shop.ann, "templates?name=other").await, Vec::<Value>::new());
    }

    async fn json_is_accepted_and_name_resolves_to_the_newest_version(engine: Engine) {
        let shop = Shop::still(engine).await;
        for version in ["1.9.0", "1.10.0", "2.0.0-rc.1", "1.2.0"] {
            let body = json!({"name": "shop", "version": version, "commit": "own"});
            let request = shop.ann.request("POST", "/api/v1/templates?commit=other");
            let made = shop.ann.send(request.json(&body)).await.expect(201);
            assert_eq!(made["commit"], "own");
        }
        let newest = shop.ann.get("/api/v1/templates/shop").await.expect(200);
        assert_eq!(newest["version"], "2.0.0-rc.1");
        let (kind, source) = text(&shop.ann, "/api/v1/templates/shop@1.9.0/source", "*/*").await;
        assert_eq!(kind, "application/json");
        assert_eq!(serde_json::from_str::<Value>(&source).unwrap()["version"], "1.9.0");
        for nothing in ["shop@3", "other", "other@1", "shop@", "@1", "shop@1@2", "%00", "Shop"] {
            shop.ann.get(&format!("/api/v1/templates/{nothing}")).await.expect(404);
        }
    }

    async fn deprecated_template_cannot_create_environments(engine: Engine) {
        let shop = Shop::open_still(engine).await;
        let id = shop.create(json!({})).await;
        shop.publish(&SHOP.replace("1.0.0", "1.1.0")).await.expect(201);
        let path = "/api/v1/templates/shop@1.1.0/deprecate";
        let now = shop.ann.post(path, json!({"why": "Use 1.2.0."})).await.expect(200);
        assert_eq!(now["deprecated_why"], "Use 1.2.0.");
        assert!(now["deprecated_at"].is_string());
        assert_eq!(shop.ann.get("/api/v1/templates/shop").await.expect(200)["version"], "1.0.0");

        let request = json!({"name": "other", "templates": ["shop@1.1.0"]});
        let refusal = shop.ann.post("/api/v1/environments", request.clone()).await;
        refused(&refusal, "deprecated");
        assert!(details(&refusal).contains("shop@1.1.0 is deprecated: Use 1.2.0."));
        assert_eq!(listed(&shop.ann, "environments").await.len(), 1);
        // Existing environments keep it and can still be changed.
        let old = "/api/v1/templates/shop@1.0.0/deprecate";
        shop.ann.post(old, json!({"why": "Old."})).await.expect(200);
        assert_eq!(shop.ann.get("/api/v1/templates/shop").await.status, 404);
        shop.command(&id, "plan", json!({"parameters": {"size": 3}})).await.expect(200);

        let now = shop.ann.delete(path).await.expect(200);
        assert_eq!((&now["deprecated_at"], &now["deprecated_why"]), (&Value::Null, &Value::Null));
        shop.ann.post("/api/v1/environments", request).await.expect(202);
        // Only versions can be deprecated and deleted, never a whole name.
        let name = shop.ann.delete("/api/v1/templates/shop").await;
        assert_eq!(name.status, 400, "{:#}", name.json);
        assert_eq!(listed(&shop.ann, "templates").await.len(), 2);
    }

    async fn template_in_use_cannot_be_deleted(engine: Engine) {
        let shop = Shop::open(engine).await;
        let id = shop.deployed(json!({"size": 0})).await;
        let path = "/api/v1/templates/shop@1.0.0";
        let no = shop.ann.delete(path).await;
        refused(&no, "used");
        assert_eq!(no.status, 409);
        assert!(details(&no).contains("is used by environments"), "{:#}", no.json);
        shop.ann.delete(&crate::shop::path(&id)).await.expect(202);
        shop.until(&id, "destroyed").await;
        shop.ann.delete(path).await.expect(204);
        shop.ann.get(path).await.expect(404);
        shop.ann.delete(path).await.expect(404);
        assert_eq!(listed(&shop.ann, "templates").await, Vec::<Value>::new());
        // Its environment can still be read.
        assert_eq!(shop.get(&id).await["templates"], json!(["shop@1.0.0"]));
    }

    async fn shared_template_is_used_by_all_and_changed_by_the_administrator(engine: Engine) {
        let shop = Shop::still(engine).await;
        let (zoe, admin) = (shop.paddock.owner("zoe").await, shop.paddock.admin().await);
        publish_shared(&shop.ann).await.expect(403);
        assert_eq!(listed(&admin, "templates").await, Vec::<Value>::new());
        let made = publish_shared(&admin).await.expect(201);
        assert_eq!((&made["shared"], &made["organization_id"]), (&json!(true), &Value::Null));
        for client in [&shop.ann, &zoe] {
            client.get("/api/v1/templates/shop").await.expect(200);
            client.delete("/api/v1/templates/shop@1.0.0").await.expect(403);
            let why = json!({"why": "no"});
            client.post("/api/v1/templates/shop@1.0.0/deprecate", why).await.expect(403);
        }
        // The organization's own template takes precedence and is not visible to others.
        let own = SHOP.replace("A shop", "Ann's own");
        shop.publish(&own).await.expect(201);
        let seen = shop.ann.get("/api/v1/templates/shop@1.0.0").await.expect(200);
        assert_eq!(seen["description"], "Ann's own");
        assert_eq!(shop.ann.get("/api/v1/templates/shop").await.expect(200)["id"], seen["id"]);
        assert_eq!(zoe.get("/api/v1/templates/shop").await.expect(200)["description"], "A shop");
        assert_eq!(admin.get("/api/v1/templates/shop").await.expect(200)["description"], "A shop");
        assert_eq!(listed(&shop.ann, "templates").await.len(), 2);
        assert_eq!(listed(&zoe, "templates").await.len(), 1);
        shop.create(json!({})).await;
        admin.delete("/api/v1/templates/shop@1.0.0").await.expect(204);
        shop.ann.delete("/api/v1/templates/shop@1.0.0").await.expect(409);
        zoe.get("/api/v1/templates/shop").await.expect(404);
    }

    async fn invalid_template_is_rejected_with_its_line(engine: Engine) {
        let shop = Shop::still(engine).await;
        let events = shop.log().await;
        for (body, words) in bad_templates() {
            let answer = shop.publish(&body).await;
            let short: String = body.chars().take(300).collect();
            refused(&answer, &short);
            assert_eq!(answer.status, 400, "{short}: {:#}", answer.json);
            let said = details(&answer);
            assert!(said.contains("template.yaml"), "{short}: {said}");
            assert!(said.contains(words), "{short}: {words:?} is not in {said}");
        }
        let many = format!("{SHOP}#{}", "x".repeat(2 << 20));
        shop.publish(&many).await.expect(413);
        let bytes = b"name: a\xff\nversion: 1\n".to_vec();
        send(&shop.ann, "application/yaml", bytes).await.expect(400);
        assert_eq!(listed(&shop.ann, "templates").await, Vec::<Value>::new());
        assert_eq!(shop.log().await, events);
    }

    async fn concurrent_publications_have_one_winner(engine: Engine) {
        let shop = Shop::still(engine).await;
        let texts = [SHOP.to_owned(), SHOP.replace("A shop", "Another shop")];
        let all = (0..20).map(|i| publish(&shop.ann, &texts[i % 2]));
        let answers = join_all(all).await;
        assert_eq!(statuses(&answers), BTreeMap::from([(200, 9), (201, 1), (409, 10)]));
        let kept = shop.ann.get("/api/v1/templates/shop").await.expect(200);
        for answer in answers.iter().filter(|answer| answer.status < 300) {
            assert_eq!(answer.json, kept);
        }
        assert_eq!(listed(&shop.ann, "templates").await.len(), 1);
    }

    async fn template_content_is_in_no_event(engine: Engine) {
        let shop = Shop::still(engine).await;
        let secret = "literal-secret-40ac";
        let text = format!(
            "name: web\nversion: 1\nresources:\n  - name: web\n    executor: deployment\n    with:\n      \
             image: web:1\n      env: {{KEY: {secret}, COLOR: '{{{{ environment.name }}}}'}}\n"
        );
        shop.publish(&text).await.expect(201);
        let body = json!({"name": "mine", "templates": ["web@1"]});
        let made = shop.ann.post("/api/v1/environments", body).await.expect(202);
        assert!(!made.to_string().contains(secret), "{made:#}");
        let id = made["id"].as_str().unwrap();
        let web = shop.resource(id, "web").await;
        assert_eq!(web["with"]["env"], json!({"KEY": "(not shown)", "COLOR": "{{ environment.name }}"}));
        let log = shop.log().await;
        assert!(log.contains("template.published") && log.contains("resource.created"));
        assert!(!log.contains(secret));
    }

    async fn template_names_are_scoped_to_organizations(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let ours = publish(&ann, SHOP).await.expect(201);
        let theirs = publish(&zoe, &SHOP.replace("A shop", "Zoe's")).await.expect(201);
        assert_ne!(ours["id"], theirs["id"]);
        assert_eq!(ann.get("/api/v1/templates/shop").await.expect(200)["id"], ours["id"]);
        assert_eq!(zoe.get("/api/v1/templates/shop").await.expect(200)["id"], theirs["id"]);
        ann.delete("/api/v1/templates/shop@1.0.0").await.expect(204);
        zoe.get("/api/v1/templates/shop").await.expect(200);
    }
}

pub(crate) async fn publish_shared(client: &Client) -> Answer {
    let request = client.request("POST", "/api/v1/templates?shared=true");
    client.send(request.header("content-type", "application/yaml").body(SHOP)).await
}

/// Invalid templates with a part of the expected message.
fn bad_templates() -> Vec<(String, &'static str)> {
    let one = |with: &str| {
        format!(
            "name: a\nversion: 1\nparameters:\n  size: {{type: integer, default: 1}}\nresources:\n  - name: \
             web\n    executor: consul-kv\n    with: {{prefix: a/, values: {{x: \"{with}\"}}}}\n"
        )
    };
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..9 {
        let alias = format!("*a{}, ", i - 1).repeat(9);
        bomb = format!("{bomb}a{i}: &a{i} [{}]\n", alias.trim_end_matches(", "));
    }
    let bomb =
        format!("name: a\nversion: 1\nparameters: {{x: {{type: map, default: {{{bomb}}}}}}}\n");
    vec![
        (bomb, "template.yaml"),
        (format!("name: {}", "[".repeat(50_000)), "template.yaml"),
        ("name: a\nversion: 1\nname: b\n".into(), "template.yaml:3: duplicate mapping key"),
        ("name: a\nversion: 1\nsurprise: 5\n".into(), "`surprise`"),
        ("name: A B\nversion: 1\n".into(), "template.yaml:1: name: "),
        ("name: a\n".into(), "missing field `version`"),
        ("just text".into(), "template.yaml:1"),
        (
            "name: a\nversion: 1\nresources:\n  - {name: x, executor: magic}\n".into(),
            "template.yaml:4: ",
        ),
        (
            "name: a\nversion: 1\nparameters: {size: {type: integer, default: many}}\n".into(),
            "must be a whole number",
        ),
        ("name: a\nversion: 1\nparameters: {size: {type: colour}}\n".into(), "template.yaml:3"),
        (
            "name: a\nversion: 1\nresources:\n  - {name: x, executor: deployment, depends_on: [y]}\n  - \
             {name: y, executor: deployment, depends_on: [x]}\n"
                .into(),
            "dependency cycle",
        ),
        (
            "name: a\nversion: 1\nresources:\n  - {name: x, executor: deployment, depends_on: [nobody]}\n"
                .into(),
            "nobody",
        ),
        (one("{{ nothing }}"), "nothing"),
        (one("{{ web.path }}"), "web"),
        (one("{% for i in range(999999999) %}x{% endfor %}"), "template.yaml:8"),
        (one("{% include '/etc/passwd' %}"), "template.yaml:8"),
        (one("{{ size"), "template.yaml:8"),
    ]
}
