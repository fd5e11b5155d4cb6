//! Authentication of requests by bearer token or HTTP Basic.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use base::entropy;
use data_encoding::BASE64;
use engine::instance::commands;
use model::access::{Action, Principal, SubjectKind, Verb};
use model::cluster::Cluster;
use model::event::Actor;
use model::reason::Requester;
use model::token::{self as token_model, Token};
use model::user::{Access, User};
use model::{ClusterId, OrganizationId, Time, TokenId};
use store::{Scope, agent_token, token};

use crate::access::{self, Rule};
use crate::cache::Authenticated;
use crate::edge::{address, browser};
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
    /// End of the token, if one was used.
    pub(crate) expires_at: Option<Time>,
    /// The token, with its scope, unless a password or an OIDC token was used.
    grant: Option<Arc<Token>>,
}

impl Caller {
    fn new(authenticated: Authenticated, token: Option<String>) -> Self {
        let Authenticated { user, external, expires_at, grant } = authenticated;
        Self { user, token, external, expires_at, grant }
    }

    /// What the caller may see: its organization's objects; all objects for the administrator and
    /// auditors.
    pub(crate) fn scope(&self) -> Scope {
        match self.user.access {
            Access::Platform | Access::Auditor => Scope::All,
            Access::Tenant => self.own(),
        }
    }

    /// Scope of the caller's organization, also for the administrator.
    pub(crate) fn own(&self) -> Scope {
        Scope::Organization(self.user.organization_id)
    }

    pub(crate) fn actor(&self) -> Actor {
        self.user.actor()
    }

    /// Fails if the caller may not perform the action. Everything that limits a caller's rights is
    /// decided here: the extractor asks with the route's action, handlers with those that depend on
    /// the object or the body.
    pub(crate) fn may(&self, action: Action) -> Result<(), Problem> {
        if !self.role_allows(action) {
            return Err(refusal(Principal::of(&self.user), action));
        }
        match &self.grant {
            Some(token) if !token.scope.allows(action) => Err(out_of_scope(token, action)),
            _ => Ok(()),
        }
    }

    /// Whether the caller may perform the action.
    pub(crate) fn allows(&self, action: Action) -> bool {
        self.may(action).is_ok()
    }

    /// Whether the caller's role allows the action, whatever the scope of its token.
    pub(crate) fn role_allows(&self, action: Action) -> bool {
        action.allows(Principal::of(&self.user))
    }

    /// The id of the token that was used.
    pub(crate) fn token_id(&self) -> Option<TokenId> {
        self.grant.as_ref().map(|token| token.id)
    }

    /// The expiry of a token that the caller creates. A named token grants only what it allows
    /// itself, and not for longer; `is_default`: the caller requests no expiry.
    pub(crate) fn may_grant(
        &self,
        scope: &token_model::Scope,
        expires_at: Time,
        is_default: bool,
    ) -> Result<Time, Problem> {
        let Some(token) = &self.grant else { return Ok(expires_at) };
        if !scope.is_within(&token.scope) {
            return Err(Problem::forbidden_field(
                "scope",
                &format!("must be within the scope of this token, which may {}", token.scope),
            ));
        }
        if token.kind == token_model::Kind::Session || expires_at <= token.expires_at {
            return Ok(expires_at);
        }
        if is_default {
            return Ok(token.expires_at);
        }
        Err(Problem::forbidden_field(
            "expires_in",
            &format!("must end before this token, which expires at {}", token.expires_at),
        ))
    }

    /// Fails for a token with a restricted scope: it must not obtain credentials that have none.
    pub(crate) fn must_have_full_scope(&self, what: &str) -> Result<(), Problem> {
        match &self.grant {
            Some(token) if !token.scope.is_full() => Err(Problem::forbidden(format!(
                "Token {:?} may only {}: it can't {what}. Use a token with full scope, or log in.",
                token.name, token.scope
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_admin(&self) -> bool {
        self.allows(Action::new(SubjectKind::Platform, Verb::Administer))
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

    pub(crate) fn must_be_admin(&self, action: &str) -> Result<(), Problem> {
        if self.is_admin() {
            return Ok(());
        }
        Err(Problem::forbidden(format!("Only the platform administrator may {action}.")))
    }
}

/// The error of an action outside the scope of the token.
fn out_of_scope(token: &Token, action: Action) -> Problem {
    Problem::forbidden(format!(
        "Token {:?} does not allow {action}: it may only {}. Use another token, or log in.",
        token.name, token.scope
    ))
}

/// The error of an action that needs another role.
fn refusal(principal: Principal, action: Action) -> Problem {
    let refused = format!("Role {principal} does not allow {action}");
    Problem::forbidden(match action.needs() {
        Some(Principal::Admin) => {
            format!("{refused}: only the platform administrator may do this.")
        }
        Some(Principal::Auditor) => {
            format!("{refused}: only the platform administrator and auditors may do this.")
        }
        Some(needed) => {
            format!("{refused}: role {needed} is needed. Ask an owner of the organization.")
        }
        None => format!("{refused}."),
    })
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = authenticate(parts, app).await?;
        caller.may_call(parts).await?;
        Ok(caller)
    }
}

impl Caller {
    /// Fails if the caller may not call the route of this request, or if the route has no rule.
    pub(crate) async fn may_call(&self, parts: &mut Parts) -> Result<(), Problem> {
        match access::rule_of(parts) {
            Some(Rule::Open) => Ok(()),
            Some(Rule::User(action) | Rule::ByObject(action, _)) => self.may(action),
            Some(Rule::OwnOr(own, other)) => {
                let id = access::path_id(parts).await;
                let is_own = |id: String| id == "me" || id == self.user.id.to_string();
                self.may(if id.is_some_and(is_own) { own } else { other })
            }
            Some(Rule::Agent) | None => Err(Problem::forbidden("This endpoint is not for users.")),
        }
    }
}

/// Authenticates a request, whatever its route.
pub(crate) async fn authenticate(parts: &Parts, app: &App) -> Result<Caller, Problem> {
    let Some((scheme, value)) = authorization(&parts.headers) else {
        return Err(Problem::unauthenticated(
            "Authentication required: send Authorization: Bearer <token>, or Basic credentials.",
        ));
    };
    let from = address(&parts.extensions);
    let caller = if scheme.eq_ignore_ascii_case("bearer") {
        by_token(app, value).await?
    } else if scheme.eq_ignore_ascii_case("basic") {
        let caller = by_password(app, value, from).await?;
        browser::check_ambient(&parts.method, &parts.headers)?;
        caller
    } else {
        let detail = "Unsupported authentication scheme; use Bearer or Basic.";
        return Err(Problem::unauthenticated(detail));
    };
    app.edge.admit_user(&caller.user, from)?;
    Ok(caller)
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

/// Prefix of the secrets of named tokens, by which people and scanners recognise them.
pub(crate) const NAMED_TOKEN_PREFIX: &str = "paddock_";

/// The stored hash of a token. That of a named token is not the plain hash of its secret, so that a
/// server of the previous release, which ignores scopes, rejects it.
pub(crate) fn token_hash(secret: &str) -> String {
    if secret.starts_with(NAMED_TOKEN_PREFIX) {
        return entropy::hash(&format!("named {secret}"));
    }
    entropy::hash(secret)
}

async fn by_token(app: &App, secret: &str) -> Result<Caller, Problem> {
    let (hash, now) = (token_hash(secret), app.db.now());
    let since = match app.cache.get(&hash, now) {
        Ok(found) => {
            let token = found.external.is_none().then_some(hash);
            return Ok(Caller::new(found, token));
        }
        Err(since) => since,
    };
    if oidc::is_jwt(secret) {
        let claims = oidc::claims(app, secret).await?;
        let (user, external) = oidc::user(app, &claims).await?;
        let (external, expires_at) = (Some(Arc::new(external)), claims.expires_at);
        let found = Authenticated { user, external, expires_at: Some(expires_at), grant: None };
        app.cache.put(&hash, &found, since, now, expires_at);
        // OIDC tokens cannot be revoked here.
        return Ok(Caller::new(found, None));
    }
    let found = token::find(&mut app.db.read().await?, &hash, now).await?;
    let (user, token) = found.ok_or_else(|| {
        Problem::unauthenticated("The token is invalid, expired or revoked; log in again.")
    })?;
    app.token_uses.record(&hash, &token, now);
    let expires_at = token.expires_at;
    let grant = Some(Arc::new(token));
    let found = Authenticated { user, external: None, expires_at: Some(expires_at), grant };
    app.cache.put(&hash, &found, since, now, expires_at);
    Ok(Caller::new(found, Some(hash)))
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
        Ok(found) => return Ok(Caller::new(found, None)),
        Err(since) => since,
    };
    let user = account::verify(app, username, password, from).await?;
    let found = Authenticated { user, external: None, expires_at: None, grant: None };
    app.cache.put(&hash, &found, since, now, now + Duration::from_mins(1));
    Ok(Caller::new(found, None))
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
