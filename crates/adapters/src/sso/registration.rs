//! Clients by dynamic registration (RFC 7591) and its management (RFC 7592).
//!
//! The protocol has no names: a client whose answer was lost on the way can't be found again, only a
//! client whose handle was kept. The token that manages a client may change with every answer.

use std::time::Duration;

use model::Secret;
use port::{Answer, Client, Fault, Sso};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use self::handle::{Handle, Key};
use self::newest::Newest;
use crate::call::{LIMIT, Peer, Reply, Unusable};

mod handle;
mod newest;
mod rotate;

/// Where clients are registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// An issuer; its discovery document names the endpoint.
    Issuer(String),
    /// The endpoint itself.
    Endpoint(String),
}

/// How to register.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where.
    pub provider: Provider,
    /// What allows Paddock to make clients.
    pub initial_access_token: Secret,
    /// How long one call may take.
    pub limit: Duration,
}

impl Options {
    /// Registers there with that token, with the usual limit.
    pub fn new(provider: Provider, initial_access_token: Secret) -> Self {
        Self { provider, initial_access_token, limit: LIMIT }
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

/// A client as the provider tells it.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    registration_client_uri: Option<String>,
    registration_access_token: Option<String>,
}

impl Registration {
    /// Prepares; the provider need not be there yet.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let (address, is_issuer) = match &options.provider {
            Provider::Issuer(address) => (address, true),
            Provider::Endpoint(address) => (address, false),
        };
        let peer = Peer::new("the OpenID provider", address, options.limit)?;
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
            return Err(self.peer.fault("describe itself", &reply, &[]));
        }
        let endpoint = reply.json::<Discovery>(&self.peer)?.registration_endpoint;
        let endpoint = endpoint.ok_or_else(|| {
            Fault::Refused(format!(
                "{} does not offer the registration of clients",
                self.peer.name()
            ))
        })?;
        self.peer.elsewhere(&endpoint)
    }

    async fn register(&self, name: &str) -> Result<Client, Fault> {
        let request = self.peer.request(Method::POST, self.endpoint().await?);
        let request = request.bearer_auth(self.token.reveal()).json(&metadata(name));
        let reply = self.peer.send(request).await?;
        if !matches!(reply.status, StatusCode::CREATED | StatusCode::OK) {
            return Err(self.peer.fault(
                &format!("make the client {name}"),
                &reply,
                &[&self.token],
            ));
        }
        self.made(name, reply.json(&self.peer)?)
    }

    fn made(&self, name: &str, made: Registered) -> Result<Client, Fault> {
        let (Some(uri), Some(token)) =
            (made.registration_client_uri, made.registration_access_token)
        else {
            return Err(Fault::Refused(format!(
                "{} makes clients that can't be changed or removed (RFC 7592); the client {} must \
                 be removed there by hand",
                self.peer.name(),
                made.client_id
            )));
        };
        let secret =
            made.client_secret.ok_or_else(|| self.peer.confused("a client has no secret"))?;
        let handle = Handle { name: name.to_owned(), key: Key { uri, token }, left: Vec::new() };
        Ok(Client { id: made.client_id, secret: Secret::new(secret), handle: handle.sealed() })
    }

    /// Calls a client's own address with its own token.
    async fn ask(&self, method: Method, key: &Key) -> Result<Reply, Fault> {
        let request = self.peer.request(method, self.peer.elsewhere(&key.uri)?);
        self.peer.send(request.bearer_auth(&key.token)).await
    }

    /// What the handle says, with the newest token that is known.
    fn handle(&self, client: &Client) -> Result<Handle, Fault> {
        let mut handle = Handle::open(&client.handle)?;
        self.newest.apply(&mut handle.key);
        Ok(handle)
    }

    async fn look(&self, client: &Client) -> Result<Option<Client>, Fault> {
        let mut handle = self.handle(client)?;
        self.clear(&mut handle).await;
        let reply = self.ask(Method::GET, &handle.key).await?;
        if is_gone(&reply) {
            return Ok(None);
        }
        if reply.status != StatusCode::OK {
            return Err(self.unmanaged("show", client, &handle.key, &reply));
        }
        Ok(Some(self.updated(client, handle, reply.json(&self.peer)?)))
    }

    /// The client as the answer tells it; what the answer leaves out is as before.
    fn updated(&self, client: &Client, mut handle: Handle, now: Registered) -> Client {
        if let Some(token) = now.registration_access_token {
            self.newest.remember(&handle.key, &token);
            handle.key.token = token;
        }
        handle.key.uri = now.registration_client_uri.unwrap_or(handle.key.uri);
        let secret = now.client_secret.map_or_else(|| client.secret.clone(), Secret::new);
        Client { id: now.client_id, secret, handle: handle.sealed() }
    }

    async fn forget(&self, client: &Client) -> Result<(), Fault> {
        let mut handle = self.handle(client)?;
        self.clear(&mut handle).await;
        if !handle.left.is_empty() {
            let still =
                format!("{} still has a former client of {}", self.peer.name(), handle.name);
            return Err(Fault::Unavailable(still));
        }
        self.delete(client, &handle.key).await
    }

    async fn delete(&self, client: &Client, key: &Key) -> Result<(), Fault> {
        let reply = self.ask(Method::DELETE, key).await?;
        if !reply.status.is_success() && !is_gone(&reply) {
            return Err(self.unmanaged("remove", client, key, &reply));
        }
        self.newest.forget(key);
        Ok(())
    }
}

/// What a client of ours is.
fn metadata(name: &str) -> Value {
    json!({
        "client_name": name,
        "grant_types": ["client_credentials"],
        "response_types": [],
        "redirect_uris": [],
        "token_endpoint_auth_method": "client_secret_basic",
    })
}

/// A client that is gone has no token that would be known: the protocol answers 401.
fn is_gone(reply: &Reply) -> bool {
    matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND | StatusCode::GONE)
}

impl Sso for Registration {
    fn create<'a>(&'a self, name: &'a str) -> Answer<'a, Client> {
        Box::pin(self.register(name))
    }

    fn find<'a>(&'a self, client: &'a Client) -> Answer<'a, Option<Client>> {
        Box::pin(self.look(client))
    }

    fn rotate<'a>(&'a self, client: &'a Client) -> Answer<'a, Client> {
        Box::pin(self.renew(client))
    }

    fn remove<'a>(&'a self, client: &'a Client) -> Answer<'a, ()> {
        Box::pin(self.forget(client))
    }
}
