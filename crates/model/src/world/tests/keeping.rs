//! Where room is kept for those who have waited long, when nodes change.

use super::*;

/// A node of the first organization's cluster (1) or of the shared one (2), with a label.
fn node(name: &str, cpu: i64, zone: &str) -> Node {
    let labels = BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
    Node { name: name.to_owned(), capacity: cpus(cpu), taken: Resources::default(), labels }
}

fn own(nodes: Vec<Node>) -> Cluster {
    let (owner, labels) = (Some(organization(1)), BTreeMap::new());
    Cluster { id: cluster_id(1), owner, is_ready: true, labels, nodes }
}

/// All nodes are full of others of the same priority; room may be kept on half of them. One waits
/// for 4 CPUs, and later one for 8 in zone a, which only the first own node and the shared one have.
fn waiting(second: Node) -> World {
    let mut world = World::new(Settings { kept_permille: 500, ..Settings::default() });
    let nodes = vec![node("large", 8, "a"), second];
    let shared = Cluster { id: cluster_id(2), owner: None, ..own(vec![node("shared", 8, "a")]) };
    for (n, (cluster, node)) in
        (1u32..).zip(nodes.iter().map(|n| (1, n)).chain([(2, &shared.nodes[0])]))
    {
        let place = Place { cluster: cluster_id(cluster), node: node.name.as_str().into() };
        world.placed(&Unit { request: node.capacity.clone(), ..unit(n, 0, 0) }, place, Time(0));
    }
    world.set_cluster(own(nodes));
    world.set_cluster(shared);
    let zone = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    world.wait(&unit(10, 4, 0));
    world.wait(&Unit { selector: zone, ..unit(11, 8, 0) });
    let kept = world.decide(Time(0) + Duration::from_hours(1), ENOUGH).reservations;
    assert_eq!(kept.iter().map(|r| r.unit).collect::<Vec<_>>(), [id(10)], "only on one of two");
    world
}

fn kept_for(world: &mut World, n: u32) -> Option<Place> {
    world.decide(Time(0) + Duration::from_hours(2), ENOUGH);
    let mut kept = world.reservations().into_iter();
    kept.find(|r| r.unit == id(n)).map(|r| r.place)
}

#[test]
fn who_loses_the_only_node_that_is_large_enough_looks_elsewhere() {
    let mut world = waiting(node("small", 4, "a"));
    world.set_cluster(own(vec![node("large", 4, "a"), node("small", 4, "a")]));
    assert_eq!(kept_for(&mut world, 11).map(|place| place.cluster), Some(cluster_id(2)));
}

#[test]
fn another_node_is_no_help_if_its_labels_differ() {
    let mut world = waiting(node("other", 8, "b"));
    world.set_cluster(own(vec![node("large", 4, "a"), node("other", 8, "b")]));
    assert_eq!(kept_for(&mut world, 11).map(|place| place.cluster), Some(cluster_id(2)));
}

#[test]
fn more_nodes_let_room_be_kept_for_more() {
    let mut world = waiting(node("small", 4, "a"));
    let mut nodes = vec![node("large", 8, "a"), node("small", 4, "a")];
    nodes.extend([node("tiny", 1, "a"), node("least", 1, "a")]);
    world.set_cluster(own(nodes));
    assert_eq!(kept_for(&mut world, 11).map(|place| place.cluster), Some(cluster_id(1)));
}
