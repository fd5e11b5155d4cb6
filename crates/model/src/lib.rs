//! The domain model of Paddock: plain data and pure functions.
//!
//! No clock, randomness, files, sockets or SQL: their values are passed as arguments, so that every
//! rule can be tested with properties.

pub mod access;
pub mod address;
pub mod agent;
pub mod backoff;
pub mod cluster;
pub mod credential;
pub mod deployment;
pub mod environment;
pub mod event;
pub mod graph;
pub mod id;
pub mod image;
pub mod instance;
pub mod invalid;
pub mod invite;
pub mod kind;
pub mod log;
pub mod name;
pub mod operation;
pub mod organization;
pub mod page;
pub mod quantity;
pub mod quota;
pub mod reason;
pub mod replica;
pub mod resource;
pub mod resources;
pub mod scaling;
pub mod search;
pub mod search_index;
pub mod secret;
pub mod template;
mod text_enum;
pub mod time;
pub mod token;
pub mod user;
pub mod work;
pub mod world;
pub mod yaml;

#[cfg(test)]
#[path = "../../testing/src/snapshot.rs"]
#[expect(unreachable_pub, reason = "the file is also part of another crate")]
mod snapshot;

pub use agent::ReplicaId;
pub use id::{
    ClusterId, DeploymentId, EnvironmentId, InstanceId, InviteId, OrganizationId, ResourceId,
    TemplateId, TokenId, UserId, Xid,
};
pub use invalid::Invalid;
pub use page::Page;
pub use quantity::Quantity;
pub use replica::Replica;
pub use resources::Resources;
pub use secret::Secret;
pub use time::Time;
pub use world::Place;
