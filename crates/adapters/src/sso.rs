//! SSO clients of instances at OpenID providers.

pub mod keycloak;
pub mod registration;

pub use keycloak::Keycloak;
pub use registration::Registration;
