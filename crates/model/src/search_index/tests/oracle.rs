//! A brute-force oracle: compares every word of every document with the full distance table.

use std::collections::BTreeMap;

use super::super::term::{self, Location};
use super::super::{Document, Field, Query, Score};
use crate::Xid;

/// The expected results, in order.
pub(super) fn find(documents: &BTreeMap<Xid, Document>, query: &Query) -> Vec<(Xid, Score)> {
    let mut found: Vec<(Score, &Document)> = documents
        .values()
        .filter(|document| query.admits(document.kind, document.organization))
        .filter_map(|document| Some((score(document, query)?, document)))
        .collect();
    found.sort_by_key(|(score, document)| (*score, document.name.clone(), document.id));
    found.into_iter().take(query.limit).map(|(score, document)| (document.id, score)).collect()
}

fn score(document: &Document, query: &Query) -> Option<Score> {
    let words = term::terms_of(document);
    let mut score = Score::default();
    for typed in &query.terms {
        let text = typed.text();
        let of_words = words.iter().filter_map(|(word, location)| {
            let (typos, is_prefix) = grade(&text, word)?;
            Some((typos, location.field(), is_prefix))
        });
        let id = document.id.to_string();
        let of_id =
            (text.len() >= 4 && id.starts_with(&text)).then_some((0, Field::Id, text != id));
        let (typos, field, is_prefix) = of_words.chain(of_id).min()?;
        score.typos += typos;
        score.distance += field as u8;
        score.prefixes += u8::from(is_prefix);
    }
    let full = query.terms.iter().map(term::Term::text).collect::<String>();
    let is_full_name = words.get(&full) == Some(&Location::FullName) && score.typos == 0;
    Some(Score { is_partial: !is_full_name, ..score })
}

/// The smallest distance to any prefix of the word, and whether the whole word is farther.
fn grade(typed: &str, word: &str) -> Option<(u8, bool)> {
    let (typed, word): (Vec<char>, Vec<char>) = (typed.chars().collect(), word.chars().collect());
    let least = (0..=word.len()).map(|end| distance(&typed, &word[..end])).min()?;
    (least <= term::allowed(&typed)).then(|| (least, distance(&typed, &word) > least))
}

/// The Damerau-Levenshtein distance.
pub(super) fn distance(a: &[char], b: &[char]) -> u8 {
    let mut table = vec![vec![0u8; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, n) | (n, 0) => u8::try_from(n).unwrap(),
                _ => {
                    let wrong = table[i - 1][j - 1] + u8::from(a[i - 1] != b[j - 1]);
                    let least = wrong.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                    let is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if is_swapped { least.min(table[i - 2][j - 2] + 1) } else { least }
                }
            };
        }
    }
    table[a.len()][b.len()]
}
