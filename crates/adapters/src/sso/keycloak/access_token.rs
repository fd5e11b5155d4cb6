//! Paddock's own access token at Keycloak: fetched by one caller at a time, cached until shortly
//! before it expires.

use std::time::Duration;

use base::Instant;
use model::Secret;
use port::Fault;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::Options;
use crate::call::Peer;

/// How long before its expiry a token is replaced.
const MARGIN: Duration = Duration::from_secs(10);

/// The maximum lifetime that is assumed, whatever Keycloak says.
const MAX_LIFETIME_SECONDS: u64 = 24 * 3600;

/// Gets access tokens with Paddock's client credentials.
pub(super) struct AccessToken {
    realm: String,
    client_id: String,
    client_secret: Secret,
    cached: Mutex<Option<Cached>>,
}

struct Cached {
    token: Secret,
    expires_at: Instant,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl AccessToken {
    pub(super) fn new(options: Options) -> Self {
        let Options { auth_realm: realm, client_id, client_secret, .. } = options;
        Self { realm, client_id, client_secret, cached: Mutex::new(None) }
    }

    /// A token that should be accepted, other than `rejected`.
    pub(super) async fn get(
        &self,
        peer: &Peer,
        rejected: Option<&Secret>,
    ) -> Result<Secret, Fault> {
        let mut cached = self.cached.lock().await;
        let is_usable =
            |it: &&Cached| base::monotonic() < it.expires_at && Some(&it.token) != rejected;
        if let Some(usable) = cached.as_ref().filter(is_usable) {
            return Ok(usable.token.clone());
        }
        let granted = self.request(peer).await?;
        let lifetime = Duration::from_secs(granted.expires_in.min(MAX_LIFETIME_SECONDS));
        let token = Secret::new(granted.access_token);
        let expires_at = base::monotonic() + lifetime.saturating_sub(MARGIN);
        *cached = Some(Cached { token: token.clone(), expires_at });
        Ok(token)
    }

    async fn request(&self, peer: &Peer) -> Result<Granted, Fault> {
        let url = peer.at(&["realms", &self.realm, "protocol", "openid-connect", "token"]);
        let request = peer.request(Method::POST, url).form(&[
            ("grant_type", "client_credentials"),
            ("client_id", &self.client_id),
            ("client_secret", self.client_secret.reveal()),
        ]);
        let reply = peer.send(request).await?;
        match reply.status {
            StatusCode::OK => reply.json(peer),
            // A wrong secret is 400 or 401; both are retried, because the settings can be
            // corrected.
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
                let fault = peer.fault("issue an access token", &reply, &[&self.client_secret]);
                Err(Fault::Unavailable(fault.to_string()))
            }
            _ => Err(peer.fault("issue an access token", &reply, &[&self.client_secret])),
        }
    }
}
