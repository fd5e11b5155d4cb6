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
fn higher_priority_goes_first_and_age_decides_among_equals() {
    let mut world = world(&[cluster(1, 2)]);
    for unit in &[unit(1, 1, 0), unit(2, 1, 5), unit(3, 1, 5)] {
        world.wait(unit);
    }
    let decisions = decide(&mut world);
    assert_eq!(starts(&decisions), [id(2), id(3)]);
    assert_eq!(decisions.waits, [Waiting { unit: id(1), wait: Wait::Short }]);
}

#[test]
fn sums_are_not_enough() {
    let mut world = world(&[cluster(1, 2), cluster(2, 2)]);
    world.wait(&unit(1, 3, 0));
    assert_eq!(decide(&mut world).waits, [Waiting { unit: id(1), wait: Wait::Never }]);
}

#[test]
fn who_overtakes_says_whom_and_why() {
    let mut world = world(&[cluster(1, 4)]);
    world.placed(&unit(9, 3, 0), at(1), Time(0));
    world.wait(&unit(1, 2, 0));
    world.wait(&unit(2, 1, 0));
    let decisions = decide(&mut world);
    let backfill = Some(Backfill { ahead: id(1), why: Why::DoesNotFit });
    assert_eq!(decisions.starts, [Start { unit: id(2), place: at(1), backfill }]);
}

#[test]
fn the_cheapest_set_yields_and_its_displacer_starts_when_it_is_gone() {
    let mut world = world(&[cluster(1, 8)]);
    for (n, cpu, priority) in [(1, 2, 1), (2, 1, 0), (3, 1, 0), (4, 4, 9)] {
        world.placed(&unit(n, cpu, priority), at(1), Time(n.into()));
    }
    world.wait(&unit(5, 2, 5));
    let decisions = decide(&mut world);
    assert_eq!(victims(&decisions), [id(3), id(2)]);
    assert_eq!(decisions.waits, [Waiting { unit: id(5), wait: Wait::Yielding }]);
    world.requeue(id(3));
    assert!(decide(&mut world).is_empty(), "half of it is not enough");
    world.gone(id(2));
    assert_eq!(starts(&decide(&mut world)), [id(5)]);
    assert!(decide(&mut world).is_empty(), "the victim can't come back against it");
}

#[test]
fn who_is_not_needed_is_spared_and_equals_never_yield() {
    let mut world = world(&[cluster(1, 5), cluster(2, 4)]);
    world.placed(&unit(1, 1, 0), at(1), Time(0));
    world.placed(&unit(2, 4, 1), at(1), Time(0));
    world.placed(&unit(3, 3, 5), at(2), Time(0));
    world.placed(&unit(4, 1, 0), at(2), Time(0));
    world.wait(&unit(5, 4, 5));
    assert_eq!(victims(&decide(&mut world)), [id(2)]);
}

#[test]
fn nobody_yields_while_there_is_room_elsewhere_or_coming() {
    let mut world = world(&[cluster(1, 2), cluster(2, 2)]);
    world.placed(&unit(1, 2, 0), at(1), Time(0));
    world.placed(&unit(2, 2, 0), at(2), Time(0));
    world.stopping(id(2), None);
    world.wait(&unit(3, 2, 5));
    let decisions = decide(&mut world);
    assert_eq!(victims(&decisions), []);
    let reservation = Reservation { unit: id(3), place: at(2), is_promised: true };
    assert_eq!(decisions.reservations, [reservation]);
    world.gone(id(2));
    assert_eq!(starts(&decide(&mut world)), [id(3)]);
}

#[test]
fn own_clusters_come_before_shared_ones_and_others_are_out_of_reach() {
    let own = Cluster { owner: Some(organization(1)), ..cluster(2, 1) };
    let other = Cluster { owner: Some(organization(2)), ..cluster(3, 9) };
    let mut world = world(&[cluster(1, 1), own, other]);
    (1..=3).for_each(|n| world.wait(&unit(n, 1, 0)));
    let decisions = decide(&mut world);
    let places: Vec<Place> = decisions.starts.iter().map(|s| s.place.clone()).collect();
    assert_eq!(places, [at(2), at(1)]);
    let foreign = Unit { target: Target::Cluster(cluster_id(3)), ..unit(4, 1, 0) };
    world.wait(&foreign);
    assert_eq!(decide(&mut world).waits, [Waiting { unit: id(4), wait: Wait::Never }]);
}

#[test]
fn pinned_units_wait_for_their_cluster_even_before_it_is_known() {
    let mut world = world(&[cluster(1, 9)]);
    world.wait(&Unit { target: Target::Cluster(cluster_id(2)), ..unit(1, 1, 0) });
    assert!(decide(&mut world).is_empty());
    world.set_cluster(Cluster { is_ready: false, ..cluster(2, 1) });
    assert!(decide(&mut world).is_empty());
    world.set_cluster(cluster(2, 1));
    assert_eq!(decide(&mut world).starts[0].place, at(2));
}

#[test]
fn a_kind_that_nobody_has_may_come_later() {
    let mut world = world(&[cluster(1, 9)]);
    let request = Resources::from([("fpga", 1)]);
    world.wait(&Unit { request: request.clone(), ..unit(1, 1, 0) });
    assert_eq!(decide(&mut world).waits, [Waiting { unit: id(1), wait: Wait::Never }]);
    world.set_cluster(Cluster::single(cluster_id(2), None, request, Resources::default()));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
}

#[test]
fn replicas_that_must_be_apart_are() {
    let mut world = world(&[cluster(1, 9), cluster(2, 9)]);
    let replica =
        |replica| Unit { id: UnitId { owner: xid(1), replica }, is_spread: true, ..unit(1, 1, 0) };
    (0..3).for_each(|n| world.wait(&replica(n)));
    let decisions = decide(&mut world);
    assert_eq!(decisions.starts.len(), 2);
    assert_ne!(decisions.starts[0].place, decisions.starts[1].place);
    world.gone(UnitId { owner: xid(1), replica: 0 });
    assert_eq!(starts(&decide(&mut world)), [UnitId { owner: xid(1), replica: 2 }]);
}

#[test]
fn labels_are_matched_on_nodes_and_clusters() {
    let label = |value: &str| BTreeMap::from([("zone".to_owned(), value.to_owned())]);
    let mut world = world(&[cluster(1, 9), Cluster { labels: label("b"), ..cluster(2, 9) }]);
    world.wait(&Unit { selector: label("b"), ..unit(1, 1, 0) });
    world.wait(&Unit { selector: label("c"), ..unit(2, 1, 0) });
    let decisions = decide(&mut world);
    assert_eq!(decisions.starts[0].place, at(2));
    assert_eq!(decisions.waits, [Waiting { unit: id(2), wait: Wait::Never }]);
}

#[test]
fn scarce_kinds_are_kept_for_those_who_need_them() {
    let with_gpu = Resources::from([("cpu", 4), ("gpu", 1)]);
    let gpu = Cluster::single(cluster_id(1), None, with_gpu, Resources::default());
    let mut world = world(&[gpu, cluster(2, 8), cluster(3, 8)]);
    world.wait(&unit(1, 4, 0));
    assert_ne!(decide(&mut world).starts[0].place, at(1));
}

#[test]
fn what_is_taken_by_hand_is_not_there() {
    let taken = Cluster::single(cluster_id(1), None, cpus(4), cpus(3));
    let mut world = world(&[taken]);
    world.wait(&unit(1, 2, 0));
    assert_eq!(decide(&mut world).waits, [Waiting { unit: id(1), wait: Wait::Short }]);
    world.set_cluster(cluster(1, 4));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
}

#[test]
fn a_budget_stops_preemption_and_says_so() {
    let mut world = world(&[cluster(1, 2)]);
    world.placed(&unit(1, 2, 0), at(1), Time(0));
    world.set_budget(organization(1), Some(Budget { limit: 3, used: 3 }));
    world.wait(&unit(2, 2, 5));
    let decisions = decide(&mut world);
    assert_eq!(decisions.waits, [Waiting { unit: id(2), wait: Wait::Budget }]);
    assert!(decisions.is_empty());
    world.set_budget(organization(1), Some(Budget { limit: 3, used: 2 }));
    assert_eq!(victims(&decide(&mut world)), [id(1)]);
}

#[test]
fn negative_priorities_yield_in_their_order() {
    let mut world = world(&[cluster(1, 2)]);
    world.placed(&unit(1, 1, -1), at(1), Time(900));
    world.placed(&unit(2, 1, -9), at(1), Time(100));
    world.wait(&unit(3, 1, 0));
    assert_eq!(victims(&decide(&mut world)), [id(2)]);
}

#[test]
fn a_start_that_could_not_be_made_durable_is_tried_again() {
    let mut world = world(&[cluster(1, 1)]);
    world.wait(&unit(1, 1, 0));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
    world.requeue(id(1));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
    world.placed(&unit(1, 1, 0), at(1), Time(1000));
    assert!(decide(&mut world).is_empty());
}

#[test]
fn absurd_amounts_do_no_harm() {
    let all = |n: u32| {
        let most: Resources = [("ram".to_owned(), Quantity::MAX)].into_iter().collect();
        Unit { request: most, ..unit(n, 0, i64::from(n)) }
    };
    let mut world = world(&[]);
    let most = all(1).request;
    world.set_cluster(Cluster::single(cluster_id(1), None, most, Resources::default()));
    for n in 1..9 {
        world.wait(&all(n));
        world.decide(Time(i64::MAX), ENOUGH);
    }
    assert_eq!(world.waiting_len(), 7);
}
