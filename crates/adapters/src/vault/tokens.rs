//! Paddock's own token at Vault: fetched by one caller at a time, renewed after two thirds of its
//! lifetime, never shown.

use std::time::Duration;

use model::{Secret, Time};
use port::Fault;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::session::{Action, Wire};
use super::{Auth, Now};

/// The interval after a failed renewal.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The minimum age of an AppRole token that is replaced after a denial alone: the role may have got
/// other policies since. A younger token already has them.
const MIN_AGE: Duration = Duration::from_mins(2);

/// Gets and renews a token.
pub(super) struct Tokens {
    auth: Auth,
    now: Now,
    cached: Mutex<Option<Token>>,
}

struct Token {
    secret: Secret,
    /// Its initial lifetime; none if it does not expire.
    lifetime: Option<Duration>,
    is_renewable: bool,
    issued_at: Time,
    expires_at: Option<Time>,
    renew_at: Option<Time>,
}

/// A response with a new or renewed token.
#[derive(Deserialize)]
struct Signed {
    auth: Granted,
}

#[derive(Deserialize)]
struct Granted {
    client_token: String,
    #[serde(default)]
    lease_duration: u64,
    #[serde(default)]
    renewable: bool,
}

/// A token as Vault describes it.
#[derive(Deserialize)]
struct Described {
    data: Description,
}

#[derive(Deserialize)]
struct Description {
    #[serde(default)]
    ttl: u64,
    #[serde(default)]
    renewable: bool,
}

impl Token {
    fn new(secret: Secret, seconds: u64, is_renewable: bool, now: Time) -> Self {
        // Zero means that it does not expire.
        let lifetime = (seconds > 0).then(|| Duration::from_secs(seconds));
        let expires_at = lifetime.map(|lifetime| now + lifetime);
        let renew_at = lifetime.map(|lifetime| now + lifetime * 2 / 3);
        Self { secret, lifetime, is_renewable, issued_at: now, expires_at, renew_at }
    }

    fn granted(auth: Granted, now: Time) -> Self {
        Self::new(Secret::new(auth.client_token), auth.lease_duration, auth.renewable, now)
    }

    fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

impl Tokens {
    pub(super) fn new(auth: Auth, now: Now) -> Self {
        Self { auth, now, cached: Mutex::new(None) }
    }

    /// A token that should be accepted, if possible other than `rejected`.
    pub(super) async fn get(
        &self,
        wire: &Wire,
        rejected: Option<&Secret>,
    ) -> Result<Secret, Fault> {
        let mut cached = self.cached.lock().await;
        let now = (self.now)();
        // A failure leaves the cache empty, and the next caller authenticates.
        let valid = match cached.take() {
            Some(old) if Some(&old.secret) == rejected => self.replace(wire, old, now).await?,
            Some(old) if old.renew_at.is_none_or(|at| now < at) => old,
            Some(old) => self.renew_or_replace(wire, old, now).await?,
            None => self.authenticate(wire, now).await?,
        };
        let secret = valid.secret.clone();
        *cached = Some(valid);
        Ok(secret)
    }

    /// The time until the token is renewed; none if it does not expire, or there is none.
    pub(super) async fn renewed_in(&self) -> Option<Duration> {
        let renew_at = self.cached.lock().await.as_ref()?.renew_at?;
        Some(renew_at.since((self.now)()))
    }

    async fn authenticate(&self, wire: &Wire, now: Time) -> Result<Token, Fault> {
        match &self.auth {
            Auth::Token(token) => look_up(wire, token, now).await,
            Auth::AppRole { role_id, secret_id, mount } => {
                log_in(wire, role_id, secret_id, mount, now).await
            }
        }
    }

    /// Replaces a rejected token, unless a new one would be rejected, too.
    async fn replace(&self, wire: &Wire, old: Token, now: Time) -> Result<Token, Fault> {
        let is_role = matches!(self.auth, Auth::AppRole { .. });
        let is_young = now < old.issued_at + MIN_AGE;
        if is_role && is_young && look_up(wire, &old.secret, now).await.is_ok() {
            return Ok(old);
        }
        let next = self.authenticate(wire, now).await?;
        if next.secret != old.secret {
            revoke(wire, &old.secret).await;
        }
        Ok(next)
    }

    /// Renews a token or gets another one. As long as it is valid, failures are only logged.
    async fn renew_or_replace(&self, wire: &Wire, old: Token, now: Time) -> Result<Token, Fault> {
        if old.is_renewable && !old.is_expired(now) {
            match renew(wire, &old, now).await {
                Ok(renewed) if !self.is_expiring(&renewed) => return Ok(renewed),
                Ok(_) => {}
                Err(fault) => tracing::warn!(%fault, "renewing the Vault token failed"),
            }
        }
        let is_expired = old.is_expired(now);
        let next = match &self.auth {
            Auth::Token(_) if !is_expired => return Ok(postpone(old, now)),
            // Another server with the same token may have renewed it.
            Auth::Token(_) | Auth::AppRole { .. } => self.authenticate(wire, now).await,
        };
        match next {
            Ok(next) if !is_expired => {
                revoke(wire, &old.secret).await;
                Ok(next)
            }
            Err(fault) if !is_expired => {
                tracing::warn!(%fault, "replacing the Vault token failed; it expires soon");
                Ok(postpone(old, now))
            }
            other => other,
        }
    }

    /// Whether a new token is better: renewals near the maximum lifetime become ever shorter.
    fn is_expiring(&self, renewed: &Token) -> bool {
        let left = renewed.expires_at.map(|expires_at| expires_at.since((self.now)()));
        let is_role = matches!(self.auth, Auth::AppRole { .. });
        is_role && left.zip(renewed.lifetime).is_some_and(|(left, lifetime)| left * 2 < lifetime)
    }
}

/// The same token, with a later renewal, but not after its expiry.
fn postpone(mut token: Token, now: Time) -> Token {
    let later = now + RETRY_INTERVAL;
    token.renew_at = Some(token.expires_at.map_or(later, |expires_at| expires_at.min(later)));
    token
}

/// Looks up the lifetime of a configured token.
async fn look_up(wire: &Wire, token: &Secret, now: Time) -> Result<Token, Fault> {
    let reply = wire.send(Action::Read, "auth/token/lookup-self", None, Some(token)).await?;
    match reply.status {
        StatusCode::OK => {
            let found = reply.json::<Described>(&wire.peer)?.data;
            Ok(Token::new(token.clone(), found.ttl, found.renewable, now))
        }
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Err(rejected(wire)),
        // Without a lookup the token is used anyway; a later denial says more.
        status if status.is_client_error() => Ok(Token::new(token.clone(), 0, false, now)),
        _ => Err(wire.peer.fault("look up Paddock's token", &reply, &[token])),
    }
}

async fn log_in(
    wire: &Wire,
    role_id: &str,
    secret_id: &Secret,
    mount: &str,
    now: Time,
) -> Result<Token, Fault> {
    let body = json!({"role_id": role_id, "secret_id": secret_id.reveal()});
    let path = format!("auth/{mount}/login");
    let reply = wire.send(Action::Write, &path, Some(&body), None).await?;
    if reply.status == StatusCode::OK {
        return Ok(Token::granted(reply.json::<Signed>(&wire.peer)?.auth, now));
    }
    let role_id = Secret::new(role_id);
    let hidden = [secret_id, &role_id];
    if !matches!(reply.status.as_u16(), 400 | 401 | 403 | 404) {
        return Err(wire.peer.fault("authenticate the AppRole", &reply, &hidden));
    }
    Err(Fault::Refused(format!(
        "{} rejected the login at {path}{}. Check the role id, the secret id and the mount of \
         AppRole in the settings",
        wire.peer.name(),
        reply.redacted_message(&hidden)
    )))
}

async fn renew(wire: &Wire, old: &Token, now: Time) -> Result<Token, Fault> {
    let path = "auth/token/renew-self";
    let reply = wire.send(Action::Write, path, Some(&json!({})), Some(&old.secret)).await?;
    if reply.status != StatusCode::OK {
        return Err(wire.peer.fault("renew Paddock's token", &reply, &[&old.secret]));
    }
    let renewed = Token::granted(reply.json::<Signed>(&wire.peer)?.auth, now);
    let (secret, issued_at) = (old.secret.clone(), old.issued_at);
    Ok(Token { secret, lifetime: old.lifetime, issued_at, ..renewed })
}

/// Revokes a replaced AppRole token, so that tokens do not accumulate. One that can't be revoked
/// expires.
async fn revoke(wire: &Wire, token: &Secret) {
    let path = "auth/token/revoke-self";
    if let Err(fault) = wire.send(Action::Write, path, Some(&json!({})), Some(token)).await {
        tracing::debug!(%fault, "replaced Vault token not revoked");
    }
}

fn rejected(wire: &Wire) -> Fault {
    Fault::Refused(format!(
        "{} rejected Paddock's token: it is expired or revoked. Set a new one in the settings, \
         preferably a periodic one or an AppRole",
        wire.peer.name()
    ))
}
