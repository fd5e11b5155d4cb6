//! Fleetshard-compatible agents: desired instances and the effects of reports.

use std::sync::Arc;

use serde_json::json;
use testing::{FakeDns, FakeSeal, FakeSso, TestPaddock, TestSettings, on_both_engines};

use crate::fleet_mock::{
    API, DNS, condition, error, external_id, kafka_path, provisioning, ready_status, register,
    registered, request_kafka, state,
};
use crate::world::start_with;

on_both_engines! {
    async fn minimal_agent_drives_an_instance_from_accepted_to_deleted(engine: Engine) {
        let (dns, sso) = (Arc::new(FakeDns::default()), Arc::new(FakeSso::default()));
        let sign_in = api::SsoEndpoints {
            issuer: "https://sso.example".into(),
            token_url: "https://sso.example/token".into(),
            jwks_url: "https://sso.example/keys".into(),
        };
        let settings = TestSettings {
            dns: Some(dns.clone()),
            sso: Some(sso.clone()),
            api: api::Settings { sso_endpoints: Some(sign_in), ..api::Settings::default() },
            ..TestSettings::default()
        };
        let paddock = TestPaddock::start_with(engine, settings).await;
        let (ann, admin) = (paddock.owner("ann").await, paddock.admin().await);
        let mock = register(&paddock, &ann, "a").await;
        let cluster = format!("{API}/clusters/{}", mock.cluster);
        // The cluster is not ready before its agent reports so.
        mock.state(state("False", 3)).await.expect(204);
        paddock.until(&ann, &cluster, "status", "waiting_for_kas_fleetshard_operator").await;
        let about = mock.client.get(&mock.path("")).await.expect(200);
        assert_eq!(about["spec"]["net"]["private"], false);
        assert_eq!(about["spec"]["capacity"]["standard"]["maxNodes"], 9);

        // Requested before the cluster has capacity.
        let id = request_kafka(&ann, "events").await;
        let path = kafka_path(&id);
        mock.state(state("True", 3)).await.expect(204);
        let ready = paddock.until(&ann, &cluster, "status", "ready").await;
        assert_eq!(ready["capacity_information"]["maximum_kafka_streaming_units"], 3);
        paddock.until(&ann, &path, "status", "provisioning").await;

        let item = mock.item(&id).await.unwrap();
        assert_eq!(item["kind"], "ManagedKafka");
        assert_eq!(item["metadata"]["namespace"], format!("kafka-{id}"));
        assert_eq!(item["metadata"]["annotations"]["bf2.org/id"], id);
        assert!(item["metadata"]["annotations"]["bf2.org/placementId"].is_string());
        assert_eq!(item["metadata"]["labels"]["bf2.org/kafkaInstanceProfileType"], "standard");
        assert_eq!(item["metadata"]["labels"]["bf2.org/suspended"], "false");
        assert_eq!(item["spec"]["capacity"]["ingressPerSec"], "50Mi");
        assert_eq!(item["spec"]["capacity"]["maxPartitions"], 1500);
        assert_eq!(item["spec"]["versions"]["kafka"], "3.9.0");
        assert_eq!(item["spec"]["versions"]["kafkaIbp"], "3.9");
        assert_eq!(item["spec"]["owners"], json!(["ann"]));
        assert_eq!(item["spec"]["deleted"], false);
        assert_eq!(item["spec"]["serviceAccounts"][0]["password"], "secret 0");
        assert_eq!(item["spec"]["oauth"]["tokenEndpointURI"], "https://sso.example/token");
        assert_eq!(item["spec"]["oauth"]["maximumSessionLifetime"], 299_000);

        let ready = mock.until(&ann, &path, "ready").await;
        assert_eq!(ready["version"], "3.9.0");
        let host = ready["bootstrap_server_host"].as_str().unwrap().strip_suffix(":443").unwrap();
        assert_eq!(ready["admin_api_server_url"], "https://admin.site.example");
        assert_eq!(dns.state()[host], DNS);

        let admins = format!("{API}/admin/kafkas/{id}");
        admin.patch(&admins, json!({"suspended": true})).await.expect(200);
        // A report of an agent without the instance has no effect.
        mock.report(&id, ready_status()).await;
        assert_eq!(ann.get(&path).await.json["status"], "suspending");
        mock.until(&ann, &path, "suspended").await;
        admin.patch(&admins, json!({"suspended": false})).await.expect(200);
        assert_eq!(ann.get(&path).await.json["status"], "resuming");
        mock.until(&ann, &path, "ready").await;

        ann.delete(&format!("{path}?async=true")).await.expect(202);
        paddock.until(&ann, &path, "status", "deprovision").await;
        // Reports do not revive a deleted instance.
        mock.report(&id, ready_status()).await;
        mock.report(&id, condition("False", "Error", "")).await;
        assert_eq!(ann.get(&path).await.json["status"], "deprovision");
        let gone = mock.item(&id).await.unwrap();
        assert_eq!(gone["spec"]["deleted"], true);
        mock.until_gone(&ann, &path).await;
        assert!(dns.state().is_empty() && sso.state().is_empty());
        let free = ann.get(&cluster).await.expect(200);
        assert_eq!(free["capacity_information"]["remaining_kafka_streaming_units"], 3);
        testing::check_ledgers(paddock.db()).await;
    }

    async fn reported_error_fails_the_instance_until_it_recovers(engine: Engine) {
        let (_paddock, ann, mock, id) = provisioning(engine).await;
        let path = kafka_path(&id);
        mock.report(&id, condition("False", "Error", "The disk is full.")).await;
        let failed = ann.get(&path).await.expect(200);
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["reason_code"], "AgentError");
        assert!(failed["failed_reason"].as_str().unwrap().contains("The disk is full."), "{failed:#}");
        mock.until(&ann, &path, "ready").await;
        // Unknown conditions have no effect.
        mock.report(&id, condition("Unknown", "Error", "")).await;
        assert_eq!(ann.get(&path).await.json["status"], "ready");
        // Reported as deleted although its deletion was not requested.
        mock.report(&id, condition("False", "Deleted", "")).await;
        assert_eq!(ann.get(&path).await.json["status"], "ready");
    }

    async fn rejected_instance_is_retried_and_rescheduled_without_capacity(engine: Engine) {
        let (paddock, ann, mock, id) = provisioning(engine).await;
        let path = kafka_path(&id);
        let placement = |item: &serde_json::Value| {
            item["metadata"]["annotations"]["bf2.org/placementId"].as_str().unwrap().to_owned()
        };
        let before = placement(&mock.item(&id).await.unwrap());
        mock.report(&id, condition("False", "Rejected", "not now")).await;
        let after = mock.item(&id).await.unwrap();
        assert_ne!(placement(&after), before);
        assert_eq!(ann.get(&path).await.json["status"], "provisioning");

        mock.report(&id, condition("False", "Rejected", "Cluster has insufficient resources")).await;
        let waits = paddock.until(&ann, &path, "status", "accepted").await;
        assert!(waits.get("bootstrap_server_host").is_none(), "{waits:#}");
        assert!(mock.items().await.is_empty());
        // The cluster is not eligible again until its agent reports capacity.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(ann.get(&path).await.json["status"], "accepted");
        mock.until(&ann, &path, "ready").await;
        testing::check_ledgers(paddock.db()).await;
    }

    async fn single_not_ready_report_does_not_affect_a_cluster(engine: Engine) {
        let (paddock, ann, mock) = registered(engine).await;
        let cluster = format!("{API}/clusters/{}", mock.cluster);
        mock.state(state("True", 3)).await.expect(204);
        paddock.until(&ann, &cluster, "status", "ready").await;
        for status in ["False", "Unknown", "False", "True", "False", "False"] {
            mock.state(state(status, 3)).await.expect(204);
            paddock.until(&ann, &cluster, "status", "ready").await;
        }
        mock.state(json!({})).await.expect(204);
        paddock.until(&ann, &cluster, "status", "waiting_for_kas_fleetshard_operator").await;
        mock.state(state("True", 5)).await.expect(204);
        let ready = paddock.until(&ann, &cluster, "status", "ready").await;
        assert_eq!(ready["capacity_information"]["maximum_kafka_streaming_units"], 5);
    }

    async fn capacity_is_not_reduced_below_usage_and_the_reason_is_shown(engine: Engine) {
        let (_paddock, ann, mock) = registered(engine).await;
        mock.reconcile().await;
        let id = request_kafka(&ann, "events").await;
        mock.until(&ann, &kafka_path(&id), "ready").await;
        mock.state(state("True", 0)).await.expect(204);
        let cluster = ann.get(&format!("{API}/clusters/{}", mock.cluster)).await.expect(200);
        let units = &cluster["capacity_information"];
        assert_eq!(units["maximum_kafka_streaming_units"], 1);
        assert_eq!(units["remaining_kafka_streaming_units"], 0);
        let own = ann.get("/api/v1/clusters").await.expect(200);
        let reason = own["items"][0]["status_reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("0 kafka.standard reported, 1 in use"), "{reason}");
        mock.state(state("True", 2)).await.expect(204);
        let own = ann.get("/api/v1/clusters").await.expect(200);
        assert_eq!(own["items"][0]["reason_code"], "AsExpected");
    }

    async fn agent_endpoints_are_hidden_from_others(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let ours = register(&paddock, &ann, "a").await;
        let theirs = register(&paddock, &zoe, "z").await;
        for (method, rest) in
            [("GET", ""), ("PUT", "/status"), ("GET", "/kafkas"), ("PUT", "/kafkas/status")]
        {
            let path = ours.path(rest);
            for (who, status, code) in [
                (paddock.client.signed_out(), 401, 15),
                (paddock.client.with_token("nonsense"), 401, 15),
                (paddock.client.with_token("a.b.c"), 401, 15),
                (theirs.client.clone(), 404, 7),
                (ann.clone(), 404, 7),
                (paddock.admin().await, 404, 7),
            ] {
                error(&who.call(method, &path, &json!({})).await, status, code);
            }
            let unknown = path.replace(&ours.cluster, &external_id("x"));
            error(&ours.client.call(method, &unknown, &json!({})).await, 404, 7);
            if rest.starts_with("/kafkas") {
                let other = ours.path(&rest.replace("kafkas", "dinosaurs"));
                error(&ours.client.call(method, &other, &json!({})).await, 404, 7);
            }
        }
        // An agent's token is not valid for other endpoints.
        error(&ours.client.get(&format!("{API}/kafkas")).await, 401, 15);
    }

    async fn reports_about_instances_of_other_clusters_are_ignored(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let ours = register(&paddock, &ann, "a").await;
        let theirs = register(&paddock, &zoe, "z").await;
        ours.reconcile().await;
        theirs.reconcile().await;
        let id = request_kafka(&ann, "events").await;
        let path = kafka_path(&id);
        ours.until(&ann, &path, "ready").await;
        assert!(theirs.items().await.is_empty());
        theirs.report(&id, condition("False", "Error", "mine now")).await;
        assert_eq!(ann.get(&path).await.json["status"], "ready");
    }

    async fn invalid_report_does_not_affect_others(engine: Engine) {
        let (paddock, ann, mock, id) = provisioning(engine).await;
        let path = kafka_path(&id);
        let body = json!({
            "nonsense": 5,
            "reserved-kafka-standard-1": ready_status(),
            "00000000000000000000": ready_status(),
            "0000000000000000000g": null,
            (id.as_str()): ready_status(),
            "zzz": [],
        });
        mock.client.put(&mock.path("/kafkas/status"), body).await.expect(200);
        paddock.until(&ann, &path, "status", "ready").await;
        for garbage in [json!(5), json!([]), json!({"conditions": 5}), json!({"routes": [[]]}), json!(null)] {
            mock.report(&id, garbage).await;
        }
        let answer = mock.client.put(&mock.path("/kafkas/status"), json!([])).await;
        error(&answer, 400, 17);
        assert_eq!(ann.get(&path).await.json["status"], "ready");
    }

    async fn instance_with_unreadable_secrets_does_not_affect_others(engine: Engine) {
        let (sso, seal) = (Arc::new(FakeSso::default()), Arc::new(FakeSeal::default()));
        let settings =
            TestSettings { sso: Some(sso), seal: seal.clone(), ..TestSettings::default() };
        let (paddock, ann) = start_with(engine, settings).await;
        let mock = register(&paddock, &ann, "a").await;
        mock.reconcile().await;
        let (staying, going) = (request_kafka(&ann, "staying").await, request_kafka(&ann, "going").await);
        mock.until(&ann, &kafka_path(&staying), "ready").await;
        mock.until(&ann, &kafka_path(&going), "ready").await;
        ann.delete(&format!("{}?async=true", kafka_path(&going))).await.expect(202);
        seal.set_fault(Some(port::Fault::Unavailable("backend down".into())));
        // A deletion needs no secret; the omitted instance stays unchanged.
        let items = mock.items().await;
        assert_eq!(items.len(), 1, "{items:#?}");
        assert_eq!((&items[0]["id"], &items[0]["spec"]["deleted"]), (&json!(going), &json!(true)));
        assert!(items[0]["spec"].get("serviceAccounts").is_none());
        seal.set_fault(None);
        assert_eq!(mock.items().await.len(), 2);
    }

    async fn instance_waiting_for_versions_continues_when_they_are_reported(engine: Engine) {
        let (paddock, ann, mock) = registered(engine).await;
        let mut nothing = state("True", 3);
        nothing["strimzi"] = json!([]);
        mock.state(nothing).await.expect(204);
        let path = kafka_path(&request_kafka(&ann, "events").await);
        let platform = path.replace(API, "/api/v1").replace("/kafkas/", "/instances/");
        paddock.until(&ann, &platform, "reason_code", "VersionsUnknown").await;
        mock.state(state("True", 3)).await.expect(204);
        paddock.until(&ann, &path, "status", "provisioning").await;
    }

    async fn versions_are_validated_and_the_newest_is_used(engine: Engine) {
        let (paddock, ann, mock) = registered(engine).await;
        let operator = |version: &str, ready: bool| {
            json!({"ready": ready, "version": version, "kafkaVersions": ["3.9.0", "3.10.0"], "kafkaIbpVersions": ["3.9"]})
        };
        for (change, code) in [
            (json!({"version": ""}), 37),
            (json!({"kafkaVersions": []}), 37),
            (json!({"kafkaIbpVersions": null}), 37),
            (json!({"version": "op.v1"}), 8),
        ] {
            let mut bad = operator("op.v0.1.0-1", true);
            bad.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let mut body = state("True", 3);
            body["strimzi"] = json!([bad]);
            error(&mock.state(body).await, 400, code);
        }
        let mut body = state("True", 3);
        body["strimzi"] = json!([
            operator("op.v0.26.0-4", true), operator("op.v0.26.0-10", true), operator("op.v0.27.0-0", false),
        ]);
        mock.state(body).await.expect(204);
        let id = request_kafka(&ann, "events").await;
        paddock.until(&ann, &kafka_path(&id), "status", "provisioning").await;
        let versions = mock.item(&id).await.unwrap()["spec"]["versions"].clone();
        let expected = json!({"strimzi": "op.v0.26.0-10", "kafka": "3.10.0", "kafkaIbp": "3.9"});
        assert_eq!(versions, expected);
    }
}
