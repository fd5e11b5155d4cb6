//! Calls of Vault's API, signed in. Nothing secret gets into a fault.

use std::time::Duration;

use model::Secret;
use port::Fault;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::sign_in::Tokens;
use super::{Now, Options};
use crate::call::{Peer, Reply, Unusable};

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Read,
    Write,
    Patch,
    Delete,
}

impl Deed {
    fn method(self) -> Method {
        match self {
            Deed::Read => Method::GET,
            Deed::Write => Method::POST,
            Deed::Patch => Method::PATCH,
            Deed::Delete => Method::DELETE,
        }
    }

    /// In a sentence, and what a policy calls it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Deed::Read => ("read", "read"),
            Deed::Write => ("write", "create and update"),
            Deed::Patch => ("change", "patch"),
            Deed::Delete => ("delete", "delete"),
        }
    }
}

/// Vault, before anybody has signed in.
pub(super) struct Wire {
    pub(super) peer: Peer,
    namespace: Option<String>,
}

impl Wire {
    /// One call. An answer of any status is one, unless Vault is sealed.
    pub(super) async fn send(
        &self,
        deed: Deed,
        path: &str,
        body: Option<&Value>,
        token: Option<&Secret>,
    ) -> Result<Reply, Fault> {
        let segments: Vec<&str> = ["v1"].into_iter().chain(path.split('/')).collect();
        let mut request = self.peer.request(deed.method(), self.peer.at(&segments));
        request = request.header("X-Vault-Request", "true");
        if deed == Deed::Patch {
            request = request.header(CONTENT_TYPE, "application/merge-patch+json");
        }
        if let Some(namespace) = &self.namespace {
            request = request.header("X-Vault-Namespace", namespace);
        }
        if let Some(token) = token {
            request = request.header("X-Vault-Token", token.reveal());
        }
        let reply = self.peer.send(body.into_iter().fold(request, RequestBuilder::json)).await?;
        let is_sealed = reply.said().contains("sealed");
        if reply.status == StatusCode::SERVICE_UNAVAILABLE && is_sealed {
            let name = self.peer.name();
            return Err(Fault::Unavailable(format!("{name} is sealed: unseal it")));
        }
        Ok(reply)
    }
}

/// Vault, to somebody who is signed in.
pub(super) struct Session {
    wire: Wire,
    tokens: Tokens,
}

impl Session {
    pub(super) fn new(options: Options, now: Now) -> Result<Self, Unusable> {
        let peer = Peer::new("Vault", &options.address, options.limit)?;
        let wire = Wire { peer, namespace: options.namespace };
        Ok(Self { wire, tokens: Tokens::new(options.sign_in, now) })
    }

    /// Who is asked, for what its answers say.
    pub(super) fn peer(&self) -> &Peer {
        &self.wire.peer
    }

    /// Is Paddock known to Vault at all?
    pub(super) async fn sign_in(&self) -> Result<(), Fault> {
        self.tokens.get(&self.wire, None).await.map(drop)
    }

    /// Has a token that is good; how long nothing has to be done for it, unless it does not end.
    pub(super) async fn keep_signed_in(&self) -> Result<Option<Duration>, Fault> {
        self.sign_in().await?;
        Ok(self.tokens.renewed_in().await)
    }

    /// One call. Who is not allowed to signs in once more first: a token may have been revoked.
    pub(super) async fn send(
        &self,
        deed: Deed,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Reply, Fault> {
        let token = self.tokens.get(&self.wire, None).await?;
        let reply = self.wire.send(deed, path, body, Some(&token)).await?;
        if reply.status != StatusCode::FORBIDDEN {
            return Ok(reply);
        }
        let other = self.tokens.get(&self.wire, Some(&token)).await?;
        if other == token {
            return Ok(reply);
        }
        self.wire.send(deed, path, body, Some(&other)).await
    }

    /// The fault of an answer that is not what was asked for. What was sent and is secret is blotted
    /// out, should Vault have repeated it.
    pub(super) fn fault(&self, deed: Deed, path: &str, reply: &Reply, hidden: &[&Secret]) -> Fault {
        let (verb, capability) = deed.words();
        if reply.status != StatusCode::FORBIDDEN {
            return self.peer().fault(&format!("{verb} {path}"), reply, hidden);
        }
        Fault::Refused(format!(
            "{} does not let Paddock {verb} {path}: allow {capability} on {path} in the policy of \
             Paddock's token or role",
            self.peer().name()
        ))
    }
}
