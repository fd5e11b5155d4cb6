//! Signing in elsewhere: tokens (JWT) of OpenID providers, and who their bearers are here.
//!
//! How a token is verified is not known here. Users and organizations are made when they are first
//! seen; what a token says of its bearer's rights counts for as long as that token does.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::Time;
use model::event::Actor;
use model::user::{Role, User};
use store::foreign::{self, Newcomer};

use crate::{App, Problem};

/// Who somebody is, according to their token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who issued the token.
    pub issuer: String,
    /// The bearer's id at the issuer.
    pub subject: String,
    /// The name that they sign in with.
    pub username: Option<String>,
    /// Their name for people.
    pub name: Option<String>,
    /// Their organization.
    pub organization: Option<String>,
    /// Their account.
    pub account: Option<String>,
    /// Whether they administer the organization.
    pub is_org_admin: bool,
    /// The client that got the token.
    pub client_id: Option<String>,
    /// Their roles.
    pub roles: Vec<String>,
    /// Until when the token holds.
    pub expires_at: Time,
}

/// Why a token is not accepted, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It is no good.
    #[error("{0}")]
    Invalid(String),
    /// The issuer can't be asked at the moment: the same token may be good later.
    #[error("{0}")]
    Unavailable(String),
}

/// Verifies tokens.
pub trait Verify: Send + Sync {
    /// Who the token belongs to, if it is good now.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Claims, Denied>>;
}

/// What verifies tokens, if sign-ins elsewhere are accepted.
#[derive(Clone, Default)]
pub struct Oidc(pub Option<Arc<dyn Verify>>);

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Oidc(on)" } else { "Oidc(off)" })
    }
}

/// What a token of elsewhere says beside who its bearer is.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// Their account there.
    pub(crate) account: Option<String>,
}

/// Does it look like a token of an OpenID provider? Ours have no dots.
pub(crate) fn is_jwt(token: &str) -> bool {
    token.split('.').count() == 3
}

/// What a token says; nothing if it is not accepted.
pub(crate) async fn claims(app: &App, token: &str) -> Result<Claims, Problem> {
    let Some(verify) = &app.settings.oidc.0 else {
        let detail = "Tokens of other providers are not accepted here; sign in to Paddock.";
        return Err(Problem::unauthenticated(detail));
    };
    verify.verify(token).await.map_err(|denied| match denied {
        Denied::Invalid(why) => {
            Problem::unauthenticated(format!("The token is not accepted: {why}."))
        }
        Denied::Unavailable(why) => {
            Problem::unavailable(format!("The token can't be checked right now: {why}."))
        }
    })
}

/// Who the bearer of a token is here; made if it was never seen.
pub(crate) async fn user(app: &App, said: &Claims) -> Result<(User, Foreign), Problem> {
    let Some(organization) = said.organization.clone().filter(|id| !id.is_empty()) else {
        let detail = "The token does not say which organization its bearer is of.";
        return Err(Problem::unauthenticated(detail));
    };
    let id = format!("{}|{}", said.issuer, said.subject);
    let role = if said.is_org_admin { Role::Owner } else { Role::Member };
    let known = foreign::find(&mut app.db.read().await?, &id).await.map_err(gone)?;
    let user = match known {
        Some(user) => user,
        None => admit(app, said, &id, &organization, role).await?,
    };
    // What the token says of rights counts, not what was true when its bearer was first seen.
    let user = User { role, ..user };
    Ok((user, Foreign { account: said.account.clone() }))
}

async fn admit(
    app: &App,
    said: &Claims,
    id: &str,
    organization: &str,
    role: Role,
) -> Result<User, Problem> {
    let username = said.username.as_deref().unwrap_or(&said.subject);
    let display_name = said.name.as_deref().unwrap_or(username);
    let new = Newcomer { id, organization, username, display_name, role };
    let mut tx = app.db.begin(Actor::Anonymous).await?;
    let user = foreign::admit(&mut tx, &new).await.map_err(gone)?;
    tx.commit().await?;
    Ok(user)
}

/// Who was removed can't come back by itself.
fn gone(error: store::Error) -> Problem {
    match error {
        store::Error::Conflict(why) => Problem::unauthenticated(format!("Not accepted: {why}.")),
        other => other.into(),
    }
}
