//! One rule, one example.

use super::*;

fn starts(decisions: &Decisions) -> Vec<UnitId> {
    decisions.starts.iter().map(|start| start.unit).collect()
}

fn victims(decisions: &Decisions) -> Vec<UnitId> {
    decisions.preemptions.iter().map(|p| p.victim).collect()
}

fn decide(world: &mut World) -> Decisions {
    let decisions = world.decide(Time(1000), ENOUGH);
    assert!(decisions.is_complete);
    decisions
}

#[test]
fn queue_is_ordered_by_priority_then_age() {
    let mut world = world(&[cluster(1, 2)]);
    for unit in &[unit(1, 1, 0), unit(2, 1, 5), unit(3, 1, 5)] {
        world.add_pending(unit);
    }
    let decisions = decide(&mut world);
    assert_eq!(starts(&decisions), [id(2), id(3)]);
    assert_eq!(decisions.pending, [PendingUnit { unit: id(1), reason: PendingReason::Short }]);
}

#[test]
fn request_must_fit_on_a_single_node() {
    let mut world = world(&[cluster(1, 2), cluster(2, 2)]);
    world.add_pending(&unit(1, 3, 0));
    assert_eq!(
        decide(&mut world).pending,
        [PendingUnit { unit: id(1), reason: PendingReason::Never }]
    );
}

#[test]
fn backfill_names_the_overtaken_unit_and_the_reason() {
    let mut world = world(&[cluster(1, 4)]);
    world.set_placed(&unit(9, 3, 0), at(1), Time(0));
    world.add_pending(&unit(1, 2, 0));
    world.add_pending(&unit(2, 1, 0));
    let decisions = decide(&mut world);
    let backfill = Some(Backfill { ahead: id(1), why: BackfillReason::DoesNotFit });
    assert_eq!(decisions.starts, [Start { unit: id(2), place: at(1), backfill }]);
}

#[test]
fn cheapest_victims_are_preempted_and_the_preemptor_starts_once_they_stop() {
    let mut world = world(&[cluster(1, 8)]);
    for (n, cpu, priority) in [(1, 2, 1), (2, 1, 0), (3, 1, 0), (4, 4, 9)] {
        world.set_placed(&unit(n, cpu, priority), at(1), Time(n.into()));
    }
    world.add_pending(&unit(5, 2, 5));
    let decisions = decide(&mut world);
    assert_eq!(victims(&decisions), [id(3), id(2)]);
    assert_eq!(decisions.pending, [PendingUnit { unit: id(5), reason: PendingReason::Yielding }]);
    world.requeue(id(3));
    assert!(decide(&mut world).is_empty(), "one of two victims is not enough");
    world.remove(id(2));
    assert_eq!(starts(&decide(&mut world)), [id(5)]);
    assert!(decide(&mut world).is_empty(), "the victim cannot preempt it in turn");
}

#[test]
fn unnecessary_victims_are_spared_and_equal_priorities_never_preempted() {
    let mut world = world(&[cluster(1, 5), cluster(2, 4)]);
    world.set_placed(&unit(1, 1, 0), at(1), Time(0));
    world.set_placed(&unit(2, 4, 1), at(1), Time(0));
    world.set_placed(&unit(3, 3, 5), at(2), Time(0));
    world.set_placed(&unit(4, 1, 0), at(2), Time(0));
    world.add_pending(&unit(5, 4, 5));
    assert_eq!(victims(&decide(&mut world)), [id(2)]);
}

#[test]
fn no_preemption_while_capacity_is_about_to_be_free() {
    let mut world = world(&[cluster(1, 2), cluster(2, 2)]);
    world.set_placed(&unit(1, 2, 0), at(1), Time(0));
    world.set_placed(&unit(2, 2, 0), at(2), Time(0));
    world.set_stopping(id(2), None);
    world.add_pending(&unit(3, 2, 5));
    let decisions = decide(&mut world);
    assert_eq!(victims(&decisions), []);
    let reservation = Reservation { unit: id(3), place: at(2), is_promised: true };
    assert_eq!(decisions.reservations, [reservation]);
    world.remove(id(2));
    assert_eq!(starts(&decide(&mut world)), [id(3)]);
}

#[test]
fn own_clusters_are_preferred_to_shared_ones_and_those_of_others_unusable() {
    let own = Cluster { owner: Some(organization(1)), ..cluster(2, 1) };
    let other = Cluster { owner: Some(organization(2)), ..cluster(3, 9) };
    let mut world = world(&[cluster(1, 1), own, other]);
    (1..=3).for_each(|n| world.add_pending(&unit(n, 1, 0)));
    let decisions = decide(&mut world);
    let places: Vec<Place> = decisions.starts.iter().map(|s| s.place.clone()).collect();
    assert_eq!(places, [at(2), at(1)]);
    let pinned = Unit { target: Target::Cluster(cluster_id(3)), ..unit(4, 1, 0) };
    world.add_pending(&pinned);
    assert_eq!(
        decide(&mut world).pending,
        [PendingUnit { unit: id(4), reason: PendingReason::Never }]
    );
}

#[test]
fn pinned_unit_waits_for_a_cluster_that_is_not_registered_yet() {
    let mut world = world(&[cluster(1, 9)]);
    world.add_pending(&Unit { target: Target::Cluster(cluster_id(2)), ..unit(1, 1, 0) });
    assert!(decide(&mut world).is_empty());
    world.set_cluster(Cluster { is_ready: false, ..cluster(2, 1) });
    assert!(decide(&mut world).is_empty());
    world.set_cluster(cluster(2, 1));
    assert_eq!(decide(&mut world).starts[0].place, at(2));
}

#[test]
fn unit_starts_once_a_node_has_the_requested_kind() {
    let mut world = world(&[cluster(1, 9)]);
    let request = Resources::from([("fpga", 1)]);
    world.add_pending(&Unit { request: request.clone(), ..unit(1, 1, 0) });
    assert_eq!(
        decide(&mut world).pending,
        [PendingUnit { unit: id(1), reason: PendingReason::Never }]
    );
    world.set_cluster(Cluster::single(cluster_id(2), None, request, Resources::default()));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
}

#[test]
fn anti_affinity_spreads_replicas_over_nodes() {
    let mut world = world(&[cluster(1, 9), cluster(2, 9)]);
    let replica =
        |replica| Unit { id: UnitId { owner: xid(1), replica }, is_spread: true, ..unit(1, 1, 0) };
    (0..3).for_each(|n| world.add_pending(&replica(n)));
    let decisions = decide(&mut world);
    assert_eq!(decisions.starts.len(), 2);
    assert_ne!(decisions.starts[0].place, decisions.starts[1].place);
    world.remove(UnitId { owner: xid(1), replica: 0 });
    assert_eq!(starts(&decide(&mut world)), [UnitId { owner: xid(1), replica: 2 }]);
}

#[test]
fn selector_matches_labels_of_nodes_and_clusters() {
    let label = |value: &str| BTreeMap::from([("zone".to_owned(), value.to_owned())]);
    let mut world = world(&[cluster(1, 9), Cluster { labels: label("b"), ..cluster(2, 9) }]);
    world.add_pending(&Unit { selector: label("b"), ..unit(1, 1, 0) });
    world.add_pending(&Unit { selector: label("c"), ..unit(2, 1, 0) });
    let decisions = decide(&mut world);
    assert_eq!(decisions.starts[0].place, at(2));
    assert_eq!(decisions.pending, [PendingUnit { unit: id(2), reason: PendingReason::Never }]);
}

#[test]
fn nodes_with_scarce_kinds_are_used_last() {
    let with_gpu = Resources::from([("cpu", 4), ("gpu", 1)]);
    let gpu = Cluster::single(cluster_id(1), None, with_gpu, Resources::default());
    let mut world = world(&[gpu, cluster(2, 8), cluster(3, 8)]);
    world.add_pending(&unit(1, 4, 0));
    assert_ne!(decide(&mut world).starts[0].place, at(1));
}

#[test]
fn manually_reserved_capacity_is_not_free() {
    let taken = Cluster::single(cluster_id(1), None, cpus(4), cpus(3));
    let mut world = world(&[taken]);
    world.add_pending(&unit(1, 2, 0));
    assert_eq!(
        decide(&mut world).pending,
        [PendingUnit { unit: id(1), reason: PendingReason::Short }]
    );
    world.set_cluster(cluster(1, 4));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
}

#[test]
fn exhausted_budget_prevents_preemption() {
    let mut world = world(&[cluster(1, 2)]);
    world.set_placed(&unit(1, 2, 0), at(1), Time(0));
    world.set_budget(organization(1), Some(Budget { limit: 3, used: 3 }));
    world.add_pending(&unit(2, 2, 5));
    let decisions = decide(&mut world);
    assert_eq!(decisions.pending, [PendingUnit { unit: id(2), reason: PendingReason::Budget }]);
    assert!(decisions.is_empty());
    world.set_budget(organization(1), Some(Budget { limit: 3, used: 2 }));
    assert_eq!(victims(&decide(&mut world)), [id(1)]);
}

#[test]
fn lowest_negative_priority_is_preempted_first() {
    let mut world = world(&[cluster(1, 2)]);
    world.set_placed(&unit(1, 1, -1), at(1), Time(900));
    world.set_placed(&unit(2, 1, -9), at(1), Time(100));
    world.add_pending(&unit(3, 1, 0));
    assert_eq!(victims(&decide(&mut world)), [id(2)]);
}

#[test]
fn start_that_was_not_persisted_is_retried() {
    let mut world = world(&[cluster(1, 1)]);
    world.add_pending(&unit(1, 1, 0));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
    world.requeue(id(1));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
    world.set_placed(&unit(1, 1, 0), at(1), Time(1000));
    assert!(decide(&mut world).is_empty());
}

#[test]
fn maximum_quantities_do_not_overflow() {
    let all = |n: u32| {
        let most: Resources = [("ram".to_owned(), Quantity::MAX)].into_iter().collect();
        Unit { request: most, ..unit(n, 0, i64::from(n)) }
    };
    let mut world = world(&[]);
    let most = all(1).request;
    world.set_cluster(Cluster::single(cluster_id(1), None, most, Resources::default()));
    for n in 1..9 {
        world.add_pending(&all(n));
        world.decide(Time(i64::MAX), ENOUGH);
    }
    assert_eq!(world.pending_len(), 7);
}
