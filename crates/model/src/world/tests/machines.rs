//! Machines: containers of several clusters share one capacity.

use super::*;

fn on(n: u32, owner: u32, cpu: i64) -> Cluster {
    let machine = Some("host".to_owned());
    Cluster { owner: Some(organization(owner)), machine, ..cluster(n, cpu) }
}

fn container(n: u32, cpu: i64, priority: i64, owner: u32) -> Unit {
    Unit { is_container: true, organization: organization(owner), ..unit(n, cpu, priority) }
}

/// Clusters of two organizations, each larger than their machine of 2 CPUs.
fn host() -> World {
    let mut world = world(&[]);
    world.set_machine("host", &cpus(2), &Resources::default());
    world.set_cluster(on(1, 1, 1000));
    world.set_cluster(on(2, 2, 1000));
    world
}

fn decide(world: &mut World) -> Decisions {
    world.decide(Time(1000), ENOUGH)
}

fn starts(decisions: &Decisions) -> Vec<UnitId> {
    decisions.starts.iter().map(|start| start.unit).collect()
}

#[test]
fn containers_of_all_clusters_share_the_machine() {
    let mut world = host();
    for unit in [container(1, 1, 0, 1), container(2, 1, 0, 2), container(3, 1, 0, 1)] {
        world.add_pending(&unit);
    }
    let decisions = decide(&mut world);
    assert_eq!(starts(&decisions), [id(1), id(2)]);
    assert_eq!(decisions.pending, [PendingUnit { unit: id(3), reason: PendingReason::Short }]);
    let explanation = world.explain(id(3), Time(1000)).unwrap();
    let shortage = &explanation.shortages[0];
    assert_eq!(
        (&shortage.missing, &shortage.missing_on_machine),
        (&Resources::default(), &cpus(1))
    );
    assert!(explanation.to_string().contains("the machine is short of 1 cpu"), "{explanation}");
    // Freed on another organization's cluster.
    world.remove(id(2));
    assert_eq!(starts(&decide(&mut world)), [id(3)]);
}

#[test]
fn unit_without_a_container_takes_nothing_from_the_machine() {
    let mut world = host();
    world.add_pending(&unit(1, 900, 0));
    world.add_pending(&container(2, 2, 0, 1));
    assert_eq!(starts(&decide(&mut world)), [id(1), id(2)]);
}

#[test]
fn kind_that_the_machine_lacks_can_never_be_placed() {
    let mut world = host();
    let request = Resources::from([("cpu", 1), ("gpu", 1)]);
    let gpus = Cluster::single(cluster_id(3), Some(organization(1)), request.clone(), cpus(0));
    world.set_cluster(Cluster { machine: Some("host".to_owned()), ..gpus });
    world.add_pending(&Unit { request: request.clone(), ..container(1, 1, 0, 1) });
    let never = [PendingUnit { unit: id(1), reason: PendingReason::Never }];
    assert_eq!(decide(&mut world).pending, never);
    let explanation = world.explain(id(1), Time(1000)).unwrap();
    assert_eq!(explanation.shortages[0].missing_on_machine, Resources::from([("gpu", 1)]));
    world.set_machine("host", &request, &Resources::default());
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
}

#[test]
fn preemption_frees_the_machine_in_another_cluster() {
    let mut world = host();
    world.set_cluster(on(3, 1, 1000));
    world.set_placed(&container(1, 2, 0, 1), at(1), Time(0));
    let urgent = Unit { target: Target::Cluster(cluster_id(3)), ..container(2, 1, 5, 1) };
    world.add_pending(&urgent);
    let decisions = decide(&mut world);
    let preemption = Preemption { victim: id(1), by: id(2), place: at(1) };
    assert_eq!(decisions.preemptions, [preemption]);
    world.requeue(id(1));
    let decisions = decide(&mut world);
    assert_eq!(starts(&decisions), [id(2)]);
    assert_eq!(decisions.starts[0].place, at(3));
}

#[test]
fn smaller_machine_takes_nothing_new_until_enough_has_ended() {
    let mut world = host();
    world.set_placed(&container(1, 1, 0, 1), at(1), Time(0));
    world.set_placed(&container(2, 1, 0, 2), at(2), Time(0));
    world.set_machine("host", &cpus(1), &Resources::default());
    world.add_pending(&container(3, 1, 0, 1));
    assert!(starts(&decide(&mut world)).is_empty());
    world.remove(id(1));
    assert!(starts(&decide(&mut world)).is_empty(), "still full");
    world.remove(id(2));
    assert_eq!(starts(&decide(&mut world)), [id(3)]);
}

#[test]
fn head_that_waits_for_its_cluster_does_not_wait_for_the_machine() {
    let mut world = host();
    world.set_cluster(on(1, 1, 1));
    world.set_placed(&container(1, 1, 0, 1), at(1), Time(0));
    world.set_placed(&container(2, 1, 0, 2), at(2), Time(0));
    world.add_pending(&container(3, 1, 0, 1));
    decide(&mut world);
    world.remove(id(2));
    let decisions = decide(&mut world);
    assert!(decisions.is_empty() && decisions.steps <= 2, "{decisions:?}");
    world.remove(id(1));
    assert_eq!(starts(&decide(&mut world)), [id(3)]);
}

#[test]
fn containers_take_their_limits() {
    let mut world = World::new(Settings::default());
    let mut size = cpus(8);
    size.set("ram", Quantity::whole(100 << 20));
    world.set_machine("host", &size, &Resources::default());
    world.set_cluster(on(1, 1, 1000));
    world.add_pending(&container(1, 1, 0, 1));
    world.add_pending(&container(2, 1, 0, 1));
    assert_eq!(starts(&decide(&mut world)), [id(1)]);
    assert_eq!(world.machine_free("host").unwrap().get("ram"), Quantity::whole(36 << 20));
}
