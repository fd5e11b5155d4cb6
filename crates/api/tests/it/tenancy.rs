//! Isolation of two organizations.

use serde_json::json;
use testing::on_both_engines;

use crate::calls;
use crate::world::{Fixtures, World, ids, refused};

on_both_engines! {
    async fn objects_of_other_organizations_are_not_found(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        // An ID of the other organization, an unknown ID, and an invalid ID.
        let never = "9m4e2mr0ui3e8a215n4g";
        for id in [None, Some(never), Some("1"), Some("x"), Some("%20"), Some("9M4E2MR0UI3E8A215N4G")] {
            let all = calls::all(&world.theirs);
            let theirs = all.iter().filter(|c| c.is_single_object() && !c.is_for_admins());
            for call in theirs {
                let named = |id| call.template.replace("{id}", id).replace("{reference}", id);
                let path = id.map_or(call.path.clone(), named);
                let answer = world.ann.send(call.request(&world.ann, &path)).await;
                refused(&answer, &path);
                assert_eq!(answer.status, 404, "{} {path}: {:#}", call.method, answer.json);
            }
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn objects_of_other_organizations_cannot_be_referenced(engine: Engine) {
        let (world, before) = World::with_snapshot(engine).await;
        let Fixtures { cluster, code, deployment, .. } = &world.theirs;
        let request = json!({"cluster_id": cluster, "resource": {"cpu": 1}});
        world.ann.put("/deployment/", request).await.expect(404);
        let request = json!({"cluster_id": cluster, "resources": {"cpu": 1}});
        world.ann.post("/api/v1/deployments", request).await.expect(404);
        world.ann.delete(&format!("/deployment/?clusterId={cluster}")).await.expect(404);
        world.ann.patch("/organization/invite/", json!({"code": code})).await.expect(404);
        for path in [
            format!("/deployment/?cluster_id={cluster}"),
            format!("/deployment/?id={deployment}"),
            format!("/api/v1/deployments?cluster_id={cluster}"),
            format!("/api/v1/events?subject={deployment}"),
        ] {
            assert_eq!(world.ann.get(&path).await.expect(200)["items"], json!([]), "{path}");
        }
        assert_eq!(world.snapshot().await, before);
    }

    async fn lists_exclude_other_organizations(engine: Engine) {
        let world = World::new(engine).await;
        let Fixtures { organization, user, invite, cluster, deployment, instance, .. } = &world.theirs;
        let Fixtures { template, environment, resource, .. } = &world.theirs;
        let others = [
            organization, user, invite, cluster, deployment, instance, template, environment, resource,
        ];
        for call in calls::all(&world.ours).iter().filter(|c| c.method == "GET") {
            let answer = world.caller(call).get(&call.path).await;
            let text = answer.json.to_string();
            for id in others {
                assert!(!text.contains(id.as_str()), "{} shows {id}: {:#}", call.name(), answer.json);
            }
            assert!(!text.contains("zoe"), "{}: {:#}", call.name(), answer.json);
        }
    }

    async fn administrator_sees_and_changes_everything_in_the_platform_api(engine: Engine) {
        let world = World::new(engine).await;
        for things in [&world.ours, &world.theirs] {
            let Fixtures { organization, user, invite, cluster, deployment, instance, .. } = things;
            let Fixtures { template, environment, resource, .. } = things;
            for path in [
                format!("templates/{template}"),
                format!("environments/{environment}"),
                format!("resources/{resource}"),
                format!("organizations/{organization}"),
                format!("users/{user}"),
                format!("invites/{invite}"),
                format!("clusters/{cluster}"),
                format!("deployments/{deployment}"),
                format!("deployments/{deployment}/history"),
                format!("instances/{instance}"),
            ] {
                world.admin.get(&format!("/api/v1/{path}")).await.expect(200);
            }
            for (list, id) in [
                ("organizations", organization),
                ("invites", invite),
                ("clusters", cluster),
                ("deployments", deployment),
                ("environments", environment),
                ("resources", resource),
            ] {
                let page = world.admin.get(&format!("/api/v1/{list}?limit=1000")).await.expect(200);
                assert!(ids(&page["items"]).contains(id), "{list}");
            }
            let path = format!("/api/v1/deployments/{deployment}");
            let changed = world.admin.patch(&path, json!({"labels": {"by": "admin"}})).await;
            assert_eq!(changed.expect(200)["labels"]["by"], "admin");
        }
        let events = world.admin.get("/api/v1/events?limit=1000").await.expect(200)["items"].clone();
        let of = |id: &str| events.as_array().unwrap().iter().any(|e| e["organization_id"] == id);
        assert!(of(&world.ours.organization) && of(&world.theirs.organization));
    }

    async fn administrator_is_a_regular_user_in_the_kargo_api(engine: Engine) {
        let world = World::new(engine).await;
        assert_eq!(world.admin.get("/cluster/").await.expect(200)["total"], 0);
        assert_eq!(world.admin.get("/deployment/").await.expect(200)["total"], 0);
        world.admin.get(&format!("/cluster/{}/", world.ours.cluster)).await.expect(404);
        world.admin.delete(&format!("/deployment/{}/", world.ours.deployment)).await.expect(404);
    }
}
