//! Secrets and certificates in a real server with Vault's API: KV version 1, AppRole, PKI.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use adapters::vault::{Auth, Options, VaultSecrets};
use base::{Clock as _, Entropy as _};
use model::resource::Difference;
use model::{ResourceId, Secret};
use port::{Fault, Operation, Outcome, Progress, Task};
use reqwest::Method;
use serde_json::{Value, json};
use testing::TestClock;
use testing::programs::RustyVault;

use super::kv::done;

use crate::fake::prepare;

/// An executor with these options and this clock.
pub(crate) fn executor(options: Options, clock: &Arc<TestClock>) -> VaultSecrets {
    prepare();
    let clock = clock.clone();
    let entropy = Arc::new(|buffer: &mut [u8]| base::OsEntropy.fill(buffer));
    VaultSecrets::new(options, entropy, Arc::new(move || clock.now())).unwrap()
}

/// A resource for which nothing was created yet.
pub(crate) fn task(with: Value) -> Task {
    let id: ResourceId = "9m4e2mr0ui3e8a215n4g".parse().unwrap();
    let environment = port::Environment {
        id: "9m4e2mr0ui3e8a215n50".parse().unwrap(),
        name: "shop".into(),
        user: "9m4e2mr0ui3e8a215n70".parse().unwrap(),
    };
    Task {
        organization: Some("9m4e2mr0ui3e8a215n60".parse().unwrap()),
        environment: Some(environment),
        with: object(with),
        key: "change-1".into(),
        ..Task::new(id, "db")
    }
}

pub(crate) fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

/// The next change of a resource.
pub(crate) fn change(task: &mut Task, with: Value) {
    task.with = object(with);
    task.key.push('+');
}

/// Applies and persists as a worker does.
pub(crate) async fn apply(executor: &VaultSecrets, task: &mut Task) -> Result<Outcome, Fault> {
    executor.validate(&task.with, &task.files).unwrap();
    executor.plan(task).await?;
    let outcome = executor.apply(task).await;
    let kept = executor.persist(task).await.unwrap();
    task.persisted.extend(kept);
    let Progress::Done(applied) = outcome? else { panic!("it is done at once") };
    (task.applied, task.outputs) = (Some(task.with.clone()), applied.outputs.clone());
    Ok(applied)
}

/// The drift, as `field: made → found`.
pub(crate) async fn drift(executor: &VaultSecrets, task: &Task) -> Vec<String> {
    done(executor.observe(task).await.unwrap()).drift.iter().map(line).collect()
}

fn line(one: &Difference) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or("nothing".into(), Value::to_string);
    format!("{}: {} → {}", one.field, shown(&one.made), shown(&one.found)).replace('"', "")
}

pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Fault>) -> String {
    match outcome {
        Err(Fault::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn unavailable<T: std::fmt::Debug>(outcome: Result<T, Fault>) -> String {
    match outcome {
        Err(Fault::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn with_root(vault: &RustyVault) -> VaultSecrets {
    let sign_in = Auth::Token(Secret::new(vault.root.clone()));
    executor(Options::new(&vault.address(), sign_in), &Arc::default())
}

#[tokio::test]
async fn values_are_generated_once_and_retained_in_version_1() {
    let vault = RustyVault::start().await;
    let executor = with_root(&vault);
    let mut db = task(json!({
        "path": "shop/db", "values": {"user": "shop"},
        "generate": {"password": {}, "pin": {"length": 6, "alphabet": "0123456789"}},
    }));
    let applied = apply(&executor, &mut db).await.unwrap();
    let first = vault.secret("secret/shop/db").await.unwrap();
    assert_eq!(first["user"], "shop");
    assert_eq!(first["password"].as_str().unwrap().len(), 32);
    assert!(first["pin"].as_str().unwrap().parse::<u32>().is_ok());
    assert_eq!(
        Value::Object(applied.outputs),
        json!({
            "path": "shop/db", "mount": "secret", "version": 1,
            "reference": "vault:secret/shop/db",
            "keys": {
                "password": "vault:secret/shop/db#password", "pin": "vault:secret/shop/db#pin",
                "user": "vault:secret/shop/db#user",
            },
        })
    );
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
    apply(&with_root(&vault), &mut db).await.unwrap();
    assert_eq!(vault.secret("secret/shop/db").await.unwrap(), first);

    change(
        &mut db,
        json!({
            "path": "shop/db", "generate": {"password": {}, "pin": {"length": 8, "alphabet": "0123456789"}},
        }),
    );
    apply(&executor, &mut db).await.unwrap();
    let second = vault.secret("secret/shop/db").await.unwrap();
    assert_eq!((&second["password"], &second["user"]), (&first["password"], &Value::Null));
    assert_eq!(second["pin"].as_str().unwrap().len(), 8);
}

#[tokio::test]
async fn external_changes_in_version_1_are_detected_and_repaired() {
    let vault = RustyVault::start().await;
    let executor = with_root(&vault);
    let with = json!({"path": "shop/db", "values": {"user": "shop"}, "generate": {"password": {}}});
    let mut db = task(with);
    apply(&executor, &mut db).await.unwrap();
    let made = vault.secret("secret/shop/db").await.unwrap();
    let mut changed = made.clone();
    (changed["password"], changed["user"], changed["more"]) =
        (json!("hunter2"), json!("root"), json!("x"));
    vault.call(Method::POST, "secret/shop/db", &changed).await;
    assert_eq!(
        drift(&executor, &db).await,
        ["values.user: shop → root", "generate.password: (as generated) → (another value)"]
    );
    assert_eq!(done(executor.observe(&db).await.unwrap()).unexpected, ["more"]);
    apply(&executor, &mut db).await.unwrap();
    let repaired = vault.secret("secret/shop/db").await.unwrap();
    assert_eq!((&repaired["user"], &repaired["more"]), (&json!("shop"), &json!("x")));
    assert_ne!(repaired["password"], "hunter2");
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
    vault.call(Method::DELETE, "secret/shop/db", &Value::Null).await;
    assert_eq!(drift(&executor, &db).await, ["path: vault:secret/shop/db → nothing"]);
}

#[tokio::test]
async fn existing_secret_in_version_1_is_refused_until_adopted_and_never_deleted() {
    let vault = RustyVault::start().await;
    let executor = with_root(&vault);
    vault.call(Method::POST, "secret/shop/db", &json!({"password": "old", "host": "db1"})).await;
    let with = json!({"path": "shop/db", "generate": {"password": {}, "salt": {}}});
    let mut db = task(with);
    let why = refused(apply(&executor, &mut db).await);
    assert!(why.contains("was not created by Paddock") && why.contains("adopt shop/db"), "{why}");
    executor.destroy(&db).await.unwrap();
    assert!(vault.secret("secret/shop/db").await.is_some(), "the secret of others remains");

    let adopted = executor.adopt(&db, "shop/db").await.unwrap();
    db.outputs = adopted.outputs;
    apply(&executor, &mut db).await.unwrap();
    let found = vault.secret("secret/shop/db").await.unwrap();
    assert_eq!((&found["password"], &found["host"]), (&json!("old"), &json!("db1")));
    assert_eq!(found["salt"].as_str().unwrap().len(), 32);
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
    executor.destroy(&db).await.unwrap();
    assert_eq!(vault.secret("secret/shop/db").await, None);
    executor.destroy(&db).await.unwrap();
}

#[tokio::test]
async fn mount_that_only_claims_version_2_is_used_as_version_1() {
    let vault = RustyVault::start().await;
    let kind = json!({"type": "kv", "options": {"version": "2"}});
    vault.call(Method::POST, "sys/mounts/two", &kind).await;
    let mut db = task(json!({"mount": "two", "path": "shop/db", "generate": {"password": {}}}));
    let applied = apply(&with_root(&vault), &mut db).await.unwrap();
    assert_eq!(applied.outputs["version"], 1);
    assert_eq!(vault.secret("two/shop/db").await.unwrap()["password"].as_str().unwrap().len(), 32);
    assert_eq!(vault.secret("two/data/shop/db").await, None);
}

#[tokio::test]
async fn role_authenticates_and_a_wrong_one_is_reported_without_its_secret() {
    let vault = RustyVault::start().await;
    let (role_id, secret_id) = vault.mount_approle("paddock").await;
    let with = |secret_id: &str| {
        let (role_id, secret_id) = (role_id.clone(), Secret::new(secret_id));
        let sign_in = Auth::AppRole { role_id, secret_id, mount: "approle".into() };
        executor(Options::new(&vault.address(), sign_in), &Arc::default())
    };
    let mut db = task(json!({"path": "shop/db", "generate": {"password": {}}}));
    apply(&with(&secret_id), &mut db).await.unwrap();
    assert!(vault.secret("secret/shop/db").await.is_some());
    let why = refused(apply(&with("wr0ng-one"), &mut db).await);
    assert!(why.contains("the login at auth/approle/login") && !why.contains("wr0ng"), "{why}");
    let sign_in = Auth::Token(Secret::new("b0gus"));
    let why = refused(
        apply(&executor(Options::new(&vault.address(), sign_in), &Arc::default()), &mut db).await,
    );
    assert!(why.contains("rejected Paddock's token") && !why.contains("b0gus"), "{why}");
}

#[tokio::test]
async fn real_certificate_has_the_names_and_matches_its_key() {
    let vault = RustyVault::start().await;
    vault.mount_pki("web").await;
    let executor = with_root(&vault);
    let with = |names: Value| {
        let certificate = json!({
            "role": "web", "common_name": "shop.example.test", "alt_names": names, "ttl_seconds": 86400,
        });
        json!({"path": "shop/tls", "certificate": certificate})
    };
    let mut tls = task(with(json!(["www.example.test", "127.0.0.1"])));
    let applied = apply(&executor, &mut tls).await.unwrap();
    let kept = vault.secret("secret/shop/tls").await.unwrap();
    let text = openssl(&["x509", "-noout", "-text"], &kept["certificate"]);
    for name in ["DNS:shop.example.test", "DNS:www.example.test", "IP Address:127.0.0.1"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let of_certificate = openssl(&["x509", "-noout", "-pubkey"], &kept["certificate"]);
    assert_eq!(of_certificate, openssl(&["pkey", "-pubout"], &kept["private_key"]));
    let shown = &applied.outputs["certificate"];
    assert_eq!(shown["serial_number"], kept["serial_number"]);
    assert_eq!(shown["common_name"], "shop.example.test");
    assert!(!format!("{applied:?}{:?}", tls.log.drain()).contains("PRIVATE KEY"));
    assert_eq!(drift(&executor, &tls).await, Vec::<String>::new());

    change(&mut tls, with(json!(["new.example.test"])));
    apply(&executor, &mut tls).await.unwrap();
    let next = vault.secret("secret/shop/tls").await.unwrap();
    assert_ne!(next["serial_number"], kept["serial_number"]);
    assert!(
        openssl(&["x509", "-noout", "-text"], &next["certificate"])
            .contains("DNS:new.example.test")
    );
    let log = tls.log.drain().join("\n");
    let revoked = format!("Revoked certificate {}", kept["serial_number"].as_str().unwrap());
    assert!(log.contains(&revoked), "{log}");
    executor.destroy(&tls).await.unwrap();
    assert_eq!(vault.secret("secret/shop/tls").await, None);
}

/// The output of openssl for a PEM text.
fn openssl(args: &[&str], pem: &Value) -> String {
    let mut command = Command::new("openssl");
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(pem.as_str().unwrap().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn sealed_vault_is_retried() {
    let vault = RustyVault::start().await;
    let executor = with_root(&vault);
    let mut db = task(json!({"path": "shop/db", "generate": {"password": {}}}));
    apply(&executor, &mut db).await.unwrap();
    vault.seal().await;
    let why = unavailable(apply(&executor, &mut db).await);
    assert!(why.contains("is sealed"), "{why}");
    vault.unseal().await;
    apply(&executor, &mut db).await.unwrap();
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
}
