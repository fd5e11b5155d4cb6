//! Rotates a client's secret: by the provider, else by replacing the client.

use model::Secret;
use port::{Fault, SsoClient};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::handle::{Handle, Key};
use super::{Registered, Registration, is_missing, metadata};
use crate::call::Reply;

impl Registration {
    pub(super) async fn rotate_secret(&self, client: &SsoClient) -> Result<SsoClient, Fault> {
        let mut handle = self.handle(client)?;
        self.delete_replaced(&mut handle).await;
        let reply = self.put(client, &handle).await?;
        if is_missing(&reply) {
            return self.register(&handle.name).await;
        }
        let Some(updated) = self.after_put(client, &handle, &reply)? else {
            return self.replace(client, handle).await;
        };
        if updated.secret == client.secret {
            return self.replace(client, Handle::parse(&updated.handle)?).await;
        }
        Ok(updated)
    }

    /// Updates the client without naming its secret: the provider may return a new one.
    async fn put(&self, client: &SsoClient, handle: &Handle) -> Result<Reply, Fault> {
        let mut body = metadata(&handle.name);
        body["client_id"] = json!(client.id);
        let request = self.peer.request(Method::PUT, self.peer.returned_url(&handle.key.uri)?);
        self.peer.send(request.bearer_auth(&handle.key.token).json(&body)).await
    }

    /// The updated client; none if the provider does not support updates.
    fn after_put(
        &self,
        client: &SsoClient,
        handle: &Handle,
        reply: &Reply,
    ) -> Result<Option<SsoClient>, Fault> {
        match reply.status {
            StatusCode::OK => {
                let now: Registered = reply.json(&self.peer)?;
                Ok(Some(self.updated(client, handle.clone(), now)))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Err(self.client_fault("update", client, &handle.key, reply))
            }
            StatusCode::NOT_IMPLEMENTED => Ok(None),
            status if status.is_client_error() => Ok(None),
            _ => Err(self.client_fault("update", client, &handle.key, reply)),
        }
    }

    /// Creates another client and deletes this one. A client that can't be deleted now is recorded.
    async fn replace(&self, client: &SsoClient, handle: Handle) -> Result<SsoClient, Fault> {
        let new = self.register(&handle.name).await?;
        let Err(fault) = self.delete(client, &handle.key).await else { return Ok(new) };
        tracing::warn!(client = handle.name, %fault, "replaced client not deleted yet");
        let mut stored = Handle::parse(&new.handle)?;
        stored.left = [handle.left, vec![handle.key]].concat();
        Ok(SsoClient { handle: stored.to_secret(), ..new })
    }

    /// Deletes replaced clients, as far as possible now.
    pub(super) async fn delete_replaced(&self, handle: &mut Handle) {
        let mut still: Vec<Key> = Vec::new();
        for mut key in std::mem::take(&mut handle.left) {
            self.newest.apply(&mut key);
            let reply = self.manage(Method::DELETE, &key).await;
            if reply.is_ok_and(|reply| reply.status.is_success() || is_missing(&reply)) {
                self.newest.evict(&key);
            } else {
                still.push(key);
            }
        }
        handle.left = still;
    }

    pub(super) fn client_fault(
        &self,
        doing: &str,
        client: &SsoClient,
        key: &Key,
        reply: &Reply,
    ) -> Fault {
        let doing = format!("{doing} the client {}", client.id);
        self.peer.fault(&doing, reply, &[&Secret::new(&key.token), &client.secret])
    }
}
