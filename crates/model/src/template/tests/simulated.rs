//! Simulated environments with failing steps, crashing servers and changing desired states.
//!
//! Everything derives from a seed. In the end nothing fails any more, and the environment must
//! converge to the last desired state, whatever happened before.

use super::properties::Shape;
use super::simulator::{Simulator, StepOutcome};
use super::*;
use crate::environment::Status;
use crate::resource;

/// A portable random number generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn outcome(&mut self) -> StepOutcome {
        match self.below(10) {
            0 => StepOutcome::FailsEarly,
            1 => StepOutcome::FailsLate,
            2 => StepOutcome::Crashes,
            _ => StepOutcome::Succeeds,
        }
    }
}

/// Reconciles and retries failed steps, up to `tries` times.
fn reconcile_with_retries(
    simulator: &mut Simulator,
    desired: &Expanded,
    status: Status,
    random: &mut Random,
    tries: u32,
) -> Status {
    for _ in 0..tries {
        let to = simulator.reconcile(desired, status, || random.outcome());
        if to != Status::Failed {
            return to;
        }
        for one in
            simulator.resources.iter_mut().filter(|one| one.status == resource::Status::Failed)
        {
            one.status = resource::Status::Pending;
        }
    }
    Status::Failed
}

fn simulate(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut simulator = Simulator::default();
    let mut shape = Shape::random(&mut |bound| random.below(bound));
    let mut desired = shape.expanded();
    for _ in 0..random.below(5) {
        // Sometimes abandoned half-way, or cancelled before anything starts.
        simulator.request(&desired);
        let tries = u32::try_from(random.below(4)).unwrap();
        let to =
            reconcile_with_retries(&mut simulator, &desired, Status::Deploying, &mut random, tries);
        if to == Status::Validating {
            simulator.assert_converged(&desired);
        }
        shape.change(&mut |bound| random.below(bound));
        desired = shape.expanded();
    }
    simulator.apply(&desired);
    simulator.assert_converged(&desired);
    let to =
        reconcile_with_retries(&mut simulator, &desired, Status::Destroying, &mut random, 1000);
    assert_eq!(to, Status::Destroyed);
    assert!(simulator.resources.is_empty() && simulator.actual.is_empty(), "{simulator:#?}");
}

#[test]
fn environment_converges_after_any_failures() {
    for seed in 0..200 {
        let result = std::panic::catch_unwind(|| simulate(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}
