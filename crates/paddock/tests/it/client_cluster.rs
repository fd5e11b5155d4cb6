//! `paddock cluster`: register, drain, retry and providers.

use std::fs;

use super::process::{Server, Setup};

fn with_kubernetes() -> Server {
    let setup = Setup::new().arg("--public-url", "http://paddock.example");
    let setup = setup.arg("--allow-address", "127.0.0.0/8");
    setup.arg("--agent-image", "registry.example/paddock:1").start()
}

#[test]
fn register_prints_agent_credentials() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let own = ann.run("cluster register far --label rack=7").succeeds();
    let token = own.stdout.trim();
    assert!(token.len() > 30 && !token.contains(char::is_whitespace), "{token}");
    assert!(own.stderr.contains("paddock agent --server"), "{}", own.stderr);
    ann.run("cluster show far").succeeds().prints(&[
        "PROVIDER     agent",
        "rack=7",
        "waiting_for_agent",
    ]);

    let id = "1234567890abcdefghijklmnopqrstuv";
    let line = format!("cluster register {id} --service kafka --ingress-dns apps.site.example");
    ann.run(&line).fails(2, &["--machines"]);
    ann.run(&format!("{line} --machines 4")).fails(1, &["multiple of 3"]);
    ann.run(&format!("{line} --machines 3"))
        .succeeds()
        .prints(&["sso-client-id", "sso-secret", "control-plane-url", id])
        .notes(&["shown only once"]);
    let same = ann.run(&format!("{line} --machines 3 --output json"));
    same.fails(1, &["error: "]);
    ann.run("cluster register x --service hippo --ingress-dns a.example --machines 3")
        .fails(1, &["service kind \"hippo\" not found"]);
}

#[test]
fn drain_empties_cluster_and_reports_what_stays() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create old --cpu 2 --resource gpu=1 --wait=60").succeeds();
    ann.run("deployment create --name web --cpu 1 --resource gpu=1 --wait=60").succeeds();
    ann.run("cluster drain old --wait=2")
        .fails(1, &["without capacity elsewhere", "the operation continues"]);
    ann.run("cluster list").succeeds().prints(&["ready (draining)"]);
    ann.run("cluster create new --cpu 2 --resource gpu=1 --wait=60").succeeds();
    ann.run("cluster drain old --wait=60").succeeds().prints(&["old ", "ready (draining)"]);
    ann.run("deployment list --cluster new").succeeds().prints(&["web"]);
    ann.run("cluster drain old --end").succeeds();
    let shown = ann.json("cluster show old");
    assert_eq!(shown["draining_at"], serde_json::Value::Null);
    ann.run("cluster delete old --yes --wait=60").succeeds();
    ann.run("cluster drain nowhere").fails(1, &["cluster \"nowhere\" not found"]);
}

#[test]
fn unusable_kubernetes_fails_with_reason_and_can_be_deleted() {
    let server = with_kubernetes();
    let ann = server.owner("acme", "ann");
    let file = server.setup.file("kubeconfig");
    fs::write(&file, "clusters: []\n# s3cret\n").unwrap();
    let create = |name: &str| {
        format!("cluster create {name} --provider kubernetes --kubeconfig {}", file.display())
    };
    ann.run(&format!("{} --wait=60", create("broken"))).fails(
        1,
        &["cluster broken failed: Provisioning failed: invalid kubeconfig", "cluster retry"],
    );
    ann.run("cluster retry broken --wait=60").fails(1, &["invalid kubeconfig"]);
    ann.run("cluster delete broken --yes --wait=60").succeeds();
    ann.run(&format!("{} --namespace Not-One", create("b"))).fails(1, &["--namespace"]);
    ann.run("cluster create c --provider kubernetes --kubeconfig nowhere.yaml")
        .fails(1, &["cannot read nowhere.yaml"]);
    ann.run("cluster create c --provider cloud").fails(2, &["kubernetes", "terraform"]);
    ann.run("cluster create c --provider kubernetes").fails(1, &["platform administrator"]);
    ann.run("cluster create prod --cpu 1 --wait=60").succeeds();
    ann.run("cluster retry prod").fails(1, &["only a failed cluster"]);

    // Nothing listens there.
    let nowhere = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: \
        {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n\
        users: [{name: a, user: {token: s3cret}}]\n";
    fs::write(&file, nowhere).unwrap();
    ann.run(&format!("{} --wait=3", create("dark")))
        .fails(1, &["cluster dark is still accepted after 3 s: Provider is unavailable"]);
    ann.run("cluster delete dark --yes --force --wait=60").succeeds();
    let log = server.stderr();
    assert!(!log.contains("s3cret"), "{log}");
}

#[test]
fn missing_provider_settings_are_named() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create far --provider terraform --module small")
        .fails(1, &["--provider", "--terraform-modules"]);
    let file = server.setup.file("kubeconfig");
    fs::write(&file, "x").unwrap();
    ann.run(&format!("cluster create far --provider kubernetes --kubeconfig {}", file.display()))
        .fails(1, &["--public-url and --agent-image"]);
}
