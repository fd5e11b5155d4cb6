//! Secrets in Vault when something is lost, somebody else is faster, or Paddock may not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters::vault::{Options, SignIn};
use model::Secret;
use model::operation::Subject;
use port::{Fault, Operation, Task};
use serde_json::{Value, json};
use testing::vault::{Lost, ROOT, Rule};

use super::vault_secret::{apply, drift, executor, object, refused, task, told, unavailable};
use super::vault_secret_kv2::{PLACE, World};
use crate::fake::{Fake, Mood, http};

fn with(mount: &str) -> Value {
    json!({
        "mount": mount, "path": "shop/db", "values": {"user": "shop"},
        "generate": {"password": {}, "pin": {"length": 6}},
        "certificate": {"role": "web", "common_name": "shop.example.test"},
    })
}

/// Dies at that call, and comes back as another server. Was there such a call?
async fn die_at(world: &World, task: &mut Task, nth: usize, how: Lost) -> bool {
    world.vault.lose(nth, how);
    let _ = world.executor().apply(task).await;
    let was_lost = !world.vault.is_losing();
    world.vault.lose(usize::MAX / 2, Lost::Before);
    task.fence += 1;
    was_lost
}

#[tokio::test]
async fn a_server_that_dies_at_any_call_leaves_what_the_next_one_finishes() {
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
            let seen = world.vault.secret(&place);
            let seen = seen.and_then(|values| values.get("password").cloned());
            apply(&world.executor(), &mut db).await.unwrap();
            let made = world.vault.secret(&place).unwrap();
            if seen.is_some() {
                assert_eq!(Some(&made["password"]), seen.as_ref(), "{mount}, {how:?} {nth}");
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
async fn a_change_and_an_end_that_die_at_any_call_are_finished_too() {
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
                db.kept.clear();
            }
            let first = world.vault.secret(&place).unwrap();
            let mut change = with(mount);
            change["generate"]["pin"]["length"] = json!(8);
            change["certificate"]["common_name"] = json!("new.example.test");
            told(&mut db, change);
            let was_lost = die_at(&world, &mut db, nth, how).await;
            apply(&world.executor(), &mut db).await.unwrap();
            let second = world.vault.secret(&place).unwrap();
            assert_eq!(second["password"], first["password"], "{mount}, {how:?} {nth}");
            assert_eq!(second["pin"].as_str().unwrap().len(), 8);
            assert_eq!(drift(&world.executor(), &db).await, Vec::<String>::new());
            let revoked = world.vault.revoked();
            assert!(revoked.contains(&"0a:01".into()), "{mount}, {how:?} {nth}: {revoked:?}");
            let serial = second["serial_number"].as_str().unwrap().to_owned();
            assert!(!revoked.contains(&serial), "what is used is good");

            world.vault.lose(nth, how);
            let _ = world.executor().destroy(&db).await;
            world.vault.lose(usize::MAX / 2, Lost::Before);
            world.executor().destroy(&db).await.unwrap();
            assert_eq!(world.vault.places(), Vec::<String>::new());
            assert!(world.vault.revoked().contains(&serial));
            assert!(nth < 50, "it never ends");
            if !was_lost {
                break;
            }
        }
    }
}

#[tokio::test]
async fn what_is_taken_over_keeps_its_values_wherever_the_server_dies() {
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

/// Has the second resource be made while the first waits before one of its calls. How both ended; none
/// if the first has no such call.
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
async fn of_two_resources_with_the_same_path_one_is_refused_whenever_they_meet() {
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

/// Tries as long as it makes sense.
async fn settle(executor: &adapters::vault::Secrets, task: &mut Task) -> Result<(), String> {
    for _ in 0..20 {
        match apply(executor, task).await {
            Ok(_) => return Ok(()),
            Err(Fault::Unavailable(why)) => assert!(why.contains("somebody else has"), "{why}"),
            Err(other) => return Err(other.to_string()),
        }
    }
    panic!("it never settles");
}

#[tokio::test]
async fn two_servers_with_one_resource_end_with_what_the_newer_one_made() {
    for nth in 0.. {
        let world = World::new().await;
        let mut old = task(with("secret"));
        apply(&world.executor(), &mut old).await.unwrap();
        let password = world.value("password");
        let mut change = with("secret");
        change["generate"]["pin"]["length"] = json!(8);
        change["certificate"]["common_name"] = json!("new.example.test");
        told(&mut old, change);
        let mut new = old.clone();
        new.fence += 1;
        let Some((_, newer)) = overtake(&world, nth, &mut old, &mut new).await else { break };
        newer.unwrap();
        assert_eq!(drift(&world.executor(), &new).await, Vec::<String>::new(), "{nth}");
        assert_eq!(world.value("password"), password, "{nth}");
        let serial = world.value("serial_number").unwrap();
        assert!(!world.vault.revoked().contains(&serial), "{nth}: what is used is good");
        let why = refused(apply(&world.executor(), &mut old).await);
        assert!(why.contains("another server of Paddock has taken over"), "{why}");
        assert!(nth < 50, "it never ends");
    }
}

#[tokio::test]
async fn a_server_that_was_taken_over_changes_nothing_more() {
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
        // What it had been about to write arrives late.
        for (key, value) in stale {
            world.vault.set_custom_metadata(PLACE, &key, value.as_str().unwrap());
        }
        let sentence = "another server of Paddock has taken over";
        told(&mut late, json!({"mount": mount, "path": "shop/db"}));
        assert!(refused(apply(&executor, &mut late).await).contains(sentence));
        assert!(refused(executor.destroy(&late).await).contains(sentence));
        assert_eq!(world.vault.secret(&place), made);
        assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
        if mount == "kv" {
            world.vault.delete(PLACE);
        }
    }
}

#[tokio::test]
async fn what_changes_while_it_is_written_is_tried_again_and_not_lost() {
    let mut conflicts = 0;
    // As many calls as the first apply makes, and the looks of the second.
    for nth in 0..8 {
        let world = World::new().await;
        let mut db = task(with("secret"));
        apply(&world.executor(), &mut db).await.unwrap();
        let mut changed = world.vault.secret(PLACE).unwrap();
        changed["password"] = json!("hunter2");
        changed.insert("more".into(), json!("x"));
        let mut change = with("secret");
        change["generate"]["pin"]["length"] = json!(8);
        told(&mut db, change);
        world.vault.put_before(nth, PLACE, &changed.into());
        let executor = world.executor();
        if let Err(fault) = apply(&executor, &mut db).await {
            let why = unavailable(Err::<(), _>(fault));
            assert!(why.contains("somebody else has changed vault:secret/shop/db"), "{why}");
            conflicts += 1;
        }
        apply(&executor, &mut db).await.unwrap();
        assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
        let last = world.vault.secret(PLACE).unwrap();
        assert_ne!(last["password"], "hunter2");
        if world.vault.versions(PLACE) > 3 {
            assert_eq!(last["more"], "x", "what others add stays: {nth}");
        }
    }
    assert!(conflicts > 0, "none of the calls was overtaken");
}

#[tokio::test]
async fn who_is_overwritten_in_version_1_sees_it() {
    let world = World::new().await;
    let (executor, mut db) = (
        world.executor(),
        task(json!({
            "mount": "kv", "path": "shop/db", "generate": {"password": {}},
        })),
    );
    apply(&executor, &mut db).await.unwrap();
    told(&mut db, json!({"mount": "kv", "path": "shop/db", "generate": {"salt": {}}}));
    // It is planned, read, written, and read again.
    world.vault.put_before(3, "kv/shop/db", &json!({"password": "hunter2"}));
    let why = unavailable(apply(&executor, &mut db).await);
    assert!(why.contains("somebody else has changed vault:kv/shop/db"), "{why}");
    // It was made here, so that its mark is put back; what others have written stays.
    apply(&executor, &mut db).await.unwrap();
    let made = world.vault.secret("kv/shop/db").unwrap();
    assert_eq!((&made["password"], made["salt"].as_str().unwrap().len()), (&json!("hunter2"), 32));
    assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
}

/// Takes away all custom metadata, as somebody does by hand.
async fn forget_notes(world: &World) {
    let url = format!("{}/v1/secret/metadata/shop/db", world.vault.address());
    let request = http().post(url).header("x-vault-token", ROOT);
    let reply = request.body(json!({"custom_metadata": {}}).to_string()).send().await.unwrap();
    assert!(reply.status().is_success(), "{reply:?}");
}

#[tokio::test]
async fn a_mark_that_was_taken_away_is_put_back_by_whom_it_was_of_and_by_nobody_else() {
    for mount in ["secret", "kv"] {
        let (world, place) = (World::new().await, format!("{mount}/shop/db"));
        let (executor, mut db) = (world.executor(), task(with(mount)));
        apply(&executor, &mut db).await.unwrap();
        let mut values = world.vault.secret(&place).unwrap();
        let first = values.clone();
        values.remove(".paddock");
        values["pin"] = json!("that is none");
        world.vault.put(&place, &values.into());
        if mount == "secret" {
            forget_notes(&world).await;
        }
        assert_eq!(drift(&executor, &db).await, [format!("owner: {} → nothing", db.id)]);
        let mut other = task(with(mount));
        other.id = Subject::Resource("9m4e2mr0ui3e8a215n5g".parse().unwrap());
        for elsewhere in [None, Some(object(json!({"mount": mount, "path": "shop/web"})))] {
            other.applied = elsewhere;
            let why = refused(executor.apply(&other).await);
            assert!(why.contains("was not made by Paddock"), "{why}");
        }
        apply(&executor, &mut db).await.unwrap();
        let made = world.vault.secret(&place).unwrap();
        assert_eq!(made["password"], first["password"], "others use it");
        assert_eq!(made["pin"].as_str().unwrap().len(), 6);
        assert_eq!(drift(&executor, &db).await, Vec::<String>::new());
        executor.destroy(&db).await.unwrap();
        assert_eq!(world.vault.places(), Vec::<String>::new());
    }
}

/// A first try that dies at that call; what it had Paddock keep before is kept. Was there such a call?
async fn begin(world: &World, task: &mut Task, nth: usize) -> bool {
    let executor = world.executor();
    executor.plan(task).await.unwrap();
    task.kept.extend(executor.keep(task).await.unwrap());
    die_at(world, task, nth, Lost::After).await
}

#[tokio::test]
async fn a_first_try_that_died_is_taken_away_though_nothing_but_its_place_is_known() {
    for (mount, is_kept) in [("secret", true), ("secret", false), ("kv", true)] {
        for nth in 0.. {
            let (world, mut db) = (World::new().await, task(with(mount)));
            let was_lost = begin(&world, &mut db, nth).await;
            db.with = if is_kept {
                let generate = json!({"password": {"length": "{{ parameters.length }}"}});
                object(json!({"path": "{{ environment.name }}/db", "generate": generate}))
            } else {
                db.kept.clear();
                object(json!({"path": "shop/db", "generate": "{{ parameters.all }}"}))
            };
            world.executor().destroy(&db).await.unwrap();
            assert_eq!(world.vault.places(), Vec::<String>::new(), "{mount}, {is_kept}, {nth}");
            assert!(nth < 50, "it never ends");
            if !was_lost {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_first_try_elsewhere_is_not_forgotten() {
    for nth in 0.. {
        let (world, mut db) = (World::new().await, task(with("secret")));
        let was_lost = begin(&world, &mut db, nth).await;
        let mut change = with("secret");
        change["path"] = json!("shop/other");
        told(&mut db, change);
        apply(&world.executor(), &mut db).await.unwrap();
        assert_eq!(world.vault.places(), ["secret/shop/other"], "{nth}");
        world.executor().destroy(&db).await.unwrap();
        assert_eq!(world.vault.places(), Vec::<String>::new(), "{nth}");
        if !was_lost {
            break;
        }
    }
}

#[tokio::test]
async fn a_first_try_where_nothing_may_be_seen_holds_up_neither_the_next_nor_the_end() {
    let world = World::new().await;
    let all = "create read update patch delete";
    let rules = ["secret/data/shop/", "secret/metadata/shop/", "kv/"].map(|at| Rule::new(at, all));
    world.vault.make_token("l1mited", &rules, 0, false);
    for wrong in [json!({"path": "hidden/db"}), json!({"path": "db", "mount": "nowhere"})] {
        let (limited, mut db) = (world.with_token("l1mited"), task(wrong));
        refused(limited.plan(&db).await);
        db.kept.extend(limited.keep(&db).await.unwrap());
        assert!(!db.kept.contains_key("places"));
        // Who is not signed in at all can't say that.
        refused(world.with_token("b0gus").destroy(&db).await);
        limited.destroy(&db).await.unwrap();
        told(&mut db, json!({"path": "shop/db", "generate": {"password": {}}}));
        apply(&limited, &mut db).await.unwrap();
        limited.destroy(&db).await.unwrap();
        assert_eq!(world.vault.places(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn the_version_of_a_mount_is_not_guessed_from_an_answer_that_is_none() {
    let mounts = Arc::new(Mutex::new((500, "1")));
    let shared = mounts.clone();
    let fake = Fake::start(move |asked| {
        let (status, version) = *shared.lock().unwrap();
        let invalid = "Invalid path for a versioned K/V secrets engine.";
        match &*asked.path {
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
    let sign_in = SignIn::Token(Secret::new("t0ken"));
    let executor = executor(Options::new(&fake.address, sign_in), &Arc::default());
    let db = task(json!({"mount": "kv", "path": "shop/db"}));
    let set = |status, version| *mounts.lock().unwrap() = (status, version);
    for status in [500, 502, 429] {
        set(status, "1");
        assert!(unavailable(executor.plan(&db).await).contains("it hurts"));
    }
    set(200, "1");
    executor.plan(&db).await.unwrap();
    // It is upgraded meanwhile.
    set(200, "2");
    let why = unavailable(executor.plan(&db).await);
    assert!(why.contains("the mount kv") && why.contains("has version 2 of KV"), "{why}");
    executor.plan(&db).await.unwrap();
    assert_eq!(fake.asked().last().unwrap(), "GET /v1/kv/data/shop/db");
}

#[tokio::test]
async fn a_mount_that_is_not_there_is_a_sentence() {
    for is_told in [true, false] {
        let world = World::new().await;
        world.vault.tell_mounts(is_told);
        let why = refused(world.executor().plan(&task(with("nowhere"))).await);
        assert!(why.contains("has no mount nowhere"), "{why}");
    }
}

#[tokio::test]
async fn the_vault_of_these_tests_refuses_what_vault_refuses() {
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
async fn what_a_policy_does_not_allow_is_a_sentence_with_path_and_capability() {
    let world = World::new().await;
    let all = "create read update patch delete";
    let mut db = task(with("secret"));
    let cases: [(&[Rule], &str); 6] = [
        (&[], "shows Paddock no mount secret"),
        (&[Rule::new("secret/metadata/", all)], "read secret/data/shop/db: allow read on"),
        (
            &[Rule::new("secret/data/", "read"), Rule::new("secret/metadata/", all)],
            "write secret/data/shop/db: allow create and update on secret/data/shop/db",
        ),
        (&[Rule::new("secret/data/", all)], "write pki/issue/web: allow create and update on"),
        (
            &[Rule::new("secret/data/", all), Rule::new("pki/", all)],
            "write secret/metadata/shop/db: allow create and update on secret/metadata/shop/db",
        ),
        (
            &[Rule::new("secret/", "create read update"), Rule::new("pki/", all)],
            "delete secret/metadata/shop/db: allow delete on secret/metadata/shop/db",
        ),
    ];
    for (i, (rules, sentence)) in cases.into_iter().enumerate() {
        world.vault.make_token("l1mited", rules, 0, false);
        let limited = world.with_token("l1mited");
        let why = match apply(&limited, &mut db).await {
            Ok(_) => refused(limited.destroy(&db).await),
            other => refused(other),
        };
        assert!(why.contains(sentence) && !why.contains("l1mited"), "{i}: {why}");
    }
    // Where a policy has no `patch`, and where certificates can't be revoked, it works all the same.
    let rules = [Rule::new("secret/", "create read update delete"), Rule::new("pki/issue/", all)];
    world.vault.make_token("l1mited", &rules, 0, false);
    let limited = world.with_token("l1mited");
    apply(&limited, &mut db).await.unwrap();
    limited.destroy(&db).await.unwrap();
    let said = db.log.take().join("\n");
    assert!(said.contains("is not revoked") && said.contains("pki/revoke"), "{said}");
    assert_eq!(world.vault.places(), Vec::<String>::new());
}

#[tokio::test]
async fn a_vault_that_is_sealed_or_gone_is_waited_for() {
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
        assert!(why.contains("is sealed: unseal it"), "{why}");
    }
    world.vault.seal(false);
    apply(&executor, &mut db).await.unwrap();
    drop(world);
    let why = unavailable(executor.apply(&db).await);
    assert!(why.contains("can't be reached"), "{why}");
}

#[tokio::test]
async fn a_vault_that_is_slow_or_confused_is_waited_for() {
    let fake = Fake::start(|_| (404, json!({"errors": []}))).await;
    for (mood, sentence) in [
        (Mood::Slow, "did not answer within"),
        (Mood::Garbage, "make no sense"),
        (Mood::Endless, "no end"),
        (Mood::Status(503), "503 (it hurts)"),
        (Mood::Status(500), "500"),
        (Mood::Status(429), "429"),
        (Mood::Status(307), "307"),
    ] {
        fake.be(mood);
        let limit = Duration::from_millis(if mood == Mood::Slow { 300 } else { 30_000 });
        let sign_in = SignIn::Token(Secret::new("t0ken"));
        let options = Options { limit, ..Options::new(&fake.address, sign_in) };
        let executor = executor(options, &Arc::default());
        let db = task(with("secret"));
        for why in
            [unavailable(executor.apply(&db).await), unavailable(executor.destroy(&db).await)]
        {
            assert!(why.contains(sentence) && !why.contains("t0ken"), "{why}");
        }
    }
}

#[tokio::test]
async fn what_can_not_be_told_is_refused_before_anything_is_asked() {
    let world = World::new().await;
    let executor = world.executor();
    let certificate = json!({"role": "web", "common_name": "a"});
    let keys: Value =
        (0..101).map(|i| (format!("k{i}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    for (with, sentence) in [
        (json!({"path": "/shop/db"}), "with.path: must be a path"),
        (json!({"path": "shop/../db"}), "with.path: must be a path"),
        (json!({"path": "db", "mount": "a//b"}), "with.mount: must be a path"),
        (json!({"path": "db", "generate": {"a": {"length": 0}}}), "with.generate.a.length"),
        (json!({"path": "db", "generate": {"a": {"alphabet": "xx"}}}), "with.generate.a.alphabet"),
        (
            json!({"path": "db", "values": {".paddock": "x"}}),
            "with.values..paddock: is where Paddock",
        ),
        (json!({"path": "db", "generate": {".paddock": {}}}), "with.generate..paddock: is where"),
        (json!({"path": "db", "values": {"": "x"}}), "from 1 to 64 bytes"),
        (json!({"path": "db", "values": {"no\u{a0}break": "x"}}), "all of them visible"),
        (json!({"path": "db", "generate": {"zero\u{200d}width": {}}}), "all of them visible"),
        (
            json!({"path": "db", "certificate": {"role": "web", "common_name": "a\u{a0}b"}}),
            "with.certificate.common_name: must have visible",
        ),
        (json!({"path": "db", "values": {"a#b": "x"}}), "must not have #"),
        (
            json!({"path": "db", "values": {"a": "x".repeat(5000)}}),
            "with.values.a: must have at most",
        ),
        (json!({"path": "db", "values": keys}), "with.values: has more than 100 keys"),
        (
            json!({"path": "db", "generate": {"private_key": {}}, "certificate": certificate}),
            "with.generate.private_key: is part of the certificate",
        ),
    ] {
        let invalid = executor.validate(&object(with.clone()), &Arc::default()).unwrap_err();
        assert!(invalid.to_string().contains(sentence), "{with}: {invalid}");
    }
    assert_eq!(world.vault.lines(), Vec::<String>::new());
}
