//! Promotion of evaluation instances.

use model::instance::Status;
use serde_json::{Value, json};
use testing::{Client, TestPaddock, on_both_engines};

use crate::fleet::{
    DINOSAURS, KAFKAS, charged, fails, grant, kafka, organization, request_kafka, transition,
};
use crate::world::start_still;

const TO_READY: [Status; 3] = [Status::Preparing, Status::Provisioning, Status::Ready];

on_both_engines! {
    async fn evaluation_is_promoted_to_standard(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let own = organization(&ann).await;
        grant(&paddock, json!({"organization_id": own, "billing_model": "eval", "limit": 2})).await;
        grant(&paddock, json!({"organization_id": own, "billing_model": "standard", "limit": 1})).await;
        let first = evaluation(&paddock, &ann, "a").await;
        let second = evaluation(&paddock, &ann, "b").await;
        let done = promote(&ann, &first, json!({"desired_kafka_billing_model": "standard"})).await;
        assert_eq!((done.status, done.json), (202, Value::Null));
        let shown = ann.get(&format!("{KAFKAS}/{first}")).await.expect(200);
        assert_eq!(shown["billing_model"], "standard");
        assert!(shown.get("promotion_status").is_none(), "{shown:#}");
        let region = ("kafka region/local/local standard".to_owned(), 2);
        let of = |model: &str, units| (format!("kafka organization/{own} standard.{model}"), units);
        let books = [of("eval", 1), of("standard", 1), region];
        assert_eq!(charged(&paddock).await, books);
        // With insufficient quota the promotion fails with a reason and leaves the quota usage
        // unchanged.
        promote(&ann, &second, json!({"desired_kafka_billing_model": "standard"})).await.expect(202);
        let shown = ann.get(&format!("{KAFKAS}/{second}")).await.expect(200);
        assert_eq!((&shown["promotion_status"], &shown["billing_model"]), (&json!("failed"), &json!("eval")));
        assert!(shown["promotion_details"].as_str().unwrap().contains("limit of 1"), "{shown:#}");
        assert_eq!(charged(&paddock).await, books);
        // The same without a grant.
        promote(&ann, &second, json!({"desired_kafka_billing_model": "marketplace"})).await.expect(202);
        let shown = ann.get(&format!("{KAFKAS}/{second}")).await.expect(200);
        assert!(shown["promotion_details"].as_str().unwrap().contains("insufficient quota"), "{shown:#}");
        // With enough quota it can be retried.
        grant(&paddock, json!({"organization_id": own, "billing_model": "standard", "limit": 2})).await;
        promote(&ann, &second, json!({"desired_kafka_billing_model": "standard"})).await.expect(202);
        let shown = ann.get(&format!("{KAFKAS}/{second}")).await.expect(200);
        assert_eq!(shown["billing_model"], "standard");
        assert!(shown.get("promotion_details").is_none());
    }

    async fn unpromotable_instance_is_rejected_with_its_code(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let bob = paddock.member(&ann, "bob").await;
        let wanted = json!({"desired_kafka_billing_model": "standard"});
        let made = request_kafka(&ann, "a", json!({"plan": "standard.x1", "billing_model": "eval"})).await;
        let id = made.text("id");
        fails(&promote(&ann, &id, wanted.clone()).await, 9, 500);
        transition(&paddock, &id, &TO_READY).await;
        let path = format!("{KAFKAS}/{id}/promote");
        fails(&ann.post(&path, wanted.clone()).await, 103, 400);
        fails(&promote(&ann, &id, json!({})).await, 33, 400);
        fails(&promote(&ann, &id, json!({"desired_kafka_billing_model": 5})).await, 17, 400);
        fails(&promote(&bob, &id, wanted.clone()).await, 11, 403);
        fails(&promote(&ann, "9m4e2mr0ui3e8a215n4g", wanted.clone()).await, 7, 404);
        fails(&promote(&ann, &id, json!({"desired_kafka_billing_model": "eval"})).await, 21, 400);
        for model in ["enterprise", "free"] {
            fails(&promote(&ann, &id, json!({"desired_kafka_billing_model": model})).await, 37, 400);
        }
        let other = kafka(&ann, "b").await;
        transition(&paddock, &other, &TO_READY).await;
        fails(&promote(&ann, &other, wanted.clone()).await, 9, 500);
        // A kind without promotion has no such path.
        let rex = ann.post(&format!("{DINOSAURS}?async=true"), json!({"name": "rex"})).await.text("id");
        fails(&ann.post(&format!("{DINOSAURS}/{rex}/promote?async=true"), wanted).await, 7, 404);
        let account = json!({"desired_kafka_billing_model": "marketplace", "desired_marketplace": "aws",
            "desired_billing_cloud_account_id": "1234"});
        promote(&ann, &id, account).await.expect(202);
        let shown = ann.get(&format!("{KAFKAS}/{id}")).await.expect(200);
        assert_eq!((&shown["billing_model"], &shown["marketplace"], &shown["billing_cloud_account_id"]),
            (&json!("marketplace"), &json!("aws"), &json!("1234")));
    }
}

async fn evaluation(paddock: &TestPaddock, client: &Client, name: &str) -> String {
    let id = request_kafka(client, name, json!({"billing_model": "eval"})).await.text("id");
    transition(paddock, &id, &TO_READY).await;
    id
}

async fn promote(client: &Client, id: &str, body: Value) -> testing::Answer {
    client.post(&format!("{KAFKAS}/{id}/promote?async=true"), body).await
}
