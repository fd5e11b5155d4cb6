//! Encryption by Vault's transit engine: the key never leaves Vault.
//!
//! The purpose is the key derivation context. A key that was not created with `derived=true`
//! ignores the context, so the purpose is also encrypted with the secret, and checked on
//! decryption.

use std::time::Duration;

use data_encoding::BASE64;
use model::Secret;
use port::{Encryption, Fault, PortFuture};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::{CALL_TIMEOUT, InvalidOptions, Peer};

/// The Vault server and the transit key.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its address, without `/v1`.
    pub address: String,
    /// The token with which Paddock uses the key.
    pub token: Secret,
    /// The mount of the transit engine, usually `transit`.
    pub mount: String,
    /// The name of the key, preferably created with `derived=true`.
    pub key: String,
    /// The timeout of one call.
    pub timeout: Duration,
}

impl Options {
    /// A key of the transit engine at its usual mount, with the default timeout.
    pub fn new(address: &str, token: Secret, key: &str) -> Self {
        let (address, key) = (address.to_owned(), key.to_owned());
        Self { address, token, mount: "transit".into(), key, timeout: CALL_TIMEOUT }
    }
}

/// Encrypts with a key that Vault holds.
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

/// The plaintext.
#[derive(Serialize, Deserialize)]
struct Payload {
    purpose: String,
    secret: String,
}

impl Vault {
    /// Prepares the client; Vault need not be reachable yet.
    pub fn new(options: Options) -> Result<Self, InvalidOptions> {
        let Options { address, token, mount, key, timeout: limit } = options;
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
        let payload = Payload { purpose: purpose.into(), secret: secret.reveal().into() };
        let payload = serde_json::to_vec(&payload).expect("texts can be written as JSON");
        let plaintext = Secret::new(BASE64.encode(&payload));
        let body = json!({"plaintext": plaintext.reveal(), "context": context(purpose)});
        let done: Ciphertext = self.call("encrypt", &body, &[secret, &plaintext]).await?;
        if done.ciphertext.starts_with("vault:") {
            return Ok(done.ciphertext);
        }
        // The value is not repeated: it could be the secret itself.
        Err(self.peer.invalid_response("the ciphertext does not begin with vault:"))
    }

    async fn decrypt(&self, purpose: &str, sealed: &str) -> Result<Secret, Fault> {
        let body = json!({"ciphertext": sealed, "context": context(purpose)});
        let done: Plaintext = self.call("decrypt", &body, &[]).await?;
        let payload = BASE64.decode(done.plaintext.as_bytes()).ok();
        let payload = payload.and_then(|bytes| serde_json::from_slice::<Payload>(&bytes).ok());
        let payload = payload.ok_or_else(|| {
            Fault::Refused("cannot decrypt a secret: Paddock did not encrypt it".into())
        })?;
        if payload.purpose != purpose {
            let why = "cannot decrypt a secret: it was encrypted for another purpose";
            return Err(Fault::Refused(why.into()));
        }
        Ok(Secret::new(payload.secret))
    }
}

fn context(purpose: &str) -> String {
    BASE64.encode(purpose.as_bytes())
}

impl Encryption for Vault {
    fn encrypt<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> PortFuture<'a, String> {
        Box::pin(self.encrypt(purpose, secret))
    }

    fn decrypt<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> PortFuture<'a, Secret> {
        Box::pin(self.decrypt(purpose, sealed))
    }

    /// `vault:vN`, from a ciphertext: reading the key itself would need another policy.
    fn current_key(&self) -> PortFuture<'_, String> {
        Box::pin(async move {
            let sealed = self.encrypt("key version", &Secret::new("")).await?;
            let version = sealed.strip_prefix("vault:").and_then(|rest| rest.split_once(':'));
            match version {
                Some((version, _)) => Ok(format!("vault:{version}")),
                None => Err(self.peer.invalid_response("the ciphertext has no key version")),
            }
        })
    }
}
