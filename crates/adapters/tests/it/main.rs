//! Adapters against real systems: up, down, slow, and answering garbage.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod fake;
mod keycloak;
mod oidc;
mod oidc_lookup;
mod oidc_provider;
mod registration;
mod registration_kinds;
mod seal_local;
mod vault;
