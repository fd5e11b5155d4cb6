//! Secrets sealed by Vault's transit engine: the key never leaves Vault.
//!
//! The purpose is the context that Vault derives keys from. A key that was not made with
//! `derived=true` would ignore it, so the purpose is sealed together with the secret, too, and looked
//! at when it is opened.

use std::time::Duration;

use data_encoding::BASE64;
use model::Secret;
use port::{Answer, Fault, Seal};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::{LIMIT, Peer, Unusable};

/// Which Vault, and which key of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, without `/v1`.
    pub address: String,
    /// What allows Paddock to use the key.
    pub token: Secret,
    /// Where the transit engine is mounted, usually `transit`.
    pub mount: String,
    /// The name of the key, best made with `derived=true`.
    pub key: String,
    /// How long one call may take.
    pub limit: Duration,
}

impl Options {
    /// A key of the transit engine at its usual place, with the usual limit.
    pub fn new(address: &str, token: Secret, key: &str) -> Self {
        let (address, key) = (address.to_owned(), key.to_owned());
        Self { address, token, mount: "transit".into(), key, limit: LIMIT }
    }
}

/// Seals with a key that Vault keeps.
pub struct Vault {
    peer: Peer,
    token: Secret,
    mount: String,
    key: String,
}

#[derive(Deserialize)]
struct Enveloped<T> {
    data: T,
}

#[derive(Deserialize)]
struct Ciphertext {
    ciphertext: String,
}

#[derive(Deserialize)]
struct Plaintext {
    plaintext: String,
}

/// What is sealed.
#[derive(Serialize, Deserialize)]
struct Sealed {
    purpose: String,
    secret: String,
}

impl Vault {
    /// Prepares; Vault need not be there yet.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let Options { address, token, mount, key, limit } = options;
        let peer = Peer::new("Vault", &address, limit)?;
        Ok(Self { peer, token, mount, key })
    }

    async fn call<T: DeserializeOwned>(
        &self,
        verb: &str,
        body: &Value,
        hidden: &[&Secret],
    ) -> Result<T, Fault> {
        let mount = self.mount.split('/').filter(|part| !part.is_empty());
        let path: Vec<_> = ["v1"].into_iter().chain(mount).chain([verb, &*self.key]).collect();
        let request = self.peer.request(Method::POST, self.peer.at(&path)).json(body);
        let request =
            request.header("X-Vault-Request", "true").header("X-Vault-Token", self.token.reveal());
        let reply = self.peer.send(request).await?;
        if reply.status != StatusCode::OK {
            let secrets = [&[&self.token], hidden].concat();
            return Err(self.peer.fault(&format!("{verb} a secret"), &reply, &secrets));
        }
        Ok(reply.json::<Enveloped<T>>(&self.peer)?.data)
    }

    async fn encrypt(&self, purpose: &str, secret: &Secret) -> Result<String, Fault> {
        let sealed = Sealed { purpose: purpose.into(), secret: secret.reveal().into() };
        let sealed = serde_json::to_vec(&sealed).expect("texts can be written as JSON");
        let plaintext = Secret::new(BASE64.encode(&sealed));
        let body = json!({"plaintext": plaintext.reveal(), "context": context(purpose)});
        let done: Ciphertext = self.call("encrypt", &body, &[secret, &plaintext]).await?;
        if done.ciphertext.starts_with("vault:") {
            return Ok(done.ciphertext);
        }
        // Whatever this is, it could be the secret itself.
        Err(self.peer.confused("what it sealed does not begin with vault:"))
    }

    async fn decrypt(&self, purpose: &str, sealed: &str) -> Result<Secret, Fault> {
        let body = json!({"ciphertext": sealed, "context": context(purpose)});
        let done: Plaintext = self.call("decrypt", &body, &[]).await?;
        let opened = BASE64.decode(done.plaintext.as_bytes()).ok();
        let opened = opened.and_then(|bytes| serde_json::from_slice::<Sealed>(&bytes).ok());
        let opened = opened.ok_or_else(|| {
            Fault::Refused("a sealed secret can't be opened: Paddock has not sealed it".into())
        })?;
        if opened.purpose != purpose {
            let why = "a sealed secret can't be opened: it was sealed for another use";
            return Err(Fault::Refused(why.into()));
        }
        Ok(Secret::new(opened.secret))
    }
}

fn context(purpose: &str) -> String {
    BASE64.encode(purpose.as_bytes())
}

impl Seal for Vault {
    fn seal<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> Answer<'a, String> {
        Box::pin(self.encrypt(purpose, secret))
    }

    fn open<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> Answer<'a, Secret> {
        Box::pin(self.decrypt(purpose, sealed))
    }
}
