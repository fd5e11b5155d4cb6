//! Building and rendering of graphs.

use proptest::prelude::*;

use super::*;

fn id(n: u32) -> Xid {
    Xid::new(1, [0; 5], n)
}

fn node(n: u32, kind: Kind, name: &str, status: &str) -> Node {
    let status = (!status.is_empty()).then(|| status.to_owned());
    Node { id: id(n), kind, name: name.into(), status }
}

fn edge(from: u32, to: u32, why: Relation) -> Edge {
    Edge { from: id(from), to: id(to), relation: why }
}

/// An environment of two resources, one of which created a deployment on a cluster.
fn shop() -> Graph {
    let nodes = vec![
        node(1, Kind::Environment, "shop", "deployed"),
        node(2, Kind::Resource, "bus", "applying"),
        node(3, Kind::Resource, "web", "applied"),
        node(4, Kind::Deployment, "web \"<&>\" \\ of a very long name indeed", "failed"),
        node(5, Kind::Cluster, "local", ""),
    ];
    let edges = vec![
        edge(1, 2, Relation::Has),
        edge(1, 3, Relation::Has),
        edge(3, 2, Relation::After),
        edge(3, 4, Relation::Made),
        edge(4, 5, Relation::RunsOn),
    ];
    let direction = Direction::Dependencies;
    Graph { direction, nodes, edges, is_truncated: false }
}

#[test]
fn graph_is_built_by_levels_without_duplicates() {
    let mut builder =
        GraphBuilder::new(node(1, Kind::Environment, "shop", ""), Direction::Dependencies);
    let level = builder.next_level();
    assert_eq!(level.values().collect::<Vec<_>>(), [&(Kind::Environment, vec![id(1)])]);
    let found =
        [2, 3, 9].map(|to| Neighbour { edge: edge(1, to, Relation::Has), kind: Kind::Resource });
    let strangers: Vec<_> = builder.new_neighbours(&found).into_values().collect();
    assert_eq!(strangers, [(Kind::Resource, vec![id(2), id(3), id(9)])]);
    // One of them is not visible.
    let visible = [(3, "bus"), (2, "web")].map(|(n, name)| node(n, Kind::Resource, name, ""));
    builder.add(&found, visible.to_vec());
    assert_eq!(
        builder.next_level().into_values().collect::<Vec<_>>(),
        [(Kind::Resource, vec![id(3), id(2)])]
    );
    let back = [Neighbour { edge: edge(2, 3, Relation::After), kind: Kind::Resource }; 2];
    assert!(builder.new_neighbours(&back).is_empty());
    builder.add(&back, Vec::new());
    assert!(builder.next_level().is_empty());
    let graph = builder.build();
    let names: Vec<_> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["shop", "bus", "web"]);
    assert_eq!(
        graph.edges,
        [edge(1, 3, Relation::Has), edge(1, 2, Relation::Has), edge(2, 3, Relation::After)]
    );
    assert!(!graph.is_truncated);
}

#[test]
fn oversized_graph_is_truncated() {
    let found: Vec<_> = (2..9)
        .map(|to| Neighbour { edge: edge(1, to, Relation::Has), kind: Kind::Resource })
        .collect();
    let nodes: Vec<_> = (2..9).map(|n| node(n, Kind::Resource, "x", "")).collect();
    for (limits, counts) in [((4, 100), (4, 3)), ((100, 5), (8, 5)), ((8, 7), (8, 7))] {
        let subject = node(1, Kind::Environment, "shop", "");
        let mut builder = GraphBuilder::with_limits(subject, Direction::Dependencies, limits);
        builder.next_level();
        builder.add(&found, nodes.clone());
        let graph = builder.build();
        assert_eq!((graph.nodes.len(), graph.edges.len()), counts);
        assert_eq!(graph.is_truncated, limits != (8, 7), "{limits:?}");
    }
}

#[test]
fn dot_escapes_names() {
    let dot = shop().to_dot();
    assert!(dot.starts_with("digraph paddock {\n"), "{dot}");
    assert!(dot.contains("label=\"Dependencies of shop\""), "{dot}");
    assert!(
        dot.contains("label=\"shop\\nenvironment · deployed\", color=\"#2f9e5b\", penwidth=3];")
    );
    assert!(
        dot.contains("label=\"web \\\"<&>\\\" \\\\ of a very long name indeed\\ndeployment"),
        "{dot}"
    );
    let made = format!("\"{}\" -> \"{}\" [label=\"created\"];", id(3), id(4));
    assert!(dot.contains(&made), "{dot}");
}

#[test]
fn svg_shows_every_node_with_status_and_escapes_names() {
    let svg = shop().to_svg();
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
    for class in ["node good subject", "node busy", "node good", "node bad", "node plain"] {
        assert!(svg.contains(&format!("class=\"{class}\"")), "{class}: {svg}");
    }
    assert!(svg.contains("web &quot;&lt;&amp;&gt;&quot; \\ of a very long name indeed"), "{svg}");
    assert!(svg.contains(">web &quot;&lt;&amp;&gt;&quot; \\ of a very lon…</text>"), "{svg}");
    assert!(svg.contains("prefers-color-scheme:dark"));
    assert_eq!(svg.matches("<path d=").count(), 5);
    assert_eq!(svg.matches("<g class=").count(), 5);
}

#[test]
fn dependencies_are_right_of_dependents() {
    assert_eq!(layout::columns(&shop()), [vec![0], vec![2], vec![1, 3], vec![4]]);
}

#[test]
fn columns_are_sorted_by_neighbours() {
    // Two chains in crossed order.
    let nodes = (1..=5).map(|n| node(n, Kind::Resource, "x", "")).collect();
    let edges = [(1, 2), (1, 3), (2, 5), (3, 4)].map(|(from, to)| edge(from, to, Relation::After));
    let direction = Direction::Dependencies;
    let graph = Graph { direction, nodes, edges: edges.to_vec(), is_truncated: false };
    assert_eq!(layout::columns(&graph), [vec![0], vec![1, 2], vec![4, 3]]);
}

proptest! {
    #[test]
    fn every_node_has_one_position_even_with_cycles(
        count in 1u32..30,
        edges in prop::collection::vec((0u32..30, 0u32..30), 0..90),
    ) {
        let nodes: Vec<_> = (0..count).map(|n| node(n, Kind::Resource, "x", "ready")).collect();
        let edges: Vec<_> = edges.into_iter().map(|(a, b)| edge(a, b, Relation::After)).collect();
        let direction = Direction::Dependents;
        let graph = Graph { direction, nodes, edges, is_truncated: true };
        let mut places: Vec<usize> = layout::columns(&graph).concat();
        places.sort_unstable();
        prop_assert_eq!(places, (0..count as usize).collect::<Vec<_>>());
        prop_assert!(graph.to_svg().contains("(truncated)"));
    }

    #[test]
    fn edges_go_from_left_to_right(edges in prop::collection::vec((0u32..15, 1u32..15), 0..40)) {
        // Edges go from lower to higher, so the graph is acyclic.
        let edges: Vec<_> =
            edges.into_iter().map(|(a, b)| edge(a, (a + b).min(29), Relation::After)).collect();
        let nodes: Vec<_> = (0..30).map(|n| node(n, Kind::Resource, "x", "")).collect();
        let direction = Direction::Dependencies;
        let graph = Graph { direction, nodes, edges: edges.clone(), is_truncated: false };
        let columns = layout::columns(&graph);
        let column = |id: Xid| {
            columns.iter().position(|nodes| nodes.iter().any(|n| graph.nodes[*n].id == id)).unwrap()
        };
        for edge in edges {
            prop_assert!(column(edge.from) < column(edge.to));
        }
    }
}
