//! Registry credentials of organizations, against a fake API server.

use agent::Runtime;
use agent::kubernetes::{Kubernetes, Options};
use model::agent::{Observed, ReplicaId};
use model::credential::PullCredentials;
use model::deployment::{Restart, Spec};
use serde_json::{Value, json};

use super::kubernetes::{Lab, NS, TIMEOUT, name, options, replica, web};

fn pull(registry: &str, password: &str) -> PullCredentials {
    let (registry, username) = (registry.to_owned(), "ci".to_owned());
    PullCredentials { registry, username, password: password.to_owned() }
}

fn private(image: &str, pull: impl Into<Option<PullCredentials>>) -> Spec {
    Spec { image: Some(image.to_owned()), pull: pull.into(), ..web() }
}

fn secret_name(id: ReplicaId) -> String {
    format!("{}-pull", name(id))
}

/// The registries and credentials in a replica's pull secret.
fn auths(lab: &Lab, id: ReplicaId) -> Option<Value> {
    let secret = lab.get("", "secrets", &secret_name(id))?;
    assert_eq!(secret["type"], "kubernetes.io/dockerconfigjson");
    assert_eq!(
        secret["metadata"]["labels"],
        lab.get("", "secrets", &name(id)).unwrap()["metadata"]["labels"]
    );
    let data = secret["data"][".dockerconfigjson"].as_str().unwrap();
    let text = data_encoding::BASE64.decode(data.as_bytes()).unwrap();
    let mut config: Value = serde_json::from_slice(&text).unwrap();
    Some(config["auths"].take())
}

/// The pod template of a replica.
fn pod(lab: &Lab, id: ReplicaId) -> Value {
    let deployment = lab.get("apps", "deployments", &name(id));
    let workload = deployment.or_else(|| lab.get("batch", "jobs", &name(id))).unwrap();
    workload["spec"]["template"]["spec"].clone()
}

async fn agent(lab: &Lab) -> Kubernetes {
    Kubernetes::probe(options(lab.dir.path().join("kubeconfig"))).await.unwrap()
}

#[tokio::test]
async fn pod_pulls_with_the_credentials_of_its_organization_only() {
    let lab = Lab::new().await;
    let (own, hub, other) = (replica(1, 0), replica(2, 0), replica(3, 0));
    let at = "registry.example:5000";
    lab.started(own, &private("registry.example:5000/team/web:1", pull(at, "s3cret"))).await;
    lab.started(hub, &private("team/web:1", pull("docker.io", "s3cret"))).await;
    // Another organization without credentials, and credentials of another registry.
    lab.started(other, &private("registry.example:5000/team/web:1", None)).await;
    let elsewhere = replica(4, 0);
    lab.started(elsewhere, &private("team/web:1", pull(at, "s3cret"))).await;

    for (id, registry) in [(own, at), (hub, "https://index.docker.io/v1/")] {
        assert_eq!(pod(&lab, id)["imagePullSecrets"], json!([{"name": secret_name(id)}]));
        let entry = json!({"username": "ci", "password": "s3cret", "auth": "Y2k6czNjcmV0"});
        assert_eq!(auths(&lab, id), Some(json!({registry: entry})));
        let record = lab.get("", "secrets", &name(id)).unwrap().to_string();
        assert!(!record.contains("s3cret") && !pod(&lab, id).to_string().contains("s3cret"));
    }
    for id in [other, elsewhere] {
        assert_eq!(pod(&lab, id)["imagePullSecrets"], Value::Null);
        assert_eq!(auths(&lab, id), None);
    }
    // The registry is asked at each start whether the credentials are still valid.
    for (id, policy) in
        [(own, "Always"), (hub, "Always"), (other, "IfNotPresent"), (elsewhere, "IfNotPresent")]
    {
        assert_eq!(pod(&lab, id)["containers"][0]["imagePullPolicy"], policy);
    }

    // Deleted after the pods, by an agent that did not start them.
    lab.server.clear_requests();
    agent(&lab).await.stop(own).await.unwrap();
    let lines = lab.server.request_lines();
    let deleted: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("DELETE ")).collect();
    let ends = [
        format!("/deployments/{}", name(own)),
        format!("/secrets/{}", secret_name(own)),
        format!("/secrets/{}", name(own)),
        format!("/services/paddock-{}", own.deployment),
    ];
    assert_eq!(deleted.len(), ends.len(), "{deleted:?}");
    assert!(deleted.iter().zip(&ends).all(|(path, end)| path.ends_with(end)), "{deleted:?}");
    assert!(auths(&lab, hub).is_some());
    lab.runtime.stop(hub).await.unwrap();
    let left = lab.server.controller().list("", "secrets");
    assert!(left.iter().all(|secret| secret["type"] == "Opaque"), "{left:?}");
}

#[tokio::test]
async fn changed_credentials_are_replaced_without_a_restart() {
    let lab = Lab::new().await;
    let image = "registry.example/team/web:1";
    let with = |password: &str| private(image, pull("registry.example", password));
    let job = |spec: Spec| Spec { restart: Restart::Never, ports: vec![], ..spec };
    for (id, spec) in
        [(replica(1, 0), &(|spec: Spec| spec) as &dyn Fn(Spec) -> Spec), (replica(2, 0), &job)]
    {
        lab.started(id, &spec(with("old"))).await;
        let before = pod(&lab, id);
        let runtime = agent(&lab).await;
        let found = runtime.start(id, "n1", None, &spec(with("new"))).await;
        assert!(matches!(found, Observed::Running { .. }), "{found:?}");
        assert_eq!(auths(&lab, id).unwrap()["registry.example"]["password"], "new");
        assert_eq!(pod(&lab, id), before);

        // Removed credentials are deleted; a missing pull secret does not harm a running pod.
        let runtime = agent(&lab).await;
        let found = runtime.start(id, "n1", None, &spec(private(image, None))).await;
        assert!(matches!(found, Observed::Running { .. }), "{found:?}");
        assert_eq!(auths(&lab, id), None);
        assert_eq!(pod(&lab, id), before);

        // Credentials that are set again are used again.
        let runtime = agent(&lab).await;
        runtime.start(id, "n1", None, &spec(with("newer"))).await;
        assert_eq!(auths(&lab, id).unwrap()["registry.example"]["password"], "newer");
        runtime.stop(id).await.unwrap();
        assert_eq!(lab.server.controller().list("", "secrets"), Vec::<Value>::new());
    }
}

#[tokio::test]
async fn own_credentials_replace_the_pull_secret_of_the_cluster() {
    let lab = Lab::new().await;
    let kubeconfig = lab.dir.path().join("kubeconfig");
    let options = Options { pull_secret: Some("paddock-pull".into()), ..options(kubeconfig) };
    let runtime = Kubernetes::probe(options).await.unwrap();
    let lab = Lab { runtime, ..lab };
    let (own, other) = (replica(1, 0), replica(2, 0));
    lab.started(own, &private("r.example/web:1", pull("r.example", "s3cret"))).await;
    lab.started(other, &private("r.example/web:1", None)).await;
    assert_eq!(pod(&lab, own)["imagePullSecrets"], json!([{"name": secret_name(own)}]));
    assert_eq!(pod(&lab, other)["imagePullSecrets"], json!([{"name": "paddock-pull"}]));
}

#[tokio::test]
async fn pull_secret_of_another_owner_is_not_touched() {
    let lab = Lab::new().await;
    let id = replica(1, 0);
    let theirs = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": secret_name(id), "namespace": NS}});
    let theirs = lab.server.controller().put("", "secrets", theirs);
    let spec = private("r.example/web:1", pull("r.example", "s3cret"));
    let start = tokio::time::timeout(TIMEOUT, lab.runtime.start(id, "n1", None, &spec));
    let Ok(Observed::Failed { reason }) = start.await else { panic!("it started") };
    assert!(format!("{reason:?}").contains("has another owner"), "{reason:?}");
    lab.started(id, &private("r.example/web:1", None)).await;
    lab.runtime.stop(id).await.unwrap();
    assert_eq!(lab.get("", "secrets", &secret_name(id)), Some(theirs));
}
