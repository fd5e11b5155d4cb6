//! Search results: examples, and the index against a brute-force oracle.

mod oracle;
mod properties;

use super::*;

pub(super) fn id(n: u32) -> Xid {
    Xid::new(0x6912_3456, [1, 2, 3, 4, 5], n)
}

pub(super) fn organization(n: u32) -> OrganizationId {
    OrganizationId(Xid::new(1, [0; 5], n))
}

pub(super) fn document(n: u32, kind: Kind, name: &str) -> Document {
    Document {
        kind,
        id: id(n),
        organization: Some(organization(1)),
        name: name.into(),
        description: "".into(),
        tags: Box::default(),
        status: None,
    }
}

fn described(n: u32, name: &str, description: &str) -> Document {
    Document { description: description.into(), ..document(n, Kind::Environment, name) }
}

fn tagged(n: u32, name: &str, key: &str, value: &str) -> Document {
    let tags = Box::new([(key.into(), value.into())]);
    Document { tags, ..document(n, Kind::Environment, name) }
}

fn names(index: &Index, text: &str) -> Vec<String> {
    let found = index.find(&Query::new(text, 10).unwrap());
    found.into_iter().map(|hit| hit.document.name.into()).collect()
}

/// Asserts the names of the results, in order.
#[track_caller]
fn check(documents: Vec<Document>, text: &str, expect: &[&str]) {
    assert_eq!(names(&Index::new(documents), text), expect, "{text:?}");
}

fn shop() -> Vec<Document> {
    vec![
        document(1, Kind::Cluster, "web"),
        document(2, Kind::Environment, "web-shop"),
        document(3, Kind::Environment, "webshop-old"),
        described(4, "store", "The web shop's own database"),
        tagged(5, "mail", "team", "web"),
        document(6, Kind::User, "Zoë"),
    ]
}

#[test]
fn full_names_rank_before_names_tags_and_descriptions() {
    check(shop(), "web", &["web", "web-shop", "webshop-old", "mail", "store"]);
    check(shop(), "web-shop", &["web-shop", "store"]);
    check(shop(), "WEB Shop", &["web-shop", "store"]);
    check(shop(), "webshop", &["web-shop", "webshop-old"]);
    check(shop(), "team=web", &["mail"]);
}

#[test]
fn prefixes_match() {
    check(shop(), "we sh", &["web-shop", "store"]);
    check(shop(), "z", &["Zoë"]);
    check(shop(), "database", &["store"]);
    check(shop(), "datab", &["store"]);
}

#[test]
fn one_or_two_typos_match() {
    for query in ["webshpo", "wbeshop", "websop", "webshoop", "vebshop", "webshopp"] {
        check(shop(), query, &["web-shop", "webshop-old"]);
    }
    for query in ["databsae", "dtabase", "dattabasse", "databas3", "ddatabsae"] {
        check(shop(), query, &["store"]);
    }
    // The prefix of a long word, with a typo.
    check(shop(), "databz", &["store"]);
}

#[test]
fn short_words_and_numbers_allow_no_typos() {
    check(vec![document(1, Kind::Cluster, "abc")], "abd", &[]);
    check(vec![document(1, Kind::Cluster, "web-2024")], "2025", &[]);
    check(vec![document(1, Kind::Cluster, "web-2024")], "20", &["web-2024"]);
}

#[test]
fn exact_matches_rank_before_typos() {
    let documents = vec![
        document(1, Kind::Cluster, "order"),
        described(2, "zebra", "orders of all shops"),
        document(3, Kind::Cluster, "borders"),
    ];
    check(documents, "orders", &["zebra", "borders", "order"]);
}

#[test]
fn every_term_must_match() {
    check(shop(), "web nothing", &[]);
    check(shop(), "shop own", &["store"]);
}

#[test]
fn ids_match_by_prefix_without_typos() {
    let text = id(2).to_string();
    check(shop(), &text, &["web-shop"]);
    check(shop(), &text.to_uppercase(), &["web-shop"]);
    assert_eq!(names(&Index::new(shop()), &text[..4]).len(), 6);
    let other = id(77).to_string();
    check(shop(), &other, &[]);
}

#[test]
fn ties_are_ordered_by_name_and_id() {
    let twins = || [document(3, Kind::Cluster, "web-b"), document(2, Kind::User, "web-b")];
    let all = twins().into_iter().chain([document(9, Kind::Cluster, "web-a")]);
    let found = Index::new(all).find(&Query::new("web", 10).unwrap());
    let ids: Vec<Xid> = found.iter().map(|hit| hit.document.id).collect();
    assert_eq!(ids, [id(9), id(2), id(3)]);
}

#[test]
fn organization_sees_its_own_and_shared_documents() {
    let other =
        Document { organization: Some(organization(2)), ..document(1, Kind::User, "web-1") };
    let shared = Document { organization: None, ..document(2, Kind::Cluster, "web-2") };
    let index = Index::new([other, shared, document(3, Kind::Cluster, "web-3")]);
    let visible = |organization, kind| {
        let found = index.find(&Query { kind, organization, ..Query::new("web", 10).unwrap() });
        found.into_iter().map(|hit| hit.document.name.into()).collect::<Vec<String>>()
    };
    assert_eq!(visible(None, None), ["web-1", "web-2", "web-3"]);
    assert_eq!(visible(Some(organization(1)), None), ["web-2", "web-3"]);
    assert_eq!(visible(Some(organization(2)), None), ["web-1", "web-2"]);
    assert_eq!(visible(None, Some(Kind::User)), ["web-1"]);
    assert_eq!(visible(Some(organization(1)), Some(Kind::User)), [""; 0]);
}

#[test]
fn hit_contains_matched_fields_and_typos() {
    let index = Index::new(shop());
    let found = index.find(&Query::new("shpo databse", 1).unwrap());
    let expect = [("shop", Field::Description, 1), ("database", Field::Description, 1)];
    let matched: Vec<_> =
        found[0].matched.iter().map(|m| (m.word.as_str(), m.field, m.typos)).collect();
    assert_eq!(matched, expect);
    let points = |text| index.find(&Query::new(text, 1).unwrap())[0].score.points();
    assert!((points("web-shop") - 1.0).abs() < f64::EPSILON);
    assert!(points("shop") < 1.0 && points("shpo") < points("shop") && points("shpo") > 0.0);
}

#[test]
fn invalid_queries_are_rejected() {
    let long = "x".repeat(257);
    for (text, expect) in [
        ("", "q: has no search term; enter a word or the start of an id"),
        (" -- !", "q: has no search term; enter a word or the start of an id"),
        (long.as_str(), "q: has 257 characters; at most 256 are allowed"),
        ("a b c d e f g h i", "q: has 9 words; at most 8 are allowed"),
    ] {
        assert_eq!(Query::new(text, 1).unwrap_err().to_string(), expect);
    }
}
