//! The runtimes as root, with Debian's busybox, Docker, Podman and registries.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod choosing;
mod contract;
mod docker;
mod docker_isolation;
mod engine;
mod images;
mod kubernetes;
mod kubernetes_instances;
mod kubernetes_pull;

// Images, registries and an embedded runtime, shared with the runtime's tests.
#[path = "../../../runtime/tests/it/lab.rs"]
#[allow(dead_code, reason = "the tests of the runtime need all of it")]
mod lab;
#[path = "../../../runtime/tests/it/packing.rs"]
#[allow(dead_code, reason = "the tests of the runtime need all of it")]
mod packing;
#[path = "../../../runtime/tests/it/registry.rs"]
#[allow(dead_code, reason = "the tests of the runtime need all of it")]
mod registry;

/// The program that is started as helper process of the embedded runtime.
const HELPER: &str = env!("CARGO_BIN_EXE_agent-helper");
