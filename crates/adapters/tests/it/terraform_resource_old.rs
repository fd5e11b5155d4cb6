//! The executor of Terraform with the program of old, 0.11, which has another command line.
//!
//! It makes nothing without a provider, and none can be had here: what it does is run, with outputs.

use port::Operation;
use serde_json::{Value, json};

use super::kubernetes::refused;
use super::terraform_resource::{Bed, apply, change, destroy, drift, make, plan, state};

/// In the language of then.
const NAMES: &str = r#"
terraform {
  backend "local" {
    path = "elsewhere.tfstate"
  }
}
variable "name" {}
variable "password" {}
output "name" {
  value = "${var.name}"
}
output "careless" {
  value = "x-${var.password}"
}
output "hidden" {
  value     = "hidden-s3cret"
  sensitive = true
}
"#;

fn bed() -> Bed {
    let mut bed = Bed::with("PADDOCK_TEST_TERRAFORM_011");
    bed.file("names/main.tf", NAMES);
    bed
}

#[tokio::test]
async fn a_module_of_old_is_planned_made_changed_and_destroyed() {
    let bed = bed();
    let executor = bed.executor();
    let mut task = bed.task("names", json!({"name": "one", "password": "old-s3cret"}));
    assert_eq!(plan(&executor, &mut task).await, Ok(vec![]), "it does not count outputs");
    assert!(bed.folder(&task).join("plan").exists());
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(Value::Object(made.outputs), json!({"name": "one"}));
    assert!(!bed.folder(&task).join("plan.log").exists(), "the plan was applied");
    assert_eq!(state(&task)["version"], 3);
    task.applied = Some(task.with.clone());
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());

    // On another machine.
    std::fs::remove_dir_all(&bed.options.work).unwrap();
    let executor = bed.executor();
    change(&mut task, json!({"name": "two", "password": "old-s3cret"}));
    let made = make(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["name"], "two");
    assert_eq!(state(&task)["serial"], 2, "from the state that was kept");
    let said = task.log.take().join("\n");
    assert!(said.contains("Apply complete! Resources: 0 added"), "{said}");
    assert!(said.contains("The output hidden is sensitive"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");

    destroy(&executor, &mut task).await.unwrap();
    assert!(!bed.folder(&task).exists());
}

#[tokio::test]
async fn what_is_destroyed_runs_the_command_of_old() {
    let bed = bed();
    let executor = bed.executor();
    let mut task = bed.task("names", json!({"name": "one", "password": "old-s3cret"}));
    make(&executor, &mut task).await.unwrap();
    // A thing of a provider that can't be had: destroying has to look at it, and can't.
    bed.edit_state(&task, |state| {
        state["serial"] = json!(9);
        state["modules"][0]["resources"] = json!({"far_thing.x": {"type": "far_thing",
            "depends_on": [], "primary": {"id": "7", "attributes": {"id": "7"}, "meta": {},
            "tainted": false}, "deposed": [], "provider": "provider.far"}});
    });
    let answer = destroy(&executor, &mut task).await;
    assert!(answer.is_err(), "{answer:?}");
    assert!(bed.folder(&task).exists(), "nothing is forgotten");
    bed.edit_state(&task, |state| {
        state["serial"] = json!(12);
        state["modules"][0]["resources"] = json!({});
    });
    destroy(&executor, &mut task).await.unwrap();
    assert!(!bed.folder(&task).exists());
}

#[tokio::test]
async fn a_mistake_in_a_module_of_old_is_told() {
    let mut bed = bed();
    bed.file("names/bad.tf", "output \"x\" { value = }\n");
    let mut task = bed.task("names", json!({"name": "one", "password": "old-s3cret"}));
    let executor = bed.executor();
    let why = refused(make(&executor, &mut task).await);
    assert!(why.contains("bad.tf"), "{why}");
    assert_eq!(executor.cancel(&task).await, Ok(true));
}
