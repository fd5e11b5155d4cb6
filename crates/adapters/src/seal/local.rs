//! Secrets sealed with a key from a file: XChaCha20-Poly1305, bound to their purpose.
//!
//! Sealed texts are `v1:KEY:BASE64` with the id of the key, a random nonce and the sealed bytes. Who
//! has the database alone can't open them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use data_encoding::BASE64;
use model::Secret;
use port::{Answer, Fault, Seal};

use self::key::Key;

mod file;
mod key;

/// Fills a buffer with bytes that nobody can guess.
pub type Entropy = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

const NONCE_BYTES: usize = 24;

/// Why a key file can't be used, as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It can be read by others than its owner.
    #[error("the key file {} can be read by others: make it private with `chmod 600`", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// It is not what Paddock has written.
    #[error("the key file {} is broken ({why}): put a copy of it back; without it sealed secrets are lost", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong, without anything secret.
        why: String,
    },
    /// It can't be read or written.
    #[error("the key file {} can't be read or written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Seals with the newest key of a file, and opens with any of them.
pub struct LocalKey {
    path: PathBuf,
    keys: Vec<Key>,
    entropy: Entropy,
}

impl LocalKey {
    /// Reads the key file, or makes it if there is none. Whoever else makes it at the same time gets
    /// the same one.
    pub fn load_or_make(path: &Path, entropy: Entropy) -> Result<Self, Error> {
        let keys = match file::read(path)? {
            Some(keys) => keys,
            None => file::make(path, Key::random(&entropy))?,
        };
        Ok(Self { path: path.to_owned(), keys, entropy })
    }

    /// Adds a key to the file, which seals from now on; what was sealed before can still be opened.
    pub fn add_key(&mut self) -> Result<(), Error> {
        let mut keys = file::read(&self.path)?.unwrap_or_default();
        keys.push(Key::random(&self.entropy));
        file::replace(&self.path, &keys)?;
        self.keys = keys;
        Ok(())
    }

    fn encrypt(&self, purpose: &str, secret: &Secret) -> String {
        let mut bytes = [0; NONCE_BYTES];
        (self.entropy)(&mut bytes);
        let key = self.keys.last().expect("a key file without keys is broken");
        let payload = Payload { msg: secret.reveal().as_bytes(), aad: purpose.as_bytes() };
        let sealed = XChaCha20Poly1305::new(&key.bytes().into())
            .encrypt(&XNonce::from(bytes), payload)
            .expect("a secret in memory is shorter than the cipher's limit");
        format!("v1:{}:{}", key.id(), BASE64.encode(&[&bytes[..], &sealed].concat()))
    }

    fn decrypt(&self, purpose: &str, sealed: &str) -> Result<Secret, Fault> {
        let (id, bytes) = parts(sealed).ok_or_else(|| {
            Fault::Refused("a sealed secret is not of the form v1:KEY:BASE64".into())
        })?;
        let key = self.keys.iter().find(|key| key.id() == id).ok_or_else(|| self.no_key(id))?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or_else(changed)?;
        let payload = Payload { msg: sealed, aad: purpose.as_bytes() };
        let opened = XChaCha20Poly1305::new(&key.bytes().into())
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| changed())?;
        String::from_utf8(opened).map(Secret::new).map_err(|_| changed())
    }

    fn no_key(&self, id: &str) -> Fault {
        let path = self.path.display();
        let id: String = id.chars().take(16).collect();
        Fault::Refused(format!("a secret is sealed with the key {id:?}, which is not in {path}"))
    }
}

fn parts(sealed: &str) -> Option<(&str, Vec<u8>)> {
    let (id, text) = sealed.strip_prefix("v1:")?.split_once(':')?;
    Some((id, BASE64.decode(text.as_bytes()).ok()?))
}

fn changed() -> Fault {
    Fault::Refused(
        "a sealed secret can't be opened: it was changed, or sealed for another use".into(),
    )
}

impl Seal for LocalKey {
    fn seal<'a>(&'a self, purpose: &'a str, secret: &'a Secret) -> Answer<'a, String> {
        Box::pin(async move { Ok(self.encrypt(purpose, secret)) })
    }

    fn open<'a>(&'a self, purpose: &'a str, sealed: &'a str) -> Answer<'a, Secret> {
        Box::pin(async move { self.decrypt(purpose, sealed) })
    }
}
