//! SSO clients by dynamic registration (RFC 7591) and its management protocol (RFC 7592).
//!
//! The protocol has no names: a client whose creation was not acknowledged can't be found again,
//! only one whose handle was stored. The token that manages a client may change with every
//! response.

use std::time::Duration;

use model::Secret;
use model::address::Policy;
use port::{Fault, PortFuture, Sso, SsoClient};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use self::handle::{Handle, Key};
use self::newest::Newest;
use crate::call::{CALL_TIMEOUT, InvalidOptions, Peer, Reply};

mod handle;
mod newest;
mod rotate;

/// The registration endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// An issuer; its discovery document names the endpoint.
    Issuer(String),
    /// The endpoint itself.
    Endpoint(String),
}

/// Registration settings.
#[derive(Debug, Clone)]
pub struct Options {
    /// The registration endpoint.
    pub provider: Provider,
    /// The token with which Paddock creates clients.
    pub initial_access_token: Secret,
    /// The timeout of one call.
    pub timeout: Duration,
    /// Addresses of other hosts to which the provider may refer.
    pub addresses: Policy,
}

impl Options {
    /// Settings with the default timeout.
    pub fn new(provider: Provider, initial_access_token: Secret) -> Self {
        let (timeout, addresses) = (CALL_TIMEOUT, Policy::default());
        Self { provider, initial_access_token, timeout, addresses }
    }
}

/// Registers clients at one provider.
pub struct Registration {
    peer: Peer,
    token: Secret,
    is_issuer: bool,
    endpoint: OnceCell<Url>,
    newest: Newest,
}

/// The part of a discovery document that matters here.
#[derive(Deserialize)]
struct Discovery {
    registration_endpoint: Option<String>,
}

/// A client in the provider's representation.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    registration_client_uri: Option<String>,
    registration_access_token: Option<String>,
}

impl Registration {
    /// Prepares the client; the provider need not be reachable yet.
    pub fn new(options: Options) -> Result<Self, InvalidOptions> {
        let (address, is_issuer) = match &options.provider {
            Provider::Issuer(address) => (address, true),
            Provider::Endpoint(address) => (address, false),
        };
        let (timeout, addresses) = (options.timeout, options.addresses);
        let peer = Peer::checked("the OpenID provider", address, timeout, addresses)?;
        let (endpoint, newest) = (OnceCell::new(), Newest::default());
        Ok(Self { peer, token: options.initial_access_token, is_issuer, endpoint, newest })
    }

    async fn endpoint(&self) -> Result<Url, Fault> {
        if !self.is_issuer {
            return Ok(self.peer.at(&[]));
        }
        self.endpoint.get_or_try_init(|| self.discover()).await.cloned()
    }

    async fn discover(&self) -> Result<Url, Fault> {
        let url = self.peer.at(&[".well-known", "openid-configuration"]);
        let reply = self.peer.send(self.peer.request(Method::GET, url)).await?;
        if reply.status != StatusCode::OK {
            return Err(self.peer.fault("return its discovery document", &reply, &[]));
        }
        let endpoint = reply.json::<Discovery>(&self.peer)?.registration_endpoint;
        let endpoint = endpoint.ok_or_else(|| {
            Fault::Refused(format!(
                "{} does not support dynamic client registration",
                self.peer.name()
            ))
        })?;
        self.peer.returned_url(&endpoint)
    }

    async fn register(&self, name: &str) -> Result<SsoClient, Fault> {
        let request = self.peer.request(Method::POST, self.endpoint().await?);
        let request = request.bearer_auth(self.token.reveal()).json(&metadata(name));
        let reply = self.peer.send(request).await?;
        if !matches!(reply.status, StatusCode::CREATED | StatusCode::OK) {
            return Err(self.peer.fault(
                &format!("create the client {name}"),
                &reply,
                &[&self.token],
            ));
        }
        self.created(name, reply.json(&self.peer)?)
    }

    fn created(&self, name: &str, client: Registered) -> Result<SsoClient, Fault> {
        let (Some(uri), Some(token)) =
            (client.registration_client_uri, client.registration_access_token)
        else {
            return Err(Fault::Refused(format!(
                "{} creates clients that cannot be updated or deleted (RFC 7592). Delete the \
                 client {} there by hand",
                self.peer.name(),
                client.client_id
            )));
        };
        let secret = client.client_secret;
        let secret =
            secret.ok_or_else(|| self.peer.invalid_response("the new client has no secret"))?;
        let handle = Handle { name: name.to_owned(), key: Key { uri, token }, left: Vec::new() };
        Ok(SsoClient {
            id: client.client_id,
            secret: Secret::new(secret),
            handle: handle.to_secret(),
        })
    }

    /// Calls a client's management URL with its token.
    async fn manage(&self, method: Method, key: &Key) -> Result<Reply, Fault> {
        let request = self.peer.request(method, self.peer.returned_url(&key.uri)?);
        self.peer.send(request.bearer_auth(&key.token)).await
    }

    /// The handle, with the newest known token.
    fn handle(&self, client: &SsoClient) -> Result<Handle, Fault> {
        let mut handle = Handle::parse(&client.handle)?;
        self.newest.apply(&mut handle.key);
        Ok(handle)
    }

    async fn find_client(&self, client: &SsoClient) -> Result<Option<SsoClient>, Fault> {
        let mut handle = self.handle(client)?;
        self.delete_replaced(&mut handle).await;
        let reply = self.manage(Method::GET, &handle.key).await?;
        if is_missing(&reply) {
            return Ok(None);
        }
        if reply.status != StatusCode::OK {
            return Err(self.client_fault("return", client, &handle.key, &reply));
        }
        Ok(Some(self.updated(client, handle, reply.json(&self.peer)?)))
    }

    /// The client after a response; fields that the response omits are unchanged.
    fn updated(&self, client: &SsoClient, mut handle: Handle, now: Registered) -> SsoClient {
        if let Some(token) = now.registration_access_token {
            self.newest.record(&handle.key, &token);
            handle.key.token = token;
        }
        handle.key.uri = now.registration_client_uri.unwrap_or(handle.key.uri);
        let secret = now.client_secret.map_or_else(|| client.secret.clone(), Secret::new);
        SsoClient { id: now.client_id, secret, handle: handle.to_secret() }
    }

    async fn delete_client(&self, client: &SsoClient) -> Result<(), Fault> {
        let mut handle = self.handle(client)?;
        self.delete_replaced(&mut handle).await;
        if !handle.left.is_empty() {
            let why =
                format!("{} still has a replaced client of {}", self.peer.name(), handle.name);
            return Err(Fault::Unavailable(why));
        }
        self.delete(client, &handle.key).await
    }

    async fn delete(&self, client: &SsoClient, key: &Key) -> Result<(), Fault> {
        let reply = self.manage(Method::DELETE, key).await?;
        if !reply.status.is_success() && !is_missing(&reply) {
            return Err(self.client_fault("delete", client, key, &reply));
        }
        self.newest.evict(key);
        Ok(())
    }
}

/// The metadata of Paddock's clients.
fn metadata(name: &str) -> Value {
    json!({
        "client_name": name,
        "grant_types": ["client_credentials"],
        "response_types": [],
        "redirect_uris": [],
        "token_endpoint_auth_method": "client_secret_basic",
    })
}

/// Whether the client is deleted: its token is then unknown, for which the protocol has status 401.
fn is_missing(reply: &Reply) -> bool {
    matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND | StatusCode::GONE)
}

impl Sso for Registration {
    fn create<'a>(&'a self, name: &'a str) -> PortFuture<'a, SsoClient> {
        Box::pin(self.register(name))
    }

    fn find<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, Option<SsoClient>> {
        Box::pin(self.find_client(client))
    }

    fn rotate<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, SsoClient> {
        Box::pin(self.rotate_secret(client))
    }

    fn delete<'a>(&'a self, client: &'a SsoClient) -> PortFuture<'a, ()> {
        Box::pin(self.delete_client(client))
    }
}
