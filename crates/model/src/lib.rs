//! What Paddock is about, as plain data and pure functions.
//!
//! Nothing here knows a clock, randomness, a file, a socket or SQL: what is needed of those comes
//! in as an argument. That is what lets every rule in this crate be tested by properties.

pub mod agent;
pub mod backoff;
pub mod cluster;
pub mod deployment;
pub mod environment;
pub mod event;
pub mod finding;
pub mod graph;
pub mod id;
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
pub mod secret;
pub mod template;
mod text_enum;
pub mod time;
pub mod user;
pub mod work;
pub mod world;
pub mod yaml;

pub use agent::ReplicaId;
pub use id::{
    ClusterId, DeploymentId, EnvironmentId, InstanceId, InviteId, OrganizationId, ResourceId,
    TemplateId, UserId, Xid,
};
pub use invalid::Invalid;
pub use page::Page;
pub use quantity::Quantity;
pub use replica::Replica;
pub use resources::Resources;
pub use secret::Secret;
pub use time::Time;
pub use world::Place;
