//! Users and organizations: permissions to change them.

use serde_json::{Value, json};
use testing::{Client, TestPaddock, on_both_engines};

use crate::world::start;

on_both_engines! {
    async fn users_change_themselves_and_owners_change_members(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let admin = paddock.admin().await;
        let (ann_id, mia_id) = (id(&ann).await, id(&mia).await);
        let current = "secret";
        for (client, who, change, status) in [
            (&mia, "me", json!({"display_name": "Mia"}), 200),
            (&mia, &*ann_id, json!({"display_name": "Boss"}), 403),
            (&mia, "me", json!({"role": "owner"}), 403),
            (&mia, &*ann_id, json!({"role": "member"}), 403),
            (&mia, &*ann_id, json!({"password": "x"}), 403),
            (&ann, &*mia_id, json!({"display_name": "Miriam"}), 200),
            (&ann, &*mia_id, json!({"password": "x"}), 403),
            (&ann, "me", json!({"role": "member"}), 409),
            (&ann, &*mia_id, json!({"role": "owner"}), 200),
            (&mia, &*ann_id, json!({"role": "member"}), 200),
            (&ann, &*mia_id, json!({"role": "member"}), 403),
            (&admin, &*mia_id, json!({"password": "from admin"}), 200),
            (&ann, "me", json!({"password": "y", "current_password": current}), 200),
        ] {
            let answer = client.patch(&format!("/api/v1/users/{who}"), change.clone()).await;
            assert_eq!(answer.status, status, "{who} {change}: {:#}", answer.json);
        }
        paddock.sign_in("mia", "from admin").await;
    }

    async fn removed_user_is_logged_out_and_its_name_is_free(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let mia_id = id(&mia).await;
        mia.delete(&format!("/api/v1/users/{}", id(&ann).await)).await.expect(403);
        ann.delete("/api/v1/users/me").await.expect(409);
        ann.delete(&format!("/api/v1/users/{mia_id}")).await.expect(204);
        mia.get("/user/").await.expect(401);
        ann.get(&format!("/api/v1/users/{mia_id}")).await.expect(404);
        ann.delete(&format!("/api/v1/users/{mia_id}")).await.expect(404);
        let again = paddock.member(&ann, "mia").await;
        assert_ne!(id(&again).await, mia_id);
        again.delete("/api/v1/users/me").await.expect(204);
        again.get("/user/").await.expect(401);
    }

    async fn administrator_cannot_be_removed(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let admin = paddock.admin().await;
        let user = admin.get("/api/v1/users/me").await.expect(200);
        assert_eq!((&user["access"], &user["role"]), (&json!("platform"), &json!("owner")));
        admin.delete("/api/v1/users/me").await.expect(409);
        let ann = paddock.owner("ann").await;
        assert_eq!(ann.get("/api/v1/users/me").await.expect(200)["access"], "tenant");
    }

    async fn only_owners_rename_the_organization(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, _zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let mia = paddock.member(&ann, "mia").await;
        let path = format!("/api/v1/organizations/{}", ann.get("/organization/").await.text("id"));
        mia.patch(&path, json!({"name": "ours"})).await.expect(403);
        ann.patch(&path, json!({"name": "Zoe"})).await.expect(409);
        ann.patch(&path, json!({"name": "ANN"})).await.expect(200);
        let shown = ann.patch(&path, json!({"name": " Acme "})).await.expect(200);
        assert_eq!(shown["name"], "Acme");
        let shown = mia.get(&path).await.expect(200);
        assert_eq!(names(&shown["members"]), ["ann", "mia"]);
        assert_eq!(mia.get("/organization/").await.expect(200)["name"], "Acme");
    }
}

async fn id(client: &Client) -> String {
    client.get("/user/").await.text("id")
}

fn names(users: &Value) -> Vec<&str> {
    users.as_array().unwrap().iter().map(|user| user["username"].as_str().unwrap()).collect()
}
