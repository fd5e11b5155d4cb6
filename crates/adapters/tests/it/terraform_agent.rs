//! How the agent gets onto what a module has made: through its Kubernetes, or through its variables.

use std::sync::Arc;
use std::time::Duration;

use adapters::guard;
use adapters::kubernetes::Kubernetes;
use adapters::terraform::{Runner, Terraform};
use model::Secret;
use model::cluster::{KUBECONFIG, STATE, VARIABLES};
use port::{Access, CLUSTER_ID, Fault, Operation, Outcome, Progress};
use serde_json::json;
use testing::apiserver::Apiserver;

use super::fake;
use super::terraform::{World, going, keep, make, settle};

const TOKEN: &str = "ag3nt-token";

fn agent() -> Access {
    Access {
        server: "https://paddock.example.com".into(),
        token: Secret::new(TOKEN),
        image: "registry.local/paddock:1".into(),
    }
}

const HOSTED: &str = r#"
variable "kubeconfig" {
  sensitive = true
}
resource "terraform_data" "x" {}
output "kubeconfig" {
  value     = var.kubeconfig
  sensitive = true
}
"#;

fn hosted(world: &World, kubeconfig: &str) -> port::Task {
    world.module("hosted", "main.tf", HOSTED);
    let mut order = World::order("hosted", json!({}));
    let secret = json!({"kubeconfig": kubeconfig}).to_string();
    order.kept.insert(VARIABLES.into(), Secret::new(secret));
    order
}

#[tokio::test]
async fn a_kubeconfig_is_handed_to_the_kubernetes_provider() {
    let world = World::new();
    let (provider, mut order) = (world.provider(), hosted(&world, "c0nfig"));
    let made = make(&provider, &order).await.unwrap();
    assert!(made.outputs.is_empty());
    assert!(world.inside.asked.lock().unwrap().is_empty());
    keep(&provider, &mut order).await;
    assert_eq!(order.kept[KUBECONFIG].reveal(), "c0nfig");
    let outputs = [(CLUSTER_ID.to_owned(), "uid".into())].into_iter().collect();
    let ready = Outcome { outputs, link: None };
    *world.inside.answers.lock().unwrap() = vec![
        Ok(Progress::running("The agent is being started.")),
        Ok(Progress::Done(ready.clone())),
    ];
    assert_eq!(going(provider.prepare(&order, &agent()).await), "The agent is being started.");
    let prepared = provider.prepare(&order, &agent()).await.unwrap();
    assert_eq!(prepared, Progress::Done(ready));
    let asked = world.inside.asked.lock().unwrap().clone();
    let (what, inside) = &asked[0];
    assert_eq!((what.as_str(), inside.id), ("prepare", order.id));
    assert!(inside.with.is_empty());
    let names: Vec<_> = inside.kept.keys().collect();
    assert_eq!(names, [KUBECONFIG], "it need not know the rest");
}

#[tokio::test]
async fn a_kubernetes_that_a_module_made_gets_its_agent() {
    fake::prepare();
    let (world, server) = (World::new(), Apiserver::start().await);
    let options = guard::Options { first_delay: Duration::from_millis(1), ..Kubernetes::options() };
    let kubernetes = Arc::new(Kubernetes::new(options, || 1));
    let provider = Terraform::new(Runner::new(world.options.clone()), kubernetes);
    let mut order = hosted(&world, &server.kubeconfig("t0ken"));
    make(&provider, &order).await.unwrap();
    keep(&provider, &mut order).await;
    going(provider.prepare(&order, &agent()).await);
    server.controller().available("paddock", "paddock-agent");
    let prepared = settle(async || provider.prepare(&order, &agent()).await).await.unwrap();
    assert!(prepared.outputs.contains_key(CLUSTER_ID));
    let is_there =
        || server.controller().get("apps", "deployments", "paddock", "paddock-agent").is_some();
    assert!(is_there());
    settle(|| provider.destroy(&order)).await.unwrap();
    assert!(!is_there(), "the agent was removed before the module was");
}

#[tokio::test]
async fn a_kubernetes_is_cleared_first_but_one_that_is_down_does_not_hinder() {
    let down = Fault::Unavailable("can't be reached".into());
    let wrong = Fault::Refused("does not accept the credentials".into());
    for trouble in [Err(down), Err(wrong), Ok(Progress::Done(Outcome::default()))] {
        let world = World::new();
        let (provider, mut order) = (world.provider(), hosted(&world, "c0nfig"));
        make(&provider, &order).await.unwrap();
        keep(&provider, &mut order).await;
        let stopping = Ok(Progress::running("The agent is being stopped."));
        *world.inside.answers.lock().unwrap() = vec![stopping, trouble];
        assert_eq!(going(provider.destroy(&order).await), "The agent is being stopped.");
        assert!(provider.keep(&order).await.unwrap().is_empty(), "nothing was destroyed yet");
        settle(|| provider.destroy(&order)).await.unwrap();
        assert_eq!(world.inside.asked.lock().unwrap().len(), 2);
        assert!(!world.folder(&order).exists());
    }
}

const MACHINE: &str = r#"
variable "paddock_server" {
  default = ""
}
variable "paddock_token" {
  default   = ""
  sensitive = true
}
resource "terraform_data" "machine" {
  input = "${var.paddock_server} ${var.paddock_token}"
}
"#;

#[tokio::test]
async fn a_module_without_a_kubeconfig_is_told_where_its_agent_connects() {
    let world = World::new();
    world.module("machine", "main.tf", MACHINE);
    world.module("machine", "more.tf.json", r#"{"variable": {"paddock_image": {"default": ""}}}"#);
    let mut order = World::order("machine", json!({}));
    let provider = world.provider();
    let made = make(&provider, &order).await.unwrap();
    keep(&provider, &mut order).await;
    assert!(!order.kept[STATE].reveal().contains(TOKEN), "{made:?}");
    going(provider.prepare(&order, &agent()).await);
    let prepared = settle(async || provider.prepare(&order, &agent()).await).await.unwrap();
    let told = format!("https://paddock.example.com {TOKEN}");
    keep(&provider, &mut order).await;
    assert!(order.kept[STATE].reveal().contains(&told));
    let variables = world.folder(&order).join("module/terraform.tfvars.json");
    let variables = std::fs::read_to_string(variables).unwrap();
    assert!(variables.contains("registry.local/paddock:1"), "{variables}");
    assert!(!format!("{prepared:?}").contains(TOKEN));

    // What it was told is not taken back by the next create.
    let again = settle(|| provider.apply(&order)).await.unwrap();
    keep(&provider, &mut order).await;
    assert!(order.kept[STATE].reveal().contains(&told), "{again:?}");
    assert!(world.inside.asked.lock().unwrap().is_empty());
    settle(|| provider.destroy(&order)).await.unwrap();
}

#[tokio::test]
async fn a_module_that_asks_for_nothing_is_prepared_at_once() {
    let world = World::new();
    world.module("plain", "main.tf", "output \"id\" {\n value = \"x\"\n}\n");
    let (provider, order) = (world.provider(), World::order("plain", json!({})));
    make(&provider, &order).await.unwrap();
    let Ok(Progress::Done(made)) = provider.prepare(&order, &agent()).await else {
        panic!("not done")
    };
    assert_eq!(made.outputs["id"], "x");
}

#[tokio::test]
async fn the_agent_s_token_is_blotted_out_of_what_terraform_says() {
    let world = World::new();
    let text = "variable \"paddock_token\" {\n default = \"\"\n}\nresource \"terraform_data\" \"x\" {\n triggers_replace = var.paddock_token\n provisioner \"local-exec\" {\n  command = \"test -z '${var.paddock_token}'\"\n }\n}\n";
    world.module("leak", "main.tf", text);
    let (provider, order) = (world.provider(), World::order("leak", json!({})));
    make(&provider, &order).await.unwrap();
    going(provider.prepare(&order, &agent()).await);
    let told = settle(async || provider.prepare(&order, &agent()).await).await;
    let Err(Fault::Refused(why)) = told else { panic!("{told:?}") };
    assert!(why.contains("test -z '•••'") && !why.contains(TOKEN), "{why}");
}
