//! SSO clients in a Keycloak realm, through its admin API.
//!
//! A client's name is its `clientId`, so a client whose creation was not acknowledged is found
//! again. Only clients with Paddock's attribute are touched: the secrets of others are never read.

use std::time::Duration;

use model::Secret;
use port::{Fault, PortFuture, Sso, SsoClient};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use self::access_token::AccessToken;
use crate::call::{CALL_TIMEOUT, InvalidOptions, Peer, Reply};

mod access_token;

/// The attribute of clients that Paddock created.
const MARK: &str = "paddock.managed";

/// The Keycloak server, and Paddock's own client there.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, without `/realms` and `/admin`.
    pub address: String,
    /// The realm in which clients are created.
    pub realm: String,
    /// The realm of Paddock's own client: often the same, or `master`.
    pub auth_realm: String,
    /// Paddock's own client, whose service account manages clients.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// The timeout of one call.
    pub timeout: Duration,
}

impl Options {
    /// A realm that also contains Paddock's own client, with the default timeout.
    pub fn new(address: &str, realm: &str, client_id: &str, client_secret: Secret) -> Self {
        Self {
            address: address.to_owned(),
            realm: realm.to_owned(),
            auth_realm: realm.to_owned(),
            client_id: client_id.to_owned(),
            client_secret,
            timeout: CALL_TIMEOUT,
        }
    }
}

/// The clients of one realm.
pub struct Keycloak {
    peer: Peer,
    realm: String,
    access_token: AccessToken,
}

/// A client in Keycloak's representation.
#[derive(Deserialize)]
struct Found {
    id: String,
    #[serde(rename = "clientId")]
    client_id: String,
    #[serde(default)]
    attributes: Value,
}

/// A client secret in Keycloak's representation.
#[derive(Deserialize)]
struct Credential {
    value: Option<String>,
}

impl Keycloak {
    /// Prepares the client; Keycloak need not be reachable yet.
    pub fn new(options: Options) -> Result<Self, InvalidOptions> {
        let peer = Peer::new("Keycloak", &options.address, options.timeout)?;
        let realm = options.realm.clone();
        Ok(Self { peer, realm, access_token: AccessToken::new(options) })
    }

    /// Calls the admin API below `clients`. A rejected token is renewed once.
    async fn call(
        &self,
        method: Method,
        below: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Reply, Fault> {
        let path = [&["admin", "realms", &self.realm, "clients"], below].concat();
        let attempt = async |token: &Secret| {
            let request = self.peer.request(method.clone(), self.peer.at(&path)).query(query);
            let request = request.bearer_auth(token.reveal());
            self.peer.send(body.into_iter().fold(request, RequestBuilder::json)).await
        };
        let token = self.access_token.get(&self.peer, None).await?;
        let reply = attempt(&token).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        attempt(&self.access_token.get(&self.peer, Some(&token)).await?).await
    }

    fn fault(&self, doing: &str, name: &str, reply: &Reply) -> Fault {
        self.peer.fault(&format!("{doing} the client {name}"), reply, &[])
    }

    async fn create_client(&self, name: &str) -> Result<SsoClient, Fault> {
        let reply = self.call(Method::POST, &[], &[], Some(&representation(name))).await?;
        if !matches!(reply.status, StatusCode::CREATED | StatusCode::CONFLICT) {
            return Err(self.fault("create", name, &reply));
        }
        let found = self.by_name(name).await?;
        let missing = "a client that it created or reported as existing is missing";
        let found = found.ok_or_else(|| self.peer.invalid_response(missing))?;
        let owned = self.owned(found)?;
        self.with_secret(owned).await
    }

    async fn by_name(&self, name: &str) -> Result<Option<Found>, Fault> {
        let reply = self.call(Method::GET, &[], &[("clientId", name)], None).await?;
        if reply.status != StatusCode::OK {
            return Err(self.fault("find", name, &reply));
        }
        let found: Vec<Found> = reply.json(&self.peer)?;
        Ok(found.into_iter().find(|client| client.client_id == name))
    }

    fn owned(&self, found: Found) -> Result<Found, Fault> {
        if found.is_ours() {
            return Ok(found);
        }
        let (name, realm) = (self.peer.name(), &self.realm);
        Err(Fault::Refused(format!(
            "{name} has a client {} in the realm {realm} that Paddock did not create. Delete it \
             or change its id",
            found.client_id
        )))
    }

    /// The client with its secret, which is created if missing.
    async fn with_secret(&self, found: Found) -> Result<SsoClient, Fault> {
        match self.secret(Method::GET, &found).await? {
            Some(secret) => Ok(found.with(secret)),
            None => self.with_new_secret(found).await,
        }
    }

    async fn with_new_secret(&self, found: Found) -> Result<SsoClient, Fault> {
        let secret = self.secret(Method::POST, &found).await?;
        let secret =
            secret.ok_or_else(|| self.peer.invalid_response("a client has no new secret"))?;
        Ok(found.with(secret))
    }

    async fn secret(&self, method: Method, found: &Found) -> Result<Option<Secret>, Fault> {
        let reply = self.call(method, &[&found.id, "client-secret"], &[], None).await?;
        if reply.status != StatusCode::OK {
            return Err(self.fault("return the secret of", &found.client_id, &reply));
        }
        let secret = reply.json::<Credential>(&self.peer)?.value;
        Ok(secret.filter(|text| !text.is_empty()).map(Secret::new))
    }

    async fn find_client(&self, client: &SsoClient) -> Result<Option<SsoClient>, Fault> {
        let Some(found) = self.by_name(&client.id).await? else { return Ok(None) };
        let owned = self.owned(found)?;
        Ok(Some(self.with_secret(owned).await?))
    }

    async fn rotate_secret(&self, client: &SsoClient) -> Result<SsoClient, Fault> {
        let Some(found) = self.by_name(&client.id).await? else {
            return self.create_client(&client.id).await;
        };
        let owned = self.owned(found)?;
        self.with_new_secret(owned).await
    }

    async fn delete_client(&self, client: &SsoClient) -> Result<(), Fault> {
        // A client of others under this name means that ours is already deleted.
        let Some(found) = self.by_name(&client.id).await?.filter(Found::is_ours) else {
            return Ok(());
        };
        let reply = self.call(Method::DELETE, &[&found.id], &[], None).await?;
        if reply.status.is_success() || reply.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(self.fault("delete", &client.id, &reply))
    }
}

impl Found {
    fn is_ours(&self) -> bool {
        self.attributes.get(MARK).and_then(Value::as_str) == Some("true")
    }

    fn with(self, secret: Secret) -> SsoClient {
        SsoClient { id: self.client_id, secret, handle: Secret::new(self.id) }
    }
}

/// A confidential client with the client credentials grant only.
fn representation(name: &str) -> Value {
    json!({
        "clientId": name,
        "name": name,
        "description": "Created by Paddock for a service instance",
        "enabled": true,
        "protocol": "openid-connect",
        "publicClient": false,
        "clientAuthenticatorType": "client-secret",
        "serviceAccountsEnabled": true,
        "standardFlowEnabled": false,
        "implicitFlowEnabled": false,
        "directAccessGrantsEnabled": false,
        "attributes": { MARK: "true" },
    })
}

impl Sso for Keycloak {
    fn create<'a>(&'a self, name: &'a str) -> PortFuture<'a, SsoClient> {
        Box::pin(self.create_client(name))
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
