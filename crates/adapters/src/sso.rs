//! Clients at OpenID providers: what instances sign in with.

pub mod keycloak;
pub mod registration;

pub use keycloak::Keycloak;
pub use registration::Registration;
