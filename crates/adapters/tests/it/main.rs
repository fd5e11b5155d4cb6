//! Adapters against real systems: up, down, slow, and answering garbage.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod bind;
mod gate;
mod patience;
mod program;
mod rfc2136;
mod rfc2136_faults;
