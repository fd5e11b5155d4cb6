//! Asking an issuer for its keys: the discovery document, then the keys that it names.

use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use port::Fault;

use super::Options;
use super::key::Keys;
use crate::call::{Peer, Unusable};

/// Where an issuer's keys are found.
pub(super) struct Provider {
    peer: Peer,
    issuer: String,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl Provider {
    pub(super) fn new(options: &Options) -> Result<Self, Unusable> {
        let peer = Peer::new("the OpenID provider", &options.issuer, options.limit)?;
        Ok(Self { peer, issuer: options.issuer.clone() })
    }

    /// The keys that it publishes now.
    pub(super) async fn keys(&self) -> Result<Keys, Fault> {
        let url = self.peer.at(&[".well-known", "openid-configuration"]);
        let found: Discovery = self.get(url, "describe itself").await?;
        if found.issuer != self.issuer {
            let other: String = found.issuer.chars().take(200).collect();
            let why = format!("it says that it is the issuer {other:?}, not {:?}", self.issuer);
            return Err(self.peer.confused(&why));
        }
        let url = self.peer.elsewhere(&found.jwks_uri)?;
        let published: Published = self.get(url, "publish its keys").await?;
        let keys = Keys::read(published.keys);
        if keys.is_empty() {
            return Err(self.peer.confused("it publishes no keys that could sign tokens"));
        }
        Ok(keys)
    }

    async fn get<T: DeserializeOwned>(&self, url: Url, doing: &str) -> Result<T, Fault> {
        let reply = self.peer.send(self.peer.request(Method::GET, url)).await?;
        match reply.status {
            StatusCode::OK => reply.json(&self.peer),
            _ => Err(self.peer.fault(doing, &reply, &[])),
        }
    }
}
