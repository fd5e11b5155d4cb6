//! Secrets in Vault with crashes, concurrent writers, and missing permissions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::vault::{Auth, Options};
use model::Secret;
use model::operation::Subject;
use port::{Fault, Operation, Task};
use serde_json::{Value, json};
use testing::vault::{Lost, ROOT, Rule};

use super::vault_secret::{apply, change, drift, executor, object, refused, task, unavailable};
use super::vault_secret_kv2::{PLACE, World};
use crate::fake::{Behavior, Fake, http};

fn with(mount: &str) -> Value {
    json!({
        "mount": mount, "path": "shop/db", "values": {"user": "shop"},
        "generate": {"password": {}, "pin": {"length": 6}},
        "certificate": {"role": "web", "common_name": "shop.example.test"},
    })
}

/// Crashes at that call, and returns as another server. Returns whether there was such a call.
async fn die_at(world: &World, task: &mut Task, nth: usize, how: Lost) -> bool {
    world.vault.lose(nth, how);
    let _ = world.executor().apply(task).await;
    let was_lost = !world.vault.has_pending_loss();
    world.vault.lose(usize::MAX / 2, Lost::Before);
    task.fence += 1;
    was_lost
}

#[tokio::test]
async fn apply_of_a_crashed_server_is_finished_by_the_next() {
    for (mount, how) in [
        ("secret", Lost::Before),
        ("secret", Lost::After),
        ("kv", Lost::Before),
        ("kv", Lost::After),
    ] {
        let place = format!("{mount}/shop/db");
        for nth in 0.. {
            let world = World::new().await;
            let mut db = task(with(mount));
            let was_lost = die_at(&world, &mut db, nth, how).await;
            let before = world.vault.secret(&place);
            let before = before.and_then(|values| values.get("password").cloned());
            apply(&world.executor(), &mut db).await.unwrap();
            let made = world.vault.secret(&place).unwrap();
            if before.is_some() {
                assert_eq!(Some(&made["password"]), before.as_ref(), "{mount}, {how:?} {nth}");
            }
            assert_eq!(drift(&world.executor(), &db).await, Vec::<String>::new());
            apply(&world.executor(), &mut db).await.unwrap();
            assert_eq!(world.vault.secret(&place).unwrap()["password"], made["password"]);
            assert!(nth < 50, "it never ends");
            if !was_lost {
                break;
            }
        }
    }
}

#[tokio::test]
async fn change_and_destroy_of_a_crashed_server_are_finished_by_the_next() {
    for (mount, how, is_key_kept) in [
        ("secret", Lost::After, true),
        ("secret", Lost::After, false),
        ("secret", Lost::Before, true),
        ("kv", Lost::After, true),
    ] {
        let place = format!("{mount}/shop/db");
        for nth in 0.. {
            let world = World::new().await;
            let mut db = task(with(mount));
            apply(&world.executor(), &mut db).await.unwrap();
            if !is_key_kept {
                db.persisted.clear();
            }
            let first = world.vault.secret(&place).unwrap();
            let mut next = with(mount);
            next["generate"]["pin"]["length"] = json!(8);
            next["certificate"]["common_name"] = json!("new.example.test");
            change(&mut db, next);
            let was_lost = die_at(&world, &mut db, nth, how).await;
            apply(&world.executor(), &mut db).await.unwrap();
            let second = world.vault.secret(&place).unwrap();
            assert_eq!(second["password"], first["password"], "{mount}, {how:?} {nth}");
            assert_eq!(second["pin"].as_str().unwrap().len(), 8);
            assert_eq!(drift(&world.executor(), &db).await, Vec::<String>::new());
            let revoked = world.vault.revoked();
            assert!(revoked.contains(&"0a:01".into()), "{mount}, {how:?} {nth}: {revoked:?}");
            let serial = second["serial_number"].as_str().unwrap().to_owned();
            assert!(!revoked.contains(&serial), "the current certificate is valid");

            world.vault.lose(nth, how);
            let _ = world.executor().destroy(&db).await;
            world.vault.lose(usize::MAX / 2, Lost::Before);
            world.executor().destroy(&db).await.unwrap();
            assert_eq!(world.vault.paths(), Vec::<String>::new());
            assert!(world.vault.revoked().contains(&serial));
            assert!(nth < 50, "it never ends");
            if !was_lost {
                break;
            }
        }
    }
}

#[tokio::test]
async fn adopted_values_are_retained_after_a_crash() {
    for nth in 0.. {
        let world = World::new().await;
        world.vault.put(PLACE, &json!({"password": "old", "host": "db1"}));
        let mut db = task(json!({"path": "shop/db", "generate": {"password": {}, "salt": {}}}));
        db.outputs = world.executor().adopt(&db, "shop/db").await.unwrap().outputs;
        let was_lost = die_at(&world, &mut db, nth, Lost::After).await;
        db.outputs = world.executor().adopt(&db, "shop/db").await.unwrap().outputs;
        apply(&world.executor(), &mut db).await.unwrap();
        assert_eq!(world.value("password").unwrap(), "old", "{nth}");
        assert_eq!(world.value("salt").unwrap().len(), 32);
        assert_eq!(drift(&world.executor(), &db).await, Vec::<String>::new());
        if !was_lost {
            break;
        }
    }
}

/// Applies the second resource while the first waits before one of its calls. Returns both results;
/// none if the first has no such call.
async fn overtake(
    world: &World,
    nth: usize,
    first: &mut Task,
    second: &mut Task,
) -> Option<(Result<(), String>, Result<(), String>)> {
    let (one, two) = (world.executor(), world.executor());
    let hold = world.vault.hold(nth);
    let mut slow = Box::pin(settle(&one, first));
    tokio::select! {
        _ = &mut slow => return None,
        () = hold.arrived() => {}
    }
    let fast = settle(&two, second).await;
    hold.release();
    Some((slow.await, fast))
}

#[tokio::test]
async fn one_of_two_resources_with_the_same_path_is_refused() {
    for nth in 0.. {
        let world = World::new().await;
        let (mut one, mut two) = (task(with("secret")), task(with("secret")));
        two.id = Subject::Resource("9m4e2mr0ui3e8a215n5g".parse().unwrap());
        let ends = overtake(&world, nth, &mut one, &mut two).await;
        let (winner, why) = match ends {
            None => break,
            Some((Ok(()), Err(why))) => (&one, why),
            Some((Err(why), Ok(()))) => (&two, why),
            other => panic!("{nth}: {other:?}"),
        };
        assert!(why.contains(&format!("belongs to the resource {}", winner.id)), "{nth}: {why}");
        assert_eq!(drift(&world.executor(), winner).await, Vec::<String>::new(), "{nth}");
        assert!(nth < 50, "it never ends");
    }
}

/// Applies until it succeeds or is refused.
async fn settle(executor: &adapters::vault::VaultSecrets, task: &mut Task) -> Result<(), String> {
    for _ in 0..20 {
        match apply(executor, task).await {
            Ok(_) => return Ok(()),
            Err(Fault::Unavailable(why)) => {
                assert!(why.contains("was changed concurrently"), "{why}");
            }
            Err(other) => return Err(other.to_string()),
        }
    }
    panic!("it never settles");
}

#[tokio::test]
async fn newer_server_wins_over_an_older_one() {
    for nth in 0.. {
        let world = World::new().await;
        let mut old = task(with("secret"));
        apply(&world.executor(), &mut old).await.unwrap();
        let password = world.value("password");
        let mut next = with("secret");
        next["generate"]["pin"]["length"] = json!(8);
        next["certificate"]["common_name"] = json!("new.example.test");
        change(&mut old, next);
        let mut new = old.clone();
        new.fence += 1;
        let Some((_, newer)) = overtake(&world, nth, &mut old, &mut new).await else { break };
        newer.unwrap();
        assert_eq!(drift(&world.executor(), &new).await, Vec::<String>::new(), "{nth}");
        assert_eq!(world.value("password"), password, "{nth}");
        let serial = world.value("serial_number").unwrap();
        assert!(!world.vault.revoked().contains(&serial), "{nth}: the current one is valid");
        let why = refused(apply(&world.executor(), &mut old).await);
        assert!(why.contains("was taken over by another Paddock server"), "{why}");
        assert!(nth < 50, "it never ends");
    }
}

#[tokio::test]
async fn replaced_server_changes_nothing() {
    for mount in ["secret", "kv"] {
        let world = World::new().await;
        let (executor, mut db) = (world.executor(), task(with(mount)));
        apply(&executor, &mut db).await.unwrap();
        let stale = world.vault.custom_metadata(PLACE);
        let mut late = db.clone();
        db.fence += 1;
        db.key.push('+');
        apply(&executor, &mut db).await.unwrap();
        let place = format!("{mount}/shop/db");
        let made = world.vault.secret(&place);
        // Its delayed write arrives.
        for (key, value) in stale {
            world.vault.set_custom_metadata(PLACE, &key, value.as_str().unwrap());
        }
        let message = "was taken over by another Paddock server";
        change(&mut late, json!({"mount": mount, "path": "shop/db"}));
        assert!(refused(apply(&executor, &mut late).await).contains(message));
        assert!(refused(executor.destroy(&late).await).contains(message));
        assert_eq!(world.vault.secret(&place), made);
        assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
        if mount == "kv" {
            world.vault.delete(PLACE);
        }
    }
}

#[tokio::test]
async fn concurrent_external_change_is_retried_and_not_lost() {
    let mut conflicts = 0;
    // The calls of the first apply, and the reads of the second.
    for nth in 0..8 {
        let world = World::new().await;
        let mut db = task(with("secret"));
        apply(&world.executor(), &mut db).await.unwrap();
        let mut changed = world.vault.secret(PLACE).unwrap();
        changed["password"] = json!("hunter2");
        changed.insert("more".into(), json!("x"));
        let mut next = with("secret");
        next["generate"]["pin"]["length"] = json!(8);
        change(&mut db, next);
        world.vault.put_before(nth, PLACE, &changed.into());
        let executor = world.executor();
        if let Err(fault) = apply(&executor, &mut db).await {
            let why = unavailable(Err::<(), _>(fault));
            assert!(
                why.contains("vault:secret/shop/db in ") && why.contains("concurrently"),
                "{why}"
            );
            conflicts += 1;
        }
        apply(&executor, &mut db).await.unwrap();
        assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
        let last = world.vault.secret(PLACE).unwrap();
        assert_ne!(last["password"], "hunter2");
        if world.vault.versions(PLACE) > 3 {
            assert_eq!(last["more"], "x", "fields of others remain: {nth}");
        }
    }
    assert!(conflicts > 0, "no call had a conflict");
}

#[tokio::test]
async fn overwrite_in_version_1_is_detected() {
    let world = World::new().await;
    let (executor, mut db) = (
        world.executor(),
        task(json!({
            "mount": "kv", "path": "shop/db", "generate": {"password": {}},
        })),
    );
    apply(&executor, &mut db).await.unwrap();
    change(&mut db, json!({"mount": "kv", "path": "shop/db", "generate": {"salt": {}}}));
    // It plans, reads, writes, and reads back.
    world.vault.put_before(3, "kv/shop/db", &json!({"password": "hunter2"}));
    let why = unavailable(apply(&executor, &mut db).await);
    assert!(why.contains("vault:kv/shop/db in ") && why.contains("concurrently"), "{why}");
    // This resource created it, so its mark is restored; fields of others remain.
    apply(&executor, &mut db).await.unwrap();
    let made = world.vault.secret("kv/shop/db").unwrap();
    assert_eq!((&made["password"], made["salt"].as_str().unwrap().len()), (&json!("hunter2"), 32));
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
}

/// Deletes all custom metadata, as an operator does by hand.
async fn delete_custom_metadata(world: &World) {
    let url = format!("{}/v1/secret/metadata/shop/db", world.vault.address());
    let request = http().post(url).header("x-vault-token", ROOT);
    let reply = request.body(json!({"custom_metadata": {}}).to_string()).send().await.unwrap();
    assert!(reply.status().is_success(), "{reply:?}");
}

#[tokio::test]
async fn deleted_mark_is_restored_by_its_owner_alone() {
    for mount in ["secret", "kv"] {
        let (world, place) = (World::new().await, format!("{mount}/shop/db"));
        let (executor, mut db) = (world.executor(), task(with(mount)));
        apply(&executor, &mut db).await.unwrap();
        let mut values = world.vault.secret(&place).unwrap();
        let first = values.clone();
        values.remove(".paddock");
        values["pin"] = json!("not a pin");
        world.vault.put(&place, &values.into());
        if mount == "secret" {
            delete_custom_metadata(&world).await;
        }
        assert_eq!(drift(&executor, &db).await, [format!("owner: {} → nothing", db.id)]);
        let mut other = task(with(mount));
        other.id = Subject::Resource("9m4e2mr0ui3e8a215n5g".parse().unwrap());
        for elsewhere in [None, Some(object(json!({"mount": mount, "path": "shop/web"})))] {
            other.applied = elsewhere;
            let why = refused(executor.apply(&other).await);
            assert!(why.contains("was not created by Paddock"), "{why}");
        }
        apply(&executor, &mut db).await.unwrap();
        let made = world.vault.secret(&place).unwrap();
        assert_eq!(made["password"], first["password"], "it may be in use");
        assert_eq!(made["pin"].as_str().unwrap().len(), 6);
        assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
        executor.destroy(&db).await.unwrap();
        assert_eq!(world.vault.paths(), Vec::<String>::new());
    }
}

/// A first attempt that crashes at that call, after it was persisted. Returns whether there was
/// such a call.
async fn begin(world: &World, task: &mut Task, nth: usize) -> bool {
    let executor = world.executor();
    executor.plan(task).await.unwrap();
    task.persisted.extend(executor.persist(task).await.unwrap());
    die_at(world, task, nth, Lost::After).await
}

#[tokio::test]
async fn crashed_first_attempt_is_cleaned_up_by_its_place_alone() {
    for (mount, is_kept) in [("secret", true), ("secret", false), ("kv", true)] {
        for nth in 0.. {
            let (world, mut db) = (World::new().await, task(with(mount)));
            let was_lost = begin(&world, &mut db, nth).await;
            db.with = if is_kept {
                let generate = json!({"password": {"length": "{{ parameters.length }}"}});
                object(json!({"path": "{{ environment.name }}/db", "generate": generate}))
            } else {
                db.persisted.clear();
                object(json!({"path": "shop/db", "generate": "{{ parameters.all }}"}))
            };
            world.executor().destroy(&db).await.unwrap();
            assert_eq!(world.vault.paths(), Vec::<String>::new(), "{mount}, {is_kept}, {nth}");
            assert!(nth < 50, "it never ends");
            if !was_lost {
                break;
            }
        }
    }
}

#[tokio::test]
async fn first_attempt_in_another_place_is_cleaned_up() {
    for nth in 0.. {
        let (world, mut db) = (World::new().await, task(with("secret")));
        let was_lost = begin(&world, &mut db, nth).await;
        let mut next = with("secret");
        next["path"] = json!("shop/other");
        change(&mut db, next);
        apply(&world.executor(), &mut db).await.unwrap();
        assert_eq!(world.vault.paths(), ["secret/shop/other"], "{nth}");
        world.executor().destroy(&db).await.unwrap();
        assert_eq!(world.vault.paths(), Vec::<String>::new(), "{nth}");
        if !was_lost {
            break;
        }
    }
}

#[tokio::test]
async fn first_attempt_without_read_permission_blocks_nothing() {
    let world = World::new().await;
    let all = "create read update patch delete";
    let rules = ["secret/data/shop/", "secret/metadata/shop/", "kv/"].map(|at| Rule::new(at, all));
    world.vault.create_token("l1mited", &rules, 0, false);
    for wrong in [json!({"path": "hidden/db"}), json!({"path": "db", "mount": "nowhere"})] {
        let (limited, mut db) = (world.with_token("l1mited"), task(wrong));
        refused(limited.plan(&db).await);
        db.persisted.extend(limited.persist(&db).await.unwrap());
        assert!(!db.persisted.contains_key("places"));
        // Without authentication nothing is known about the place.
        refused(world.with_token("b0gus").destroy(&db).await);
        limited.destroy(&db).await.unwrap();
        change(&mut db, json!({"path": "shop/db", "generate": {"password": {}}}));
        apply(&limited, &mut db).await.unwrap();
        limited.destroy(&db).await.unwrap();
        assert_eq!(world.vault.paths(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn kv_version_is_not_guessed_from_an_error() {
    let mounts = Arc::new(Mutex::new((500, "1")));
    let shared = mounts.clone();
    let fake = Fake::start(move |request| {
        let (status, version) = *shared.lock().unwrap();
        let invalid = "Invalid path for a versioned K/V secrets engine.";
        match &*request.path {
            "/v1/auth/token/lookup-self" => (200, json!({"data": {"ttl": 0}})),
            "/v1/sys/internal/ui/mounts/kv" if status == 200 => {
                let options = json!({"version": version});
                (200, json!({"data": {"path": "kv/", "type": "kv", "options": options}}))
            }
            "/v1/sys/internal/ui/mounts/kv" => (status, json!({"errors": ["it hurts"]})),
            "/v1/kv/shop/db" if version == "2" => (404, json!({"warnings": [invalid]})),
            _ => (404, json!({"errors": []})),
        }
    });
    let fake = fake.await;
    let sign_in = Auth::Token(Secret::new("t0ken"));
    let executor = executor(Options::new(&fake.address, sign_in), &Arc::default());
    let db = task(json!({"mount": "kv", "path": "shop/db"}));
    let set = |status, version| *mounts.lock().unwrap() = (status, version);
    for status in [500, 502, 429] {
        set(status, "1");
        assert!(unavailable(executor.plan(&db).await).contains("it hurts"));
    }
    set(200, "1");
    executor.plan(&db).await.unwrap();
    // The mount is upgraded meanwhile.
    set(200, "2");
    let why = unavailable(executor.plan(&db).await);
    assert!(why.contains("mount kv") && why.contains("KV version 2"), "{why}");
    executor.plan(&db).await.unwrap();
    assert_eq!(fake.received().last().unwrap(), "GET /v1/kv/data/shop/db");
}

#[tokio::test]
async fn missing_mount_is_reported() {
    for is_told in [true, false] {
        let world = World::new().await;
        world.vault.set_reports_mounts(is_told);
        let why = refused(world.executor().plan(&task(with("nowhere"))).await);
        assert!(why.contains("has no mount nowhere"), "{why}");
    }
}

#[tokio::test]
async fn fake_vault_refuses_what_vault_refuses() {
    let world = World::new().await;
    for (path, body) in [
        ("secret/metadata/a", json!({"custom_metadata": {"a": "no\u{a0}break"}})),
        ("secret/metadata/a", json!({"custom_metadata": {"zero\u{200d}width": "a"}})),
        ("pki/revoke", json!({"serial_number": "0a:01"})),
    ] {
        let url = format!("{}/v1/{path}", world.vault.address());
        let request = http().post(url).header("x-vault-token", ROOT).body(body.to_string());
        assert_eq!(request.send().await.unwrap().status(), 400, "{body}");
    }
}

#[tokio::test]
async fn missing_capability_is_reported_with_its_path() {
    let world = World::new().await;
    let all = "create read update patch delete";
    let mut db = task(with("secret"));
    let cases: [(&[Rule], &str); 6] = [
        (&[], "hides the mount secret"),
        (&[Rule::new("secret/metadata/", all)], "read secret/data/shop/db. Permit read on"),
        (
            &[Rule::new("secret/data/", "read"), Rule::new("secret/metadata/", all)],
            "write secret/data/shop/db. Permit create and update on secret/data/shop/db",
        ),
        (&[Rule::new("secret/data/", all)], "write pki/issue/web. Permit create and update on"),
        (
            &[Rule::new("secret/data/", all), Rule::new("pki/", all)],
            "write secret/metadata/shop/db. Permit create and update on secret/metadata/shop/db",
        ),
        (
            &[Rule::new("secret/", "create read update"), Rule::new("pki/", all)],
            "delete secret/metadata/shop/db. Permit delete on secret/metadata/shop/db",
        ),
    ];
    for (i, (rules, message)) in cases.into_iter().enumerate() {
        world.vault.create_token("l1mited", rules, 0, false);
        let limited = world.with_token("l1mited");
        let why = match apply(&limited, &mut db).await {
            Ok(_) => refused(limited.destroy(&db).await),
            other => refused(other),
        };
        assert!(why.contains(message) && !why.contains("l1mited"), "{i}: {why}");
    }
    // Neither `patch` nor the permission to revoke certificates is required.
    let rules = [Rule::new("secret/", "create read update delete"), Rule::new("pki/issue/", all)];
    world.vault.create_token("l1mited", &rules, 0, false);
    let limited = world.with_token("l1mited");
    apply(&limited, &mut db).await.unwrap();
    limited.destroy(&db).await.unwrap();
    let log = db.log.drain().join("\n");
    assert!(log.contains("was not revoked") && log.contains("pki/revoke"), "{log}");
    assert_eq!(world.vault.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn sealed_or_unreachable_vault_is_retried() {
    let world = World::new().await;
    let (executor, mut db) = (world.executor(), task(with("secret")));
    apply(&executor, &mut db).await.unwrap();
    world.vault.seal(true);
    for why in [
        unavailable(executor.plan(&db).await),
        unavailable(executor.apply(&db).await),
        unavailable(executor.observe(&db).await),
        unavailable(executor.destroy(&db).await),
        unavailable(executor.adopt(&db, "shop/db").await),
    ] {
        assert!(why.contains("is sealed. Unseal it"), "{why}");
    }
    world.vault.seal(false);
    apply(&executor, &mut db).await.unwrap();
    drop(world);
    let why = unavailable(executor.apply(&db).await);
    assert!(why.contains("is unreachable"), "{why}");
}

#[tokio::test]
async fn slow_or_failing_vault_is_retried() {
    let fake = Fake::start(|_| (404, json!({"errors": []}))).await;
    for (behavior, message) in [
        (Behavior::Slow, "did not answer within"),
        (Behavior::Garbage, "invalid response"),
        (Behavior::Endless, "larger than 1 MiB"),
        (Behavior::Status(503), "503 (it hurts)"),
        (Behavior::Status(500), "500"),
        (Behavior::Status(429), "429"),
        (Behavior::Status(307), "307"),
    ] {
        fake.set(behavior);
        let limit = Duration::from_millis(if behavior == Behavior::Slow { 300 } else { 30_000 });
        let sign_in = Auth::Token(Secret::new("t0ken"));
        let options = Options { timeout: limit, ..Options::new(&fake.address, sign_in) };
        let executor = executor(options, &Arc::default());
        let db = task(with("secret"));
        for why in
            [unavailable(executor.apply(&db).await), unavailable(executor.destroy(&db).await)]
        {
            assert!(why.contains(message) && !why.contains("t0ken"), "{why}");
        }
    }
}

#[tokio::test]
async fn invalid_specs_are_rejected_without_a_call() {
    let world = World::new().await;
    let executor = world.executor();
    let certificate = json!({"role": "web", "common_name": "a"});
    let keys: Value =
        (0..101).map(|i| (format!("k{i}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    for (with, message) in [
        (json!({"path": "/shop/db"}), "with.path: must be a path"),
        (json!({"path": "shop/../db"}), "with.path: must be a path"),
        (json!({"path": "db", "mount": "a//b"}), "with.mount: must be a path"),
        (json!({"path": "db", "generate": {"a": {"length": 0}}}), "with.generate.a.length"),
        (json!({"path": "db", "generate": {"a": {"alphabet": "xx"}}}), "with.generate.a.alphabet"),
        (json!({"path": "db", "values": {".paddock": "x"}}), "with.values..paddock: is reserved"),
        (
            json!({"path": "db", "generate": {".paddock": {}}}),
            "with.generate..paddock: is reserved",
        ),
        (json!({"path": "db", "values": {"": "x"}}), "must have 1 to 64 bytes"),
        (json!({"path": "db", "values": {"no\u{a0}break": "x"}}), "visible characters only"),
        (json!({"path": "db", "generate": {"zero\u{200d}width": {}}}), "visible characters only"),
        (
            json!({"path": "db", "certificate": {"role": "web", "common_name": "a\u{a0}b"}}),
            "with.certificate.common_name: must contain visible",
        ),
        (json!({"path": "db", "values": {"a#b": "x"}}), "must not contain #"),
        (
            json!({"path": "db", "values": {"a": "x".repeat(5000)}}),
            "with.values.a: must have at most",
        ),
        (json!({"path": "db", "values": keys}), "with.values: must have at most 100 keys"),
        (
            json!({"path": "db", "generate": {"private_key": {}}, "certificate": certificate}),
            "with.generate.private_key: is a field of the certificate",
        ),
    ] {
        let invalid = executor.validate(&object(with.clone()), &Arc::default()).unwrap_err();
        assert!(invalid.to_string().contains(message), "{with}: {invalid}");
    }
    assert_eq!(world.vault.request_lines(), Vec::<String>::new());
}
