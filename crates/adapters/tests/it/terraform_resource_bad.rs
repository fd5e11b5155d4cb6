//! Modules that print secrets, write too much, escape their folder, or are invalid.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use port::{Operation, Progress};
use serde_json::{Value, json};

use super::kubernetes::{refused, unavailable};
use super::terraform::{PASSWORD, PATIENCE};
use super::terraform_resource::{Fixture, apply, change, create, line, plan, settle, with};

/// Prints all its values in a way that Terraform does not recognize as secret.
const LEAK: &str = r#"
variable "dir" {}
variable "password" {}
variable "pin" {
  sensitive = true
}
variable "built_in" {
  default   = "built-in-s3cret"
  sensitive = true
}
resource "terraform_data" "made" {
  input = sensitive("made-s3cret")
}
resource "terraform_data" "leak" {
  triggers_replace = [var.password, var.pin]
  provisioner "local-exec" {
    command = "echo ${var.password} ${nonsensitive(var.pin)} ${nonsensitive(var.built_in)} ${base64encode(var.password)} made-s3cret"
  }
}
output "plain" {
  value = "seen"
}
output "hidden" {
  value     = "hidden-s3cret"
  sensitive = true
}
output "careless" {
  value = { url = ["db://${var.password}@host"] }
}
"#;

#[tokio::test]
async fn printed_secrets_are_redacted() {
    let mut fixture = Fixture::new();
    fixture.file("leak/main.tf", LEAK);
    let executor = fixture.executor();
    let variables = |pin: &str| json!({"dir": fixture.path(), "password": "vari-s3cret", "pin": format!("{pin}-s3cret")});
    let mut task = fixture.task("leak", variables("one"));
    let planned = plan(&executor, &mut task).await.unwrap();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(Value::Object(made.outputs), json!({"plain": "seen"}));
    let log = task.log.drain().join("\n");
    assert!(log.contains("Output hidden is sensitive and not exported."), "{log}");
    assert!(log.contains("Output careless contains a secret"), "{log}");
    assert!(log.contains("(local-exec): ••• ••• ••• ••• •••"), "{log}");
    check(&log, &planned);
    assert!(task.persisted["state"].reveal().contains("vari-s3cret"), "the state contains it");

    change(&mut task, variables("two"));
    let planned = plan(&executor, &mut task).await.unwrap();
    assert_eq!(planned.len(), 1, "{planned:?}");
    assert!(line(&planned[0]).contains("\"•••\" → \"•••\""), "{planned:?}");
    let observed =
        settle(&executor, &mut task, async |to, task| to.observe(task).await).await.unwrap();
    check(&task.log.drain().join("\n"), &planned);
    check("", &observed.drift);
    let mode_of = |name: &str| {
        let path = fixture.folder(&task).join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    for file in ["terraform.tfstate", "variables.json", "plan", "secrets.json", "hidden.json"] {
        assert_eq!(mode_of(file), 0o600, "{file}");
    }
    for folder in ["", "module", "module/leak"] {
        assert_eq!(mode_of(folder), 0o700, "{folder}");
    }
    assert!(!fixture.folder(&task).join("show.json").exists());
}

#[tokio::test]
async fn earlier_values_of_secrets_are_redacted() {
    let mut fixture = Fixture::new();
    // It is a secret by its name alone, unknown to Terraform.
    let text = "variable \"password\" {}\nresource \"terraform_data\" \"x\" {\n input = \"of ${var.password}\"\n}\n";
    fixture.file("user/main.tf", text);
    let executor = fixture.executor();
    let mut task = fixture.task("user", json!({"password": "old-s3cret"}));
    create(&executor, &mut task).await.unwrap();
    change(&mut task, json!({"password": "new-s3cret"}));
    let planned = plan(&executor, &mut task).await.unwrap();
    assert_eq!(
        planned.iter().map(line).collect::<Vec<_>>(),
        ["terraform_data.x.input: \"of •••\" → \"of •••\""]
    );
    // Values of a failed attempt are in the state, too.
    apply(&executor, &mut task).await.unwrap();
    let made = task.applied.clone();
    change(&mut task, json!({"password": "newest-s3cret"}));
    task.applied = made;
    let planned = plan(&executor, &mut task).await.unwrap();
    assert_eq!(planned.len(), 1, "{planned:?}");
    check(&task.log.drain().join("\n"), &planned);
}

fn check(log: &str, planned: &[model::resource::Difference]) {
    let all = format!("{log}{}", planned.iter().map(line).collect::<String>());
    assert!(!all.contains("s3cret") && !all.contains("czNjcmV0"), "{all}");
}

#[tokio::test]
async fn secrets_are_not_on_command_lines() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    plan(&executor, &mut task).await.unwrap();
    executor.apply(&task).await.unwrap();
    fixture.until_log("begun").await;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let text = std::fs::read(process.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(PASSWORD), "{}: {text}", process.path().display());
        }
    }
    fixture.open_gate();
    let made = apply(&executor, &mut task).await.unwrap();
    assert!(!made.outputs.contains_key("token"));
    assert!(!format!("{:?}", task.log.drain()).contains("s3cret"));
}

#[tokio::test]
async fn errors_in_a_module_name_file_and_line() {
    for (text, message) in [
        ("output \"id\" {\n value = \n}\n", "main.tf:2: Invalid expression"),
        ("output \"id\" {\n value = var.nowhere\n}\n", "main.tf:2: Reference to undeclared input"),
        ("variable \"size\" {}\n", "main.tf:1: No value for required variable"),
    ] {
        let mut fixture = Fixture::new();
        fixture.file("wrong/main.tf", text);
        let mut task = fixture.task("wrong", json!({}));
        let why = refused(create(&fixture.executor(), &mut task).await);
        assert!(why.starts_with("Terraform ") && why.contains(message), "{why}");
        let log = task.log.drain().join("\n");
        assert!(log.contains("Error: "), "the log is complete: {log}");
    }
}

#[tokio::test]
async fn invalid_modules_are_refused_before_a_run() {
    let mut fixture = Fixture::disk();
    let executor = fixture.executor();
    let good = with("disk", json!({}));
    assert_eq!(executor.validate(&good, &Arc::new(fixture.files.clone())), Ok(()));
    for (bad, field) in [
        (with("nowhere", json!({})), "with.source: the template has no .tf file in ./nowhere"),
        (with("../disk", json!({})), "with.source: must be a directory"),
        (with("disk", json!("text")), "with.variables: "),
    ] {
        let why =
            executor.validate(&bad, &Arc::new(fixture.files.clone())).unwrap_err().to_string();
        assert!(why.starts_with(field), "{why}");
    }
    fixture.file("../../evil.tf", "boo");
    let why = executor.validate(&good, &Arc::new(fixture.files.clone())).unwrap_err().to_string();
    assert!(why.contains("must not escape the template"), "{why}");
    // A path that was not validated is not written either.
    let mut task = fixture.task("disk", json!({}));
    let why = refused(create(&executor, &mut task).await);
    assert!(why.contains("must not escape the template"), "{why}");
    let mut search = std::process::Command::new("find");
    let found = search.arg(fixture.path()).args(["-name", "evil.tf"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[tokio::test]
async fn program_with_too_much_output_is_stopped() {
    let mut fixture = Fixture::new();
    let text = "resource \"terraform_data\" \"x\" {\n provisioner \"local-exec\" {\n  command = \"yes $(head -c 20000 /dev/zero | tr '\\\\0' x)\"\n }\n}\n";
    fixture.file("flood/main.tf", text);
    let mut task = fixture.task("flood", json!({}));
    let executor = fixture.executor();
    plan(&executor, &mut task).await.unwrap();
    let began = base::monotonic();
    let why = loop {
        match executor.apply(&task).await {
            Ok(Progress::Running { .. }) => assert!(began.elapsed() < PATIENCE),
            other => break refused(other),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    assert!(why.contains("MiB of output"), "{why}");
    let log = task.log.drain();
    assert!(log.iter().any(|line| line.contains("(Skipped ")), "only a part is logged");
    assert!(log.iter().map(String::len).sum::<usize>() < 8 * 1024 * 1024);
}

#[tokio::test]
async fn variables_and_backend_of_a_module_are_overridden() {
    let mut fixture = Fixture::new();
    let text = "terraform {\n backend \"local\" {\n  path = \"../../elsewhere.tfstate\"\n }\n}\nvariable \"a\" {}\noutput \"a\" {\n value = var.a\n}\n";
    fixture.file("own/main.tf", text);
    fixture.file("own/x.auto.tfvars.json", "{\"a\": \"of the module\"}");
    fixture.file("own/terraform.tfstate", "{}");
    let mut task = fixture.task("own", json!({"a": "of the template"}));
    let made = create(&fixture.executor(), &mut task).await.unwrap();
    assert_eq!(made.outputs["a"], "of the template");
    assert!(task.persisted["state"].reveal().contains("of the template"));
    assert!(!fixture.folder(&task).join("elsewhere.tfstate").exists());
}

#[tokio::test]
async fn module_that_moves_its_state_is_overridden_or_refused() {
    for program in ["PADDOCK_TEST_TERRAFORM", "PADDOCK_TEST_TERRAFORM_011"] {
        let mut fixture = Fixture::with(program);
        let elsewhere = fixture.path().join("elsewhere.tfstate");
        let moved = format!(
            "terraform {{\n backend \"local\" {{\n  path = \"{}\"\n }}\n}}\n",
            elsewhere.display()
        );
        fixture.file("own/main.tf", "output \"a\" {\n value = \"made\"\n}\n");
        fixture.file("own/state_override.tf", &moved);
        let mut task = fixture.task("own", json!({}));
        create(&fixture.executor(), &mut task).await.unwrap();
        assert!(task.persisted["state"].reveal().contains("made"), "{program}");
        // An override file after ours.
        fixture.file("own/~~_override.tf", &moved);
        task.files = Arc::new(fixture.files.clone());
        change(&mut task, json!({}));
        let why = refused(plan(&fixture.executor(), &mut task).await);
        assert!(why.starts_with("the module own configures another backend"), "{program}: {why}");
        assert!(!elsewhere.exists(), "{program}");
    }
}

#[tokio::test]
async fn missing_program_is_reported_with_its_setting() {
    let mut fixture = Fixture::disk();
    fixture.options.program = fixture.path().join("no-such-terraform");
    let mut task = fixture.task("disk", json!({}));
    let why = unavailable(plan(&fixture.executor(), &mut task).await);
    assert!(why.starts_with("cannot start ") && why.contains("no-such-terraform"), "{why}");
    assert!(why.contains("--terraform-program"), "{why}");
}

#[tokio::test]
async fn breaker_of_a_failing_module_opens() {
    let mut fixture = Fixture::disk();
    fixture.file("other/main.tf", "");
    fixture.options.program = fixture.path().join("no-such-terraform");
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({}));
    for _ in 0..5 {
        let why = unavailable(plan(&executor, &mut task).await);
        assert!(why.contains("cannot start"), "{why}");
    }
    let why = unavailable(plan(&executor, &mut task).await);
    let message = "Terraform module disk is unavailable: ";
    assert!(why.starts_with(message) && why.contains("no-such-terraform"), "{why}");
    let why = unavailable(plan(&executor, &mut fixture.task("other", json!({}))).await);
    assert!(!why.contains("Calls resume within"), "{why}");
}
