//! Properties that hold for every pool and every observed state.

use proptest::prelude::*;

use super::*;

fn any_cluster(n: u32) -> impl Strategy<Value = ObservedCluster> {
    let used = prop_oneof![Just(0), 0i64..=8];
    let ready = prop_oneof![3 => Just(Status::Ready), 1 => prop::sample::select(Status::ALL)];
    (ready, used, 0u64..40).prop_map(move |(status, used, ago)| ObservedCluster {
        empty_since: (used == 0).then(|| NOON - minutes(ago)),
        since: NOON - minutes(ago),
        ..cluster(n, status, used)
    })
}

fn any_pool() -> impl Strategy<Value = Pool> {
    (0u32..4, 1u32..8, 0i64..40, 0i64..20, 0i64..=8, 0u64..20).prop_map(
        |(at_least, more, limit, slack, largest, cool)| Pool {
            at_least,
            at_most: at_least + more,
            limit: if limit < 8 { Resources::default() } else { cpus(limit) },
            slack: cpus(slack.min(i64::from(at_least + more) * 8)),
            largest: if largest == 0 { Vec::new() } else { vec![cpus(largest)] },
            pace: Pace { cool_down: minutes(cool), ..Pace::default() },
            ..plain()
        },
    )
}

fn any_seen() -> impl Strategy<Value = Observed> {
    let time = || prop::option::of((0u64..40).prop_map(|ago| NOON - minutes(ago)));
    let clusters = (0usize..7).prop_flat_map(|count| {
        (0..count).map(|n| any_cluster(u32::try_from(n).unwrap())).collect::<Vec<_>>()
    });
    let waiting = prop::collection::vec((1i64..=8, 1usize..5, 0u64..9), 0..3);
    (
        clusters,
        waiting,
        time(),
        time(),
        prop::option::of(prop::sample::select(ScaleUpCause::ALL)),
        time(),
    )
        .prop_map(|(clusters, waiting, grown_at, shrunk_at, wish, wish_since)| Observed {
            clusters,
            waiting: waiting
                .into_iter()
                .map(|(cpu, count, ago)| pending(cpu, count, NOON - minutes(ago)))
                .collect(),
            memory: Memory { grown_at, shrunk_at, wish, wish_since },
        })
}

/// Executes a decision instantly.
fn execute(pool: &Pool, seen: &mut Observed, decision: &Decision, now: Time) {
    seen.memory = seen.memory.after(decision, now);
    match decision.action {
        Action::Stay => {}
        Action::Shrink(id) => seen.clusters.retain(|cluster| cluster.id != id),
        Action::Grow => {
            let mut new = cluster(1000, Status::Ready, 0);
            new.id = cluster_id(1000 + u32::try_from(seen.clusters.len()).unwrap());
            new.empty_since = Some(now);
            place(&mut seen.waiting, &mut new, &pool.template.capacity);
            seen.clusters.push(new);
        }
    }
}

/// Places pending workloads on a cluster, oldest first.
fn place(waiting: &mut Vec<PendingWorkloads>, on: &mut ObservedCluster, total: &Resources) {
    let node = &mut on.nodes[0];
    node.total = total.clone();
    waiting.sort_by_key(|one| one.since);
    for one in waiting.iter_mut() {
        while one.count > 0 && one.request.fits(&node.open()) {
            node.used.add(&one.request);
            one.count -= 1;
            on.empty_since = None;
        }
    }
    waiting.retain(|one| one.count > 0);
}

fn shortfall(pool: &Pool, seen: &Observed) -> (usize, Resources, usize) {
    let waiting = seen.waiting.iter().map(|one| one.count).sum();
    let missing = (pool.at_least as usize).saturating_sub(seen.live());
    (waiting, pool.slack.shortage(&seen.free()), missing)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn decision_is_independent_of_the_order_of_clusters(
        pool in any_pool(), seen in any_seen(),
    ) {
        let mut reversed = seen.clone();
        reversed.clusters.reverse();
        reversed.waiting.reverse();
        prop_assert_eq!(decide(&pool, &seen, NOON), decide(&pool, &reversed, NOON));
    }

    #[test]
    fn number_of_clusters_stays_within_its_bounds(pool in any_pool(), seen in any_seen()) {
        let decision = decide(&pool, &seen, NOON);
        prop_assert!(decision.reason.ends_with('.'), "{}", decision.reason);
        match decision.action {
            Action::Grow => {
                prop_assert!(seen.existing() < pool.at_most as usize);
                let consumed = seen.consumed();
                prop_assert!(pool.limit.iter().all(|(kind, most)| consumed.get(kind) < most));
                prop_assert!(!seen.clusters.iter().any(ObservedCluster::is_arriving));
                prop_assert!(seen.memory.shrunk_at.is_none_or(|at| NOON >= at + pool.pace.cool_down));
            }
            Action::Shrink(id) => {
                prop_assert!(seen.live() > pool.at_least as usize);
                let removed = seen.clusters.iter().find(|cluster| cluster.id == id).unwrap();
                prop_assert!(removed.is_ready() && removed.empty_since.is_some());
                prop_assert!(seen.memory.grown_at.is_none_or(|at| NOON >= at + pool.pace.cool_down));
            }
            Action::Stay => {}
        }
    }

    #[test]
    fn scale_up_reduces_the_shortfall(pool in any_pool(), mut seen in any_seen()) {
        let first = decide(&pool, &seen, NOON);
        if first.action != Action::Grow {
            return Ok(());
        }
        let before = shortfall(&pool, &seen);
        execute(&pool, &mut seen, &first, NOON);
        let later = NOON + minutes(60);
        let second = decide(&pool, &seen, later);
        if second.action == Action::Grow && second.wish == first.wish {
            prop_assert_ne!(first.wish, Some(ScaleUpCause::Largest));
            prop_assert_ne!(shortfall(&pool, &seen), before, "grew in vain");
        }
    }

    #[test]
    fn scale_down_does_not_cause_a_scale_up(pool in any_pool(), mut seen in any_seen()) {
        let first = decide(&pool, &seen, NOON);
        if !matches!(first.action, Action::Shrink(_)) {
            return Ok(());
        }
        execute(&pool, &mut seen, &first, NOON);
        let next = decide(&pool, &seen, NOON + minutes(600));
        prop_assert_eq!(next.wish, None, "{}", next.reason);
    }

    #[test]
    fn pool_converges_under_constant_demand(pool in any_pool(), mut seen in any_seen()) {
        let mut now = NOON;
        let mut changes = Vec::new();
        for _ in 0..200 {
            let decision = decide(&pool, &seen, now);
            execute(&pool, &mut seen, &decision, now);
            match decision.action {
                Action::Stay => {}
                Action::Grow => changes.push((now, true)),
                Action::Shrink(_) => changes.push((now, false)),
            }
            now = now + minutes(1);
        }
        // It may grow and then remove excess clusters, but it never oscillates.
        let reversals = changes.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        prop_assert!(reversals <= 1, "{changes:?}");
        for pair in changes.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
            prop_assert!(pair[1].0.since(pair[0].0) >= pool.pace.cool_down, "{changes:?}");
        }
        prop_assert_eq!(decide(&pool, &seen, now).action, Action::Stay, "converges");
    }
}
