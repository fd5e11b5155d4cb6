//! Verification of OIDC access tokens (JWT).
//!
//! Signatures are checked with the issuer's published keys; a token never chooses the algorithm
//! family. An invalid token causes no call to the issuer, except at most one per minute for an
//! unknown key.

use std::time::Duration;

use model::Time;
use model::address::Policy;

pub use self::claims::Claims;
use self::key::Keys;
use self::token::Token;
use crate::call::{CALL_TIMEOUT, InvalidOptions};

mod claims;
mod key;
mod lookup;
mod provider;
mod token;

/// Which tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The issuer, exactly as in the `iss` claim.
    pub issuer: String,
    /// The required audience (`aud`); none accepts any.
    pub audience: Option<String>,
    /// The permitted clock skew.
    pub skew: Duration,
    /// The timeout of one call.
    pub timeout: Duration,
    /// Addresses of other hosts on which the issuer may publish its keys.
    pub addresses: Policy,
}

impl Options {
    /// Tokens of that issuer for any audience, with a clock skew of one minute.
    pub fn new(issuer: &str) -> Self {
        let issuer = issuer.to_owned();
        let (skew, timeout) = (Duration::from_mins(1), CALL_TIMEOUT);
        Self { issuer, audience: None, skew, timeout, addresses: Policy::default() }
    }
}

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The token is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The issuer is not trusted here, or it is not a JWT; it may be another kind of token.
    #[error("{0}")]
    UnknownIssuer(String),
    /// The issuer's keys are not available; the same token may be valid later.
    #[error("{0}")]
    Unavailable(String),
}

/// Verifies the tokens of one issuer.
pub struct Verifier {
    options: Options,
    lookup: lookup::Lookup,
}

impl Verifier {
    /// Prepares the lookup; the issuer need not be reachable yet.
    pub fn new(options: Options) -> Result<Self, InvalidOptions> {
        let lookup = lookup::Lookup::new(provider::Provider::new(&options)?);
        Ok(Self { options, lookup })
    }

    /// The claims of a valid token.
    pub async fn verify(&self, token: &str, now: Time) -> Result<Claims, Denied> {
        self.check(&Token::parse(token)?, now).await
    }

    async fn check(&self, token: &Token<'_>, now: Time) -> Result<Claims, Denied> {
        // The cheap checks come first: an expired token must not cause a key lookup.
        let claims = check_claims(&self.options, token, now)?;
        let key_ref = token.key_ref();
        let keys = self.lookup.keys(|keys: &Keys| keys.find(&key_ref).is_some()).await?;
        check_signature(token, &keys)?;
        Ok(claims)
    }
}

fn check_claims(options: &Options, token: &Token<'_>, now: Time) -> Result<Claims, Denied> {
    if token.issuer() != Some(&options.issuer) {
        return Err(unknown_issuer(token));
    }
    Claims::check(token.claims(), options, now)
}

fn check_signature(token: &Token<'_>, keys: &Keys) -> Result<(), Denied> {
    let key_ref = token.key_ref();
    let key = keys.find(&key_ref).ok_or_else(|| Denied::Invalid(key_ref.unknown()))?;
    if key.verifies(key_ref.algorithm, token.signed(), token.signature()) {
        return Ok(());
    }
    Err(Denied::Invalid("the token's signature is invalid".into()))
}

/// Verifies a token with these published keys. For fuzzing: [`Verifier`] fetches the keys from the
/// issuer.
#[doc(hidden)]
pub fn verify_with_keys(
    options: &Options,
    keys: Vec<serde_json::Value>,
    token: &str,
    now: Time,
) -> Result<Claims, Denied> {
    let token = Token::parse(token)?;
    let claims = check_claims(options, &token, now)?;
    check_signature(&token, &Keys::read(keys))?;
    Ok(claims)
}

/// Verifies the tokens of several issuers.
pub struct Verifiers(Vec<Verifier>);

impl Verifiers {
    /// Prepares a verifier per issuer.
    pub fn new(issuers: impl IntoIterator<Item = Options>) -> Result<Self, InvalidOptions> {
        Ok(Self(issuers.into_iter().map(Verifier::new).collect::<Result<_, _>>()?))
    }

    /// The claims of a valid token.
    pub async fn verify(&self, token: &str, now: Time) -> Result<Claims, Denied> {
        let token = Token::parse(token)?;
        let is_issuer = |verifier: &&Verifier| token.issuer() == Some(&verifier.options.issuer);
        match self.0.iter().find(is_issuer) {
            Some(verifier) => verifier.check(&token, now).await,
            None => Err(unknown_issuer(&token)),
        }
    }
}

fn unknown_issuer(token: &Token<'_>) -> Denied {
    Denied::UnknownIssuer(match token.issuer() {
        Some(issuer) => {
            let issuer: String = issuer.chars().take(200).collect();
            format!("the token's issuer {issuer:?} is not trusted (iss)")
        }
        None => "the token has no issuer (iss)".into(),
    })
}
