//! Clients of Keycloak, against a server that answers as Keycloak's admin API is documented.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::sso::Keycloak;
use adapters::sso::keycloak::Options;
use model::Secret;
use port::{Client, Fault, Sso};
use serde_json::{Value, json};

use crate::fake::{Asked, Fake, Mood, prepare};

/// A realm: clients by the ids that Keycloak gives them.
#[derive(Default)]
struct Realm {
    clients: BTreeMap<String, (Value, usize)>,
    tokens: usize,
    /// Tokens up to this one are not accepted any more.
    expired: usize,
    life_seconds: u64,
    forbids: bool,
}

type Shared = Arc<Mutex<Realm>>;

async fn keycloak() -> (Fake, Shared) {
    prepare();
    let realm: Shared = Arc::new(Mutex::new(Realm { life_seconds: 60, ..Realm::default() }));
    let shared = realm.clone();
    let fake = Fake::start(move |asked| shared.lock().unwrap().answer(asked)).await;
    (fake, realm)
}

fn options(fake: &Fake) -> Options {
    Options::new(&fake.address, "fleet", "paddock", Secret::new("s3cret"))
}

fn at(fake: &Fake) -> Keycloak {
    Keycloak::new(Options { limit: Duration::from_secs(30), ..options(fake) }).unwrap()
}

impl Realm {
    fn answer(&mut self, asked: &Asked) -> (u16, Value) {
        let (method, path) = asked.route();
        match (method, path.as_slice()) {
            ("POST", ["realms", "fleet", "protocol", "openid-connect", "token"]) => {
                self.grant(asked)
            }
            (_, ["admin", "realms", "fleet", "clients", below @ ..]) => {
                let token = asked.header("authorization").trim_start_matches("Bearer token-");
                if token.parse::<usize>().unwrap() <= self.expired {
                    return (401, json!({"error": "HTTP 401 Unauthorized"}));
                }
                if self.forbids {
                    return (403, json!({"error": "HTTP 403 Forbidden"}));
                }
                self.manage(method, below, asked)
            }
            _ => (404, json!({"error": "Realm does not exist"})),
        }
    }

    fn grant(&mut self, asked: &Asked) -> (u16, Value) {
        assert_eq!(asked.body["grant_type"], "client_credentials");
        if asked.body["client_id"] != "paddock" || asked.body["client_secret"] != "s3cret" {
            let said = "Invalid client or Invalid client credentials s3cret-not";
            return (401, json!({"error": "unauthorized_client", "error_description": said}));
        }
        self.tokens += 1;
        let token = format!("token-{}", self.tokens);
        (200, json!({"access_token": token, "expires_in": self.life_seconds}))
    }

    fn manage(&mut self, method: &str, below: &[&str], asked: &Asked) -> (u16, Value) {
        let known = below.first().is_none_or(|id| self.clients.contains_key(*id));
        match (method, below) {
            _ if !known => (404, json!({"error": "Could not find client"})),
            ("POST", []) => self.create(&asked.body),
            ("GET", []) => {
                let of = |c: &&Value| c["clientId"] == *asked.query["clientId"];
                (200, self.clients.values().map(|(client, _)| client).filter(of).cloned().collect())
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
            let said = format!("Client {name} already exists");
            return (409, json!({"errorMessage": said}));
        }
        let id = format!("uuid-{}", self.clients.len() + 1);
        let mut client = body.clone();
        client["id"] = json!(id);
        self.clients.insert(id, (client, 1));
        (201, Value::Null)
    }
}

fn secret(client: &Client) -> (&str, &str) {
    (&client.id, client.secret.reveal())
}

#[tokio::test]
async fn a_client_lives_from_creation_over_a_new_secret_to_removal() {
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
    sso.remove(&rotated).await.unwrap();
    sso.remove(&rotated).await.expect("gone is fine");
    assert_eq!(sso.find(&rotated).await, Ok(None));
    assert_eq!(sso.rotate(&rotated).await.unwrap().id, "canary-1", "it is made again");
    assert_eq!(realm.lock().unwrap().tokens, 1, "one sign-in was enough");
}

#[tokio::test]
async fn a_client_of_somebody_else_is_neither_read_nor_removed() {
    let (fake, realm) = keycloak().await;
    let theirs = json!({"id": "x", "clientId": "account-console", "attributes": {"a": "b"}});
    realm.lock().unwrap().clients.insert("x".into(), (theirs, 1));
    let sso = at(&fake);
    let refused = sso.create("account-console").await.unwrap_err();
    assert!(
        matches!(&refused, Fault::Refused(why) if why.contains("account-console")),
        "{refused}"
    );
    assert!(fake.asked().iter().all(|asked| !asked.ends_with("/client-secret")));
    let client =
        Client { id: "account-console".into(), secret: Secret::new("s"), handle: Secret::new("x") };
    assert!(matches!(sso.rotate(&client).await, Err(Fault::Refused(_))));
    sso.remove(&client).await.unwrap();
    assert_eq!(realm.lock().unwrap().clients.len(), 1);
}

#[tokio::test]
async fn a_token_is_renewed_when_it_ends_or_is_not_accepted() {
    let (fake, realm) = keycloak().await;
    let sso = at(&fake);
    let made = sso.create("canary-1").await.unwrap();
    realm.lock().unwrap().expired = 1;
    assert!(sso.find(&made).await.unwrap().is_some());
    assert_eq!(realm.lock().unwrap().tokens, 2, "renewed once for both calls");
    realm.lock().unwrap().life_seconds = 10;
    realm.lock().unwrap().expired = 2;
    assert!(sso.find(&made).await.unwrap().is_some());
    assert!(realm.lock().unwrap().tokens > 3, "a token that ends at once is not kept");
    realm.lock().unwrap().expired = usize::MAX;
    let fault = sso.find(&made).await.unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains("401")), "{fault}");
}

#[tokio::test]
async fn wrong_credentials_and_missing_rights_can_be_put_right() {
    let (fake, realm) = keycloak().await;
    let wrong = Options { client_secret: Secret::new("s3cret-not"), ..options(&fake) };
    let fault = Keycloak::new(wrong).unwrap().create("canary-1").await.unwrap_err();
    let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
    assert!(why.contains("sign in") && !why.contains("s3cret"), "{why}");
    realm.lock().unwrap().forbids = true;
    let fault = at(&fake).create("canary-1").await.unwrap_err();
    assert!(matches!(&fault, Fault::Unavailable(why) if why.contains("403")), "{fault}");
    let other = Options { realm: "none".into(), ..options(&fake) };
    let fault = Keycloak::new(other).unwrap().create("canary-1").await.unwrap_err();
    assert!(matches!(&fault, Fault::Refused(why) if why.contains("404")), "{fault}");
}

#[tokio::test]
async fn what_is_down_slow_or_confused_is_unavailable_and_then_works() {
    let (fake, _realm) = keycloak().await;
    let made = at(&fake).create("canary-1").await.unwrap();
    for (mood, sentence) in [
        (Mood::Slow, "did not answer within"),
        (Mood::Garbage, "make no sense"),
        (Mood::Status(500), "500"),
        (Mood::Status(503), "503"),
    ] {
        let limit = Duration::from_millis(if mood == Mood::Slow { 300 } else { 30_000 });
        let sso = Keycloak::new(Options { limit, ..options(&fake) }).unwrap();
        fake.be(mood);
        for fault in [
            sso.create("canary-1").await.unwrap_err(),
            sso.find(&made).await.unwrap_err(),
            sso.rotate(&made).await.unwrap_err(),
            sso.remove(&made).await.unwrap_err(),
        ] {
            let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
            assert!(why.contains(sentence), "{why}");
        }
        fake.be(Mood::Fine);
        let sso = at(&fake);
        assert_eq!(sso.find(&made).await, Ok(Some(made.clone())));
    }
    let (address, sso) = (fake.address.clone(), at(&fake));
    drop(fake);
    let fault = sso.find(&made).await.unwrap_err();
    assert!(fault.to_string().contains(&address), "{fault}");
}
