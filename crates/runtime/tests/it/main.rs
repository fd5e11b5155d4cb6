//! The runtime as root, with Debian's busybox, registries and attacks.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod attacks;
mod bad_images;
mod confinement;
mod fairness;
mod forwarder;
mod hostile;
mod hostile_registry;
mod hostile_tenants;
mod isolation;
mod lab;
mod limits;
mod loading;
mod namespace;
mod packing;
mod registry;
mod running;
mod survival;
mod userns;

/// The program that is started as helper process.
const HELPER: &str = env!("CARGO_BIN_EXE_runtime-helper");
