//! All integration tests of the foreign systems, in one binary.

mod fake;
mod keycloak;
mod oidc;
mod oidc_lookup;
mod oidc_provider;
mod registration;
mod registration_kinds;
mod seal_local;
mod vault;
