//! Tokens of a real provider, and forged tokens.

use std::time::Duration;

use adapters::oidc::{Denied, Options, Verifier, Verifiers};
use adapters::sso::Registration;
use adapters::sso::registration::{self, Provider};
use base::{Clock, SystemClock};
use data_encoding::BASE64URL_NOPAD as BASE64;
use model::{Secret, Time};
use port::{Sso, SsoClient};
use ring::hmac;
use serde_json::{Value, json};
use testing::programs::{INITIAL_TOKEN, OidcProvider, claims};

use crate::fake::{http, prepare};
use crate::patience::ANSWER_WITHIN;

fn now() -> Time {
    SystemClock.now()
}

fn options(issuer: &str) -> Options {
    Options { timeout: ANSWER_WITHIN, ..Options::new(issuer) }
}

fn verifier(issuer: &str) -> Verifier {
    prepare();
    Verifier::new(options(issuer)).unwrap()
}

async fn client(provider: &OidcProvider) -> SsoClient {
    prepare();
    let issuer = Provider::Issuer(provider.issuer.clone());
    let options = registration::Options::new(issuer, Secret::new(INITIAL_TOKEN));
    let options = registration::Options { timeout: ANSWER_WITHIN, ..options };
    Registration::new(options).unwrap().create("canary-1").await.unwrap()
}

fn is_invalid(result: &Result<adapters::oidc::Claims, Denied>, text: &str) -> bool {
    matches!(result, Err(Denied::Invalid(why)) if why.contains(text))
}

#[tokio::test]
async fn tokens_of_every_algorithm_are_accepted_for_their_audience_and_lifetime() {
    let provider = OidcProvider::start();
    let client = client(&provider).await;
    let verifier = verifier(&provider.issuer);
    for algorithm in ["RS256", "PS256", "ES256", "EdDSA"] {
        let token = provider.token(&client, algorithm).await.unwrap();
        let claims = verifier.verify(&token, now()).await.unwrap();
        assert_eq!(claims.issuer, provider.issuer);
        assert_eq!(claims.client_id.as_deref(), Some(&*client.id));
        assert_eq!(claims.username.as_deref(), Some("ann"));
        assert_eq!(claims.organization.as_deref(), Some("17"));
        assert_eq!(claims.roles, ["admin"]);

        let audience = Some(format!("urn:api:{algorithm}"));
        let strict = Verifier::new(Options { audience, ..options(&provider.issuer) }).unwrap();
        assert!(strict.verify(&token, now()).await.is_ok());
        let audience = Some("urn:other".to_owned());
        let strict = Verifier::new(Options { audience, ..options(&provider.issuer) }).unwrap();
        assert!(is_invalid(&strict.verify(&token, now()).await, "urn:other"));

        let late = verifier.verify(&token, now() + Duration::from_mins(7)).await;
        assert!(is_invalid(&late, "exp"), "{late:?}");
        let early = verifier.verify(&token, now() - Duration::from_mins(7)).await;
        assert!(is_invalid(&early, "iat"), "{early:?}");
    }
}

#[tokio::test]
async fn forged_tokens_are_denied() {
    let provider = OidcProvider::start();
    let client = client(&provider).await;
    let verifier = verifier(&provider.issuer);
    for algorithm in ["RS256", "ES256"] {
        let token = provider.token(&client, algorithm).await.unwrap();
        assert!(verifier.verify(&token, now()).await.is_ok());
        for forged in forgeries(&token) {
            let denied = verifier.verify(&forged, now()).await;
            assert!(
                matches!(denied, Err(Denied::Invalid(_) | Denied::UnknownIssuer(_))),
                "{forged}"
            );
        }
        for forged in signed_with_public_data(&provider, &token).await {
            assert!(is_invalid(&verifier.verify(&forged, now()).await, "RS256"), "{forged}");
        }
    }
}

/// The token with other claims, other signatures, and none.
fn forgeries(token: &str) -> Vec<String> {
    let parts: Vec<_> = token.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    let other_claims = with(claims, &json!({"realm_access": {"roles": ["root"]}}));
    let key = with(header, &json!({"kid": "other"}));
    let mut bytes = BASE64.decode(signature.as_bytes()).unwrap();
    bytes[9] ^= 1;
    let mut forged = vec![
        format!("{header}.{other_claims}.{signature}"),
        format!("{header}.{claims}.{}", BASE64.encode(&bytes)),
        format!("{header}.{claims}.{}", BASE64.encode(&bytes[1..])),
        format!("{header}.{claims}."),
        format!("{header}.{claims}"),
        format!("{key}.{claims}.{signature}"),
        format!("{token}.{signature}"),
        format!(" {token}"),
        "a".repeat(20_000),
    ];
    for none in ["none", "None", "", "PS256", "EdDSA", "HS256", "RS512"] {
        let header = with(header, &json!({"alg": none}));
        forged.push(format!("{header}.{claims}."));
        forged.push(format!("{header}.{claims}.{signature}"));
    }
    forged
}

/// Tokens with a symmetric signature by public data that could be mistaken for the key.
async fn signed_with_public_data(provider: &OidcProvider, token: &str) -> Vec<String> {
    let jwks: Value =
        http().get(format!("{}/jwks", provider.issuer)).send().await.unwrap().json().await.unwrap();
    let parts: Vec<_> = token.split('.').collect();
    let header = with(parts[0], &json!({"alg": "HS256"}));
    let signed = format!("{header}.{}", parts[1]);
    let rsa = &jwks["keys"][0];
    let modulus = BASE64.decode(rsa["n"].as_str().unwrap().as_bytes()).unwrap();
    let texts = [rsa.to_string().into_bytes(), jwks.to_string().into_bytes(), modulus];
    let sign = |key: Vec<u8>| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        format!("{signed}.{}", BASE64.encode(hmac::sign(&key, signed.as_bytes()).as_ref()))
    };
    texts.map(sign).into()
}

/// A part of a token with other fields.
fn with(part: &str, change: &Value) -> String {
    let mut value: Value =
        serde_json::from_slice(&BASE64.decode(part.as_bytes()).unwrap()).unwrap();
    for (name, changed) in change.as_object().unwrap() {
        value[name] = changed.clone();
    }
    BASE64.encode(value.to_string().as_bytes())
}

#[tokio::test]
async fn rotated_keys_are_fetched_and_old_tokens_denied() {
    let provider = OidcProvider::start();
    let verifier = verifier(&provider.issuer);
    let old = provider.token(&client(&provider).await, "ES256").await.unwrap();
    assert!(verifier.verify(&old, now()).await.is_ok());
    let port = provider.stop();
    assert!(verifier.verify(&old, now()).await.is_ok(), "known keys are enough");

    let provider = OidcProvider::with(&json!({
        "port": port, "generation": 2, "rotates_tokens": true, "claims": claims(),
    }));
    let new = provider.token(&client(&provider).await, "ES256").await.unwrap();
    assert!(verifier.verify(&new, now()).await.is_ok());
    assert!(is_invalid(&verifier.verify(&old, now()).await, "ES256-1"), "withdrawn");
}

#[tokio::test]
async fn issuer_that_is_down_at_the_start_is_used_once_it_is_reachable() {
    let provider = OidcProvider::start();
    let token = provider.token(&client(&provider).await, "ES256").await.unwrap();
    let issuer = provider.issuer.clone();
    let verifier = verifier(&issuer);
    let port = provider.stop();
    let denied = verifier.verify(&token, now()).await.unwrap_err();
    let Denied::Unavailable(why) = &denied else { panic!("{denied:?}") };
    assert!(why.contains(&issuer), "{why}");
    let provider = OidcProvider::with(&json!({
        "port": port, "generation": 2, "rotates_tokens": true, "claims": claims(),
    }));
    let token = provider.token(&client(&provider).await, "ES256").await.unwrap();
    // It is called again a few seconds after the fault, not before.
    while let Err(denied) = verifier.verify(&token, now()).await {
        assert!(matches!(denied, Denied::Unavailable(_)), "{denied:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn token_selects_its_issuer_and_unknown_issuers_are_denied() {
    let (one, two, three) = (OidcProvider::start(), OidcProvider::start(), OidcProvider::start());
    prepare();
    let issuers = [&one, &two].map(|provider| options(&provider.issuer));
    let verifiers = Verifiers::new(issuers).unwrap();
    for provider in [&one, &two] {
        let token = provider.token(&client(provider).await, "ES256").await.unwrap();
        assert_eq!(verifiers.verify(&token, now()).await.unwrap().issuer, provider.issuer);
    }
    let token = three.token(&client(&three).await, "ES256").await.unwrap();
    let forged = with(token.split('.').nth(1).unwrap(), &json!({"iss": one.issuer}));
    let parts: Vec<_> = token.split('.').collect();
    let forged = format!("{}.{forged}.{}", parts[0], parts[2]);
    assert!(
        is_invalid(&verifiers.verify(&forged, now()).await, "signature"),
        "same kid, other key"
    );
    for unknown in [&*token, "", "paddock-token", "a.b.c", "e30.e30.e30"] {
        let denied = verifiers.verify(unknown, now()).await;
        assert!(matches!(denied, Err(Denied::UnknownIssuer(_))), "{unknown}: {denied:?}");
    }
}
