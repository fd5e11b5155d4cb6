//! Administrator endpoints of the fleet API.

use serde_json::{Value, json};
use testing::{TestPaddock, TestSettings, on_both_engines};

use crate::fleet_mock::{API, error, kafka_path, registered, request_kafka};
use crate::fleet_oidc::{FakeTokens, person};
use crate::world::start_with;

on_both_engines! {
    async fn admin_endpoints_are_hidden_from_others(engine: Engine) {
        let tokens = FakeTokens::default();
        // No workers: an object deleted by the first caller must exist for the next.
        let api = tokens.settings();
        let settings = TestSettings { api, api_only: true, ..TestSettings::default() };
        let (paddock, ann) = start_with(engine, settings).await;
        let id = request_kafka(&ann, "events").await;
        let path = format!("{API}/admin/kafkas/{id}");
        let with = |role: &str| {
            let said = api::oidc::Claims { roles: vec![role.into()], organization: None, ..person("eve", "none") };
            paddock.client.with_token(&tokens.add(said))
        };
        let readers = with("kas-fleet-manager-admin-read");
        let writers = with("kas-fleet-manager-admin-write");
        let full = with("kas-fleet-manager-admin-full");
        let admin = paddock.admin().await;
        for (method, path, allowed) in [
            ("GET", format!("{API}/admin/kafkas"), [true, true, true]),
            ("GET", path.clone(), [true, true, true]),
            ("PATCH", path.clone(), [false, true, true]),
            ("POST", format!("{path}/revoke_tls_certificate"), [false, false, true]),
            ("DELETE", format!("{path}?async=true"), [false, false, true]),
        ] {
            let call = async |who: &testing::Client| who.call(method, &path, &json!({"revocation_reason": 1})).await;
            error(&call(&paddock.client.signed_out()).await, 401, 15);
            error(&call(&ann).await, 404, 7);
            error(&call(&with("fleet-manager-admin-full")).await, 404, 7);
            for (who, is_allowed) in [&readers, &writers, &full].into_iter().zip(allowed) {
                let answer = call(who).await;
                assert_eq!(answer.status != 404, is_allowed, "{}: {:#}", answer.call, answer.json);
            }
            assert_ne!(call(&admin).await.status, 404, "{method} {path}");
        }
    }

    async fn events_name_the_oidc_administrator(engine: Engine) {
        let tokens = FakeTokens::default();
        let settings = TestSettings { api: tokens.settings(), api_only: true, ..TestSettings::default() };
        let (paddock, ann) = start_with(engine, settings).await;
        let roles = || vec!["kas-fleet-manager-admin-full".to_owned()];
        let eve = api::oidc::Claims { roles: roles(), organization: None, ..person("eve", "none") };
        let zoe = api::oidc::Claims { roles: roles(), ..person("zoe", "1") };
        let zoe = paddock.client.with_token(&tokens.add(zoe));
        let own = zoe.get("/user/").await.text("id");
        let eve = paddock.client.with_token(&tokens.add(eve));
        for (name, admin, actor) in
            [("one", eve, "oidc:id of eve".to_owned()), ("two", zoe, format!("user:{own}"))]
        {
            let id = request_kafka(&ann, name).await;
            admin.delete(&format!("{API}/admin/kafkas/{id}?async=true")).await.expect(202);
            let path = format!("/api/v1/events?subject={id}&limit=1000");
            let events = paddock.admin().await.get(&path).await.expect(200);
            let last = events["items"].as_array().unwrap().last().unwrap().clone();
            assert_eq!(last["actor"], actor, "{last:#}");
        }
    }

    async fn administrators_see_all_instances_with_more_fields(engine: Engine) {
        let (paddock, ann, mock) = registered(engine).await;
        let (zoe, admin) = (paddock.owner("zoe").await, paddock.admin().await);
        mock.reconcile().await;
        let (ours, theirs) = (request_kafka(&ann, "ours").await, request_kafka(&zoe, "theirs").await);
        mock.until(&ann, &kafka_path(&ours), "ready").await;
        let list = admin.get(&format!("{API}/admin/kafkas?orderBy=name%20desc")).await.expect(200);
        assert_eq!((&list["kind"], &list["total"]), (&json!("KafkaList"), &json!(2)));
        assert_eq!(list["items"][0]["id"], theirs);
        let one = admin.get(&format!("{API}/admin/kafkas/{ours}")).await.expect(200);
        for (field, value) in [
            ("namespace", json!(format!("kafka-{ours}"))),
            ("routes_created", json!(true)),
            ("desired_kafka_version", json!("3.9.0")),
            ("actual_kafka_version", json!("3.9.0")),
            ("actual_kafka_ibp_version", json!("3.9")),
            ("strimzi_upgrading", json!(false)),
            ("size_id", json!("x1")),
            ("owner", json!("ann")),
        ] {
            assert_eq!(one[field], value, "{field}");
        }
        assert!(one["cluster_id"].is_string() && one["organisation_id"].is_string());
        let text = one.to_string();
        assert!(!text.contains("null") && !text.contains("secret"), "{text}");
        let found = admin.get(&format!("{API}/admin/kafkas?search=owner%20%3D%20zoe")).await.expect(200);
        assert_eq!(found["total"], 1);
        error(&admin.get(&format!("{API}/admin/kafkas/00000000000000000000")).await, 404, 7);
        error(&admin.get(&format!("{API}/admin/dinosaurs")).await, 404, 7);
    }

    async fn admin_changes_are_validated_and_recorded(engine: Engine) {
        let (paddock, ann, mock) = registered(engine).await;
        let admin = paddock.admin().await;
        let id = request_kafka(&ann, "events").await;
        let path = format!("{API}/admin/kafkas/{id}");
        let change = async |body: Value| admin.patch(&path, body).await;
        error(&change(json!({"suspended": true})).await, 400, 8);
        mock.until(&ann, &kafka_path(&id), "ready").await;
        for (body, code) in [
            (json!({}), 37),
            (json!({"unheard_of": 1}), 37),
            (json!({"max_data_retention_size": "1Gi"}), 37),
            (json!({"max_data_retention_size": "lots"}), 37),
            (json!({"kafka_version": "9.9.9"}), 8),
            (json!({"kafka_ibp_version": "3.8"}), 8),
            (json!({"strimzi_version": "none"}), 8),
            (json!({"suspended": false}), 8),
            (json!({"suspended": "yes"}), 17),
            (json!({"kafka_version": 5}), 17),
        ] {
            let answer = change(body.clone()).await;
            assert_eq!(answer.json["id"], code.to_string(), "{body}: {:#}", answer.json);
        }
        let more = change(json!({"max_data_retention_size": "2000Gi"})).await.expect(200);
        assert_eq!(more["max_data_retention_size"]["bytes"], 2000_i64 << 30);
        let item = mock.item(&id).await.unwrap();
        assert_eq!(item["spec"]["capacity"]["maxDataRetentionSize"], (2000_i64 << 30).to_string());
        let resting = change(json!({"suspended": true})).await.expect(200);
        assert_eq!(resting["status"], "suspending");
        error(&change(json!({"suspended": true})).await, 400, 8);
        mock.until(&ann, &kafka_path(&id), "suspended").await;
        admin.delete(&format!("{path}?async=true")).await.expect(202);
        error(&admin.delete(&path).await, 400, 103);
        // An instance being deleted cannot be resumed.
        error(&change(json!({"suspended": false})).await, 400, 8);
        mock.until_gone(&ann, &kafka_path(&id)).await;
    }

    async fn certificate_revocation_is_validated_without_effect(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, admin) = (paddock.owner("ann").await, paddock.admin().await);
        let id = request_kafka(&ann, "events").await;
        let path = format!("{API}/admin/kafkas/{id}/revoke_tls_certificate");
        for (body, good) in [
            (json!({"revocation_reason": 0}), true),
            (json!({"revocation_reason": 10}), true),
            (json!({"revocation_reason": 7}), false),
            (json!({"revocation_reason": 11}), false),
            (json!({"revocation_reason": -1}), false),
            (json!({}), false),
        ] {
            let answer = admin.post(&path, body).await;
            if good { answer.expect(204); } else { error(&answer, 400, 21); }
        }
    }
}
