//! Credentials of organizations: who may set them, who gets them, and that nobody reads them.

use serde_json::{Value, json};
use testing::{Client, Engine, TestPaddock, on_both_engines};

use crate::secrets::{assert_contains_none, log};
use crate::shop::Shop;
use crate::world::{agent_cluster, agent_of, cluster_path, names_field};

const SECRET: &str = "credential-secret-4c1d";
const LIST: &str = "/api/v1/credentials";

fn path(system: &str, name: &str) -> String {
    format!("{LIST}/{system}/{name}")
}

async fn names(client: &Client) -> Vec<String> {
    let listed = client.get(LIST).await.expect(200);
    let items = listed["items"].as_array().unwrap().iter();
    items.map(|item| format!("{}/{}", item["system"], item["name"]).replace('"', "")).collect()
}

async fn login(client: &Client, host: &str) {
    let body = json!({"username": "ci", "secret": SECRET});
    client.put(&path("registry", host), body).await.expect(200);
}

on_both_engines! {
    async fn owner_sets_lists_and_deletes_credentials_of_its_organization(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        login(&ann, "Registry.example:5000").await;
        ann.put(&path("vault", "token"), json!({"secret": SECRET})).await.expect(200);
        let again = ann.put(&path("vault", "token"), json!({"secret": "other"})).await;
        assert_eq!(again.expect(200)["system"], "vault");
        assert_eq!(names(&ann).await, ["registry/registry.example:5000", "vault/token"]);
        assert_eq!(names(&zoe).await, Vec::<String>::new());
        zoe.delete(&path("vault", "token")).await.expect(404);
        assert_eq!(names(&ann).await.len(), 2);
        ann.delete(&path("vault", "token")).await.expect(204);
        ann.delete(&path("vault", "token")).await.expect(404);
        assert_eq!(names(&ann).await, ["registry/registry.example:5000"]);
    }

    async fn members_neither_see_nor_change_credentials(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let ann = paddock.owner("ann").await;
        let bob = paddock.member(&ann, "bob").await;
        login(&ann, "registry.example").await;
        bob.get(LIST).await.expect(403);
        bob.put(&path("vault", "token"), json!({"secret": SECRET})).await.expect(403);
        bob.delete(&path("registry", "registry.example")).await.expect(403);
        assert_eq!(names(&ann).await, ["registry/registry.example"]);
    }

    async fn invalid_credentials_are_rejected_with_the_field(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let ann = paddock.owner("ann").await;
        let long = "x".repeat(20_000);
        for (at, body, field) in [
            (path("docker", "token"), json!({"secret": "s"}), "system"),
            (path("vault", "root"), json!({"secret": "s"}), "name"),
            (path("terraform", "LD_PRELOAD"), json!({"secret": "/tmp/x.so"}), "name"),
            (path("terraform", "AWS_CONFIG_FILE"), json!({"secret": "/tmp/x"}), "name"),
            (path("registry", "registry.example"), json!({"secret": "s"}), "username"),
            (path("vault", "token"), json!({"secret": "s", "username": "u"}), "username"),
            (path("vault", "token"), json!({"secret": ""}), "secret"),
            (path("vault", "token"), json!({"secret": long}), "secret"),
        ] {
            names_field(&ann.put(&at, body).await, field, &at);
        }
        assert_eq!(names(&ann).await, Vec::<String>::new());
    }

    async fn secret_of_a_credential_appears_nowhere(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let ann = paddock.owner("ann").await;
        let body = json!({"username": "ci", "secret": SECRET});
        let answer = ann.put(&path("registry", "registry.example"), body).await.expect(200);
        let secrets = [SECRET.to_owned()];
        assert_contains_none("the answer", &answer.to_string(), &secrets);
        let listed = ann.get(LIST).await.expect(200).to_string();
        assert_contains_none("the list", &listed, &secrets);
        let log = log(&paddock).await;
        assert!(log.contains("organization.credential_set") && log.contains("registry.example"));
        assert_contains_none("the event log", &log, &secrets);
        if engine == Engine::Sqlite {
            let url = paddock.database.url();
            let file = url.strip_prefix("sqlite:").unwrap();
            for file in [file.to_owned(), format!("{file}-wal")] {
                let bytes = std::fs::read(&file).unwrap_or_default();
                assert_contains_none(&file, &String::from_utf8_lossy(&bytes), &secrets);
            }
        }
    }

    async fn agent_gets_registry_credentials_of_the_image_and_organization_only(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        login(&ann, "registry.example").await;
        login(&ann, "docker.io").await;
        let pulled = async |owner: &Client, image: &str| pull_credentials(&paddock, owner, image).await;
        let expected = json!({"registry": "registry.example", "username": "ci", "password": SECRET});
        assert_eq!(pulled(&ann, "registry.example/web:1").await, expected);
        assert_eq!(pulled(&ann, "web:1").await["registry"], "docker.io");
        for image in ["registry.example.evil.example/web:1", "registry.example:5000/web:1"] {
            assert_eq!(pulled(&ann, image).await, Value::Null, "{image}");
        }
        assert_eq!(pulled(&zoe, "registry.example/web:1").await, Value::Null);
    }

    async fn executor_gets_the_organizations_own_credentials(engine: Engine) {
        let shop = Shop::open(engine).await;
        shop.ann.put(&path("vault", "token"), json!({"secret": SECRET})).await.expect(200);
        shop.deployed(json!({})).await;
        let state = shop.executor.state();
        let own = |name: &str| {
            let mut tasks = state.tasks.values();
            let task = tasks.find(|task| task.name == name).unwrap();
            task.credentials.iter().map(|(name, secret)| (name.clone(), secret.reveal().to_owned()))
                .collect::<Vec<_>>()
        };
        assert_eq!(own("base"), [("token".to_owned(), SECRET.to_owned())]);
        assert_eq!(own("settings"), []);
    }
}

/// The credentials that the agent of a new cluster gets for a deployment of this image.
async fn pull_credentials(paddock: &TestPaddock, owner: &Client, image: &str) -> Value {
    let name = format!("c{}", image.len());
    let cluster = agent_cluster(owner, &name).await;
    let agent = agent_of(paddock, owner, &cluster).await;
    let heartbeat = json!({"version": "1", "runtime": "simulated", "capacity": {"cpu": 4}});
    agent.post("/api/v1/agent/heartbeat", heartbeat).await.expect(200);
    paddock.until(owner, &cluster_path(&cluster), "status", "ready").await;
    let body = json!({"image": image, "cluster_id": cluster, "resources": {"cpu": 1}});
    owner.post("/api/v1/deployments", body).await.expect(201);
    loop {
        let told = agent.get("/api/v1/agent/desired?wait=5").await.expect(200);
        if let Some(desired) = told["items"].as_array().unwrap().first() {
            return desired["run"]["pull"].clone();
        }
    }
}
