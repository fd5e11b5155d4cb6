//! Names in the domain name system: by dynamic updates (RFC 2136), or at AWS Route53.

pub mod rfc2136;
pub mod route53;
mod zone;
