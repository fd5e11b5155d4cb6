//! A token taken apart. Nothing of it is true before its signature was checked.

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Denied;
use super::key::{Algorithm, Wanted};

/// The longest token that is looked at.
const MAX_BYTES: usize = 16 << 10;

/// What may be in `typ`: tokens that give access. An ID token, for one, does not.
const TYPES: [&str; 4] = ["Bearer", "JWT", "at+jwt", "application/at+jwt"];

/// A token of three parts.
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
    /// Takes a text apart.
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

    /// Who says that they issued it.
    pub(super) fn issuer(&self) -> Option<&String> {
        match self.claims.get("iss") {
            Some(Value::String(issuer)) => Some(issuer),
            _ => None,
        }
    }

    pub(super) fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// The key that it should be signed with.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted { id: self.key.as_deref(), algorithm: self.algorithm }
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
        // What it says must be understood (RFC 7515), we understand none of.
        if self.crit.is_some() {
            return Err(invalid("the token has extensions that are not understood here (crit)"));
        }
        // Keycloak says it among the claims, others in the header.
        let types = [self.typ.as_deref(), claims.get("typ").map(|v| v.as_str().unwrap_or(""))];
        for found in types.into_iter().flatten() {
            if !TYPES.iter().any(|known| known.eq_ignore_ascii_case(found)) {
                return Err(invalid("the token is not one that gives access (typ)"));
            }
        }
        let allowed = "tokens are accepted if signed with RS256, PS256, ES256 or EdDSA";
        Algorithm::named(&self.alg).ok_or_else(|| invalid(allowed))
    }
}

fn json<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, Denied> {
    let bytes = BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| no_token())?;
    serde_json::from_slice(&bytes).map_err(|_| no_token())
}

/// Not even the form is right: it is another sort of token, or none.
fn no_token() -> Denied {
    Denied::Foreign("this is no token of an OpenID provider (JWT)".into())
}

fn invalid(why: &str) -> Denied {
    Denied::Invalid(why.into())
}
