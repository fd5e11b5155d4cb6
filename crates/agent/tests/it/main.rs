//! The embedded runtime, for real: as root, with Debian's busybox, a registry, and attackers.
#![allow(clippy::unwrap_used, reason = "what is unexpected in a test ends it")]

#[cfg(feature = "embedded")]
mod attacks;
#[cfg(feature = "embedded")]
mod bad_images;
#[cfg(feature = "embedded")]
mod lab;
#[cfg(feature = "embedded")]
mod limits;
#[cfg(feature = "embedded")]
mod packing;
#[cfg(feature = "embedded")]
mod registry;
#[cfg(feature = "embedded")]
mod running;
#[cfg(feature = "embedded")]
mod survival;
