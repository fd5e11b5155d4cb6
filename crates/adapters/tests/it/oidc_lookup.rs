//! How often an issuer's keys are fetched, and invalid responses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::oidc::{Claims, Denied, Options, Verifier};
use data_encoding::BASE64URL_NOPAD as BASE64;
use model::Time;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::time::{advance, pause, resume};

use crate::fake::{Behavior, Fake, Received, prepare};

const NOW: Time = Time(1_900_000_000_000_000);

/// An issuer with one key, which can be replaced.
struct Issuer {
    fake: Fake,
    key: Arc<Mutex<u8>>,
}

impl Issuer {
    async fn start() -> Self {
        prepare();
        let (key, address) = (Arc::new(Mutex::new(1)), Arc::new(Mutex::new(String::new())));
        let (shared, own) = (key.clone(), address.clone());
        let answer = move |request: &Received| {
            let issuer = own.lock().unwrap().clone();
            match &*request.path {
                "/.well-known/openid-configuration" => {
                    (200, json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}))
                }
                "/keys" => (200, published(*shared.lock().unwrap())),
                _ => (404, Value::Null),
            }
        };
        let fake = Fake::start(answer).await;
        address.lock().unwrap().clone_from(&fake.address);
        Self { fake, key }
    }

    fn verifier(&self, limit: Duration) -> Verifier {
        Verifier::new(Options { timeout: limit, ..Options::new(&self.fake.address) }).unwrap()
    }

    /// A token signed with that key.
    fn token(&self, key: u8) -> String {
        self.with(&json!({"alg": "EdDSA", "kid": format!("key-{key}")}), key)
    }

    fn with(&self, header: &Value, key: u8) -> String {
        let claims = json!({"iss": self.fake.address, "sub": "one", "iat": 1_900_000_000, "exp": 1_900_000_300});
        let signed =
            [header, &claims].map(|part| BASE64.encode(part.to_string().as_bytes())).join(".");
        let signature = pair(key).sign(signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature.as_ref()))
    }

    /// How often the keys were fetched.
    fn fetches(&self) -> usize {
        self.fake
            .received()
            .iter()
            .filter(|request| request.ends_with("/openid-configuration"))
            .count()
    }
}

fn pair(key: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[key; 32]).unwrap()
}

fn published(key: u8) -> Value {
    let x = BASE64.encode(pair(key).public_key().as_ref());
    json!({"keys": [
        {"kty": "oct", "kid": "secret", "k": "AAAA"},
        {"kty": "OKP", "crv": "Ed25519", "kid": "for-encryption", "use": "enc", "x": x},
        {"kty": "OKP", "crv": "Ed25519", "kid": "for-another", "alg": "ES256", "x": x},
        {"kty": "EC", "kid": "odd", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kid": "nothing"},
        {"kty": "OKP", "crv": "Ed25519", "kid": format!("key-{key}"), "x": x},
    ]})
}

/// Advances the time without waiting.
async fn pass(time: Duration) {
    pause();
    advance(time).await;
    resume();
}

fn is_invalid(result: &Result<Claims, Denied>) -> bool {
    matches!(result, Err(Denied::Invalid(_)))
}

#[tokio::test]
async fn unknown_keys_cause_one_fetch_per_minute() {
    let issuer = Issuer::start().await;
    let verifier = issuer.verifier(Duration::from_secs(30));
    assert!(verifier.verify(&issuer.token(1), NOW).await.is_ok());
    assert_eq!(issuer.fetches(), 1);
    for key in 2..50 {
        assert!(is_invalid(&verifier.verify(&issuer.token(key), NOW).await));
    }
    assert_eq!(issuer.fetches(), 2, "once for all of them");
    *issuer.key.lock().unwrap() = 9;
    assert!(is_invalid(&verifier.verify(&issuer.token(9), NOW).await), "in the same minute");
    pass(Duration::from_secs(61)).await;
    assert!(verifier.verify(&issuer.token(9), NOW).await.is_ok());
    assert_eq!(issuer.fetches(), 3);
}

#[tokio::test]
async fn keys_are_refreshed_hourly_and_old_ones_used_while_the_issuer_is_down() {
    let issuer = Issuer::start().await;
    let verifier = issuer.verifier(Duration::from_secs(30));
    assert!(verifier.verify(&issuer.token(1), NOW).await.is_ok());
    pass(Duration::from_mins(59)).await;
    assert!(verifier.verify(&issuer.token(1), NOW).await.is_ok());
    assert_eq!(issuer.fetches(), 1);

    issuer.fake.set(Behavior::Status(500));
    pass(Duration::from_mins(2)).await;
    for _ in 0..9 {
        assert!(verifier.verify(&issuer.token(1), NOW).await.is_ok(), "the old keys are used");
        let unknown = verifier.verify(&issuer.token(2), NOW).await;
        assert!(matches!(unknown, Err(Denied::Unavailable(_))), "{unknown:?}");
    }
    assert_eq!(issuer.fetches(), 2, "once in this minute");

    issuer.fake.set(Behavior::Normal);
    *issuer.key.lock().unwrap() = 2;
    pass(Duration::from_secs(61)).await;
    assert!(is_invalid(&verifier.verify(&issuer.token(1), NOW).await), "it was withdrawn");
    assert!(verifier.verify(&issuer.token(2), NOW).await.is_ok());
    assert_eq!(issuer.fetches(), 3);
}

#[tokio::test]
async fn concurrent_verifications_fetch_once() {
    let issuer = Issuer::start().await;
    let verifier = Arc::new(issuer.verifier(Duration::from_secs(30)));
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let (verifier, token) = (verifier.clone(), issuer.token(1 + n % 2));
            base::task::spawn("verify", async move { verifier.verify(&token, NOW).await.is_ok() })
        })
        .collect();
    let mut good = 0;
    for task in tasks {
        good += usize::from(task.await.unwrap());
    }
    assert_eq!(good, 25);
    assert_eq!(issuer.fetches(), 2, "for the keys, and for the unknown one");
}

#[tokio::test]
async fn failing_issuer_is_unavailable_and_called_rarely() {
    let issuer = Issuer::start().await;
    for (behavior, message) in [
        (Behavior::Slow, "did not answer within"),
        (Behavior::Garbage, "invalid response"),
        (Behavior::Endless, "larger than 1 MiB"),
        (Behavior::Status(404), "404"),
        (Behavior::Status(503), "503"),
    ] {
        issuer.fake.set(behavior);
        let before = issuer.fetches();
        let verifier = issuer.verifier(Duration::from_millis(if behavior == Behavior::Slow {
            300
        } else {
            30_000
        }));
        for _ in 0..9 {
            let denied = verifier.verify(&issuer.token(1), NOW).await.unwrap_err();
            let Denied::Unavailable(why) = &denied else { panic!("{denied:?}") };
            assert!(why.contains(message), "{why}");
        }
        assert_eq!(issuer.fetches(), before + 1);
        if behavior != Behavior::Slow {
            issuer.fake.set(Behavior::Normal);
            pass(Duration::from_secs(6)).await;
            assert!(verifier.verify(&issuer.token(1), NOW).await.is_ok(), "it recovers");
        }
    }
}

#[tokio::test]
async fn header_fields_are_validated() {
    let issuer = Issuer::start().await;
    let verifier = issuer.verifier(Duration::from_secs(30));
    for (header, is_good) in [
        (json!({"alg": "EdDSA", "kid": "key-1", "typ": "JWT"}), true),
        (json!({"alg": "EdDSA", "kid": "key-1", "typ": "at+jwt"}), true),
        (json!({"alg": "EdDSA", "kid": "key-1", "typ": "bearer"}), true),
        (json!({"alg": "EdDSA", "typ": "JWT"}), true), // the only key that it could be
        (json!({"alg": "EdDSA", "kid": "key-1", "typ": "ID"}), false),
        (json!({"alg": "EdDSA", "kid": "key-1", "typ": "logout+jwt"}), false),
        (json!({"alg": "EdDSA", "kid": "key-1", "crit": ["exp"]}), false),
        (json!({"alg": "RS256", "kid": "key-1"}), false),
        (json!({"alg": "HS256", "kid": "secret"}), false),
        (json!({"alg": "EdDSA", "kid": "secret"}), false),
        (json!({"alg": "EdDSA", "kid": "for-encryption"}), false),
        (json!({"alg": "EdDSA", "kid": "for-another"}), false),
        (json!({"alg": "none"}), false),
    ] {
        let result = verifier.verify(&issuer.with(&header, 1), NOW).await;
        assert_eq!(result.is_ok(), is_good, "{header}: {result:?}");
        assert!(is_good || is_invalid(&result), "{header}: {result:?}");
    }
}

#[tokio::test]
async fn discovery_document_of_another_issuer_is_rejected() {
    prepare();
    let answer =
        |_: &Received| (200, json!({"issuer": "https://evil", "jwks_uri": "https://evil/k"}));
    let fake = Fake::start(answer).await;
    let issuer = Issuer { fake, key: Arc::default() };
    let denied = issuer.verifier(Duration::from_secs(30)).verify(&issuer.token(1), NOW).await;
    assert!(matches!(&denied, Err(Denied::Unavailable(why)) if why.contains("evil")), "{denied:?}");
}
