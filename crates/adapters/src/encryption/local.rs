//! Encryption with a key from a file: XChaCha20-Poly1305, bound to the purpose.
//!
//! The format is `v1:KEY:BASE64`, with the id of the key, and a random nonce followed by the
//! ciphertext. The database alone is not enough to decrypt.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use data_encoding::BASE64;
use model::Secret;
use port::{Encryption, Fault, KeyRing, PortFuture};

use self::key::Key;

mod file;
mod key;

/// Fills a buffer with random bytes.
pub type Entropy = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

const NONCE_BYTES: usize = 24;

/// Why a key file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Others than its owner can read it.
    #[error("key file {} is readable by others. Make it private with `chmod 600`", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// Its content is damaged.
    #[error("key file {} is damaged: {why}. Restore it from a backup; without it stored secrets cannot be decrypted", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong, without secrets.
        why: String,
    },
    /// The file cannot be read or written.
    #[error("key file {} cannot be read or written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// Encrypts with the last key of a file, and decrypts with any of them.
pub struct LocalKey {
    path: PathBuf,
    keys: RwLock<Vec<Key>>,
    entropy: Entropy,
}

impl LocalKey {
    /// Reads the key file; none if it is missing.
    pub fn load(path: &Path, entropy: Entropy) -> Result<Option<Self>, Error> {
        Ok(file::read(path)?.map(|keys| Self::new(path, keys, entropy)))
    }

    /// Reads the key file, or creates it if it is missing. Concurrent callers get the same file.
    pub fn load_or_create(path: &Path, entropy: Entropy) -> Result<Self, Error> {
        let keys = match file::read(path)? {
            Some(keys) => keys,
            None => file::create(path, Key::random(&entropy))?,
        };
        Ok(Self::new(path, keys, entropy))
    }

    fn new(path: &Path, keys: Vec<Key>, entropy: Entropy) -> Self {
        Self { path: path.to_owned(), keys: RwLock::new(keys), entropy }
    }

    fn keys(&self) -> Vec<Key> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the keys in the file, then in memory: a ciphertext's key is always in the file.
    fn update<T>(&self, change: impl FnOnce(&mut Vec<Key>) -> T) -> Result<T, Error> {
        let mut known = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        // The file may have keys of another server by now.
        let mut keys = file::read(&self.path)?.unwrap_or_else(|| known.clone());
        let before = keys.clone();
        let outcome = change(&mut keys);
        if keys != before {
            file::replace(&self.path, &keys)?;
        }
        *known = keys;
        Ok(outcome)
    }

    /// Adds a key to the file, which encrypts from now on; older keys still decrypt.
    pub fn add_key(&self) -> Result<String, Error> {
        let key = Key::random(&self.entropy);
        let id = ciphertext_id(&key);
        self.update(|keys| keys.push(key))?;
        Ok(id)
    }

    /// Adds a key to the file that decrypts only.
    fn prepare_key(&self) -> Result<String, Error> {
        let key = Key::random(&self.entropy);
        let id = ciphertext_id(&key);
        self.update(|keys| keys.insert(keys.len() - 1, key))?;
        Ok(id)
    }

    fn current(&self) -> Key {
        self.keys().pop().expect("a key file without keys is broken")
    }

    fn encrypt(&self, purpose: &str, secret: &Secret) -> String {
        let mut bytes = [0; NONCE_BYTES];
        (self.entropy)(&mut bytes);
        let key = self.current();
        let payload = Payload { msg: secret.reveal().as_bytes(), aad: purpose.as_bytes() };
        let ciphertext = XChaCha20Poly1305::new(&key.bytes().into())
            .encrypt(&XNonce::from(bytes), payload)
            .expect("a secret in memory is shorter than the cipher's limit");
        format!("{}:{}", ciphertext_id(&key), BASE64.encode(&[&bytes[..], &ciphertext].concat()))
    }

    fn decrypt(&self, purpose: &str, sealed: &str) -> Result<Secret, Fault> {
        let (id, bytes) = parts(sealed).ok_or_else(|| {
            Fault::Refused("an encrypted secret does not have the form v1:KEY:BASE64".into())
        })?;
        let key = self.find(id)?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or_else(changed)?;
        let payload = Payload { msg: ciphertext, aad: purpose.as_bytes() };
        let plaintext = XChaCha20Poly1305::new(&key.bytes().into())
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| changed())?;
        String::from_utf8(plaintext).map(Secret::new).map_err(|_| changed())
    }

    /// The key with that id; rereads the file once, where an operator may have added it.
    fn find(&self, id: &str) -> Result<Key, Fault> {
        let known = |keys: Vec<Key>| keys.into_iter().find(|key| key.id() == id);
        if let Some(key) = known(self.keys()) {
            return Ok(key);
        }
        self.update(|_| ()).map_err(|error| refused(&error))?;
        known(self.keys()).ok_or_else(|| self.no_key(id))
    }

    fn no_key(&self, id: &str) -> Fault {
        let path = self.path.display();
        let id: String = id.chars().take(16).collect();
        Fault::Refused(format!(
            "a secret is encrypted with the key {id:?}, which is not in {path}. Restore the key \
             file"
        ))
    }
}

/// The id of a key as ciphertexts begin with it.
fn ciphertext_id(key: &Key) -> String {
    format!("v1:{}", key.id())
}

fn parts(sealed: &str) -> Option<(&str, Vec<u8>)> {
    let (id, text) = sealed.strip_prefix("v1:")?.split_once(':')?;
    Some((id, BASE64.decode(text.as_bytes()).ok()?))
}

fn changed() -> Fault {
    Fault::Refused(
        "cannot decrypt a secret: it was changed, or encrypted for another purpose".into(),
    )
}

fn refused(error: &Error) -> Fault {
    Fault::Refused(error.to_string())
}

impl Encryption for LocalKey {
    fn encrypt<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> PortFuture<'a, String> {
        Box::pin(async move { Ok(self.encrypt(purpose, secret)) })
    }

    fn decrypt<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> PortFuture<'a, Secret> {
        Box::pin(async move { self.decrypt(purpose, sealed) })
    }

    fn current_key(&self) -> PortFuture<'_, String> {
        port::ready(Ok(ciphertext_id(&self.current())))
    }

    fn key_ring(&self) -> Option<&dyn KeyRing> {
        Some(self)
    }
}

impl KeyRing for LocalKey {
    fn ids(&self) -> Vec<String> {
        self.keys().iter().map(ciphertext_id).collect()
    }

    fn prepare(&self) -> Result<String, Fault> {
        self.prepare_key().map_err(|error| refused(&error))
    }

    fn add(&self) -> Result<String, Fault> {
        self.add_key().map_err(|error| refused(&error))
    }

    fn activate(&self, id: &str) -> Result<(), Fault> {
        let activate = |keys: &mut Vec<Key>| {
            let at = keys.iter().position(|key| ciphertext_id(key) == id)?;
            let key = keys.remove(at);
            keys.push(key);
            Some(())
        };
        let short = id.strip_prefix("v1:").unwrap_or(id);
        self.update(activate).map_err(|error| refused(&error))?.ok_or_else(|| self.no_key(short))
    }
}
