//! Adapters against real systems: up, down, slow, and returning invalid responses.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod bind;
mod canned;
mod consul;
mod consul_faults;
mod cut;
mod fake;
mod http_calls;
mod keycloak;
mod kubernetes;
mod kv;
mod moto;
mod oidc;
mod oidc_lookup;
mod patience;
mod probe;
mod prometheus;
mod registration;
mod registration_kinds;
mod rfc2136;
mod rfc2136_faults;
mod route53;
mod route53_faults;
mod seal_local;
mod terraform;
mod terraform_agent;
mod terraform_crash;
mod terraform_faults;
mod terraform_resource;
mod terraform_resource_bad;
mod terraform_resource_crash;
mod terraform_resource_old;
mod vault;
mod vault_secret;
mod vault_secret_faults;
mod vault_secret_kv2;
mod vault_sign_in;
