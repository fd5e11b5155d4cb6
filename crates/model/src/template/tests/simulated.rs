//! Environments whose steps fail and whose servers die, asked for one thing after the other.
//!
//! Everything is drawn from a seed. In the end nothing fails any more, and then all must be as it was
//! last wished, whatever came before.

use super::made::{Fate, Made};
use super::properties::Shape;
use super::*;
use crate::environment::Status;
use crate::resource;

/// A generator of numbers that is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn fate(&mut self) -> Fate {
        match self.below(10) {
            0 => Fate::Fails,
            1 => Fate::FailsLate,
            2 => Fate::Crashes,
            _ => Fate::Well,
        }
    }
}

/// Goes on with what failed, as often as it takes.
fn persist(
    made: &mut Made,
    wish: &Expanded,
    status: Status,
    random: &mut Random,
    tries: u32,
) -> Status {
    for _ in 0..tries {
        let to = made.go_on(wish, status, || random.fate());
        if to != Status::Failed {
            return to;
        }
        for one in made.all.iter_mut().filter(|one| one.status == resource::Status::Failed) {
            one.status = resource::Status::Pending;
        }
    }
    Status::Failed
}

fn live(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut made = Made::default();
    let mut shape = Shape::drawn(&mut |bound| random.below(bound));
    let mut wish = shape.expanded();
    for _ in 0..random.below(5) {
        // Given up half-way sometimes, or cancelled before anything begins.
        made.ask(&wish);
        let tries = u32::try_from(random.below(4)).unwrap();
        let to = persist(&mut made, &wish, Status::Deploying, &mut random, tries);
        if to == Status::Validating {
            made.is_as_wished(&wish);
        }
        shape.change(&mut |bound| random.below(bound));
        wish = shape.expanded();
    }
    made.become_(&wish);
    made.is_as_wished(&wish);
    let to = persist(&mut made, &wish, Status::Destroying, &mut random, 1000);
    assert_eq!(to, Status::Destroyed);
    assert!(made.all.is_empty() && made.real.is_empty(), "{made:#?}");
}

#[test]
fn whatever_fails_all_is_as_wished_in_the_end() {
    for seed in 0..200 {
        let lived = std::panic::catch_unwind(|| live(seed));
        assert!(lived.is_ok(), "seed {seed}");
    }
}
