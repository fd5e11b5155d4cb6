//! The rules of placement, as examples and as properties.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::Xid;

fn id(n: u32) -> DeploymentId {
    DeploymentId(Xid::new(0, [0; 5], n))
}

fn held(n: u32, cpu: i64, priority: i64) -> Held {
    let request = Resources::from([("cpu", cpu)]);
    Held { id: id(n), request, priority, since: Time(n.into()), is_stopping: false }
}

fn waiting(n: u32, cpu: i64, priority: i64) -> Waiting {
    let request = Resources::from([("cpu", cpu)]);
    Waiting { id: id(n), request, priority, since: Time(n.into()), fits_elsewhere: false }
}

fn cpu(n: i64) -> Resources {
    Resources::from([("cpu", n)])
}

#[test]
fn higher_priority_goes_first_and_age_decides_among_equals() {
    let queue = [waiting(1, 1, 0), waiting(2, 1, 5), waiting(3, 1, 5)];
    let plan = plan(&cpu(2), &cpu(2), &[], &queue);
    assert_eq!(plan.starts, [id(2), id(3)]);
    assert_eq!(plan.waits, [(id(1), Wait::Short { missing: cpu(1) })]);
}

#[test]
fn smaller_ones_use_what_the_first_in_the_queue_cannot() {
    let plan = plan(&cpu(4), &cpu(1), &[held(9, 3, 0)], &[waiting(1, 2, 0), waiting(2, 1, 0)]);
    assert_eq!(plan.starts, [id(2)]);
}

#[test]
fn the_cheapest_set_yields() {
    let running = [held(1, 2, 1), held(2, 1, 0), held(3, 1, 0), held(4, 4, 9)];
    let plan = plan(&cpu(8), &cpu(0), &running, &[waiting(5, 2, 5)]);
    assert_eq!(plan.preemptions, [(id(3), id(5)), (id(2), id(5))]);
    assert_eq!(plan.waits, [(id(5), Wait::Yielding)]);
}

#[test]
fn who_is_not_needed_in_the_end_is_spared() {
    let running = [held(1, 1, 0), held(2, 4, 1)];
    let plan = plan(&cpu(5), &cpu(0), &running, &[waiting(3, 4, 5)]);
    assert_eq!(plan.preemptions, [(id(2), id(3))]);
}

#[test]
fn equals_never_yield_and_nobody_yields_in_vain() {
    let plan = plan(&cpu(4), &cpu(0), &[held(1, 3, 5), held(2, 1, 0)], &[waiting(3, 2, 5)]);
    assert_eq!(plan.preemptions, []);
}

#[test]
fn nobody_else_yields_while_others_are_already_stopping() {
    let mut stopping = held(1, 2, 0);
    stopping.is_stopping = true;
    let running = [stopping, held(2, 2, 0)];
    let plan = plan(&cpu(4), &cpu(0), &running, &[waiting(3, 2, 5), waiting(4, 1, 0)]);
    assert_eq!(plan.preemptions, []);
    assert_eq!(plan.starts, []);
    assert_eq!(plan.waits[0], (id(3), Wait::Yielding));
}

#[test]
fn too_large_for_the_cluster_is_said_so() {
    let mut big = waiting(1, 9, 0);
    big.request.set("gpu", Quantity::whole(1));
    let plan = plan(&cpu(4), &cpu(4), &[], &[big]);
    let missing = Resources::from([("cpu", 5), ("gpu", 1)]);
    assert_eq!(plan.waits, [(id(1), Wait::Never { missing })]);
}

#[test]
fn nobody_yields_for_what_another_cluster_would_take() {
    let mut roaming = waiting(2, 2, 5);
    roaming.fits_elsewhere = true;
    assert_eq!(plan(&cpu(2), &cpu(0), &[held(1, 2, 0)], &[roaming]), Plan::default());
}

prop_compose! {
    fn world()(
        holders in prop::collection::vec((1i64..5, 0i64..3, 0i64..4, any::<bool>()), 0..12),
        queue in prop::collection::vec((1i64..8, 0i64..3, 0i64..5), 0..12),
        spare in (0i64..6, 0i64..4),
    ) -> (Resources, Resources, Vec<Held>, Vec<Waiting>) {
        let vector = |cpu, gpu| Resources::from([("cpu", cpu), ("gpu", gpu)]);
        let held: Vec<Held> = (0u32..).zip(holders).map(|(n, (cpu, gpu, priority, stopping))| Held {
            request: vector(cpu, gpu), is_stopping: stopping, ..held(n, 0, priority)
        }).collect();
        let waiting = (100u32..).zip(queue).map(|(n, (cpu, gpu, priority))| Waiting {
            request: vector(cpu, gpu), ..waiting(n, 0, priority)
        }).collect();
        let free = vector(spare.0, spare.1);
        let mut total = free.clone();
        for h in &held {
            total.add(&h.request);
        }
        (total, free, held, waiting)
    }
}

proptest! {
    #[test]
    fn never_oversubscribed((total, free, held, waiting) in world()) {
        let plan = plan(&total, &free, &held, &waiting);
        let requests: BTreeMap<_, _> = waiting.iter().map(|w| (w.id, &w.request)).collect();
        let mut given = Resources::default();
        plan.starts.iter().for_each(|id| given.add(requests[id]));
        prop_assert!(given.fits(&free));
    }

    #[test]
    fn only_lower_priorities_yield_each_once((total, free, held, waiting) in world()) {
        let plan = plan(&total, &free, &held, &waiting);
        let mut seen = Vec::new();
        for (victim, by) in &plan.preemptions {
            let victim_priority = held.iter().find(|h| h.id == *victim).unwrap().priority;
            let by = waiting.iter().find(|w| w.id == *by).unwrap();
            prop_assert!(victim_priority < by.priority);
            prop_assert!(!seen.contains(victim));
            seen.push(*victim);
        }
    }

    #[test]
    fn everyone_in_the_queue_starts_or_knows_why((total, free, held, waiting) in world()) {
        let plan = plan(&total, &free, &held, &waiting);
        prop_assert_eq!(plan.starts.len() + plan.waits.len(), waiting.len());
    }

    #[test]
    fn the_order_of_the_input_does_not_matter((total, free, mut held, mut waiting) in world()) {
        let once = plan(&total, &free, &held, &waiting);
        held.reverse();
        waiting.reverse();
        prop_assert_eq!(once, plan(&total, &free, &held, &waiting));
    }

    #[test]
    fn a_plan_carried_out_leaves_nothing_to_do((total, free, held, waiting) in world()) {
        let first = plan(&total, &free, &held, &waiting);
        let (mut free, mut held) = (free, held);
        for id in &first.starts {
            let w = waiting.iter().find(|w| w.id == *id).unwrap();
            free.subtract(&w.request);
            held.push(Held { id: *id, request: w.request.clone(), priority: w.priority, since: w.since, is_stopping: false });
        }
        for (victim, _) in &first.preemptions {
            held.iter_mut().find(|h| h.id == *victim).unwrap().is_stopping = true;
        }
        let rest: Vec<Waiting> = waiting.into_iter().filter(|w| !first.starts.contains(&w.id)).collect();
        let second = plan(&total, &free, &held, &rest);
        prop_assert_eq!(second.starts, vec![]);
        prop_assert_eq!(second.preemptions, vec![]);
    }
}
