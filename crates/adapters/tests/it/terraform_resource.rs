//! The executor of Terraform with the real program: modules that come with templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapters::terraform::{Modules, Options, Runner};
use model::resource::Difference;
use model::{ResourceId, Secret, Xid};
use port::{Fault, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::kubernetes::{refused, unavailable};
use super::terraform::{PASSWORD, PATIENCE, STEPS};

/// Two things, one of which changes with a variable and with a file; and a module beside it.
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

/// Files of a template, and a place to work.
pub(crate) struct Bed {
    pub(crate) dir: TempDir,
    pub(crate) options: Options,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::with("PADDOCK_TEST_TERRAFORM")
    }

    /// With the program that a variable names.
    pub(crate) fn with(variable: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let program = testing::programs::find("terraform", variable);
        let options = Options::without_modules(program, dir.path().join("work"));
        Self { dir, options, files: BTreeMap::new() }
    }

    /// With the module `disk`, and what it needs.
    pub(crate) fn disk() -> Self {
        let mut bed = Self::new();
        bed.file("disk/main.tf", DISK);
        bed.file("shared/main.tf", SHARED);
        bed
    }

    /// With the module `steps`, whose second thing waits for the gate.
    pub(crate) fn steps() -> (Self, Task) {
        let mut bed = Self::new();
        bed.file("steps/main.tf", STEPS);
        let task = bed.task("steps", json!({"dir": bed.path(), "password": PASSWORD}));
        (bed, task)
    }

    /// A program that plays Terraform: it begins as that does, and then does what the script says.
    pub(crate) fn play(&mut self, script: &str) {
        let program = self.path().join("player");
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
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&program, rights).unwrap();
        self.options.program = program;
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.as_bytes().to_vec());
    }

    pub(crate) fn executor(&self) -> Modules {
        Modules::new(Runner::new(self.options.clone()))
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
        self.options.work.join(task.id.to_string())
    }

    pub(crate) fn open_gate(&self) {
        std::fs::write(self.path().join("gate"), "").unwrap();
    }

    /// What modules have written down.
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

    /// Changes the state in the folder as somebody else would.
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

/// The next change of a resource: what it was made as is known.
pub(crate) fn change(task: &mut Task, variables: Value) {
    let module = task.name.clone();
    task.applied = Some(std::mem::replace(&mut task.with, with(&module, variables)));
    task.key = format!("{}+", task.key);
}

/// As the worker does: what shall be kept is kept after every call.
pub(crate) async fn keep(executor: &Modules, task: &mut Task) {
    let kept = executor.keep(task).await.unwrap();
    task.kept.extend(kept);
}

/// Asks until it does not go on.
pub(crate) async fn settle<T>(
    executor: &Modules,
    task: &mut Task,
    ask: impl AsyncFn(&Modules, &Task) -> Result<Progress<T>, Fault>,
) -> Result<T, Fault> {
    let began = base::monotonic();
    loop {
        let answer = ask(executor, task).await;
        keep(executor, task).await;
        match answer? {
            Progress::Done(done) => return Ok(done),
            Progress::Running { reason: message, .. } => {
                assert!(began.elapsed() < PATIENCE, "it goes on: {message}");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn plan(executor: &Modules, task: &mut Task) -> Result<Vec<Difference>, Fault> {
    settle(executor, task, async |executor, task| executor.plan(task).await).await
}

pub(crate) async fn apply(executor: &Modules, task: &mut Task) -> Result<Outcome, Fault> {
    settle(executor, task, async |executor, task| executor.apply(task).await).await
}

pub(crate) async fn destroy(executor: &Modules, task: &mut Task) -> Result<(), Fault> {
    settle(executor, task, async |executor, task| executor.destroy(task).await).await
}

/// Takes over what exists, as the worker does: what passes is asked again.
pub(crate) async fn adopt(
    executor: &Modules,
    task: &mut Task,
    what: &str,
) -> Result<Outcome, Fault> {
    let began = base::monotonic();
    loop {
        let answer = executor.adopt(task, what).await;
        keep(executor, task).await;
        match answer {
            Err(Fault::Unavailable(why)) => assert!(began.elapsed() < PATIENCE, "{why}"),
            answer => return answer,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Plans and makes it to its end.
pub(crate) async fn make(executor: &Modules, task: &mut Task) -> Result<Outcome, Fault> {
    plan(executor, task).await?;
    let made = apply(executor, task).await?;
    task.applied = Some(task.with.clone());
    task.outputs.clone_from(&made.outputs);
    Ok(made)
}

/// Looks until it could be seen.
pub(crate) async fn drift(executor: &Modules, task: &Task) -> Vec<String> {
    let began = base::monotonic();
    let seen = loop {
        match executor.observe(task).await.unwrap() {
            Progress::Running { reason: message, .. } => {
                assert!(began.elapsed() < PATIENCE, "{message}");
            }
            Progress::Done(seen) => break seen,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(seen.unexpected, Vec::<String>::new());
    seen.drift.iter().map(line).collect()
}

pub(crate) fn line(difference: &Difference) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or("-".into(), Value::to_string);
    format!("{}: {} → {}", difference.field, shown(&difference.found), shown(&difference.made))
}

pub(crate) fn state(task: &Task) -> Value {
    serde_json::from_str(task.kept["state"].reveal()).unwrap()
}

#[tokio::test]
async fn a_module_is_planned_made_changed_and_destroyed() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    executor.validate(&task.with, &task.files).unwrap();
    let lines: Vec<_> = plan(&executor, &mut task).await.unwrap().iter().map(line).collect();
    assert_eq!(
        lines[..2],
        ["terraform_data.disk: - → \"there\"", "terraform_data.other: - → \"there\""]
    );
    assert_eq!(bed.log(), Vec::<String>::new(), "a plan makes nothing");
    assert!(!task.kept.contains_key("state"));

    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(
        Value::Object(made.outputs),
        json!({"size": "1 false", "shared": {"of": ["shared"]}})
    );
    assert_eq!(bed.log(), ["+ other"]);
    assert_eq!(state(&task)["resources"].as_array().unwrap().len(), 2);
    let said = task.log.take();
    let says = |words: &str| said.iter().any(|line| line.contains(words));
    assert!(says("terraform_data.disk: Plan to create"), "{said:?}");
    assert!(says("terraform_data.other: Creation complete"), "{said:?}");
    assert!(says("Apply complete! Resources: 2 added"), "{said:?}");
    assert!(!says("\"@message\""), "{said:?}");
    let count = said.iter().filter(|line| line.contains("other: Creating...")).count();
    assert_eq!(count, 1, "each line is said once: {said:?}");

    change(&mut task, json!({"dir": bed.path(), "size": 2}));
    let lines: Vec<_> = plan(&executor, &mut task).await.unwrap().iter().map(line).collect();
    assert_eq!(
        lines,
        ["terraform_data.disk.input: \"1 false\" → \"2 false\""],
        "only what changes"
    );
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "2 false");
    assert_eq!(bed.log(), ["+ other"], "what is the same was left alone");

    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(bed.log(), ["+ other", "- other"]);
    assert!(!bed.folder(&task).exists());
    assert_eq!(state(&task)["resources"], json!([]), "what is kept says that nothing is left");
    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(bed.log().len(), 2, "nothing is destroyed twice");
}

#[tokio::test]
async fn a_plan_is_applied_as_it_was_made() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    plan(&executor, &mut task).await.unwrap();
    let planned = bed.folder(&task).join("plan");
    assert!(planned.exists(), "it waits to be applied");
    apply(&executor, &mut task).await.unwrap();
    let planned_anew = bed.folder(&task).join("plan.log");
    assert!(!planned_anew.exists(), "nothing was planned beside it");
    assert!(!planned.exists(), "it is good for one time");

    // The plan of one change is none for another.
    change(&mut task, json!({"dir": bed.path(), "size": 2}));
    plan(&executor, &mut task).await.unwrap();
    change(&mut task, json!({"dir": bed.path(), "size": 3}));
    let made = apply(&executor, &mut task).await.unwrap();
    assert!(planned_anew.exists());
    assert_eq!(made.outputs["size"], "3 false");

    // Nor is one that came away with its folder.
    change(&mut task, json!({"dir": bed.path(), "size": 4}));
    plan(&executor, &mut task).await.unwrap();
    std::fs::remove_dir_all(&bed.options.work).unwrap();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "4 false");
    assert_eq!(bed.log(), ["+ other"], "from the state that was kept");
}

#[tokio::test]
async fn a_plan_that_has_become_stale_is_made_anew() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    let touched = |state: &mut Value| {
        state["serial"] = json!(state["serial"].as_u64().unwrap() + 1);
        state["outputs"]["size"]["value"] = json!("touched");
    };
    // What we see ourselves.
    change(&mut task, json!({"dir": bed.path(), "size": 2}));
    plan(&executor, &mut task).await.unwrap();
    bed.edit_state(&task, touched);
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "2 false");
    // What only Terraform sees: the note says that the plan is of this state.
    change(&mut task, json!({"dir": bed.path(), "size": 3}));
    plan(&executor, &mut task).await.unwrap();
    bed.edit_state(&task, touched);
    let now = std::fs::read_to_string(bed.folder(&task).join("terraform.tfstate")).unwrap();
    let now: Value = serde_json::from_str(&now).unwrap();
    let note = bed.folder(&task).join("plan.json");
    let mut edited: Value = serde_json::from_str(&std::fs::read_to_string(&note).unwrap()).unwrap();
    edited["state"] = json!(format!("{} {}", now["lineage"], now["serial"]));
    std::fs::write(&note, edited.to_string()).unwrap();
    task.log.take();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "3 false");
    let said = task.log.take();
    assert!(said.iter().any(|line| line.contains("Saved plan is stale")), "{said:?}");
}

#[tokio::test]
async fn what_somebody_changed_is_drift_field_by_field() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    task.log.take();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());
    // In the world.
    std::fs::write(bed.path().join("extra"), "").unwrap();
    let field = "terraform_data.disk.input: \"1 false\" → \"1 true\"";
    assert_eq!(drift(&executor, &task).await, [field]);
    std::fs::remove_file(bed.path().join("extra")).unwrap();
    // In the state, as a provider that finds another size; and a thing that is gone.
    bed.edit_state(&task, |state| {
        state["serial"] = json!(9);
        state["resources"][0]["instances"][0]["attributes"]["input"]["value"] = json!("7 false");
        state["resources"].as_array_mut().unwrap().remove(1);
    });
    let lines = drift(&executor, &task).await;
    let expected = [
        "terraform_data.disk.input: \"7 false\" → \"1 false\"",
        "terraform_data.other: - → \"there\"",
    ];
    assert_eq!(lines, expected);
    assert_eq!(bed.log(), ["+ other"], "looking changes nothing");
    assert_eq!(task.log.take(), Vec::<String>::new(), "and says nothing");
    // Applying what it was made as mends it.
    change(&mut task, json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());
}

#[tokio::test]
async fn on_an_empty_machine_it_goes_on_from_what_was_kept() {
    let bed = Bed::disk();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&bed.executor(), &mut task).await.unwrap();
    let elsewhere = |task: &mut Task| {
        std::fs::remove_dir_all(&bed.options.work).unwrap();
        task.fence += 1;
        bed.executor()
    };
    let other = elsewhere(&mut task);
    assert_eq!(drift(&other, &task).await, Vec::<String>::new());
    change(&mut task, json!({"dir": bed.path(), "size": 2}));
    let made = make(&other, &mut task).await.unwrap();
    assert_eq!(made.outputs["size"], "2 false");
    assert_eq!(bed.log(), ["+ other"], "what there was is not made again");
    destroy(&elsewhere(&mut task), &mut task).await.unwrap();
    assert_eq!(bed.log(), ["+ other", "- other"]);
}

#[tokio::test]
async fn the_providers_that_were_chosen_are_kept_until_the_module_changes() {
    let mut bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    let lock = bed.folder(&task).join("module/disk/.terraform.lock.hcl");
    std::fs::write(&lock, "# chosen\n").unwrap();
    keep(&executor, &mut task).await;
    std::fs::remove_dir_all(&bed.options.work).unwrap();
    plan(&executor, &mut task).await.unwrap();
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "# chosen\n");
    bed.file("disk/more.tf", "# another version\n");
    task.files = Arc::new(bed.files.clone());
    change(&mut task, json!({"dir": bed.path(), "size": 2}));
    plan(&executor, &mut task).await.unwrap();
    assert!(!lock.exists(), "it may want others");
}

#[tokio::test]
async fn what_exists_is_adopted_and_then_changed() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    let what = "terraform_data.disk=known-7";
    // As the worker does: planned first, then adopted before every apply.
    plan(&executor, &mut task).await.unwrap();
    let why = unavailable(executor.adopt(&task, what).await);
    assert_eq!(why, "Terraform takes over what exists; it is asked again", "nobody waits for it");
    adopt(&executor, &mut task, what).await.unwrap();
    assert!(task.kept["state"].reveal().contains("known-7"), "it is kept before it is applied");
    executor.apply(&task).await.unwrap();
    let made = settle(&executor, &mut task, async |executor, task| {
        executor.adopt(task, what).await?;
        executor.apply(task).await
    });
    let made = made.await.unwrap();
    assert_eq!(made.outputs["size"], "1 false");
    let attributes = &state(&task)["resources"][0]["instances"][0]["attributes"];
    assert_eq!(attributes["id"], "known-7", "it was taken over, not made");
    let said = task.log.take();
    assert!(said.iter().any(|line| line.contains("Import prepared")), "{said:?}");
    adopt(&executor, &mut task, what).await.unwrap();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new());
    for (what, why) in [
        ("terraform_data.nowhere=1", "nowhere"),
        ("disk", "address=id"),
        ("-config=/etc", "address=id"),
    ] {
        let told = refused(adopt(&executor, &mut task, what).await);
        assert!(told.contains(why), "{told}");
    }
}

#[tokio::test]
async fn what_failed_half_way_is_kept_and_goes_on_from_there() {
    let mut bed = Bed::new();
    let text = "variable \"dir\" {}\nresource \"terraform_data\" \"first\" {\n provisioner \"local-exec\" {\n  command = \"echo + first >> ${var.dir}/log\"\n }\n}\nresource \"terraform_data\" \"second\" {\n depends_on = [terraform_data.first]\n provisioner \"local-exec\" {\n  command = \"test -e ${var.dir}/gate\"\n }\n}\n";
    bed.file("half/main.tf", text);
    let mut task = bed.task("half", json!({"dir": bed.path()}));
    let why = refused(make(&bed.executor(), &mut task).await);
    assert!(why.contains("main.tf:9: local-exec provisioner error"), "{why}");
    assert!(state(&task)["resources"].to_string().contains("\"first\""));
    std::fs::remove_dir_all(&bed.options.work).unwrap();
    bed.open_gate();
    make(&bed.executor(), &mut task).await.unwrap();
    assert_eq!(bed.log(), ["+ first"]);
}

#[tokio::test]
async fn a_resource_whose_files_are_gone_is_destroyed_with_those_that_are_there() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    task.files = Arc::default();
    // Nor are there values: what it was last told is kept.
    task.with = with("disk", json!("{{ nothing }}"));
    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(bed.log(), ["+ other", "- other"]);
}

#[tokio::test]
async fn what_was_never_made_is_gone_at_once() {
    let (bed, mut task) = Bed::steps();
    task.kept.insert("state".into(), Secret::new(""));
    assert_eq!(bed.executor().destroy(&task).await, Ok(Progress::Done(())));
    assert_eq!(bed.executor().cancel(&task).await, Ok(true));
    assert!(!bed.options.work.exists());
}
