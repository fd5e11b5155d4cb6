//! Access tokens (JWT) and published keys (JWKS). A token that the issuer did not sign is never
//! accepted.
//!
//! The first byte selects the form of the rest: a token; the header, claims and signature of one, each
//! in a line, which the target encodes; or the keys of an issuer.
#![no_main]

use std::sync::LazyLock;

use adapters::oidc::{Options, verify_with_keys};
use data_encoding::BASE64URL_NOPAD;
use libfuzzer_sys::fuzz_target;
use model::Time;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

const NOW: Time = Time(1_900_000_000_000_000);
const HEADER: &str = r#"{"alg":"EdDSA","kid":"ed","typ":"JWT"}"#;
const CLAIMS: &str =
    r#"{"iss":"https://sso","sub":"ann","aud":"api","iat":1899999999,"exp":1900000300}"#;

/// The keys of the issuer, and the only token that it signed.
static ISSUER: LazyLock<(Vec<Value>, String)> = LazyLock::new(|| {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("any seed is a key");
    let encode = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
    let signed = format!("{}.{}", encode(HEADER.as_bytes()), encode(CLAIMS.as_bytes()));
    let token = format!("{signed}.{}", encode(pair.sign(signed.as_bytes()).as_ref()));
    let public = encode(pair.public_key().as_ref());
    // The other keys have signed nothing.
    let keys = json!([
        {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": public},
        {"kty": "RSA", "kid": "rsa", "n": encode(&[0xff; 256]), "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "kid": "ec",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},
    ]);
    (keys.as_array().cloned().unwrap_or_default(), token)
});

fuzz_target!(|data: &[u8]| {
    let Some((form, rest)) = data.split_first() else { return };
    let (keys, signed) = &*ISSUER;
    let rest = String::from_utf8_lossy(rest);
    match form % 3 {
        0 => verify(keys.clone(), &rest),
        1 => {
            let parts: Vec<_> = rest.splitn(3, '\n').collect();
            let parts: Vec<_> =
                parts.iter().map(|part| BASE64URL_NOPAD.encode(part.as_bytes())).collect();
            verify(keys.clone(), &parts.join("."));
        }
        _ => {
            let keys: Vec<Value> = serde_json::from_str(&rest).unwrap_or_default();
            verify(keys, signed);
        }
    }
});

fn verify(keys: Vec<Value>, token: &str) {
    let options = Options { audience: Some("api".into()), ..Options::new("https://sso") };
    let is_accepted = verify_with_keys(&options, keys, token, NOW).is_ok();
    assert!(!is_accepted || token == ISSUER.1, "accepted: {token}");
}
