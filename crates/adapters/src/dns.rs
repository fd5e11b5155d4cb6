//! DNS records: by dynamic updates (RFC 2136), or in AWS Route 53.

pub mod rfc2136;
pub mod route53;
mod zone;
