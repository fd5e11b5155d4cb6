//! One rule, one example.

use super::*;

#[track_caller]
fn check(pool: &Pool, seen: &Observed, now: Time, action: Action, reason: &str) -> Decision {
    let decision = decide(pool, seen, now);
    assert_eq!((decision.action, decision.reason.as_str()), (action, reason));
    decision
}

#[test]
fn pending_workloads_scale_up_at_once_unless_blocked() {
    let pool = plain();
    let mut seen = seen(Vec::new());
    seen.waiting = vec![pending(2, 3, NOON), pending(4, 1, NOON + minutes(1))];
    let cause = "4 pending workloads need capacity, the first 2 cpu";
    check(&pool, &seen, NOON, Action::Grow, &format!("Scaling up: {cause}."));

    seen.clusters = vec![cluster(1, Status::WaitingForAgent, 0)];
    let waiting = "Waiting for cluster east-1 (waiting_for_agent) before adding another";
    check(&pool, &seen, NOON, Action::Stay, &format!("{waiting}: {cause}."));

    seen.clusters = vec![cluster(1, Status::Ready, 8)];
    let full = Pool { at_most: 1, ..pool.clone() };
    let reason = format!("Scale-up blocked by `at_most`: 1 of 1 clusters exist; {cause}.");
    check(&full, &seen, NOON, Action::Stay, &reason);

    let limited = Pool { limit: cpus(8), ..pool.clone() };
    let reason = format!("Scale-up blocked by the limit of 8 cpu (8 used): {cause}.");
    check(&limited, &seen, NOON, Action::Stay, &reason);

    seen.memory.shrunk_at = Some(NOON);
    let end = NOON + minutes(10);
    let decision = decide(&pool, &seen, NOON + minutes(9));
    assert_eq!((decision.action, decision.reconsider_at), (Action::Stay, Some(end)));
    assert_eq!(decide(&pool, &seen, end).action, Action::Grow);
}

#[test]
fn limit_counts_clusters_being_deleted_and_no_reservations() {
    let mut seen = seen(vec![cluster(1, Status::Deprovisioning, 5), cluster(2, Status::Ready, 8)]);
    seen.clusters[1].nodes[0].reserved = cpus(3);
    assert_eq!(seen.consumed(), cpus(10));
    seen.waiting = vec![pending(2, 1, NOON)];
    let pool = |limit| Pool { limit: cpus(limit), ..plain() };
    assert_eq!(decide(&pool(10), &seen, NOON).action, Action::Stay);
    assert_eq!(decide(&pool(11), &seen, NOON).action, Action::Grow);
}

#[test]
fn missing_slack_scales_up_after_a_delay() {
    let pool = Pool { slack: cpus(4), ..plain() };
    let mut seen = seen(vec![cluster(1, Status::Ready, 5)]);
    let begins = NOON + pool.pace.grow_after;
    let reason = format!(
        "Scaling up at {begins} unless resolved: free capacity is 1 cpu below the slack of 4 cpu."
    );
    let first = check(&pool, &seen, NOON, Action::Stay, &reason);
    assert_eq!((first.wish, first.reconsider_at), (Some(ScaleUpCause::Slack), Some(begins)));
    seen.memory = seen.memory.after(&first, NOON);
    let again = decide(&pool, &seen, NOON + Duration::from_secs(29));
    seen.memory = seen.memory.after(&again, NOON + Duration::from_secs(29));
    assert_eq!(decide(&pool, &seen, begins).action, Action::Grow);
    // Resolved in between: the delay starts again.
    seen.clusters[0].nodes[0].used = cpus(4);
    seen.memory = seen.memory.after(&decide(&pool, &seen, begins), begins);
    seen.clusters[0].nodes[0].used = cpus(5);
    assert_eq!(decide(&pool, &seen, begins).action, Action::Stay);
}

#[test]
fn reservations_count_as_used_for_slack_and_as_free_for_the_largest_request() {
    let mut seen = seen(vec![cluster(1, Status::Ready, 6)]);
    seen.clusters[0].nodes[0].reserved = cpus(6);
    let slack = Pool { slack: cpus(4), ..plain() };
    assert_eq!(decide(&slack, &seen, NOON).wish, Some(ScaleUpCause::Slack));
    let largest = Pool { largest: vec![cpus(8)], ..plain() };
    assert_eq!(decide(&largest, &seen, NOON).wish, None);
    seen.clusters[0].nodes[0].reserved = cpus(5);
    let decision = decide(&largest, &seen, NOON);
    assert_eq!(decision.wish, Some(ScaleUpCause::Largest));
    assert!(decision.reason.contains("8 cpu, the largest request"), "{decision:?}");
}

#[test]
fn at_least_keeps_empty_clusters() {
    let pool = Pool { at_least: 2, ..plain() };
    let now = NOON + minutes(60);
    let two = seen(vec![cluster(1, Status::Ready, 0), cluster(2, Status::Unreachable, 0)]);
    let reason = "Cluster east-1 is empty, but `at_least` is 2.";
    check(&pool, &two, now, Action::Stay, reason);
    let one = seen(vec![cluster(1, Status::Ready, 0), cluster(2, Status::Failed, 0)]);
    assert_eq!(decide(&pool, &one, now).wish, Some(ScaleUpCause::Least));
}

#[test]
fn empty_cluster_is_removed_after_idle_time_and_cool_down() {
    let pool = plain();
    let mut seen = seen(vec![cluster(1, Status::Ready, 3), cluster(2, Status::Ready, 0)]);
    let idle = NOON + minutes(10);
    let reason = format!("Cluster east-2 is empty since {NOON}. Scaling down at {idle}.");
    let decision = check(&pool, &seen, NOON + minutes(9), Action::Stay, &reason);
    assert_eq!(decision.reconsider_at, Some(idle));
    assert_eq!(decide(&pool, &seen, idle).action, Action::Shrink(cluster_id(2)));
    seen.memory.grown_at = Some(NOON + minutes(5));
    assert_eq!(decide(&pool, &seen, idle).reconsider_at, Some(NOON + minutes(15)));
    seen.clusters.push(cluster(3, Status::Provisioning, 0));
    assert_eq!(decide(&pool, &seen, NOON + minutes(99)).action, Action::Stay);
}

#[test]
fn empty_cluster_is_kept_while_needed_with_a_margin() {
    let now = NOON + minutes(60);
    let observed = |used| seen(vec![cluster(1, Status::Ready, used), cluster(2, Status::Ready, 0)]);
    let pool = Pool { slack: cpus(4), ..plain() };
    assert_eq!(decide(&pool, &observed(0), now).action, Action::Shrink(cluster_id(1)));
    // Without it the slack is met, but the next small request would add it again.
    let decision = decide(&pool, &observed(1), now);
    assert_eq!((decision.action, decision.wish), (Action::Stay, None));
    assert!(
        decision.reason.starts_with("Cluster east-2 is empty, but needed: without it"),
        "{decision:?}"
    );
    let largest = Pool { largest: vec![cpus(6)], ..plain() };
    assert_eq!(decide(&largest, &observed(2), now).action, Action::Shrink(cluster_id(2)));
    assert_eq!(decide(&largest, &observed(3), now).action, Action::Stay);
}

#[test]
fn failed_clusters_delay_and_finally_stop_scale_up() {
    let pool = plain();
    let mut seen = seen(vec![cluster(1, Status::Failed, 0)]);
    seen.waiting = vec![pending(2, 1, NOON)];
    let decision = decide(&pool, &seen, NOON);
    assert_eq!(decision.reconsider_at, Some(NOON + minutes(1)), "{decision:?}");
    assert_eq!(decide(&pool, &seen, NOON + minutes(1)).action, Action::Grow);
    seen.clusters.push(cluster(2, Status::Failed, 0));
    assert_eq!(decide(&pool, &seen, NOON + minutes(1)).reconsider_at, Some(NOON + minutes(2)));
    seen.clusters.push(cluster(3, Status::Failed, 0));
    let decision = decide(&pool, &seen, NOON + minutes(9999));
    assert_eq!((decision.action, decision.reconsider_at), (Action::Stay, None));
    assert!(decision.reason.contains("3 failed clusters, the last is east-3"));
    assert_eq!(backoff(1000), Duration::from_hours(1));
}

#[test]
fn pending_workloads_count_for_the_first_pool_that_may_grow() {
    let catalog = crate::kind::Catalog::built_in();
    let labelled = |name: &str, tier: &str| {
        let mut pool = Pool { name: name.into(), ..plain() };
        pool.template.labels.insert("tier".into(), tier.into());
        pool
    };
    let pools = [labelled("a", "small"), labelled("b", "small"), labelled("c", "large")];
    let demand = |cpu, selector: &[(&str, &str)]| Demand {
        request: cpus(cpu),
        selector: selector.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        instance: None,
        count: 2,
        since: NOON,
    };
    let count_for = |name: &str, one: Demand, may_grow: &[&str]| {
        let may = |pool: &Pool| may_grow.contains(&pool.name.as_str());
        share(&pools, name, &[one], &catalog, may).len()
    };
    let all = ["a", "b", "c"];
    for (selector, may_grow, expected) in [
        (&[][..], &all[..], Some("a")),
        (&[], &["b"], Some("b")),
        (&[], &[], Some("a")),
        (&[("tier", "large")], &all, Some("c")),
        (&[("tier", "large"), ("region", "east")], &all, Some("c")),
        (&[("region", "west")], &all, None),
        (&[("tier", "huge")], &all, None),
    ] {
        for name in all {
            let count = count_for(name, demand(2, selector), may_grow);
            assert_eq!(count == 1, expected == Some(name), "{name} {selector:?} {may_grow:?}");
        }
    }
    assert_eq!(count_for("a", demand(9, &[]), &all), 0, "larger than a cluster");
    let instance =
        Demand { instance: Some(("kafka".into(), "standard".into(), 1)), ..demand(2, &[]) };
    assert_eq!(count_for("a", instance, &all), 0, "the pool hosts no instances");
}
