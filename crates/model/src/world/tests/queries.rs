//! Explanations and dry runs.

use super::*;

#[test]
fn explanation_lists_shortages_nearest_first_with_blockers_and_estimated_start() {
    let mut world = world(&[cluster(1, 4), cluster(2, 8), cluster(3, 2)]);
    let until = |n: u32, cpu, end| Unit { ends_at: Some(Time(end)), ..unit(n, cpu, 5) };
    world.set_placed(&until(1, 4, 7_000_000), at(1), Time(0));
    world.set_placed(&until(2, 4, 9_000_000), at(2), Time(0));
    world.set_placed(&unit(3, 3, 5), at(2), Time(0));
    world.add_pending(&unit(10, 3, 5));
    world.add_pending(&unit(11, 3, 0));
    world.decide(Time(100), ENOUGH);
    let explanation = world.explain(id(11), Time(100)).unwrap();
    assert_eq!(explanation.verdict, Verdict::NotNow);
    assert_eq!(explanation.wait, Some(PendingReason::Behind));
    assert_eq!(explanation.position, Some(2));
    let near: Vec<(Place, Resources)> =
        explanation.shortages.iter().map(|s| (s.place.clone(), s.missing.clone())).collect();
    assert_eq!(near, [(at(2), cpus(2)), (at(1), cpus(3)), (at(3), cpus(1))]);
    assert_eq!(explanation.blockers, [id(2)]);
    assert_eq!(explanation.earliest, Some(Time(7_000_000)));
    let message = "Waiting for capacity at queue position 2; node 0000000000000000000001000/main \
                    is short of 2 cpu. Estimated start 1970-01-01T00:00:07Z.";
    assert_eq!(
        explanation.to_string().replace(&cluster_id(2).to_string(), "C"),
        message.replace("0000000000000000000001000", "C")
    );
    assert!(serde_json::to_string(&explanation).unwrap().contains("\"verdict\":\"not_now\""));
}

#[test]
fn explanation_distinguishes_never_from_not_now() {
    let mut world = world(&[cluster(1, 4)]);
    world.add_pending(&unit(1, 5, 0));
    world.decide(Time(100), ENOUGH);
    let explanation = world.explain(id(1), Time(100)).unwrap();
    assert_eq!(explanation.verdict, Verdict::Never);
    assert!(explanation.shortages[0].is_too_small);
    assert!(explanation.to_string().starts_with("Cannot be placed"), "{explanation}");
}

#[test]
fn dry_run_predicts_placement_and_changes_nothing() {
    let mut world = world(&[cluster(1, 4)]);
    world.set_placed(&unit(1, 2, 0), at(1), Time(0));
    world.decide(Time(100), ENOUGH);
    let before = units_of(&world);
    let units = [unit(10, 2, 5), unit(11, 2, 5), unit(12, 2, 5)];
    let outcomes = world.dry_run(&units, Time(100));
    assert_eq!(outcomes[0], (id(10), Outcome::Start { place: at(1) }));
    assert_eq!(outcomes[1], (id(11), Outcome::Preempt { place: at(1), victims: vec![id(1)] }));
    assert!(matches!(outcomes[2].1, Outcome::Wait { .. }));
    assert_eq!(units_of(&world), before);
    assert!(world.decide(Time(100), ENOUGH).is_empty());
}

#[test]
fn unschedulable_units_are_grouped_by_request() {
    let mut world = world(&[cluster(1, 4)]);
    world.set_placed(&unit(1, 3, 5), at(1), Time(0));
    world.add_pending(&unit(10, 2, 5));
    world.add_pending(&unit(11, 2, 0));
    world.add_pending(&unit(12, 9, 7));
    world.add_pending(&unit(13, 1, 0));
    world.add_pending(&Unit { target: Target::Cluster(cluster_id(1)), ..unit(14, 4, 0) });
    let groups = |world: &mut World| -> Vec<(UnitId, Resources, usize)> {
        world
            .pending_groups()
            .into_iter()
            .map(|line| (line.head, line.request, line.count))
            .collect()
    };
    // 13 can start at once, though no round ran yet; 14 is pinned to its cluster.
    let expected = [(id(12), cpus(9), 1), (id(10), cpus(2), 2)];
    assert_eq!(groups(&mut world), expected);
    world.decide(Time(100), ENOUGH);
    assert_eq!(groups(&mut world), expected);
    world.set_cluster(cluster(2, 4));
    assert_eq!(groups(&mut world), [(id(12), cpus(9), 1)]);
}
