//! The Terraform provider with the real program: what modules create and destroy.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::terraform::{Options, Runner, TerraformProvider};
use model::cluster::{KUBECONFIG, STATE, VARIABLES};
use model::resource::Difference;
use model::{ClusterId, Invalid, Secret, Xid};
use port::{Access, Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Generous, for loaded machines.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);
pub(crate) const PASSWORD: &str = "s3cret-pa\"ssword";

/// Logs creations and deletions; the second resource waits for a file `gate`.
pub(crate) const STEPS: &str = r#"
variable "dir" {}
variable "password" {
  default   = "none"
  sensitive = true
}
resource "terraform_data" "first" {
  input = { dir = var.dir, password = var.password }
  provisioner "local-exec" {
    command = "echo + first >> ${self.input.dir}/log"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo - first >> ${self.input.dir}/log"
  }
}
resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  input      = { dir = var.dir }
  provisioner "local-exec" {
    command = "echo begun >> ${self.input.dir}/log; until [ -e ${self.input.dir}/gate ]; do [ -d ${self.input.dir} ] || exit 1; sleep 0.05; done; echo + second >> ${self.input.dir}/log"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo - second >> ${self.input.dir}/log"
  }
}
output "id" {
  value = "cluster-of-${terraform_data.second.input.dir == var.dir ? "ours" : "theirs"}"
}
output "dns" {
  value = "apps.example.org."
}
output "token" {
  value     = "hidden-${var.password}"
  sensitive = true
}
"#;

/// Modules, a work folder, and a fake of the Kubernetes provider.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) options: Options,
    pub(crate) inside: Arc<Inside>,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let (modules, work) = (dir.path().join("modules"), dir.path().join("work"));
        std::fs::create_dir(&modules).unwrap();
        let program = testing::programs::find("terraform", "PADDOCK_TEST_TERRAFORM");
        let options = Options::new(program, modules, work);
        Self { dir, options, inside: Arc::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn module(&self, name: &str, file: &str, text: &str) {
        let folder = self.options.module_dir.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    }

    pub(crate) fn provider(&self) -> TerraformProvider {
        TerraformProvider::new(Runner::new(self.options.clone()), self.inside.clone())
    }

    pub(crate) fn order(module: &str, variables: Value) -> Task {
        let with = [("module".to_owned(), module.into()), ("variables".to_owned(), variables)];
        let with = with.into_iter().collect();
        Task { with, ..Task::new(ClusterId(Xid::new(1, [0; 5], 1)), "far") }
    }

    /// A task with the module `steps` and a password.
    pub(crate) fn steps(&self) -> Task {
        self.module("steps", "main.tf", STEPS);
        let mut order = Self::order("steps", json!({"dir": self.path()}));
        let secret = json!({"password": PASSWORD}).to_string();
        order.persisted.insert(VARIABLES.into(), Secret::new(secret));
        order
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

    pub(crate) fn folder(&self, order: &Task) -> PathBuf {
        self.options.work_dir.join(order.id.to_string())
    }
}

/// A fake of the Kubernetes provider that records its calls.
#[derive(Default)]
pub(crate) struct Inside {
    pub(crate) calls: Mutex<Vec<(String, Task)>>,
    pub(crate) answers: Mutex<Vec<Result<Progress<Outcome>, Fault>>>,
}

impl Inside {
    fn answer(&self, what: &str, task: &Task) -> PortFuture<'static, Progress<Outcome>> {
        self.calls.lock().unwrap().push((what.to_owned(), task.clone()));
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.is_empty() {
            Ok(Progress::Done(Outcome::default()))
        } else {
            answers.remove(0)
        };
        Box::pin(std::future::ready(answer))
    }
}

impl Operation for Inside {
    fn validate(&self, _: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        Ok(())
    }
    fn plan<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
    }
    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        self.answer("apply", task)
    }
    fn observe<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        port::ready(Ok(Progress::Done(Observed::default())))
    }
    fn prepare<'a>(&'a self, task: &'a Task, _: &'a Access) -> PortFuture<'a, Progress<Outcome>> {
        self.answer("prepare", task)
    }
    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        let answer = self.answer("destroy", task);
        Box::pin(async move { answer.await.map(|gone| gone.map(drop)) })
    }
}

/// Polls until it is done.
pub(crate) async fn settle<T>(
    ask: impl AsyncFn() -> Result<Progress<T>, Fault>,
) -> Result<T, Fault> {
    let began = base::monotonic();
    loop {
        match ask().await? {
            Progress::Done(made) => return Ok(made),
            Progress::Running { reason: message, .. } => {
                assert!(began.elapsed() < PATIENCE, "still running: {message}");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Observes as the worker does: an interrupted apply is resumed.
pub(crate) async fn status(
    provider: &TerraformProvider,
    task: &Task,
) -> Result<Progress<Outcome>, Fault> {
    match provider.observe(task).await? {
        Progress::Done(Observed { outcome: None, .. }) => provider.apply(task).await,
        other => Ok(other.map(|observed| observed.outcome.unwrap())),
    }
}

/// Creates it completely.
pub(crate) async fn create(provider: &TerraformProvider, task: &Task) -> Result<Outcome, Fault> {
    going(provider.apply(task).await);
    settle(|| status(provider, task)).await
}

pub(crate) fn going<T: std::fmt::Debug>(answer: Result<Progress<T>, Fault>) -> String {
    match answer {
        Ok(Progress::Running { reason: message, .. }) => message.to_string(),
        other => panic!("not running: {other:?}"),
    }
}

/// Persists as the worker does.
pub(crate) async fn persist(provider: &TerraformProvider, task: &mut Task) {
    let values = provider.persist(task).await.unwrap();
    task.persisted.extend(values);
}

/// Destroys it completely, as the worker does.
pub(crate) async fn remove(provider: &TerraformProvider, task: &mut Task) {
    let began = base::monotonic();
    while let Progress::Running { reason: message, .. } = provider.destroy(task).await.unwrap() {
        assert!(began.elapsed() < PATIENCE, "still running: {message}");
        persist(provider, task).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn state_of(order: &Task) -> Value {
    serde_json::from_str(order.persisted[STATE].reveal()).unwrap()
}

#[tokio::test]
async fn module_creates_and_destroys_a_cluster() {
    let world = World::new();
    let (provider, mut order) = (world.provider(), world.steps());
    going(provider.apply(&order).await);
    world.until_log("begun").await;
    assert_eq!(
        going(status(&provider, &order).await),
        "Terraform is creating terraform_data.second (2 of 2)."
    );
    assert!(!world.log().contains(&"+ second".to_owned()), "it waits at the gate");
    world.open_gate();
    let made = settle(|| status(&provider, &order)).await.unwrap();
    assert_eq!(made.outputs["id"], "cluster-of-ours");
    assert_eq!(made.outputs["dns"], "apps.example.org");
    assert_eq!(world.log(), ["+ first", "begun", "+ second"]);
    assert_eq!(status(&provider, &order).await, Ok(Progress::Done(made.clone())), "unchanged");

    persist(&provider, &mut order).await;
    assert!(!order.persisted.contains_key(KUBECONFIG));
    assert_eq!(state_of(&order)["resources"].as_array().unwrap().len(), 2);
    assert_eq!(provider.persist(&order).await, Ok(BTreeMap::new()), "nothing is newer");

    remove(&provider, &mut order).await;
    assert_eq!(world.log(), ["+ first", "begun", "+ second", "- second", "- first"]);
    assert!(!world.folder(&order).exists());
    let again = provider.destroy(&order).await.unwrap();
    assert!(matches!(again, Progress::Done(())), "{again:?}");
    assert_eq!(world.log().len(), 5, "nothing is destroyed twice");
}

#[tokio::test]
async fn nothing_to_destroy_is_done_at_once() {
    let world = World::new();
    let order = world.steps();
    let gone = world.provider().destroy(&order).await.unwrap();
    assert!(matches!(gone, Progress::Done(())), "{gone:?}");
}

#[tokio::test]
async fn destroy_with_an_outdated_state_succeeds() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    for _ in 0..2 {
        settle(|| provider.destroy(&order)).await.unwrap();
        assert!(!world.folder(&order).exists());
    }
}

#[tokio::test]
async fn second_apply_changes_nothing() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    let again = create(&provider, &order).await.unwrap();
    assert_eq!(again.outputs["id"], "cluster-of-ours");
    assert_eq!(world.log(), ["+ first", "begun", "+ second"]);
}

#[tokio::test]
async fn changed_variable_is_applied_by_the_next_apply() {
    let world = World::new();
    world.module(
        "name",
        "main.tf",
        "variable \"name\" {}\noutput \"id\" {\n value = var.name\n}\n",
    );
    let provider = world.provider();
    for name in ["one", "two"] {
        let order = World::order("name", json!({"name": name}));
        let made = settle(|| provider.apply(&order)).await.unwrap();
        assert_eq!(made.outputs["id"], name);
    }
}

#[tokio::test]
async fn concurrent_applies_are_one_run() {
    let world = World::new();
    let (provider, order) = (world.provider(), world.steps());
    let all = (0..8).map(|_| provider.apply(&order));
    for answer in futures_util::future::join_all(all).await {
        going(answer);
    }
    world.until_log("begun").await;
    world.open_gate();
    settle(|| status(&provider, &order)).await.unwrap();
    assert_eq!(world.log(), ["+ first", "begun", "+ second"]);
}

#[tokio::test]
async fn runs_above_the_limit_are_queued() {
    let mut world = World::new();
    world.options.max_concurrent_runs = 1;
    let (provider, order) = (world.provider(), world.steps());
    world.module("name", "main.tf", "output \"id\" {\n value = \"x\"\n}\n");
    let mut other = World::order("name", json!({}));
    other.id = ClusterId(Xid::new(1, [0; 5], 2)).into();
    going(provider.apply(&order).await);
    world.until_log("begun").await;
    going(provider.apply(&other).await);
    for _ in 0..50 {
        let wait = going(status(&provider, &other).await);
        assert_eq!(wait, "Terraform run queued: at most 1 run at once.");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.open_gate();
    let made = settle(|| status(&provider, &other)).await.unwrap();
    assert_eq!(made.outputs["id"], "x");
}

#[tokio::test]
async fn drift_is_detected() {
    let world = World::new();
    world.module(
        "file",
        "main.tf",
        "variable \"size\" {}\nresource \"terraform_data\" \"disk\" {\n input = var.size\n}\n",
    );
    let provider = world.provider();
    let mut order = World::order("file", json!({"size": 1}));
    create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    assert_eq!(settle(|| provider.plan(&order)).await, Ok(Vec::new()));
    let bigger = Task { with: World::order("file", json!({"size": 2})).with, ..order };
    let changes = settle(|| provider.plan(&bigger)).await.unwrap();
    assert!(changes.iter().all(|one| one.field.starts_with("terraform_data.disk")), "{changes:?}");
    assert_eq!(changes[0].made, Some(json!(2)), "{changes:?}");
    let still = status(&provider, &bigger).await.unwrap();
    assert!(matches!(still, Progress::Done(_)), "planning changes nothing: {still:?}");
}

#[tokio::test]
async fn secrets_are_only_in_private_files() {
    let world = World::new();
    let (provider, mut order) = (world.provider(), world.steps());
    going(provider.apply(&order).await);
    world.until_log("begun").await;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let text = std::fs::read(process.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(PASSWORD), "{}: {text}", process.path().display());
        }
    }
    world.open_gate();
    let made = settle(|| status(&provider, &order)).await.unwrap();
    persist(&provider, &mut order).await;
    assert!(!format!("{order:?} {made:?}").contains("s3cret"), "{made:?}");
    assert!(order.persisted[STATE].reveal().contains("s3cret"), "the state contains it");
    let mode_of = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = world.folder(&order);
    assert_eq!(mode_of(world.options.work_dir.clone()), 0o700);
    assert_eq!(mode_of(folder.clone()), 0o700);
    for file in ["terraform.tfstate", "run.log", "outputs.json", "module/terraform.tfvars.json"] {
        assert_eq!(mode_of(folder.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn environment_contains_only_required_and_named_variables() {
    let text = "variable \"dir\" {}\nresource \"terraform_data\" \"x\" {\n provisioner \"local-exec\" {\n  command = \"env > ${var.dir}/env\"\n }\n}\n";
    for pass in [vec![], vec!["CARGO_MANIFEST_DIR".to_owned()]] {
        let mut world = World::new();
        world.options.inherited_env.clone_from(&pass);
        world.module("env", "main.tf", text);
        let order = World::order("env", json!({"dir": world.path()}));
        create(&world.provider(), &order).await.unwrap();
        let env = std::fs::read_to_string(world.path().join("env")).unwrap();
        let has = |name: &str| env.lines().any(|line| line.starts_with(&format!("{name}=")));
        assert!(has("PATH") && has("TF_IN_AUTOMATION") && has("CHECKPOINT_DISABLE"), "{env}");
        assert!(env.contains(&format!("HOME={}", world.folder(&order).display())), "{env}");
        assert_eq!(has("CARGO_MANIFEST_DIR"), !pass.is_empty(), "{env}");
        assert!(!has("PADDOCK_TEST_TERRAFORM"), "{env}");
    }
}
