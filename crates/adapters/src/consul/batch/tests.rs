//! Transactions against an in-memory Consul, with concurrent writers.

use model::ResourceId;
use proptest::prelude::*;

use super::*;
use crate::consul::place::{MARK, Place};

fn task(fence: i64, change: &str) -> Task {
    let id: ResourceId = "00000000000000000010".parse().unwrap();
    Task { key: change.into(), fence, ..Task::new(id, "settings") }
}

fn place() -> Place {
    Place { prefix: "shop/".into(), datacenter: None }
}

/// An in-memory KV store.
#[derive(Default, Clone)]
struct Store {
    index: u64,
    keys: BTreeMap<String, Entry>,
}

impl Store {
    fn put(&mut self, key: &str, value: &[u8]) {
        self.index += 1;
        self.set(key, value);
    }

    fn set(&mut self, key: &str, value: &[u8]) {
        let created = self.keys.get(key).map_or(self.index, |old| old.created);
        let (key, value) = (key.to_owned(), value.to_vec());
        self.keys.insert(key.clone(), Entry { key, value, created, changed: self.index });
    }

    fn holds(&self, op: &Op) -> bool {
        let now = |key: &String| self.keys.get(key).map_or(0, |entry| entry.changed);
        match op {
            Op::Set { key, index, .. } => now(key) == *index,
            Op::Delete { key, index } => now(key) == 0 || now(key) == *index,
            Op::Absent { key } => now(key) == 0,
        }
    }

    fn commit(&mut self, ops: &[Op]) -> bool {
        assert!(ops.len() <= MAX_OPS, "{} operations", ops.len());
        let bytes: usize = ops.iter().map(bytes_of).sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
        if !ops.iter().all(|op| self.holds(op)) {
            return false;
        }
        self.index += 1;
        for op in ops {
            match op {
                Op::Set { key, value, .. } => self.set(key, value),
                Op::Delete { key, .. } => drop(self.keys.remove(key)),
                Op::Absent { .. } => {}
            }
        }
        true
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::new(place(), self.keys.values().cloned().collect())
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        self.keys.get(&place().key(name)).map(|entry| &entry.value[..])
    }
}

/// A concurrent write between a read and the transaction.
#[derive(Debug, Clone)]
struct ConcurrentWrite {
    name: usize,
    value: Option<u8>,
}

fn concurrent_writes() -> impl Strategy<Value = Vec<Option<ConcurrentWrite>>> {
    let one = (0..8usize, proptest::option::of(any::<u8>()));
    let one = one.prop_map(|(name, value)| ConcurrentWrite { name, value });
    proptest::collection::vec(proptest::option::of(one), 0..6)
}

fn values() -> impl Strategy<Value = Values> {
    proptest::collection::btree_map(0..8usize, any::<u8>(), 0..8)
        .prop_map(|all| all.into_iter().map(|(name, v)| (format!("k{name}"), vec![v])).collect())
}

/// Commits all transactions, while others change or delete keys of ours, but create none.
fn until_done(
    store: &mut Store,
    desired: &Values,
    context: &Context<'_>,
    others: &[Option<ConcurrentWrite>],
) {
    let mut others = others.iter();
    for _ in 0..40 {
        let snapshot = store.snapshot();
        let Some(next) = apply(&snapshot, desired, context).unwrap() else { return };
        if let Some(Some(one)) = others.next() {
            let key = place().key(&format!("k{}", one.name));
            match one.value {
                Some(value) if store.keys.contains_key(&key) => store.put(&key, &[value]),
                Some(_) => {}
                None => drop(store.keys.remove(&key)),
            }
        }
        store.commit(&next.ops);
    }
    panic!("no convergence");
}

fn context(task: &Task, applied: Values) -> Context<'_> {
    Context { task, applied, adopts: false }
}

proptest! {
    #[test]
    fn desired_values_are_reached_despite_concurrent_writes_and_then_deleted(
    first in values(), second in values(), one in concurrent_writes(), two in concurrent_writes(),
    ) {
        let (a, b) = (task(1, "1"), task(2, "2"));
        let mut store = Store::default();
        store.put("shop/theirs", b"stays");
        store.put("shopping", b"stays");
        until_done(&mut store, &first, &context(&a, Values::new()), &one);
        until_done(&mut store, &second, &context(&b, first.clone()), &two);
        for (name, value) in &second {
            prop_assert_eq!(store.value(name), Some(&value[..]));
        }
        // The keys of others, the mark, and the desired ones.
        prop_assert_eq!(store.keys.len(), second.len() + 3);
        let snapshot = store.snapshot();
        let (mark, index) = snapshot.own(&b).unwrap();
        let listed = mark.clone().with_index(index).keys;
        for (name, index) in &listed {
            prop_assert_eq!(store.keys[&place().key(name)].changed, *index);
        }
        prop_assert_eq!(listed.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
        while let Some(next) = clear(&store.snapshot(), &context(&b, second.clone())).unwrap() {
            prop_assert!(store.commit(&next.ops));
        }
        let left: Vec<_> = store.keys.keys().map(String::as_str).collect();
        prop_assert_eq!(left, ["shop/theirs", "shopping"]);
    }

    #[test]
    fn transaction_of_an_older_server_fails_after_a_newer_one_has_written(
        first in values(), second in values(),
    ) {
        let (old, new) = (task(1, "1"), task(2, "1"));
        let mut store = Store::default();
        until_done(&mut store, &Values::new(), &context(&old, Values::new()), &[]);
        let late = apply(&store.snapshot(), &first, &context(&old, Values::new())).unwrap();
        until_done(&mut store, &second, &context(&new, Values::new()), &[]);
        let late = late.filter(|late| !late.ops.is_empty());
        prop_assert!(late.is_none_or(|late| !store.commit(&late.ops)));
        let snapshot = store.snapshot();
        prop_assert!(snapshot.check_owner(&old).unwrap_err().to_string().contains("taken over"));
    }
}

#[test]
fn large_values_and_many_keys_take_several_transactions() {
    let long = |i: usize| (format!("long{i}"), vec![b'x'; 256 << 10]);
    let short = |i: usize| (format!("short{i:03}{}", "n".repeat(50)), vec![b'y']);
    let desired: Values = (0..6).map(long).chain((0..900).map(short)).collect();
    let (task, mut store) = (task(1, "1"), Store::default());
    until_done(&mut store, &desired, &context(&task, Values::new()), &[]);
    assert_eq!(store.keys.len(), desired.len() + 1);
    assert_eq!(apply(&store.snapshot(), &desired, &context(&task, desired.clone())), Ok(None));
}

#[test]
fn keys_of_others_are_written_only_if_adopted() {
    let (task, mut store) = (task(1, "1"), Store::default());
    store.put("shop/a", b"theirs");
    store.put("shop/b", b"theirs");
    let desired = Values::from([("a".to_owned(), b"ours".to_vec())]);
    let refused = apply(&store.snapshot(), &desired, &context(&task, Values::new())).unwrap_err();
    assert!(refused.to_string().starts_with("shop/a already exist below shop/"), "{refused}");
    until_done(
        &mut store,
        &desired,
        &Context { adopts: true, ..context(&task, Values::new()) },
        &[],
    );
    assert_eq!((store.value("a"), store.value("b")), (Some(&b"ours"[..]), Some(&b"theirs"[..])));
}

#[test]
fn without_a_mark_only_unchanged_keys_are_deleted() {
    let (task, mut store) = (task(1, "1"), Store::default());
    let desired: Values = ["a", "b"].map(|name| (name.to_owned(), b"ours".to_vec())).into();
    until_done(&mut store, &desired, &context(&task, Values::new()), &[]);
    store.keys.remove(&place().key(MARK));
    store.put("shop/b", b"theirs");
    let next = clear(&store.snapshot(), &context(&task, desired.clone())).unwrap().unwrap();
    assert!(store.commit(&next.ops));
    assert_eq!(clear(&store.snapshot(), &context(&task, desired)), Ok(None));
    assert_eq!(store.keys.keys().collect::<Vec<_>>(), ["shop/b"]);
}
