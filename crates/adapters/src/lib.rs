//! Foreign systems behind the engine's traits: one folder each (dns, sso, terraform, consul, vault,
//! amqp, kubernetes, oidc). None is needed yet; this crate keeps their place in the house.
//!
//! Nothing here may know the store or the HTTP shapes of our own API.
