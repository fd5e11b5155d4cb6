//! Paddock's own token at Vault: got by one caller at a time, renewed when two thirds of its life are
//! over, never shown.

use std::time::Duration;

use model::{Secret, Time};
use port::Fault;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::session::{Deed, Wire};
use super::{Now, SignIn};

/// How soon to try again what could not be renewed.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How old a token of a role must be to be replaced because of a refusal alone: the role may have got
/// other policies since. A younger one has those that there are.
const OLD: Duration = Duration::from_mins(2);

/// Has a token, and keeps it good.
pub(super) struct Tokens {
    how: SignIn,
    now: Now,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    token: Secret,
    /// How long it lasted when it was new; none for one that does not end.
    life: Option<Duration>,
    is_renewable: bool,
    since: Time,
    until: Option<Time>,
    renew_at: Option<Time>,
}

/// A token that Vault has given or renewed.
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

/// What Vault says of a token.
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

impl Kept {
    fn new(token: Secret, seconds: u64, is_renewable: bool, now: Time) -> Self {
        // To Vault, no time at all means for ever.
        let life = (seconds > 0).then(|| Duration::from_secs(seconds));
        let until = life.map(|life| now + life);
        let renew_at = life.map(|life| now + life * 2 / 3);
        Self { token, life, is_renewable, since: now, until, renew_at }
    }

    fn granted(auth: Granted, now: Time) -> Self {
        Self::new(Secret::new(auth.client_token), auth.lease_duration, auth.renewable, now)
    }

    fn is_over(&self, now: Time) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl Tokens {
    pub(super) fn new(how: SignIn, now: Now) -> Self {
        Self { how, now, kept: Mutex::new(None) }
    }

    /// A token that should be accepted, if possible other than the one that was not.
    pub(super) async fn get(&self, wire: &Wire, not: Option<&Secret>) -> Result<Secret, Fault> {
        let mut kept = self.kept.lock().await;
        let now = (self.now)();
        // What fails here is forgotten, and begun anew by the next.
        let good = match kept.take() {
            Some(one) if Some(&one.token) == not => self.replace(wire, one, now).await?,
            Some(one) if one.renew_at.is_none_or(|at| now < at) => one,
            Some(one) => self.prolong(wire, one, now).await?,
            None => self.sign_in(wire, now).await?,
        };
        let token = good.token.clone();
        *kept = Some(good);
        Ok(token)
    }

    /// How long until the token has to be renewed; none if it does not end, or there is none.
    pub(super) async fn renewed_in(&self) -> Option<Duration> {
        let renew_at = self.kept.lock().await.as_ref()?.renew_at?;
        Some(renew_at.since((self.now)()))
    }

    async fn sign_in(&self, wire: &Wire, now: Time) -> Result<Kept, Fault> {
        match &self.how {
            SignIn::Token(token) => look_up(wire, token, now).await,
            SignIn::AppRole { role_id, secret_id, mount } => {
                log_in(wire, role_id, secret_id, mount, now).await
            }
        }
    }

    /// Another token for one that was refused, or the same if another would be refused, too.
    async fn replace(&self, wire: &Wire, one: Kept, now: Time) -> Result<Kept, Fault> {
        let is_role = matches!(self.how, SignIn::AppRole { .. });
        if is_role && now < one.since + OLD && look_up(wire, &one.token, now).await.is_ok() {
            return Ok(one);
        }
        let next = self.sign_in(wire, now).await?;
        if next.token != one.token {
            give_back(wire, &one.token).await;
        }
        Ok(next)
    }

    /// Renews a token or gets another one. While it is good, it is used whatever else fails.
    async fn prolong(&self, wire: &Wire, one: Kept, now: Time) -> Result<Kept, Fault> {
        if one.is_renewable && !one.is_over(now) {
            match renew(wire, &one, now).await {
                Ok(renewed) if !self.is_ending(&renewed) => return Ok(renewed),
                Ok(_) => {}
                Err(fault) => tracing::warn!(%fault, "Paddock's token at Vault is not renewed"),
            }
        }
        let is_over = one.is_over(now);
        let next = match &self.how {
            SignIn::Token(_) if !is_over => return Ok(put_off(one, now)),
            // By our clock a token is over that another server, which has the same, may have renewed.
            SignIn::Token(_) | SignIn::AppRole { .. } => self.sign_in(wire, now).await,
        };
        match next {
            Ok(next) if !is_over => {
                give_back(wire, &one.token).await;
                Ok(next)
            }
            Err(fault) if !is_over => {
                tracing::warn!(%fault, "Paddock keeps its token at Vault, which ends soon");
                Ok(put_off(one, now))
            }
            other => other,
        }
    }

    /// Is it better to sign in again? What is renewed near its last end lasts ever shorter.
    fn is_ending(&self, renewed: &Kept) -> bool {
        let left = renewed.until.map(|until| until.since((self.now)()));
        let can_sign_in = matches!(self.how, SignIn::AppRole { .. });
        can_sign_in && left.zip(renewed.life).is_some_and(|(left, life)| left * 2 < life)
    }
}

/// The same token, which is next thought of a little later, or when it ends.
fn put_off(mut one: Kept, now: Time) -> Kept {
    let later = now + TRY_AGAIN;
    one.renew_at = Some(one.until.map_or(later, |until| until.min(later)));
    one
}

/// How long a token that Paddock was given is good.
async fn look_up(wire: &Wire, token: &Secret, now: Time) -> Result<Kept, Fault> {
    let reply = wire.send(Deed::Read, "auth/token/lookup-self", None, Some(token)).await?;
    match reply.status {
        StatusCode::OK => {
            let found = reply.json::<Described>(&wire.peer)?.data;
            Ok(Kept::new(token.clone(), found.ttl, found.renewable, now))
        }
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Err(ran_out(wire)),
        // Who does not tell is asked for things all the same; a refusal there says more.
        status if status.is_client_error() => Ok(Kept::new(token.clone(), 0, false, now)),
        _ => Err(wire.peer.fault("tell how long Paddock's token is good", &reply, &[token])),
    }
}

async fn log_in(
    wire: &Wire,
    role_id: &str,
    secret_id: &Secret,
    mount: &str,
    now: Time,
) -> Result<Kept, Fault> {
    let body = json!({"role_id": role_id, "secret_id": secret_id.reveal()});
    let path = format!("auth/{mount}/login");
    let reply = wire.send(Deed::Write, &path, Some(&body), None).await?;
    if reply.status == StatusCode::OK {
        return Ok(Kept::granted(reply.json::<Signed>(&wire.peer)?.auth, now));
    }
    let role_id = Secret::new(role_id);
    let hidden = [secret_id, &role_id];
    if !matches!(reply.status.as_u16(), 400 | 401 | 403 | 404) {
        return Err(wire.peer.fault("sign in with AppRole", &reply, &hidden));
    }
    Err(Fault::Refused(format!(
        "{} does not let Paddock sign in at {path}{}: check the role id, the secret id and the mount \
         of AppRole in the settings",
        wire.peer.name(),
        reply.said_without(&hidden)
    )))
}

async fn renew(wire: &Wire, one: &Kept, now: Time) -> Result<Kept, Fault> {
    let path = "auth/token/renew-self";
    let reply = wire.send(Deed::Write, path, Some(&json!({})), Some(&one.token)).await?;
    if reply.status != StatusCode::OK {
        return Err(wire.peer.fault("renew Paddock's token", &reply, &[&one.token]));
    }
    let renewed = Kept::granted(reply.json::<Signed>(&wire.peer)?.auth, now);
    Ok(Kept { token: one.token.clone(), life: one.life, since: one.since, ..renewed })
}

/// Revokes a token of a role that was replaced, so that such don't pile up. One that can't be revoked
/// ends by itself.
async fn give_back(wire: &Wire, token: &Secret) {
    let path = "auth/token/revoke-self";
    if let Err(fault) = wire.send(Deed::Write, path, Some(&json!({})), Some(token)).await {
        tracing::debug!(%fault, "a token at Vault that was replaced is not revoked");
    }
}

fn ran_out(wire: &Wire) -> Fault {
    Fault::Refused(format!(
        "{} does not accept Paddock's token: it has run out or was revoked; give a new one in the \
         settings, best a periodic one or a role of AppRole",
        wire.peer.name()
    ))
}
