//! The embedded runtime, for real: as root, with Debian's busybox, a registry, and attackers.
#![allow(clippy::unwrap_used, reason = "what is unexpected in a test ends it")]

mod attacks;
mod bad_images;
mod lab;
mod limits;
mod packing;
mod registry;
mod running;
mod survival;
