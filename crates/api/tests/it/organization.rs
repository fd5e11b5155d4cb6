//! Leaving and deleting organizations.

use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::world::{World, start, until};

async fn path(client: &Client) -> String {
    format!("/api/v1/organizations/{}", client.get("/organization/").await.text("id"))
}

on_both_engines! {
    async fn last_owner_neither_leaves_nor_is_demoted(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        ann.delete("/api/v1/users/me").await.expect(409);
        ann.patch("/api/v1/users/me", json!({"role": "viewer"})).await.expect(409);
        let mia_path = format!("/api/v1/users/{}", mia.get("/user/").await.text("id"));
        ann.patch(&mia_path, json!({"role": "owner"})).await.expect(200);
        ann.delete("/api/v1/users/me").await.expect(204);
        mia.delete("/api/v1/users/me").await.expect(409);
    }

    async fn organization_is_deleted_once_it_is_empty(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (zoe, mia) = (paddock.owner("zoe").await, paddock.member(&ann, "mia").await);
        let path = path(&ann).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        let code = ann.post("/api/v1/invites", json!({})).await.text("code");
        zoe.delete(&path).await.expect(404);
        mia.delete(&path).await.expect(403);
        let refused = ann.delete(&path).await.expect(409);
        assert!(refused["detail"].as_str().unwrap().contains("still has 1 cluster"), "{refused:#}");
        let cluster = format!("/api/v1/clusters/{cluster}");
        ann.delete(&cluster).await.expect(202);
        paddock.until_deleted(&ann, &cluster).await;
        ann.delete(&path).await.expect(204);

        for client in [&ann, &mia] {
            client.get("/user/").await.expect(401);
        }
        let admin = paddock.admin().await;
        admin.get(&path).await.expect(404);
        let body = json!({"code": code, "username": "new", "password": "x"});
        assert!(paddock.client.post("/api/v1/invites/redeem", body).await.status >= 400);
        // Names are free, and the new organization has nothing of the old one.
        let again = paddock.owner("ann").await;
        for list in ["clusters", "invites", "templates", "tokens"] {
            let page = again.get(&format!("/api/v1/{list}")).await.expect(200);
            let others = page["items"].as_array().unwrap().iter();
            assert_eq!(others.filter(|item| item["kind"] != "session").count(), 0, "{list}: {page:#}");
        }
        let events = again.get("/api/v1/events?limit=1000").await.expect(200).to_string();
        assert!(!events.contains(path.rsplit('/').next().unwrap()), "{events}");
        assert_eq!(again.get("/api/v1/users").await.expect(200)["items"].as_array().unwrap().len(), 1);
    }

    async fn cascade_deletes_everything_of_the_organization_only(engine: Engine) {
        let world = World::new(engine).await;
        let path = format!("/api/v1/organizations/{}", world.ours.organization);
        let refused = world.ann.delete(&path).await.expect(409)["detail"].to_string();
        for part in ["1 environment", "1 instance", "deployment", "cluster"] {
            assert!(refused.contains(part), "{refused}");
        }
        let cascade = format!("{path}?cascade=true");
        let first = world.ann.delete(&cascade).await.expect(202);
        assert_eq!(first["environments"], 1);
        until("the organization is deleted", async || {
            let answer = world.admin.delete(&cascade).await;
            assert!(matches!(answer.status, 202 | 204), "{:#}", answer.json);
            answer.status == 204
        })
        .await;
        world.ann.get("/user/").await.expect(401);
        for list in ["clusters", "deployments", "instances", "environments", "templates"] {
            let page = world.admin.get(&format!("/api/v1/{list}?limit=1000")).await.expect(200);
            let own = Value::String(world.ours.organization.clone());
            let items = page["items"].as_array().unwrap().iter();
            assert_eq!(items.filter(|item| item["organization_id"] == own).count(), 0, "{list}");
            assert!(world.zoe.get(&format!("/api/v1/{list}")).await.expect(200)["items"][0].is_object());
        }
        testing::check_ledgers(world.paddock.db()).await;
    }

    async fn organization_of_the_administrator_is_not_deleted(engine: Engine) {
        let (paddock, _) = start(engine).await;
        let admin = paddock.admin().await;
        admin.delete(&path(&admin).await).await.expect(409);
        admin.get("/user/").await.expect(200);
    }
}
