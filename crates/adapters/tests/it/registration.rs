//! Dynamic client registration at a real provider.

use adapters::sso::Registration;
use adapters::sso::registration::{Options, Provider};
use model::Secret;
use port::{Fault, Sso, SsoClient};
use serde_json::json;
use testing::programs::{INITIAL_TOKEN, OidcProvider, claims};

use crate::fake::prepare;
use crate::patience::ANSWER_WITHIN;

fn at(issuer: &str, token: &str) -> Registration {
    prepare();
    let provider = Provider::Issuer(issuer.into());
    let options = Options::new(provider, Secret::new(token));
    Registration::new(Options { timeout: ANSWER_WITHIN, ..options }).unwrap()
}

#[tokio::test]
async fn client_is_created_rotated_and_deleted() {
    for rotates_tokens in [true, false] {
        let provider = OidcProvider::with(&json!({
            "port": 0, "generation": 1, "rotates_tokens": rotates_tokens, "claims": claims(),
        }));
        let sso = at(&provider.issuer, INITIAL_TOKEN);
        let made = sso.create("canary-1").await.unwrap();
        assert!(provider.token(&made, "RS256").await.is_ok());
        assert_eq!(sso.find(&made).await, Ok(Some(made.clone())));

        let rotated = sso.rotate(&made).await.unwrap();
        assert_ne!(rotated.secret, made.secret);
        assert_eq!(provider.token(&made, "RS256").await, Err(401), "the old secret");
        assert!(provider.token(&rotated, "RS256").await.is_ok(), "the new secret");
        assert_eq!(provider.clients().await, [&*rotated.id], "exactly one remains");

        sso.delete(&rotated).await.unwrap();
        assert_eq!(provider.token(&rotated, "RS256").await, Err(401));
        assert_eq!(sso.find(&rotated).await, Ok(None));
        sso.delete(&rotated).await.expect("deleting a missing client succeeds");
        assert!(provider.clients().await.is_empty());
    }
}

#[tokio::test]
async fn externally_deleted_client_is_not_found_and_recreated_by_rotation() {
    let provider = OidcProvider::start();
    let sso = at(&provider.issuer, INITIAL_TOKEN);
    let made = sso.create("canary-1").await.unwrap();
    at(&provider.issuer, "none").delete(&made).await.unwrap();
    assert_eq!(sso.find(&made).await, Ok(None));
    let again = sso.rotate(&made).await.unwrap();
    assert!(provider.token(&again, "RS256").await.is_ok());
    assert_eq!(provider.clients().await, [again.id]);
}

#[tokio::test]
async fn wrong_initial_token_is_reported_without_the_token() {
    let provider = OidcProvider::start();
    let denied = at(&provider.issuer, "wr0ng-token").create("canary-1").await.unwrap_err();
    let Fault::Unavailable(why) = &denied else { panic!("{denied:?}") };
    assert!(why.contains("Check the credentials") && why.contains("401"), "{why}");
    assert!(!why.contains("wr0ng"), "{why}");
}

#[tokio::test]
async fn restarted_provider_is_used_again() {
    let provider = OidcProvider::start();
    let sso = at(&provider.issuer, INITIAL_TOKEN);
    let made = sso.create("canary-1").await.unwrap();
    let port = provider.stop();
    for fault in [
        sso.create("canary-2").await.unwrap_err(),
        sso.find(&made).await.unwrap_err(),
        sso.rotate(&made).await.unwrap_err(),
        sso.delete(&made).await.unwrap_err(),
    ] {
        let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
        assert!(why.contains("is unreachable") && why.contains("127.0.0.1"), "{why}");
    }
    let provider = OidcProvider::with(&json!({
        "port": port, "generation": 2, "rotates_tokens": true, "claims": {},
    }));
    assert_eq!(sso.find(&made).await, Ok(None), "it keeps its clients in memory");
    let again: SsoClient = sso.create("canary-1").await.unwrap();
    assert!(provider.token(&again, "RS256").await.is_ok());
}

#[tokio::test]
async fn provider_that_is_down_at_the_start_is_used_once_it_is_reachable() {
    let port = OidcProvider::start().stop();
    let sso = at(&format!("http://127.0.0.1:{port}"), INITIAL_TOKEN);
    assert!(matches!(sso.create("canary-1").await, Err(Fault::Unavailable(_))));
    let provider = OidcProvider::with(&json!({
        "port": port, "generation": 1, "rotates_tokens": true, "claims": {},
    }));
    let made = sso.create("canary-1").await.unwrap();
    assert!(provider.token(&made, "RS256").await.is_ok());
}
