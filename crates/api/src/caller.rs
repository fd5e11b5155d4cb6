//! Who calls: a bearer token or HTTP Basic, on every call that needs to know.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use base::entropy;
use data_encoding::BASE64;
use engine::instance::asking::Asker;
use model::cluster::Cluster;
use model::event::Actor;
use model::reason::By;
use model::user::{Access, Role, User};
use model::{ClusterId, OrganizationId};
use store::{Scope, agent_token, token};

use crate::oidc::{self, Foreign};
use crate::{App, Problem, account};

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// Who.
    pub(crate) user: User,
    /// The hash of the token, if it was one.
    pub(crate) token: Option<String>,
    /// What the token says beside that, if it is of another provider.
    pub(crate) foreign: Option<Arc<Foreign>>,
}

impl Caller {
    /// What the caller may see: its organization's things; everybody's for the administrator.
    pub(crate) fn scope(&self) -> Scope {
        match self.user.access {
            Access::Platform => Scope::All,
            Access::Tenant => self.own(),
        }
    }

    /// The caller's organization, also for the administrator.
    pub(crate) fn own(&self) -> Scope {
        Scope::Organization(self.user.organization_id)
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor::User(self.user.id)
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.user.access == Access::Platform
    }

    /// Does the caller administer its organization?
    pub(crate) fn is_owner(&self) -> bool {
        self.user.role == Role::Owner || self.is_admin()
    }

    /// The caller as the requester of an instance.
    pub(crate) fn asker(&self) -> Asker<'_> {
        let account = self.foreign.as_ref().and_then(|foreign| foreign.account.as_deref());
        Asker { user: &self.user, account }
    }

    /// The caller as the one who deletes what belongs to this organization.
    pub(crate) fn deletes_of(&self, organization: OrganizationId) -> By {
        let name = self.user.username.clone();
        if organization == self.user.organization_id {
            By::User { name }
        } else {
            By::Administrator { name: Some(name) }
        }
    }

    /// A shared cluster is everybody's to see and the administrator's to change.
    pub(crate) fn may_change(&self, cluster: &Cluster) -> Result<(), Problem> {
        if cluster.organization_id.is_some() || self.is_admin() {
            return Ok(());
        }
        Err(Problem::forbidden(format!(
            "The cluster {} is shared by all; only the platform administrator may change it.",
            cluster.name
        )))
    }

    pub(crate) fn must_be_owner(&self) -> Result<(), Problem> {
        if self.is_owner() {
            return Ok(());
        }
        Err(Problem::forbidden("Only an owner of the organization may do this; ask one of them."))
    }

    pub(crate) fn must_be_admin(&self, what: &str) -> Result<(), Problem> {
        if self.is_admin() {
            return Ok(());
        }
        Err(Problem::forbidden(format!("Only the platform administrator may {what}.")))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Some((scheme, value)) = authorization(&parts.headers) else {
            return Err(Problem::unauthenticated(
                "Sign in first: send Authorization: Bearer <token>, or user name and password as Basic.",
            ));
        };
        if scheme.eq_ignore_ascii_case("bearer") {
            return by_token(app, value).await;
        }
        if scheme.eq_ignore_ascii_case("basic") {
            return by_password(app, value, address(&parts.extensions)).await;
        }
        Err(Problem::unauthenticated("Only the schemes Bearer and Basic are understood."))
    }
}

/// The server, and who calls it: what nearly every handler takes.
pub(crate) struct Call<C = Caller>(pub(crate) App, pub(crate) C);

impl<C: FromRequestParts<App>> FromRequestParts<App> for Call<C> {
    type Rejection = C::Rejection;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, C::Rejection> {
        Ok(Self(app.clone(), C::from_request_parts(parts, app).await?))
    }
}

/// The scheme and the value of the `Authorization` header.
pub(crate) fn authorization(headers: &HeaderMap) -> Option<(&str, &str)> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, value) = text.split_once(' ')?;
    Some((scheme, value.trim()))
}

async fn by_token(app: &App, secret: &str) -> Result<Caller, Problem> {
    let (hash, now) = (entropy::hash(secret), app.db.now());
    let since = match app.cache.get(&hash, now) {
        Ok((user, foreign)) => {
            let token = foreign.is_none().then_some(hash);
            return Ok(Caller { user, token, foreign });
        }
        Err(since) => since,
    };
    if oidc::is_jwt(secret) {
        let said = oidc::claims(app, secret).await?;
        let (user, foreign) = oidc::user(app, &said).await?;
        let foreign = Some(Arc::new(foreign));
        app.cache.put(&hash, (&user, foreign.clone()), since, now, said.expires_at);
        // There is no token here that could be ended.
        return Ok(Caller { user, token: None, foreign });
    }
    let found = token::find(&mut app.db.read().await?, &hash, now).await?;
    let (user, expires_at) = found.ok_or_else(|| {
        Problem::unauthenticated("The token is not valid or has ended; sign in again.")
    })?;
    app.cache.put(&hash, (&user, None), since, now, expires_at);
    Ok(Caller { user, token: Some(hash), foreign: None })
}

async fn by_password(app: &App, value: &str, from: IpAddr) -> Result<Caller, Problem> {
    let malformed = || Problem::unauthenticated("The Basic credentials can't be read.");
    let bytes = BASE64.decode(value.as_bytes()).map_err(|_| malformed())?;
    let text = String::from_utf8(bytes).map_err(|_| malformed())?;
    let (username, password) = text.split_once(':').ok_or_else(malformed)?;
    // Remembered under a name that a token can't have: those hash without a prefix.
    let (hash, now) = (entropy::hash(&format!("basic {value}")), app.db.now());
    let since = match app.cache.get(&hash, now) {
        Ok((user, foreign)) => return Ok(Caller { user, token: None, foreign }),
        Err(since) => since,
    };
    let user = account::verify(app, username, password, from).await?;
    app.cache.put(&hash, (&user, None), since, now, now + Duration::from_mins(1));
    Ok(Caller { user, token: None, foreign: None })
}

/// The agent of one cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentCaller {
    /// The only cluster that it speaks for.
    pub(crate) cluster: ClusterId,
}

impl FromRequestParts<App> for AgentCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let bearer = authorization(&parts.headers);
        let Some((_, secret)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(Problem::unauthenticated(
                "Agents show the token of their cluster: send Authorization: Bearer <token>.",
            ));
        };
        let (hash, mut read) = (entropy::hash(secret), app.db.read().await?);
        let cluster = agent_token::find(&mut read, &hash, app.db.now()).await?;
        let cluster = cluster.ok_or_else(|| {
            Problem::unauthenticated(
                "The cluster's token is not valid or has expired; create another one.",
            )
        })?;
        Ok(Self { cluster })
    }
}

/// Where a request comes from.
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
