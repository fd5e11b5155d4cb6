//! Providers that do what the RFCs allow and the real one does not, and faults in the middle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::sso::Registration;
use adapters::sso::registration::{Options, Provider};
use model::Secret;
use port::{Fault, Sso};
use serde_json::{Value, json};

use crate::fake::{Asked, Fake, Mood, prepare};

/// What a provider keeps, and what it does to those who change a client.
#[derive(Default)]
struct Book {
    address: String,
    clients: BTreeMap<String, Kept>,
    made: usize,
    changes: Changes,
    /// How many creations are still accepted, if that is limited.
    room: Option<usize>,
    refuses_removal: bool,
    manages: bool,
}

/// What comes of a change.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Changes {
    #[default]
    KeepTheSecret,
    RenewTheSecret,
    AreRefused,
}

struct Kept {
    secret: usize,
    token: usize,
}

type Shared = Arc<Mutex<Book>>;

async fn provider() -> (Fake, Shared) {
    prepare();
    let book: Shared = Arc::new(Mutex::new(Book { manages: true, ..Book::default() }));
    let shared = book.clone();
    let fake = Fake::start(move |asked| shared.lock().unwrap().answer(asked)).await;
    book.lock().unwrap().address.clone_from(&fake.address);
    (fake, book)
}

fn at(fake: &Fake) -> Registration {
    within(fake, Duration::from_secs(30))
}

fn within(fake: &Fake, limit: Duration) -> Registration {
    let provider = Provider::Endpoint(format!("{}/reg", fake.address));
    Registration::new(Options { limit, ..Options::new(provider, Secret::new("initial")) }).unwrap()
}

impl Book {
    fn answer(&mut self, asked: &Asked) -> (u16, Value) {
        match asked.route() {
            ("POST", path) if path == ["reg"] => self.create(asked),
            (method, path) if path.len() == 2 => self.manage(method, path[1], asked),
            _ => (404, Value::Null),
        }
    }

    fn create(&mut self, asked: &Asked) -> (u16, Value) {
        assert_eq!(asked.header("authorization"), "Bearer initial");
        assert_eq!(asked.body["grant_types"], json!(["client_credentials"]));
        match self.room.as_mut() {
            Some(0) => return (503, Value::Null),
            Some(room) => *room -= 1,
            None => {}
        }
        self.made += 1;
        let id = format!("c{}", self.made);
        self.clients.insert(id.clone(), Kept { secret: self.made * 100, token: 1 });
        (201, self.shown(&id))
    }

    fn shown(&self, id: &str) -> Value {
        let kept = &self.clients[id];
        let mut shown = json!({
            "client_id": id, "client_secret": format!("secret-{}", kept.secret),
            "client_secret_expires_at": 0,
        });
        if self.manages {
            shown["registration_client_uri"] = json!(format!("{}/reg/{id}", self.address));
            shown["registration_access_token"] = json!(format!("token-{}", kept.token));
        }
        shown
    }

    fn manage(&mut self, method: &str, id: &str, asked: &Asked) -> (u16, Value) {
        let (changes, refuses) = (self.changes, self.refuses_removal);
        let Some(kept) = self.clients.get_mut(id) else { return (401, Value::Null) };
        if asked.header("authorization") != format!("Bearer token-{}", kept.token) {
            return (401, Value::Null);
        }
        match method {
            "DELETE" if refuses => (503, Value::Null),
            "DELETE" => {
                self.clients.remove(id);
                (204, Value::Null)
            }
            "PUT" if changes == Changes::AreRefused => (405, Value::Null),
            "PUT" => {
                assert_eq!(asked.body["client_id"], id);
                assert!(asked.body.get("registration_access_token").is_none());
                kept.secret += usize::from(changes == Changes::RenewTheSecret);
                kept.token += 1;
                (200, self.shown(id))
            }
            _ => {
                kept.token += 1;
                (200, self.shown(id))
            }
        }
    }
}

#[tokio::test]
async fn a_provider_that_gives_new_secrets_keeps_the_client() {
    let (fake, book) = provider().await;
    book.lock().unwrap().changes = Changes::RenewTheSecret;
    let sso = at(&fake);
    let made = sso.create("one").await.unwrap();
    let rotated = sso.rotate(&made).await.unwrap();
    assert_eq!((&*rotated.id, rotated.secret.reveal()), ("c1", "secret-101"));
    assert_eq!(book.lock().unwrap().made, 1, "no other client was needed");
    let found = sso.find(&rotated).await.unwrap().unwrap();
    assert_eq!(found.secret, rotated.secret);
    assert_ne!(found.handle, rotated.handle, "the newest token is in it");
    sso.remove(&found).await.unwrap();
    assert!(book.lock().unwrap().clients.is_empty());
}

#[tokio::test]
async fn a_provider_that_changes_no_clients_gets_another_one() {
    let (fake, book) = provider().await;
    book.lock().unwrap().changes = Changes::AreRefused;
    let sso = at(&fake);
    let made = sso.create("one").await.unwrap();
    let rotated = sso.rotate(&made).await.unwrap();
    assert_eq!(rotated.id, "c2");
    assert_eq!(book.lock().unwrap().clients.keys().collect::<Vec<_>>(), ["c2"]);
}

#[tokio::test]
async fn a_former_client_that_could_not_be_removed_is_removed_later() {
    for later in ["find", "rotate", "remove"] {
        let (fake, book) = provider().await;
        let sso = at(&fake);
        let made = sso.create("one").await.unwrap();
        book.lock().unwrap().refuses_removal = true;
        let rotated = sso.rotate(&made).await.unwrap();
        assert_eq!(book.lock().unwrap().clients.len(), 2);
        let still = sso.remove(&rotated).await.unwrap_err();
        assert!(still.to_string().contains("a former client of one"), "{still}");
        book.lock().unwrap().refuses_removal = false;
        let left = match later {
            "find" => vec![sso.find(&rotated).await.unwrap().unwrap().id],
            "rotate" => vec![sso.rotate(&rotated).await.unwrap().id],
            _ => sso.remove(&rotated).await.map(|()| vec![]).unwrap(),
        };
        assert_eq!(book.lock().unwrap().clients.keys().collect::<Vec<_>>(), Vec::from_iter(&left));
    }
}

#[tokio::test]
async fn a_token_that_changed_before_a_fault_is_not_lost() {
    let (fake, book) = provider().await;
    let sso = at(&fake);
    let made = sso.create("one").await.unwrap();
    book.lock().unwrap().room = Some(0);
    for _ in 0..3 {
        let fault = sso.rotate(&made).await.unwrap_err();
        assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
    }
    book.lock().unwrap().room = None;
    assert!(sso.find(&made).await.unwrap().is_some(), "with the token of the answer before");
    let rotated = sso.rotate(&made).await.unwrap();
    assert_eq!(book.lock().unwrap().clients.keys().collect::<Vec<_>>(), [&rotated.id]);
}

#[tokio::test]
async fn a_provider_without_management_is_refused_with_the_client_named() {
    let (fake, book) = provider().await;
    book.lock().unwrap().manages = false;
    let refused = at(&fake).create("one").await.unwrap_err();
    assert!(matches!(&refused, Fault::Refused(why) if why.contains("c1")), "{refused:?}");
}

#[tokio::test]
async fn what_is_slow_or_confused_is_unavailable_and_what_is_refused_is_not() {
    let (fake, _book) = provider().await;
    let made = at(&fake).create("one").await.unwrap();
    for (mood, sentence) in [
        (Mood::Slow, "did not answer within"),
        (Mood::Garbage, "make no sense"),
        (Mood::Endless, "no end"),
        (Mood::Status(500), "500 (it hurts)"),
        (Mood::Status(429), "429"),
        (Mood::Status(307), "307"),
        (Mood::Status(403), "check the credentials"),
    ] {
        fake.be(mood);
        let limit = if mood == Mood::Slow { 300 } else { 30_000 };
        let sso = within(&fake, Duration::from_millis(limit));
        for fault in [sso.create("two").await.unwrap_err(), sso.find(&made).await.unwrap_err()] {
            let Fault::Unavailable(why) = &fault else { panic!("{fault:?}") };
            assert!(why.contains(sentence), "{why}");
        }
    }
    fake.be(Mood::Status(400));
    let refused = at(&fake).create("two").await.unwrap_err();
    assert!(matches!(refused, Fault::Refused(_)), "{refused:?}");
}
