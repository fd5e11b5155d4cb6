//! Providers with behavior that the RFCs permit and the real one does not have, and faults in
//! between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::sso::Registration;
use adapters::sso::registration::{Options, Provider};
use model::Secret;
use port::{Fault, Sso};
use serde_json::{Value, json};

use crate::fake::{Behavior, Fake, Received, prepare};

/// The state and behavior of a provider.
#[derive(Default)]
struct State {
    address: String,
    clients: BTreeMap<String, Entry>,
    created: usize,
    changes: Changes,
    /// How many more clients can be created, if limited.
    capacity: Option<usize>,
    refuses_removal: bool,
    manages: bool,
}

/// The effect of an update.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Changes {
    #[default]
    KeepSecret,
    RenewSecret,
    Refused,
}

struct Entry {
    secret: usize,
    token: usize,
}

type Shared = Arc<Mutex<State>>;

async fn provider() -> (Fake, Shared) {
    prepare();
    let state: Shared = Arc::new(Mutex::new(State { manages: true, ..State::default() }));
    let shared = state.clone();
    let fake = Fake::start(move |request| shared.lock().unwrap().answer(request)).await;
    state.lock().unwrap().address.clone_from(&fake.address);
    (fake, state)
}

fn at(fake: &Fake) -> Registration {
    with_timeout(fake, Duration::from_secs(30))
}

fn with_timeout(fake: &Fake, limit: Duration) -> Registration {
    let provider = Provider::Endpoint(format!("{}/reg", fake.address));
    Registration::new(Options { timeout: limit, ..Options::new(provider, Secret::new("initial")) })
        .unwrap()
}

impl State {
    fn answer(&mut self, request: &Received) -> (u16, Value) {
        match request.route() {
            ("POST", path) if path == ["reg"] => self.create(request),
            (method, path) if path.len() == 2 => self.manage(method, path[1], request),
            _ => (404, Value::Null),
        }
    }

    fn create(&mut self, request: &Received) -> (u16, Value) {
        assert_eq!(request.header("authorization"), "Bearer initial");
        assert_eq!(request.body["grant_types"], json!(["client_credentials"]));
        match self.capacity.as_mut() {
            Some(0) => return (503, Value::Null),
            Some(capacity) => *capacity -= 1,
            None => {}
        }
        self.created += 1;
        let id = format!("c{}", self.created);
        self.clients.insert(id.clone(), Entry { secret: self.created * 100, token: 1 });
        (201, self.representation(&id))
    }

    fn representation(&self, id: &str) -> Value {
        let entry = &self.clients[id];
        let mut shown = json!({
        "client_id": id, "client_secret": format!("secret-{}", entry.secret),
                "client_secret_expires_at": 0,
            });
        if self.manages {
            shown["registration_client_uri"] = json!(format!("{}/reg/{id}", self.address));
            shown["registration_access_token"] = json!(format!("token-{}", entry.token));
        }
        shown
    }

    fn manage(&mut self, method: &str, id: &str, request: &Received) -> (u16, Value) {
        let (changes, refuses) = (self.changes, self.refuses_removal);
        let Some(entry) = self.clients.get_mut(id) else { return (401, Value::Null) };
        if request.header("authorization") != format!("Bearer token-{}", entry.token) {
            return (401, Value::Null);
        }
        match method {
            "DELETE" if refuses => (503, Value::Null),
            "DELETE" => {
                self.clients.remove(id);
                (204, Value::Null)
            }
            "PUT" if changes == Changes::Refused => (405, Value::Null),
            "PUT" => {
                assert_eq!(request.body["client_id"], id);
                assert!(request.body.get("registration_access_token").is_none());
                entry.secret += usize::from(changes == Changes::RenewSecret);
                entry.token += 1;
                (200, self.representation(id))
            }
            _ => {
                entry.token += 1;
                (200, self.representation(id))
            }
        }
    }
}

#[tokio::test]
async fn client_is_retained_if_the_provider_renews_its_secret() {
    let (fake, state) = provider().await;
    state.lock().unwrap().changes = Changes::RenewSecret;
    let sso = at(&fake);
    let made = sso.create("one").await.unwrap();
    let rotated = sso.rotate(&made).await.unwrap();
    assert_eq!((&*rotated.id, rotated.secret.reveal()), ("c1", "secret-101"));
    assert_eq!(state.lock().unwrap().created, 1, "no other client was needed");
    let found = sso.find(&rotated).await.unwrap().unwrap();
    assert_eq!(found.secret, rotated.secret);
    assert_ne!(found.handle, rotated.handle, "the newest token is in it");
    sso.delete(&found).await.unwrap();
    assert!(state.lock().unwrap().clients.is_empty());
}

#[tokio::test]
async fn client_is_replaced_if_the_provider_refuses_updates() {
    let (fake, state) = provider().await;
    state.lock().unwrap().changes = Changes::Refused;
    let sso = at(&fake);
    let made = sso.create("one").await.unwrap();
    let rotated = sso.rotate(&made).await.unwrap();
    assert_eq!(rotated.id, "c2");
    assert_eq!(state.lock().unwrap().clients.keys().collect::<Vec<_>>(), ["c2"]);
}

#[tokio::test]
async fn replaced_client_that_was_not_deleted_is_deleted_later() {
    for later in ["find", "rotate", "remove"] {
        let (fake, state) = provider().await;
        let sso = at(&fake);
        let made = sso.create("one").await.unwrap();
        state.lock().unwrap().refuses_removal = true;
        let rotated = sso.rotate(&made).await.unwrap();
        assert_eq!(state.lock().unwrap().clients.len(), 2);
        let fault = sso.delete(&rotated).await.unwrap_err();
        assert!(fault.to_string().contains("a replaced client of one"), "{fault}");
        state.lock().unwrap().refuses_removal = false;
        let left = match later {
            "find" => vec![sso.find(&rotated).await.unwrap().unwrap().id],
            "rotate" => vec![sso.rotate(&rotated).await.unwrap().id],
            _ => sso.delete(&rotated).await.map(|()| vec![]).unwrap(),
        };
        assert_eq!(state.lock().unwrap().clients.keys().collect::<Vec<_>>(), Vec::from_iter(&left));
    }
}

#[tokio::test]
async fn token_that_changed_before_a_fault_is_not_lost() {
    let (fake, state) = provider().await;
    let sso = at(&fake);
    let made = sso.create("one").await.unwrap();
    state.lock().unwrap().capacity = Some(0);
    for _ in 0..3 {
        let fault = sso.rotate(&made).await.unwrap_err();
        assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
    }
    state.lock().unwrap().capacity = None;
    assert!(sso.find(&made).await.unwrap().is_some(), "with the token of the earlier response");
    let rotated = sso.rotate(&made).await.unwrap();
    assert_eq!(state.lock().unwrap().clients.keys().collect::<Vec<_>>(), [&rotated.id]);
}

#[tokio::test]
async fn provider_without_management_is_refused_and_the_client_named() {
    let (fake, state) = provider().await;
    state.lock().unwrap().manages = false;
    let refused = at(&fake).create("one").await.unwrap_err();
    assert!(matches!(&refused, Fault::Refused(why) if why.contains("c1")), "{refused:?}");
}

#[tokio::test]
async fn failing_provider_is_unavailable_and_refusal_is_final() {
    let (fake, _state) = provider().await;
    let made = at(&fake).create("one").await.unwrap();
    for (behavior, message) in [
        (Behavior::Slow, "did not answer within"),
        (Behavior::Garbage, "invalid response"),
        (Behavior::Endless, "larger than 1 MiB"),
        (Behavior::Status(500), "500 (it hurts)"),
        (Behavior::Status(429), "429"),
        (Behavior::Status(307), "307"),
        (Behavior::Status(403), "Check the credentials"),
    ] {
        fake.set(behavior);
        let limit = if behavior == Behavior::Slow { 300 } else { 30_000 };
        let sso = with_timeout(&fake, Duration::from_millis(limit));
        for fault in [sso.create("two").await.unwrap_err(), sso.find(&made).await.unwrap_err()] {
            let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
            assert!(why.contains(message), "{why}");
        }
    }
    fake.set(Behavior::Status(400));
    let refused = at(&fake).create("two").await.unwrap_err();
    assert!(matches!(refused, Fault::Refused(_)), "{refused:?}");
}
