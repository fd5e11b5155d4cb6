//! Instances in the fleet API: show, update, delete.

use model::instance::Status;
use serde_json::{Value, json};
use testing::on_both_engines;

use crate::fleet::{
    API, DINOSAURS, KAFKAS, charged, fails, has_no_null, kafka, request_kafka, start_fleet,
    transition,
};
use crate::world::start_still;

const TO_READY: [Status; 3] = [Status::Preparing, Status::Provisioning, Status::Ready];

on_both_engines! {
    async fn instance_omits_absent_fields(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let plan = json!({"plan": "standard.x2", "reauthentication_enabled": false});
        let made = request_kafka(&ann, "orders", plan).await.expect(202);
        has_no_null(&made);
        let id = made["id"].as_str().unwrap();
        let expected = json!({
            "id": id, "kind": "Kafka", "href": format!("{KAFKAS}/{id}"), "status": "accepted",
            "cloud_provider": "local", "region": "local", "multi_az": true, "owner": "ann",
            "name": "orders", "instance_type": "standard", "instance_type_name": "Standard",
            "reauthentication_enabled": false, "size_id": "x2", "billing_model": "standard",
            "ingress_throughput_per_sec": "100Mi", "egress_throughput_per_sec": "200Mi",
            "total_max_connections": 18000, "max_partitions": 3000,
            "max_data_retention_period": "P14D", "max_connection_attempts_per_sec": 200,
            "max_data_retention_size": {"bytes": 2_147_483_648_000_i64},
        });
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&made[field], value, "{field}");
        }
        let absent = ["bootstrap_server_host", "failed_reason", "expires_at", "version", "cluster_id",
            "marketplace", "billing_cloud_account_id", "promotion_status", "promotion_details",
            "admin_api_server_url", "max_message_size"];
        for field in absent {
            assert!(made.get(field).is_none(), "{field}");
        }
        assert!(made["browser_url"].as_str().unwrap().contains(id));
        assert_eq!(ann.get(&format!("{KAFKAS}/{id}")).await.expect(200), made);
        let listed = ann.get(KAFKAS).await.expect(200);
        assert_eq!(listed["items"], json!([made]));
        has_no_null(&listed);
        // A trial expires.
        let trial = request_kafka(&ann, "trial", json!({})).await.expect(202);
        assert_eq!((&trial["instance_type"], &trial["multi_az"]), (&json!("developer"), &json!(false)));
        assert!(trial["expires_at"].is_string());
    }

    async fn kinds_have_their_own_field_names(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let made = ann.post(&format!("{DINOSAURS}?async=true"), json!({"name": "rex"})).await.expect(202);
        assert_eq!((&made["kind"], &made["multi_az"]), (&json!("Dinosaur"), &json!(true)));
        assert!(made.get("size_id").is_none() && made.get("billing_model").is_none(), "{made:#}");
        assert_eq!(ann.get(DINOSAURS).await.expect(200)["kind"], "DinosaurRequestList");
        assert_eq!(ann.get(KAFKAS).await.expect(200)["kind"], "KafkaRequestList");
        // An instance of another kind is not found.
        let id = made["id"].as_str().unwrap();
        fails(&ann.get(&format!("{KAFKAS}/{id}")).await, 7, 404);
        fails(&ann.delete(&format!("{KAFKAS}/{id}?async=true")).await, 7, 404);
        fails(&ann.patch(&format!("{KAFKAS}/{id}"), json!({})).await, 7, 404);
        // The same name is free for the other kind.
        kafka(&ann, "rex").await;
    }

    async fn instances_of_other_organizations_are_not_found(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let path = format!("{KAFKAS}/{}", kafka(&ann, "orders").await);
        fails(&zoe.get(&path).await, 7, 404);
        fails(&zoe.patch(&path, json!({"owner": "zoe"})).await, 7, 404);
        fails(&zoe.delete(&format!("{path}?async=true")).await, 7, 404);
        let body = json!({"desired_kafka_billing_model": "standard"});
        fails(&zoe.post(&format!("{path}/promote?async=true"), body).await, 7, 404);
        assert_eq!(zoe.get(KAFKAS).await.expect(200)["items"], json!([]));
        // The administrator is a regular user here.
        fails(&paddock.admin().await.get(&path).await, 7, 404);
        kafka(&zoe, "orders").await;
        assert_eq!(ann.get(&path).await.expect(200)["status"], "accepted");
    }

    async fn members_see_all_instances_and_change_their_own(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let (bob, cat) = (paddock.member(&ann, "bob").await, paddock.member(&ann, "cat").await);
        let zoe = paddock.owner("zoe").await;
        let path = format!("{KAFKAS}/{}", kafka(&bob, "orders").await);
        assert_eq!(cat.get(&path).await.expect(200)["owner"], "bob");
        fails(&cat.patch(&path, json!({"owner": "cat"})).await, 11, 403);
        fails(&cat.delete(&format!("{path}?async=true")).await, 7, 404);
        fails(&bob.patch(&path, json!({"owner": ""})).await, 33, 400);
        for owner in ["nobody", "zoe", "a\u{0}b"] {
            fails(&bob.patch(&path, json!({"owner": owner})).await, 21, 400);
        }
        for body in [json!({}), json!({"name": "other"}), json!({"owner": null})] {
            let same = bob.patch(&path, body).await.expect(200);
            assert_eq!((&same["owner"], &same["name"]), (&json!("bob"), &json!("orders")));
        }
        let off = bob.patch(&path, json!({"reauthentication_enabled": false})).await.expect(200);
        assert_eq!(off["reauthentication_enabled"], false);
        assert_eq!(ann.patch(&path, json!({"owner": "cat"})).await.expect(200)["owner"], "cat");
        fails(&bob.patch(&path, json!({"owner": "bob"})).await, 11, 403);
        let gone = cat.delete(&format!("{path}?async=true")).await;
        assert_eq!((gone.status, gone.json), (202, Value::Null));
        assert_eq!(cat.get(&path).await.expect(200)["status"], "deprovision");
        drop(zoe);
    }

    async fn repeated_deletion_is_accepted_and_irreversible(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let id = kafka(&ann, "orders").await;
        let path = format!("{KAFKAS}/{id}");
        for _ in 0..2 {
            ann.delete(&format!("{path}?async=true")).await.expect(202);
            assert_eq!(ann.get(&path).await.expect(200)["status"], "deprovision");
        }
        // The name is not free until the instance is deleted.
        fails(&request_kafka(&ann, "orders", json!({})).await, 36, 409);
        transition(&paddock, &id, &[Status::Deleting]).await;
        ann.delete(&format!("{path}?async=true")).await.expect(202);
        assert_eq!(ann.get(&path).await.expect(200)["status"], "deleting");
    }

    async fn failed_instance_has_a_reason(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let id = kafka(&ann, "orders").await;
        transition(&paddock, &id, &TO_READY).await;
        let ready = ann.get(&format!("{KAFKAS}/{id}")).await.expect(200);
        assert!(ready.get("failed_reason").is_none());
        assert_eq!((&ready["status_reason"], &ready["reason_code"]), (&json!("A test says so."), &json!("Reported")));
        transition(&paddock, &id, &[Status::Failed]).await;
        let failed = ann.get(&format!("{KAFKAS}/{id}")).await.expect(200);
        assert_eq!(failed["failed_reason"], "A test says so.");
    }

    async fn instance_name_is_unique_under_concurrency(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let asks = (0..50).map(|_| request_kafka(&ann, "orders", json!({"plan": "standard.x1"})));
        let answers = futures_util::future::join_all(asks).await;
        let made = answers.iter().filter(|answer| answer.status == 202).count();
        for answer in answers.iter().filter(|answer| answer.status != 202) {
            fails(answer, 36, 409);
        }
        assert_eq!(made, 1);
        assert_eq!(ann.get(KAFKAS).await.expect(200)["total"], 1);
        assert!(charged(&paddock).await.iter().all(|(_, units)| *units == 1));
    }

    async fn cloud_providers_and_instance_types_match_the_catalog(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let clouds = ann.get(&format!("{API}/cloud_providers?page=9&size=0")).await.expect(200);
        assert_eq!((&clouds["kind"], &clouds["page"]), (&json!("CloudProviderList"), &json!(1)));
        assert_eq!((&clouds["size"], &clouds["total"]), (&json!(3), &json!(3)));
        assert_eq!(clouds["items"][1], json!({"kind": "CloudProvider", "id": "aws", "name": "aws",
            "display_name": "Amazon Web Services", "enabled": true}));
        let types = ann.get(&format!("{API}/instance_types/aws/us-east-1")).await.expect(200);
        let types = types["instance_types"].as_array().unwrap();
        assert_eq!((&types[0]["id"], &types[1]["id"]), (&json!("developer"), &json!("standard")));
        let size = &types[1]["sizes"][0];
        assert_eq!(size["ingress_throughput_per_sec"], json!({"bytes": 52_428_800}));
        assert_eq!((&size["replication_factor"], &size["maturity_status"]), (&json!(3), &json!("stable")));
        assert_eq!(types[1]["supported_billing_models"][2]["ams_product"], "RHOSAKEval");
        assert_eq!(types[0]["sizes"][0]["lifespan_seconds"], 172_800);
        let regions = ann.get("/api/dinosaurs_mgmt/v1/cloud_providers/aws/regions").await.expect(200);
        assert_eq!(regions["items"][1]["supported_instance_types"], json!(["standard"]));
        assert!(regions["items"][1].get("capacity").is_none());
        let status = ann.get("/api/dinosaurs_mgmt/v1/status").await.expect(200);
        assert_eq!(status, json!({"dinosaurs": {"max_capacity_reached": false}}));
    }
}
