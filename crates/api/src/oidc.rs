//! OIDC logins: verification of JWTs and mapping of their bearers to users.
//!
//! How a token is verified is not known here. Users and organizations are created at the first
//! login; a user is bound to issuer, subject and organization. The rights claimed by a token apply
//! as long as that token is valid.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use model::Time;
use model::event::{Actor, ExternalId};
use model::user::{Access, Role, User};
use store::external_identity::{self, NewExternalUser};

use crate::{App, Problem};

/// Claims of a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Token issuer.
    pub issuer: String,
    /// User ID at the issuer.
    pub subject: String,
    /// Username.
    pub username: Option<String>,
    /// Display name.
    pub name: Option<String>,
    /// Organization.
    pub organization: Option<String>,
    /// Account.
    pub account: Option<String>,
    /// Whether the user administers the organization.
    pub is_org_admin: bool,
    /// Client that obtained the token.
    pub client_id: Option<String>,
    /// Roles.
    pub roles: Vec<String>,
    /// Expiry time of the token.
    pub expires_at: Time,
}

/// Role of users who only read.
const VIEWER_ROLE: &str = "paddock-viewer";
/// Role of users who read everything of all organizations.
const AUDITOR_ROLE: &str = "paddock-auditor";

impl Claims {
    fn has_role(&self, name: &str) -> bool {
        self.roles.iter().any(|role| role == name)
    }
}

/// Reason why a token was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRejection {
    /// The token is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The issuer is unavailable: the token may be valid later.
    #[error("{0}")]
    Unavailable(String),
}

/// Verifies tokens.
pub trait Verify: Send + Sync {
    /// Returns the claims of the token if it is valid now.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Claims, TokenRejection>>;
}

/// Token verifier, if OIDC logins are enabled.
#[derive(Clone, Default)]
pub struct Oidc(pub Option<Arc<dyn Verify>>);

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Oidc(on)" } else { "Oidc(off)" })
    }
}

/// Additional claims of an OIDC token.
#[derive(Debug, Default)]
pub(crate) struct ExternalClaims {
    /// Account at the issuer.
    pub(crate) account: Option<String>,
}

/// Whether the token looks like a JWT. Login tokens contain no dots.
pub(crate) fn is_jwt(token: &str) -> bool {
    token.split('.').count() == 3
}

/// Returns the claims of a token that is accepted.
pub(crate) async fn claims(app: &App, token: &str) -> Result<Claims, Problem> {
    let Some(verify) = &app.settings.oidc.0 else {
        let detail = "This server does not accept OIDC tokens; log in to Paddock.";
        return Err(Problem::unauthenticated(detail));
    };
    verify.verify(token).await.map_err(|denied| match denied {
        TokenRejection::Invalid(why) => {
            Problem::unauthenticated(format!("The token was rejected: {why}."))
        }
        TokenRejection::Unavailable(why) => {
            Problem::unavailable(format!("The token cannot be verified right now: {why}."))
        }
    })
}

/// Returns the user of a token; creates it at the first login.
pub(crate) async fn user(app: &App, claims: &Claims) -> Result<(User, ExternalClaims), Problem> {
    let Some(organization) = claims.organization.clone().filter(|id| !id.is_empty()) else {
        let detail = "The token has no organization claim.";
        return Err(Problem::unauthenticated(detail));
    };
    let id = external_id(claims);
    let role = role(claims);
    let existing =
        external_identity::find(&mut app.db.read().await?, &id).await.map_err(rejected)?;
    let user = match existing {
        Some(user) => user,
        None => create_user(app, claims, &id, &organization, role).await?,
    };
    must_belong_to(app, &user, &organization).await?;
    // The token's rights apply, not those at the first login.
    let user = User { role, access: access(claims, user.access), ..user };
    Ok((user, ExternalClaims { account: claims.account.clone() }))
}

/// The role that a token claims: administrators of the organization are owners.
fn role(claims: &Claims) -> Role {
    match claims {
        _ if claims.is_org_admin => Role::Owner,
        _ if claims.has_role(VIEWER_ROLE) => Role::Viewer,
        _ => Role::Member,
    }
}

/// The access that a token claims: a platform administrator is never less than that.
fn access(claims: &Claims, stored: Access) -> Access {
    if stored == Access::Tenant && claims.has_role(AUDITOR_ROLE) { Access::Auditor } else { stored }
}

/// Fails if the token names another organization than the user's: its role there gives no rights
/// here.
async fn must_belong_to(app: &App, user: &User, named: &str) -> Result<(), Problem> {
    let mut read = app.db.read().await?;
    let own = external_identity::organization_external_id(&mut read, user.organization_id).await?;
    if own.as_deref() == Some(named) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "The token names organization {named:?}, but user {} belongs to another organization. Use a \
         token for that organization, or ask the platform administrator.",
        user.username
    )))
}

/// The actor of a token's bearer, who need not have a user here.
pub(crate) async fn actor(app: &App, claims: &Claims) -> Result<Actor, Problem> {
    let id = external_id(claims);
    let user = external_identity::find(&mut app.db.read().await?, &id).await.map_err(rejected)?;
    Ok(user.map_or_else(
        || Actor::External(ExternalId::new(&claims.subject)),
        |user| Actor::User(user.id),
    ))
}

/// The id of a user, unique over all issuers.
fn external_id(claims: &Claims) -> String {
    format!("{}|{}", claims.issuer, claims.subject)
}

async fn create_user(
    app: &App,
    claims: &Claims,
    id: &str,
    organization: &str,
    role: Role,
) -> Result<User, Problem> {
    let username = claims.username.as_deref().unwrap_or(&claims.subject);
    let display_name = claims.name.as_deref().unwrap_or(username);
    let new = NewExternalUser { id, organization, username, display_name, role };
    let actor = Actor::External(ExternalId::new(&claims.subject));
    let mut tx = app.db.begin(actor).await?;
    let user = external_identity::create_user(&mut tx, &new).await.map_err(rejected)?;
    tx.commit().await?;
    Ok(user)
}

/// A removed user cannot log in again.
fn rejected(error: store::Error) -> Problem {
    match error {
        store::Error::Conflict(why) => Problem::unauthenticated(format!("Access denied: {why}.")),
        other => other.into(),
    }
}
