//! Fair shares: whom preemption across organizations spares.

use proptest::prelude::*;

use super::*;

fn of(owner: u32, unit: Unit) -> Unit {
    Unit { organization: organization(owner), ..unit }
}

fn victims(decisions: &Decisions) -> Vec<UnitId> {
    decisions.preemptions.iter().map(|p| p.victim).collect()
}

fn decide(world: &mut World) -> Decisions {
    world.decide(Time(1000), ENOUGH)
}

/// Organization 1 has `first` units of 1 CPU and organization 2 `second` on a shared cluster.
fn shared(cpu: i64, first: u32, second: u32) -> World {
    let mut world = world(&[cluster(1, cpu)]);
    for n in 0..first {
        world.set_placed(&of(1, unit(100 + n, 1, 0)), at(1), Time(n.into()));
    }
    for n in 0..second {
        world.set_placed(&of(2, unit(200 + n, 1, 0)), at(1), Time(n.into()));
    }
    world
}

#[test]
fn organization_within_its_fair_share_is_not_preempted_by_others() {
    let mut world = shared(4, 2, 2);
    world.add_pending(&of(2, unit(1, 1, 99)));
    // Both have half: only its own are preempted.
    assert_eq!(victims(&decide(&mut world)), [id(201)]);
    let mut world = shared(4, 4, 0);
    for n in 1..=4 {
        world.add_pending(&of(2, unit(n, 1, 99)));
    }
    // Down to its half, and not below.
    let decisions = decide(&mut world);
    assert_eq!(victims(&decisions), [id(103), id(102)]);
    let protected = PendingUnit { unit: id(3), reason: PendingReason::FairShare };
    assert!(decisions.pending.contains(&protected), "{decisions:?}");
    let explanation = world.explain(id(3), Time(1000)).unwrap();
    assert!(explanation.to_string().contains("within their fair share"), "{explanation}");
}

#[test]
fn own_units_are_preempted_whatever_the_share() {
    let mut world = shared(4, 1, 3);
    world.add_pending(&of(1, unit(1, 4, 99)));
    assert!(victims(&decide(&mut world)).is_empty(), "others have the rest");
    let mut world = shared(1, 1, 0);
    world.add_pending(&of(1, unit(1, 1, 1)));
    assert_eq!(victims(&decide(&mut world)), [id(100)]);
}

#[test]
fn weight_enlarges_the_fair_share() {
    let mut world = shared(4, 3, 1);
    world.set_weight(organization(1), 3);
    world.add_pending(&of(2, unit(1, 1, 99)));
    assert_eq!(victims(&decide(&mut world)), [id(200)], "three of four are its share");
    let mut world = shared(4, 3, 1);
    world.add_pending(&of(2, Unit { since: Time(5), ..unit(1, 2, 99) }));
    // One of the other's third unit, one of its own.
    assert_eq!(victims(&decide(&mut world)).len(), 2);
}

#[test]
fn dominant_kind_decides() {
    let both = |cpu: i64, ram: i64| Resources::from([("cpu", cpu), ("ram", ram)]);
    let mut world = world(&[]);
    world.set_cluster(Cluster::single(cluster_id(1), None, both(8, 8), Resources::default()));
    // Little CPU, but most of the memory.
    let hog = Unit { request: both(1, 6), ..of(1, unit(100, 0, 0)) };
    world.set_placed(&hog, at(1), Time(0));
    world.set_placed(&Unit { request: both(4, 2), ..of(2, unit(200, 0, 0)) }, at(1), Time(0));
    world.add_pending(&Unit { request: both(1, 3), ..of(3, unit(1, 0, 5)) });
    assert_eq!(victims(&decide(&mut world)), [id(100)]);
}

#[test]
fn protected_head_preempts_once_the_other_exceeds_its_share() {
    let mut world = shared(4, 2, 0);
    world.set_placed(&of(2, unit(200, 2, 50)), at(1), Time(0));
    world.set_weight(organization(1), 2);
    world.add_pending(&of(3, unit(1, 1, 20)));
    assert!(victims(&decide(&mut world)).is_empty(), "two of four are its share");
    let share = PendingReason::FairShare;
    assert_eq!(world.explain(id(1), Time(1000)).unwrap().wait, Some(share));
    world.set_weight(organization(1), 1);
    assert_eq!(victims(&decide(&mut world)), [id(101)], "a third is its share");
}

#[test]
fn fair_shares_of_the_machine_span_clusters() {
    let on = |n: u32, owner: u32| {
        let machine = Some("host".to_owned());
        Cluster { owner: Some(organization(owner)), machine, ..cluster(n, 100) }
    };
    let container = |owner: u32, unit: Unit| Unit { is_container: true, ..of(owner, unit) };
    let mut world = world(&[]);
    world.set_machine("host", &cpus(4), &Resources::default());
    world.set_cluster(on(1, 1));
    world.set_cluster(on(2, 2));
    for n in 0..4 {
        world.set_placed(&container(1, unit(100 + n, 1, 0)), at(1), Time(n.into()));
    }
    for n in 1..=4 {
        world.add_pending(&container(2, unit(n, 1, 99)));
    }
    assert_eq!(victims(&decide(&mut world)), [id(103), id(102)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Victims return to the queue until nothing changes: preemption ends, so no victim preempts
    /// its preemptor.
    #[test]
    fn preemption_between_organizations_ends(
        cpu in 2i64..10,
        units in prop::collection::vec((1i64..4, 0i64..4, 1u32..4, any::<bool>()), 1..24),
        weights in prop::collection::vec(1i64..4, 3),
    ) {
        let mut world = world(&[]);
        world.set_machine("host", &cpus(cpu), &Resources::default());
        world.set_cluster(Cluster { machine: Some("host".to_owned()), ..cluster(1, cpu) });
        for (owner, weight) in (1u32..).zip(weights) {
            world.set_weight(organization(owner), weight);
        }
        for (n, &(cpu, priority, owner, is_container)) in (1u32..).zip(&units) {
            world.add_pending(&Unit { is_container, ..of(owner, unit(n, cpu, priority)) });
        }
        // Each victim makes way for a higher priority.
        let most = units.len() * units.len() + 1;
        for round in 0..=most {
            let decisions = decide(&mut world);
            if decisions.is_empty() {
                break;
            }
            prop_assert!(round < most, "no end");
            for preemption in decisions.preemptions {
                world.requeue(preemption.victim);
            }
        }
    }
}
