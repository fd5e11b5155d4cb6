//! Transactions against a Consul in memory, with others who write at the same time.

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

/// Keys and values as Consul keeps them.
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

    fn seen(&self) -> Seen {
        Seen::new(place(), self.keys.values().cloned().collect())
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        self.keys.get(&place().key(name)).map(|entry| &entry.value[..])
    }
}

/// What others do between a look and the transaction.
#[derive(Debug, Clone)]
struct Meddling {
    name: usize,
    value: Option<u8>,
}

fn meddling() -> impl Strategy<Value = Vec<Option<Meddling>>> {
    let one = (0..8usize, proptest::option::of(any::<u8>()));
    let one = one.prop_map(|(name, value)| Meddling { name, value });
    proptest::collection::vec(proptest::option::of(one), 0..6)
}

fn values() -> impl Strategy<Value = Values> {
    proptest::collection::btree_map(0..8usize, any::<u8>(), 0..8)
        .prop_map(|all| all.into_iter().map(|(name, v)| (format!("k{name}"), vec![v])).collect())
}

/// Carries out all transactions; others meddle with keys of ours meanwhile, but make none.
fn until_done(store: &mut Store, wish: &Values, known: &Known<'_>, others: &[Option<Meddling>]) {
    let mut others = others.iter();
    for _ in 0..40 {
        let seen = store.seen();
        let Some(next) = make(&seen, wish, known).unwrap() else { return };
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
    panic!("it does not come to an end");
}

fn known(task: &Task, made: Values) -> Known<'_> {
    Known { task, made, adopts: false }
}

proptest! {
    #[test]
    fn all_becomes_as_it_should_whoever_meddles_and_then_nothing_of_it_is_left(
        first in values(), second in values(), one in meddling(), two in meddling(),
    ) {
        let (a, b) = (task(1, "1"), task(2, "2"));
        let mut store = Store::default();
        store.put("shop/theirs", b"stays");
        store.put("shopping", b"stays");
        until_done(&mut store, &first, &known(&a, Values::new()), &one);
        until_done(&mut store, &second, &known(&b, first.clone()), &two);
        for (name, value) in &second {
            prop_assert_eq!(store.value(name), Some(&value[..]));
        }
        // Theirs, the mark, and what is wanted.
        prop_assert_eq!(store.keys.len(), second.len() + 3);
        let seen = store.seen();
        let (mark, index) = seen.own(&b).unwrap();
        let listed = mark.clone().known(index).keys;
        for (name, index) in &listed {
            prop_assert_eq!(store.keys[&place().key(name)].changed, *index);
        }
        prop_assert_eq!(listed.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
        while let Some(next) = clear(&store.seen(), &known(&b, second.clone())).unwrap() {
            prop_assert!(store.commit(&next.ops));
        }
        let left: Vec<_> = store.keys.keys().map(String::as_str).collect();
        prop_assert_eq!(left, ["shop/theirs", "shopping"]);
    }

    #[test]
    fn what_an_older_server_looked_at_is_not_written_once_a_newer_one_has_written(
        first in values(), second in values(),
    ) {
        let (old, new) = (task(1, "1"), task(2, "1"));
        let mut store = Store::default();
        until_done(&mut store, &Values::new(), &known(&old, Values::new()), &[]);
        let late = make(&store.seen(), &first, &known(&old, Values::new())).unwrap();
        until_done(&mut store, &second, &known(&new, Values::new()), &[]);
        let late = late.filter(|late| !late.ops.is_empty());
        prop_assert!(late.is_none_or(|late| !store.commit(&late.ops)));
        let seen = store.seen();
        prop_assert!(seen.may_make(&old).unwrap_err().to_string().contains("taken over"));
    }
}

#[test]
fn long_values_and_many_keys_take_several_transactions() {
    let long = |i: usize| (format!("long{i}"), vec![b'x'; 256 << 10]);
    let short = |i: usize| (format!("short{i:03}{}", "n".repeat(50)), vec![b'y']);
    let wish: Values = (0..6).map(long).chain((0..900).map(short)).collect();
    let (task, mut store) = (task(1, "1"), Store::default());
    until_done(&mut store, &wish, &known(&task, Values::new()), &[]);
    assert_eq!(store.keys.len(), wish.len() + 1);
    assert_eq!(make(&store.seen(), &wish, &known(&task, wish.clone())), Ok(None));
}

#[test]
fn what_others_made_is_written_only_if_it_is_adopted() {
    let (task, mut store) = (task(1, "1"), Store::default());
    store.put("shop/a", b"theirs");
    store.put("shop/b", b"theirs");
    let wish = Values::from([("a".to_owned(), b"ours".to_vec())]);
    let refused = make(&store.seen(), &wish, &known(&task, Values::new())).unwrap_err();
    assert!(refused.to_string().starts_with("shop/a already exist below shop/"), "{refused}");
    until_done(&mut store, &wish, &Known { adopts: true, ..known(&task, Values::new()) }, &[]);
    assert_eq!((store.value("a"), store.value("b")), (Some(&b"ours"[..]), Some(&b"theirs"[..])));
}

#[test]
fn without_its_mark_only_what_is_as_it_was_made_is_taken_away() {
    let (task, mut store) = (task(1, "1"), Store::default());
    let wish: Values = ["a", "b"].map(|name| (name.to_owned(), b"ours".to_vec())).into();
    until_done(&mut store, &wish, &known(&task, Values::new()), &[]);
    store.keys.remove(&place().key(MARK));
    store.put("shop/b", b"theirs");
    let next = clear(&store.seen(), &known(&task, wish.clone())).unwrap().unwrap();
    assert!(store.commit(&next.ops));
    assert_eq!(clear(&store.seen(), &known(&task, wish)), Ok(None));
    assert_eq!(store.keys.keys().collect::<Vec<_>>(), ["shop/b"]);
}
