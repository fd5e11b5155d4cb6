//! Clients of a Keycloak realm, through its admin API.
//!
//! A client's name is its `clientId`, so one whose answer was lost is found again. Only clients that
//! carry Paddock's mark are touched: another's secret is never read.

use std::time::Duration;

use model::Secret;
use port::{Answer, Client, Fault, Sso};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use self::sign_in::SignIn;
use crate::call::{LIMIT, Peer, Reply, Unusable};

mod sign_in;

/// The attribute that says that Paddock has made a client.
const MARK: &str = "paddock.managed";

/// Which Keycloak, and who Paddock is there.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, without `/realms` and `/admin`.
    pub address: String,
    /// The realm that clients are made in.
    pub realm: String,
    /// The realm of Paddock's own client: often the same, or `master`.
    pub sign_in_realm: String,
    /// Paddock's own client, whose service account may manage clients.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// How long one call may take.
    pub limit: Duration,
}

impl Options {
    /// A realm whose own client Paddock uses, with the usual limit.
    pub fn new(address: &str, realm: &str, client_id: &str, client_secret: Secret) -> Self {
        Self {
            address: address.to_owned(),
            realm: realm.to_owned(),
            sign_in_realm: realm.to_owned(),
            client_id: client_id.to_owned(),
            client_secret,
            limit: LIMIT,
        }
    }
}

/// The clients of one realm.
pub struct Keycloak {
    peer: Peer,
    realm: String,
    sign_in: SignIn,
}

/// A client as Keycloak tells it.
#[derive(Deserialize)]
struct Found {
    id: String,
    #[serde(rename = "clientId")]
    client_id: String,
    #[serde(default)]
    attributes: Value,
}

/// A client's secret as Keycloak tells it.
#[derive(Deserialize)]
struct Credential {
    value: Option<String>,
}

impl Keycloak {
    /// Prepares; Keycloak need not be there yet.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let peer = Peer::new("Keycloak", &options.address, options.limit)?;
        let realm = options.realm.clone();
        Ok(Self { peer, realm, sign_in: SignIn::new(options) })
    }

    /// Calls the admin API below `clients`. A token that is not accepted is renewed once.
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
        let token = self.sign_in.token(&self.peer, None).await?;
        let reply = attempt(&token).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        attempt(&self.sign_in.token(&self.peer, Some(&token)).await?).await
    }

    fn fault(&self, doing: &str, name: &str, reply: &Reply) -> Fault {
        self.peer.fault(&format!("{doing} the client {name}"), reply, &[])
    }

    async fn make(&self, name: &str) -> Result<Client, Fault> {
        let reply = self.call(Method::POST, &[], &[], Some(&representation(name))).await?;
        if !matches!(reply.status, StatusCode::CREATED | StatusCode::CONFLICT) {
            return Err(self.fault("make", name, &reply));
        }
        let found = self.by_name(name).await?;
        let found = found.ok_or_else(|| self.peer.confused("a client is and is not there"))?;
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
            "{name} has a client {} in the realm {realm} that Paddock has not made: remove it or \
             give it another id",
            found.client_id
        )))
    }

    /// The client with its secret; one that has none gets one.
    async fn with_secret(&self, found: Found) -> Result<Client, Fault> {
        match self.secret(Method::GET, &found).await? {
            Some(secret) => Ok(found.with(secret)),
            None => self.with_new_secret(found).await,
        }
    }

    async fn with_new_secret(&self, found: Found) -> Result<Client, Fault> {
        let secret = self.secret(Method::POST, &found).await?;
        let secret = secret.ok_or_else(|| self.peer.confused("a client gets no secret"))?;
        Ok(found.with(secret))
    }

    async fn secret(&self, method: Method, found: &Found) -> Result<Option<Secret>, Fault> {
        let reply = self.call(method, &[&found.id, "client-secret"], &[], None).await?;
        if reply.status != StatusCode::OK {
            return Err(self.fault("tell the secret of", &found.client_id, &reply));
        }
        let secret = reply.json::<Credential>(&self.peer)?.value;
        Ok(secret.filter(|text| !text.is_empty()).map(Secret::new))
    }

    async fn look(&self, client: &Client) -> Result<Option<Client>, Fault> {
        let Some(found) = self.by_name(&client.id).await? else { return Ok(None) };
        let owned = self.owned(found)?;
        Ok(Some(self.with_secret(owned).await?))
    }

    async fn renew(&self, client: &Client) -> Result<Client, Fault> {
        let Some(found) = self.by_name(&client.id).await? else {
            return self.make(&client.id).await;
        };
        let owned = self.owned(found)?;
        self.with_new_secret(owned).await
    }

    async fn forget(&self, client: &Client) -> Result<(), Fault> {
        // What is not ours has taken the place of ours, which is gone.
        let Some(found) = self.by_name(&client.id).await?.filter(Found::is_ours) else {
            return Ok(());
        };
        let reply = self.call(Method::DELETE, &[&found.id], &[], None).await?;
        if reply.status.is_success() || reply.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(self.fault("remove", &client.id, &reply))
    }
}

impl Found {
    fn is_ours(&self) -> bool {
        self.attributes.get(MARK).and_then(Value::as_str) == Some("true")
    }

    fn with(self, secret: Secret) -> Client {
        Client { id: self.client_id, secret, handle: Secret::new(self.id) }
    }
}

/// A confidential client that can do nothing but sign in by itself.
fn representation(name: &str) -> Value {
    json!({
        "clientId": name,
        "name": name,
        "description": "Made by Paddock for one of its instances",
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
    fn create<'a>(&'a self, name: &'a str) -> Answer<'a, Client> {
        Box::pin(self.make(name))
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
