//! Fetches an issuer's keys: the discovery document, then the JWKS that it names.

use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use port::Fault;

use super::Options;
use super::key::Keys;
use crate::call::{InvalidOptions, Peer};

/// The issuer from which keys are fetched.
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
    pub(super) fn new(options: &Options) -> Result<Self, InvalidOptions> {
        let Options { issuer, timeout, addresses, .. } = options;
        let peer = Peer::checked("the OpenID provider", issuer, *timeout, addresses.clone())?;
        Ok(Self { peer, issuer: issuer.clone() })
    }

    /// The currently published keys.
    pub(super) async fn keys(&self) -> Result<Keys, Fault> {
        let url = self.peer.at(&[".well-known", "openid-configuration"]);
        let found: Discovery = self.get(url, "return its discovery document").await?;
        if found.issuer != self.issuer {
            let other: String = found.issuer.chars().take(200).collect();
            let why = format!("its issuer is {other:?}, not {:?}", self.issuer);
            return Err(self.peer.invalid_response(&why));
        }
        let url = self.peer.returned_url(&found.jwks_uri)?;
        let published: Published = self.get(url, "return its keys").await?;
        let keys = Keys::read(published.keys);
        if keys.is_empty() {
            return Err(self.peer.invalid_response("it contains no usable signing keys"));
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
