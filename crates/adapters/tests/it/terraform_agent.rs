//! Installing the agent on a module's cluster: through its Kubernetes, or through its variables.

use std::sync::Arc;
use std::time::Duration;

use crate::http_calls::loopback;
use adapters::guard;
use adapters::kubernetes::Kubernetes;
use adapters::terraform::{Runner, TerraformProvider};
use base::Resolver;
use model::Secret;
use model::cluster::{KUBECONFIG, STATE, VARIABLES};
use port::{Access, CLUSTER_ID, Fault, Operation, Outcome, Progress};
use serde_json::json;
use testing::apiserver::Apiserver;

use super::fake;
use super::terraform::{World, create, going, persist, settle};

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
    order.persisted.insert(VARIABLES.into(), Secret::new(secret));
    order
}

#[tokio::test]
async fn kubeconfig_is_passed_to_the_kubernetes_provider() {
    let world = World::new();
    let (provider, mut order) = (world.provider(), hosted(&world, "c0nfig"));
    let made = create(&provider, &order).await.unwrap();
    assert!(made.outputs.is_empty());
    assert!(world.inside.calls.lock().unwrap().is_empty());
    persist(&provider, &mut order).await;
    assert_eq!(order.persisted[KUBECONFIG].reveal(), "c0nfig");
    let outputs = [(CLUSTER_ID.to_owned(), "uid".into())].into_iter().collect();
    let ready = Outcome { outputs, link: None };
    *world.inside.answers.lock().unwrap() =
        vec![Ok(Progress::running("Starting the agent.")), Ok(Progress::Done(ready.clone()))];
    assert_eq!(going(provider.prepare(&order, &agent()).await), "Starting the agent.");
    let prepared = provider.prepare(&order, &agent()).await.unwrap();
    assert_eq!(prepared, Progress::Done(ready));
    let calls = world.inside.calls.lock().unwrap().clone();
    let (what, inside) = &calls[0];
    assert_eq!((what.as_str(), inside.id), ("prepare", order.id));
    assert!(inside.with.is_empty());
    let names: Vec<_> = inside.persisted.keys().collect();
    assert_eq!(names, [KUBECONFIG], "it gets no other secrets");
}

#[tokio::test]
async fn kubernetes_of_a_module_gets_its_agent() {
    fake::prepare();
    let (world, server) = (World::new(), Apiserver::start().await);
    let options = guard::Options { base_delay: Duration::from_millis(1), ..Kubernetes::options() };
    let kubernetes = Arc::new(Kubernetes::new(options, || 1, Resolver::new(loopback())));
    let provider = TerraformProvider::new(Runner::new(world.options.clone()), kubernetes);
    let mut order = hosted(&world, &server.kubeconfig("t0ken"));
    create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    going(provider.prepare(&order, &agent()).await);
    server.controller().available("paddock", "paddock-agent");
    let prepared = settle(async || provider.prepare(&order, &agent()).await).await.unwrap();
    assert!(prepared.outputs.contains_key(CLUSTER_ID));
    let exists =
        || server.controller().get("apps", "deployments", "paddock", "paddock-agent").is_some();
    assert!(exists());
    settle(|| provider.destroy(&order)).await.unwrap();
    assert!(!exists(), "the agent was deleted before the module was destroyed");
}

#[tokio::test]
async fn kubernetes_is_cleaned_up_before_destroy_unless_it_fails() {
    let down = Fault::Unavailable("is unreachable".into());
    let wrong = Fault::Refused("rejected the credentials".into());
    for answer in [Err(down), Err(wrong), Ok(Progress::Done(Outcome::default()))] {
        let world = World::new();
        let (provider, mut order) = (world.provider(), hosted(&world, "c0nfig"));
        create(&provider, &order).await.unwrap();
        persist(&provider, &mut order).await;
        let stopping = Ok(Progress::running("Stopping the agent."));
        *world.inside.answers.lock().unwrap() = vec![stopping, answer];
        assert_eq!(going(provider.destroy(&order).await), "Stopping the agent.");
        assert!(provider.persist(&order).await.unwrap().is_empty(), "nothing was destroyed yet");
        settle(|| provider.destroy(&order)).await.unwrap();
        assert_eq!(world.inside.calls.lock().unwrap().len(), 2);
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
async fn module_without_a_kubeconfig_gets_the_agent_access_as_variables() {
    let world = World::new();
    world.module("machine", "main.tf", MACHINE);
    world.module("machine", "more.tf.json", r#"{"variable": {"paddock_image": {"default": ""}}}"#);
    let mut order = World::order("machine", json!({}));
    let provider = world.provider();
    let made = create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    assert!(!order.persisted[STATE].reveal().contains(TOKEN), "{made:?}");
    going(provider.prepare(&order, &agent()).await);
    let prepared = settle(async || provider.prepare(&order, &agent()).await).await.unwrap();
    let input = format!("https://paddock.example.com {TOKEN}");
    persist(&provider, &mut order).await;
    assert!(order.persisted[STATE].reveal().contains(&input));
    let variables = world.folder(&order).join("module/terraform.tfvars.json");
    let variables = std::fs::read_to_string(variables).unwrap();
    assert!(variables.contains("registry.local/paddock:1"), "{variables}");
    assert!(!format!("{prepared:?}").contains(TOKEN));

    // The next apply retains the access.
    let again = settle(|| provider.apply(&order)).await.unwrap();
    persist(&provider, &mut order).await;
    assert!(order.persisted[STATE].reveal().contains(&input), "{again:?}");
    assert!(world.inside.calls.lock().unwrap().is_empty());
    settle(|| provider.destroy(&order)).await.unwrap();
}

#[tokio::test]
async fn module_without_agent_variables_is_prepared_at_once() {
    let world = World::new();
    world.module("plain", "main.tf", "output \"id\" {\n value = \"x\"\n}\n");
    let (provider, order) = (world.provider(), World::order("plain", json!({})));
    create(&provider, &order).await.unwrap();
    let Ok(Progress::Done(made)) = provider.prepare(&order, &agent()).await else {
        panic!("not done")
    };
    assert_eq!(made.outputs["id"], "x");
}

#[tokio::test]
async fn agent_token_is_redacted_in_terraform_output() {
    let world = World::new();
    let text = "variable \"paddock_token\" {\n default = \"\"\n}\nresource \"terraform_data\" \"x\" {\n triggers_replace = var.paddock_token\n provisioner \"local-exec\" {\n  command = \"test -z '${var.paddock_token}'\"\n }\n}\n";
    world.module("leak", "main.tf", text);
    let (provider, order) = (world.provider(), World::order("leak", json!({})));
    create(&provider, &order).await.unwrap();
    going(provider.prepare(&order, &agent()).await);
    let result = settle(async || provider.prepare(&order, &agent()).await).await;
    let Err(Fault::Refused(why)) = result else { panic!("{result:?}") };
    assert!(why.contains("test -z '•••'") && !why.contains(TOKEN), "{why}");
}
