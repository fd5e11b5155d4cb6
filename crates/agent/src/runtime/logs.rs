//! Logs of engines that identify lines by time only.

pub(in crate::runtime) mod timed;
