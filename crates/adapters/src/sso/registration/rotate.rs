//! Another secret for a client: by the provider, else by another client in its place.

use model::Secret;
use port::{Client, Fault};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::handle::{Handle, Key};
use super::{Registered, Registration, is_gone, metadata};
use crate::call::Reply;

impl Registration {
    pub(super) async fn renew(&self, client: &Client) -> Result<Client, Fault> {
        let mut handle = self.handle(client)?;
        self.clear(&mut handle).await;
        let reply = self.put(client, &handle).await?;
        if is_gone(&reply) {
            return self.register(&handle.name).await;
        }
        let Some(updated) = self.put_done(client, &handle, &reply)? else {
            return self.replace(client, handle).await;
        };
        if updated.secret == client.secret {
            return self.replace(client, Handle::open(&updated.handle)?).await;
        }
        Ok(updated)
    }

    /// Says again what the client is, without its secret: a provider may answer with another one.
    async fn put(&self, client: &Client, handle: &Handle) -> Result<Reply, Fault> {
        let mut body = metadata(&handle.name);
        body["client_id"] = json!(client.id);
        let request = self.peer.request(Method::PUT, self.peer.elsewhere(&handle.key.uri)?);
        self.peer.send(request.bearer_auth(&handle.key.token).json(&body)).await
    }

    /// The client after the change; none where the provider changes no clients.
    fn put_done(
        &self,
        client: &Client,
        handle: &Handle,
        reply: &Reply,
    ) -> Result<Option<Client>, Fault> {
        match reply.status {
            StatusCode::OK => {
                let now: Registered = reply.json(&self.peer)?;
                Ok(Some(self.updated(client, handle.clone(), now)))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(self.unmanaged("change", client, &handle.key, reply))
            }
            StatusCode::NOT_IMPLEMENTED => Ok(None),
            status if status.is_client_error() => Ok(None),
            _ => Err(self.unmanaged("change", client, &handle.key, reply)),
        }
    }

    /// Makes another client and removes this one. What can't be removed now is not forgotten.
    async fn replace(&self, client: &Client, handle: Handle) -> Result<Client, Fault> {
        let new = self.register(&handle.name).await?;
        let Err(fault) = self.delete(client, &handle.key).await else { return Ok(new) };
        tracing::warn!("a former client of {} is left for now: {fault}", handle.name);
        let mut kept = Handle::open(&new.handle)?;
        kept.left = [handle.left, vec![handle.key]].concat();
        Ok(Client { handle: kept.sealed(), ..new })
    }

    /// Removes former clients that are left, as far as it can be done now.
    pub(super) async fn clear(&self, handle: &mut Handle) {
        let mut still: Vec<Key> = Vec::new();
        for mut key in std::mem::take(&mut handle.left) {
            self.newest.apply(&mut key);
            let reply = self.ask(Method::DELETE, &key).await;
            if reply.is_ok_and(|reply| reply.status.is_success() || is_gone(&reply)) {
                self.newest.forget(&key);
            } else {
                still.push(key);
            }
        }
        handle.left = still;
    }

    pub(super) fn unmanaged(
        &self,
        doing: &str,
        client: &Client,
        key: &Key,
        reply: &Reply,
    ) -> Fault {
        let doing = format!("{doing} the client {}", client.id);
        self.peer.fault(&doing, reply, &[&Secret::new(&key.token), &client.secret])
    }
}
