//! Nobody starves, however many small ones keep coming.

use proptest::prelude::*;

use super::*;

/// The nodes are full of small units; a large one waits from the first tick on, and small ones
/// keep coming and end after at most `run` ticks. Returns when the large one started.
fn ticks_until_large_starts(nodes: u32, small: i64, run: u32, per_tick: u32) -> Option<u32> {
    let clusters: Vec<Cluster> = (1..=nodes).map(|n| cluster(n, 8)).collect();
    let mut world = world(&clusters);
    let mut ends: Vec<(u32, UnitId)> = Vec::new();
    for tick in 0..60 {
        // One tick is a tenth of the patience.
        let now = Time(0) + Settings::default().patience / 10 * tick;
        ends.iter().filter(|(at, _)| *at == tick).for_each(|(_, id)| world.gone(*id));
        let filling = nodes * u32::try_from(8 / small).unwrap();
        for n in 0..if tick == 0 { filling } else { per_tick } {
            world.wait(&Unit { since: now, ..unit(1000 + tick * 1000 + n, small, 0) });
        }
        if tick == 1 {
            world.wait(&Unit { since: now, ..unit(1, 8, 0) });
        }
        for (n, start) in (0u32..).zip(world.decide(now, ENOUGH).starts) {
            if start.unit == id(1) {
                return Some(tick);
            }
            // Lives differ, so that no node is empty by chance.
            ends.push((tick + 1 + (n * 7 + tick) % run, start.unit));
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_large_one_starts_though_small_ones_keep_coming(
        nodes in 1u32..6, small in 1i64..4, run in 2u32..9, per_tick in 8u32..20,
    ) {
        let started = ticks_until_large_starts(nodes, small, run, per_tick);
        // It comes at tick 1, room is kept from tick 11 on, and all there end within `run`.
        prop_assert!(started.is_some_and(|tick| tick <= 11 + run), "{started:?}");
    }
}

#[test]
fn without_patience_running_out_small_ones_do_fill_the_gaps() {
    let mut world = world(&[cluster(1, 8)]);
    world.placed(&unit(1, 4, 0), at(1), Time(0));
    world.wait(&unit(2, 8, 0));
    world.wait(&unit(3, 2, 0));
    assert_eq!(world.decide(Time(10), ENOUGH).starts.len(), 1);
    let due = world.next_due().expect("somebody waits");
    assert_eq!(due, Time(2) + Settings::default().patience);
    world.wait(&Unit { since: Time(11), ..unit(4, 2, 0) });
    let decisions = world.decide(due, ENOUGH);
    assert_eq!(decisions.starts.len(), 1, "it came before room was kept");
    assert_eq!(decisions.reservations.len(), 1);
    world.gone(id(3));
    world.wait(&Unit { since: Time(12), ..unit(5, 2, 0) });
    let decisions = world.decide(due, ENOUGH);
    assert!(decisions.starts.is_empty(), "what is freed is kept");
    world.wait(&Unit { since: Time(13), ..unit(6, 2, 1) });
    assert_eq!(world.decide(due, ENOUGH).starts.len(), 1, "but not against higher priorities");
}
