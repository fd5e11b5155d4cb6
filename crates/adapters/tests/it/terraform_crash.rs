//! Interrupted runs: by a destroy, by the end of a server, by a kill.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::Secret;
use model::cluster::STATE;
use port::{Operation, Task};

use super::terraform::{PATIENCE, World, create, going, persist, settle, status};
use super::terraform_faults::is_running;

/// Waits until Terraform and the program of a module have ended.
async fn until_ended(world: &World, order: &Task) {
    let gate = world.path().join("gate").display().to_string();
    let began = base::monotonic();
    let lock = std::fs::File::open(world.folder(order).join("lock")).unwrap();
    while is_running(&gate) || lock.try_lock().is_err() {
        assert!(began.elapsed() < PATIENCE, "it is still running");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn ending_server_interrupts_the_run_and_the_next_one_resumes() {
    let world = World::new();
    let (provider, order) = (world.provider(), world.steps());
    going(provider.apply(&order).await);
    world.until_log("begun").await;
    drop(provider);
    until_ended(&world, &order).await;
    let state = std::fs::read_to_string(world.folder(&order).join("terraform.tfstate")).unwrap();
    assert!(state.contains("\"first\""), "created resources are in the state");

    world.open_gate();
    let next = world.provider();
    let made = settle(|| status(&next, &order)).await.unwrap();
    assert_eq!(made.outputs["id"], "cluster-of-ours");
    let firsts = world.log().iter().filter(|line| *line == "+ first").count();
    assert_eq!(firsts, 1, "{:?}", world.log());
}

#[tokio::test]
async fn destroy_interrupts_an_apply() {
    let world = World::new();
    let (provider, order) = (world.provider(), world.steps());
    going(provider.apply(&order).await);
    world.until_log("begun").await;
    settle(|| provider.destroy(&order)).await.unwrap();
    assert!(!world.log().contains(&"+ second".to_owned()), "{:?}", world.log());
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
    assert!(!world.folder(&order).exists());
}

/// Runs Terraform in a cluster's workspace as a server that crashed.
fn orphan(world: &World, order: &Task) -> Child {
    let folder = world.folder(order);
    let open = |name: &str| {
        std::fs::File::options()
            .create(true)
            .append(true)
            .read(true)
            .open(folder.join(name))
            .unwrap()
    };
    let (lock, log) = (open("lock"), open("run.log"));
    lock.try_lock().unwrap();
    Command::new(&world.options.program)
        .args(["apply", "-auto-approve", "-input=false", "-json"])
        .current_dir(folder.join("module"))
        .env("TF_DATA_DIR", folder.join("data"))
        .stdin(Stdio::from(lock))
        .stdout(Stdio::from(log))
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// A run without a server, in a workspace without these files.
async fn abandoned(world: &World, files: &[&str]) -> (Task, Child) {
    world.open_gate();
    let (provider, order) = (world.provider(), world.steps());
    create(&provider, &order).await.unwrap();
    drop(provider);
    std::fs::remove_file(world.path().join("gate")).unwrap();
    std::fs::remove_file(world.path().join("log")).unwrap();
    for file in files {
        std::fs::remove_file(world.folder(&order).join(file)).unwrap();
    }
    let orphan = orphan(world, &order);
    world.until_log("begun").await;
    (order, orphan)
}

#[tokio::test]
async fn run_that_outlives_its_server_is_waited_for() {
    let world = World::new();
    let (order, mut orphan) =
        abandoned(&world, &["terraform.tfstate", "outputs.json", "run.log"]).await;

    let provider = world.provider();
    for answer in [status(&provider, &order).await, provider.apply(&order).await] {
        assert_eq!(going(answer), "Terraform is creating terraform_data.second (2 of 2).");
    }
    world.open_gate();
    let made = settle(|| status(&provider, &order)).await.unwrap();
    assert!(orphan.wait().unwrap().success());
    assert_eq!(made.outputs["id"], "cluster-of-ours");
    assert_eq!(world.log(), ["+ first", "begun", "+ second"], "it was created once");
}

#[tokio::test]
async fn killed_run_does_not_block_the_next() {
    let world = World::new();
    let (order, mut orphan) = abandoned(&world, &["terraform.tfstate", "outputs.json"]).await;
    orphan.kill().unwrap();
    orphan.wait().unwrap();
    let left = world.folder(&order).join(".terraform.tfstate.lock.info");
    assert!(left.exists(), "a dead process has left its lock");

    world.open_gate();
    until_ended(&world, &order).await;
    let provider = world.provider();
    settle(|| status(&provider, &order)).await.unwrap();
    let firsts = world.log().iter().filter(|line| *line == "+ first").count();
    assert_eq!(firsts, 1, "{:?}", world.log());
}

#[tokio::test]
async fn newer_state_counts() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    // The stored state is older than the local one.
    let empty = r#"{"version":4,"serial":0,"lineage":"x","outputs":{},"resources":[]}"#;
    let mut behind = order.clone();
    behind.persisted.insert(STATE.into(), Secret::new(empty));
    settle(|| provider.apply(&behind)).await.unwrap();
    assert_eq!(world.log(), ["+ first", "begun", "+ second"]);
    assert_eq!(provider.persist(&behind).await.unwrap().len(), 1, "and it is persisted");
    // The local state is older than the stored one.
    std::fs::write(world.folder(&order).join("terraform.tfstate"), empty).unwrap();
    settle(|| provider.apply(&order)).await.unwrap();
    assert_eq!(world.log(), ["+ first", "begun", "+ second"]);
}

#[tokio::test]
async fn cluster_is_known_without_its_workspace() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    let made = create(&provider, &order).await.unwrap();
    persist(&provider, &mut order).await;
    drop(provider);
    std::fs::remove_dir_all(&world.options.work_dir).unwrap();
    let provider = world.provider();
    let known = settle(|| status(&provider, &order)).await.unwrap();
    assert_eq!(known.outputs, made.outputs);
    assert!(!world.options.work_dir.exists(), "no run was needed");
    settle(|| provider.destroy(&order)).await.unwrap();
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
}

#[tokio::test]
async fn destroy_interrupts_the_run_of_a_crashed_server() {
    let world = World::new();
    world.open_gate();
    let (provider, order) = (world.provider(), world.steps());
    create(&provider, &order).await.unwrap();
    drop(provider);
    std::fs::remove_file(world.path().join("gate")).unwrap();
    std::fs::remove_file(world.path().join("log")).unwrap();
    std::fs::remove_file(world.folder(&order).join("terraform.tfstate")).unwrap();
    let mut orphan = orphan(&world, &order);
    let pid_file = world.folder(&order).join("process");
    assert!(!pid_file.exists(), "an ended run leaves no PID file");
    std::fs::write(&pid_file, orphan.id().to_string()).unwrap();
    world.until_log("begun").await;
    let provider = world.provider();
    settle(|| provider.destroy(&order)).await.unwrap();
    orphan.wait().unwrap();
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
    assert!(!world.log().contains(&"+ second".to_owned()), "{:?}", world.log());
}

#[tokio::test]
async fn pid_file_of_an_unrelated_process_interrupts_nothing() {
    let world = World::new();
    let (provider, order) = (world.provider(), world.steps());
    let mut other = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
    std::fs::create_dir_all(world.folder(&order).join("module")).unwrap();
    std::fs::write(world.folder(&order).join("process"), other.id().to_string()).unwrap();
    let lock = std::fs::File::create(world.folder(&order).join("lock")).unwrap();
    lock.try_lock().unwrap();
    let why = going(provider.destroy(&order).await);
    assert_eq!(why, "Interrupting the previous Terraform run.");
    assert!(world.folder(&order).join("process").exists(), "it may be of another machine");
    // A signal may take a moment.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ended = other.try_wait().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(ended, None);
}
