//! Encryption by Vault, against a fake of its documented transit API.

use std::time::Duration;

use adapters::encryption::Vault;
use adapters::encryption::vault::Options;
use data_encoding::BASE64;
use model::Secret;
use port::{Encryption, Fault};
use serde_json::{Value, json};

use crate::fake::{Behavior, Fake, Received, prepare};

/// The transit engine with one key, which may be derived or not. It "encrypts" by wrapping.
async fn vault(is_derived: bool) -> Fake {
    prepare();
    Fake::start(move |request| answer(request, is_derived)).await
}

fn answer(request: &Received, is_derived: bool) -> (u16, Value) {
    if request.header("x-vault-token") != "t0ken" {
        return (403, json!({"errors": ["permission denied"]}));
    }
    assert_eq!(request.header("x-vault-request"), "true");
    let context = if is_derived { request.body["context"].as_str().unwrap() } else { "" };
    match (&*request.method, &*request.path) {
        ("POST", "/v1/transit/encrypt/paddock") => {
            let wrapped = json!([context, request.body["plaintext"]]).to_string();
            let text = format!("vault:v1:{}", BASE64.encode(wrapped.as_bytes()));
            (200, json!({"data": {"ciphertext": text, "key_version": 1}}))
        }
        ("POST", "/v1/transit/decrypt/paddock") => {
            let text = request.body["ciphertext"].as_str().unwrap();
            let wrapped =
                text.strip_prefix("vault:v1:").and_then(|t| BASE64.decode(t.as_bytes()).ok());
            let wrapped: Option<(String, String)> =
                wrapped.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            match wrapped {
                Some((by, plaintext)) if by == context => {
                    (200, json!({"data": {"plaintext": plaintext}}))
                }
                _ => (400, json!({"errors": ["cipher: message authentication failed"]})),
            }
        }
        _ => (404, json!({"errors": ["no handler for route"]})),
    }
}

fn at(fake: &Fake) -> Vault {
    with_timeout(fake, Duration::from_secs(30))
}

fn with_timeout(fake: &Fake, limit: Duration) -> Vault {
    let options = Options::new(&fake.address, Secret::new("t0ken"), "paddock");
    Vault::new(Options { timeout: limit, ..options }).unwrap()
}

#[tokio::test]
async fn secret_is_decrypted_for_its_purpose_alone_with_any_key() {
    for is_derived in [true, false] {
        let fake = vault(is_derived).await;
        let (seal, secret) = (at(&fake), Secret::new("pässword"));
        let sealed = seal.encrypt("instance/1/sso", &secret).await.unwrap();
        assert!(sealed.starts_with("vault:v1:"), "{sealed}");
        assert_eq!(seal.decrypt("instance/1/sso", &sealed).await, Ok(secret));
        let elsewhere = seal.decrypt("instance/2/sso", &sealed).await;
        assert!(matches!(&elsewhere, Err(Fault::Refused(_))), "{is_derived}: {elsewhere:?}");
    }
}

#[tokio::test]
async fn ciphertext_of_others_is_refused() {
    let fake = vault(false).await;
    let theirs = BASE64.encode(json!(["", BASE64.encode(b"secret")]).to_string().as_bytes());
    for text in ["", "v1:12345678:AAAA", "vault:v1:AAAA", &format!("vault:v1:{theirs}")] {
        let refused = at(&fake).decrypt("x", text).await;
        assert!(matches!(&refused, Err(Fault::Refused(_))), "{text}: {refused:?}");
    }
}

#[tokio::test]
async fn missing_permission_is_reported_without_the_token() {
    let fake = vault(true).await;
    let options = Options::new(&fake.address, Secret::new("wr0ng"), "paddock");
    let fault =
        Vault::new(options).unwrap().encrypt("x", &Secret::new("hidden")).await.unwrap_err();
    let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
    assert!(why.contains("403 (permission denied)") && !why.contains("wr0ng"), "{why}");
}

#[tokio::test]
async fn failing_vault_is_unavailable_and_recovers() {
    let fake = vault(true).await;
    let sealed = at(&fake).encrypt("x", &Secret::new("s3cret")).await.unwrap();
    for (behavior, message) in [
        (Behavior::Slow, "did not answer within"),
        (Behavior::Garbage, "invalid response"),
        (Behavior::Endless, "larger than 1 MiB"),
        (Behavior::Status(503), "503 (it hurts)"),
        (Behavior::Status(500), "500"),
        (Behavior::Status(429), "429"),
        (Behavior::Status(307), "307"),
    ] {
        fake.set(behavior);
        let limit = Duration::from_millis(if behavior == Behavior::Slow { 300 } else { 30_000 });
        let seal = with_timeout(&fake, limit);
        for fault in [
            seal.encrypt("x", &Secret::new("s3cret")).await.unwrap_err(),
            seal.decrypt("x", &sealed).await.unwrap_err(),
        ] {
            let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
            assert!(why.contains(message) && !why.contains("s3cret"), "{why}");
        }
        fake.set(Behavior::Normal);
        assert_eq!(at(&fake).decrypt("x", &sealed).await, Ok(Secret::new("s3cret")));
    }
    let seal = at(&fake);
    drop(fake);
    let fault = seal.decrypt("x", &sealed).await.unwrap_err();
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
}

#[tokio::test]
async fn plaintext_response_is_rejected() {
    prepare();
    let plain =
        |request: &Received| (200, json!({"data": {"ciphertext": request.body["plaintext"]}}));
    let fake = Fake::start(plain).await;
    let fault = at(&fake).encrypt("x", &Secret::new("s3cret")).await.unwrap_err();
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
}

#[test]
fn invalid_address_is_rejected() {
    prepare();
    for address in ["", "vault", "ftp://vault", "https://", "https://user:pass@vault"] {
        let refused = Vault::new(Options::new(address, Secret::new("t"), "k")).err().unwrap();
        assert!(
            refused.to_string().contains("invalid address")
                && !refused.to_string().contains("pass@"),
            "{refused}"
        );
    }
}
