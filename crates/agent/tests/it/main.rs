//! The runtimes, for real: as root, with Debian's busybox, Docker, Podman and registries.
#![allow(clippy::unwrap_used, reason = "what is unexpected in a test ends it")]

mod choosing;
mod contract;
mod docker;
mod engine;
mod kubernetes;
mod kubernetes_instances;

// Images, registries and an embedded runtime to run them, as that runtime's own tests have them.
#[path = "../../../runtime/tests/it/lab.rs"]
#[allow(dead_code, reason = "the tests of the runtime need all of it")]
mod lab;
#[path = "../../../runtime/tests/it/packing.rs"]
#[allow(dead_code, reason = "the tests of the runtime need all of it")]
mod packing;
#[path = "../../../runtime/tests/it/registry.rs"]
#[allow(dead_code, reason = "the tests of the runtime need all of it")]
mod registry;

/// The program that becomes the embedded runtime's helper processes.
const HELPER: &str = env!("CARGO_BIN_EXE_agent-helper");
