//! Runs of modules that are cut off, stopped or taken over, and a state that somebody else has changed.

use std::process::Command;
use std::time::Duration;

use adapters::terraform::Modules;
use port::{Operation, Progress, Task};
use serde_json::{Value, json};

use super::kubernetes::{refused, unavailable};
use super::terraform::PATIENCE;
use super::terraform_faults::is_running;
use super::terraform_resource::{
    Bed, apply, change, destroy, drift, keep, make, plan, settle, state,
};

/// Has it be applied until it waits at the gate.
async fn begun(bed: &Bed, executor: &Modules, task: &mut Task) {
    plan(executor, task).await.unwrap();
    let Progress::Running { .. } = executor.apply(task).await.unwrap() else { panic!("it waits") };
    bed.until_log("begun").await;
}

/// Asks until nothing goes on any more.
async fn stop(executor: &Modules, task: &mut Task) {
    let began = base::monotonic();
    while !executor.cancel(task).await.unwrap() {
        assert!(began.elapsed() < PATIENCE, "it does not stop");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    keep(executor, task).await;
}

/// Does not care.
const DEAF: &str =
    "trap '' INT TERM; echo begun >> $dir/log; while [ -d $dir ]; do sleep 0.1; done";

fn count(bed: &Bed, line: &str) -> usize {
    bed.log().iter().filter(|known| *known == line).count()
}

#[tokio::test]
async fn it_says_how_far_it_is() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
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
    let said = task.log.take();
    assert!(said.iter().any(|line| line.contains("second: Creating...")), "as it comes: {said:?}");
    bed.open_gate();
    let made = apply(&executor, &mut task).await.unwrap();
    assert_eq!(made.outputs["id"], "cluster-of-ours");
}

#[tokio::test]
async fn a_kill_in_the_middle_leaves_no_obstacle() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    let process = std::fs::read_to_string(bed.folder(&task).join("process")).unwrap();
    let killed = Command::new("kill").args(["-KILL", "--", &format!("-{process}")]).status();
    assert!(killed.unwrap().success());
    drop(executor);
    bed.open_gate();
    task.fence += 1;
    let next = bed.executor();
    make(&next, &mut task).await.unwrap();
    assert_eq!(count(&bed, "+ first"), 1, "{:?}", bed.log());
    assert_eq!(drift(&next, &task).await, Vec::<String>::new());
    destroy(&next, &mut task).await.unwrap();
    assert!(!bed.folder(&task).exists());
}

#[tokio::test]
async fn a_server_that_ends_interrupts_and_the_next_one_goes_on() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    drop(executor);
    task.fence += 1;
    let next = bed.executor();
    let Progress::Running { .. } = next.apply(&task).await.unwrap() else {
        panic!("it is not made")
    };
    keep(&next, &mut task).await;
    bed.open_gate();
    apply(&next, &mut task).await.unwrap();
    assert_eq!(count(&bed, "+ first"), 1, "{:?}", bed.log());
    assert_eq!(count(&bed, "+ second"), 1, "{:?}", bed.log());
}

#[tokio::test]
async fn a_run_of_another_server_is_waited_for_and_told_of() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    task.fence += 1;
    task.log.take();
    let next = bed.executor();
    let Progress::Running { reason: message, .. } = next.apply(&task).await.unwrap() else {
        panic!("it waits")
    };
    assert!(message.to_string().contains("terraform_data.second"), "{message}");
    assert!(next.observe(&task).await.is_err(), "nobody looks meanwhile");
    assert!(task.log.take().iter().any(|line| line.contains("second: Creating...")));
    bed.open_gate();
    let made = apply(&next, &mut task).await.unwrap();
    assert_eq!(made.outputs["id"], "cluster-of-ours");
    assert_eq!(bed.log(), ["+ first", "begun", "+ second"], "it was made once");
}

#[tokio::test]
async fn cancelling_really_stops_it() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    stop(&executor, &mut task).await;
    let gate = bed.path().join("gate").display().to_string();
    assert!(!is_running(&gate), "what it had started is gone, too");
    assert!(state(&task)["resources"].to_string().contains("\"first\""), "what there is is known");
    bed.open_gate();
    assert_eq!(count(&bed, "+ second"), 0);
    make(&executor, &mut task).await.unwrap();
    assert_eq!((count(&bed, "+ first"), count(&bed, "+ second")), (1, 1), "{:?}", bed.log());
}

#[tokio::test]
async fn cancelling_stops_the_run_of_another_server() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    // It knows nothing of it but its folder.
    task.fence += 1;
    stop(&bed.executor(), &mut task).await;
    assert!(!is_running(&bed.path().join("gate").display().to_string()));
}

#[tokio::test]
async fn what_does_not_listen_is_killed() {
    let (mut bed, _) = Bed::steps();
    bed.options.grace = Duration::from_secs(1);
    bed.play(DEAF);
    let deaf = bed.options.program.display().to_string();
    for is_own in [true, false] {
        let mut task = bed.task("steps", json!({}));
        let executor = bed.executor();
        let _ = std::fs::remove_file(bed.path().join("log"));
        let Progress::Running { .. } = executor.plan(&task).await.unwrap() else {
            panic!("it goes")
        };
        bed.until_log("begun").await;
        assert!(is_running(&deaf));
        let other = bed.executor();
        stop(if is_own { &executor } else { &other }, &mut task).await;
        assert!(!is_running(&deaf), "own: {is_own}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_is_interrupted_once() {
    let (mut bed, mut task) = Bed::steps();
    bed.play(
        "trap 'echo interrupted >> $dir/log' INT; echo begun >> $dir/log\n\
         until [ -e $dir/gate ] || [ ! -d $dir ]; do sleep 0.1; done",
    );
    let executor = bed.executor();
    executor.plan(&task).await.unwrap();
    bed.until_log("begun").await;
    assert_eq!(executor.cancel(&task).await, Ok(false));
    bed.until_log("interrupted").await;
    assert!(bed.folder(&task).join("process").exists(), "the next server would know of it");
    for _ in 0..5 {
        assert_eq!(executor.cancel(&task).await, Ok(false));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(bed.log(), ["begun", "interrupted"], "a second time would lose the state");
    bed.open_gate();
    stop(&executor, &mut task).await;
    for note in ["process", "process.interrupted"] {
        assert!(!bed.folder(&task).join(note).exists(), "what has ended leaves no {note}");
    }
}

#[tokio::test]
async fn what_a_server_had_interrupted_before_it_ended_is_killed_by_the_next() {
    let (mut bed, mut task) = Bed::steps();
    bed.play(DEAF);
    // It ends before it could kill anybody.
    bed.options.grace = Duration::from_hours(1);
    let executor = bed.executor();
    executor.plan(&task).await.unwrap();
    bed.until_log("begun").await;
    let process = std::fs::read_to_string(bed.folder(&task).join("process")).unwrap();
    drop(executor);
    task.fence += 1;
    bed.options.grace = Duration::from_secs(1);
    let (next, began) = (bed.executor(), base::monotonic());
    // One that was killed and not yet waited for has no command line.
    let is_alive =
        || std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|l| !l.is_empty());
    while is_alive() {
        assert!(began.elapsed() < PATIENCE, "it holds the folder for ever");
        next.plan(&task).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_run_that_has_outlived_its_server_has_a_limit() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    task.fence += 1;
    let (next, folder) = (bed.executor(), bed.folder(&task));
    next.apply(&task).await.unwrap();
    assert!(!folder.join("process.interrupted").exists(), "it has its time");
    let note = std::fs::File::options().append(true).open(folder.join("process")).unwrap();
    let long_ago = note.metadata().unwrap().modified().unwrap() - Duration::from_hours(2);
    note.set_modified(long_ago).unwrap();
    next.apply(&task).await.unwrap();
    assert!(folder.join("process.interrupted").exists(), "it had its time");
    bed.open_gate();
    apply(&next, &mut task).await.unwrap();
    assert_eq!(count(&bed, "+ first"), 1, "{:?}", bed.log());
}

#[tokio::test]
async fn what_a_killed_program_has_started_is_killed_with_it() {
    let (mut bed, mut task) = Bed::steps();
    // Its child has the lock, as plugins do.
    bed.play("exec 3<&0; sh -c 'while [ -d $dir ]; do sleep 0.1; done' & kill -KILL $$");
    let executor = bed.executor();
    for _ in 0..2 {
        let why = unavailable(plan(&executor, &mut task).await);
        assert!(why.contains("it was ended from outside"), "{why}");
    }
    stop(&executor, &mut task).await;
}

#[tokio::test]
async fn a_state_that_was_kept_in_the_middle_of_our_own_run_does_not_stop_the_next() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    // Terraform 0.11 writes several with the same serial.
    let mut middle = state(&task);
    middle["resources"].as_array_mut().unwrap().pop();
    task.kept.insert("state".into(), model::Secret::new(middle.to_string()));
    plan(&executor, &mut task).await.unwrap();
    assert_eq!(state(&task)["resources"].as_array().unwrap().len(), 2, "the whole one is kept");
    make(&executor, &mut task).await.unwrap();
    assert_eq!(bed.log(), ["+ other"], "nothing is made again");
}

#[tokio::test]
async fn destroying_interrupts_what_is_being_made() {
    let (bed, mut task) = Bed::steps();
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    destroy(&executor, &mut task).await.unwrap();
    assert_eq!(bed.log().last().map(String::as_str), Some("- first"));
    assert_eq!(count(&bed, "+ second"), 0);
    assert!(!bed.folder(&task).exists());
}

#[tokio::test]
async fn what_takes_longer_than_it_may_is_stopped_and_fails() {
    let (mut bed, mut task) = Bed::steps();
    bed.options.grace = Duration::from_secs(5);
    task.with.insert("timeout_seconds".into(), json!(8));
    let executor = bed.executor();
    // On a loaded machine it may be stopped before it comes to what waits.
    while !bed.log().contains(&"begun".to_owned()) {
        let why = refused(make(&executor, &mut task).await);
        assert!(why.contains("it took longer than 8 s and was stopped"), "{why}");
    }
    assert!(state(&task)["resources"].to_string().contains("\"first\""));
    assert!(!is_running(&bed.path().join("gate").display().to_string()));
}

#[tokio::test]
async fn who_was_taken_over_from_begins_nothing() {
    let bed = Bed::disk();
    let (old, new) = (bed.executor(), bed.executor());
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    task.fence = 7;
    make(&new, &mut task).await.unwrap();
    let mut behind = task.clone();
    change(&mut behind, json!({"dir": bed.path(), "size": 2}));
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
async fn a_state_that_somebody_replaced_is_refused_and_nothing_is_lost() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    let path = bed.folder(&task).join("terraform.tfstate");
    let (kept, good) = (task.kept.clone(), std::fs::read_to_string(&path).unwrap());
    let edits: [fn(&mut Value); 2] = [
        |state| {
            state["lineage"] = json!("somebody-else-s");
            state["serial"] = json!(99);
        },
        |state| state["resources"][0]["instances"][0]["attributes"]["id"] = json!("other"),
    ];
    for edit in edits {
        std::fs::write(&path, &good).unwrap();
        bed.edit_state(&task, edit);
        let theirs = std::fs::read_to_string(&path).unwrap();
        for why in [
            refused(plan(&executor, &mut task).await),
            refused(apply(&executor, &mut task).await),
            refused(destroy(&executor, &mut task).await),
            refused(settle(&executor, &mut task, async |to, task| to.observe(task).await).await),
        ] {
            assert!(why.starts_with("somebody has changed the state of the module disk"), "{why}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs, "it is not written over");
        assert!(task.kept == kept, "what is kept is ours");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(drift(&executor, &task).await, Vec::<String>::new(), "the kept one counts");
}

#[tokio::test]
async fn a_newer_state_of_somebody_else_counts_and_is_told_of() {
    let bed = Bed::disk();
    let executor = bed.executor();
    let mut task = bed.task("disk", json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    task.log.take();
    let told = "Somebody else has changed the state since the last run";
    plan(&executor, &mut task).await.unwrap();
    assert!(!task.log.take().iter().any(|line| line.starts_with(told)), "nobody has");
    bed.edit_state(&task, |state| {
        state["serial"] = json!(50);
        state["resources"].as_array_mut().unwrap().remove(0);
    });
    change(&mut task, json!({"dir": bed.path(), "size": 1}));
    make(&executor, &mut task).await.unwrap();
    let said = task.log.take();
    assert!(said.iter().any(|line| line.starts_with(told)), "{said:?}");
    assert!(state(&task)["serial"].as_u64().unwrap() > 50);
    assert_eq!(bed.log(), ["+ other"], "only what was taken out is made again");
}

#[tokio::test]
async fn only_as_many_run_as_may() {
    let (mut bed, mut task) = Bed::steps();
    bed.options.at_once = 1;
    let executor = bed.executor();
    begun(&bed, &executor, &mut task).await;
    let mut other = bed.task("steps", json!({"dir": bed.path()}));
    other.id = model::ResourceId(model::Xid::new(1, [0; 5], 77)).into();
    let why = unavailable(executor.observe(&other).await);
    assert!(why.starts_with("as many runs of Terraform go on as may"), "nobody waits: {why}");
    executor.plan(&other).await.unwrap();
    let answer = executor.plan(&other).await.unwrap();
    let Progress::Running { reason: message, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(message.to_string(), "Terraform waits for its turn: 1 run at once.");
    bed.open_gate();
    settle(&executor, &mut task, async |executor, task| executor.apply(task).await).await.unwrap();
    plan(&executor, &mut other).await.unwrap();
}
