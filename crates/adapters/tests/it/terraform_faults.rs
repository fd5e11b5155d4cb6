//! Invalid modules, and a failing Terraform.

use std::time::Duration;

use adapters::terraform::{Inputs, Runner};
use model::Secret;
use model::cluster::{STATE, VARIABLES};
use port::Operation;
use serde_json::json;

use super::kubernetes::{refused, unavailable};
use super::terraform::{PASSWORD, World, create, going, persist, settle, state_of, status};

#[tokio::test]
async fn missing_module_is_refused_with_the_existing_ones() {
    let world = World::new();
    let provider = world.provider();
    let why = refused(provider.apply(&World::order("gone", json!({}))).await);
    assert!(why.contains("no modules exist"), "{why}");
    world.module("small", "main.tf", "");
    world.module("large", "main.tf", "");
    std::fs::create_dir(world.path().join("outside")).unwrap();
    let link = world.options.module_dir.join("link");
    std::os::unix::fs::symlink(world.path().join("outside"), link).unwrap();
    for name in ["gone", "../outside", "..", "", "link", "/etc", "Small"] {
        let why = refused(provider.apply(&World::order(name, json!({}))).await);
        assert!(why.starts_with("terraform.module: "), "{name}: {why}");
        assert!(why.contains("the modules are large, link, small"), "{name}: {why}");
    }
    assert!(!world.options.work_dir.exists(), "no run was started");
}

#[tokio::test]
async fn links_in_a_module_must_not_escape_the_module_folder() {
    let world = World::new();
    world.module("shared", "main.tf", "output \"id\" {\n value = \"shared\"\n}\n");
    world.module("good", "main.tf", "module \"x\" {\n source = \"./x\"\n}\n");
    world.module("bad", "main.tf", "");
    std::fs::write(world.path().join("private"), "").unwrap();
    let modules = &world.options.module_dir;
    std::os::unix::fs::symlink(modules.join("shared"), modules.join("good/x")).unwrap();
    std::os::unix::fs::symlink(world.path().join("private"), modules.join("bad/x")).unwrap();
    let provider = world.provider();
    create(&provider, &World::order("good", json!({}))).await.unwrap();
    let why = refused(settle(async || provider.apply(&World::order("bad", json!({}))).await).await);
    assert!(why.contains("x links outside the module folder"), "{why}");
}

#[tokio::test]
async fn errors_in_a_module_name_file_and_line() {
    let cases = [
        (
            "variable \"a\" {\n default = 1\n}\noutput \"id\" {\n value = \n}\n",
            "main.tf:5: Invalid expression",
        ),
        (
            "output \"id\" {\n value = var.nowhere\n}\n",
            "main.tf:2: Reference to undeclared input variable",
        ),
        (
            "variable \"size\" {}\n",
            "main.tf:1: No value for required variable: The root module input variable \"size\" is not set",
        ),
    ];
    for (text, message) in cases {
        let world = World::new();
        world.module("wrong", "main.tf", text);
        let why = refused(create(&world.provider(), &World::order("wrong", json!({}))).await);
        assert!(
            why.starts_with("Terraform ") && why.contains(" failed for module wrong: "),
            "{why}"
        );
        assert!(why.contains(message), "{why}");
    }
}

#[tokio::test]
async fn provider_that_can_not_be_downloaded_is_retried() {
    let world = World::new();
    let text = "terraform {\n required_providers {\n  zz = {\n   source = \"registry.invalid/foo/zz\"\n  }\n }\n}\n";
    world.module("far", "main.tf", text);
    let why = unavailable(create(&world.provider(), &World::order("far", json!({}))).await);
    assert!(why.starts_with("Terraform init failed for module far: "), "{why}");
}

#[tokio::test]
async fn secrets_are_redacted_in_terraform_output() {
    let world = World::new();
    let text = "variable \"password\" {}\nresource \"terraform_data\" \"x\" {\n provisioner \"local-exec\" {\n  command = \"echo '${var.password}' ${base64encode(var.password)}; exit 3\"\n }\n}\n";
    world.module("leak", "main.tf", text);
    let mut order = World::order("leak", json!({}));
    let secret = json!({"password": PASSWORD}).to_string();
    order.persisted.insert(VARIABLES.into(), Secret::new(secret));
    let provider = world.provider();
    let why = refused(create(&provider, &order).await);
    assert!(why.contains("main.tf:3: local-exec provisioner error"), "{why}");
    assert!(why.contains("echo '•••'") && why.contains("exit status 3"), "{why}");
    assert!(!why.contains("s3cret") && !why.contains("czNjcmV0"), "{why}");
    order.persisted.insert(VARIABLES.into(), Secret::new("[\"s3cret\"]"));
    let why = refused(provider.apply(&order).await);
    assert!(why.contains("must be a JSON object") && !why.contains("s3cret"), "{why}");
    let inputs = Inputs::secret_variables(&Secret::new("{\"password\": \"s3cret\"}")).unwrap();
    let inputs = Inputs { secret_variables: inputs, ..Inputs::default() };
    assert!(!format!("{inputs:?}").contains("s3cret"), "{inputs:?}");
}

/// Creates the first resource, then fails as long as the gate is closed.
const HALF: &str = r#"
variable "dir" {}
resource "terraform_data" "first" {
  input = var.dir
  provisioner "local-exec" {
    command = "echo + first >> ${self.input}/log"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo - first >> ${self.input}/log"
  }
}
resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "test -e ${var.dir}/gate"
  }
}
"#;

#[tokio::test]
async fn partially_created_resources_are_persisted_and_destroyed() {
    let world = World::new();
    world.module("half", "main.tf", HALF);
    let mut order = World::order("half", json!({"dir": world.path()}));
    let provider = world.provider();
    refused(create(&provider, &order).await);
    let values = provider.persist(&order).await.unwrap();
    order.persisted.extend(values);
    let resources = state_of(&order)["resources"].to_string();
    assert!(resources.contains("\"first\""), "{resources}");

    // Another server, on another machine, with the persisted values alone.
    drop(provider);
    std::fs::remove_dir_all(&world.options.work_dir).unwrap();
    let other = world.provider();
    settle(|| other.destroy(&order)).await.unwrap();
    assert_eq!(world.log(), ["+ first", "- first"]);
}

#[tokio::test]
async fn failed_apply_is_resumed() {
    let world = World::new();
    world.module("half", "main.tf", HALF);
    let order = World::order("half", json!({"dir": world.path()}));
    let provider = world.provider();
    refused(create(&provider, &order).await);
    world.open_gate();
    settle(|| status(&provider, &order)).await.unwrap();
    assert_eq!(world.log(), ["+ first"], "existing resources are not recreated");
}

#[tokio::test]
async fn timed_out_run_is_stopped_with_its_children() {
    let mut world = World::new();
    let order = world.steps();
    world.options.timeout = Duration::from_secs(5);
    world.options.grace = Duration::from_secs(5);
    let provider = world.provider();
    // On a loaded machine it may be stopped before it reaches the gate.
    while !world.log().contains(&"begun".to_owned()) {
        let why = unavailable(create(&provider, &order).await);
        assert!(why.contains("timed out after 5 s"), "{why}");
    }
    let values = provider.persist(&order).await.unwrap();
    assert!(values[STATE].reveal().contains("\"first\""), "created resources are known");
    let gate = world.path().join("gate").display().to_string();
    assert!(!is_running(&gate), "its program was stopped, too");
}

/// Whether any process has this text in its command line.
pub(crate) fn is_running(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(text))
}

#[tokio::test]
async fn missing_program_is_reported_with_its_setting() {
    let mut world = World::new();
    let order = world.steps();
    world.options.program = world.path().join("no-such-terraform");
    let provider = world.provider();
    let why = unavailable(create(&provider, &order).await);
    assert!(why.starts_with("cannot start ") && why.contains("no-such-terraform"), "{why}");
    assert!(why.contains("--terraform-program"), "{why}");
    going(status(&provider, &order).await);
}

#[tokio::test]
async fn backend_of_a_module_is_not_used() {
    let world = World::new();
    let elsewhere = world.path().join("elsewhere.tfstate");
    let text = format!(
        "terraform {{\n backend \"local\" {{\n  path = \"{}\"\n }}\n}}\nresource \"terraform_data\" \"x\" {{}}\n",
        elsewhere.display()
    );
    world.module("own", "main.tf", &text);
    let (provider, mut order) = (world.provider(), World::order("own", json!({})));
    create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    assert!(order.persisted[STATE].reveal().contains("terraform_data"));
    assert!(!elsewhere.exists());
}

#[tokio::test]
async fn invalid_state_is_not_overwritten() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    order.persisted.insert(STATE.into(), Secret::new("{\"version\": 4, \"ser"));
    let why = refused(create(&provider, &order).await);
    assert!(why.contains("state of the module steps is invalid"), "{why}");
    let answer = settle(|| provider.destroy(&order)).await;
    assert!(answer.is_err(), "it may have resources: {answer:?}");
    assert!(world.log().is_empty());
}

#[tokio::test]
async fn key_must_be_a_plain_name() {
    let world = World::new();
    let runner = Runner::new(world.options.clone());
    for key in ["..", "a/b", "", "/etc"] {
        assert!(runner.workspace(key, Inputs::default()).is_err(), "{key}");
    }
}

#[tokio::test]
async fn missing_module_can_still_destroy_its_resources() {
    let world = World::new();
    world.open_gate();
    let (provider, order) = (world.provider(), world.steps());
    create(&provider, &order).await.unwrap();
    std::fs::remove_dir_all(world.options.module_dir.join("steps")).unwrap();
    let done = settle(|| provider.destroy(&order)).await;
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
}

#[tokio::test]
async fn cluster_with_a_failed_apply_is_not_done() {
    let world = World::new();
    let module = |value: &str| {
        let text = format!("output \"id\" {{\n value = {value}\n}}\n");
        world.module("name", "main.tf", &text);
    };
    module("\"x\"");
    let (provider, mut order) = (world.provider(), World::order("name", json!({})));
    create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    module("var.nowhere");
    refused(create(&provider, &order).await);
    let next = world.provider();
    going(status(&next, &order).await);
    refused(settle(|| status(&next, &order)).await);
    module("\"y\"");
    let made = settle(|| status(&next, &order)).await.unwrap();
    assert_eq!(made.outputs["id"], "y");
}
