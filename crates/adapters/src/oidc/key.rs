//! The keys that an issuer publishes (JWKS), and signature verification.
//!
//! The key determines the permitted algorithms. Symmetric algorithms are not supported, so a public
//! key can't be used as an HMAC secret.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// The maximum number of keys per issuer.
const MAX_KEYS: usize = 100;

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    EdDsa,
}

/// The reference of a token to the key that signed it.
pub(super) struct KeyRef<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) algorithm: Algorithm,
}

/// The keys of an issuer.
pub(super) struct Keys(Vec<Key>);

/// One key.
pub(super) struct Key {
    id: Option<String>,
    only: Option<Algorithm>,
    public: Public,
}

enum Public {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A published key (JWK).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Algorithm {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

impl KeyRef<'_> {
    /// The message for a missing key.
    pub(super) fn unknown(&self) -> String {
        match self.id {
            Some(id) => {
                let id: String = id.chars().take(100).collect();
                format!("the token's key {id:?} is not published by its issuer (kid)")
            }
            None => "the token does not name its key (kid)".into(),
        }
    }
}

impl Keys {
    /// The usable keys of a published list; others serve another purpose.
    pub(super) fn read(published: Vec<Value>) -> Self {
        let jwks = published.into_iter().filter_map(|value| serde_json::from_value(value).ok());
        Self(jwks.filter_map(Key::read).take(MAX_KEYS).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of that id. Without an id, exactly one key must match the algorithm.
    pub(super) fn find(&self, key_ref: &KeyRef) -> Option<&Key> {
        let mut matching = self.0.iter().filter(|key| key.is_for(key_ref.algorithm));
        if key_ref.id.is_some() {
            return matching.find(|key| key.id.as_deref() == key_ref.id);
        }
        matching.next().filter(|_| matching.next().is_none())
    }
}

impl Key {
    fn read(jwk: Jwk) -> Option<Self> {
        if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let only = match &jwk.alg {
            Some(name) => Some(Algorithm::named(name)?),
            None => None,
        };
        Some(Self { only, public: Public::read(&jwk)?, id: jwk.kid })
    }

    fn is_for(&self, algorithm: Algorithm) -> bool {
        let fits = match self.public {
            Public::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            Public::P256(_) => algorithm == Algorithm::Es256,
            Public::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        fits && self.only.is_none_or(|only| only == algorithm)
    }

    /// Whether this key signed the message.
    pub(super) fn verifies(&self, by: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.is_for(by) {
            return false;
        }
        let verified = match &self.public {
            Public::Rsa { n, e } => {
                let padding = if by == Algorithm::Ps256 {
                    &RSA_PSS_2048_8192_SHA256
                } else {
                    &RSA_PKCS1_2048_8192_SHA256
                };
                RsaPublicKeyComponents { n, e }.verify(padding, message, signature)
            }
            Public::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Public::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

impl Public {
    fn read(jwk: &Jwk) -> Option<Self> {
        match (&*jwk.kty, jwk.crv.as_deref()) {
            ("RSA", _) => Some(Self::Rsa { n: bytes(jwk.n.as_ref())?, e: bytes(jwk.e.as_ref())? }),
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(jwk.x.as_ref())?, bytes(jwk.y.as_ref())?);
                // 4: both coordinates follow (SEC 1).
                (x.len() == 32 && y.len() == 32).then(|| Self::P256([vec![4], x, y].concat()))
            }
            ("OKP", Some("Ed25519")) => Some(Self::Ed25519(bytes(jwk.x.as_ref())?)),
            _ => None,
        }
    }
}

fn bytes(text: Option<&String>) -> Option<Vec<u8>> {
    BASE64URL_NOPAD.decode(text?.as_bytes()).ok()
}
