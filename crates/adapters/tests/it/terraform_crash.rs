//! Runs that are interrupted: by whoever removes a cluster, by the end of a server, by a kill.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::Secret;
use model::cluster::STATE;
use port::{Operation, Task};

use super::terraform::{PATIENCE, World, going, keep, make, settle, status};
use super::terraform_faults::is_running;

/// Waits until Terraform, and the program that a module has started, are gone.
async fn until_ended(world: &World, order: &Task) {
    let gate = world.path().join("gate").display().to_string();
    let began = base::monotonic();
    let lock = std::fs::File::open(world.folder(order).join("lock")).unwrap();
    while is_running(&gate) || lock.try_lock().is_err() {
        assert!(began.elapsed() < PATIENCE, "it was not ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_that_ends_interrupts_and_the_next_one_goes_on() {
    let world = World::new();
    let (provider, order) = (world.provider(), world.steps());
    going(provider.apply(&order).await);
    world.until_log("begun").await;
    drop(provider);
    until_ended(&world, &order).await;
    let state = std::fs::read_to_string(world.folder(&order).join("terraform.tfstate")).unwrap();
    assert!(state.contains("\"first\""), "what was made is written down");

    world.open_gate();
    let next = world.provider();
    let made = settle(|| status(&next, &order)).await.unwrap();
    assert_eq!(made.outputs["id"], "cluster-of-ours");
    let firsts = world.log().iter().filter(|line| *line == "+ first").count();
    assert_eq!(firsts, 1, "{:?}", world.log());
}

#[tokio::test]
async fn removing_interrupts_what_is_being_made() {
    let world = World::new();
    let (provider, order) = (world.provider(), world.steps());
    going(provider.apply(&order).await);
    world.until_log("begun").await;
    settle(|| provider.destroy(&order)).await.unwrap();
    assert!(!world.log().contains(&"+ second".to_owned()), "{:?}", world.log());
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
    assert!(!world.folder(&order).exists());
}

/// Runs Terraform in a cluster's folder as a server does that dies: nobody ends it.
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

/// A run in the middle, without a server, in a folder in which these files are not written yet.
async fn abandoned(world: &World, files: &[&str]) -> (Task, Child) {
    world.open_gate();
    let (provider, order) = (world.provider(), world.steps());
    make(&provider, &order).await.unwrap();
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
async fn a_run_that_has_outlived_its_server_is_waited_for() {
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
    assert_eq!(world.log(), ["+ first", "begun", "+ second"], "it was made once");
}

#[tokio::test]
async fn a_kill_in_the_middle_leaves_no_obstacle() {
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
async fn the_newer_of_two_states_counts() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    make(&provider, &order).await.unwrap();
    keep(&provider, &mut order).await;
    // An old one was kept: what is on the disk is newer.
    let empty = r#"{"version":4,"serial":0,"lineage":"x","outputs":{},"resources":[]}"#;
    let mut behind = order.clone();
    behind.kept.insert(STATE.into(), Secret::new(empty));
    settle(|| provider.apply(&behind)).await.unwrap();
    assert_eq!(world.log(), ["+ first", "begun", "+ second"]);
    assert_eq!(provider.keep(&behind).await.unwrap().len(), 1, "and it shall be kept");
    // The disk is behind: what was kept is newer.
    std::fs::write(world.folder(&order).join("terraform.tfstate"), empty).unwrap();
    settle(|| provider.apply(&order)).await.unwrap();
    assert_eq!(world.log(), ["+ first", "begun", "+ second"]);
}

#[tokio::test]
async fn without_its_folder_a_cluster_is_still_known() {
    let world = World::new();
    world.open_gate();
    let (provider, mut order) = (world.provider(), world.steps());
    let made = make(&provider, &order).await.unwrap();
    keep(&provider, &mut order).await;
    drop(provider);
    std::fs::remove_dir_all(&world.options.work).unwrap();
    let provider = world.provider();
    let known = settle(|| status(&provider, &order)).await.unwrap();
    assert_eq!(known.outputs, made.outputs);
    assert!(!world.options.work.exists(), "nothing had to be run");
    settle(|| provider.destroy(&order)).await.unwrap();
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
}

#[tokio::test]
async fn removing_interrupts_what_a_dead_server_has_left() {
    let world = World::new();
    world.open_gate();
    let (provider, order) = (world.provider(), world.steps());
    make(&provider, &order).await.unwrap();
    drop(provider);
    std::fs::remove_file(world.path().join("gate")).unwrap();
    std::fs::remove_file(world.path().join("log")).unwrap();
    std::fs::remove_file(world.folder(&order).join("terraform.tfstate")).unwrap();
    let mut orphan = orphan(&world, &order);
    let note = world.folder(&order).join("process");
    assert!(!note.exists(), "what has ended leaves no note");
    std::fs::write(&note, orphan.id().to_string()).unwrap();
    world.until_log("begun").await;
    let provider = world.provider();
    settle(|| provider.destroy(&order)).await.unwrap();
    orphan.wait().unwrap();
    assert_eq!(world.log().last().map(String::as_str), Some("- first"));
    assert!(!world.log().contains(&"+ second".to_owned()), "{:?}", world.log());
}

#[tokio::test]
async fn a_note_that_means_another_process_ends_nobody() {
    let world = World::new();
    let (provider, order) = (world.provider(), world.steps());
    let mut other = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
    std::fs::create_dir_all(world.folder(&order).join("module")).unwrap();
    std::fs::write(world.folder(&order).join("process"), other.id().to_string()).unwrap();
    let lock = std::fs::File::create(world.folder(&order).join("lock")).unwrap();
    lock.try_lock().unwrap();
    let why = going(provider.destroy(&order).await);
    assert_eq!(why, "Ending the previous Terraform run.");
    assert!(world.folder(&order).join("process").exists(), "it may be one of another machine");
    // A signal may take a moment.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ended = other.try_wait().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(ended, None);
}
