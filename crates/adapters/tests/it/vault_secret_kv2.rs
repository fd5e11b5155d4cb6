//! Secrets in KV version 2 and certificates, against a fake of Vault's documented API.

use std::sync::Arc;
use std::time::Duration;

use adapters::vault::{Auth, Options, VaultSecrets};
use model::Secret;
use model::operation::Subject;
use port::{Operation, Progress, Task};
use serde_json::{Value, json};
use testing::TestClock;
use testing::vault::{ROOT, Vault};

use super::kv::done;
use super::vault_secret::{apply, change, drift, executor, refused, task};

/// The place of the tests' secrets.
pub(crate) const PLACE: &str = "secret/shop/db";

/// A Vault and a clock.
pub(crate) struct World {
    pub(crate) vault: Vault,
    pub(crate) clock: Arc<TestClock>,
}

impl World {
    pub(crate) async fn new() -> Self {
        crate::fake::prepare();
        let clock = Arc::new(TestClock::default());
        Self { vault: Vault::start(clock.clone()).await, clock }
    }

    /// A new executor with all permissions.
    pub(crate) fn executor(&self) -> VaultSecrets {
        self.with_token(ROOT)
    }

    pub(crate) fn with_token(&self, token: &str) -> VaultSecrets {
        let sign_in = Auth::Token(Secret::new(token));
        executor(Options::new(self.vault.address(), sign_in), &self.clock)
    }

    /// A value, as an application reads it.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        let value = self.vault.secret(PLACE)?.get(key)?.clone();
        Some(value.as_str().unwrap().to_owned())
    }
}

fn db() -> Task {
    task(json!({
        "path": "shop/db", "values": {"user": "shop"},
        "generate": {"password": {}, "pin": {"length": 6, "alphabet": "0123456789"}},
    }))
}

#[tokio::test]
async fn values_are_generated_once_and_the_mark_is_custom_metadata() {
    let world = World::new().await;
    let mut db = db();
    let applied = apply(&world.executor(), &mut db).await.unwrap();
    let first = world.vault.secret(PLACE).unwrap();
    assert_eq!(first.keys().collect::<Vec<_>>(), ["password", "pin", "user"]);
    assert_eq!(first["password"].as_str().unwrap().len(), 32);
    assert_eq!(applied.outputs["version"], 2);
    assert_eq!(applied.outputs["keys"]["password"], "vault:secret/shop/db#password");
    let metadata = Value::Object(world.vault.custom_metadata(PLACE)).to_string();
    assert!(metadata.contains(&db.id.to_string()), "{metadata}");
    for value in first.values() {
        assert!(!metadata.contains(value.as_str().unwrap()) || value == "shop", "{metadata}");
    }

    world.vault.clear_requests();
    apply(&world.executor(), &mut db).await.unwrap();
    assert_eq!(drift(&world.executor(), &db).await, Vec::<String>::new());
    assert_eq!(world.vault.secret(PLACE).unwrap(), first);
    assert!(
        world.vault.request_lines().iter().all(|line| line.starts_with("GET ")),
        "nothing was written"
    );
}

#[tokio::test]
async fn only_values_with_a_changed_rule_are_regenerated() {
    let world = World::new().await;
    let (executor, mut db) = (world.executor(), db());
    apply(&executor, &mut db).await.unwrap();
    let first = world.vault.secret(PLACE).unwrap();
    change(
        &mut db,
        json!({
            "path": "shop/db", "values": {"user": "admin", "host": "db1"},
            "generate": {"password": {}, "pin": {"length": 4, "alphabet": "0123456789"}, "salt": {}},
        }),
    );
    let Progress::Done(planned) = executor.plan(&db).await.unwrap() else { panic!("at once") };
    let fields: Vec<_> = planned.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields, ["values.host", "values.user", "generate.pin", "generate.salt"]);
    apply(&executor, &mut db).await.unwrap();
    let second = world.vault.secret(PLACE).unwrap();
    assert_eq!(second["password"], first["password"]);
    assert_eq!((&second["user"], &second["host"]), (&json!("admin"), &json!("db1")));
    assert_eq!(second["pin"].as_str().unwrap().len(), 4);
    assert_eq!(second["salt"].as_str().unwrap().len(), 32);

    change(&mut db, json!({"path": "shop/db", "generate": {"password": {}}}));
    apply(&executor, &mut db).await.unwrap();
    let third = world.vault.secret(PLACE).unwrap();
    assert_eq!(
        third.into_iter().collect::<Vec<_>>(),
        [("password".into(), first["password"].clone())]
    );
}

#[tokio::test]
async fn external_changes_are_detected_without_showing_values_and_repaired() {
    let world = World::new().await;
    let (executor, mut db) = (world.executor(), db());
    apply(&executor, &mut db).await.unwrap();
    let pin = world.value("pin").unwrap();
    world
        .vault
        .put(PLACE, &json!({"password": "hunter2", "user": "root", "pin": pin, "more": "x"}));
    let observed = done(executor.observe(&db).await.unwrap());
    assert!(!format!("{observed:?}").contains("hunter2"));
    assert_eq!(observed.unexpected, ["more"]);
    let differences =
        ["values.user: shop → root", "generate.password: (as generated) → (another value)"];
    assert_eq!(drift(&executor, &db).await, differences);
    apply(&executor, &mut db).await.unwrap();
    assert_ne!(world.value("password").unwrap(), "hunter2");
    assert_eq!((world.value("pin"), world.value("more")), (Some(pin), Some("x".into())));
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());

    world.vault.put(PLACE, &json!({"user": "shop", "pin": world.value("pin")}));
    assert_eq!(drift(&executor, &db).await, ["generate.password: (as generated) → nothing"]);
    world.vault.delete(PLACE);
    assert_eq!(drift(&executor, &db).await.len(), 3);
    apply(&executor, &mut db).await.unwrap();
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
    executor.destroy(&db).await.unwrap();
    assert_eq!(drift(&executor, &db).await, ["path: vault:secret/shop/db → nothing"]);
}

#[tokio::test]
async fn existing_secret_is_refused_or_adopted_with_its_values() {
    let world = World::new().await;
    let (executor, mut db) = (world.executor(), db());
    let why = refused(executor.adopt(&db, "shop/db").await);
    assert!(why.contains("cannot adopt vault:secret/shop/db: it does not exist"), "{why}");
    world.vault.put(PLACE, &json!({"password": "old", "host": "db1"}));
    world.vault.set_custom_metadata(PLACE, "team", "shop");
    let why = refused(apply(&executor, &mut db).await);
    assert!(why.contains("was not created by Paddock") && why.contains("adopt shop/db"), "{why}");
    let why = refused(executor.adopt(&db, "other/db").await);
    assert!(why.contains("it must be with.path, which is shop/db"), "{why}");
    executor.destroy(&db).await.unwrap();
    assert_eq!(world.vault.versions(PLACE), 1, "nothing was changed");

    for what in ["shop/db", "secret/shop/db", "vault:secret/shop/db"] {
        db.outputs = executor.adopt(&db, what).await.unwrap().outputs;
    }
    apply(&executor, &mut db).await.unwrap();
    assert_eq!(
        (world.value("password"), world.value("host")),
        (Some("old".into()), Some("db1".into()))
    );
    assert_eq!(world.value("pin").unwrap().len(), 6);
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
    assert_eq!(world.vault.custom_metadata(PLACE)["team"], "shop");
    world.vault.put(PLACE, &json!({"password": "new", "pin": world.value("pin"), "user": "shop"}));
    assert_eq!(drift(&executor, &db).await.len(), 1, "adopted values have fingerprints, too");
}

#[tokio::test]
async fn secret_of_another_resource_is_untouched() {
    let world = World::new().await;
    let (executor, mut ours, mut theirs) = (world.executor(), db(), db());
    theirs.id = Subject::Resource("9m4e2mr0ui3e8a215n5g".parse().unwrap());
    apply(&executor, &mut ours).await.unwrap();
    let made = world.vault.secret(PLACE);
    let message = format!("belongs to the resource {}", ours.id);
    for why in [
        refused(apply(&executor, &mut theirs).await),
        refused(executor.adopt(&theirs, "shop/db").await),
    ] {
        assert!(why.contains(&message), "{why}");
    }
    executor.destroy(&theirs).await.unwrap();
    assert!(theirs.log.drain().concat().contains("does not belong to this resource"));
    assert_eq!(world.vault.secret(PLACE), made);
    theirs.applied = ours.applied.clone();
    let drifted = drift(&executor, &theirs).await;
    assert_eq!(drifted, [format!("owner: {} → {}", theirs.id, ours.id)]);
}

#[tokio::test]
async fn destroy_deletes_all_versions_and_is_idempotent() {
    let world = World::new().await;
    let (executor, mut db) = (world.executor(), db());
    apply(&executor, &mut db).await.unwrap();
    executor.destroy(&db).await.unwrap();
    assert_eq!(world.vault.paths(), Vec::<String>::new());
    executor.destroy(&db).await.unwrap();
    apply(&executor, &mut db).await.unwrap();
    world.vault.delete(PLACE);
    executor.destroy(&db).await.unwrap();
    assert_eq!(world.vault.paths(), Vec::<String>::new(), "also a soft-deleted one");
}

fn tls(role: &str, names: &[&str]) -> Value {
    json!({
        "path": "shop/db", "generate": {"keystore": {}},
        "certificate": {"role": role, "common_name": "shop.example.test", "alt_names": names,
            "ttl_seconds": 900},
    })
}

#[tokio::test]
async fn certificate_is_issued_retained_renewed_and_revoked() {
    let world = World::new().await;
    let (executor, mut one) = (world.executor(), task(tls("web", &["a.example.test"])));
    let applied = apply(&executor, &mut one).await.unwrap();
    let keystore = world.value("keystore");
    assert_eq!(world.value("private_key").unwrap(), "private key 1 that nobody may see");
    assert_eq!(world.value("ca_chain").unwrap(), "the authority\nthe root");
    assert_eq!(applied.outputs["certificate"]["serial_number"], "0a:01");
    assert_eq!(
        applied.outputs["keys"]["private_key"], "vault:secret/shop/db#private_key",
        "a reference, as to every value"
    );
    assert!(!format!("{applied:?}").contains("nobody may see"));
    world.clock.advance(Duration::from_secs(595));
    apply(&executor, &mut one).await.unwrap();
    assert_eq!((world.vault.issued(), drift(&executor, &one).await), (1, vec![]));

    world.clock.advance(Duration::from_secs(10));
    let drifted = drift(&executor, &one).await;
    assert!(drifted[0].starts_with("certificate.not_after: at least a third"), "{drifted:?}");
    let applied = apply(&executor, &mut one).await.unwrap();
    assert_eq!(applied.outputs["certificate"]["serial_number"], "0a:02");
    assert_eq!(
        (world.vault.revoked(), drift(&executor, &one).await),
        (vec!["0a:01".into()], vec![])
    );
    assert_eq!(world.value("keystore"), keystore);

    world.vault.put(PLACE, &{
        let mut changed = world.vault.secret(PLACE).unwrap();
        changed["private_key"] = json!("mine");
        changed.into()
    });
    assert_eq!(drift(&executor, &one).await, ["certificate: (as issued) → (another value)"]);
    change(&mut one, tls("web", &["b.example.test"]));
    apply(&executor, &mut one).await.unwrap();
    assert_eq!(world.value("serial_number").unwrap(), "0a:03");

    change(&mut one, json!({"path": "shop/db", "generate": {"keystore": {}}}));
    apply(&executor, &mut one).await.unwrap();
    assert_eq!(world.vault.secret(PLACE).unwrap().len(), 1);
    change(&mut one, tls("web", &[]));
    apply(&executor, &mut one).await.unwrap();
    executor.destroy(&one).await.unwrap();
    assert_eq!(world.vault.revoked(), ["0a:01", "0a:02", "0a:03", "0a:04"]);
    assert_eq!(world.vault.paths(), Vec::<String>::new());
    let mut wrong = task(tls("nobody", &[]));
    let why = refused(apply(&executor, &mut wrong).await);
    assert!(why.contains("pki/issue/nobody") && why.contains("unknown role"), "{why}");
}

#[tokio::test]
async fn values_are_never_shown() {
    let world = World::new().await;
    let (executor, mut one) = (world.executor(), task(tls("web", &[])));
    let mut shown = vec![format!("{:?}", executor.plan(&one).await)];
    shown.push(format!("{:?}", apply(&executor, &mut one).await));
    let first = world.vault.secret(PLACE).unwrap();
    world.vault.put(PLACE, &json!({"keystore": "set by hand"}));
    shown.push(format!("{:?}{:?}", executor.observe(&one).await, executor.plan(&one).await));
    shown.push(format!("{:?}", apply(&executor, &mut one).await));
    change(&mut one, json!({"path": "shop/db", "values": {"keystore": "known"}}));
    shown.push(format!("{:?}", executor.plan(&one).await));
    shown.push(format!("{:?}", refused(apply(&world.with_token("n0ne"), &mut one).await)));
    shown.push(format!("{:?}", executor.destroy(&one).await));
    shown.push(format!("{:?}{one:?}", one.log.drain()));
    let (shown, key) = (shown.concat(), one.persisted["print-key"].reveal());
    let mut hidden = vec!["set by hand", "private key", "n0ne", ROOT, key];
    hidden.push(first["keystore"].as_str().unwrap());
    for secret in hidden {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test]
async fn maximum_number_of_keys_fits_into_custom_metadata() {
    let world = World::new().await;
    let keys: serde_json::Map<_, _> =
        (0..100).map(|i| (format!("{i:0>64}"), json!({"length": 8}))).collect();
    let mut many = task(json!({"path": "shop/db", "generate": keys}));
    apply(&world.executor(), &mut many).await.unwrap();
    many.fence += 1;
    many.key.push('+');
    let before = world.vault.secret(PLACE);
    apply(&world.executor(), &mut many).await.unwrap();
    assert_eq!(world.vault.secret(PLACE), before);
    assert_eq!(drift(&world.executor(), &many).await, Vec::<String>::new());
}

#[tokio::test]
async fn kv_version_is_determined_with_and_without_mount_information() {
    for is_told in [true, false] {
        let world = World::new().await;
        world.vault.set_reports_mounts(is_told);
        for (mount, version) in [("secret", 2), ("kv", 1)] {
            // In version 1 the settings of version 2 are an ordinary secret.
            world.vault.put("kv/config", &json!({"max_versions": "10", "cas_required": "true"}));
            let mut one = task(json!({"mount": mount, "path": "shop/db", "generate": {"a": {}}}));
            let executor = world.executor();
            let applied = apply(&executor, &mut one).await.unwrap();
            assert_eq!(applied.outputs["version"], version);
            world.vault.clear_requests();
            apply(&executor, &mut one).await.unwrap();
            let lines = world.vault.request_lines();
            assert!(!lines.iter().any(|line| line.contains("mounts") || line.contains("config")));
        }
    }
    let world = World::new().await;
    let mut wrong = task(json!({"mount": "pki", "path": "shop/db"}));
    let why = refused(apply(&world.executor(), &mut wrong).await);
    assert!(why.contains("has the secrets engine pki; it must be kv"), "{why}");
    let mut wrong = task(json!({"mount": "secret/team", "path": "db"}));
    let why = refused(apply(&world.executor(), &mut wrong).await);
    assert!(why.contains("has no mount secret/team: the path is below the mount secret"), "{why}");
}

#[tokio::test]
async fn vault_without_patch_is_supported() {
    let world = World::new().await;
    world.vault.set_supports_patch(false);
    let (executor, mut db) = (world.executor(), db());
    apply(&executor, &mut db).await.unwrap();
    world.vault.set_custom_metadata(PLACE, "team", "shop");
    change(&mut db, json!({"path": "shop/db", "generate": {"password": {}}}));
    apply(&executor, &mut db).await.unwrap();
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
    assert_eq!(world.vault.custom_metadata(PLACE)["team"], "shop");
}
