//! Adapters against real systems: up, down, slow, and answering garbage.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod bind;
mod canned;
mod gate;
mod moto;
mod patience;
mod program;
mod prometheus;
mod rfc2136;
mod rfc2136_faults;
mod route53;
mod route53_faults;
