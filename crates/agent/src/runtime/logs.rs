//! Logs of engines that only know the times of lines.

pub(in crate::runtime) mod timed;
