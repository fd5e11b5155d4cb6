//! Tests of the store on both engines.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod cancelled_wait;
mod capacity;
mod event;
mod follower;
mod group_commit;
mod lease;
mod limit;
mod list;
mod machine;
mod migration;
mod organization;
mod organization_quota;
mod pool;
mod scope;
mod search;
mod search_index;
mod signal;
mod statement;
mod status;
mod support;
mod token;
mod transaction;
mod upgrade;
mod work;
mod work_fence;
mod work_race;
