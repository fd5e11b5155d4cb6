//! Large units do not starve while small ones keep arriving.

use proptest::prelude::*;

use super::*;

/// The nodes are full of small units; a large one is pending from tick 1 on, and small ones keep
/// arriving and end after at most `run` ticks. Returns the tick at which the large one started.
fn ticks_until_large_starts(nodes: u32, small: i64, run: u32, per_tick: u32) -> Option<u32> {
    let clusters: Vec<Cluster> = (1..=nodes).map(|n| cluster(n, 8)).collect();
    let mut world = world(&clusters);
    let mut ends: Vec<(u32, UnitId)> = Vec::new();
    for tick in 0..60 {
        // One tick is a tenth of the patience.
        let now = Time(0) + Settings::default().reserve_after / 10 * tick;
        ends.iter().filter(|(at, _)| *at == tick).for_each(|(_, id)| world.remove(*id));
        let filling = nodes * u32::try_from(8 / small).unwrap();
        for n in 0..if tick == 0 { filling } else { per_tick } {
            world.add_pending(&Unit { since: now, ..unit(1000 + tick * 1000 + n, small, 0) });
        }
        if tick == 1 {
            world.add_pending(&Unit { since: now, ..unit(1, 8, 0) });
        }
        for (n, start) in (0u32..).zip(world.decide(now, ENOUGH).starts) {
            if start.unit == id(1) {
                return Some(tick);
            }
            // Run times differ, so that no node becomes empty by chance.
            ends.push((tick + 1 + (n * 7 + tick) % run, start.unit));
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn large_unit_starts_while_small_ones_keep_arriving(
        nodes in 1u32..6, small in 1i64..4, run in 2u32..9, per_tick in 8u32..20,
    ) {
        let started = ticks_until_large_starts(nodes, small, run, per_tick);
        // Pending since tick 1, reserved from tick 11 on, and all residents end within `run`.
        prop_assert!(started.is_some_and(|tick| tick <= 11 + run), "{started:?}");
    }
}

#[test]
fn small_units_backfill_until_the_reservation() {
    let mut world = world(&[cluster(1, 8)]);
    world.set_placed(&unit(1, 4, 0), at(1), Time(0));
    world.add_pending(&unit(2, 8, 0));
    world.add_pending(&unit(3, 2, 0));
    assert_eq!(world.decide(Time(10), ENOUGH).starts.len(), 1);
    let due = world.next_due().expect("a unit is pending");
    assert_eq!(due, Time(2) + Settings::default().reserve_after);
    world.add_pending(&Unit { since: Time(11), ..unit(4, 2, 0) });
    let decisions = world.decide(due, ENOUGH);
    assert_eq!(decisions.starts.len(), 1, "it arrived before the reservation");
    assert_eq!(decisions.reservations.len(), 1);
    world.remove(id(3));
    world.add_pending(&Unit { since: Time(12), ..unit(5, 2, 0) });
    let decisions = world.decide(due, ENOUGH);
    assert!(decisions.starts.is_empty(), "freed capacity is reserved");
    world.add_pending(&Unit { since: Time(13), ..unit(6, 2, 1) });
    assert_eq!(
        world.decide(due, ENOUGH).starts.len(),
        1,
        "higher priorities ignore the reservation"
    );
}
