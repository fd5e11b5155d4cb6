//! Workers for deployments. [`crate::placement`] decides where replicas run.

mod ending;

pub use ending::RunForWorker;
