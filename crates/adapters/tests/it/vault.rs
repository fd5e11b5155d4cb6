//! Secrets sealed by Vault, against a server that answers as Vault's transit API is documented.

use std::time::Duration;

use adapters::seal::Vault;
use adapters::seal::vault::Options;
use data_encoding::BASE64;
use model::Secret;
use port::{Fault, Seal};
use serde_json::{Value, json};

use crate::fake::{Asked, Fake, Mood, prepare};

/// The transit engine with one key, which may be derived or not. It "encrypts" by wrapping.
async fn vault(is_derived: bool) -> Fake {
    prepare();
    Fake::start(move |asked| answer(asked, is_derived)).await
}

fn answer(asked: &Asked, is_derived: bool) -> (u16, Value) {
    if asked.header("x-vault-token") != "t0ken" {
        return (403, json!({"errors": ["permission denied"]}));
    }
    assert_eq!(asked.header("x-vault-request"), "true");
    let context = if is_derived { asked.body["context"].as_str().unwrap() } else { "" };
    match (&*asked.method, &*asked.path) {
        ("POST", "/v1/transit/encrypt/paddock") => {
            let wrapped = json!([context, asked.body["plaintext"]]).to_string();
            let text = format!("vault:v1:{}", BASE64.encode(wrapped.as_bytes()));
            (200, json!({"data": {"ciphertext": text, "key_version": 1}}))
        }
        ("POST", "/v1/transit/decrypt/paddock") => {
            let text = asked.body["ciphertext"].as_str().unwrap();
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
    within(fake, Duration::from_secs(30))
}

fn within(fake: &Fake, limit: Duration) -> Vault {
    let options = Options::new(&fake.address, Secret::new("t0ken"), "paddock");
    Vault::new(Options { limit, ..options }).unwrap()
}

#[tokio::test]
async fn what_is_sealed_is_opened_for_its_purpose_alone_whatever_the_key() {
    for is_derived in [true, false] {
        let fake = vault(is_derived).await;
        let (seal, secret) = (at(&fake), Secret::new("pässword"));
        let sealed = seal.seal("instance/1/sso", &secret).await.unwrap();
        assert!(sealed.starts_with("vault:v1:"), "{sealed}");
        assert_eq!(seal.open("instance/1/sso", &sealed).await, Ok(secret));
        let elsewhere = seal.open("instance/2/sso", &sealed).await;
        assert!(matches!(&elsewhere, Err(Fault::Refused(_))), "{is_derived}: {elsewhere:?}");
    }
}

#[tokio::test]
async fn what_vault_did_not_seal_is_refused() {
    let fake = vault(false).await;
    let foreign = BASE64.encode(json!(["", BASE64.encode(b"secret")]).to_string().as_bytes());
    for text in ["", "v1:12345678:AAAA", "vault:v1:AAAA", &format!("vault:v1:{foreign}")] {
        let refused = at(&fake).open("x", text).await;
        assert!(matches!(&refused, Err(Fault::Refused(_))), "{text}: {refused:?}");
    }
}

#[tokio::test]
async fn a_token_without_rights_is_a_sentence_without_the_token() {
    let fake = vault(true).await;
    let options = Options::new(&fake.address, Secret::new("wr0ng"), "paddock");
    let fault = Vault::new(options).unwrap().seal("x", &Secret::new("hidden")).await.unwrap_err();
    let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
    assert!(why.contains("403 (permission denied)") && !why.contains("wr0ng"), "{why}");
}

#[tokio::test]
async fn what_is_down_sealed_slow_or_confused_is_unavailable_and_then_works() {
    let fake = vault(true).await;
    let sealed = at(&fake).seal("x", &Secret::new("s3cret")).await.unwrap();
    for (mood, sentence) in [
        (Mood::Slow, "did not answer within"),
        (Mood::Garbage, "make no sense"),
        (Mood::Endless, "no end"),
        (Mood::Status(503), "503 (it hurts)"),
        (Mood::Status(500), "500"),
        (Mood::Status(429), "429"),
        (Mood::Status(307), "307"),
    ] {
        fake.be(mood);
        let seal =
            within(&fake, Duration::from_millis(if mood == Mood::Slow { 300 } else { 30_000 }));
        for fault in [
            seal.seal("x", &Secret::new("s3cret")).await.unwrap_err(),
            seal.open("x", &sealed).await.unwrap_err(),
        ] {
            let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
            assert!(why.contains(sentence) && !why.contains("s3cret"), "{why}");
        }
        fake.be(Mood::Fine);
        assert_eq!(at(&fake).open("x", &sealed).await, Ok(Secret::new("s3cret")));
    }
    let seal = at(&fake);
    drop(fake);
    let fault = seal.open("x", &sealed).await.unwrap_err();
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_sealed_is_never_taken_for_it() {
    prepare();
    let plain = |asked: &Asked| (200, json!({"data": {"ciphertext": asked.body["plaintext"]}}));
    let fake = Fake::start(plain).await;
    let fault = at(&fake).seal("x", &Secret::new("s3cret")).await.unwrap_err();
    assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
}

#[test]
fn an_address_that_is_none_is_a_sentence() {
    prepare();
    for address in ["", "vault", "ftp://vault", "https://", "https://user:pass@vault"] {
        let refused = Vault::new(Options::new(address, Secret::new("t"), "k")).err().unwrap();
        assert!(
            refused.to_string().contains("is no address") && !refused.to_string().contains("pass@"),
            "{refused}"
        );
    }
}
