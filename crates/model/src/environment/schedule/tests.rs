//! Scheduling over the whole lifecycle of environments.

use proptest::prelude::*;

use super::*;
use crate::environment::examples::{environment, resource};
use crate::reason::StatusReason;
use crate::resource::Status::{
    Applied, Destroying as ResourceDestroying, Failed, Pending, Planning,
};

#[track_caller]
fn check(status: Status, all: &[Resource], begin: &[&str], outcome: Option<Status>) -> Schedule {
    let schedule = schedule(&environment(status), all, 8);
    let names: Vec<_> = schedule.start.iter().map(|&i| all[i].node.name.as_str()).collect();
    assert_eq!(names, begin, "{schedule:?}");
    assert_eq!(schedule.outcome.as_ref().map(|(to, _)| *to), outcome, "{schedule:?}");
    schedule
}

#[test]
fn independent_steps_run_concurrently_after_their_dependencies() {
    let make = |name, after| resource(name, after, Act::Create, Pending);
    let all = [make("a", &[]), make("b", &["a"]), make("c", &["a"]), make("d", &[])];
    check(Status::Deploying, &all, &["a", "d"], None);
    let mut all = all.to_vec();
    (all[0].act, all[0].status) = (Act::Nothing, Applied);
    let schedule = check(Status::Deploying, &all, &["b", "c", "d"], None);
    assert_eq!(schedule.progress, 25);
    all[1].status = Planning;
    all[1].progress = 50;
    assert_eq!(check(Status::Deploying, &all, &["c", "d"], None).progress, 37);
}

fn failed(resource: &str) -> Reason {
    let reason = Box::new(resource::Reason::reported("no."));
    Reason::ResourceFailed { resource: resource.into(), reason, others: 0 }
}

#[test]
fn failure_blocks_only_dependents() {
    let mut all = vec![
        resource("a", &[], Act::Create, Failed),
        resource("b", &["a"], Act::Create, Pending),
        resource("c", &[], Act::Create, Pending),
    ];
    let schedule = check(Status::Deploying, &all, &["c"], None);
    assert_eq!(
        schedule.waiting,
        [(1, resource::Reason::DependencyFailed { resource: "a".into() })]
    );
    (all[2].act, all[2].status) = (Act::Nothing, Applied);
    let (to, why) = check(Status::Deploying, &all, &[], Some(Status::Failed)).outcome.unwrap();
    assert_eq!(to, Status::Failed);
    assert_eq!(why, failed("a"));
}

#[test]
fn obsolete_resources_are_destroyed_last_and_dependents_first() {
    let all = [
        resource("old", &[], Act::Destroy, Pending),
        resource("older", &["old"], Act::Destroy, Pending),
        resource("new", &[], Act::Update, Pending),
    ];
    check(Status::Deploying, &all, &["new"], None);
    let mut all = all.to_vec();
    (all[2].act, all[2].status) = (Act::Nothing, Applied);
    check(Status::Deploying, &all, &["older"], None);
    all.remove(1);
    check(Status::Deploying, &all, &["old"], None);
    all.remove(0);
    check(Status::Deploying, &all, &[], Some(Status::Validating));
}

#[test]
fn destruction_is_in_reverse_order_and_cancellation_waits_for_running_steps() {
    let mut all = vec![
        resource("a", &[], Act::Nothing, Applied),
        resource("b", &["a"], Act::Nothing, Failed),
        resource("c", &["b"], Act::Create, Pending),
    ];
    // c was never created, so it has no dependencies.
    check(Status::Destroying, &all, &["b", "c"], None);
    all[2].fence = 1;
    check(Status::Destroying, &all, &["c"], None);
    all.pop();
    check(Status::Destroying, &all, &["b"], None);
    (all[1].act, all[1].status) = (Act::Destroy, Failed);
    check(Status::Destroying, &all, &[], Some(Status::Failed));
    check(Status::Destroying, &[], &[], Some(Status::Destroyed));

    let mut cancelled = environment(Status::Deploying);
    cancelled.is_cancelled = true;
    let mut all = [resource("a", &[], Act::Create, ResourceDestroying)];
    assert_eq!(schedule(&cancelled, &all, 8).outcome, None);
    all[0].status = Failed;
    let outcome = (Status::Failed, Reason::Cancelled { left: Some(1) });
    assert_eq!(schedule(&cancelled, &all, 8).outcome, Some(outcome));
}

#[test]
fn concurrent_steps_are_limited() {
    let mut all: Vec<_> =
        (0..9).map(|i| resource(&format!("r{i}"), &[], Act::Create, Pending)).collect();
    let now = schedule(&environment(Status::Deploying), &all, 4);
    assert_eq!(now.start, [0, 1, 2, 3]);
    assert_eq!(now.waiting.len(), 5);
    assert!(
        now.waiting
            .iter()
            .all(|(_, reason)| *reason == resource::Reason::ConcurrencyLimit { limit: 4 })
    );
    (all[0].status, all[1].status) = (Planning, Applied);
    all[1].act = Act::Nothing;
    (all[2].status, all[3].status) = (Failed, ResourceDestroying);
    assert_eq!(schedule(&environment(Status::Deploying), &all, 4).start, [4, 5]);
    assert!(schedule(&environment(Status::Deploying), &all, 2).start.is_empty());
}

#[test]
fn replace_waits_for_destruction_of_dependents() {
    let mut all = vec![
        resource("base", &[], Act::Replace, Pending),
        resource("mid", &["base"], Act::Destroy, Pending),
        resource("top", &["mid"], Act::Destroy, Pending),
        resource("else", &[], Act::Destroy, Pending),
    ];
    let now = check(Status::Deploying, &all, &["top"], None);
    let waits = [
        (0, resource::Reason::DependentExists { resource: "mid".into(), failed: false }),
        (1, resource::Reason::DependentExists { resource: "top".into(), failed: false }),
        (3, resource::Reason::AwaitingOthers),
    ];
    assert_eq!(now.waiting, waits);
    all.remove(2);
    check(Status::Deploying, &all, &["mid"], None);
    all.remove(1);
    check(Status::Deploying, &all, &["base"], None);
    (all[0].act, all[0].status) = (Act::Nothing, Applied);
    check(Status::Deploying, &all, &["else"], None);
}

#[test]
fn dependency_cycle_is_broken_on_destruction() {
    let mut all = vec![
        resource("x", &[], Act::Nothing, Applied),
        resource("a", &["b"], Act::Nothing, Applied),
        resource("b", &["c", "x"], Act::Nothing, Applied),
        resource("c", &["a"], Act::Nothing, Applied),
    ];
    check(Status::Destroying, &all, &["b"], None);
    all.remove(2);
    check(Status::Destroying, &all, &["x", "c"], None);
    // A failed resource is left to users, who retry.
    let failed =
        [resource("a", &["b"], Act::Nothing, Applied), resource("b", &["a"], Act::Destroy, Failed)];
    check(Status::Destroying, &failed, &[], Some(Status::Failed));
}

#[test]
fn failed_destroy_keeps_only_its_dependencies() {
    let mut failed = resource("user", &["base"], Act::Destroy, Failed);
    failed.attempts = 1;
    let all = [
        resource("base", &[], Act::Destroy, Pending),
        failed,
        resource("other", &[], Act::Destroy, Pending),
    ];
    let now = check(Status::Deploying, &all, &["other"], None);
    let why = resource::Reason::DependentExists { resource: "user".into(), failed: true };
    assert_eq!(now.waiting, [(0, why)]);
    let now = check(Status::Deploying, &all[..2], &[], Some(Status::Failed));
    assert_eq!(now.outcome.unwrap().1, self::failed("user"));
}

#[test]
fn cancelled_environment_starts_nothing_and_reports_what_is_left() {
    let mut cancelled = environment(Status::Deploying);
    cancelled.is_cancelled = true;
    let mut all = [
        resource("a", &[], Act::Nothing, Applied),
        resource("b", &[], Act::Create, Pending),
        resource("c", &["b"], Act::Create, Pending),
    ];
    let now = schedule(&cancelled, &all, 8);
    assert_eq!((now.start, now.waiting), (vec![], vec![]));
    assert_eq!(now.outcome.unwrap().1, Reason::Cancelled { left: Some(2) });
    // The cancellation came too late: everything is applied.
    for one in &mut all {
        (one.act, one.status) = (Act::Nothing, Applied);
    }
    assert_eq!(schedule(&cancelled, &all, 8).outcome.unwrap().0, Status::Validating);
    cancelled.status = Status::Destroying;
    assert_eq!(schedule(&cancelled, &[], 8).outcome.unwrap().0, Status::Destroyed);
    assert_eq!(schedule(&cancelled, &all, 8).outcome.unwrap().0, Status::Failed);
}

#[test]
fn unfinished_environment_is_not_validated() {
    // With a limit of 0 nothing starts.
    let all = [resource("a", &[], Act::Create, Pending)];
    let (to, why) = schedule(&environment(Status::Deploying), &all, 0).outcome.unwrap();
    assert_eq!(to, Status::Failed, "{why}");
    check(Status::Deploying, &[], &[], Some(Status::Validating));
}

proptest! {
    /// Any acyclic graph is applied once in dependency order, and destroyed in reverse.
    #[test]
    fn resources_are_applied_in_order_and_destroyed_in_reverse(edges in proptest::collection::vec((0usize..12, 0usize..12), 0..40), n in 1usize..4) {
        let mut all: Vec<_> = (0..12)
            .map(|i| {
                let after: Vec<_> = edges
                    .iter()
                    .filter(|(to, from)| *to == i && from < to)
                    .map(|(_, from)| format!("r{from}"))
                    .collect();
                let after: Vec<_> = after.iter().map(String::as_str).collect();
                resource(&format!("r{i}"), &after, Act::Create, Pending)
            })
            .collect();
        let order = |all: &mut Vec<Resource>, status: Status| {
            let mut done = Vec::new();
            for _ in 0..20 {
                let now = schedule(&environment(status), all, n);
                if let Some((to, _)) = now.outcome {
                    return (done, Some(to));
                }
                assert!(now.start.len() <= n);
                let names: Vec<_> =
                    now.start.iter().map(|&i| all[i].node.name.clone()).collect();
                for name in &names {
                    let i = all.iter().position(|one| one.node.name == *name).unwrap();
                    if status == Status::Destroying {
                        all.remove(i);
                    } else {
                        (all[i].act, all[i].status) = (Act::Nothing, Applied);
                    }
                }
                done.extend(names);
            }
            (done, None)
        };
        let (applied, to) = order(&mut all, Status::Deploying);
        prop_assert_eq!(to, Some(Status::Validating));
        prop_assert_eq!(applied.len(), 12);
        let position = |list: &[String], name: &str| list.iter().position(|one| one == name).unwrap();
        let nodes = all.clone();
        let (destroyed, to) = order(&mut all, Status::Destroying);
        prop_assert_eq!(to, Some(Status::Destroyed));
        for one in &nodes {
            for before in &one.node.after {
                prop_assert!(position(&applied, before) < position(&applied, &one.node.name));
                prop_assert!(position(&destroyed, before) > position(&destroyed, &one.node.name));
            }
        }
    }

    /// Failures block exactly their transitive dependents.
    #[test]
    fn failures_affect_only_dependents(
        edges in proptest::collection::vec((0usize..12, 0usize..12), 0..30),
        fails in proptest::collection::vec(any::<bool>(), 12),
    ) {
        let mut all: Vec<_> = (0..12).map(|i| {
            let before = edges.iter().filter(|(to, from)| *to == i && from < to);
            let after: Vec<_> = before.map(|(_, from)| format!("r{from}")).collect();
            let after: Vec<_> = after.iter().map(String::as_str).collect();
            resource(&format!("r{i}"), &after, Act::Create, Pending)
        }).collect();
        let mut to = None;
        for _ in 0..20 {
            let now = schedule(&environment(Status::Deploying), &all, 3);
            to = now.outcome.map(|(to, _)| to);
            for &i in &now.start {
                let is_applied = !fails[i];
                all[i].act = if is_applied { Act::Nothing } else { Act::Create };
                all[i].status = if is_applied { Applied } else { Failed };
            }
            if to.is_some() {
                break;
            }
        }
        let mut is_blocked = [false; 12];
        for i in 0..12 {
            let needs_failed = edges.iter().any(|&(to, from)| to == i && from < to && is_blocked[from]);
            is_blocked[i] = fails[i] || needs_failed;
            let expect = match (needs_failed, fails[i]) {
                (true, _) => Pending,
                (false, true) => Failed,
                (false, false) => Applied,
            };
            prop_assert_eq!(all[i].status, expect);
        }
        let all_applied = is_blocked.iter().all(|is_blocked| !is_blocked);
        prop_assert_eq!(to, Some(if all_applied { Status::Validating } else { Status::Failed }));
    }
}
