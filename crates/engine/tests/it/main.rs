//! Tests of the engine on both databases: scripted workers, and real ones with a simulated agent.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod agent;
mod cluster;
mod cluster_drain;
mod cluster_provider;
mod driver;
mod driver_concurrency;
mod driver_failure;
mod driver_shared;
mod driver_stop;
mod environment;
mod environment_crash;
mod environment_end;
mod environment_own;
mod environment_unfinished;
mod fleet;
mod graph;
mod instance;
mod instance_end;
mod machine;
mod placement;
mod placement_random;
mod probe;
mod replica;
mod resync;
mod scaling;
mod search;
mod world;
