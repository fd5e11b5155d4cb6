//! Secrets must appear only in the response that returns them.

use std::sync::Arc;

use model::DeploymentId;
use model::deployment::{NewDeployment, Spec};
use port::Fault;
use serde_json::json;
use store::{Scope, event};
use testing::{Client, FakeSeal, TestPaddock, TestSettings, on_both_engines, rows, stored_text};

use crate::world::{agent_cluster, agent_of, deployment_path};

/// Values that must never be returned.
const ENV_VALUE: &str = "environment-secret-81f3";
const PASSWORD: &str = "password-secret-77ab";

on_both_engines! {
    async fn secrets_appear_in_no_event_list_or_row(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let user = json!({"username": "ann", "password": PASSWORD});
        let body = json!({"user": user, "organization": {"name": "ann"}});
        paddock.client.put("/user/create/", body).await.expect(201);
        let token = paddock.client.post("/api/v1/login", user).await.text("token");
        let ann = paddock.client.with_token(&token);
        let codes = create_secrets(&paddock, &ann).await;

        let secrets = [vec![token, PASSWORD.to_owned()], codes].concat();
        let mut events = secrets.clone();
        events.push(ENV_VALUE.to_owned());
        let log = log(&paddock).await;
        assert!(log.contains("deployment.running") && log.contains("PASSPHRASE"));
        assert_contains_none("the event log", &log, &events);
        for list in ["organizations", "users", "invites", "clusters", "deployments"] {
            let shown = ann.get(&format!("/api/v1/{list}")).await.expect(200).to_string();
            assert_contains_none(list, &shown, &secrets);
        }
        for path in ["/user/", "/organization/", "/cluster/", "/deployment/"] {
            assert_contains_none(path, &ann.get(path).await.expect(200).to_string(), &secrets);
        }
        let stored = stored_text(&paddock.database.url()).await;
        assert!(stored.contains("PASSPHRASE"), "the deployment's row is there");
        assert_contains_none("the database", &stored, &events);
    }
}

on_both_engines! {
    async fn environment_variables_of_an_older_release_are_encrypted_in_place(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let ann = paddock.owner("ann").await;
        let me = ann.get("/organization/").await.text("id").parse().unwrap();
        let env = [("PASSPHRASE".to_owned(), ENV_VALUE.to_owned())].into();
        let new = NewDeployment {
            name: "old".into(),
            pinned_to: None,
            spec: Spec { env, replicas: 1, image: Some("web:1".into()), ..Spec::default() },
            priority: 0,
            labels: [].into(),
        };
        let old = rows::deployment(paddock.db(), me, &new).await;
        assert_eq!(old.spec.env["PASSPHRASE"], ENV_VALUE, "as the older release stored it");
        let path = deployment_path(&old.id.to_string());
        let shown = |json: serde_json::Value| json["env"]["PASSPHRASE"].clone();
        assert_eq!(shown(ann.get(&path).await.expect(200)), ENV_VALUE, "readable before");

        engine::encryption::start(paddock.db()).await.unwrap();
        let stored = until_encrypted(&paddock, old.id).await;
        assert!(stored.env.is_empty() && stored.sealed_env.contains_key("PASSPHRASE"));
        assert_eq!(shown(ann.get(&path).await.expect(200)), ENV_VALUE, "and after");
        ann.delete(&path).await.expect(202);
        paddock.until_deleted(&ann, &path).await;
    }

    async fn unreadable_environment_variables_are_hidden_and_creation_fails(engine: Engine) {
        let seal = Arc::new(FakeSeal::default());
        let settings = TestSettings { seal: seal.clone(), ..TestSettings::default() };
        let paddock = TestPaddock::start_with(engine, settings).await;
        let ann = paddock.owner("ann").await;
        let body = json!({"resources": {"cpu": 1}, "env": {"A": ENV_VALUE}});
        let id = ann.post("/api/v1/deployments", body.clone()).await.text("id");
        seal.set_fault(Some(Fault::Unavailable("Vault is down".into())));
        for path in [deployment_path(&id), "/api/v1/deployments".into(), "/api/v1/queue".into()] {
            let shown = ann.get(&path).await.expect(200).to_string();
            assert!(shown.contains("•••") && !shown.contains(ENV_VALUE), "{shown}");
        }
        assert_eq!(ann.post("/api/v1/deployments", body).await.status, 503);
        assert_eq!(ann.get("/api/v1/deployments").await.expect(200)["items"][1], json!(null));
    }
}

/// The spec of a deployment, once the worker has encrypted it.
async fn until_encrypted(paddock: &TestPaddock, id: DeploymentId) -> Spec {
    for _ in 0..400 {
        let mut read = paddock.db().read().await.unwrap();
        let found = store::deployment::get(&mut read, Scope::All, id).await.unwrap();
        if found.spec.env.is_empty() {
            return found.spec;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("the variables of {id} stay in clear text");
}

/// Creates everything that has a secret in its request or response. Returns the secrets.
async fn create_secrets(paddock: &TestPaddock, ann: &Client) -> Vec<String> {
    let first = ann.post("/api/v1/invites", json!({})).await;
    let second = ann.patch("/organization/invite/", json!({})).await.text("code");
    let code = first.text("code");
    let body = json!({"code": code, "username": "mia", "password": PASSWORD});
    paddock.client.post("/api/v1/invites/redeem", body).await.expect(201);
    let path = format!("/api/v1/invites/{}/reopen", first.text("id"));
    ann.post(&path, json!({})).await.expect(200);
    let cluster = paddock.cluster(ann, json!({"cpu": 1})).await;
    let env = json!({"PASSPHRASE": ENV_VALUE});
    let body =
        json!({"cluster_id": cluster, "image": "web:1", "resources": {"cpu": 1}, "env": env});
    let deployment = ann.post("/api/v1/deployments", body).await.expect(201);
    // The owner sees the value; the log does not contain it.
    assert_eq!(deployment["env"], env);
    let path = deployment_path(deployment["id"].as_str().unwrap());
    paddock.until(ann, &path, "status", "running").await;
    ann.patch(&path, json!({"priority": 1})).await.expect(200);
    let far = agent_cluster(ann, "far").await;
    let agent = agent_of(paddock, ann, &far).await;
    vec![code, second, agent.token().unwrap().to_owned()]
}

/// All events as text.
pub(crate) async fn log(paddock: &TestPaddock) -> String {
    paddock.db().number_events().await.unwrap();
    let mut read = paddock.db().read().await.unwrap();
    let all = event::Filter::default();
    let events = event::list(&mut read, Scope::All, &all, 0, 10_000).await.unwrap();
    serde_json::to_string(&events).unwrap()
}

pub(crate) fn assert_contains_none(place: &str, text: &str, secrets: &[String]) {
    for secret in secrets {
        assert!(!text.contains(secret.as_str()), "{place} holds {secret}");
    }
}
