//! The executor `terraform` with the real program: modules of templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapters::terraform::{Options, Runner, TerraformExecutor};
use model::resource::Difference;
use model::{ResourceId, Secret, Xid};
use port::{Fault, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::kubernetes::{refused, unavailable};
use super::terraform::{PASSWORD, PATIENCE, STEPS};

/// Two resources, one of which depends on a variable and a file; and a shared module.
const DISK: &str = r#"
variable "dir" {}
variable "size" {}
module "shared" {
  source = "../shared"
}
resource "terraform_data" "disk" {
  input = "${var.size} ${fileexists("${var.dir}/extra")}"
}
resource "terraform_data" "other" {
  input = var.dir
  provisioner "local-exec" {
    command = "echo + other >> ${self.input}/log"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo - other >> ${self.input}/log"
  }
}
output "size" {
  value = terraform_data.disk.output
}
output "shared" {
  value = { of = [module.shared.name] }
}
"#;
const SHARED: &str = "output \"name\" {\n value = \"shared\"\n}\n";

/// The files of a template, and a work folder.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) options: Options,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with("PADDOCK_TEST_TERRAFORM")
    }

    /// With the program of an environment variable.
    pub(crate) fn with(variable: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let program = testing::programs::find("terraform", variable);
        let options = Options::without_modules(program, dir.path().join("work"));
        Self { dir, options, files: BTreeMap::new() }
    }

    /// With the module `disk` and its dependency.
    pub(crate) fn disk() -> Self {
        let mut fixture = Self::new();
        fixture.file("disk/main.tf", DISK);
        fixture.file("shared/main.tf", SHARED);
        fixture
    }

    /// With the module `steps`, whose second resource waits for the gate.
    pub(crate) fn steps() -> (Self, Task) {
        let mut fixture = Self::new();
        fixture.file("steps/main.tf", STEPS);
        let task = fixture.task("steps", json!({"dir": fixture.path(), "password": PASSWORD}));
        (fixture, task)
    }

    /// Uses a fake Terraform: `version` and `init` work, other commands run the script.
    pub(crate) fn fake_program(&mut self, script: &str) {
        let program = self.path().join("fake-terraform");
        let begin = r#"#!/bin/sh
case $1 in
version) echo Terraform v1.9.0; exit;;
init)
    mkdir -p "$TF_DATA_DIR"
    backend="{\"type\": \"local\", \"config\": {\"path\": \"$HOME/terraform.tfstate\"}}"
    echo "{\"backend\": $backend}" > "$TF_DATA_DIR/terraform.tfstate"
    exit;;
esac
"#;
        std::fs::write(&program, format!("{begin}export dir={}\n{script}", self.path().display()))
            .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&program, mode).unwrap();
        self.options.program = program;
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.as_bytes().to_vec());
    }

    pub(crate) fn executor(&self) -> TerraformExecutor {
        TerraformExecutor::new(Runner::new(self.options.clone()))
    }

    pub(crate) fn task(&self, module: &str, variables: Value) -> Task {
        Task {
            with: with(module, variables),
            files: Arc::new(self.files.clone()),
            key: "change-1".into(),
            ..Task::new(ResourceId(Xid::new(1, [0; 5], 1)), module)
        }
    }

    pub(crate) fn folder(&self, task: &Task) -> PathBuf {
        self.options.work_dir.join(task.id.to_string())
    }

    pub(crate) fn open_gate(&self) {
        std::fs::write(self.path().join("gate"), "").unwrap();
    }

    /// The lines that modules logged.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) async fn until_log(&self, line: &str) {
        let began = base::monotonic();
        while !self.log().iter().any(|known| known == line) {
            assert!(began.elapsed() < PATIENCE, "{line} was never written: {:?}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Changes the state in the workspace externally.
    pub(crate) fn edit_state(&self, task: &Task, edit: impl FnOnce(&mut Value)) {
        let path = self.folder(task).join("terraform.tfstate");
        let mut state = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        edit(&mut state);
        std::fs::write(path, state.to_string()).unwrap();
    }
}

pub(crate) fn with(module: &str, variables: Value) -> Map<String, Value> {
    let source = ("source".to_owned(), Value::from(format!("./{module}")));
    Map::from_iter([source, ("variables".to_owned(), variables)])
}

/// The next change of an applied resource.
pub(crate) fn change(task: &mut Task, variables: Value) {
    let module = task.name.clone();
    task.applied = Some(std::mem::replace(&mut task.with, with(&module, variables)));
    task.key = format!("{}+", task.key);
}

/// Persists as the worker does after every call.
pub(crate) async fn persist(executor: &TerraformExecutor, task: &mut Task) {
    let values = executor.persist(task).await.unwrap();
    task.persisted.extend(values);
}

/// Polls until it is done.
pub(crate) async fn settle<T>(
    executor: &TerraformExecutor,
    task: &mut Task,
    ask: impl AsyncFn(&TerraformExecutor, &Task) -> Result<Progress<T>, Fault>,
) -> Result<T, Fault> {
    let began = base::monotonic();
    loop {
        let answer = ask(executor, task).await;
        persist(executor, task).await;
        match answer? {
            Progress::Done(done) => return Ok(done),
            Progress::Running { reason: message, .. } => {
                assert!(began.elapsed() < PATIENCE, "still running: {message}");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn plan(
    executor: &TerraformExecutor,
    task: &mut Task,
) -> Result<Vec<Difference>, Fault> {
    settle(executor, task, async |executor, task| executor.plan(task).await).await
}

pub(crate) async fn apply(executor: &TerraformExecutor, task: &mut Task) -> Result<Outcome, Fault> {
    settle(executor, task, async |executor, task| executor.apply(task).await).await
}

pub(crate) async fn destroy(executor: &TerraformExecutor, task: &mut Task) -> Result<(), Fault> {
    settle(executor, task, async |executor, task| executor.destroy(task).await).await
}

/// Adopts as the worker does: temporary failures are retried.
pub(crate) async fn adopt(
    executor: &TerraformExecutor,
    task: &mut Task,
    what: &str,
) -> Result<Outcome, Fault> {
    let began = base::monotonic();
    loop {
        let answer = executor.adopt(task, what).await;
        persist(executor, task).await;
        match answer {
            Err(Fault::Unavailable(why)) => assert!(began.elapsed() < PATIENCE, "{why}"),
            answer => return answer,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Plans and applies it completely.
pub(crate) async fn create(
    executor: &TerraformExecutor,
    task: &mut Task,
) -> Result<Outcome, Fault> {
    plan(executor, task).await?;
    let made = apply(executor, task).await?;
    task.applied = Some(task.with.clone());
    task.outputs.clone_from(&made.outputs);
    Ok(made)
}

/// Observes until it is done; returns the drift.
pub(crate) async fn drift(executor: &TerraformExecutor, task: &Task) -> Vec<String> {
    let began = base::monotonic();
    let observed = loop {
        match executor.observe(task).await.unwrap() {
            Progress::Running { reason: message, .. } => {
                assert!(began.elapsed() < PATIENCE, "{message}");
            }
            Progress::Done(observed) => break observed,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(observed.unexpected, Vec::<String>::new());
    observed.drift.iter().map(line).collect()
}

pub(crate) fn line(difference: &Difference) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or("-".into(), Value::to_string);
    format!("{}: {} → {}", difference.field, shown(&difference.found), shown(&difference.made))
}

pub(crate) fn state(task: &Task) -> Value {
    serde_json::from_str(task.persisted["state"].reveal()).unwrap()
}

#[tokio::test]
async fn module_is_planned_applied_changed_and_destroyed() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    executor.validate(&task.with, &task.files).unwrap();
    let lines: Vec<_> = plan(&executor, &mut task).await.unwrap().iter().map(line).collect();
    assert_eq!(
        lines[..2],
        ["terraform_data.disk: - → \"exists\"", "terraform_data.other: - → \"exists\""]
    );
    assert_eq!(fixture.log(), Vec::<String>::new(), "a plan creates nothing");
    assert!(!task.persisted.contains_key("state"));

    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(
        Value::Object(made.outputs),
        json!({"size": "1 false", "shared": {"of": ["shared"]}})
    );
    assert_eq!(fixture.log(), ["+ other"]);
    assert_eq!(state(&task)["resources"].as_array().unwrap().len(), 2);
    let log = task.log.drain();
    let has = |text: &str| log.iter().any(|line| line.contains(text));
    assert!(has("terraform_data.disk: Plan to create"), "{log:?}");
    assert!(has("terraform_data.other: Creation complete"), "{log:?}");
    assert!(has("Apply complete! Resources: 2 added"), "{log:?}");
    assert!(!has("\"@message\""), "{log:?}");
    let count = log.iter().filter(|line| line.contains("other: Creating...")).count();
    assert_eq!(count, 1, "each line is logged once: {log:?}");

    change(&mut task, json!({"dir": fixture.path(), "size": 2}));
    let lines: Vec<_> = plan(&executor, &mut task).await.unwrap().iter().map(line).collect();
    assert_eq!(lines, ["terraform_data.disk.input: \"1 false\" → \"2 false\""], "only the change");
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "2 false");
    assert_eq!(fixture.log(), ["+ other"], "the unchanged resource is untouched");

    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(fixture.log(), ["+ other", "- other"]);
    assert!(!fixture.folder(&task).exists());
    assert_eq!(state(&task)["resources"], json!([]), "the persisted state is empty");
    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(fixture.log().len(), 2, "nothing is destroyed twice");
}

#[tokio::test]
async fn plan_is_applied_exactly() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    plan(&executor, &mut task).await.unwrap();
    let planned = fixture.folder(&task).join("plan");
    assert!(planned.exists(), "it is retained for the apply");
    apply(&executor, &mut task).await.unwrap();
    let second_plan = fixture.folder(&task).join("plan.log");
    assert!(!second_plan.exists(), "there was no second plan");
    assert!(!planned.exists(), "it is applied once");

    // The plan of one change is not used for another.
    change(&mut task, json!({"dir": fixture.path(), "size": 2}));
    plan(&executor, &mut task).await.unwrap();
    change(&mut task, json!({"dir": fixture.path(), "size": 3}));
    let made = apply(&executor, &mut task).await.unwrap();
    assert!(second_plan.exists());
    assert_eq!(made.outputs["size"], "3 false");

    // A plan that was lost with its workspace is recreated.
    change(&mut task, json!({"dir": fixture.path(), "size": 4}));
    plan(&executor, &mut task).await.unwrap();
    std::fs::remove_dir_all(&fixture.options.work_dir).unwrap();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "4 false");
    assert_eq!(fixture.log(), ["+ other"], "from the persisted state");
}

#[tokio::test]
async fn stale_plan_is_recreated() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    let edit = |state: &mut Value| {
        state["serial"] = json!(state["serial"].as_u64().unwrap() + 1);
        state["outputs"]["size"]["value"] = json!("touched");
    };
    // Detected by Paddock.
    change(&mut task, json!({"dir": fixture.path(), "size": 2}));
    plan(&executor, &mut task).await.unwrap();
    fixture.edit_state(&task, edit);
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "2 false");
    // Detected by Terraform alone: the preconditions match.
    change(&mut task, json!({"dir": fixture.path(), "size": 3}));
    plan(&executor, &mut task).await.unwrap();
    fixture.edit_state(&task, edit);
    let now = std::fs::read_to_string(fixture.folder(&task).join("terraform.tfstate")).unwrap();
    let now: Value = serde_json::from_str(&now).unwrap();
    let info = fixture.folder(&task).join("plan.json");
    let mut edited: Value = serde_json::from_str(&std::fs::read_to_string(&info).unwrap()).unwrap();
    edited["state"] = json!(format!("{} {}", now["lineage"], now["serial"]));
    std::fs::write(&info, edited.to_string()).unwrap();
    task.log.drain();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "3 false");
    let log = task.log.drain();
    assert!(log.iter().any(|line| line.contains("Saved plan is stale")), "{log:?}");
}

#[tokio::test]
async fn external_changes_are_drift_by_field() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    task.log.drain();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());
    // In the environment.
    std::fs::write(fixture.path().join("extra"), "").unwrap();
    let field = "terraform_data.disk.input: \"1 false\" → \"1 true\"";
    assert_eq!(drift(&executor, &task).await, [field]);
    std::fs::remove_file(fixture.path().join("extra")).unwrap();
    // In the state, as a provider that reads another size; and a deleted resource.
    fixture.edit_state(&task, |state| {
        state["serial"] = json!(9);
        state["resources"][0]["instances"][0]["attributes"]["input"]["value"] = json!("7 false");
        state["resources"].as_array_mut().unwrap().remove(1);
    });
    let lines = drift(&executor, &task).await;
    let expected = [
        "terraform_data.disk.input: \"7 false\" → \"1 false\"",
        "terraform_data.other: - → \"exists\"",
    ];
    assert_eq!(lines, expected);
    assert_eq!(fixture.log(), ["+ other"], "observing changes nothing");
    assert_eq!(task.log.drain(), Vec::<String>::new(), "and logs nothing");
    // Applying the same spec repairs it.
    change(&mut task, json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());
}

#[tokio::test]
async fn empty_machine_continues_from_the_persisted_values() {
    let fixture = Fixture::disk();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&fixture.executor(), &mut task).await.unwrap();
    let elsewhere = |task: &mut Task| {
        std::fs::remove_dir_all(&fixture.options.work_dir).unwrap();
        task.fence += 1;
        fixture.executor()
    };
    let other = elsewhere(&mut task);
    assert_eq!(drift(&other, &task).await, Vec::<String>::new());
    change(&mut task, json!({"dir": fixture.path(), "size": 2}));
    let made = create(&other, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "2 false");
    assert_eq!(fixture.log(), ["+ other"], "existing resources are not recreated");
    destroy(&elsewhere(&mut task), &mut task).await.unwrap();
    assert_eq!(fixture.log(), ["+ other", "- other"]);
}

#[tokio::test]
async fn provider_versions_are_persisted_until_the_module_changes() {
    let mut fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    let lock = fixture.folder(&task).join("module/disk/.terraform.lock.hcl");
    std::fs::write(&lock, "# chosen\n").unwrap();
    persist(&executor, &mut task).await;
    std::fs::remove_dir_all(&fixture.options.work_dir).unwrap();
    plan(&executor, &mut task).await.unwrap();
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "# chosen\n");
    fixture.file("disk/more.tf", "# another version\n");
    task.files = Arc::new(fixture.files.clone());
    change(&mut task, json!({"dir": fixture.path(), "size": 2}));
    plan(&executor, &mut task).await.unwrap();
    assert!(!lock.exists(), "it may need others");
}

#[tokio::test]
async fn existing_object_is_adopted_and_then_changed() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    let what = "terraform_data.disk=known-7";
    // As the worker does: planned first, then adopted before every apply.
    plan(&executor, &mut task).await.unwrap();
    let why = unavailable(executor.adopt(&task, what).await);
    assert_eq!(why, "Terraform is importing existing objects", "it does not block");
    adopt(&executor, &mut task, what).await.unwrap();
    assert!(task.persisted["state"].reveal().contains("known-7"), "persisted before the apply");
    executor.apply(&task).await.unwrap();
    let made = settle(&executor, &mut task, async |executor, task| {
        executor.adopt(task, what).await?;
        executor.apply(task).await
    });
    let made = made.await.unwrap();
    assert_eq!(made.outputs["size"], "1 false");
    let attributes = &state(&task)["resources"][0]["instances"][0]["attributes"];
    assert_eq!(attributes["id"], "known-7", "it was imported, not created");
    let log = task.log.drain();
    assert!(log.iter().any(|line| line.contains("Import prepared")), "{log:?}");
    adopt(&executor, &mut task, what).await.unwrap();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());
    for (what, message) in [
        ("terraform_data.nowhere=1", "nowhere"),
        ("disk", "address=id"),
        ("-config=/etc", "address=id"),
    ] {
        let why = refused(adopt(&executor, &mut task, what).await);
        assert!(why.contains(message), "{why}");
    }
}

#[tokio::test]
async fn failed_apply_is_persisted_and_resumed() {
    let mut fixture = Fixture::new();
    let text = "variable \"dir\" {}\nresource \"terraform_data\" \"first\" {\n provisioner \"local-exec\" {\n  command = \"echo + first >> ${var.dir}/log\"\n }\n}\nresource \"terraform_data\" \"second\" {\n depends_on = [terraform_data.first]\n provisioner \"local-exec\" {\n  command = \"test -e ${var.dir}/gate\"\n }\n}\n";
    fixture.file("half/main.tf", text);
    let mut task = fixture.task("half", json!({"dir": fixture.path()}));
    let why = refused(create(&fixture.executor(), &mut task).await);
    assert!(why.contains("main.tf:9: local-exec provisioner error"), "{why}");
    assert!(state(&task)["resources"].to_string().contains("\"first\""));
    std::fs::remove_dir_all(&fixture.options.work_dir).unwrap();
    fixture.open_gate();
    create(&fixture.executor(), &mut task).await.unwrap();
    assert_eq!(fixture.log(), ["+ first"]);
}

#[tokio::test]
async fn resource_without_its_files_is_destroyed_with_the_written_ones() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    task.files = Arc::default();
    // The spec has no values either: the last one is persisted.
    task.with = with("disk", json!("{{ nothing }}"));
    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(fixture.log(), ["+ other", "- other"]);
}

#[tokio::test]
async fn nothing_to_destroy_is_done_at_once() {
    let (fixture, mut task) = Fixture::steps();
    task.persisted.insert("state".into(), Secret::new(""));
    assert_eq!(fixture.executor().destroy(&task).await, Ok(Progress::Done(())));
    assert_eq!(fixture.executor().cancel(&task).await, Ok(true));
    assert!(!fixture.options.work_dir.exists());
}
