//! Authentication of requests by bearer token or HTTP Basic.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use base::entropy;
use data_encoding::BASE64;
use engine::instance::commands;
use model::cluster::Cluster;
use model::event::Actor;
use model::reason::Requester;
use model::user::{Access, Role, User};
use model::{ClusterId, OrganizationId};
use store::{Scope, agent_token, token};

use crate::oidc::{self, ExternalClaims};
use crate::{App, Problem, account};

/// An authenticated user.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// User.
    pub(crate) user: User,
    /// Hash of the login token, if one was used.
    pub(crate) token: Option<String>,
    /// Additional claims, if an OIDC token was used.
    pub(crate) external: Option<Arc<ExternalClaims>>,
}

impl Caller {
    /// What the caller may see: its organization's objects; all objects for the administrator.
    pub(crate) fn scope(&self) -> Scope {
        match self.user.access {
            Access::Platform => Scope::All,
            Access::Tenant => self.own(),
        }
    }

    /// Scope of the caller's organization, also for the administrator.
    pub(crate) fn own(&self) -> Scope {
        Scope::Organization(self.user.organization_id)
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor::User(self.user.id)
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.user.access == Access::Platform
    }

    /// Whether the caller administers its organization.
    pub(crate) fn is_owner(&self) -> bool {
        self.user.role == Role::Owner || self.is_admin()
    }

    /// The caller as the requester of an instance.
    pub(crate) fn requester(&self) -> commands::Caller<'_> {
        let account = self.external.as_ref().and_then(|external| external.account.as_deref());
        commands::Caller { user: &self.user, account }
    }

    /// The actor of a deletion by the caller in this organization.
    pub(crate) fn deletion_by(&self, organization: OrganizationId) -> Requester {
        let name = self.user.username.clone();
        if organization == self.user.organization_id {
            Requester::User { name }
        } else {
            Requester::Administrator { name: Some(name) }
        }
    }

    /// Everyone may see a shared cluster; only the administrator may change it.
    pub(crate) fn may_change(&self, cluster: &Cluster) -> Result<(), Problem> {
        if cluster.organization_id.is_some() || self.is_admin() {
            return Ok(());
        }
        Err(Problem::forbidden(format!(
            "Cluster {} is shared by all organizations; only the platform administrator may change it.",
            cluster.name
        )))
    }

    pub(crate) fn must_be_owner(&self) -> Result<(), Problem> {
        if self.is_owner() {
            return Ok(());
        }
        Err(Problem::forbidden("Only an owner of the organization may do this."))
    }

    pub(crate) fn must_be_admin(&self, action: &str) -> Result<(), Problem> {
        if self.is_admin() {
            return Ok(());
        }
        Err(Problem::forbidden(format!("Only the platform administrator may {action}.")))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Some((scheme, value)) = authorization(&parts.headers) else {
            return Err(Problem::unauthenticated(
                "Authentication required: send Authorization: Bearer <token>, or Basic credentials.",
            ));
        };
        if scheme.eq_ignore_ascii_case("bearer") {
            return by_token(app, value).await;
        }
        if scheme.eq_ignore_ascii_case("basic") {
            return by_password(app, value, address(&parts.extensions)).await;
        }
        Err(Problem::unauthenticated("Unsupported authentication scheme; use Bearer or Basic."))
    }
}

/// The application and the caller: the extractor of nearly every handler.
pub(crate) struct Call<C = Caller>(pub(crate) App, pub(crate) C);

impl<C: FromRequestParts<App>> FromRequestParts<App> for Call<C> {
    type Rejection = C::Rejection;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, C::Rejection> {
        Ok(Self(app.clone(), C::from_request_parts(parts, app).await?))
    }
}

/// Scheme and value of the `Authorization` header.
pub(crate) fn authorization(headers: &HeaderMap) -> Option<(&str, &str)> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, value) = text.split_once(' ')?;
    Some((scheme, value.trim()))
}

async fn by_token(app: &App, secret: &str) -> Result<Caller, Problem> {
    let (hash, now) = (entropy::hash(secret), app.db.now());
    let since = match app.cache.get(&hash, now) {
        Ok((user, external)) => {
            let token = external.is_none().then_some(hash);
            return Ok(Caller { user, token, external });
        }
        Err(since) => since,
    };
    if oidc::is_jwt(secret) {
        let claims = oidc::claims(app, secret).await?;
        let (user, external) = oidc::user(app, &claims).await?;
        let external = Some(Arc::new(external));
        app.cache.put(&hash, (&user, external.clone()), since, now, claims.expires_at);
        // OIDC tokens cannot be revoked here.
        return Ok(Caller { user, token: None, external });
    }
    let found = token::find(&mut app.db.read().await?, &hash, now).await?;
    let (user, expires_at) = found.ok_or_else(|| {
        Problem::unauthenticated("The token is invalid or expired; log in again.")
    })?;
    app.cache.put(&hash, (&user, None), since, now, expires_at);
    Ok(Caller { user, token: Some(hash), external: None })
}

async fn by_password(app: &App, value: &str, from: IpAddr) -> Result<Caller, Problem> {
    let malformed = || {
        let detail = "The Basic credentials are malformed; send username:password in Base64.";
        Problem::unauthenticated(detail)
    };
    let bytes = BASE64.decode(value.as_bytes()).map_err(|_| malformed())?;
    let text = String::from_utf8(bytes).map_err(|_| malformed())?;
    let (username, password) = text.split_once(':').ok_or_else(malformed)?;
    // The prefix keeps these entries apart from tokens, which are hashed without one.
    let (hash, now) = (entropy::hash(&format!("basic {value}")), app.db.now());
    let since = match app.cache.get(&hash, now) {
        Ok((user, external)) => return Ok(Caller { user, token: None, external }),
        Err(since) => since,
    };
    let user = account::verify(app, username, password, from).await?;
    app.cache.put(&hash, (&user, None), since, now, now + Duration::from_mins(1));
    Ok(Caller { user, token: None, external: None })
}

/// The agent of a cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentCaller {
    /// The only cluster that the agent acts for.
    pub(crate) cluster: ClusterId,
}

impl FromRequestParts<App> for AgentCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let bearer = authorization(&parts.headers);
        let Some((_, secret)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(Problem::unauthenticated(
                "Agent authentication required: send the cluster's token as Authorization: Bearer <token>.",
            ));
        };
        let (hash, mut read) = (entropy::hash(secret), app.db.read().await?);
        let cluster = agent_token::find(&mut read, &hash, app.db.now()).await?;
        let cluster = cluster.ok_or_else(|| {
            Problem::unauthenticated("The cluster token is invalid or expired; create a new one.")
        })?;
        Ok(Self { cluster })
    }
}

/// Source address of a request.
pub(crate) struct From(pub(crate) IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for From {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(address(&parts.extensions)))
    }
}

fn address(extensions: &Extensions) -> IpAddr {
    let from = extensions.get::<ConnectInfo<SocketAddr>>();
    from.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(address)| address.ip())
}
