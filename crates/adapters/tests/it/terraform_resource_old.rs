//! The executor `terraform` with version 0.11, which has another command line.
//!
//! It creates nothing without a provider, and none is available here: these modules have only
//! outputs.

use port::Operation;
use serde_json::{Value, json};

use super::kubernetes::refused;
use super::terraform_resource::{Fixture, apply, change, create, destroy, drift, plan, state};

/// In the language of version 0.11.
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

fn fixture() -> Fixture {
    let mut fixture = Fixture::with("PADDOCK_TEST_TERRAFORM_011");
    fixture.file("names/main.tf", NAMES);
    fixture
}

#[tokio::test]
async fn old_module_is_planned_applied_changed_and_destroyed() {
    let fixture = fixture();
    let executor = fixture.executor();
    let mut task = fixture.task("names", json!({"name": "one", "password": "old-s3cret"}));
    assert_eq!(plan(&executor, &mut task).await, Ok(vec![]), "it ignores outputs");
    assert!(fixture.folder(&task).join("plan").exists());
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(Value::Object(made.outputs), json!({"name": "one"}));
    assert!(!fixture.folder(&task).join("plan.log").exists(), "the plan was applied");
    assert_eq!(state(&task)["version"], 3);
    task.applied = Some(task.with.clone());
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());

    // On another machine.
    std::fs::remove_dir_all(&fixture.options.work_dir).unwrap();
    let executor = fixture.executor();
    change(&mut task, json!({"name": "two", "password": "old-s3cret"}));
    let made = create(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["name"], "two");
    assert_eq!(state(&task)["serial"], 2, "from the persisted state");
    let log = task.log.drain().join("\n");
    assert!(log.contains("Apply complete! Resources: 0 added"), "{log}");
    assert!(log.contains("Output hidden is sensitive"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");

    destroy(&executor, &mut task).await.unwrap();
    assert!(!fixture.folder(&task).exists());
}

#[tokio::test]
async fn destroy_uses_the_old_command() {
    let fixture = fixture();
    let executor = fixture.executor();
    let mut task = fixture.task("names", json!({"name": "one", "password": "old-s3cret"}));
    create(&executor, &mut task).await.unwrap();
    // A resource of an unavailable provider: destroy has to read it, and fails.
    fixture.edit_state(&task, |state| {
        state["serial"] = json!(9);
        state["modules"][0]["resources"] = json!({"far_thing.x": {"type": "far_thing",
            "depends_on": [], "primary": {"id": "7", "attributes": {"id": "7"}, "meta": {},
            "tainted": false}, "deposed": [], "provider": "provider.far"}});
    });
    let answer = destroy(&executor, &mut task).await;
    assert!(answer.is_err(), "{answer:?}");
    assert!(fixture.folder(&task).exists(), "nothing is lost");
    fixture.edit_state(&task, |state| {
        state["serial"] = json!(12);
        state["modules"][0]["resources"] = json!({});
    });
    destroy(&executor, &mut task).await.unwrap();
    assert!(!fixture.folder(&task).exists());
}

#[tokio::test]
async fn error_in_an_old_module_is_reported() {
    let mut fixture = fixture();
    fixture.file("names/bad.tf", "output \"x\" { value = }\n");
    let mut task = fixture.task("names", json!({"name": "one", "password": "old-s3cret"}));
    let executor = fixture.executor();
    let why = refused(create(&executor, &mut task).await);
    assert!(why.contains("bad.tf"), "{why}");
    assert_eq!(executor.cancel(&task).await, Ok(true));
}
