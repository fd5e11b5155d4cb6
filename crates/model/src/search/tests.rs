//! Searches: examples and properties.

use proptest::prelude::*;

use super::*;

const COLUMNS: [&str; 7] = crate::kind::SEARCH_COLUMNS;

fn read(text: &str) -> Result<Option<Expr>, Error> {
    parse(text, &COLUMNS, &Op::ALL)
}

#[track_caller]
fn reads_as(text: &str, expect: &str) {
    let expr = read(text).unwrap_or_else(|error| panic!("{text}: {error}")).expect("a search");
    assert_eq!(expr.to_string(), expect, "{text}");
}

#[test]
fn searches_are_parsed() {
    for (text, expect) in [
        ("name = a", "name = 'a'"),
        ("NAME=a", "name = 'a'"),
        ("  name<>'a b'  ", "name <> 'a b'"),
        ("name like %a%", "name LIKE '%a%'"),
        ("name ILike 'A_'", "name ILIKE 'A_'"),
        ("name in (a)", "name IN ('a')"),
        ("name Not In(a,b , 'c, d')", "name NOT IN ('a', 'b', 'c, d')"),
        ("name = a and owner = b or region = c", "name = 'a' AND owner = 'b' OR region = 'c'"),
        ("name = a and (owner = b or region = c)", "name = 'a' AND (owner = 'b' OR region = 'c')"),
        ("((name = a))", "name = 'a'"),
        ("name = a AND(owner = b)", "name = 'a' AND owner = 'b'"),
        // Everything inside quotes is part of the value.
        ("name = '(a) = <b>, and'", "name = '(a) = <b>, and'"),
        (r"name = 'it\'s'", r"name = 'it\'s'"),
        (r"name = 'a\b'", r"name = 'a\b'"),
        // Anything after an operator is a value.
        ("name = and", "name = 'and'"),
        ("name = a,b", "name = 'a,b'"),
        ("name = a=b", "name = 'a=b'"),
        ("name = it's", r"name = 'it\'s'"),
        ("name = ''", "name = ''"),
    ] {
        reads_as(text, expect);
    }
    assert_eq!(read(""), Ok(None));
}

#[test]
fn search_of_the_cli_client_is_parsed() {
    let text = "name like %x% or owner like %x% or cloud_provider like %x% or region like %x% \
                or status like %x%";
    let Ok(Some(Expr::Or(parts))) = read(text) else { panic!("an OR") };
    assert_eq!(parts.len(), 5);
}

#[test]
fn errors_have_position_and_token() {
    let columns = COLUMNS.join(", ");
    for (text, expect) in [
        (" ", format!("position 2, end of input: must be one of {columns}")),
        ("nam = a", format!("position 1, \"nam\": must be one of {columns}")),
        ("name", "position 5, end of input: must be one of =, <>, LIKE, ILIKE, IN".into()),
        ("name < a", "position 6, \"<\": must be one of =, <>, LIKE, ILIKE, IN".into()),
        ("name =", "position 7, end of input: expected a value".into()),
        ("name = (a)", "position 8, \"(\": expected a value".into()),
        ("name = a^b", "position 9, \"^b\": expected AND, OR or end of input".into()),
        ("name = a b", "position 10, \"b\": expected AND, OR or end of input".into()),
        ("name = a and", format!("position 13, end of input: must be one of {columns}")),
        ("name = 'a", "position 8, \"'a\": closing quote is missing".into()),
        ("name in a", "position 9, \"a\": expected (".into()),
        ("name in ()", "position 10, \")\": expected a value".into()),
        ("name in (a,)", "position 12, \")\": expected a value".into()),
        ("name in (a b)", "position 12, \"b\": expected , or )".into()),
        ("name not = a", "position 6, \"not\": NOT is only allowed before IN".into()),
        ("not name = a", format!("position 1, \"not\": must be one of {columns}")),
        ("(name = a", "position 10, end of input: expected AND, OR or )".into()),
        ("name = a)", "position 9, \")\": expected AND, OR or end of input".into()),
        ("()", format!("position 2, \")\": must be one of {columns}")),
        ("name like 'ä\\'' ;", "position 17, \";\": expected AND, OR or end of input".into()),
        ("name = a\0", "position 8, \"a\\0\": a value must not contain a NUL character".into()),
        ("name like a\\", "position 11, \"a\\\\\": a pattern must not end with a backslash".into()),
    ] {
        assert_eq!(read(text).expect_err(text).to_string(), expect, "{text}");
    }
}

#[test]
fn joins_are_limited_including_not() {
    let chain = |n: usize| vec!["name = a"; n + 1].join(" and ");
    assert!(read(&chain(10)).is_ok());
    let error = read(&chain(11)).unwrap_err();
    assert_eq!(error.reason, "a search may have at most 10 of AND, OR and NOT");
    assert_eq!(error.position, chain(10).len() + 2);
    let nots = |n: usize| vec!["name not in (a)"; n].join(" or ");
    assert!(read(&nots(5)).is_ok());
    assert!(read(&nots(6)).is_err());
}

#[test]
fn length_and_depth_are_limited() {
    let long = format!("name = {}", "a".repeat(MAX_BYTES));
    assert!(read(&long).is_err());
    let deep = |n: usize| format!("{}name = a{}", "(".repeat(n), ")".repeat(n));
    assert!(read(&deep(MAX_DEPTH)).is_ok());
    assert!(read(&deep(MAX_DEPTH + 1)).is_err());
}

#[test]
fn columns_and_operators_can_be_restricted() {
    let (columns, operators) = (["name"], [Op::Eq, Op::Ne, Op::Like]);
    assert!(parse("name like a", &columns, &operators).is_ok());
    for bad in ["name ilike a", "name in (a)", "name not in (a)", "owner = a"] {
        assert!(parse(bad, &columns, &operators).is_err(), "{bad}");
    }
}

#[test]
fn like_patterns() {
    for (pattern, text, is_like) in [
        ("", "", true),
        ("", "a", false),
        ("%", "", true),
        ("a%", "abc", true),
        ("%c", "abc", true),
        ("%b%", "abc", true),
        ("a_c", "abc", true),
        ("a_c", "ac", false),
        ("_", "ä", true),
        ("%a%b%", "xxaxxbxx", true),
        ("%ab", "aab", true),
        ("A%", "abc", false),
        (r"a\%", "a%", true),
        (r"a\%", "ab", false),
        (r"a\\b", r"a\b", true),
    ] {
        assert_eq!(like(pattern, text), is_like, "{pattern} {text}");
    }
}

#[test]
fn null_column_matches_nothing() {
    for text in ["name = a", "name <> a", "name like %", "name in (a)", "name not in (a)"] {
        assert!(!read(text).unwrap().unwrap().matches(&|_| None), "{text}");
    }
}

#[test]
fn orders_are_parsed() {
    use Direction::{Ascending, Descending};
    let columns = ["name", "created_at"];
    let both = vec![("name".to_owned(), Descending), ("created_at".to_owned(), Ascending)];
    assert_eq!(order(" NAME  Desc ,created_at", &columns), Ok(both));
    assert_eq!(order("name asc", &columns), Ok(vec![("name".to_owned(), Ascending)]));
    assert_eq!(order("", &columns), Ok(vec![]));
    for (text, expect) in [
        ("nam", "position 1, \"nam\": must be one of name, created_at"),
        ("name,", "position 6, end of input: must be one of name, created_at"),
        ("name up", "position 6, \"up\": must be asc or desc"),
        ("name asc x", "position 10, \"x\": expected a comma or end of input"),
        ("name; drop", "position 1, \"name;\": must be one of name, created_at"),
    ] {
        assert_eq!(order(text, &columns).unwrap_err().to_string(), expect);
    }
    assert!(order(&"name,".repeat(1000), &columns).is_err());
}

fn value() -> impl Strategy<Value = String> {
    // Quoting can't represent a backslash before a quote or at the end.
    prop_oneof!["[a-c]{0,3}", "[ -~äß]{0,8}"]
        .prop_map(|text| text.replace('\\', "\\-").replace("\\-'", "'"))
}

fn leaf() -> impl Strategy<Value = Expr> {
    let column = || proptest::sample::select(&COLUMNS[..]).prop_map(str::to_owned);
    let op = proptest::sample::select(&Op::ALL[..4]);
    prop_oneof![
        (column(), op, value()).prop_map(|(column, op, value)| Expr::Compare { column, op, value }),
        (column(), proptest::collection::vec(value(), 1..3))
            .prop_map(|(column, values)| Expr::In { column, not: false, values }),
    ]
}

fn any_search() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(2, 10, 3, |inner| {
        let parts = || proptest::collection::vec(inner.clone(), 2..=3);
        prop_oneof![parts().prop_map(Expr::And), parts().prop_map(Expr::Or)]
    })
}

/// `LIKE` by definition, without regard to performance.
fn slow_like(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|n| slow_like(rest, &text[n..])),
        ['_', rest @ ..] => !text.is_empty() && slow_like(rest, &text[1..]),
        [c, rest @ ..] => text.first() == Some(c) && slow_like(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn display_parses_to_the_same_search(expr in any_search()) {
        prop_assert_eq!(read(&expr.to_string()), Ok(Some(expr)));
    }

    #[test]
    fn no_input_panics(text: String) {
        let _ = read(&text);
        let _ = order(&text, &COLUMNS);
    }

    #[test]
    fn no_search_like_input_panics(
        words in proptest::collection::vec(
            "name|owner|=|<>|like|in|not|and|or|\\(|\\)|,|'|\\\\|\\^|ä| |%", 0..30,
        ),
        gap in "| ",
    ) {
        let text = words.join(&gap);
        if let Err(error) = read(&text) {
            prop_assert!(error.position <= text.chars().count() + 1);
        }
    }

    /// AND before OR: a search is a disjunction of conjunctions.
    #[test]
    fn and_binds_tighter_than_or(
        first: bool,
        rest in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..10),
    ) {
        let word = |truth: bool| if truth { "name = a" } else { "name = b" };
        let mut text = word(first).to_owned();
        let mut groups = vec![first];
        for (is_or, truth) in rest {
            text = format!("{text} {} {}", if is_or { "or" } else { "and" }, word(truth));
            let last = groups.last().copied().unwrap_or(true);
            if is_or {
                groups.push(truth);
            } else if let Some(group) = groups.last_mut() {
                *group = last && truth;
            }
        }
        let expr = read(&text).unwrap().unwrap();
        prop_assert_eq!(expr.matches(&|_| Some("a")), groups.contains(&true));
    }

    #[test]
    fn like_equals_its_definition(pattern in "[ab%_]{0,8}", text in "[ab]{0,10}") {
        let (p, t): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
        prop_assert_eq!(like(&pattern, &text), slow_like(&p, &t));
    }
}
