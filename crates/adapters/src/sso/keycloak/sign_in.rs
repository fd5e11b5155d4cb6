//! Paddock's own token at Keycloak: fetched by one caller at a time, kept until shortly before its end.

use std::time::Duration;

use base::Instant;
use model::Secret;
use port::Fault;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::Options;
use crate::call::Peer;

/// How long before its end a token is not used any more.
const SPARE: Duration = Duration::from_secs(10);

/// The longest that a token is believed to last, whatever it says.
const MAX_LIFE_SECONDS: u64 = 24 * 3600;

/// Signs in with the client that Paddock has.
pub(super) struct SignIn {
    realm: String,
    client_id: String,
    client_secret: Secret,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    token: Secret,
    until: Instant,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl SignIn {
    pub(super) fn new(options: Options) -> Self {
        let Options { sign_in_realm: realm, client_id, client_secret, .. } = options;
        Self { realm, client_id, client_secret, kept: Mutex::new(None) }
    }

    /// A token that should be accepted, other than the one that was not.
    pub(super) async fn token(&self, peer: &Peer, not: Option<&Secret>) -> Result<Secret, Fault> {
        let mut kept = self.kept.lock().await;
        let usable =
            kept.as_ref().filter(|kept| base::monotonic() < kept.until && Some(&kept.token) != not);
        if let Some(usable) = usable {
            return Ok(usable.token.clone());
        }
        let granted = self.grant(peer).await?;
        let life = Duration::from_secs(granted.expires_in.min(MAX_LIFE_SECONDS));
        let token = Secret::new(granted.access_token);
        let until = base::monotonic() + life.saturating_sub(SPARE);
        *kept = Some(Kept { token: token.clone(), until });
        Ok(token)
    }

    async fn grant(&self, peer: &Peer) -> Result<Granted, Fault> {
        let url = peer.at(&["realms", &self.realm, "protocol", "openid-connect", "token"]);
        let request = peer.request(Method::POST, url).form(&[
            ("grant_type", "client_credentials"),
            ("client_id", &self.client_id),
            ("client_secret", self.client_secret.reveal()),
        ]);
        let reply = peer.send(request).await?;
        match reply.status {
            StatusCode::OK => reply.json(peer),
            // A wrong secret is 400 or 401; either way the settings can be put right.
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
                let fault = peer.fault("sign in", &reply, &[&self.client_secret]);
                Err(Fault::Unavailable(fault.to_string()))
            }
            _ => Err(peer.fault("sign in", &reply, &[&self.client_secret])),
        }
    }
}
