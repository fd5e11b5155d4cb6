//! Authenticated calls of Vault's API. Faults never contain secrets.

use std::time::Duration;

use model::Secret;
use port::Fault;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::tokens::Tokens;
use super::{Now, Options};
use crate::call::{InvalidOptions, Peer, Reply};

/// An action on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    Patch,
    Delete,
}

impl Action {
    fn method(self) -> Method {
        match self {
            Action::Read => Method::GET,
            Action::Write => Method::POST,
            Action::Patch => Method::PATCH,
            Action::Delete => Method::DELETE,
        }
    }

    /// The verb for messages, and the capabilities in a policy.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Action::Read => ("read", "read"),
            Action::Write => ("write", "create and update"),
            Action::Patch => ("patch", "patch"),
            Action::Delete => ("delete", "delete"),
        }
    }
}

/// Unauthenticated access to Vault.
pub(super) struct Wire {
    pub(super) peer: Peer,
    namespace: Option<String>,
}

impl Wire {
    /// Sends one request. A response of any status is returned, unless Vault is sealed.
    pub(super) async fn send(
        &self,
        action: Action,
        path: &str,
        body: Option<&Value>,
        token: Option<&Secret>,
    ) -> Result<Reply, Fault> {
        let segments: Vec<&str> = ["v1"].into_iter().chain(path.split('/')).collect();
        let mut request = self.peer.request(action.method(), self.peer.at(&segments));
        request = request.header("X-Vault-Request", "true");
        if action == Action::Patch {
            request = request.header(CONTENT_TYPE, "application/merge-patch+json");
        }
        if let Some(namespace) = &self.namespace {
            request = request.header("X-Vault-Namespace", namespace);
        }
        if let Some(token) = token {
            request = request.header("X-Vault-Token", token.reveal());
        }
        let reply = self.peer.send(body.into_iter().fold(request, RequestBuilder::json)).await?;
        let is_sealed = reply.message().contains("sealed");
        if reply.status == StatusCode::SERVICE_UNAVAILABLE && is_sealed {
            let name = self.peer.name();
            return Err(Fault::Unavailable(format!("{name} is sealed. Unseal it")));
        }
        Ok(reply)
    }
}

/// Authenticated access to Vault.
pub(super) struct Session {
    wire: Wire,
    tokens: Tokens,
}

impl Session {
    pub(super) fn new(options: Options, now: Now) -> Result<Self, InvalidOptions> {
        let peer = Peer::new("Vault", &options.address, options.timeout)?;
        let wire = Wire { peer, namespace: options.namespace };
        Ok(Self { wire, tokens: Tokens::new(options.auth, now) })
    }

    /// The peer, for its responses.
    pub(super) fn peer(&self) -> &Peer {
        &self.wire.peer
    }

    /// Gets a token, to check the credentials.
    pub(super) async fn authenticate(&self) -> Result<(), Fault> {
        self.tokens.get(&self.wire, None).await.map(drop)
    }

    /// Ensures a valid token; returns the time until its renewal, none if it does not expire.
    pub(super) async fn renew(&self) -> Result<Option<Duration>, Fault> {
        self.authenticate().await?;
        Ok(self.tokens.renewed_in().await)
    }

    /// Sends one request. When access is denied, it authenticates once more: the token may be
    /// revoked.
    pub(super) async fn send(
        &self,
        action: Action,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, Fault> {
        let token = self.tokens.get(&self.wire, None).await?;
        let reply = self.wire.send(action, path, body, Some(&token)).await?;
        if reply.status != StatusCode::FORBIDDEN {
            return Ok(reply);
        }
        let other = self.tokens.get(&self.wire, Some(&token)).await?;
        if other == token {
            return Ok(reply);
        }
        self.wire.send(action, path, body, Some(&other)).await
    }

    /// The fault of an unexpected response. Secrets that were sent are redacted, in case Vault
    /// repeats them.
    pub(super) fn fault(
        &self,
        action: Action,
        path: &str,
        reply: &Reply,
        hidden: &[&Secret],
    ) -> Fault {
        let (verb, capability) = action.names();
        if reply.status != StatusCode::FORBIDDEN {
            return self.peer().fault(&format!("{verb} {path}"), reply, hidden);
        }
        Fault::Refused(format!(
            "{} denied permission to {verb} {path}. Permit {capability} on {path} in the policy \
             of Paddock's token or role",
            self.peer().name()
        ))
    }
}
