//! Modules that print secrets, print without end, lead out of their folder, or are wrong.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use port::{Operation, Progress};
use serde_json::{Value, json};

use super::kubernetes::{refused, unavailable};
use super::terraform::{PASSWORD, PATIENCE};
use super::terraform_resource::{Bed, apply, change, line, make, plan, settle, with};

/// Prints all that it knows, in a way in which Terraform does not see that it is secret.
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
async fn a_module_that_prints_secrets_is_contained() {
    let mut bed = Bed::new();
    bed.file("leak/main.tf", LEAK);
    let executor = bed.executor();
    let variables = |pin: &str| json!({"dir": bed.path(), "password": "vari-s3cret", "pin": format!("{pin}-s3cret")});
    let mut task = bed.task("leak", variables("one"));
    let planned = plan(&executor, &mut task).await.unwrap();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(Value::Object(made.outputs), json!({"plain": "seen"}));
    let said = task.log.take().join("\n");
    assert!(said.contains("The output hidden is sensitive: it stays in the state."), "{said}");
    assert!(said.contains("The output careless has a secret in it"), "{said}");
    assert!(said.contains("(local-exec): ••• ••• ••• ••• •••"), "{said}");
    check(&said, &planned);
    assert!(task.kept["state"].reveal().contains("vari-s3cret"), "the state has it, as ever");

    change(&mut task, variables("two"));
    let planned = plan(&executor, &mut task).await.unwrap();
    assert_eq!(planned.len(), 1, "{planned:?}");
    assert!(line(&planned[0]).contains("\"•••\" → \"•••\""), "{planned:?}");
    let seen = settle(&executor, &mut task, async |to, task| to.observe(task).await).await.unwrap();
    check(&task.log.take().join("\n"), &planned);
    check("", &seen.drift);
    let rights = |name: &str| {
        let path = bed.folder(&task).join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    for file in ["terraform.tfstate", "variables.json", "plan", "secrets.json", "hidden.json"] {
        assert_eq!(rights(file), 0o600, "{file}");
    }
    for folder in ["", "module", "module/leak"] {
        assert_eq!(rights(folder), 0o700, "{folder}");
    }
    assert!(!bed.folder(&task).join("show.json").exists());
}

#[tokio::test]
async fn what_a_secret_was_before_is_not_seen_either() {
    let mut bed = Bed::new();
    // It is a secret by its name alone: Terraform does not know.
    let text = "variable \"password\" {}\nresource \"terraform_data\" \"x\" {\n input = \"of ${var.password}\"\n}\n";
    bed.file("user/main.tf", text);
    let executor = bed.executor();
    let mut task = bed.task("user", json!({"password": "old-s3cret"}));
    make(&executor, &mut task).await.unwrap();
    change(&mut task, json!({"password": "new-s3cret"}));
    let planned = plan(&executor, &mut task).await.unwrap();
    assert_eq!(
        planned.iter().map(line).collect::<Vec<_>>(),
        ["terraform_data.x.input: \"of •••\" → \"of •••\""]
    );
    // What was only tried is in the state, too.
    apply(&executor, &mut task).await.unwrap();
    let made = task.applied.clone();
    change(&mut task, json!({"password": "newest-s3cret"}));
    task.applied = made;
    let planned = plan(&executor, &mut task).await.unwrap();
    assert_eq!(planned.len(), 1, "{planned:?}");
    check(&task.log.take().join("\n"), &planned);
}

fn check(said: &str, planned: &[model::resource::Difference]) {
    let all = format!("{said}{}", planned.iter().map(line).collect::<String>());
    assert!(!all.contains("s3cret") && !all.contains("czNjcmV0"), "{all}");
}

#[tokio::test]
async fn secrets_are_on_no_command_line() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    plan(&executor, &mut task).await.unwrap();
    executor.apply(&task).await.unwrap();
    bed.until_log("begun").await;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let text = std::fs::read(process.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(PASSWORD), "{}: {text}", process.path().display());
        }
    }
    bed.open_gate();
    let made = apply(&executor, &mut task).await.unwrap();
    assert!(!made.outputs.contains_key("token"));
    assert!(!format!("{:?}", task.log.take()).contains("s3cret"));
}

#[tokio::test]
async fn mistakes_in_a_module_name_their_file_and_line() {
    for (text, sentence) in [
        ("output \"id\" {\n value = \n}\n", "main.tf:2: Invalid expression"),
        ("output \"id\" {\n value = var.nowhere\n}\n", "main.tf:2: Reference to undeclared input"),
        ("variable \"size\" {}\n", "main.tf:1: No value for required variable"),
    ] {
        let mut bed = Bed::new();
        bed.file("wrong/main.tf", text);
        let mut task = bed.task("wrong", json!({}));
        let why = refused(make(&bed.executor(), &mut task).await);
        assert!(why.starts_with("Terraform can't ") && why.contains(sentence), "{why}");
        let said = task.log.take().join("\n");
        assert!(said.contains("Error: "), "the log has all of it: {said}");
    }
}

#[tokio::test]
async fn what_can_not_be_is_refused_before_anything_is_begun() {
    let mut bed = Bed::disk();
    let executor = bed.executor();
    let good = with("disk", json!({}));
    assert_eq!(executor.validate(&good, &Arc::new(bed.files.clone())), Ok(()));
    for (bad, field) in [
        (with("nowhere", json!({})), "with.source: there is no file .tf in ./nowhere"),
        (with("../disk", json!({})), "with.source: must be a folder"),
        (with("disk", json!("text")), "with.variables: "),
    ] {
        let why = executor.validate(&bad, &Arc::new(bed.files.clone())).unwrap_err().to_string();
        assert!(why.starts_with(field), "{why}");
    }
    bed.file("../../evil.tf", "boo");
    let why = executor.validate(&good, &Arc::new(bed.files.clone())).unwrap_err().to_string();
    assert!(why.contains("must not lead out of the template"), "{why}");
    // Should one come this far, it is not written.
    let mut task = bed.task("disk", json!({}));
    let why = refused(make(&executor, &mut task).await);
    assert!(why.contains("must not lead out of the template"), "{why}");
    let mut search = std::process::Command::new("find");
    let found = search.arg(bed.path()).args(["-name", "evil.tf"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[tokio::test]
async fn a_program_that_writes_without_end_is_stopped() {
    let mut bed = Bed::new();
    let text = "resource \"terraform_data\" \"x\" {\n provisioner \"local-exec\" {\n  command = \"yes $(head -c 20000 /dev/zero | tr '\\\\0' x)\"\n }\n}\n";
    bed.file("flood/main.tf", text);
    let mut task = bed.task("flood", json!({}));
    let executor = bed.executor();
    plan(&executor, &mut task).await.unwrap();
    let began = base::monotonic();
    let why = loop {
        match executor.apply(&task).await {
            Ok(Progress::Running { .. }) => assert!(began.elapsed() < PATIENCE),
            other => break refused(other),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    assert!(why.contains("MiB and was stopped"), "{why}");
    let said = task.log.take();
    assert!(said.iter().any(|line| line.contains("are left out")), "only a part is told");
    assert!(said.iter().map(String::len).sum::<usize>() < 8 * 1024 * 1024);
}

#[tokio::test]
async fn the_module_s_own_variables_and_backend_do_not_count() {
    let mut bed = Bed::new();
    let text = "terraform {\n backend \"local\" {\n  path = \"../../elsewhere.tfstate\"\n }\n}\nvariable \"a\" {}\noutput \"a\" {\n value = var.a\n}\n";
    bed.file("own/main.tf", text);
    bed.file("own/x.auto.tfvars.json", "{\"a\": \"of the module\"}");
    bed.file("own/terraform.tfstate", "{}");
    let mut task = bed.task("own", json!({"a": "of the template"}));
    let made = make(&bed.executor(), &mut task).await.unwrap();
    assert_eq!(made.outputs["a"], "of the template");
    assert!(task.kept["state"].reveal().contains("of the template"));
    assert!(!bed.folder(&task).join("elsewhere.tfstate").exists());
}

#[tokio::test]
async fn a_module_that_moves_its_state_is_kept_from_it_or_refused() {
    for program in ["PADDOCK_TEST_TERRAFORM", "PADDOCK_TEST_TERRAFORM_011"] {
        let mut bed = Bed::with(program);
        let elsewhere = bed.path().join("elsewhere.tfstate");
        let moved = format!(
            "terraform {{\n backend \"local\" {{\n  path = \"{}\"\n }}\n}}\n",
            elsewhere.display()
        );
        bed.file("own/main.tf", "output \"a\" {\n value = \"made\"\n}\n");
        bed.file("own/state_override.tf", &moved);
        let mut task = bed.task("own", json!({}));
        make(&bed.executor(), &mut task).await.unwrap();
        assert!(task.kept["state"].reveal().contains("made"), "{program}");
        // One that comes after ours.
        bed.file("own/~~_override.tf", &moved);
        task.files = Arc::new(bed.files.clone());
        change(&mut task, json!({}));
        let why = refused(plan(&bed.executor(), &mut task).await);
        assert!(why.starts_with("the module own keeps its state elsewhere"), "{program}: {why}");
        assert!(!elsewhere.exists(), "{program}");
    }
}

#[tokio::test]
async fn a_program_that_is_missing_is_named_with_its_setting() {
    let mut bed = Bed::disk();
    bed.options.program = bed.path().join("no-such-terraform");
    let mut task = bed.task("disk", json!({}));
    let why = unavailable(plan(&bed.executor(), &mut task).await);
    assert!(why.contains("no-such-terraform can't be started"), "{why}");
    assert!(why.contains("--terraform-program"), "{why}");
}

#[tokio::test]
async fn a_module_that_can_not_be_run_for_now_is_left_alone() {
    let mut bed = Bed::disk();
    bed.file("other/main.tf", "");
    bed.options.program = bed.path().join("no-such-terraform");
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({}));
    for _ in 0..5 {
        let why = unavailable(plan(&executor, &mut task).await);
        assert!(why.contains("can't be started"), "{why}");
    }
    let why = unavailable(plan(&executor, &mut task).await);
    let says = "Terraform's module disk is not asked again before 30s have passed: ";
    assert!(why.starts_with(says) && why.contains("no-such-terraform"), "{why}");
    let why = unavailable(plan(&executor, &mut bed.task("other", json!({}))).await);
    assert!(!why.contains("is not asked again"), "{why}");
}
