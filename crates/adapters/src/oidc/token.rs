//! A parsed token. Its content must not be trusted before the signature is checked.

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Denied;
use super::key::{Algorithm, KeyRef};

/// The maximum length of a token.
const MAX_BYTES: usize = 16 << 10;

/// Accepted values of `typ`: access tokens. An ID token, for example, is not accepted.
const TYPES: [&str; 4] = ["Bearer", "JWT", "at+jwt", "application/at+jwt"];

/// A token in JWS compact serialization.
pub(super) struct Token<'a> {
    key: Option<String>,
    algorithm: Algorithm,
    claims: Map<String, Value>,
    signed: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl<'a> Token<'a> {
    /// Parses a token.
    pub(super) fn parse(text: &'a str) -> Result<Self, Denied> {
        if text.len() > MAX_BYTES {
            return Err(invalid("the token is longer than 16 KiB"));
        }
        let (signed, signature) = text.rsplit_once('.').ok_or_else(no_token)?;
        let (header, claims) = signed.split_once('.').ok_or_else(no_token)?;
        let header: Header = json(header)?;
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).map_err(|_| no_token())?;
        let claims: Map<String, Value> = json(claims)?;
        let algorithm = header.check(&claims)?;
        Ok(Self { key: header.kid, algorithm, claims, signed, signature })
    }

    /// The issuer that the token claims.
    pub(super) fn issuer(&self) -> Option<&String> {
        match self.claims.get("iss") {
            Some(Value::String(issuer)) => Some(issuer),
            _ => None,
        }
    }

    pub(super) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// The key that signed it.
    pub(super) fn key_ref(&self) -> KeyRef<'_> {
        KeyRef { id: self.key.as_deref(), algorithm: self.algorithm }
    }

    pub(super) fn signed(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    pub(super) fn signature(&self) -> &[u8] {
        &self.signature
    }
}

impl Header {
    fn check(&self, claims: &Map<String, Value>) -> Result<Algorithm, Denied> {
        // Critical extensions must be understood (RFC 7515), and none is.
        if self.crit.is_some() {
            return Err(invalid("the token has unsupported critical extensions (crit)"));
        }
        // Keycloak puts it into the claims, others into the header.
        let types = [self.typ.as_deref(), claims.get("typ").map(|v| v.as_str().unwrap_or(""))];
        for found in types.into_iter().flatten() {
            if !TYPES.iter().any(|known| known.eq_ignore_ascii_case(found)) {
                return Err(invalid("the token is not an access token (typ)"));
            }
        }
        let allowed =
            "the token's algorithm is not supported (alg); use RS256, PS256, ES256 or EdDSA";
        Algorithm::named(&self.alg).ok_or_else(|| invalid(allowed))
    }
}

fn json<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, Denied> {
    let bytes = BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| no_token())?;
    serde_json::from_slice(&bytes).map_err(|_| no_token())
}

/// Not a JWT: another kind of token, or none.
fn no_token() -> Denied {
    Denied::UnknownIssuer("not an OIDC access token (JWT)".into())
}

fn invalid(why: &str) -> Denied {
    Denied::Invalid(why.into())
}
