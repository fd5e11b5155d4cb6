//! One rule, one example.

use super::*;

#[track_caller]
fn check(pool: &Pool, seen: &Seen, now: Time, action: Action, reason: &str) -> Decision {
    let decision = decide(pool, seen, now);
    assert_eq!((decision.action, decision.reason.as_str()), (action, reason));
    decision
}

#[test]
fn who_waits_is_served_at_once_unless_something_is_in_the_way() {
    let pool = plain();
    let mut seen = seen(Vec::new());
    seen.waiting = vec![waits(2, 3, NOON), waits(4, 1, NOON + minutes(1))];
    let because = "4 wait for room that no cluster has, the first for 2 cpu";
    check(&pool, &seen, NOON, Action::Grow, &format!("One more cluster, because {because}."));

    seen.clusters = vec![cluster(1, Status::WaitingForAgent, 0)];
    let coming = "east-1 is on its way (waiting_for_agent), and one comes at a time";
    check(&pool, &seen, NOON, Action::Stay, &format!("{coming}: {because}."));

    seen.clusters = vec![cluster(1, Status::Ready, 8)];
    let full = Pool { at_most: 1, ..pool.clone() };
    let reason =
        format!("Would grow, because {because}; but there are 1 clusters, and at most 1 may be.");
    check(&full, &seen, NOON, Action::Stay, &reason);

    let limited = Pool { limit: cpus(8), ..pool.clone() };
    let reason =
        format!("Would grow, because {because}; but 8 cpu are consumed, and the limit is 8.");
    check(&limited, &seen, NOON, Action::Stay, &reason);

    seen.memory.shrunk_at = Some(NOON);
    let end = NOON + minutes(10);
    let decision = decide(&pool, &seen, NOON + minutes(9));
    assert_eq!((decision.action, decision.look_again), (Action::Stay, Some(end)));
    assert_eq!(decide(&pool, &seen, end).action, Action::Grow);
}

#[test]
fn limits_count_what_is_consumed_where_it_goes_and_not_what_only_holds_room() {
    let mut seen = seen(vec![cluster(1, Status::Deprovisioning, 5), cluster(2, Status::Ready, 8)]);
    seen.clusters[1].nodes[0].reserved = cpus(3);
    assert_eq!(seen.consumed(), cpus(10));
    seen.waiting = vec![waits(2, 1, NOON)];
    let pool = |limit| Pool { limit: cpus(limit), ..plain() };
    assert_eq!(decide(&pool(10), &seen, NOON).action, Action::Stay);
    assert_eq!(decide(&pool(11), &seen, NOON).action, Action::Grow);
}

#[test]
fn room_that_is_missing_must_be_missing_for_a_while() {
    let pool = Pool { slack: cpus(4), ..plain() };
    let mut seen = seen(vec![cluster(1, Status::Ready, 5)]);
    let begins = NOON + pool.pace.grow_after;
    let reason = format!(
        "Will grow at {begins} if it is still so: 4 cpu shall be free, and 1 cpu of that is missing."
    );
    let first = check(&pool, &seen, NOON, Action::Stay, &reason);
    assert_eq!((first.wish, first.look_again), (Some(Wish::Slack), Some(begins)));
    seen.memory = seen.memory.after(&first, NOON);
    let again = decide(&pool, &seen, NOON + Duration::from_secs(29));
    seen.memory = seen.memory.after(&again, NOON + Duration::from_secs(29));
    assert_eq!(decide(&pool, &seen, begins).action, Action::Grow);
    // It was better in between: it begins anew.
    seen.clusters[0].nodes[0].used = cpus(4);
    seen.memory = seen.memory.after(&decide(&pool, &seen, begins), begins);
    seen.clusters[0].nodes[0].used = cpus(5);
    assert_eq!(decide(&pool, &seen, begins).action, Action::Stay);
}

#[test]
fn reserved_room_is_used_for_slack_and_free_for_the_largest() {
    let mut seen = seen(vec![cluster(1, Status::Ready, 6)]);
    seen.clusters[0].nodes[0].reserved = cpus(6);
    let slack = Pool { slack: cpus(4), ..plain() };
    assert_eq!(decide(&slack, &seen, NOON).wish, Some(Wish::Slack));
    let largest = Pool { largest: vec![cpus(8)], ..plain() };
    assert_eq!(decide(&largest, &seen, NOON).wish, None);
    seen.clusters[0].nodes[0].reserved = cpus(5);
    let decision = decide(&largest, &seen, NOON);
    assert_eq!(decision.wish, Some(Wish::Largest));
    assert!(decision.reason.contains("8 cpu, the largest that may be asked for"), "{decision:?}");
}

#[test]
fn there_are_always_at_least_so_many() {
    let pool = Pool { at_least: 2, ..plain() };
    let now = NOON + minutes(60);
    let two = seen(vec![cluster(1, Status::Ready, 0), cluster(2, Status::Unreachable, 0)]);
    let reason = "east-1 is empty; but at least 2 shall be there.";
    check(&pool, &two, now, Action::Stay, reason);
    let one = seen(vec![cluster(1, Status::Ready, 0), cluster(2, Status::Failed, 0)]);
    assert_eq!(decide(&pool, &one, now).wish, Some(Wish::Least));
}

#[test]
fn an_empty_cluster_goes_when_it_was_empty_for_long_and_nothing_came_lately() {
    let pool = plain();
    let mut seen = seen(vec![cluster(1, Status::Ready, 3), cluster(2, Status::Ready, 0)]);
    let idle = NOON + minutes(10);
    let reason = format!("east-2 is empty since {NOON}, and goes at {idle} if it stays so.");
    let decision = check(&pool, &seen, NOON + minutes(9), Action::Stay, &reason);
    assert_eq!(decision.look_again, Some(idle));
    assert_eq!(decide(&pool, &seen, idle).action, Action::Shrink(cluster_id(2)));
    seen.memory.grown_at = Some(NOON + minutes(5));
    assert_eq!(decide(&pool, &seen, idle).look_again, Some(NOON + minutes(15)));
    seen.clusters.push(cluster(3, Status::Provisioning, 0));
    assert_eq!(decide(&pool, &seen, NOON + minutes(99)).action, Action::Stay);
}

#[test]
fn a_cluster_that_would_be_missed_stays_with_a_margin() {
    let now = NOON + minutes(60);
    let of = |used| seen(vec![cluster(1, Status::Ready, used), cluster(2, Status::Ready, 0)]);
    let pool = Pool { slack: cpus(4), ..plain() };
    assert_eq!(decide(&pool, &of(0), now).action, Action::Shrink(cluster_id(1)));
    // Without it enough would be free, but the next small thing would bring it back.
    let decision = decide(&pool, &of(1), now);
    assert_eq!((decision.action, decision.wish), (Action::Stay, None));
    assert!(decision.reason.starts_with("east-2 is empty and stays; without it"), "{decision:?}");
    let largest = Pool { largest: vec![cpus(6)], ..plain() };
    assert_eq!(decide(&largest, &of(2), now).action, Action::Shrink(cluster_id(2)));
    assert_eq!(decide(&largest, &of(3), now).action, Action::Stay);
}

#[test]
fn clusters_that_fail_are_tried_again_later_and_not_for_ever() {
    let pool = plain();
    let mut seen = seen(vec![cluster(1, Status::Failed, 0)]);
    seen.waiting = vec![waits(2, 1, NOON)];
    let decision = decide(&pool, &seen, NOON);
    assert_eq!(decision.look_again, Some(NOON + minutes(1)), "{decision:?}");
    assert_eq!(decide(&pool, &seen, NOON + minutes(1)).action, Action::Grow);
    seen.clusters.push(cluster(2, Status::Failed, 0));
    assert_eq!(decide(&pool, &seen, NOON + minutes(1)).look_again, Some(NOON + minutes(2)));
    seen.clusters.push(cluster(3, Status::Failed, 0));
    let decision = decide(&pool, &seen, NOON + minutes(9999));
    assert_eq!((decision.action, decision.look_again), (Action::Stay, None));
    assert!(decision.reason.contains("3 clusters have failed, the last one is east-3"));
    assert_eq!(backoff(1000), Duration::from_hours(1));
}

#[test]
fn what_waits_is_for_the_first_pool_that_may_grow() {
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
    let of = |name: &str, one: Demand, may_grow: &[&str]| {
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
            let count = of(name, demand(2, selector), may_grow);
            assert_eq!(count == 1, expected == Some(name), "{name} {selector:?} {may_grow:?}");
        }
    }
    assert_eq!(of("a", demand(9, &[]), &all), 0, "it is larger than a cluster");
    let instance =
        Demand { instance: Some(("kafka".into(), "standard".into(), 1)), ..demand(2, &[]) };
    assert_eq!(of("a", instance, &all), 0, "its clusters are for no instances");
}
