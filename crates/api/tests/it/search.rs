//! Search over the API: isolation, ranking, and invalid queries.

use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::world::{World, names_field, start};

async fn found(client: &Client, query: &str) -> Vec<Value> {
    let answer = client.get(&format!("/api/v1/search?{query}")).await.expect(200);
    answer["items"].as_array().unwrap().clone()
}

async fn names(client: &Client, query: &str) -> Vec<String> {
    let items = found(client, query).await;
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

async fn deployment(client: &Client, name: &str) -> String {
    let body = json!({"name": name, "image": "web:1", "resources": {"cpu": 1}, "labels": {"team": "blue"}});
    client.post("/api/v1/deployments", body).await.text("id")
}

on_both_engines! {
    async fn created_object_is_found_immediately(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let id = deployment(&ann, "web-shop").await;
        let items = found(&ann, "q=webshpo").await;
        let item = &items[0];
        assert_eq!(item["id"], id.as_str());
        assert_eq!(item["kind"], "deployment");
        assert_eq!(item["description"], "web:1");
        assert_eq!(item["tags"], json!({"team": "blue"}));
        assert_eq!(item["href"], format!("/api/v1/deployments/{id}"));
        assert_eq!(item["organization_id"], ann.get("/organization/").await.text("id"));
        assert_eq!(item["matched"], json!([{"field": "name", "word": "webshop", "typos": 1}]));
        ann.get(item["href"].as_str().unwrap()).await.expect(200);
        assert_eq!(found(&ann, "q=web-shop").await[0]["score"], 1.0);

        ann.delete(&format!("/api/v1/deployments/{id}")).await;
        paddock.until_deleted(&ann, &format!("/api/v1/deployments/{id}")).await;
        assert_eq!(names(&ann, "q=web-shop").await, [""; 0]);
    }

    async fn search_results_are_ranked_filtered_and_limited(engine: Engine) {
        let (_paddock, ann) = start(engine).await;
        for name in ["shop-2", "old", "shop", "shops", "shpo"] {
            deployment(&ann, name).await;
        }
        assert_eq!(names(&ann, "q=shop").await, ["shop", "shop-2", "shops", "shpo"]);
        assert_eq!(names(&ann, "q=shop&limit=2").await, ["shop", "shop-2"]);
        assert_eq!(names(&ann, "q=shop&kind=deployment&limit=1").await, ["shop"]);
        assert_eq!(names(&ann, "q=shop&kind=cluster").await, [""; 0]);
        assert_eq!(names(&ann, "q=team%3Dblue%20old").await, ["old"]);
        assert_eq!(names(&ann, "q=ann&kind=user").await, ["ann"]);
    }

    async fn search_excludes_other_organizations(engine: Engine) {
        let world = World::new(engine).await;
        let theirs = &world.theirs;
        let ids = [
            &theirs.organization, &theirs.user, &theirs.cluster, &theirs.deployment, &theirs.instance,
        ];
        for id in ids {
            assert_eq!(found(&world.ann, &format!("q={id}")).await, [] as [Value; 0], "{id}");
            let seen = found(&world.zoe, &format!("q={id}")).await;
            assert_eq!(seen[0]["id"], id.as_str());
            let seen = found(&world.admin, &format!("q={id}")).await;
            assert_eq!(seen[0]["id"], id.as_str());
            world.zoe.get(seen[0]["href"].as_str().unwrap()).await.expect(200);
        }
        // Invites are never found, not even by ID.
        assert_eq!(found(&world.zoe, &format!("q={}", theirs.invite)).await, [] as [Value; 0]);
        for query in ["q=zoe", "q=main", "q=mine", "q=web", "q=kafka"] {
            for item in found(&world.ann, query).await {
                let owner = &item["organization_id"];
                assert!(owner.is_null() || *owner == world.ours.organization.as_str(), "{query}: {item:#}");
            }
        }
        assert_eq!(names(&world.ann, "q=kafka").await, ["mine"]);
        assert_eq!(names(&world.admin, "q=kafka").await, ["mine", "mine"]);
    }

    async fn invalid_search_names_the_allowed_values(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let long = format!("q={}", "x".repeat(257));
        for (query, field) in [
            ("", "q"),
            ("q=", "q"),
            ("q=%20", "q"),
            ("q=--%2F", "q"),
            (long.as_str(), "q"),
            ("q=a+b+c+d+e+f+g+h+i", "q"),
            ("q=a%00b", "q"),
            ("q=a&kind=rhino", "kind"),
            ("q=a&kind=invite", "kind"),
            ("q=a&kind=", "kind"),
            ("q=a&limit=0", "limit"),
            ("q=a&limit=101", "limit"),
            ("q=a&limit=x", "limit"),
        ] {
            let answer = ann.get(&format!("/api/v1/search?{query}")).await;
            names_field(&answer, field, query);
        }
        let most = format!("q={}", "x".repeat(256));
        assert_eq!(names(&ann, &most).await, [""; 0]);
        paddock.client.get("/api/v1/search?q=a").await.expect(401);
    }
}
