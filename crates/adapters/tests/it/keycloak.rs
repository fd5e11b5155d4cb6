//! SSO clients in Keycloak, against a fake of its documented admin API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::sso::Keycloak;
use adapters::sso::keycloak::Options;
use model::Secret;
use port::{Fault, Sso, SsoClient};
use serde_json::{Value, json};

use crate::fake::{Behavior, Fake, Received, prepare};

/// A realm: clients by their internal ids.
#[derive(Default)]
struct Realm {
    clients: BTreeMap<String, (Value, usize)>,
    tokens: usize,
    /// Tokens up to this one have expired.
    expired: usize,
    life_seconds: u64,
    forbids: bool,
}

type Shared = Arc<Mutex<Realm>>;

async fn keycloak() -> (Fake, Shared) {
    prepare();
    let realm: Shared = Arc::new(Mutex::new(Realm { life_seconds: 60, ..Realm::default() }));
    let shared = realm.clone();
    let fake = Fake::start(move |request| shared.lock().unwrap().answer(request)).await;
    (fake, realm)
}

fn options(fake: &Fake) -> Options {
    Options::new(&fake.address, "fleet", "paddock", Secret::new("s3cret"))
}

fn at(fake: &Fake) -> Keycloak {
    Keycloak::new(Options { timeout: Duration::from_secs(30), ..options(fake) }).unwrap()
}

impl Realm {
    fn answer(&mut self, request: &Received) -> (u16, Value) {
        let (method, path) = request.route();
        match (method, path.as_slice()) {
            ("POST", ["realms", "fleet", "protocol", "openid-connect", "token"]) => {
                self.grant(request)
            }
            (_, ["admin", "realms", "fleet", "clients", below @ ..]) => {
                let token = request.header("authorization").trim_start_matches("Bearer token-");
                if token.parse::<usize>().unwrap() <= self.expired {
                    return (401, json!({"error": "HTTP 401 Unauthorized"}));
                }
                if self.forbids {
                    return (403, json!({"error": "HTTP 403 Forbidden"}));
                }
                self.manage(method, below, request)
            }
            _ => (404, json!({"error": "Realm does not exist"})),
        }
    }

    fn grant(&mut self, request: &Received) -> (u16, Value) {
        assert_eq!(request.body["grant_type"], "client_credentials");
        if request.body["client_id"] != "paddock" || request.body["client_secret"] != "s3cret" {
            let message = "Invalid client or Invalid client credentials s3cret-not";
            return (401, json!({"error": "unauthorized_client", "error_description": message}));
        }
        self.tokens += 1;
        let token = format!("token-{}", self.tokens);
        (200, json!({"access_token": token, "expires_in": self.life_seconds}))
    }

    fn manage(&mut self, method: &str, below: &[&str], request: &Received) -> (u16, Value) {
        let known = below.first().is_none_or(|id| self.clients.contains_key(*id));
        match (method, below) {
            _ if !known => (404, json!({"error": "Could not find client"})),
            ("POST", []) => self.create(&request.body),
            ("GET", []) => {
                let is_match = |c: &&Value| c["clientId"] == *request.query["clientId"];
                (
                    200,
                    self.clients
                        .values()
                        .map(|(client, _)| client)
                        .filter(is_match)
                        .cloned()
                        .collect(),
                )
            }
            ("DELETE", [id]) => {
                self.clients.remove(*id);
                (204, Value::Null)
            }
            (_, [id, "client-secret"]) => {
                let (_, secret) = self.clients.get_mut(*id).unwrap();
                *secret += usize::from(method == "POST");
                (200, json!({"type": "secret", "value": format!("secret-{secret}")}))
            }
            _ => (405, Value::Null),
        }
    }

    fn create(&mut self, body: &Value) -> (u16, Value) {
        let name = body["clientId"].as_str().unwrap();
        if self.clients.values().any(|(client, _)| client["clientId"] == name) {
            let message = format!("Client {name} already exists");
            return (409, json!({"errorMessage": message}));
        }
        let id = format!("uuid-{}", self.clients.len() + 1);
        let mut client = body.clone();
        client["id"] = json!(id);
        self.clients.insert(id, (client, 1));
        (201, Value::Null)
    }
}

fn secret(client: &SsoClient) -> (&str, &str) {
    (&client.id, client.secret.reveal())
}

#[tokio::test]
async fn client_is_created_rotated_and_deleted() {
    let (fake, realm) = keycloak().await;
    let sso = at(&fake);
    let made = sso.create("canary-1").await.unwrap();
    assert_eq!(secret(&made), ("canary-1", "secret-1"));
    let client = realm.lock().unwrap().clients["uuid-1"].0.clone();
    assert_eq!(client["serviceAccountsEnabled"], true);
    assert_eq!(client["publicClient"], false);
    for flow in ["standardFlowEnabled", "implicitFlowEnabled", "directAccessGrantsEnabled"] {
        assert_eq!(client[flow], false, "{flow}");
    }
    assert_eq!(sso.create("canary-1").await.unwrap(), made, "409: the same is found");
    assert_eq!(sso.find(&made).await, Ok(Some(made.clone())));
    let rotated = sso.rotate(&made).await.unwrap();
    assert_eq!(secret(&rotated), ("canary-1", "secret-2"));
    assert_eq!(realm.lock().unwrap().clients.len(), 1);
    sso.delete(&rotated).await.unwrap();
    sso.delete(&rotated).await.expect("deleting a missing client succeeds");
    assert_eq!(sso.find(&rotated).await, Ok(None));
    assert_eq!(sso.rotate(&rotated).await.unwrap().id, "canary-1", "it is recreated");
    assert_eq!(realm.lock().unwrap().tokens, 1, "one access token was enough");
}

#[tokio::test]
async fn client_of_others_is_neither_read_nor_deleted() {
    let (fake, realm) = keycloak().await;
    let theirs = json!({"id": "x", "clientId": "account-console", "attributes": {"a": "b"}});
    realm.lock().unwrap().clients.insert("x".into(), (theirs, 1));
    let sso = at(&fake);
    let refused = sso.create("account-console").await.unwrap_err();
    assert!(
        matches!(&refused, Fault::Refused(why) if why.contains("account-console")),
        "{refused}"
    );
    assert!(fake.received().iter().all(|request| !request.ends_with("/client-secret")));
    let client = SsoClient {
        id: "account-console".into(),
        secret: Secret::new("s"),
        handle: Secret::new("x"),
    };
    assert!(matches!(sso.rotate(&client).await, Err(Fault::Refused(_))));
    sso.delete(&client).await.unwrap();
    assert_eq!(realm.lock().unwrap().clients.len(), 1);
}

#[tokio::test]
async fn access_token_is_renewed_when_it_expires_or_is_rejected() {
    let (fake, realm) = keycloak().await;
    let sso = at(&fake);
    let made = sso.create("canary-1").await.unwrap();
    realm.lock().unwrap().expired = 1;
    assert!(sso.find(&made).await.unwrap().is_some());
    assert_eq!(realm.lock().unwrap().tokens, 2, "renewed once for both calls");
    realm.lock().unwrap().life_seconds = 10;
    realm.lock().unwrap().expired = 2;
    assert!(sso.find(&made).await.unwrap().is_some());
    assert!(realm.lock().unwrap().tokens > 3, "a token that expires at once is not cached");
    realm.lock().unwrap().expired = usize::MAX;
    let fault = sso.find(&made).await.unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains("401")), "{fault}");
}

#[tokio::test]
async fn wrong_credentials_and_missing_permissions_are_retried() {
    let (fake, realm) = keycloak().await;
    let wrong = Options { client_secret: Secret::new("s3cret-not"), ..options(&fake) };
    let fault = Keycloak::new(wrong).unwrap().create("canary-1").await.unwrap_err();
    let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
    assert!(why.contains("issue an access token") && !why.contains("s3cret"), "{why}");
    realm.lock().unwrap().forbids = true;
    let fault = at(&fake).create("canary-1").await.unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains("403")), "{fault}");
    let other = Options { realm: "none".into(), ..options(&fake) };
    let fault = Keycloak::new(other).unwrap().create("canary-1").await.unwrap_err();
    assert!(matches!(&fault, Fault::Refused(why) if why.contains("404")), "{fault}");
}

#[tokio::test]
async fn failing_keycloak_is_unavailable_and_recovers() {
    let (fake, _realm) = keycloak().await;
    let made = at(&fake).create("canary-1").await.unwrap();
    for (behavior, message) in [
        (Behavior::Slow, "did not answer within"),
        (Behavior::Garbage, "invalid response"),
        (Behavior::Status(500), "500"),
        (Behavior::Status(503), "503"),
    ] {
        let limit = Duration::from_millis(if behavior == Behavior::Slow { 300 } else { 30_000 });
        let sso = Keycloak::new(Options { timeout: limit, ..options(&fake) }).unwrap();
        fake.set(behavior);
        for fault in [
            sso.create("canary-1").await.unwrap_err(),
            sso.find(&made).await.unwrap_err(),
            sso.rotate(&made).await.unwrap_err(),
            sso.delete(&made).await.unwrap_err(),
        ] {
            let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
            assert!(why.contains(message), "{why}");
        }
        fake.set(Behavior::Normal);
        let sso = at(&fake);
        assert_eq!(sso.find(&made).await, Ok(Some(made.clone())));
    }
    let (address, sso) = (fake.address.clone(), at(&fake));
    drop(fake);
    let fault = sso.find(&made).await.unwrap_err();
    assert!(fault.to_string().contains(&address), "{fault}");
}
