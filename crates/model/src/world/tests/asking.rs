//! Explanations and dry runs.

use super::*;

#[test]
fn what_is_missing_is_named_nearest_first_with_who_is_in_the_way_and_until_when() {
    let mut world = world(&[cluster(1, 4), cluster(2, 8), cluster(3, 2)]);
    let until = |n: u32, cpu, end| Unit { ends_at: Some(Time(end)), ..unit(n, cpu, 5) };
    world.placed(&until(1, 4, 7_000_000), at(1), Time(0));
    world.placed(&until(2, 4, 9_000_000), at(2), Time(0));
    world.placed(&unit(3, 3, 5), at(2), Time(0));
    world.wait(&unit(10, 3, 5));
    world.wait(&unit(11, 3, 0));
    world.decide(Time(100), ENOUGH);
    let explanation = world.explain(id(11), Time(100)).unwrap();
    assert_eq!(explanation.verdict, Verdict::NotNow);
    assert_eq!(explanation.wait, Some(Wait::Behind));
    assert_eq!(explanation.position, Some(2));
    let near: Vec<(Place, Resources)> =
        explanation.shortages.iter().map(|s| (s.place.clone(), s.missing.clone())).collect();
    assert_eq!(near, [(at(2), cpus(2)), (at(1), cpus(3)), (at(3), cpus(1))]);
    assert_eq!(explanation.blockers, [id(2)]);
    assert_eq!(explanation.earliest, Some(Time(7_000_000)));
    let sentence = "Waits at position 2; the nearest is 2 cpu more on 0000000000000000000001000/main; \
                    can start at 1970-01-01T00:00:07Z if all ends as planned.";
    assert_eq!(
        explanation.to_string().replace(&cluster_id(2).to_string(), "C"),
        sentence.replace("0000000000000000000001000", "C")
    );
    assert!(serde_json::to_string(&explanation).unwrap().contains("\"verdict\":\"not_now\""));
}

#[test]
fn never_is_told_from_not_now() {
    let mut world = world(&[cluster(1, 4)]);
    world.wait(&unit(1, 5, 0));
    world.decide(Time(100), ENOUGH);
    let explanation = world.explain(id(1), Time(100)).unwrap();
    assert_eq!(explanation.verdict, Verdict::Never);
    assert!(explanation.shortages[0].is_too_small);
    assert!(explanation.to_string().starts_with("Can never run"), "{explanation}");
}

#[test]
fn a_dry_run_tells_what_would_happen_and_changes_nothing() {
    let mut world = world(&[cluster(1, 4)]);
    world.placed(&unit(1, 2, 0), at(1), Time(0));
    world.decide(Time(100), ENOUGH);
    let before = units_of(&world);
    let asked = [unit(10, 2, 5), unit(11, 2, 5), unit(12, 2, 5)];
    let outcomes = world.dry_run(&asked, Time(100));
    assert_eq!(outcomes[0], (id(10), Outcome::Start { place: at(1) }));
    assert_eq!(outcomes[1], (id(11), Outcome::Displace { place: at(1), victims: vec![id(1)] }));
    assert!(matches!(outcomes[2].1, Outcome::Wait { .. }));
    assert_eq!(units_of(&world), before);
    assert!(world.decide(Time(100), ENOUGH).is_empty());
}

#[test]
fn who_fits_nowhere_is_told_line_by_line() {
    let mut world = world(&[cluster(1, 4)]);
    world.placed(&unit(1, 3, 5), at(1), Time(0));
    world.wait(&unit(10, 2, 5));
    world.wait(&unit(11, 2, 0));
    world.wait(&unit(12, 9, 7));
    world.wait(&unit(13, 1, 0));
    world.wait(&Unit { target: Target::Cluster(cluster_id(1)), ..unit(14, 4, 0) });
    let told = |world: &mut World| -> Vec<(UnitId, Resources, usize)> {
        world.lines().into_iter().map(|line| (line.head, line.request, line.count)).collect()
    };
    // 13 can start at once, though nothing was decided yet; 14 waits for its cluster alone.
    let expected = [(id(12), cpus(9), 1), (id(10), cpus(2), 2)];
    assert_eq!(told(&mut world), expected);
    world.decide(Time(100), ENOUGH);
    assert_eq!(told(&mut world), expected);
    world.set_cluster(cluster(2, 4));
    assert_eq!(told(&mut world), [(id(12), cpus(9), 1)]);
}
