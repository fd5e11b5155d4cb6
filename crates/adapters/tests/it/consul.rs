//! Keys in a real Consul: created, changed, drifted, repaired, deleted.

use model::resource::Difference;
use port::{Observed, Operation, Progress, Task};
use serde_json::{Value, json};
use testing::programs::Consul;

use crate::kv::{
    applied, apply, destroy, done, executor, many, next, object, refused, taken_over, task, values,
};

fn difference(field: &str, made: Value, found: Value) -> Difference {
    let some = |value: Value| (!value.is_null()).then_some(value);
    Difference { field: field.into(), made: some(made), found: some(found) }
}

async fn value(consul: &Consul, key: &str) -> Option<String> {
    consul.get(key).await.map(|pair| pair.value)
}

#[tokio::test]
async fn change_writes_only_changed_keys() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let first = json!({"host": "db.example.com", "port": 5432, "tls": {"on": true}, "old": "x"});
    let one = task(10, &values("shop/", &first));
    let Progress::Done(planned) = kv.plan(&one).await.unwrap() else { panic!("at once") };
    assert_eq!(planned[0], difference("host", json!("db.example.com"), Value::Null));
    assert_eq!(planned.len(), 4);

    let given = apply(&kv, &one).await.outputs;
    let keys = json!(["shop/host", "shop/old", "shop/port", "shop/tls"]);
    let expected = json!({"prefix": "shop/", "datacenter": null, "keys": keys});
    assert_eq!(given, object(&expected));
    assert_eq!(value(&consul, "shop/host").await.unwrap(), "db.example.com");
    assert_eq!(value(&consul, "shop/port").await.unwrap(), "5432");
    assert_eq!(value(&consul, "shop/tls").await.unwrap(), r#"{"on":true}"#);
    assert!(one.log.drain().contains(&"shop/: 4 keys written, 0 deleted.".to_owned()));

    let before = consul.tree("shop/").await;
    apply(&kv, &one).await;
    assert_eq!(consul.tree("shop/").await, before, "unchanged keys are not written");

    let second = json!({"host": "db.example.com", "port": 5433, "tls": {"on": true}, "new": ""});
    let two = next(&one, &values("shop/", &second));
    let Progress::Done(planned) = kv.plan(&two).await.unwrap() else { panic!("at once") };
    assert_eq!(
        planned,
        [
            difference("new", json!(""), Value::Null),
            difference("port", json!(5433), json!(5432)),
            difference("old", Value::Null, json!("x")),
        ]
    );
    apply(&kv, &two).await;
    for pair in consul.tree("shop/").await {
        let was = before.iter().find(|old| old.key == pair.key);
        let is_untouched = ["shop/host", "shop/tls"].contains(&&*pair.key);
        assert_eq!(was == Some(&pair), is_untouched, "{pair:?} was {was:?}");
    }
    assert_eq!(value(&consul, "shop/old").await, None);
    assert_eq!(kv.observe(&applied(&two)).await, Ok(Progress::Done(Observed::default())));
}

#[tokio::test]
async fn external_changes_are_detected_and_repaired() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let with = values("shop/", &json!({"a": "1", "b": 2, "c": "3", "d": "4"}));
    let one = task(10, &with);
    apply(&kv, &one).await;
    consul.put("shop/a", "changed").await;
    consul.put("shop/b", "7").await;
    consul.delete("shop/c").await;
    // Written, but with the same value.
    consul.delete("shop/d").await;
    consul.put("shop/d", "4").await;
    consul.put("shop/more/x", "theirs").await;
    let one = applied(&one);
    let observed = done(kv.observe(&one).await.unwrap());
    assert_eq!(
        observed.drift,
        [
            difference("a", json!("1"), json!("changed")),
            difference("b", json!(2), json!(7)),
            difference("c", json!("3"), Value::Null),
        ]
    );
    assert_eq!(observed.unexpected, ["shop/more/x"]);

    apply(&kv, &one).await;
    let log = one.log.drain().join("\n");
    assert!(log.contains("Overwriting a, which others changed (index "), "{log}");
    let observed = done(kv.observe(&one).await.unwrap());
    assert_eq!((observed.drift, observed.unexpected), (Vec::new(), vec!["shop/more/x".to_owned()]));
    for (key, is) in [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("more/x", "theirs")] {
        assert_eq!(value(&consul, &format!("shop/{key}")).await.as_deref(), Some(is), "{key}");
    }

    // A deleted mark is repaired, too.
    consul.delete("shop/.paddock").await;
    let observed = done(kv.observe(&one).await.unwrap());
    assert_eq!(observed.drift, [difference(".paddock", json!(one.id.to_string()), Value::Null)]);
    apply(&kv, &one).await;
    assert_eq!(done(kv.observe(&one).await.unwrap()).drift, []);

    // An invalid mark is not overwritten.
    consul.put("shop/.paddock", "me").await;
    let why = refused(kv.apply(&one).await);
    assert!(why.contains("its key shop/.paddock is invalid"), "{why}");
    assert!(refused(kv.destroy(&one).await).contains("is invalid"));
}

#[tokio::test]
async fn prefix_belongs_to_one_resource_with_everything_below_it() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let owner = task(10, &values("team/shop/", &json!({"a": "1"})));
    apply(&kv, &owner).await;
    let before = consul.tree("").await;
    for prefix in ["team/shop/", "team/", "team/shop/web/", "team/shop/web/blue/"] {
        let other = task(11, &values(prefix, &json!({"b": "2"})));
        for why in [refused(kv.plan(&other).await), refused(kv.apply(&other).await)] {
            let whose = format!("belongs to the resource {}", owner.id);
            assert!(why.starts_with("team/shop/") && why.contains(&whose), "{why}");
        }
        // The keys of another resource are neither shown nor deleted.
        let other = applied(&other);
        destroy(&kv, &other).await;
        assert_eq!(consul.tree("").await, before, "{prefix}");
    }
    for prefix in ["team/shopping/", "team/sho/", "tea/"] {
        let disjoint = task(12, &values(prefix, &json!({"b": "2"})));
        apply(&kv, &disjoint).await;
        destroy(&kv, &applied(&disjoint)).await;
    }
    destroy(&kv, &applied(&owner)).await;
    apply(&kv, &task(11, &values("team/", &json!({"b": "2"})))).await;
    assert_eq!(consul.keys("team/").await, ["team/.paddock", "team/b"]);
}

#[tokio::test]
async fn existing_keys_are_refused_until_they_are_adopted() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    for (key, value) in [("shop/a", "old"), ("shop/b", "2"), ("shop/z", "theirs")] {
        consul.put(key, value).await;
    }
    let one = task(10, &values("shop/", &json!({"a": "1", "b": "2", "c": "3"})));
    let why = refused(kv.apply(&one).await);
    assert!(why.starts_with("shop/a, shop/b already exist below shop/"), "{why}");
    assert!(why.contains("adopt “shop/”"), "{why}");
    assert_eq!(consul.keys("shop/").await, ["shop/a", "shop/b", "shop/z"], "no mark is left");
    for (what, message) in [("web/", "it must be the prefix “shop/”"), ("", "“shop/”")] {
        let why = refused(kv.adopt(&one, what).await);
        assert!(why.contains(message), "{why}");
    }
    let empty = task(11, &values("empty/", &json!({"a": "1"})));
    assert!(refused(kv.adopt(&empty, "empty/").await).contains("it has no keys"));

    let before = consul.tree("shop/").await;
    let found = kv.adopt(&one, "shop").await.unwrap();
    assert_eq!(found.outputs["keys"], json!(["shop/a", "shop/b", "shop/z"]));
    assert_eq!(consul.tree("shop/").await, before, "adopting is read-only");
    let one = Task { outputs: found.outputs, ..one };
    let given = apply(&kv, &one).await.outputs;
    assert_eq!(given["keys"], json!(["shop/a", "shop/b", "shop/c"]));
    assert!(!given.contains_key("adopted"));
    assert_eq!(value(&consul, "shop/a").await.as_deref(), Some("1"));
    assert_eq!(consul.get("shop/b").await.unwrap(), before[1], "its value was right already");
    let one = Task { outputs: given, ..applied(&one) };
    assert_eq!(done(kv.observe(&one).await.unwrap()).unexpected, ["shop/z"]);
    destroy(&kv, &one).await;
    assert_eq!(consul.keys("shop/").await, ["shop/z"]);
}

#[tokio::test]
async fn one_of_several_concurrent_resources_gets_the_prefix() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    for round in 0..10 {
        let of = |n: usize, prefix: &str| task(n, &values(prefix, &json!({"k": n.to_string()})));
        let tasks = [
            of(10, &format!("r{round}/a/")),
            of(11, &format!("r{round}/a/")),
            of(12, &format!("r{round}/")),
            of(13, &format!("r{round}/a/b/")),
        ];
        let [a, b, c, d] = &tasks;
        let results = tokio::join!(kv.apply(a), kv.apply(b), kv.apply(c), kv.apply(d));
        let results = [results.0, results.1, results.2, results.3];
        let winners: Vec<_> =
            results.iter().zip(&tasks).filter(|(result, _)| result.is_ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let prefix = winners[0].1.with["prefix"].as_str().unwrap();
        let keys = consul.keys(&format!("r{round}/")).await;
        assert_eq!(keys, [format!("{prefix}.paddock"), format!("{prefix}k")]);
        for lost in results.into_iter().filter(Result::is_err) {
            assert!(refused(lost).contains("belongs to the resource"));
        }
    }
}

#[tokio::test]
async fn replaced_server_changes_nothing() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    for round in 0..10 {
        let prefix = format!("r{round}/");
        let old = task(10, &values(&prefix, &many(70, "old")));
        let new = Task { with: object(&values(&prefix, &many(70, "new"))), ..taken_over(&old) };
        let (slow, fast) = tokio::join!(kv.apply(&old), kv.apply(&new));
        fast.unwrap();
        if let Err(fault) = slow {
            assert!(refused::<()>(Err(fault)).contains("taken over by another server"));
        }
        let all = consul.tree(&prefix).await;
        assert_eq!(all.len(), 71);
        let values = all.iter().filter(|pair| !pair.key.ends_with(".paddock"));
        assert!(values.into_iter().all(|pair| pair.value == "new"), "{all:?}");
        for late in [kv.apply(&old).await.map(drop), kv.destroy(&old).await.map(drop)] {
            let why = refused(late);
            assert!(why.contains("its fencing token is 2, ours is 1"), "{why}");
        }
        assert_eq!(consul.tree(&prefix).await, all);
    }
}

#[tokio::test]
async fn many_keys_and_large_values_take_several_transactions() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let mut one = task(10, &values("shop/", &json!({})));
    apply(&kv, &one).await;
    for count in [63, 64, 65, 500, 1000, 1] {
        one = next(&one, &values("shop/", &many(count, &count.to_string())));
        apply(&kv, &one).await;
        let all = consul.tree("shop/key/").await;
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|pair| pair.value == count.to_string()));
    }
    let long: Value = (0..8).map(|i| (format!("v{i}"), "x".repeat(256 << 10))).collect();
    one = next(&one, &values("shop/", &long));
    apply(&kv, &one).await;
    let all = consul.tree("shop/v").await;
    assert_eq!(all.iter().map(|pair| pair.value.len()).sum::<usize>(), 8 * (256 << 10));
    assert_eq!(kv.observe(&applied(&one)).await, Ok(Progress::Done(Observed::default())));
    one = next(&one, &values("shop/", &many(500, "x")));
    apply(&kv, &one).await;
    destroy(&kv, &applied(&one)).await;
    assert_eq!(consul.keys("shop/").await, Vec::<String>::new());
}

#[tokio::test]
async fn destroy_deletes_created_keys_and_leaves_those_of_others() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let one = task(10, &values("shop/", &json!({"a": "1", "b": "2"})));
    destroy(&kv, &one).await;
    apply(&kv, &one).await;
    consul.put("shop/b", "changed").await;
    consul.put("shop/theirs", "x").await;
    consul.put("shopping", "x").await;
    let one = applied(&one);
    for _ in 0..2 {
        destroy(&kv, &one).await;
        assert_eq!(consul.keys("shop").await, ["shop/theirs", "shopping"]);
    }
    let log = one.log.drain().join("\n");
    assert!(log.contains("shop/theirs remain: others created them."), "{log}");
}

#[tokio::test]
async fn first_attempt_in_another_place_is_cleaned_up() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let first = task(10, &values("first/", &json!({"a": "1"})));
    assert!(kv.persist(&first).await.unwrap().is_empty(), "nothing was read yet");
    kv.plan(&first).await.unwrap();
    let kept = kv.persist(&first).await.unwrap();
    apply(&kv, &first).await;
    // The first apply was not acknowledged, and now another place is desired.
    let with = object(&values("second/", &json!({"a": "1"})));
    let second = Task { with, persisted: kept.clone(), ..taken_over(&first) };
    kv.plan(&second).await.unwrap();
    let kept = kv.persist(&second).await.unwrap();
    let second = Task { persisted: kept, ..second };
    assert!(kv.persist(&second).await.unwrap().is_empty(), "all places are persisted");
    apply(&kv, &second).await;
    assert_eq!(consul.keys("").await, ["is-ready", "second/.paddock", "second/a"]);
    // At the end only the persisted places are known: the rest are expressions.
    let with = object(&values("{{ environment.name }}/", &json!({"a": "1"})));
    let last = Task { with, ..second };
    assert!(kv.persist(&last).await.unwrap().is_empty(), "expressions are not a place");
    destroy(&kv, &last).await;
    assert_eq!(consul.keys("").await, ["is-ready"]);
}

#[tokio::test]
async fn datacenter_can_be_named() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let with = json!({"prefix": "shop/", "values": {"a": "1"}, "datacenter": "dc1"});
    assert_eq!(apply(&kv, &task(10, &with)).await.outputs["datacenter"], "dc1");
    let with = json!({"prefix": "shop/", "values": {"a": "1"}, "datacenter": "dc9"});
    let wrong = task(11, &with);
    for why in [refused(kv.plan(&wrong).await), refused(kv.apply(&wrong).await)] {
        assert!(why.contains("has no path to the datacenter “dc9”"), "{why}");
    }
    // A wrong datacenter blocks neither the destroy nor the next attempt.
    assert!(kv.persist(&wrong).await.unwrap().is_empty());
    destroy(&kv, &wrong).await;
    let right = Task { with: object(&values("web/", &json!({"a": "1"}))), ..wrong };
    apply(&kv, &right).await;
    destroy(&kv, &Task { persisted: kv.persist(&right).await.unwrap(), ..applied(&right) }).await;
    assert_eq!(consul.keys("web/").await, Vec::<String>::new());
}

#[tokio::test]
async fn keys_of_others_are_not_shown() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    consul.put("shop/a", "s3cret").await;
    // A right guess gets the same answer.
    for guess in ["x", "s3cret"] {
        let one = task(10, &values("shop/", &json!({"a": guess, "b": "2"})));
        let Progress::Done(planned) = kv.plan(&one).await.unwrap() else { panic!("at once") };
        assert_eq!(
            planned,
            [
                difference("a", json!(guess), json!("(not created by Paddock)")),
                difference("b", json!("2"), Value::Null),
            ]
        );
    }
    // The mark was deleted, and another resource claimed the prefix.
    let one = task(10, &values("web/", &json!({"a": "1", "b": "2"})));
    apply(&kv, &one).await;
    for pair in consul.tree("web/").await {
        consul.delete(&pair.key).await;
    }
    let other = task(11, &values("web/", &json!({"a": "s3cret", "theirs": "s3cret"})));
    apply(&kv, &other).await;
    let observed = done(kv.observe(&applied(&one)).await.unwrap());
    let whose = difference(".paddock", json!(one.id.to_string()), json!(other.id.to_string()));
    assert_eq!((observed.drift, observed.unexpected), (vec![whose], Vec::new()));
    // A key that was removed from the spec and recreated by others is theirs.
    let two = task(12, &values("two/", &json!({"a": "1", "b": "2"})));
    apply(&kv, &two).await;
    apply(&kv, &next(&two, &values("two/", &json!({"a": "1"})))).await;
    consul.put("two/b", "s3cret").await;
    let drift = done(kv.observe(&applied(&two)).await.unwrap()).drift;
    assert_eq!(drift, [difference("b", json!("2"), json!("(not created by Paddock)"))]);
}

#[tokio::test]
async fn differences_are_bounded_and_long_values_truncated() {
    let consul = Consul::prepare();
    let _running = consul.start();
    let kv = executor(&consul.url());
    let one = task(10, &values("shop/", &many(120, &"é".repeat(3000))));
    apply(&kv, &one).await;
    let one = applied(&one);
    for pair in consul.tree("shop/key/").await {
        consul.put(&pair.key, &"x".repeat(5000)).await;
    }
    let Progress::Done(planned) = kv.plan(&one).await.unwrap() else { panic!("at once") };
    let drift = done(kv.observe(&one).await.unwrap()).drift;
    assert_eq!(planned, drift);
    assert_eq!(drift.len(), 51);
    assert_eq!(drift[50], difference("…", Value::Null, json!("70 more keys differ")));
    for one in &drift[..50] {
        let (made, found) = (one.made.as_ref().unwrap(), one.found.as_ref().unwrap());
        let (made, found) = (made.as_str().unwrap(), found.as_str().unwrap());
        assert_eq!(made, format!("{}… (truncated; 6000 bytes)", "é".repeat(512)));
        assert_eq!(found, format!("{}… (truncated; 5000 bytes)", "x".repeat(1024)));
    }
}
