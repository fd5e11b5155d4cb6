//! The runtime, for real: as root, with Debian's busybox, registries and attackers.
#![allow(clippy::unwrap_used, reason = "what is unexpected in a test ends it")]

mod attacks;
mod bad_images;
mod lab;
mod limits;
mod packing;
mod porter;
mod registry;
mod running;
mod survival;

/// The program that becomes the helper processes.
const HELPER: &str = env!("CARGO_BIN_EXE_runtime-helper");
