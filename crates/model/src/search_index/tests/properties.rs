//! After any sequence of changes the index returns the results of the oracle, in the same order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;

use super::super::*;
use super::{document, id, oracle, organization};

/// Words that are often similar to, or prefixes of, each other.
const WORDS: [&str; 33] = [
    "a",
    "b",
    "b1",
    "ab",
    "ba",
    "abc",
    "acb",
    "abca",
    "abcd",
    "bacd",
    "abcdefg",
    "abcdegf",
    "abcdefgh",
    "abcedfgh",
    "bacdefhg",
    "abcdefghi",
    "xabcdefg",
    "1",
    "12",
    "1234",
    "1243",
    "web",
    "wbe",
    "web1",
    "web12",
    "web1234",
    "wbe1243",
    "shop",
    "shops",
    "shpo",
    "Zoë",
    "zoe",
    "ZOÉS",
];

fn word() -> impl Strategy<Value = String> {
    select(WORDS.to_vec()).prop_map(str::to_owned)
}

/// Up to `most` words with separators.
fn text(most: usize) -> impl Strategy<Value = String> {
    let parts =
        prop::collection::vec((select(WORDS.to_vec()), select(vec!["-", " ", "=", ""])), 0..=most);
    parts.prop_map(|parts| parts.into_iter().flat_map(|(word, gap)| [word, gap]).collect())
}

#[derive(Debug, Clone)]
enum Change {
    Set(Document),
    Remove(Xid),
}

fn documents() -> impl Strategy<Value = Document> {
    let texts = (text(3), text(3), prop::option::of((word(), word())));
    (0u32..20, select(KINDS.to_vec()), 0u32..3, texts).prop_map(|(n, kind, owner, texts)| {
        let (name, description, tag) = texts;
        let tags: Vec<(Box<str>, Box<str>)> =
            tag.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Document {
            organization: (owner > 0).then(|| organization(owner)),
            description: description.into(),
            tags: tags.into(),
            ..document(n, kind, &name)
        }
    })
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => documents().prop_map(Change::Set),
        1 => (0u32..20).prop_map(|n| Change::Remove(id(n))),
    ]
}

fn queries() -> impl Strategy<Value = Query> {
    let ids =
        (0u32..22, 3usize..=20).prop_map(|(n, length)| id(n).to_string()[..length].to_owned());
    let texts =
        prop_oneof![3 => (word(), text(2)).prop_map(|(a, b)| a + &b), 3 => word(), 1 => ids];
    (texts, prop::option::of(select(KINDS.to_vec())), 0u32..3, 1usize..12).prop_map(
        |(text, kind, owner, limit)| Query {
            kind: kind.filter(|_| limit % 2 == 0),
            organization: (owner > 0).then(|| organization(owner)),
            ..Query::new(&text, limit).unwrap()
        },
    )
}

fn found(index: &Index, query: &Query) -> Vec<(Xid, Score)> {
    index.find(query).into_iter().map(|hit| (hit.document.id, hit.score)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn index_agrees_with_the_oracle(
        first in prop::collection::vec(documents(), 0..30),
        history in prop::collection::vec(changes(), 0..30),
        queries in prop::collection::vec(queries(), 1..8),
    ) {
        let mut index = Index::new(first.clone());
        let mut all: BTreeMap<Xid, Document> = first.into_iter().map(|d| (d.id, d)).collect();
        for change in history {
            match change {
                Change::Set(document) => {
                    all.insert(document.id, document.clone());
                    index.set(document);
                }
                Change::Remove(id) => {
                    all.remove(&id);
                    index.remove(id);
                }
            }
        }
        prop_assert_eq!(index.len(), all.len());
        let fresh = Index::new(all.values().cloned());
        for query in queries {
            let expect = oracle::find(&all, &query);
            prop_assert_eq!(found(&index, &query), expect.clone(), "{:?}", query);
            prop_assert_eq!(found(&fresh, &query), expect);
            for hit in index.find(&query) {
                prop_assert_eq!(hit.matched.len(), query.terms.len());
                let typos: u8 = hit.matched.iter().map(|matched| matched.typos).sum();
                prop_assert_eq!(typos, hit.score.typos);
                prop_assert!(hit.score.points() > 0.0);
            }
        }
    }

    #[test]
    fn emptied_index_retains_nothing(documents in prop::collection::vec(documents(), 0..30)) {
        let mut index = Index::new(documents.clone());
        for document in documents {
            index.remove(document.id);
        }
        prop_assert!(index.is_empty());
        prop_assert_eq!(index.sizes(), (0, 0, 0));
    }

    #[test]
    fn distances_equal_the_full_table(typed in "[ab]{4,9}", word in "[ab]{1,11}") {
        let letters: Vec<char> = typed.chars().collect();
        let allowed = super::super::term::allowed(&letters);
        let pattern = super::super::fuzzy::Pattern { letters: &letters, allowed };
        let other: Vec<char> = word.chars().collect();
        let least = (0..=other.len()).map(|end| oracle::distance(&letters, &other[..end])).min();
        let expect = least.filter(|least| *least <= allowed);
        prop_assert_eq!(pattern.grade(&word).map(|(typos, _)| typos), expect);
    }
}
