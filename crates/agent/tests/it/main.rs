//! The runtimes, for real: as root, with Debian's busybox, Docker, Podman, registries, attackers.
#![allow(clippy::unwrap_used, reason = "what is unexpected in a test ends it")]

mod attacks;
mod bad_images;
mod choosing;
mod contract;
mod docker;
mod engine;
mod kubernetes;
mod kubernetes_instances;
mod lab;
mod limits;
mod packing;
mod porter;
mod registry;
mod running;
mod survival;
