//! Modules that are wrong, and a Terraform that can't do its part.

use std::time::Duration;

use adapters::terraform::{Inputs, Runner};
use model::Secret;
use model::cluster::{STATE, VARIABLES};
use port::Operation;
use serde_json::json;

use super::kubernetes::{refused, unavailable};
use super::terraform::{PASSWORD, World, going, keep, make, settle, state_of, status};

#[tokio::test]
async fn a_module_that_is_not_there_is_refused_with_those_that_are() {
    let world = World::new();
    let provider = world.provider();
    let why = refused(provider.apply(&World::order("gone", json!({}))).await);
    assert!(why.contains("there are no modules"), "{why}");
    world.module("small", "main.tf", "");
    world.module("large", "main.tf", "");
    std::fs::create_dir(world.path().join("outside")).unwrap();
    let link = world.options.modules.join("link");
    std::os::unix::fs::symlink(world.path().join("outside"), link).unwrap();
    for name in ["gone", "../outside", "..", "", "link", "/etc", "Small"] {
        let why = refused(provider.apply(&World::order(name, json!({}))).await);
        assert!(why.starts_with("terraform.module: "), "{name}: {why}");
        assert!(why.contains("there are large, link, small"), "{name}: {why}");
    }
    assert!(!world.options.work.exists(), "nothing was begun");
}

#[tokio::test]
async fn links_inside_of_a_module_must_not_lead_out() {
    let world = World::new();
    world.module("shared", "main.tf", "output \"id\" {\n value = \"shared\"\n}\n");
    world.module("good", "main.tf", "module \"x\" {\n source = \"./x\"\n}\n");
    world.module("bad", "main.tf", "");
    std::fs::write(world.path().join("private"), "").unwrap();
    let modules = &world.options.modules;
    std::os::unix::fs::symlink(modules.join("shared"), modules.join("good/x")).unwrap();
    std::os::unix::fs::symlink(world.path().join("private"), modules.join("bad/x")).unwrap();
    let provider = world.provider();
    make(&provider, &World::order("good", json!({}))).await.unwrap();
    let why = refused(settle(async || provider.apply(&World::order("bad", json!({}))).await).await);
    assert!(why.contains("x is a link out of the folder of modules"), "{why}");
}

#[tokio::test]
async fn mistakes_in_a_module_name_their_file_and_line() {
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
    for (text, sentence) in cases {
        let world = World::new();
        world.module("wrong", "main.tf", text);
        let why = refused(make(&world.provider(), &World::order("wrong", json!({}))).await);
        assert!(why.starts_with("Terraform can't "), "{why}");
        assert!(why.contains(sentence), "{why}");
    }
}

#[tokio::test]
async fn a_provider_that_can_not_be_fetched_is_tried_again() {
    let world = World::new();
    let text = "terraform {\n required_providers {\n  zz = {\n   source = \"registry.invalid/foo/zz\"\n  }\n }\n}\n";
    world.module("far", "main.tf", text);
    let why = unavailable(make(&world.provider(), &World::order("far", json!({}))).await);
    assert!(why.starts_with("Terraform can't init the module far: "), "{why}");
}

#[tokio::test]
async fn secrets_are_blotted_out_of_what_terraform_says() {
    let world = World::new();
    let text = "variable \"password\" {}\nresource \"terraform_data\" \"x\" {\n provisioner \"local-exec\" {\n  command = \"echo '${var.password}' ${base64encode(var.password)}; exit 3\"\n }\n}\n";
    world.module("leak", "main.tf", text);
    let mut order = World::order("leak", json!({}));
    let secret = json!({"password": PASSWORD}).to_string();
    order.kept.insert(VARIABLES.into(), Secret::new(secret));
    let provider = world.provider();
    let why = refused(make(&provider, &order).await);
    assert!(why.contains("main.tf:3: local-exec provisioner error"), "{why}");
    assert!(why.contains("echo '•••'") && why.contains("exit status 3"), "{why}");
    assert!(!why.contains("s3cret") && !why.contains("czNjcmV0"), "{why}");
    order.kept.insert(VARIABLES.into(), Secret::new("[\"s3cret\"]"));
    let why = refused(provider.apply(&order).await);
    assert!(why.contains("no JSON object") && !why.contains("s3cret"), "{why}");
    let inputs = Inputs::secret_variables(&Secret::new("{\"password\": \"s3cret\"}")).unwrap();
    let inputs = Inputs { secret_variables: inputs, ..Inputs::default() };
    assert!(!format!("{inputs:?}").contains("s3cret"), "{inputs:?}");
}

/// Makes the first thing, then fails as long as the gate is closed.
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
async fn what_was_made_half_way_is_kept_and_destroyed() {
    let world = World::new();
    world.module("half", "main.tf", HALF);
    let mut order = World::order("half", json!({"dir": world.path()}));
    let provider = world.provider();
    refused(make(&provider, &order).await);
    let kept = provider.keep(&order).await.unwrap();
    order.kept.extend(kept);
    let resources = state_of(&order)["resources"].to_string();
    assert!(resources.contains("\"first\""), "{resources}");

    // Another server, on another machine, from what was kept alone.
    drop(provider);
    std::fs::remove_dir_all(&world.options.work).unwrap();
    let other = world.provider();
    settle(|| other.destroy(&order)).await.unwrap();
    assert_eq!(world.log(), ["+ first", "- first"]);
}

#[tokio::test]
async fn what_failed_half_way_goes_on_from_there() {
    let world = World::new();
    world.module("half", "main.tf", HALF);
    let order = World::order("half", json!({"dir": world.path()}));
    let provider = world.provider();
    refused(make(&provider, &order).await);
    world.open_gate();
    settle(|| status(&provider, &order)).await.unwrap();
    assert_eq!(world.log(), ["+ first"], "what there was is not made again");
}

#[tokio::test]
async fn what_takes_too_long_is_stopped_with_all_that_it_started() {
    let mut world = World::new();
    let order = world.steps();
    world.options.timeout = Duration::from_secs(5);
    world.options.grace = Duration::from_secs(5);
    let provider = world.provider();
    // On a loaded machine it may be stopped before it comes to what waits.
    while !world.log().contains(&"begun".to_owned()) {
        let why = unavailable(make(&provider, &order).await);
        assert!(why.contains("took longer than 5 s and was stopped"), "{why}");
    }
    let kept = provider.keep(&order).await.unwrap();
    assert!(kept[STATE].reveal().contains("\"first\""), "what was made is known");
    let gate = world.path().join("gate").display().to_string();
    assert!(!is_running(&gate), "its program was ended, too");
}

/// Does any process have this on its command line?
pub(crate) fn is_running(words: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(words))
}

#[tokio::test]
async fn a_program_that_is_missing_is_named_with_its_setting() {
    let mut world = World::new();
    let order = world.steps();
    world.options.program = world.path().join("no-such-terraform");
    let provider = world.provider();
    let why = unavailable(make(&provider, &order).await);
    assert!(why.contains("no-such-terraform can't be started"), "{why}");
    assert!(why.contains("--terraform-program"), "{why}");
    going(status(&provider, &order).await);
}

#[tokio::test]
async fn a_module_s_own_backend_is_not_used() {
    let world = World::new();
    let elsewhere = world.path().join("elsewhere.tfstate");
    let text = format!(
        "terraform {{\n backend \"local\" {{\n  path = \"{}\"\n }}\n}}\nresource \"terraform_data\" \"x\" {{}}\n",
        elsewhere.display()
    );
    world.module("own", "main.tf", &text);
    let (provider, mut order) = (world.provider(), World::order("own", json!({})));
    make(&provider, &order).await.unwrap();
    keep(&provider, &mut order).await;
    assert!(order.kept[STATE].reveal().contains("terraform_data"));
    assert!(!elsewhere.exists());
}

#[tokio::test]
async fn a_state_that_can_not_be_read_is_not_written_over() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    order.kept.insert(STATE.into(), Secret::new("{\"version\": 4, \"ser"));
    let why = refused(make(&provider, &order).await);
    assert!(why.contains("state of the module steps can't be read"), "{why}");
    let answer = settle(|| provider.destroy(&order)).await;
    assert!(answer.is_err(), "it may hold something: {answer:?}");
    assert!(world.log().is_empty());
}

#[tokio::test]
async fn a_key_is_a_plain_name() {
    let world = World::new();
    let runner = Runner::new(world.options.clone());
    for key in ["..", "a/b", "", "/etc"] {
        assert!(runner.workspace(key, Inputs::default()).is_err(), "{key}");
    }
}

#[tokio::test]
async fn a_module_that_is_gone_can_still_take_away_what_it_made() {
    let world = World::new();
    world.open_gate();
    let (provider, order) = (world.provider(), world.steps());
    make(&provider, &order).await.unwrap();
    std::fs::remove_dir_all(world.options.modules.join("steps")).unwrap();
    let done = settle(|| provider.destroy(&order)).await;
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
}

#[tokio::test]
async fn a_cluster_whose_last_apply_failed_is_not_taken_for_done() {
    let world = World::new();
    let module = |value: &str| {
        let text = format!("output \"id\" {{\n value = {value}\n}}\n");
        world.module("name", "main.tf", &text);
    };
    module("\"x\"");
    let (provider, mut order) = (world.provider(), World::order("name", json!({})));
    make(&provider, &order).await.unwrap();
    keep(&provider, &mut order).await;
    module("var.nowhere");
    refused(make(&provider, &order).await);
    let next = world.provider();
    going(status(&next, &order).await);
    refused(settle(|| status(&next, &order)).await);
    module("\"y\"");
    let made = settle(|| status(&next, &order)).await.unwrap();
    assert_eq!(made.outputs["id"], "y");
}
