//! Who a token (JWT) of an OpenID provider belongs to.
//!
//! Signatures are checked with the provider's published keys; a token never chooses how. A bad token
//! costs no call to the provider, but the one per minute that an unknown key is worth.

use std::time::Duration;

use model::Time;

pub use self::claims::Claims;
use self::key::Keys;
use self::token::Token;
use crate::call::{LIMIT, Unusable};

mod claims;
mod key;
mod lookup;
mod provider;
mod token;

/// Which tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Who issues them, exactly as in their `iss`.
    pub issuer: String,
    /// Whom they must be for (`aud`); none if that does not matter.
    pub audience: Option<String>,
    /// How far the issuer's clock may be off.
    pub skew: Duration,
    /// How long one call may take.
    pub limit: Duration,
}

impl Options {
    /// Tokens of that issuer, for anybody, with clocks that differ by a minute at most.
    pub fn new(issuer: &str) -> Self {
        let issuer = issuer.to_owned();
        Self { issuer, audience: None, skew: Duration::from_mins(1), limit: LIMIT }
    }
}

/// Why a token is not accepted, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It is no good, now or ever.
    #[error("{0}")]
    Invalid(String),
    /// It is not of an issuer that is trusted here; it may be another sort of token.
    #[error("{0}")]
    Foreign(String),
    /// The issuer's keys are not to be had at the moment: the same token may be good later.
    #[error("{0}")]
    Unavailable(String),
}

/// Verifies the tokens of one issuer.
pub struct Verifier {
    options: Options,
    lookup: lookup::Lookup,
}

impl Verifier {
    /// Prepares; the issuer need not be there yet.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let lookup = lookup::Lookup::new(provider::Provider::new(&options)?);
        Ok(Self { options, lookup })
    }

    /// Who the token belongs to, if it is good now.
    pub async fn verify(&self, token: &str, now: Time) -> Result<Claims, Denied> {
        self.check(&Token::parse(token)?, now).await
    }

    async fn check(&self, token: &Token<'_>, now: Time) -> Result<Claims, Denied> {
        if token.issuer() != Some(&self.options.issuer) {
            return Err(foreign(token));
        }
        // First what costs nothing: an old token must not make us ask for keys.
        let claims = Claims::check(token.claims(), &self.options, now)?;
        let wanted = token.wanted();
        let keys = self.lookup.keys(|keys: &Keys| keys.find(&wanted).is_some()).await?;
        let key = keys.find(&wanted).ok_or_else(|| Denied::Invalid(wanted.unknown()))?;
        if !key.verifies(wanted.algorithm, token.signed(), token.signature()) {
            return Err(Denied::Invalid("the token's signature is wrong".into()));
        }
        Ok(claims)
    }
}

/// Verifies the tokens of several issuers.
pub struct Verifiers(Vec<Verifier>);

impl Verifiers {
    /// Prepares for each of them.
    pub fn new(issuers: impl IntoIterator<Item = Options>) -> Result<Self, Unusable> {
        Ok(Self(issuers.into_iter().map(Verifier::new).collect::<Result<_, _>>()?))
    }

    /// Who the token belongs to, if it is good now.
    pub async fn verify(&self, token: &str, now: Time) -> Result<Claims, Denied> {
        let token = Token::parse(token)?;
        let of = |verifier: &&Verifier| token.issuer() == Some(&verifier.options.issuer);
        match self.0.iter().find(of) {
            Some(verifier) => verifier.check(&token, now).await,
            None => Err(foreign(&token)),
        }
    }
}

fn foreign(token: &Token<'_>) -> Denied {
    Denied::Foreign(match token.issuer() {
        Some(issuer) => {
            let issuer: String = issuer.chars().take(200).collect();
            format!("tokens of the issuer {issuer:?} are not accepted here")
        }
        None => "the token does not say who issued it (iss)".into(),
    })
}
