//! Runs of modules that are killed, cancelled or taken over, and externally changed states.

use std::process::Command;
use std::time::Duration;

use adapters::terraform::TerraformExecutor;
use port::{Operation, Progress, Task};
use serde_json::{Value, json};

use super::kubernetes::{refused, unavailable};
use super::terraform::PATIENCE;
use super::terraform_faults::is_running;
use super::terraform_resource::{
    Fixture, apply, change, create, destroy, drift, persist, plan, settle, state,
};

/// Applies until it waits at the gate.
async fn begun(fixture: &Fixture, executor: &TerraformExecutor, task: &mut Task) {
    plan(executor, task).await.unwrap();
    let Progress::Running { .. } = executor.apply(task).await.unwrap() else { panic!("it waits") };
    fixture.until_log("begun").await;
}

/// Cancels until nothing runs.
async fn stop(executor: &TerraformExecutor, task: &mut Task) {
    let began = base::monotonic();
    while !executor.cancel(task).await.unwrap() {
        assert!(began.elapsed() < PATIENCE, "it does not stop");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    persist(executor, task).await;
}

/// Ignores signals.
const UNRESPONSIVE: &str =
    "trap '' INT TERM; echo begun >> $dir/log; while [ -d $dir ]; do sleep 0.1; done";

fn count(fixture: &Fixture, line: &str) -> usize {
    fixture.log().iter().filter(|known| *known == line).count()
}

#[tokio::test]
async fn apply_reports_its_progress() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    let began = base::monotonic();
    loop {
        let now = executor.apply(&task).await.unwrap();
        let Progress::Running { reason: message, percent } = now else {
            panic!("it waits at the gate")
        };
        if message.to_string() == "Terraform is creating terraform_data.second (2 of 2)." {
            assert_eq!(percent, Some(50));
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{message}");
    }
    let log = task.log.drain();
    assert!(log.iter().any(|line| line.contains("second: Creating...")), "in time: {log:?}");
    fixture.open_gate();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["id"], "cluster-of-ours");
}

#[tokio::test]
async fn killed_run_does_not_block_the_next() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    let process = std::fs::read_to_string(fixture.folder(&task).join("process")).unwrap();
    let killed = Command::new("kill").args(["-KILL", "--", &format!("-{process}")]).status();
    assert!(killed.unwrap().success());
    drop(executor);
    fixture.open_gate();
    task.fence += 1;
    let next = fixture.executor();
    create(&next, &mut task).await.unwrap();
    assert_eq!(count(&fixture, "+ first"), 1, "{:?}", fixture.log());
    assert_eq!(drift(&next, &task).await, Vec::<String>::new());
    destroy(&next, &mut task).await.unwrap();
    assert!(!fixture.folder(&task).exists());
}

#[tokio::test]
async fn ending_server_interrupts_the_run_and_the_next_one_resumes() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    drop(executor);
    task.fence += 1;
    let next = fixture.executor();
    let Progress::Running { .. } = next.apply(&task).await.unwrap() else {
        panic!("it is not applied")
    };
    persist(&next, &mut task).await;
    fixture.open_gate();
    apply(&next, &mut task).await.unwrap();
    assert_eq!(count(&fixture, "+ first"), 1, "{:?}", fixture.log());
    assert_eq!(count(&fixture, "+ second"), 1, "{:?}", fixture.log());
}

#[tokio::test]
async fn run_of_another_server_is_waited_for_and_reported() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    task.fence += 1;
    task.log.drain();
    let next = fixture.executor();
    let Progress::Running { reason: message, .. } = next.apply(&task).await.unwrap() else {
        panic!("it waits")
    };
    assert!(message.to_string().contains("terraform_data.second"), "{message}");
    assert!(next.observe(&task).await.is_err(), "no observation meanwhile");
    assert!(task.log.drain().iter().any(|line| line.contains("second: Creating...")));
    fixture.open_gate();
    let made = apply(&next, &mut task).await.unwrap();
    assert_eq!(made.outputs["id"], "cluster-of-ours");
    assert_eq!(fixture.log(), ["+ first", "begun", "+ second"], "it was created once");
}

#[tokio::test]
async fn cancel_stops_the_run() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    stop(&executor, &mut task).await;
    let gate = fixture.path().join("gate").display().to_string();
    assert!(!is_running(&gate), "its children ended, too");
    assert!(state(&task)["resources"].to_string().contains("\"first\""), "the state is known");
    fixture.open_gate();
    assert_eq!(count(&fixture, "+ second"), 0);
    create(&executor, &mut task).await.unwrap();
    assert_eq!(
        (count(&fixture, "+ first"), count(&fixture, "+ second")),
        (1, 1),
        "{:?}",
        fixture.log()
    );
}

#[tokio::test]
async fn cancel_stops_the_run_of_another_server() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    // It knows only the workspace.
    task.fence += 1;
    stop(&fixture.executor(), &mut task).await;
    assert!(!is_running(&fixture.path().join("gate").display().to_string()));
}

#[tokio::test]
async fn unresponsive_process_is_killed() {
    let (mut fixture, _) = Fixture::steps();
    fixture.options.grace = Duration::from_secs(1);
    fixture.fake_program(UNRESPONSIVE);
    let program = fixture.options.program.display().to_string();
    for is_own in [true, false] {
        let mut task = fixture.task("steps", json!({}));
        let executor = fixture.executor();
        let _ = std::fs::remove_file(fixture.path().join("log"));
        let Progress::Running { .. } = executor.plan(&task).await.unwrap() else {
            panic!("it runs")
        };
        fixture.until_log("begun").await;
        assert!(is_running(&program));
        let other = fixture.executor();
        stop(if is_own { &executor } else { &other }, &mut task).await;
        assert!(!is_running(&program), "own: {is_own}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_run_is_interrupted_once() {
    let (mut fixture, mut task) = Fixture::steps();
    fixture.fake_program(
        "trap 'echo interrupted >> $dir/log' INT; echo begun >> $dir/log\n\
         until [ -e $dir/gate ] || [ ! -d $dir ]; do sleep 0.1; done",
    );
    let executor = fixture.executor();
    executor.plan(&task).await.unwrap();
    fixture.until_log("begun").await;
    assert_eq!(executor.cancel(&task).await, Ok(false));
    fixture.until_log("interrupted").await;
    assert!(fixture.folder(&task).join("process").exists(), "the next server could find it");
    for _ in 0..5 {
        assert_eq!(executor.cancel(&task).await, Ok(false));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(fixture.log(), ["begun", "interrupted"], "a second interrupt would lose the state");
    fixture.open_gate();
    stop(&executor, &mut task).await;
    for file in ["process", "process.interrupted"] {
        assert!(!fixture.folder(&task).join(file).exists(), "an ended run leaves no {file}");
    }
}

#[tokio::test]
async fn run_that_an_ended_server_interrupted_is_killed_by_the_next() {
    let (mut fixture, mut task) = Fixture::steps();
    fixture.fake_program(UNRESPONSIVE);
    // The server ends before the grace period.
    fixture.options.grace = Duration::from_hours(1);
    let executor = fixture.executor();
    executor.plan(&task).await.unwrap();
    fixture.until_log("begun").await;
    let process = std::fs::read_to_string(fixture.folder(&task).join("process")).unwrap();
    drop(executor);
    task.fence += 1;
    fixture.options.grace = Duration::from_secs(1);
    let (next, began) = (fixture.executor(), base::monotonic());
    // A killed process that was not waited for yet has no command line.
    let is_alive =
        || std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|l| !l.is_empty());
    while is_alive() {
        assert!(began.elapsed() < PATIENCE, "it blocks the workspace");
        next.plan(&task).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn run_that_outlives_its_server_has_a_timeout() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    task.fence += 1;
    let (next, folder) = (fixture.executor(), fixture.folder(&task));
    next.apply(&task).await.unwrap();
    assert!(!folder.join("process.interrupted").exists(), "its timeout has not passed");
    let pid_file = std::fs::File::options().append(true).open(folder.join("process")).unwrap();
    let long_ago = pid_file.metadata().unwrap().modified().unwrap() - Duration::from_hours(2);
    pid_file.set_modified(long_ago).unwrap();
    next.apply(&task).await.unwrap();
    assert!(folder.join("process.interrupted").exists(), "its timeout has passed");
    fixture.open_gate();
    apply(&next, &mut task).await.unwrap();
    assert_eq!(count(&fixture, "+ first"), 1, "{:?}", fixture.log());
}

#[tokio::test]
async fn children_of_a_killed_program_are_killed() {
    let (mut fixture, mut task) = Fixture::steps();
    // Its child holds the lock, as plugins do.
    fixture
        .fake_program("exec 3<&0; sh -c 'while [ -d $dir ]; do sleep 0.1; done' & kill -KILL $$");
    let executor = fixture.executor();
    for _ in 0..2 {
        let why = unavailable(plan(&executor, &mut task).await);
        assert!(why.contains(": killed ("), "{why}");
    }
    stop(&executor, &mut task).await;
}

#[tokio::test]
async fn intermediate_state_of_an_own_run_does_not_block_the_next() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    // Terraform 0.11 writes several states with the same serial.
    let mut middle = state(&task);
    middle["resources"].as_array_mut().unwrap().pop();
    task.persisted.insert("state".into(), model::Secret::new(middle.to_string()));
    plan(&executor, &mut task).await.unwrap();
    assert_eq!(state(&task)["resources"].as_array().unwrap().len(), 2, "the final one counts");
    create(&executor, &mut task).await.unwrap();
    assert_eq!(fixture.log(), ["+ other"], "nothing is recreated");
}

#[tokio::test]
async fn destroy_interrupts_an_apply() {
    let (fixture, mut task) = Fixture::steps();
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(fixture.log().last().map(String::as_str), Some("- first"));
    assert_eq!(count(&fixture, "+ second"), 0);
    assert!(!fixture.folder(&task).exists());
}

#[tokio::test]
async fn timed_out_run_is_stopped_and_fails() {
    let (mut fixture, mut task) = Fixture::steps();
    fixture.options.grace = Duration::from_secs(5);
    task.with.insert("timeout_seconds".into(), json!(8));
    let executor = fixture.executor();
    // On a loaded machine it may be stopped before it reaches the gate.
    while !fixture.log().contains(&"begun".to_owned()) {
        let why = refused(create(&executor, &mut task).await);
        assert!(why.contains("timed out after 8 s"), "{why}");
    }
    assert!(state(&task)["resources"].to_string().contains("\"first\""));
    assert!(!is_running(&fixture.path().join("gate").display().to_string()));
}

#[tokio::test]
async fn replaced_server_starts_nothing() {
    let fixture = Fixture::disk();
    let (old, new) = (fixture.executor(), fixture.executor());
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    task.fence = 7;
    create(&new, &mut task).await.unwrap();
    let mut behind = task.clone();
    change(&mut behind, json!({"dir": fixture.path(), "size": 2}));
    behind.fence = 6;
    let taken_over = "another server has taken over";
    assert!(refused(plan(&old, &mut behind).await).contains(taken_over));
    assert!(refused(apply(&old, &mut behind).await).contains(taken_over));
    assert!(refused(destroy(&old, &mut behind).await).contains(taken_over));
    assert!(refused(old.cancel(&behind).await).contains(taken_over));
    assert!(refused(old.observe(&behind).await).contains(taken_over));
    let adopted = old.adopt(&behind, "terraform_data.disk=1").await;
    assert!(refused(adopted).contains(taken_over));
    assert_eq!(drift(&new, &task).await, Vec::<String>::new(), "nothing was changed");
}

#[tokio::test]
async fn externally_replaced_state_is_refused_and_nothing_is_lost() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    let path = fixture.folder(&task).join("terraform.tfstate");
    let (kept, good) = (task.persisted.clone(), std::fs::read_to_string(&path).unwrap());
    let edits: [fn(&mut Value); 2] = [
        |state| {
            state["lineage"] = json!("another-lineage");
            state["serial"] = json!(99);
        },
        |state| state["resources"][0]["instances"][0]["attributes"]["id"] = json!("other"),
    ];
    for edit in edits {
        std::fs::write(&path, &good).unwrap();
        fixture.edit_state(&task, edit);
        let theirs = std::fs::read_to_string(&path).unwrap();
        for why in [
            refused(plan(&executor, &mut task).await),
            refused(apply(&executor, &mut task).await),
            refused(destroy(&executor, &mut task).await),
            refused(settle(&executor, &mut task, async |to, task| to.observe(task).await).await),
        ] {
            assert!(
                why.starts_with("the state of the module disk")
                    && why.contains("changed externally"),
                "{why}"
            );
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs, "it is not overwritten");
        assert!(task.persisted == kept, "the persisted state is ours");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new(), "the persisted one counts");
}

#[tokio::test]
async fn newer_external_state_counts_and_is_logged() {
    let fixture = Fixture::disk();
    let executor = fixture.executor();
    let mut task = fixture.task("disk", json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    task.log.drain();
    let message = "The state was changed externally since the last run";
    plan(&executor, &mut task).await.unwrap();
    assert!(!task.log.drain().iter().any(|line| line.starts_with(message)), "it was not");
    fixture.edit_state(&task, |state| {
        state["serial"] = json!(50);
        state["resources"].as_array_mut().unwrap().remove(0);
    });
    change(&mut task, json!({"dir": fixture.path(), "size": 1}));
    create(&executor, &mut task).await.unwrap();
    let log = task.log.drain();
    assert!(log.iter().any(|line| line.starts_with(message)), "{log:?}");
    assert!(state(&task)["serial"].as_u64().unwrap() > 50);
    assert_eq!(fixture.log(), ["+ other"], "only the removed resource is recreated");
}

#[tokio::test]
async fn concurrent_runs_are_limited() {
    let (mut fixture, mut task) = Fixture::steps();
    fixture.options.max_concurrent_runs = 1;
    let executor = fixture.executor();
    begun(&fixture, &executor, &mut task).await;
    let mut other = fixture.task("steps", json!({"dir": fixture.path()}));
    other.id = model::ResourceId(model::Xid::new(1, [0; 5], 77)).into();
    let why = unavailable(executor.observe(&other).await);
    assert!(why.starts_with("too many Terraform runs are in progress"), "it does not wait: {why}");
    executor.plan(&other).await.unwrap();
    let answer = executor.plan(&other).await.unwrap();
    let Progress::Running { reason: message, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(message.to_string(), "Terraform run queued: at most 1 run at once.");
    fixture.open_gate();
    settle(&executor, &mut task, async |executor, task| executor.apply(task).await).await.unwrap();
    plan(&executor, &mut other).await.unwrap();
}
