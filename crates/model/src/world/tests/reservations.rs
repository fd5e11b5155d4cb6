//! Reservations for long-pending units when nodes change.

use super::*;

/// A node of the first organization's cluster (1) or of the shared one (2), with a label.
fn node(name: &str, cpu: i64, zone: &str) -> Node {
    let labels = BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
    Node {
        name: name.to_owned(),
        capacity: cpus(cpu),
        manually_reserved: Resources::default(),
        labels,
    }
}

fn own(nodes: Vec<Node>) -> Cluster {
    let (owner, labels) = (Some(organization(1)), BTreeMap::new());
    Cluster { id: cluster_id(1), owner, machine: None, is_ready: true, labels, nodes }
}

/// All nodes are full of units of the same priority; half of them may be reserved. Unit 10 requests
/// 4 CPUs, and unit 11 8 CPUs in zone a, which only the first own node and the shared node have.
fn waiting(second: Node) -> World {
    let mut world = World::new(Settings { max_reserved_permille: 500, ..Settings::default() });
    let nodes = vec![node("large", 8, "a"), second];
    let shared = Cluster { id: cluster_id(2), owner: None, ..own(vec![node("shared", 8, "a")]) };
    for (n, (cluster, node)) in
        (1u32..).zip(nodes.iter().map(|n| (1, n)).chain([(2, &shared.nodes[0])]))
    {
        let place = Place { cluster: cluster_id(cluster), node: node.name.as_str().into() };
        world.set_placed(&Unit { request: node.capacity.clone(), ..unit(n, 0, 0) }, place, Time(0));
    }
    world.set_cluster(own(nodes));
    world.set_cluster(shared);
    let zone = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    world.add_pending(&unit(10, 4, 0));
    world.add_pending(&Unit { selector: zone, ..unit(11, 8, 0) });
    let reserved = world.decide(Time(0) + Duration::from_hours(1), ENOUGH).reservations;
    assert_eq!(reserved.iter().map(|r| r.unit).collect::<Vec<_>>(), [id(10)], "only on one of two");
    world
}

fn reserved_for(world: &mut World, n: u32) -> Option<Place> {
    world.decide(Time(0) + Duration::from_hours(2), ENOUGH);
    let mut reserved = world.reservations().into_iter();
    reserved.find(|r| r.unit == id(n)).map(|r| r.place)
}

#[test]
fn reservation_moves_when_its_only_fitting_node_shrinks() {
    let mut world = waiting(node("small", 4, "a"));
    world.set_cluster(own(vec![node("large", 4, "a"), node("small", 4, "a")]));
    assert_eq!(reserved_for(&mut world, 11).map(|place| place.cluster), Some(cluster_id(2)));
}

#[test]
fn node_with_other_labels_does_not_hold_the_reservation() {
    let mut world = waiting(node("other", 8, "b"));
    world.set_cluster(own(vec![node("large", 4, "a"), node("other", 8, "b")]));
    assert_eq!(reserved_for(&mut world, 11).map(|place| place.cluster), Some(cluster_id(2)));
}

#[test]
fn more_nodes_allow_more_reservations() {
    let mut world = waiting(node("small", 4, "a"));
    let mut nodes = vec![node("large", 8, "a"), node("small", 4, "a")];
    nodes.extend([node("tiny", 1, "a"), node("least", 1, "a")]);
    world.set_cluster(own(nodes));
    assert_eq!(reserved_for(&mut world, 11).map(|place| place.cluster), Some(cluster_id(1)));
}
