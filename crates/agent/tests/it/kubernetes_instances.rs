//! Instances of manifests, and the nodes that they run on.

use agent::Runtime;
use agent::kubernetes::Kubernetes;
use model::agent::Observed;
use model::deployment::{Reason, Spec};
use serde_json::{Value, json};
use testing::apiserver::Kind;

use super::kubernetes::{Lab, NS, name, options, reason, replica, start_error, until, web};

fn instance(namespace: &str) -> Spec {
    let meta = json!({"name": "bus", "namespace": namespace});
    let manifests = vec![
        json!({"apiVersion": "acme.example.com/v1", "kind": "Kettle", "metadata": meta, "spec": {"cups": 2}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 1,
            "selector": {}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": "10.9.0.1",
            "ports": [{"port": 9092}]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}),
    ];
    Spec { image: Some("unused:1".into()), manifests, ..Spec::default() }
}

#[tokio::test]
async fn instance_consists_of_its_manifests() {
    let lab = Lab::with(Some("paddock-x-instances".into())).await;
    lab.server.define(Kind::new("acme.example.com", "v1", "Kettle", "kettles"));
    let id = replica(1, 0);
    let controller = lab.server.controller();
    let ready = |status: &str, reason: &str| {
        json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": status,
            "reason": reason, "message": "No water"}]}})
    };
    let play = async {
        until(|| controller.get("apps", "deployments", "kind-1", "bus")).await;
        controller.available("kind-1", "bus");
        until(|| controller.get("", "configmaps", "kind-1", "bus")).await;
        controller.patch("acme.example.com", "kettles", "kind-1", "bus", &ready("False", "Cold"));
    };
    let spec = instance("kind-1");
    let (waits, ()) = tokio::join!(lab.runtime.start(id, "n1", None, &spec), play);
    let message = "Kettle bus: Cold: No water".to_owned();
    let unready = Reason::ReadinessCheckFailed { port: None, within_seconds: None, message };
    assert_eq!(reason(waits.clone()), unready);
    let boil = async {
        controller.patch("acme.example.com", "kettles", "kind-1", "bus", &ready("True", "Hot"));
    };
    let running = lab.after(id, &waits, boil).await;
    assert_eq!(running, Observed::Running { endpoints: vec!["10.9.0.1:9092".into()] });

    let namespace = controller.get("", "namespaces", "", "kind-1").unwrap();
    assert_eq!(namespace["metadata"]["labels"]["paddock.dev/home"], NS);
    // The server binds the agent's role.
    assert_eq!(controller.list("rbac.authorization.k8s.io", "rolebindings"), Vec::<Value>::new());
    let deployment = controller.get("apps", "deployments", "kind-1", "bus").unwrap();
    let label = format!("{}.0", id.deployment);
    for labels in
        [&deployment["metadata"]["labels"], &deployment["spec"]["template"]["metadata"]["labels"]]
    {
        assert_eq!(labels["paddock.dev/replica"], label);
    }
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["a"], "b");

    // A restarted agent deletes objects that it did not start, in reverse order.
    lab.server.clear_requests();
    let runtime = Kubernetes::probe(options(lab.dir.path().join("kubeconfig"))).await.unwrap();
    runtime.stop(id).await.unwrap();
    let lines = lab.server.request_lines();
    let deleted: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("DELETE ")).collect();
    let ends = [
        "/configmaps/bus",
        "/services/bus",
        "/deployments/bus",
        "/kettles/bus",
        "/namespaces/kind-1",
    ];
    assert_eq!(deleted.len(), 6, "{deleted:?}");
    assert!(deleted.iter().zip(ends).all(|(path, end)| path.ends_with(end)), "{deleted:?}");
    assert_eq!(controller.get("", "namespaces", "", "kind-1"), None);
    assert_eq!(lab.get("", "secrets", &name(id)), None);
}

#[tokio::test]
async fn invalid_instances_are_rejected() {
    let lab = Lab::new().await;
    let why = start_error(lab.runtime.start(replica(1, 0), "n1", None, &instance("kind-1")).await);
    assert!(why.contains("has no kind Kettle of acme.example.com/v1"), "{why}");
    let with = |object: Value| Spec { manifests: vec![object], ..Spec::default() };
    let cluster_wide = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mine"}});
    let why = start_error(lab.runtime.start(replica(2, 0), "n1", None, &with(cluster_wide)).await);
    assert!(why.contains("Node mine has no namespace"), "{why}");
    let stolen = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "kube-system"}});
    let why = start_error(lab.runtime.start(replica(3, 0), "n1", None, &with(stolen)).await);
    assert!(why.contains("Namespace kube-system exists"), "{why}");
    assert_eq!(lab.server.controller().list("", "secrets"), Vec::<Value>::new());
}

#[tokio::test]
async fn node_capacity_excludes_requests_of_other_pods() {
    let lab = Lab::new().await;
    let controller = lab.server.controller();
    controller.node(
        "n2.rack.local",
        &json!({"cpu": "7910m", "memory": "16Gi", "nvidia.com/gpu": "2",
        "acme.com/fpga": "1", "pods": "110", "ephemeral-storage": "1Gi"}),
    );
    for (name, patch) in [
        ("closed", json!({"spec": {"unschedulable": true}})),
        ("broken", json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})),
        ("master", json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})),
    ] {
        controller.node(name, &json!({"cpu": "4"}));
        controller.patch("", "nodes", "", name, &patch);
    }
    controller.unmanaged_pod("dns", "n1", &json!({"cpu": "100m", "memory": "1Gi"}));
    controller.unmanaged_pod("over", "n1", &json!({"cpu": "3"}));
    controller.patch("", "pods", "kube-system", "over", &json!({"status": {"phase": "Succeeded"}}));
    lab.started(replica(1, 0), &web()).await;
    let nodes = until(|| {
        let nodes = lab.runtime.nodes()?;
        (nodes.len() == 2 && nodes[0].capacity.get("cpu").milli() == 3900).then_some(nodes)
    });
    let nodes = nodes.await;
    let amounts = |at: usize| -> Vec<(String, i64)> {
        nodes[at].capacity.iter().map(|(kind, amount)| (kind.to_owned(), amount.milli())).collect()
    };
    assert_eq!((&*nodes[0].name, &*nodes[1].name), ("n1", "n2-rack-local"));
    assert_eq!(amounts(0), [("cpu".to_owned(), 3900), ("ram".to_owned(), 7000 << 30)]);
    let all = [
        ("acme.com/fpga", 1000),
        ("cpu", 7910),
        ("disk", 1000 << 30),
        ("gpu", 2000),
        ("ram", 16000 << 30),
    ];
    assert_eq!(amounts(1), all.map(|(kind, amount)| (kind.to_owned(), amount)));
    assert_eq!(nodes[0].labels["kubernetes.io/hostname"], "n1");
}
